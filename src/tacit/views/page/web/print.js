"use strict";
// On paper, the map is whole and light; print.css does the rest.

function printable(map) {
  const root = document.documentElement;
  let theme = null;
  addEventListener("beforeprint", () => {
    theme ??= root.dataset.theme;
    root.dataset.theme = "light";
    map.svg.setAttribute("viewBox", `0 0 ${map.width} ${map.height}`);
    map.point(-1);
  });
  addEventListener("afterprint", () => {
    if (theme !== null) root.dataset.theme = theme;
    theme = null;
    map.svg.removeAttribute("viewBox");
  });
}
