"use strict";
// Answers as a table, the map as a picture.

const SHARPNESS = 2;
const NOT_XML = /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g; // no picture in XML may hold them
const MOST_PIXELS = 40e6; // browsers refuse larger canvases

function save(blob, name) {
  const anchor = element("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}

function fileName(model, suffix) {
  return `${model.name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+/, "") || "network"}.${suffix}`;
}

function quoted(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// variable, state, posterior, likelihood, set: by the network's own names, all digits.
function posteriorsAsTable({ model, answer, evidence }) {
  const lines = ["variable,state,posterior,likelihood,set"];
  model.variables.forEach(({ name, names, density }, i) => {
    density?.columns.forEach((column, j) => lines.push(...numbersAsLines(column, answer.numbers[i][j], numbersIn(evidence[i])?.[j])));
    names.forEach((state, k) => {
      const p = answer.posteriors[i][k];
      const set = stateSet(evidence[i]);
      const finding = set >= 0 ? ["", set === k ? "yes" : "no"] : [evidence[i] ? evidence[i][k] : "", ""];
      lines.push([quoted(name), quoted(state), Number.isNaN(p) ? "" : p, ...finding].join(","));
    });
  });
  return `${lines.join("\r\n")}\r\n`;
}

// Of a column of numbers: what was observed, or its mean, standard deviation and quantiles.
function numbersAsLines(column, mixture, number) {
  const line = (what, x) => [quoted(column), what, Number.isNaN(x) ? "" : x, "", ""].join(",");
  if (!mixture) return [line("observed", number)];
  const quantiles = [0.05, 0.5, 0.95].map((share) => line(`${100 * share}%`, mixture.quantile(share)));
  return [line("mean", mixture.mean), line("sd", mixture.sd), ...quantiles];
}

function downloadTable(session) {
  save(new Blob([posteriorsAsTable(session)], { type: "text/csv;charset=utf-8" }), fileName(session.model, "csv"));
}

// The whole map, whatever part of it is in sight, in the present colours.
async function downloadPicture(map) {
  const { width, height, model } = map;
  const copy = map.svg.cloneNode(true);
  copy.classList.remove("far-off", "names-only");
  copy.querySelectorAll(".near, .unlike").forEach((node) => node.classList.remove("near", "unlike")); // where a hand was
  copy.querySelector(".scene").removeAttribute("transform");
  const attributes = {
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "data-theme": document.documentElement.dataset.theme,
    "font-family": FONT,
  };
  for (const [key, value] of Object.entries(attributes)) copy.setAttribute(key, value);
  copy.prepend(
    svgElement("style", {}, [...document.querySelectorAll("style")].map((style) => style.textContent).join("")),
    svgElement("rect", { class: "ground", width, height }),
  );
  const image = new Image();
  const text = new XMLSerializer().serializeToString(copy).replace(NOT_XML, "\ufffd");
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  image.src = url;
  await image.decode();
  const scale = Math.min(SHARPNESS, Math.sqrt(MOST_PIXELS / (width * height)));
  const canvas = element("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  save(blob, fileName(model, "png"));
}
