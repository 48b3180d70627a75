// The bar above the population graph: how sure, how large, how often.

// A slider over a few values, which says in words where it stands.
class StepSlider {
  constructor({ id, label, steps, words, hint, change }) {
    Object.assign(this, { steps, words });
    this.range = element("input", { type: "range", id, min: 0, max: steps.length - 1, step: 1, "aria-label": label, title: hint });
    this.shown = element("output", { for: id, id: `${id}-shown` });
    this.note = element("span", { class: "field-note" });
    this.box = element("div", { class: "field steps" },
      element("div", { class: "field-head", title: hint }, element("label", { for: id, text: label }), element("span", { class: "with-unit" }, this.shown)), this.range, this.note);
    this.range.addEventListener("input", () => change(steps[Number(this.range.value)]));
  }

  show(value) {
    this.range.value = this.steps.indexOf(value);
    this.shown.textContent = this.words(value);
    this.range.setAttribute("aria-valuetext", this.words(value));
  }
}

// Steps from a first value on, up to the largest that says something.
function stepsFrom(first, most, digits) {
  const steps = [first];
  for (let size = 1; size < most; size *= 10) {
    steps.push(...digits.map((digit) => digit * size).filter((step) => step > first && step < most));
  }
  return steps;
}

const Q_STEPS = [1e-12, 1e-9, 1e-6, 1e-5, 1e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1];

function checkbox(id, text, title, change) {
  const box = element("input", { type: "checkbox", id });
  box.addEventListener("change", () => change(box.checked));
  return element("label", { class: "check", title }, box, element("span", { text }));
}

// Which of two questions are looked at, in both views.
function questionField(id, change) {
  const select = element("select", { id, "aria-label": "Question", title: "whether: does the effect happen, had another event stood there. how: how does its step turn out, had the step of the cause turned out otherwise." },
    element("option", { value: "both", text: "whether and how" }), element("option", { value: "whether", text: "whether" }), element("option", { value: "how", text: "how" }));
  select.addEventListener("change", () => change(select.value));
  return { select, box: element("div", { class: "field" }, element("div", { class: "field-head" }, element("span", { text: "Question" })), element("div", { class: "inputs" }, select)) };
}

// Filters by evidence: each slider with what it changes.
function evidenceSliders() {
  const { fdr, least_ratio: least } = population.decision;
  const steps = [...new Set([...Q_STEPS, fdr])].sort((a, b) => a - b);
  const q = new StepSlider({ id: "q", label: "q-value at most", steps, words: (value) => (value >= 1 ? "all" : tail(value)), change: (value) => changePopulation({ q: value }),
    hint: "Of the pairs whose q-value is at most this, no larger a share is expected to be false." });
  const most = population.edges.reduce((best, edge) => Math.max(best, edge.untestable ? 0 : edge.ratio), 2);
  const ratio = new StepSlider({ id: "least-ratio", label: "Ratio above", steps: stepsFrom(least, Math.min(most, 1000), [1, 1.5, 2, 3, 5, 7]), words: (value) => `${significant(value)} times`,
    change: (value) => changePopulation({ leastRatio: value }), hint: "How many times as likely the cause makes the effect." });
  ratio.note.textContent = `q-values are for a ratio above ${significant(least)}; a larger one here filters what is shown, in addition.`;
  listen("population", () => {
    q.show(state.q);
    ratio.show(state.leastRatio);
    q.note.textContent = state.q >= 1 ? "No error rate holds for what is drawn." : `At most ${percent(state.q)} of these are expected to be false.`;
  });
  return [q.box, ratio.box];
}

function scoreSlider() {
  const slider = new LogSlider({ id: "cut", label: population.scored ? "Least score" : "Least sequences", unit: population.scored ? "" : "sequences",
    change: (cut) => changePopulation({ cut: cut === null ? population.cut : cut }) });
  const ranks = population.edges.filter((edge) => !edge.untestable).map((edge) => edge.rank);
  slider.scale(ranks, 0, ranks.reduce((a, b) => Math.max(a, b), 0));
  listen("population", () => {
    slider.show(state.cut, state.cut !== population.cut);
    slider.note.textContent = population.scored ? "No p-values here: a bound of the effect size decides." : "";
  });
  return slider.box;
}

function populationControls() {
  const parts = population.evident ? evidenceSliders() : [scoreSlider()];
  if (population.scored) {
    const most = population.edges.reduce((best, edge) => Math.max(best, edge.sequences), 1);
    const sequences = new StepSlider({ id: "least-sequences", label: "Sequences at least", steps: stepsFrom(population.least, most, [1, 2, 3, 5, 7]), words: count,
      change: (leastSequences) => changePopulation({ leastSequences }), hint: "Sequences with a place that could be tested." });
    listen("population", () => sequences.show(state.leastSequences));
    parts.push(sequences.box);
  }
  if (population.asksHow) {
    const question = questionField("population-question", (value) => changePopulation({ question: value }));
    listen("population", () => { question.select.value = state.question; });
    parts.push(question.box);
  }
  const note = element("span", { class: "field-note", id: "population-drawn" });
  const has = (wanted) => population.edges.some(wanted);
  parts.push(element("div", { class: "field" }, element("div", { class: "field-head" }, element("span", { text: "Also show" })), element("div", { class: "checks" },
    checkbox("show-inhibits", "inhibiting", "Pairs whose cause makes the effect less likely; dashed", (inhibits) => changePopulation({ inhibits })),
    has((edge) => edge.untestable) && checkbox("show-untestable", "always so", `In the table: pairs that cannot be tested. ${ALWAYS}`, (untestable) => changePopulation({ untestable })),
    has((edge) => edge.own) && checkbox("show-own", "self-pairs", "A type and its own next occurrence: tested apart", (own) => changePopulation({ own }))), note));
  const search = element("input", { type: "search", id: "population-search", placeholder: "Event name", "aria-label": "Search event types", autocomplete: "off" });
  search.addEventListener("input", () => changeGraph({ query: search.value }));
  parts.push(element("div", { class: "field" },
    element("div", { class: "field-head" }, element("span", { text: "Search" })), element("div", { class: "inputs" }, search, element("kbd", { text: "/" }))));
  byId("population-controls").append(...parts);
  listen("population", () => {
    const edges = populationEdges();
    const against = edges.filter((edge) => edge.inhibits).length;
    note.textContent = `${plural(edges.length, "pair")} drawn${against > 0 ? `, ${count(against)} inhibiting` : ""}`;
  });
  listen("graph", () => {
    if (document.activeElement !== search) search.value = state.query;
  });
}
