"use strict";
// Zoom and pan of the map.

const FOLD = 0.7; // below this scale, labels cannot be read: boxes fold
const CLOSEST = 3;
const LEGIBLE = 11.1; // pixels: labels are no smaller to begin with, also where not everything is in sight then
const EDGE = 10; // pixels between the network and the border of the window
const HINT = 44; // pixels at the bottom, for the line about boxes that are folded
const HINT_ON_TOP = 66; // where it is on narrow screens

class Camera {
  constructor(map, host) {
    Object.assign(this, { map, host, x: 0, y: 0, scale: 1, touched: false, whole: false });
    this.narrow = matchMedia("(max-width: 720px)");
    this.pointers = new Map();
    this.listeners = [];
    host.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    map.svg.addEventListener("pointerdown", (event) => this.down(event));
    map.svg.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) map.svg.addEventListener(end, (event) => this.up(event));
    new ResizeObserver(() => this.resized()).observe(host);
    onClick("zoom-in", () => this.zoom(1.3));
    onClick("zoom-out", () => this.zoom(1 / 1.3));
    onClick("fit", () => {
      this.fit();
      this.whole = true;
    });
  }

  get room() {
    return [this.host.clientWidth, this.host.clientHeight];
  }

  listen(f) {
    this.listeners.push(f);
  }

  // A window that was resized shows what it showed; one that nobody moved, what it was opened with, or the whole.
  resized() {
    if (this.touched) return;
    if (this.whole) this.fit();
    else this.begin();
  }

  // All of the network, or else, as large as it must be to be read, the part around the query.
  begin() {
    this.whole = false;
    this.fit();
    const legible = LEGIBLE / this.map.m.letters;
    if (this.scale >= legible || !this.room[0]) return;
    const [x, y, w, h] = this.map.model.layout.boxes[this.map.session.query];
    this.scale = Math.max(legible, Math.min(1, this.room[0] / this.map.width));
    this.center(x + w / 2, y + h / 2);
    this.fill();
    this.touched = false;
  }

  // Leave no part of the window empty that the network could fill: first from top to bottom, then from side to side.
  fill() {
    this.pan(0, this.filled(this.y, this.room[1], 0, this.map.height) - this.y);
    this.pan(this.filled(this.x, this.room[0], 0, this.map.width) - this.x, 0);
    const rows = this.rowsInSight();
    const [left, right] = [Math.min(...rows.map(([x]) => x)), Math.max(...rows.map(([x, , w]) => x + w))];
    if (rows.length) this.pan(this.filled(this.x, this.room[0], left, right) - this.x, 0);
  }

  // Where a window of a length begins on the screen, so that it is filled by what lies between two ends.
  filled(at, length, from, to) {
    const [least, most] = [length - EDGE - this.scale * to, EDGE - this.scale * from];
    return least > most ? (least + most) / 2 : Math.min(Math.max(at, least), most);
  }

  // The boxes beside, left or right of what is in sight.
  rowsInSight() {
    const [top, bottom] = [-this.y / this.scale, (this.room[1] - this.y) / this.scale];
    return this.map.model.layout.boxes.filter(([, y, , h]) => y >= top && y + h <= bottom);
  }

  smallest() {
    const [w, h] = this.room;
    return Math.min(1, w / this.map.width, h / this.map.height);
  }

  fit() {
    const [w, h] = this.room;
    if (!w || !h) return;
    const scale = (height) => Math.min(1.4, w / this.map.width, height / this.map.height);
    const [top, bottom] = scale(h) >= FOLD ? [0, 0] : this.narrow.matches ? [HINT_ON_TOP, 0] : [0, HINT];
    const room = h - top - bottom;
    this.scale = scale(room);
    this.x = (w - this.scale * this.map.width) / 2;
    this.y = top + (room - this.scale * this.map.height) / 2;
    this.touched = false;
    this.show();
  }

  zoom(factor, at = this.room.map((x) => x / 2)) {
    const scale = Math.min(Math.max(this.scale * factor, this.smallest() * 0.8), CLOSEST);
    this.x = at[0] - ((at[0] - this.x) * scale) / this.scale;
    this.y = at[1] - ((at[1] - this.y) * scale) / this.scale;
    this.scale = scale;
    this.touched = true;
    this.show();
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.touched = true;
    this.show();
  }

  // The middle of the window, in the map's own pixels.
  center(x, y) {
    const [w, h] = this.room;
    this.x = w / 2 - this.scale * x;
    this.y = h / 2 - this.scale * y;
    this.touched = true;
    this.show();
  }

  show() {
    const [w, h] = this.room;
    const kept = 60; // some of the network always stays in sight
    this.x = Math.min(Math.max(this.x, kept - this.scale * this.map.width), w - kept);
    this.y = Math.min(Math.max(this.y, kept - this.scale * this.map.height), h - kept);
    this.map.scene.setAttribute(
      "transform",
      `translate(${this.x.toFixed(2)} ${this.y.toFixed(2)}) scale(${this.scale.toFixed(4)})`,
    );
    this.map.seenFrom(this.scale);
    this.listeners.forEach((f) => f());
  }

  // Bring the box of another query into view, if it is not; a map that nobody moved, to where it would open.
  bring(i) {
    const [w, h] = this.room;
    if (!w || !h || this.holds(i, 0)) return;
    const [bx, by, bw, bh] = this.map.model.layout.boxes[i];
    if (!this.touched) this.begin();
    if (this.holds(i, 0)) return;
    this.center(bx + bw / 2, by + bh / 2);
    this.fill();
  }

  // Whether a box is in sight, that far from the border of the window.
  holds(i, distance) {
    const [w, h] = this.room;
    const [bx, by, bw, bh] = this.map.model.layout.boxes[i];
    const [left, top] = [this.x + this.scale * bx, this.y + this.scale * by];
    const [right, bottom] = [left + this.scale * bw, top + this.scale * bh];
    return left >= distance && top >= distance && right <= w - distance && bottom <= h - distance;
  }

  // Bring a box into view, near enough to be read.
  reveal(i, always = false) {
    const [w, h] = this.room;
    if (!w || !h) return;
    const [bx, by, bw, bh] = this.map.model.layout.boxes[i];
    if (this.holds(i, 8) && this.scale >= FOLD && !always) return;
    this.scale = Math.max(this.scale, always || this.scale < FOLD ? 1 : this.scale);
    this.center(bx + bw / 2, by + bh / 2);
    this.fill();
  }

  // In a frame, whoever scrolls past must not be caught: the wheel zooms only after the map was touched.
  wheel(event) {
    if (window.parent !== window && !this.entered && !event.ctrlKey) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.zoom(
      Math.exp(-Math.max(-100, Math.min(100, event.deltaY * lines)) * (event.ctrlKey ? 0.01 : 0.0022)),
      this.place(event),
    );
  }

  place({ clientX, clientY }) {
    const { left, top } = this.host.getBoundingClientRect();
    return [clientX - left, clientY - top];
  }

  // One pointer on the background moves the map, two zoom it.
  down(event) {
    this.entered = true;
    this.pointers.set(event.pointerId, this.place(event));
    if (this.pointers.size === 2) this.pinched = true;
    this.moved = 0;
  }

  move(event) {
    const old = this.pointers.get(event.pointerId);
    if (!old || (this.busy && !this.pinched)) return;
    const now = this.place(event);
    if (this.pointers.size === 2) {
      const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      const ratio =
        Math.hypot(now[0] - other[0], now[1] - other[1]) /
        Math.max(Math.hypot(old[0] - other[0], old[1] - other[1]), 1);
      this.zoom(ratio, [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2]);
      this.pan((now[0] - old[0]) / 2, (now[1] - old[1]) / 2);
    } else {
      const [dx, dy] = [now[0] - old[0], now[1] - old[1]];
      this.moved += Math.abs(dx) + Math.abs(dy);
      if (this.moved < 4) return;
      if (!this.map.svg.hasPointerCapture(event.pointerId)) this.map.svg.setPointerCapture(event.pointerId);
      this.map.svg.classList.add("panned");
      this.pan(dx, dy);
    }
    this.pointers.set(event.pointerId, now);
  }

  up(event) {
    this.pointers.delete(event.pointerId);
    if (!this.pointers.size) this.pinched = false;
    this.map.svg.classList.remove("panned");
  }
}
