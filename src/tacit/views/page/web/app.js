"use strict";
// Puts the page together.

async function start() {
  const model = await unpacked(JSON.parse(document.getElementById("model").textContent));
  for (const variable of model.variables) variable.order = stateOrder(variable);
  const engine = model.remote ? remoteEngine(model) : localEngine(model);
  const session = new Session(model, engine);
  new Surety(session); // first: what is shown of an answer must not have the intervals of the last one
  const host = document.getElementById("map");
  const map = new NetworkMap(session, host);
  const camera = new Camera(map, host);
  const overview = new Overview(map, camera);
  const cards = new Cards(session, document.getElementById("cards"));
  const query = new QueryBox(session);
  const decision = new DecisionBox(session);
  const strip = new AnswerStrip(session, () => show("panels"));
  const testing = model.variables.some((variable) => variable.testing);
  const panels = [
    new FindingsPanel(session),
    new WeightsPanel(session),
    ...(testing ? [new TestsPanel(session)] : []),
    new TablePanel(session),
    new ChartPanel(session),
    new ExplanationPanel(session),
    new InformationPanel(session),
    new TornadoPanel(session),
  ];
  const tabs = new Tabs(session, panels);
  const go = (i) => goTo(i, { map, camera, cards });

  describe(model);
  edgeLegend(model);
  themes();
  views(cards, camera);
  help();
  modes(session);
  printable(map);
  hintOnMap(camera);
  hintOnSetting(session);
  hintOnOpenEdges(session);
  hintOnIntervals(session);
  const groups = legend(model, map);
  const search = new Search(session, go, (found) => {
    map.parts.forEach(({ group }, i) => group.classList.toggle("unlike", found !== null && !found.has(i)));
    cards.filter((i) => (found === null || found.has(i)) && !groups.off.has(model.variables[i].group));
  });
  groups.changed = () => search.look();

  for (const [place, view, eye, next] of [
    [host, map, camera, neighbourOnMap(map)],
    [cards.host, cards, null, neighbourInList],
    [query.host, query, null, neighbourInList],
  ]) {
    listenToPointers(session, place, view, eye);
    listenToKeys(session, place, next);
  }
  host.addEventListener("focusin", (event) => {
    const box = event.target.closest("[data-box]");
    if (!box) return;
    map.point(Number(box.dataset.box));
    if (event.target.matches(":focus-visible")) camera.reveal(Number(box.dataset.box));
  });
  map.svg.addEventListener("pointerover", (event) =>
    map.point(Number(event.target.closest("[data-box]")?.dataset.box ?? -1)),
  );
  globalKeys(session, search);

  const complain = notices(session);
  session.listen((what) => {
    if (what === "answer") {
      map.update();
      cards.update();
      query.update();
      decision.update();
      strip.update();
      tabs.update();
      overview.mark(session.evidence, session.query);
    } else if (what === "intervals") {
      map.updateWhiskers();
      cards.update();
      query.update();
    } else if (what === "query") {
      map.mark();
      camera.bring(session.query);
      overview.mark(session.evidence, session.query);
      cards.mark();
      query.choose();
      strip.update();
      tabs.update();
    } else if (what === "mode" && session.answer) {
      query.update();
      cards.update();
      cards.mark();
    } else if (what === "settled") session.answer && tabs.update();
    else if (what === "restored") cards.introduce();
    else if (what === "cases") overview.compare(session.kept !== null);
    else if (what.go !== undefined) go(what.go);
    else if (what.problem) complain(what.problem);
    else if (what.picture) downloadPicture(map);
    else if (what.error) complain(`The server did not answer: ${what.error.message}`);
  });
  let begun = false;
  const ready = () => {
    begun = true;
    map.mark();
    query.choose();
    followAddress(session, complain);
    speak(session);
    performance.mark("ready"); // all posteriors are drawn
    window.explorer = {
      ready: true,
      evidence: () => session.evidence,
      posteriors: () => session.answer.posteriors,
      intervals: () => session.intervals,
      observe: (i, likelihoods) => session.observe(i, likelihoods),
    };
  };
  session.listen((what) => what === "answer" && !begun && ready());
  session.ask();
}

// Large programs and tables travel compressed.
async function unpacked({ packed, ...model }) {
  if (!packed) return model;
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return { ...model, ...JSON.parse(await new Response(stream).text()) };
}

function describe(model) {
  const edges = sumOf(model.variables.map(({ parents }) => parents.length));
  const tests = model.variables.filter(({ testing }) => testing).length;
  setText(document.getElementById("title"), model.title ?? model.name);
  if (model.remote) setText(document.getElementById("computed"), "The server that sent this page computes the answers.");
  const counted = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
  const counts = [counted(model.variables.length, "variable"), counted(edges, "edge")];
  if (tests) counts.push(counted(tests, "testing node"));
  setText(document.getElementById("summary"), counts.join(", "));
}

// Bring a variable to the screen and its first state under the keyboard.
function goTo(i, { map, camera, cards }) {
  if (cards.visible) {
    cards.update();
    cards.reveal(i);
    cards.parts[i].first.focus({ preventScroll: true });
    return;
  }
  if (!map.svg.clientWidth) {
    show("map");
    camera.fit();
  }
  camera.reveal(i, camera.scale < FOLD);
  (map.parts[i].rows[map.parts[i].shown[0]]?.control ?? map.parts[i].title).focus({ preventScroll: true });
  flash(map.parts[i].group.querySelector(".frame"));
}

function themes() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const use = (theme) => (document.documentElement.dataset.theme = theme);
  const follow = () => use(dark.matches ? "dark" : "light");
  follow();
  dark.addEventListener("change", follow);
  onClick("theme", () => use(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
}

// What a click on a state does: observe it, or set it.
function modes(session) {
  const buttons = [document.getElementById("observe"), document.getElementById("set")];
  const mark = () => buttons.forEach((one, k) => one.setAttribute("aria-pressed", session.setting === (k === 1)));
  buttons.forEach((one, k) => one.addEventListener("click", () => session.use(k === 1)));
  session.listen((what) => what === "mode" && mark());
  document.getElementById("mode").hidden = Boolean(session.model.unsettable);
}

function show(view) {
  document.body.dataset.view = view;
  document
    .querySelectorAll(".views button")
    .forEach((button) => button.setAttribute("aria-pressed", button.dataset.view === view));
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
  onClick("close-manual", () => dialog.close());
  onClick("help", () => dialog.showModal());
  onClick("skip", (event) => {
    event.preventDefault();
    document.getElementById("side").focus();
  });
}

function globalKeys(session, search) {
  onClick("undo", () => session.undo());
  onClick("clear", () => session.clear());
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select");
    if (typing || document.getElementById("manual").open) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
      if (event.shiftKey) session.redo();
      else session.undo();
    } else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === "/") search.input.focus();
    else if (event.key === "d") session.use(!session.setting && !session.model.unsettable);
    else if (event.key === "?") document.getElementById("manual").showModal();
    else return;
    event.preventDefault();
  });
}

start();
