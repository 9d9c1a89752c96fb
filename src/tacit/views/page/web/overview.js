"use strict";
// A small picture of a large network, below the panels: where one is, and a way to elsewhere. It can be folded away, and
// is folded while two cases are compared, since their tables need the room.

const OVERVIEW = [360, 136]; // pixels, at most
const LEAST_HEIGHT = 480; // pixels of the map; in less, panels need the room

class Overview {
  constructor(map, camera) {
    Object.assign(this, { map, camera, host: document.getElementById("overview"), comparing: false });
    this.picture = this.host.querySelector("div");
    this.scale = Math.min(OVERVIEW[0] / map.width, OVERVIEW[1] / map.height);
    this.boxes = map.model.layout.boxes.map(([x, y, width, height]) =>
      svgElement("rect", { class: "spot", x, y, width, height }),
    );
    this.window = svgElement("rect", { class: "window", "stroke-width": 1.5 / this.scale });
    const size = {
      width: map.width * this.scale,
      height: map.height * this.scale,
      viewBox: `0 0 ${map.width} ${map.height}`,
    };
    this.picture.append(svgElement("svg", size, ...this.boxes, this.window));
    for (const kind of ["pointerdown", "pointermove"])
      this.picture.addEventListener(kind, (event) => event.buttons && this.move(event));
    this.button = document.getElementById("fold-overview");
    this.button.addEventListener("click", () => this.fold(!this.picture.hidden));
    camera.listen(() => this.update());
  }

  fold(folded) {
    this.picture.hidden = folded;
    setAttribute(this.button, "aria-expanded", !folded);
    this.host.parentNode.classList.toggle("overview-folded", folded);
  }

  // Fold when a comparison begins, and be as before when it ends.
  compare(comparing) {
    if (comparing === this.comparing) return;
    if (comparing) this.before = this.picture.hidden;
    this.comparing = comparing;
    this.fold(comparing || this.before);
  }

  // Only where not everything is in sight.
  update() {
    const { x, y, scale, room } = this.camera;
    const all = this.map.width * scale <= room[0] + 1 && this.map.height * scale <= room[1] + 1;
    this.host.hidden = all || room[1] < LEAST_HEIGHT;
    this.host.parentNode.classList.toggle("overviewed", !this.host.hidden);
    const place = { x: -x / scale, y: -y / scale, width: room[0] / scale, height: room[1] / scale };
    for (const [key, value] of Object.entries(place)) this.window.setAttribute(key, value.toFixed(1));
  }

  mark(evidence, query) {
    this.boxes.forEach((box, i) => {
      box.classList.toggle("seen", evidence[i] !== null);
      box.classList.toggle("set", stateSet(evidence[i]) >= 0);
      box.classList.toggle("chosen", i === query);
    });
  }

  move({ clientX, clientY }) {
    const { left, top } = this.picture.firstChild.getBoundingClientRect();
    this.camera.center((clientX - left) / this.scale, (clientY - top) / this.scale);
  }
}
