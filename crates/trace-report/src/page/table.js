// Tables that sort on every column.

const ROWS_AT_ONCE = 100;

class SortedTable {
  // columns: {label, title, key(item), cell(item) -> node or text, number}; row(item) -> attributes of the row.
  // group(item): rows of a smaller group come first, whatever they are sorted by.
  constructor(place, { columns, row, label, sortBy, group = () => 0 }) {
    Object.assign(this, { columns, row, group });
    this.sort = { column: sortBy, down: true };
    this.most = ROWS_AT_ONCE;
    this.heads = columns.map((column, index) => {
      const button = element("button", { type: "button", text: column.label, title: column.title, onclick: () => this.sortOn(index) });
      return element("th", { scope: "col", class: column.number ? "number" : "" }, button);
    });
    this.body = element("tbody");
    this.more = element("button", { type: "button", class: "more", hidden: true, onclick: () => { this.most += 400; this.draw(); } });
    const box = element("div", { class: "table-box", tabindex: 0, role: "region", "aria-label": `${label}. Up and down move between rows, Enter chooses.` },
      element("table", {}, element("thead", {}, element("tr", {}, ...this.heads)), this.body));
    box.addEventListener("keydown", (event) => this.key(event));
    place.append(box, this.more);
    this.items = [];
  }

  // Up and down move between rows, Enter chooses one.
  key(event) {
    const rows = [...this.body.children];
    const at = rows.indexOf(document.activeElement);
    if (event.key === "Enter" && at >= 0) rows[at].click();
    else if (event.key === "ArrowDown" && at + 1 < rows.length) rows[at + 1].focus();
    else if (event.key === "ArrowUp" && at > 0) rows[at - 1].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  sortOn(index) {
    this.sort = { column: index, down: this.sort.column === index ? !this.sort.down : Boolean(this.columns[index].number) };
    this.draw();
  }

  show(items) {
    this.items = items;
    this.most = ROWS_AT_ONCE;
    this.draw();
  }

  draw() {
    const { key } = this.columns[this.sort.column];
    const keyed = this.items.map((item, place) => ({ item, place, key: key(item), group: this.group(item) }));
    const compare = (a, b) => (typeof a.key === "string" ? a.key.localeCompare(b.key, "en", { numeric: true }) : a.key - b.key);
    const sign = this.sort.down ? -1 : 1;
    keyed.sort((a, b) => a.group - b.group || sign * compare(a, b) || a.place - b.place);
    this.heads.forEach((head, index) => {
      if (index === this.sort.column) head.setAttribute("aria-sort", this.sort.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.body.replaceChildren(...keyed.slice(0, this.most).map(({ item, group }, index, all) => {
      const cells = this.columns.map((column) => element("td", { class: column.number ? "number" : "" }, column.cell(item)));
      const row = element("tr", this.row(item), ...cells);
      row.classList.toggle("group-start", index > 0 && all[index - 1].group !== group);
      return row;
    }));
    const left = this.items.length - this.most;
    this.more.hidden = left <= 0;
    this.more.textContent = `Show ${count(Math.min(left, 400))} more of ${count(left)}`;
  }
}

function strengthCell(strength, error, maximum, kind) {
  const bar = element("span", { class: `cell-bar ${kind}` });
  bar.style.width = `${Math.min(100 * Math.sqrt(Math.max(strength, 0) / maximum), 100)}%`;
  return element("span", { class: "strength-cell" }, element("span", { class: "cell-track" }, bar),
    element("span", { text: nats(strength), title: error === null ? null : `± ${nats(error)}` }));
}

function sequenceTable() {
  const at = () => current.sequence;
  const event = (position) => element("span", { class: "event-cell" }, element("span", { class: "place", text: position }),
    element("span", { class: "cell-name", title: at().nameAt(position).slice(0, 400), text: label(at().events[position], 40) }));
  const overlapKey = (pair) => (at().overlap && !Number.isNaN(at().overlap[pair]) ? at().overlap[pair] : -1);
  let maximum = 1;
  const table = new SortedTable(byId("table"), {
    label: "Edges of this sequence",
    sortBy: 3,
    columns: [
      { label: "Cause", key: (pair) => at().nameAt(at().cause[pair]), cell: (pair) => event(at().cause[pair]) },
      { label: "Effect", key: (pair) => at().nameAt(at().effect[pair]), cell: (pair) => event(at().effect[pair]) },
      { label: "Lag", number: true, title: "Events from cause to effect", key: (pair) => at().lag[pair], cell: (pair) => `${at().lag[pair]}` },
      { label: "Strength", number: true, title: unit() ? `Mean divergence in ${unit()}` : "Score of the method", key: (pair) => at().strength[pair],
        cell: (pair) => strengthCell(at().strength[pair], at().error[pair], maximum, at().promotes(pair) ? "promoting" : "despite") },
      { label: "± error", number: true, title: "Standard error of the strength as the draws show it", key: (pair) => at().error[pair], cell: (pair) => nats(at().error[pair]) },
      { label: "As it was", number: true, title: "Probability of the effect", key: (pair) => at().probability[pair], cell: (pair) => percent(at().probability[pair]) },
      { label: "Replaced", number: true, title: "Its mean probability with the cause replaced", key: (pair) => at().replaced[pair], cell: (pair) => percent(at().replaced[pair]) },
      { label: "Ratio", number: true, title: "How many times as likely the cause made the effect; below 1: it happened in spite of the cause", key: (pair) => at().ratio(pair), cell: (pair) => times(at().ratio(pair)) },
      { label: "Room", number: true, title: "Overlap: how much room there was for anything else", key: (pair) => overlapKey(pair), cell: (pair) => overlapWords(at(), pair) },
      { label: "Draws", number: true, title: "Replacements tried", key: (pair) => at().particles[pair], cell: (pair) => count(at().particles[pair]) },
      { label: "Marks", title: "tied: both events carry the same time; required: by prior knowledge; how: about outcomes of steps", key: (pair) => -(at().flags[pair] & (TIED | REQUIRED | HOW)), cell: (pair) => marks(pair) || "" },
    ],
    row: (pair) => ({ "data-pair": pair, class: hovered === pair ? "hover" : "", tabindex: -1 }),
  });
  const lightRows = () => {
    const { lit } = current;
    for (const row of table.body.children) row.classList.toggle("lit", lit !== null && lit.pairs.has(Number(row.dataset.pair)));
  };
  const fill = () => {
    const { shown, matches, sequence, lit } = current;
    let pairs = state.query.trim() ? shown.filter((pair) => matches.has(sequence.cause[pair]) || matches.has(sequence.effect[pair])) : shown;
    const narrowed = lit !== null;
    if (narrowed) pairs = [...pairs].sort((a, b) => lit.pairs.has(b) - lit.pairs.has(a));
    maximum = pairs.reduce((most, pair) => Math.max(most, sequence.strength[pair]), 0.5);
    table.show(pairs);
    byId("table-note").textContent = pairs.length === current.graph.pairs.length ? plural(pairs.length, "edge") : `${count(pairs.length)} of ${plural(current.graph.pairs.length, "edge")}`;
    lightRows();
  };
  table.body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row) select({ pair: Number(row.dataset.pair) });
  });
  table.body.addEventListener("pointerover", (event) => {
    const row = event.target.closest("tr");
    hoverPair(row ? Number(row.dataset.pair) : null);
  });
  table.body.addEventListener("pointerleave", () => hoverPair(null));
  listen("graph", fill);
  listen("selection", lightRows);
  return table;
}
