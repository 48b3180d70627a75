// The bars above the graphs: which sequence, which threshold, which edges.

// A slider over positive numbers on a logarithmic scale, with the distribution of values behind it.
class LogSlider {
  constructor({ id, label, unit, change }) {
    this.change = change;
    this.range = element("input", { type: "range", id, min: 0, max: 1000, step: 1, "aria-label": label });
    this.number = element("input", { type: "number", id: `${id}-number`, step: "any", min: 0, "aria-label": unit ? `${label} in ${unit}` : label });
    this.reset = element("button", { type: "button", class: "link", text: "reset", hidden: true, onclick: () => change(null) });
    this.bars = shape("svg", { class: "histogram", viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.note = element("span", { class: "field-note" });
    this.box = element("div", { class: "field slider" },
      element("div", { class: "field-head" }, element("label", { for: id, text: label }), this.reset,
        element("span", { class: "with-unit" }, this.number, element("span", { text: unit }))),
      element("div", { class: "slider-track" }, this.bars, this.range), this.note);
    this.range.addEventListener("input", () => this.change(this.valueAt(Number(this.range.value))));
    this.number.addEventListener("change", () => {
      const typed = Number(this.number.value);
      if (Number.isFinite(typed) && this.number.value !== "") this.change(Math.max(typed, this.low));
      else this.show(this.value, this.moved);
    });
  }

  // The values behind, and where the slider starts and ends.
  scale(values, low, high) {
    this.low = low;
    this.from = Math.log(Math.max(low, 1e-4));
    this.to = Math.max(Math.log(Math.max(high, 1e-4)), this.from + 0.1);
    const bins = new Array(50).fill(0);
    for (const value of values) {
      const share = (Math.log(Math.max(value, 1e-9)) - this.from) / (this.to - this.from);
      if (share >= 0 && share <= 1) bins[Math.min(Math.floor(share * 50), 49)] += 1;
    }
    const tallest = Math.max(...bins, 1);
    const path = bins.map((bin, place) => {
      const height = bin === 0 ? 0 : 2 + 18 * Math.sqrt(bin / tallest);
      return `M${place * 2 + 0.2} 20V${(20 - height).toFixed(1)}H${place * 2 + 1.8}V20Z`;
    }).join("");
    this.bars.replaceChildren(shape("path", { d: path }));
  }

  // The number that is shown is the number that decides.
  valueAt(place) {
    if (place === 0) return this.low;
    return Number(Math.exp(this.from + (place / 1000) * (this.to - this.from)).toPrecision(3));
  }

  show(value, moved) {
    this.value = value;
    this.moved = moved;
    const share = (Math.log(Math.max(value, 1e-9)) - this.from) / (this.to - this.from);
    const place = Math.round(Math.min(Math.max(share, 0), 1) * 1000);
    if (this.valueAt(Number(this.range.value)) !== value) this.range.value = place;
    this.range.setAttribute("aria-valuetext", `${significant(value)}`);
    this.number.value = significant(value, 6);
    this.reset.hidden = !moved;
  }
}

// A picker with a search field; only the entries in view are made.
class Picker {
  constructor({ label, entries, describe, choose }) {
    this.entries = entries;
    this.describe = describe;
    this.choose = choose;
    this.button = element("button", { type: "button", class: "picker-button", "aria-haspopup": "listbox", "aria-expanded": "false", id: "picker" });
    this.search = element("input", { type: "search", placeholder: "Find a sequence", "aria-label": "Find a sequence", role: "combobox", "aria-expanded": "true", "aria-controls": "picker-list", autocomplete: "off" });
    this.list = element("ul", { role: "listbox", id: "picker-list", "aria-label": label });
    this.more = element("p", { class: "note" });
    this.popup = element("div", { class: "popup", hidden: true }, this.search, this.list, this.more);
    this.box = element("div", { class: "field picker" },
      element("div", { class: "field-head" }, element("span", { text: label })), this.button, this.popup);
    this.button.addEventListener("click", () => this.toggle(this.popup.hidden));
    this.search.addEventListener("input", () => this.fill());
    this.search.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("pointerdown", (event) => {
      if (!this.box.contains(event.target)) this.toggle(false);
    });
  }

  toggle(open) {
    if (this.popup.hidden === !open) return;
    this.popup.hidden = !open;
    this.button.setAttribute("aria-expanded", String(open));
    if (open) {
      this.search.value = "";
      this.fill();
      this.search.focus();
    }
  }

  fill() {
    const words = this.search.value.trim().toLowerCase();
    const found = this.entries.filter((entry) => entry.text.includes(words));
    this.found = found.slice(0, 60);
    this.active = 0;
    this.list.replaceChildren(...this.found.map((entry, place) => element("li", {
      role: "option", id: `option-${place}`, "aria-selected": String(place === 0),
      onclick: () => { this.toggle(false); this.button.focus(); this.choose(entry.index); },
    }, ...this.describe(entry))));
    this.more.textContent = found.length > 60 ? `${count(found.length - 60)} more; type to narrow down` : found.length === 0 ? "No such sequence" : "";
    this.search.setAttribute("aria-activedescendant", "option-0");
  }

  key(event) {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move && this.found.length > 0) {
      event.preventDefault();
      this.list.children[this.active].setAttribute("aria-selected", "false");
      this.active = (this.active + move + this.found.length) % this.found.length;
      const item = this.list.children[this.active];
      item.setAttribute("aria-selected", "true");
      item.scrollIntoView({ block: "nearest" });
      this.search.setAttribute("aria-activedescendant", item.id);
    } else if (event.key === "Enter" && this.found.length > 0) {
      this.list.children[this.active].click();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      this.toggle(false);
      this.button.focus();
    }
  }
}

function sequenceControls() {
  const entries = page.sequences.map((stored, index) => ({ index, id: stored.id, kept: stored.kept, text: stored.id.toLowerCase() }));
  const picker = new Picker({
    label: entries.length > 1 ? `Sequence, one of ${count(entries.length)}` : "Sequence",
    entries,
    describe: (entry) => [element("span", { text: shorten(entry.id, 60) }), element("span", { class: "note", text: plural(entry.kept, "edge") })],
    choose: (index) => changeGraph({ index }),
  });
  const slider = new LogSlider({ id: "threshold", label: "Threshold", unit: unit(), change: (threshold) => changeGraph({ threshold }) });

  const lag = (id, label) => element("select", { id, "aria-label": label });
  const lagFrom = lag("lag-from", "Smallest lag");
  const lagTo = lag("lag-to", "Largest lag");
  const changeLags = () => {
    const [from, to] = [Number(lagFrom.value), Number(lagTo.value)];
    changeGraph({ lags: [Math.min(from, to), Math.max(from, to)] });
  };
  lagFrom.addEventListener("change", changeLags);
  lagTo.addEventListener("change", changeLags);

  const least = element("input", { type: "number", id: "least", min: 0, step: "any", value: 0, "aria-label": `Hide edges weaker than${unit() && `, in ${unit()}`}` });
  least.addEventListener("change", () => changeGraph({ least: Math.max(Number(least.value) || 0, 0) }));
  const effect = element("select", { id: "effect", "aria-label": "Kind of edge" },
    element("option", { value: "all", text: "promoting and inhibiting" }),
    element("option", { value: "promoting", text: "promoting only" }),
    element("option", { value: "despite", text: "inhibiting only" }));
  effect.addEventListener("change", () => changeGraph({ effect: effect.value }));

  const search = element("input", { type: "search", id: "search", placeholder: "Event name", "aria-label": "Search events", autocomplete: "off" });
  const found = element("span", { class: "field-note" });
  search.addEventListener("input", () => changeGraph({ query: search.value }));
  search.addEventListener("keydown", (event) => {
    const matches = [...current.matches];
    if (event.key === "Enter" && matches.length > 0) {
      const from = state.selection && state.selection.event !== undefined ? state.selection.event : -1;
      select({ event: matches.find((position) => position > from) ?? matches[0] });
    }
  });
  const hows = (stored) => column(stored.pairs.flags).some((flags) => flags & HOW);
  const question = page.sequences.some(hows) ? questionField("question", (value) => changeGraph({ question: value })) : null;
  const field = (label, note, ...inputs) => element("div", { class: "field" },
    element("div", { class: "field-head" }, element("span", { text: label })), element("div", { class: "inputs" }, ...inputs), note);
  byId("controls").append(...[picker.box, slider.box,
    field("Lags", null, lagFrom, element("span", { text: "to" }), lagTo),
    field("Hide weaker than", null, least),
    field("Kind of edge", null, effect),
    question && question.box,
    field("Search", found, search, element("kbd", { text: "/" }))].filter(Boolean));

  let scaled = null;
  listen("graph", () => {
    const { sequence, graph, shown } = current;
    picker.button.textContent = shorten(sequence.id, 40);
    picker.button.title = sequence.id;
    if (scaled !== sequence) {
      scaled = sequence;
      let most = 0;
      sequence.strength.forEach((strength) => { most = Math.max(most, strength); });
      slider.scale(sequence.strength, sequence.allPairs ? 0 : sequence.settings.threshold, most);
      const lags = Array.from({ length: sequence.longestLag }, (_, index) => index + 1);
      const options = () => lags.map((number) => element("option", { value: number, text: number }));
      lagFrom.replaceChildren(...options());
      lagTo.replaceChildren(...options());
    }
    const moved = state.threshold !== null;
    slider.show(moved ? state.threshold : sequence.settings.threshold, moved);
    const hidden = graph.pairs.length - shown.length;
    slider.note.textContent = `${plural(graph.pairs.length, "edge")}${hidden > 0 ? `, ${count(hidden)} hidden by filters` : ""}`
      + (sequence.allPairs ? "" : ". Only kept edges are stored, so it can only rise; discover --all-pairs stores all.");
    lagFrom.value = Math.max(state.lags[0], 1);
    lagTo.value = Math.min(state.lags[1], sequence.longestLag);
    if (question) question.select.value = state.question;
    if (document.activeElement !== search) search.value = state.query;
    found.textContent = state.query.trim() ? `${plural(current.matches.size, "event")} found` : "";
  });
}
