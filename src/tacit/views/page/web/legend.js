"use strict";
// Groups of variables: their colours on boxes and cards, and a legend that fades them.

function groupNames(model) {
  return [...new Set(model.variables.map(({ group }) => group).filter((group) => group))];
}

// What colours a box or a card by its group.
function groupClasses(model, i) {
  const { group } = model.variables[i];
  return group ? ["grouped", `g${groupNames(model).indexOf(group) % 8}`] : [];
}

// What an edge looks like: dashed, the less sure it is, and without a tip where its direction is open.
function edgeClasses(look) {
  if (!look) return "edge";
  return `edge level-${look.level}${look.tipped ? "" : " tipless"}`;
}

// An entry for each kind of edge that has to be explained; none in most networks.
function edgeLegend(model) {
  const host = document.getElementById("edge-legend");
  const entries = model.edge_legend ?? [];
  host.hidden = !entries.length;
  host.append("Edges:");
  entries.forEach(({ text, ...look }) => {
    const line = svgElement("path", { class: edgeClasses(look), d: "M1 6h32" });
    const sample = svgElement("svg", { width: 36, height: 12, "aria-hidden": "true" }, line);
    host.append(element("span", {}, sample, text));
  });
}

// The groups of variables with their colours; a group that is switched off fades.
function legend(model, map) {
  const names = groupNames(model);
  const found = { off: new Set(), changed: () => {} };
  const host = document.getElementById("legend");
  host.hidden = !names.length;
  names.forEach((name, g) => {
    const button = element(
      "button",
      { type: "button", "aria-pressed": "true", class: `g${g % 8}` },
      element("i", { class: "group-dot" }),
      name,
    );
    button.addEventListener("click", () => {
      if (!found.off.delete(name)) found.off.add(name);
      button.setAttribute("aria-pressed", !found.off.has(name));
      model.variables.forEach(
        ({ group }, i) => group === name && map.parts[i].group.classList.toggle("away", found.off.has(name)),
      );
      found.changed();
    });
    host.append(button);
  });
  return found;
}
