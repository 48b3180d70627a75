// The data of the page, decoded when it is looked at.

const page = JSON.parse(byId("data").textContent);

// The name of the end of a case among the names.
const END = "end of the case";

const ARRAYS = { Uint8: Uint8Array, Uint16: Uint16Array, Uint32: Uint32Array, Float32: Float32Array, Float64: Float64Array };

function column([kind, text]) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new ARRAYS[kind](bytes.buffer);
}

const KEPT = 1;
const TIED = 2;
const REQUIRED = 4;
const UNTESTABLE = 8;
const UNDECIDED = 16;
const HOW = 32;

// How strongly an unseen common cause would have to be tied to both to explain a ratio away (VanderWeele & Ding 2017).
function hiddenCauseRatio(logRatio) {
  const ratio = Math.exp(Math.abs(logRatio));
  return Math.min(ratio + Math.sqrt(ratio * (ratio - 1)), Number.MAX_VALUE);
}

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
    this.overlap = pairs.overlap ? column(pairs.overlap) : null;
    this.flags = column(pairs.flags);
    this.longestLag = this.lag.reduce((most, lag) => Math.max(most, lag), 1);
  }

  nameAt(position) {
    return page.names[this.events[position]];
  }

  promotes(pair) {
    return this.logRatio[pair] >= 0;
  }

  // How many times as likely the cause made the effect, by the two probabilities that are shown.
  ratio(pair) {
    const ratio = this.probability[pair] / this.replaced[pair];
    return Number.isFinite(ratio) && ratio > 0 ? ratio : Math.exp(this.logRatio[pair]);
  }

  // Where no other event could have stood, as far as pairs are stored.
  untestable(effect) {
    const pairs = [];
    for (let pair = 0; pair < this.count; pair += 1) {
      if (this.effect[pair] === effect && this.flags[pair] & UNTESTABLE && !(this.flags[pair] & KEPT)) pairs.push(pair);
    }
    return pairs.sort((a, b) => this.lag[a] - this.lag[b]);
  }

  // The graph at a threshold: what the command line keeps there. Without a threshold, what the run kept.
  kept(threshold) {
    const kept = [];
    for (let pair = 0; pair < this.count; pair += 1) {
      const flags = this.flags[pair];
      const decided = !(flags & (UNTESTABLE | UNDECIDED)) && this.strength[pair] > threshold;
      const keep = threshold === null ? flags & KEPT : decided || flags & REQUIRED;
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
      const how = (sequence.flags[pair] & HOW) > 0;
      const key = `${cause} ${effect} ${how}`;
      let edge = gathered.get(key);
      if (!edge) gathered.set(key, (edge = { cause, effect, how, strength: 0, logRatio: 0, pairs: [] }));
      edge.pairs.push(pair);
      edge.strength = Math.max(edge.strength, sequence.strength[pair]);
      edge.logRatio += sequence.logRatio[pair];
    }
    return [...gathered.values()].sort((a, b) => b.strength - a.strength);
  }
}

// The population graph. Flags of its pairs, as they are stored.
const PAIR_KEPT = 1;
const PAIR_REQUIRED = 2;
const PAIR_HOW = 4;
const VERDICTS = new Map([[8, "promotes"], [16, "inhibits"], [32, "always so"], [64, "same time"], [128, "too rare"]]);
const COLUMNS = ["cause", "effect", "flags", "score", "ratio", "p_value", "q_value", "overlap", "tied", "hidden_cause_ratio_low", "sequences_with",
  "opportunities", "places", "kept_count", "mean_strength", "mean_log_ratio"];

const population = page.population && (() => {
  const stored = page.population;
  const columns = {};
  for (const name of COLUMNS) columns[name] = column(stored[name]);
  const known = (number) => (Number.isNaN(number) ? null : number);
  const edges = [];
  for (let index = 0; index < stored.count; index += 1) {
    const flags = columns.flags[index];
    const logRatio = columns.mean_log_ratio[index];
    const score = columns.score[index];
    const verdict = VERDICTS.get(flags & 248) || "none";
    const inhibits = logRatio < 0;
    // The score is a lower bound of the mean log ratio; the other bound is as far away on the other side.
    const rank = inhibits && stored.scored ? score - 2 * logRatio : score;
    edges.push({
      index,
      cause: columns.cause[index],
      effect: columns.effect[index],
      own: columns.cause[index] === columns.effect[index],
      how: (flags & PAIR_HOW) > 0,
      kept: (flags & PAIR_KEPT) > 0,
      required: (flags & PAIR_REQUIRED) > 0,
      verdict,
      untestable: flags >= 32,
      inhibits,
      score,
      rank,
      strength: Math.max(rank, 0),
      ratio: columns.ratio[index],
      p: known(columns.p_value[index]),
      q: known(columns.q_value[index]),
      overlap: known(columns.overlap[index]),
      tied: columns.tied[index],
      hiddenCause: hiddenCauseRatio(logRatio),
      hiddenCauseLow: columns.hidden_cause_ratio_low[index],
      sequences: columns.sequences_with[index],
      opportunities: columns.opportunities[index],
      places: columns.places[index],
      keptCount: columns.kept_count[index],
      meanStrength: columns.mean_strength[index],
      logRatio,
      lags: stored.lags[index],
    });
  }
  const evident = stored.decision !== null && stored.decision.by === "evidence";
  return { ...stored, edges, evident, asksHow: edges.some((edge) => edge.how) };
})();
