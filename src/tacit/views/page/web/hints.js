"use strict";
// Lines about what a click does, where that is not what it does at first.

// On the map, where boxes are folded.
function hintOnMap(camera) {
  const host = document.getElementById("hint");
  const { svg } = camera.map;
  onClick("zoom-query", () => camera.begin());
  camera.listen(() => {
    host.hidden = !svg.classList.contains("far-off");
    host.querySelector(".left-out").hidden = !svg.classList.contains("names-only");
  });
}

// Beside it, where a variable is set and the data leave the direction of its edges open: only the drawn one counts.
function hintOnOpenEdges(session) {
  const host = document.getElementById("open-edges");
  session.listen((what) => {
    if (what !== "answer") return;
    const text = openEdgesText(session);
    setText(host, text);
    host.hidden = !text;
  });
}

function openEdgesText({ model, evidence }) {
  const { layout, edge_looks: looks, variables } = model;
  const open = (looks ?? []).flatMap(({ tipped }, k) => (tipped ? [] : [layout.edges[k]]));
  const near = open.filter(({ from, to }) => [from, to].some((i) => stateSet(evidence[i]) >= 0));
  if (!near.length) return "";
  const arrows = near.map(({ from, to }) => `${variables[from].label} → ${variables[to].label}`);
  const [first, last] = arrows.length > 4 ? [arrows.slice(0, 3), `${arrows.length - 3} more`] : [arrows.slice(0, -1), arrows.at(-1)];
  const shown = first.length ? `${first.join(", ")} and ${last}` : last;
  const which = arrows.length > 1 ? "directions" : "a direction";
  return `The effect shown assumes ${shown}, ${which} that the data leave open.`;
}

// Beside it, where clicks set states.
function hintOnSetting(session) {
  const host = document.getElementById("setting");
  session.listen((what) => what === "mode" && (host.hidden = !session.setting));
}
