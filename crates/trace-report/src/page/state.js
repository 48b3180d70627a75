// What is looked at. Parts of the page listen; nothing else holds state of its own that others need.

const state = {
  index: 0,
  threshold: null, // null: what the run kept
  lags: [1, Infinity],
  least: 0, // hides weaker edges without changing the graph
  effect: "all", // all, promoting, despite
  question: "both", // whether, how, both
  query: "",
  selection: null, // {event}, {pair}, {type} or {types: [cause, effect]}
  cut: population ? population.cut : 0,
  q: population && population.evident ? population.decision.fdr : 1, // 1: all
  leastRatio: population && population.evident ? population.decision.least_ratio : 0,
  leastSequences: population ? population.least : 0,
  inhibits: false,
  untestable: false, // in the table alone
  own: false, // pairs of a type with itself
  populationSelection: null, // {type} or {edge}
};

const listeners = { graph: [], selection: [], population: [] };

function listen(topic, act) {
  listeners[topic].push(act);
}

let current = null; // what follows from the state: sequence, graph, shown pairs

function derive() {
  const sequence = sequenceAt(state.index);
  const graph = new Graph(sequence, sequence.kept(state.threshold));
  const words = state.query.trim().toLowerCase();
  const matches = new Set();
  if (words) {
    sequence.events.forEach((type, position) => {
      if (page.names[type].toLowerCase().includes(words)) matches.add(position);
    });
  }
  const shown = graph.pairs.filter((pair) => sequence.lag[pair] >= state.lags[0]
    && sequence.lag[pair] <= state.lags[1]
    && sequence.strength[pair] >= state.least
    && asked((sequence.flags[pair] & HOW) > 0)
    && (state.effect === "all" || sequence.promotes(pair) === (state.effect === "promoting")));
  current = { sequence, graph, shown, shownGraph: new Graph(sequence, shown), matches, lit: null };
}

// Which edges and events a selection lights up; null when nothing is selected.
function light() {
  const { selection } = state;
  const { sequence, graph } = current;
  current.lit = null;
  if (!selection) return;
  const lit = { pairs: new Set(), chain: new Set(), events: new Set(), roots: [] };
  const take = (pair) => {
    lit.pairs.add(pair);
    lit.events.add(sequence.cause[pair]);
    lit.events.add(sequence.effect[pair]);
  };
  if (selection.event !== undefined) {
    lit.events.add(selection.event);
    graph.causesOf(selection.event).forEach(take);
    graph.effectsOf(selection.event).forEach(take);
    lit.roots = rootCauses(graph, selection.event);
    for (const chain of lit.roots) {
      for (const pair of chain.pairs) {
        take(pair);
        lit.chain.add(pair);
      }
    }
  } else if (selection.pair !== undefined) {
    take(selection.pair);
  } else if (selection.types) {
    const [cause, effect] = selection.types;
    for (const pair of graph.pairs) {
      const ends = [sequence.events[sequence.cause[pair]], sequence.events[sequence.effect[pair]]];
      if (ends[0] === cause && ends[1] === effect) take(pair);
    }
  } else {
    sequence.events.forEach((type, position) => {
      if (type !== selection.type) return;
      lit.events.add(position);
      graph.causesOf(position).forEach(take);
      graph.effectsOf(position).forEach(take);
    });
  }
  current.lit = lit;
}

const announce = (topic) => listeners[topic].forEach((act) => act());

function changeGraph(changes) {
  const other = changes.index !== undefined && changes.index !== state.index;
  Object.assign(state, changes);
  if (other) {
    state.selection = null;
    const before = current && current.sequence.settings.threshold;
    const stored = sequenceAt(state.index);
    if (before !== stored.settings.threshold || (!stored.allPairs && state.threshold < stored.settings.threshold)) state.threshold = null;
  }
  derive();
  if (state.selection && state.selection.pair !== undefined && !current.graph.pairs.includes(state.selection.pair)) state.selection = null;
  light();
  announce("graph");
  announce("selection");
}

function select(selection) {
  state.selection = selection;
  light();
  announce("selection");
}

function selectPopulation(selection) {
  state.populationSelection = selection;
  announce("population");
}

// Filters of the population graph. The version says that what is drawn may be another.
let populationVersion = 0;
function changePopulation(changes) {
  Object.assign(state, changes);
  populationVersion += 1;
  const chosen = state.populationSelection;
  if (chosen && chosen.edge && !populationRows().includes(chosen.edge)) state.populationSelection = null;
  announce("population");
}

// Whether the question of a pair is one that is looked at.
function asked(how) {
  return state.question === "both" || (state.question === "how") === how;
}

// Whether a pair passes the filters, its question and its being a self-pair aside.
function passes(edge) {
  if (edge.required) return true;
  if (edge.untestable || (edge.inhibits && !state.inhibits) || edge.sequences < state.leastSequences) return false;
  if (!population.evident) return edge.rank > state.cut;
  const ratio = edge.inhibits ? 1 / edge.ratio : edge.ratio;
  return ratio > state.leastRatio && (state.q >= 1 || (edge.q ?? 1) <= state.q);
}

// The edges of the population graph at the current filters, surest first.
function populationEdges() {
  if (!population) return [];
  return population.edges.filter((edge) => asked(edge.how) && (state.own || !edge.own) && passes(edge)).sort((a, b) => b.rank - a.rank);
}

// What the table lists: the edges, and on request what cannot be tested.
function populationRows() {
  const edges = populationEdges();
  if (!population || !state.untestable) return edges;
  return edges.concat(population.edges.filter((edge) => edge.untestable && !edge.required && asked(edge.how) && (state.own || !edge.own)));
}
