// Putting the parts together.

const VIEWS = ["population", "sequence", "about"].filter((view) => (view !== "population" || population) && (view !== "sequence" || page.sequences.length > 0));
let timeline = null;

function showView(view) {
  for (const name of ["population", "sequence", "about"]) {
    const tab = byId(`tab-${name}`);
    tab.hidden = !VIEWS.includes(name);
    tab.setAttribute("aria-selected", String(name === view));
    tab.tabIndex = name === view ? 0 : -1;
    byId(`view-${name}`).hidden = name !== view;
  }
  document.body.dataset.view = view;
  byId("fitness").hidden = view === "about";
}

// Opens one sequence with something chosen in it.
function openSequence(index, selection) {
  showView("sequence");
  changeGraph({ index });
  select(selection);
  window.scrollTo({ top: 0, behavior: calm.matches ? "auto" : "smooth" });
}

function themes() {
  const names = ["system", "light", "dark"];
  const button = byId("theme");
  let place = 0;
  button.addEventListener("click", () => {
    place = (place + 1) % names.length;
    if (place === 0) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = names[place];
    button.textContent = `Theme: ${names[place]}`;
  });
}

// The explanation stands below the bar of controls, however many lines that has.
function measureBars() {
  const bars = [byId("controls"), byId("population-controls")];
  const watch = new ResizeObserver(() => {
    const height = Math.max(...bars.map((bar) => bar.offsetHeight));
    document.documentElement.style.setProperty("--bar", `${height}px`);
  });
  bars.forEach((bar) => watch.observe(bar));
}

function legend() {
  const sample = (kind) => shape("svg", { viewBox: "0 0 36 14", width: 36, height: 14, "aria-hidden": "true" },
    shape("path", { class: `arc ${kind}`, d: "M3 13C3 -2 33 -2 33 13", "stroke-width": 2.2 }));
  const dot = (kind) => shape("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": "true" }, shape("g", { class: `node ${kind}` }, shape("circle", { r: 4.5 })));
  const entry = (picture, text) => element("li", {}, picture, element("span", { text }));
  byId("legend").append(
    entry(sample("promoting"), "promotes: less likely without it"),
    entry(sample("despite"), "inhibits: happened in spite of it"),
    entry(dot("root"), "a chain begins here"),
    entry(dot("alone"), "no edges"),
    element("li", { class: "note", text: "Wider and darker is stronger. Time runs to the right." }));
}

function populationLegend() {
  const sample = (kind) => shape("svg", { viewBox: "0 0 36 14", width: 36, height: 14, "aria-hidden": "true" },
    shape("path", { class: `link ${kind}`, d: "M2 7H34", "stroke-width": 2.2 }));
  const entry = (picture, text) => element("li", {}, picture, element("span", { text }));
  byId("population-legend").append(
    entry(sample("promoting"), "promotes"), entry(sample("despite"), "inhibits, on request"),
    element("li", { class: "note", text: `Wider and darker is stronger.${population.asksHow ? " Edges marked how are about outcomes of steps." : ""}` }));
}

function keys() {
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/u.test(event.target.tagName) && event.target.type !== "range";
    const view = document.body.dataset.view;
    if (event.key === "Escape") {
      if (view === "population" ? state.populationSelection : state.selection) view === "population" ? selectPopulation(null) : select(null);
      else if (state.query) changeGraph({ query: "" });
      if (typing) {
        event.target.blur();
        if (event.target.type === "search") event.target.value = state.query;
      }
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      if (view === "about") showView("sequence");
      byId(document.body.dataset.view === "population" ? "population-search" : "search").focus();
      return;
    }
    if (view !== "sequence" || event.target.type === "range" || event.target.getAttribute("role") === "tab") return;
    if (event.key === "[" || event.key === "]") {
      const index = state.index + (event.key === "]" ? 1 : -1);
      if (index >= 0 && index < page.sequences.length) changeGraph({ index });
      return;
    }
    if (event.key === "+" || event.key === "=") return void timeline.zoom(1.25);
    if (event.key === "-") return void timeline.zoom(0.8);
    moveChoice(event);
  });
}

// Arrow keys: along the sequence, and along its strongest edges.
function moveChoice(event) {
  const { sequence, graph } = current;
  const chosen = state.selection && state.selection.event;
  const last = sequence.events.length - 1;
  let next = null;
  if (event.key === "ArrowRight") next = chosen === null || chosen === undefined ? 0 : Math.min(chosen + 1, last);
  else if (event.key === "ArrowLeft") next = chosen === null || chosen === undefined ? last : Math.max(chosen - 1, 0);
  else if (event.key === "Home") next = 0;
  else if (event.key === "End") next = last;
  else if (event.key === "ArrowUp" && chosen !== null && chosen !== undefined && graph.causesOf(chosen).length > 0) next = sequence.cause[graph.causesOf(chosen)[0]];
  else if (event.key === "ArrowDown" && chosen !== null && chosen !== undefined && graph.effectsOf(chosen).length > 0) next = sequence.effect[graph.effectsOf(chosen)[0]];
  if (next === null) return;
  event.preventDefault();
  select({ event: next });
}

function tabs() {
  VIEWS.forEach((view, place) => {
    const tab = byId(`tab-${view}`);
    tab.addEventListener("click", () => showView(view));
    tab.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      const next = VIEWS[(place + move + VIEWS.length) % VIEWS.length];
      showView(next);
      byId(`tab-${next}`).focus();
    });
  });
}

themes();
tabs();
showIntro();
showAbout();
measureBars();
keys();
if (page.sequences.length > 0) {
  legend();
  sequenceControls();
  timeline = new Timeline(byId("timeline"));
  byId("timeline-tools").append(
    toolButton("−", "Zoom out", () => timeline.zoom(0.8)), toolButton("+", "Zoom in", () => timeline.zoom(1.25)),
    toolButton("⤢", "Show the whole sequence", () => timeline.fitAll()));
  sequenceGraph();
  sequenceTable();
  listen("selection", showPanel);
  listen("graph", () => showFitness(current.sequence.model));
}
if (population) {
  showClaims();
  populationLegend();
  populationControls();
  populationGraph();
  populationTable();
  listen("population", showPopulationPanel);
}
showView(VIEWS[0]);
if (page.sequences.length > 0) changeGraph({});
if (population) changePopulation({});
