// The data of the page, decoded when it is looked at.

const page = JSON.parse(byId("data").textContent);

const ARRAYS = { Uint8: Uint8Array, Uint16: Uint16Array, Uint32: Uint32Array, Float32: Float32Array, Float64: Float64Array };

function column([kind, text]) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new ARRAYS[kind](bytes.buffer);
}

const KEPT = 1;
const TIED = 2;
const REQUIRED = 4;

// One sequence with all pairs that its result holds.
class Sequence {
  constructor(stored) {
    this.id = stored.id;
    this.settings = page.settings[stored.settings];
    this.model = page.models[stored.model];
    this.events = column(stored.events);
    this.times = stored.times ? column(stored.times) : null;
    this.skipped = stored.skipped;
    this.excluded = stored.excluded;
    this.allPairs = stored.all_pairs;
    this.selfLoops = stored.self_loops;
    this.layout = stored.layout;
    const pairs = stored.pairs;
    this.count = pairs.count;
    this.cause = column(pairs.cause);
    this.lag = column(pairs.lag);
    this.effect = Uint32Array.from(this.cause, (cause, pair) => cause + this.lag[pair]);
    this.strength = column(pairs.strength);
    this.error = column(pairs.std_error);
    this.particles = column(pairs.particles);
    this.logRatio = column(pairs.log_ratio);
    this.probability = column(pairs.probability);
    this.replaced = column(pairs.probability_replaced);
    this.flags = column(pairs.flags);
    this.longestLag = this.lag.reduce((most, lag) => Math.max(most, lag), 1);
  }

  nameAt(position) {
    return page.names[this.events[position]];
  }

  promotes(pair) {
    return this.logRatio[pair] >= 0;
  }

  // The graph at a threshold: what the command line keeps there. Without a threshold, what the run kept.
  kept(threshold) {
    const kept = [];
    for (let pair = 0; pair < this.count; pair += 1) {
      const flags = this.flags[pair];
      const keep = threshold === null ? flags & KEPT : this.strength[pair] > threshold || flags & REQUIRED;
      if (keep && (this.allPairs || flags & KEPT)) kept.push(pair);
    }
    return kept;
  }
}

const decoded = new Map();
function sequenceAt(index) {
  if (!decoded.has(index)) decoded.set(index, new Sequence(page.sequences[index]));
  return decoded.get(index);
}

// Edges by their ends.
class Graph {
  constructor(sequence, pairs) {
    this.sequence = sequence;
    this.pairs = pairs;
    this.into = new Map();
    this.outOf = new Map();
    const add = (map, key, pair) => {
      const list = map.get(key);
      if (list) list.push(pair);
      else map.set(key, [pair]);
    };
    for (const pair of pairs) {
      add(this.into, sequence.effect[pair], pair);
      add(this.outOf, sequence.cause[pair], pair);
    }
    const strongest = (a, b) => sequence.strength[b] - sequence.strength[a] || a - b;
    for (const list of this.into.values()) list.sort(strongest);
    for (const list of this.outOf.values()) list.sort(strongest);
  }

  causesOf(position) {
    return this.into.get(position) || [];
  }

  effectsOf(position) {
    return this.outOf.get(position) || [];
  }

  // The type graph: edges gathered by the types at their ends, strongest first.
  summary() {
    const { sequence } = this;
    const gathered = new Map();
    for (const pair of this.pairs) {
      const cause = sequence.events[sequence.cause[pair]];
      const effect = sequence.events[sequence.effect[pair]];
      if (cause === effect && !sequence.selfLoops) continue;
      const key = `${cause} ${effect}`;
      let edge = gathered.get(key);
      if (!edge) gathered.set(key, (edge = { cause, effect, strength: 0, logRatio: 0, pairs: [] }));
      edge.pairs.push(pair);
      edge.strength = Math.max(edge.strength, sequence.strength[pair]);
      edge.logRatio += sequence.logRatio[pair];
    }
    return [...gathered.values()].sort((a, b) => b.strength - a.strength);
  }
}

// The population graph.
const population = page.population && (() => {
  const stored = page.population;
  const columns = {};
  for (const name of ["cause", "effect", "score", "sequences_with", "opportunities", "kept_count", "mean_strength", "mean_log_ratio"]) {
    columns[name] = column(stored[name]);
  }
  const edges = [];
  for (let index = 0; index < stored.count; index += 1) {
    edges.push({
      index,
      cause: columns.cause[index],
      effect: columns.effect[index],
      score: columns.score[index],
      strength: columns.score[index],
      sequences: columns.sequences_with[index],
      opportunities: columns.opportunities[index],
      kept: columns.kept_count[index],
      meanStrength: columns.mean_strength[index],
      logRatio: columns.mean_log_ratio[index],
      lags: stored.lags[index],
    });
  }
  return { ...stored, edges };
})();
