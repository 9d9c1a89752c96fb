"use strict";
// Find a variable by its name: Enter goes there. On narrow screens the cards are filtered as one types.

const MANY_FOUND = 8;

class Search {
  constructor(session, go, filter) {
    Object.assign(this, { session, go, filter, found: [], at: 0 });
    this.input = document.getElementById("search");
    this.list = document.getElementById("found");
    this.input.addEventListener("input", () => this.look());
    this.input.addEventListener("focus", () => this.input.value && this.look());
    this.input.addEventListener("blur", () => this.close());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the field keeps the focus
      const item = event.target.closest("li[data-found]");
      if (item) this.take(Number(item.dataset.found));
    });
  }

  // Those that begin with the text first, then those that contain it, also in their states.
  matches(text) {
    const wanted = text.trim().toLowerCase();
    const rank = ({ name, label, states }) => {
      const names = [label.toLowerCase(), name.toLowerCase()];
      if (names.includes(wanted)) return 0;
      if (names.some((one) => one.startsWith(wanted))) return 1;
      if (names.some((one) => one.includes(wanted))) return 2;
      return states.some((state) => state.toLowerCase().includes(wanted)) ? 3 : 4;
    };
    const ranked = this.session.model.variables.map((variable, i) => [rank(variable), i]);
    return ranked
      .filter(([place]) => place < 4)
      .sort((a, b) => a[0] - b[0] || a[1] - b[1])
      .map(([, i]) => i);
  }

  look() {
    const text = this.input.value;
    const all = this.matches(text);
    this.filter(text.trim() ? new Set(all) : null);
    this.found = text.trim() ? all.slice(0, MANY_FOUND) : [];
    this.at = 0;
    this.show(text.trim() !== "", all.length);
  }

  show(open, count) {
    const { variables } = this.session.model;
    const items = this.found.map((i, k) =>
      element(
        "li",
        { role: "option", id: `found-${k}`, "data-found": k, "aria-selected": k === this.at ? "true" : "false" },
        variables[i].label,
        element("small", {}, variables[i].label === variables[i].name ? about(variables[i]) : variables[i].name),
      ),
    );
    const note = (text) => element("li", { role: "option", "aria-disabled": "true", class: "quiet" }, text);
    if (open && !items.length) items.push(note("No variable has such a name"));
    if (count > items.length) items.push(note(`… and ${count - items.length} more`));
    this.list.replaceChildren(...items);
    this.list.hidden = !open;
    this.input.setAttribute("aria-expanded", open);
    this.point();
  }

  point() {
    this.list.querySelectorAll("[data-found]").forEach((item, k) => item.setAttribute("aria-selected", k === this.at));
    if (this.found.length && !this.list.hidden) this.input.setAttribute("aria-activedescendant", `found-${this.at}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.found.length) {
      this.at = (this.at + step + this.found.length) % this.found.length;
      this.point();
    } else if (event.key === "Enter" && this.found.length) this.take(this.at);
    else if (event.key === "Escape") {
      this.input.value = "";
      this.look();
      this.close();
      this.input.blur();
    } else return;
    event.preventDefault();
  }

  take(k) {
    const i = this.found[k];
    this.input.value = "";
    this.look();
    this.close();
    this.go(i);
  }

  close() {
    this.show(false, 0);
  }
}

// What a variable can be, in few words.
function about({ states, density }) {
  return density ? "a number" : states.join(", ");
}
