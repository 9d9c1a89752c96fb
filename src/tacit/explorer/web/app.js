"use strict";
// Puts the page together.

function start() {
  const model = JSON.parse(document.getElementById("model").textContent);
  const engine = model.remote ? remoteEngine(model) : localEngine(model);
  const session = new Session(model, engine);
  const host = document.getElementById("map");
  const map = new NetworkMap(session, host);
  const camera = new Camera(map, host);
  const overview = new Overview(map, camera);
  const cards = new Cards(session, document.getElementById("cards"));
  const query = new QueryBox(session);
  const testing = model.variables.some((variable) => variable.testing);
  const panels = [new FindingsPanel(session), ...(testing ? [new TestsPanel(session)] : []), new ChartPanel(session), new ExplanationPanel(session), new InformationPanel(session), new TornadoPanel(session)];
  const tabs = new Tabs(session, panels);
  const go = (i) => goTo(i, { map, camera, cards });

  describe(model);
  themes();
  views(cards, camera);
  help();
  const groups = legend(model, map);
  const search = new Search(session, go, (found) => {
    map.parts.forEach(({ group }, i) => group.classList.toggle("unlike", found !== null && !found.has(i)));
    cards.filter((i) => (found === null || found.has(i)) && !groups.off.has(model.variables[i].group));
  });
  groups.changed = () => search.look();

  for (const [place, view, eye, next] of [[host, map, camera, neighbourOnMap(map)], [cards.host, cards, null, neighbourInList], [query.host, query, null, neighbourInList]]) {
    listenToPointers(session, place, view, eye);
    listenToKeys(session, place, next);
  }
  host.addEventListener("focusin", (event) => {
    const box = event.target.closest("[data-box]");
    if (!box) return;
    map.point(Number(box.dataset.box));
    if (event.target.matches(":focus-visible")) camera.reveal(Number(box.dataset.box));
  });
  map.svg.addEventListener("pointerover", (event) => map.point(Number(event.target.closest("[data-box]")?.dataset.box ?? -1)));
  globalKeys(session, search);

  const complain = notices(session);
  session.listen((what) => {
    if (what === "answer") {
      map.update();
      cards.update();
      query.update();
      tabs.update();
      overview.mark(session.evidence, session.query);
    } else if (what === "query") {
      map.mark();
      overview.mark(session.evidence, session.query);
      cards.mark();
      query.choose();
      tabs.update();
    } else if (what === "settled") tabs.update();
    else if (what.go !== undefined) go(what.go);
    else if (what.picture) downloadPicture(map);
    else if (what.error) complain(`The server did not answer: ${what.error.message}`);
  });
  const first = session.ask();
  const ready = () => {
    if (!session.answer) return; // a server that did not answer
    map.mark();
    query.choose();
    followAddress(session, complain);
    speak(session);
    window.explorer = {
      ready: true,
      evidence: () => session.evidence,
      posteriors: () => session.answer.posteriors,
      observe: (i, likelihoods) => session.observe(i, likelihoods),
    };
  };
  if (first instanceof Promise) first.then(ready);
  else ready();
}

// The query above the panels, with its states.
class QueryBox {
  constructor(session) {
    this.session = session;
    this.host = document.querySelector(".query");
    this.select = document.getElementById("query");
    namesOf(session.model).forEach(([i, label]) => this.select.append(element("option", { value: i }, label)));
    this.select.addEventListener("change", () => session.choose(Number(this.select.value)));
    this.rows = [];
  }

  choose() {
    const { query, model } = this.session;
    this.select.value = query;
    this.rows = model.variables[query].states.map((state, k) => stateRow(query, k, state));
    this.rows[0].control.tabIndex = 0;
    document.getElementById("query-states").replaceChildren(...this.rows.map(({ control }) => control));
    this.update();
  }

  update() {
    const { query, evidence } = this.session;
    const seen = observedState(evidence[query]);
    this.host.classList.toggle("observed", seen >= 0);
    this.host.classList.toggle("soft", evidence[query] !== null && seen < 0);
    if (this.rows.length) updateRows(this.session, this.rows, query);
  }

  track(i, k) {
    return this.rows[k].track.getBoundingClientRect();
  }
}

function describe(model) {
  const edges = model.variables.reduce((sum, { parents }) => sum + parents.length, 0);
  const tests = model.variables.filter(({ testing }) => testing).length;
  setText(document.getElementById("title"), model.title ?? model.name);
  const counted = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
  setText(document.getElementById("summary"), [counted(model.variables.length, "variable"), counted(edges, "edge"), ...(tests ? [counted(tests, "testing node")] : [])].join(", "));
}

// Bring a variable to the screen and its first state under the keyboard.
function goTo(i, { map, camera, cards }) {
  if (cards.visible) {
    cards.update();
    cards.reveal(i);
    cards.parts[i].rows[0].control.focus({ preventScroll: true });
    return;
  }
  if (!map.svg.clientWidth) {
    show("map");
    camera.fit();
  }
  camera.reveal(i, camera.scale < FOLD);
  map.parts[i].rows[0].control.focus({ preventScroll: true });
  flash(map.parts[i].group.querySelector(".frame"));
}

function themes() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const use = (theme) => (document.documentElement.dataset.theme = theme);
  const follow = () => use(dark.matches ? "dark" : "light");
  follow();
  dark.addEventListener("change", follow);
  document.getElementById("theme").addEventListener("click", () => use(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
}

function show(view) {
  document.body.dataset.view = view;
  document.querySelectorAll(".views button").forEach((button) => button.setAttribute("aria-pressed", button.dataset.view === view));
}

// On narrow screens one of list, map and panels is shown; cards catch up when they are.
function views(cards, camera) {
  show(document.body.dataset.view);
  const shown = () => cards.session.answer && cards.update();
  document.querySelector(".views").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    show(button.dataset.view);
    shown();
    if (button.dataset.view === "map") camera.resized();
    scrollTo(0, 0);
  });
  addEventListener("resize", shown);
}

function help() {
  const dialog = document.getElementById("manual");
  document.getElementById("help").addEventListener("click", () => dialog.showModal());
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("side").focus();
  });
}

// The groups of variables with their colours; a group that is switched off fades.
function legend(model, map) {
  const names = groupNames(model);
  const found = { off: new Set(), changed: () => {} };
  const host = document.getElementById("legend");
  host.hidden = !names.length;
  names.forEach((name, g) => {
    const button = element("button", { type: "button", "aria-pressed": "true", class: `g${g % 8}` }, element("i", { class: "group-dot" }), name);
    button.addEventListener("click", () => {
      if (!found.off.delete(name)) found.off.add(name);
      button.setAttribute("aria-pressed", !found.off.has(name));
      model.variables.forEach(({ group }, i) => group === name && map.parts[i].group.classList.toggle("away", found.off.has(name)));
      found.changed();
    });
    host.append(button);
  });
  return found;
}

function globalKeys(session, search) {
  document.getElementById("undo").addEventListener("click", () => session.undo());
  document.getElementById("clear").addEventListener("click", () => session.clear());
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select");
    if (typing || document.getElementById("manual").open) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
      if (event.shiftKey) session.redo();
      else session.undo();
    } else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === "/") search.input.focus();
    else if (event.key === "?") document.getElementById("manual").showModal();
    else return;
    event.preventDefault();
  });
}

// What is wrong, with a way out where there is one.
function notices(session) {
  const place = document.getElementById("problem");
  const [text, button] = [place.querySelector("span"), place.querySelector("button")];
  const say = (message, way) => {
    setText(text, message);
    button.hidden = !way;
    place.hidden = !message;
  };
  button.addEventListener("click", () => session.undo());
  session.listen((what) => {
    if (what !== "answer" && what !== "settled") return;
    const { answer, past } = session;
    const dirty = session.evidence.some((one) => one);
    document.getElementById("undo").disabled = !past.length;
    document.getElementById("clear").disabled = !dirty;
    if (!answer.possible) say("These findings contradict each other: together they have probability 0.", past.length > 0);
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
    const { label, states } = model.variables[query];
    const flips = [...testsByNode(answer, before).values()].flatMap(({ flipped }) => flipped).filter((flip) => flip).length;
    const parts = [answer.possible ? `${label}: ${states[best]} ${spokenPercent(posterior[best])}.` : "The findings contradict each other."];
    if (flips) parts.push(`${flips} ${flips === 1 ? "test" : "tests"} flipped.`);
    setText(place, parts.join(" "));
    before = answer;
  }, 300);
  session.listen((what) => (what === "answer" || what === "query") && say());
}

start();
