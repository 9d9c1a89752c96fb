"use strict";
// What the page says in words: problems, for all to see, and changes, for those who listen.

// What is wrong, with a way out where there is one.
function notices(session) {
  const place = document.getElementById("problem");
  const [text, button] = [place.querySelector("span"), place.querySelector("button")];
  const say = (message, undoable) => {
    setText(text, message);
    button.hidden = !undoable;
    place.hidden = !message;
  };
  button.addEventListener("click", () => session.undo());
  session.listen((what) => {
    if (what !== "answer" && what !== "settled") return;
    const { answer, past } = session;
    if (!answer) return; // a server has not answered yet
    const dirty = session.evidence.some((one) => one);
    document.getElementById("undo").disabled = !past.length;
    document.getElementById("clear").disabled = !dirty;
    if (!answer.possible)
      say("These findings contradict each other: together they have probability 0.", past.length > 0);
    else if (what === "answer") say("", false);
  });
  return (message) => say(message, false);
}

// One sentence after every change, for those who listen.
function speak(session) {
  const place = document.getElementById("said");
  let before = session.answer;
  const say = later(() => {
    const { answer, query, model } = session;
    const posterior = answer.posteriors[query];
    const best = largest(posterior);
    const { label, states, density } = model.variables[query];
    const said = () => (density ? spokenNumbers(session, query) : `${states[best]} ${spokenPercent(posterior[best])}`);
    const flips = [...testsByNode(answer, before).values()]
      .flatMap(({ flipped }) => flipped)
      .filter((flip) => flip).length;
    const parts = [
      answer.possible
        ? `${label}: ${said()}.`
        : "The findings contradict each other.",
    ];
    if (flips) parts.push(`${flips} ${flips === 1 ? "test" : "tests"} flipped.`);
    setText(place, parts.join(" "));
    before = answer;
  }, 300);
  session.listen((what) => (what === "answer" || what === "query") && say());
}
