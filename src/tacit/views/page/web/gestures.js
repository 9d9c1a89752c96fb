"use strict";
// What pointers and keys do to states and names, on the map, the cards and the query alike.

const FURTHER = 4; // pixels that tell a drag from a click
const NUDGE = 0.05;

// `view` has the bar of a state on the screen (track); `camera` is there for the map only.
function listenToPointers(session, host, view, camera = null) {
  let drag = null;
  host.addEventListener("pointerdown", (event) => {
    const control = event.target.closest("[data-state]");
    if (!control || event.button !== 0 || camera?.map.svg.classList.contains("far-off")) return;
    const bar = event.target.closest(".track, .bar, .likelihood") !== null; // elsewhere, a drag moves the map
    drag = { ...controlOf(control), control, bar, x: event.clientX, moving: false };
    if (camera) camera.busy = bar;
  });
  host.addEventListener("pointermove", (event) => {
    if (drag && !event.buttons) release(); // it was let go elsewhere
    if (!drag?.bar || camera?.pinched) return;
    if (!drag.moving) {
      if (Math.abs(event.clientX - drag.x) < FURTHER) return;
      drag.moving = true;
      drag.control.setPointerCapture(event.pointerId);
    }
    const { left, width } = view.track(drag.i, drag.k);
    const x = (event.clientX - left) / width;
    session.share(drag.i, drag.k, x > 0.985 ? 1 : x < 0.015 ? 0 : Math.round(200 * x) / 200, false);
  });
  host.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const done = release();
    if (done.moving) session.settle();
    else if (!camera?.pinched && event.target.closest("[data-state]") === done.control)
      session.toggle(done.i, done.k, session.setting !== event.shiftKey);
  });
  host.addEventListener("pointercancel", () => drag && release().moving && session.settle());
  function release() {
    const done = drag;
    drag = null;
    if (camera) camera.busy = false;
    return done;
  }
  host.addEventListener("click", (event) => {
    const title = event.target.closest(".title[data-variable], .more[data-variable]");
    const far = camera?.map.svg.classList.contains("far-off") && event.target.closest("[data-box]");
    if (far && camera.moved < FURTHER) camera.reveal(Number(far.dataset.box), true);
    else if (title) session.choose(Number(title.dataset.variable));
  });
}

function controlOf(control) {
  return {
    i: Number(control.dataset.variable),
    k: control.dataset.state === undefined ? -1 : Number(control.dataset.state),
  };
}

// Keys on a state or a name; `neighbours(key, control, i)` is where an arrow leads to.
function listenToKeys(session, host, neighbours) {
  host.addEventListener("keydown", (event) => {
    const control = event.target.closest("[data-variable]");
    if (!control || event.ctrlKey || event.metaKey || event.altKey) return;
    const { i, k } = controlOf(control);
    const act = {
      Enter: () => press(session, i, k, event.shiftKey),
      " ": () => press(session, i, k, event.shiftKey),
      Escape: () => session.evidence[i] && session.observe(i, null),
      Delete: () => session.evidence[i] && session.observe(i, null),
      Backspace: () => session.evidence[i] && session.observe(i, null),
      "+": () => nudge(session, i, k, NUDGE),
      "=": () => nudge(session, i, k, NUDGE),
      "-": () => nudge(session, i, k, -NUDGE),
      q: () => session.choose(i),
    }[event.key];
    if (act) act();
    else {
      const next = neighbours(event.key, control, i);
      if (!next) return;
      focusOn(host, next);
    }
    event.preventDefault();
    event.stopPropagation();
  });
  host.addEventListener("focusin", (event) => {
    const control = event.target.closest("[data-variable]");
    if (control) rove(control);
  });
}

// With Shift, what a click does not do: it sets a state, or observes one if clicks set.
function press(session, i, k, shift) {
  if (k < 0) session.choose(i);
  else session.toggle(i, k, session.setting !== shift);
}

function nudge(session, i, k, step) {
  if (k < 0) return;
  const count = session.model.variables[i].states.length;
  session.share(i, k, Math.min(Math.max(rounded(shares(session.evidence[i], count)[k] + step), 0), 1));
}

// One control of a box or card is reached by Tab: the one last used.
function rove(control) {
  for (const other of controlsBeside(control)) other.setAttribute("tabindex", other === control ? 0 : -1);
}

function controlsBeside(control) {
  return [...control.closest("[data-box], [data-card], .query").querySelectorAll("[data-variable]")];
}

function focusOn(host, control) {
  control.focus({ preventScroll: host.id === "map" });
}

// The control that an arrow key leads to: within the box, or to the next box that way.
function neighbourOnMap(map) {
  const { boxes } = map.model.layout;
  const order = readingOrder(boxes);
  const controls = (i) => [map.parts[i].title, ...map.parts[i].shown.map((k) => map.parts[i].rows[k].control)];
  return (key, control, i) => {
    const own = controls(i);
    const at = own.indexOf(control);
    if (key === "Home") return own[0];
    if (key === "End") return own.at(-1);
    if (key === "ArrowDown" && at + 1 < own.length) return own[at + 1];
    if (key === "ArrowUp" && at > 0) return own[at - 1];
    if (key === "ArrowDown" || key === "ArrowUp") {
      const next = nearestRow(boxes, i, key === "ArrowDown" ? 1 : -1);
      return next === null ? null : key === "ArrowDown" ? controls(next)[0] : controls(next).at(-1);
    }
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    const next = step && order[order.indexOf(i) + step];
    return next === undefined || !step ? null : controls(next)[Math.min(at, controls(next).length - 1)];
  };
}

// The box above or below that is nearest.
function nearestRow(boxes, i, direction) {
  const middle = ([x, , w]) => x + w / 2;
  let [best, least] = [null, Infinity];
  boxes.forEach((box, k) => {
    const down = direction * (box[1] - boxes[i][1]);
    const distance = 3 * down + Math.abs(middle(box) - middle(boxes[i]));
    if (down > 0 && distance < least) [best, least] = [k, distance];
  });
  return best;
}

function neighbourInList(key, control) {
  const own = controlsBeside(control).filter((one) => one.offsetParent);
  const all = [...control.closest(".cards, .query").querySelectorAll("[data-variable]")].filter(
    (one) => one.offsetParent,
  );
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[key];
  if (key === "Home") return own[0];
  if (key === "End") return own.at(-1);
  return step ? all[all.indexOf(control) + step] : null;
}
