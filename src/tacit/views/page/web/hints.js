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

// Beside it, where clicks set states.
function hintOnSetting(session) {
  const host = document.getElementById("setting");
  session.listen((what) => what === "mode" && (host.hidden = !session.setting));
}
