"use strict";
// A function of two inputs as a picture, with the borders of its pieces.

const LEAST_SPAN = 0.05;
const RAMP = [
  [243, 246, 250],
  [178, 208, 236],
  [92, 152, 210],
  [38, 98, 165],
  [15, 48, 96],
];

// From the least to the most, but never so little that noise looks like a landscape.
function spanOf(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const more = Math.max(0, (LEAST_SPAN - (high - low)) / 2);
  return [Math.max(low - more, 0), Math.min(high + more, 1)];
}

// The values as a picture, a pixel each, the first row at the bottom.
function heat(values, low, high) {
  const [rows, columns] = [values.length, values[0].length];
  const canvas = element("canvas", { width: columns, height: rows });
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(columns, rows);
  values.forEach((row, r) =>
    row.forEach((p, c) => {
      const t = high > low ? ((p - low) / (high - low)) * (RAMP.length - 1) : 0;
      const k = Math.min(Math.floor(t), RAMP.length - 2);
      const color = Number.isNaN(p) ? [128, 128, 128] : RAMP[k].map((a, j) => a + (t - k) * (RAMP[k + 1][j] - a));
      pixels.data.set([...color.map(Math.round), 255], 4 * ((rows - 1 - r) * columns + c));
    }),
  );
  context.putImageData(pixels, 0, 0);
  return canvas.toDataURL();
}

// Lines between neighbours of different pieces.
function borders(pieces, at) {
  const [rows, columns] = [pieces.length, pieces[0].length];
  const point = (c, r) =>
    at(c / columns, r / rows)
      .map((x) => x.toFixed(2))
      .join(" ");
  let path = "";
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      if (c + 1 < columns && pieces[r][c] !== pieces[r][c + 1]) path += `M${point(c + 1, r)}L${point(c + 1, r + 1)}`;
      if (r + 1 < rows && pieces[r][c] !== pieces[r + 1][c]) path += `M${point(c, r + 1)}L${point(c + 1, r + 1)}`;
    }
  }
  return path;
}

// The colours, from the least to the most.
function ramp() {
  const colors = RAMP.map((color) => `rgb(${color})`).join(", ");
  return element("i", { class: "ramp", style: `background: linear-gradient(to right, ${colors})` });
}
