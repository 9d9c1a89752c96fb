"use strict";
// Small helpers. Text of the network becomes text nodes and attributes, never HTML.

function element(name, attributes = {}, ...children) {
  return furnished(document.createElement(name), attributes, children);
}

function svgElement(name, attributes = {}, ...children) {
  return furnished(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function furnished(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

function button(text, click, attributes = {}) {
  return element("button", { type: "button", click, ...attributes }, text);
}

function quiet(name, ...children) {
  return element(name, { class: "quiet" }, ...children);
}

function onClick(id, f) {
  document.getElementById(id).addEventListener("click", f);
}

// Set only what differs: most texts and attributes stay the same from one click to the next.
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function setAttribute(node, key, value) {
  if (node.getAttribute(key) !== String(value)) node.setAttribute(key, value);
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const ruler = document.createElement("canvas").getContext("2d");

const measured = new Map(); // the same labels come again and again

function textWidth(text, pixels, weight = 400) {
  const key = `${weight} ${pixels} ${text}`;
  if (!measured.has(key)) {
    ruler.font = `${weight} ${pixels}px ${FONT}`;
    measured.set(key, ruler.measureText(text).width);
  }
  return measured.get(key);
}

// The text, or as much of it as fits.
function fitted(text, room, pixels, weight = 400) {
  if (textWidth(text, pixels, weight) <= room) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(`${text.slice(0, middle)}…`, pixels, weight) <= room) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low).trimEnd()}…`;
}

function percent(p) {
  if (Number.isNaN(p)) return "–";
  if (p < 1e-12) return "0%";
  if (p > 1 - 1e-12) return "100%"; // but for rounding
  if (p < 0.0005) return "<0.1%";
  if (p >= 0.9995) return ">99.9%";
  return `${(100 * p).toFixed(1)}%`;
}

function spokenPercent(p) {
  return Number.isNaN(p) ? "impossible" : `${(100 * p).toFixed(1)} percent`;
}

// A number in few digits: 0.25, 1.3e-7.
function brief(x, digits = 3) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  const text = size >= 1e-3 && size < 1e5 ? String(Number(x.toPrecision(digits))) : x.toExponential(digits - 1);
  return text.replace(/^-/, "−");
}

function largest(values) {
  return values.reduce((best, x, k) => (x > values[best] ? k : best), 0);
}

function calm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

// Text stays legible meanwhile: it gets a frame. Parts of the map have no room for one.
function flash(node) {
  if (calm()) return;
  const [on, off] = node instanceof SVGElement
    ? [{ opacity: 0.1 }, { opacity: 1 }]
    : [{ outline: "2px solid var(--accent)" }, { outline: "2px solid transparent" }];
  node.animate([on, off, on, off], { duration: 700 });
}

// Call at most once in `milliseconds`, with what was wanted last.
function later(f, milliseconds) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(f, milliseconds);
  };
}
