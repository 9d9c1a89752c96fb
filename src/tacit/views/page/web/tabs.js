"use strict";
// The panels beside the map: one is shown, and only that one computes.

class Tabs {
  constructor(session, panels) {
    this.session = session;
    this.panels = panels;
    this.bar = document.getElementById("tabs");
    panels.forEach((panel) => this.add(panel));
    this.bar.addEventListener("keydown", (event) => this.key(event));
    this.slowly = later(() => this.refresh(), 120);
    this.open(panels[0]);
  }

  add(panel) {
    const attributes = { role: "tab", id: `tab-${panel.id}`, "aria-controls": `panel-${panel.id}` };
    panel.tab = button(panel.label, () => this.open(panel), attributes);
    panel.host = element("section", {
      role: "tabpanel",
      id: `panel-${panel.id}`,
      class: `panel panel-${panel.id}`,
      "aria-labelledby": `tab-${panel.id}`,
      tabindex: 0,
      hidden: true,
    });
    this.bar.append(panel.tab);
    document.getElementById("panels").append(panel.host);
    panel.make(panel.host);
  }

  open(panel) {
    this.current = panel;
    for (const one of this.panels) {
      one.host.hidden = one !== panel;
      one.tab.setAttribute("aria-selected", one === panel);
      one.tab.tabIndex = one === panel ? 0 : -1;
    }
    panel.tab.scrollIntoView({ block: "nearest", inline: "nearest" }); // where there is no room for all tabs
    this.refresh();
  }

  key({ key }) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const next = this.panels[(this.panels.indexOf(this.current) + step + this.panels.length) % this.panels.length];
    this.open(next);
    next.tab.focus();
  }

  // Light panels follow every move; those that ask the engine many questions wait for a pause.
  update() {
    if (this.current.light) this.refresh();
    else this.slowly();
  }

  refresh() {
    if (this.session.answer) this.current.update();
  }
}

// The latest of several questions of a panel that may overlap: `f(answer)` is called for that one only.
function latest(panel) {
  let newest = 0;
  return async (question, f) => {
    const turn = ++newest;
    panel.host.setAttribute("aria-busy", question instanceof Promise);
    try {
      const answer = await question;
      if (turn === newest) f(answer);
    } catch (error) {
      if (turn === newest) panel.session.tell({ error });
    }
    if (turn === newest) panel.host.setAttribute("aria-busy", "false");
  };
}

function chooser(label, options, chosen, change) {
  const select = element("select", { "aria-label": label, change: () => change(Number(select.value)) });
  options.forEach(([value, text]) => select.append(element("option", { value, selected: value === chosen }, text)));
  return select;
}

function stateChooser({ label, states, order }, chosen, change) {
  return chooser(`State of ${label}`, order.map((k) => [k, states[k]]), chosen, change);
}

function namesOf(model, keep = () => true) {
  return model.variables.map(({ label }, i) => [i, label]).filter(([i]) => keep(i));
}

// A name in a panel that leads to its box.
function link(session, i, text = session.model.variables[i].label) {
  return button(text, () => session.tell({ go: i }), { class: "link" });
}
