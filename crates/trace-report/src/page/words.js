// Numbers and names in words.

const THIN = "\u202f";

const counting = new Intl.NumberFormat("en");
function count(number) {
  return counting.format(number);
}

function plural(number, one, many) {
  return `${count(number)} ${number === 1 ? one : many || `${one}s`}`;
}

// Three significant digits, as typed into a threshold.
function significant(number, digits = 3) {
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size >= 1e6 || size < 1e-4) return number.toExponential(digits - 1);
  return Number(number.toPrecision(digits)).toString();
}

function nats(number) {
  if (number === 0) return "0";
  return number >= 10 ? number.toFixed(1) : number >= 0.01 ? number.toFixed(3) : significant(number, 2);
}

// What strengths are counted in: nats, unless they are the scores of a rival method that has no unit.
function unit(settings = page.settings[0]) {
  return settings && settings.method && settings.method !== "shapley" ? "" : "nats";
}

function strengthWords(number) {
  return `${nats(number)} ${unit()}`.trim();
}

function percent(share, extra = 0) {
  const hundred = share * 100;
  if (hundred === 0) return `0${THIN}%`;
  if (hundred < 0.0005) return `<${THIN}0.001${THIN}%`;
  if (hundred > 99.995 && extra === 0) return `>${THIN}99.99${THIN}%`;
  const digits = hundred > 99.9 ? 2 : hundred > 90 ? 1 : hundred >= 10 ? 0 : hundred >= 1 ? 1 : hundred >= 0.1 ? 2 : 3;
  return `${hundred.toFixed(Math.min(digits + extra, 6))}${THIN}%`;
}

// Two shares with as many digits as it takes to tell them apart.
function percentages(first, second) {
  for (let extra = 0; extra < 3; extra += 1) {
    const pair = [percent(first, extra), percent(second, extra)];
    if (pair[0] !== pair[1] || first === second) return pair;
  }
  return [percent(first, 3), percent(second, 3)];
}

// The letters of a text; never half of one.
const segmenter = typeof Intl.Segmenter === "function" ? new Intl.Segmenter("en", { granularity: "grapheme" }) : null;
function letters(text) {
  return segmenter ? Array.from(segmenter.segment(text), (part) => part.segment) : Array.from(text);
}

// A name on one line, without what turns around what follows.
function cleaned(text) {
  return text.replace(/[\u202a-\u202e\u2066-\u2069]/gu, "").replace(/\s+/gu, " ");
}

// A name in at most so many letters: a long one loses its end, or its middle.
function shorten(text, most, middle = false) {
  const clean = cleaned(text);
  if (clean.length <= most) return clean;
  const reach = most * 8;
  if (clean.length <= 2 * reach && letters(clean).length <= most) return clean;
  const tail = middle ? Math.floor((most - 1) / 2) : 0;
  const start = letters(clean.slice(0, reach)).slice(0, most - 1 - tail).join("");
  const end = tail > 0 ? letters(clean.slice(-reach)).slice(-tail).join("") : "";
  return `${start.trimEnd()}…${end.trimStart()}`;
}

// The part of a name around the last letter that tells it from those it would look like.
function around(name, twins, most) {
  const own = letters(name);
  let at = 0;
  for (const twin of twins) {
    const other = letters(twin);
    let same = 0;
    while (same < own.length && own[same] === other[same]) same += 1;
    at = Math.max(at, same);
  }
  const room = Math.max(1, most - 2);
  const from = Math.max(0, Math.min(at - Math.floor(room / 2), own.length - room));
  const to = Math.min(from + room, own.length);
  return `${from > 0 ? "…" : ""}${own.slice(from, to).join("")}${to < own.length ? "…" : ""}`;
}

// Names by what is shown of them.
function alike(short) {
  const groups = new Map();
  short.forEach((text, index) => {
    if (!groups.has(text)) groups.set(text, new Set());
    groups.get(text).add(cleaned(page.names[index]));
  });
  return groups;
}

// Names of types in at most so many letters, such that those which differ still do.
const labels = new Map();
function label(type, most) {
  if (!labels.has(most)) {
    const byStart = page.names.map((name) => shorten(name, most));
    const byEnds = page.names.map((name) => shorten(name, most, true));
    const [starts, ends] = [alike(byStart), alike(byEnds)];
    const sorted = new Map();
    labels.set(most, byStart.map((text, index) => {
      if (starts.get(text).size < 2) return text;
      const cut = byEnds[index];
      if (ends.get(cut).size < 2) return cut;
      if (!sorted.has(cut)) sorted.set(cut, [...ends.get(cut)].sort());
      const names = sorted.get(cut);
      const name = cleaned(page.names[index]);
      const place = names.indexOf(name);
      // In alphabetical order, the name that has most in common with another stands next to it.
      return around(name, names.slice(Math.max(0, place - 1), place + 2).filter((other) => other !== name), most);
    }));
  }
  return labels.get(most)[type];
}

// A ratio of probabilities, so that it reads "3.2 times as likely".
function times(ratio) {
  if (ratio >= 1000) return "more than 1,000";
  if (ratio < 0.001) return "less than 0.001";
  return ratio >= 100 ? count(Math.round(ratio)) : ratio >= 10 ? ratio.toFixed(0) : ratio >= 0.1 ? ratio.toFixed(ratio < 1 ? 2 : 1) : significant(ratio, 2);
}

const likely = (ratio) => `${times(ratio)} times as likely`;

// A p- or q-value, or an empty place where there is none.
function tail(value) {
  if (value === null) return "–";
  if (value < 1e-12) return `<${THIN}10⁻¹²`;
  return value < 0.001 ? value.toExponential(1).replace("e-", "·10^-").replace(/\^(-\d+)/u, (_, power) => raised(power)) : significant(value, 2);
}

// The same as an equation.
const equals = (name, value) => `${name} ${value !== null && value < 1e-12 ? "" : "= "}${tail(value)}`;

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const raised = (power) => [...power].map((sign) => RAISED[sign]).join("");

const ALWAYS = "always so here: the log cannot say what would have happened otherwise";
const VERDICT_WORDS = {
  promotes: "promotes", inhibits: "inhibits", none: "none", "always so": ALWAYS,
  "same time": "always at the same time: the order is the file's",
  "too rare": "too rare: too few sequences have a place that can be tested",
};
const VERDICT_TITLES = {
  promotes: "Seeing the cause makes the effect more likely", inhibits: "Seeing the cause makes the effect less likely", none: "Nothing is claimed",
};

const HIDDEN_CAUSE = "The hidden-cause ratio says how many times as likely something that is not in the log would have to make both the cause and the effect "
  + "to explain the pair away: near 1, very little is enough.";

const HOW_TITLE = "Asks how the step of the effect turns out, had the step of the cause turned out otherwise";

// A type within a sentence.
function inWords(type, most) {
  return page.names[type] === END ? `the ${END}` : label(type, most);
}

// Whether a rival method made the result that replaces nothing, so that there are no probabilities to compare.
function scoresOnly(settings) {
  return settings.method !== undefined && settings.method !== "granger";
}

// What an edge says, as a sentence.
function sentence(sequence, pair) {
  const cause = label(sequence.events[sequence.cause[pair]], 60);
  const effect = inWords(sequence.events[sequence.effect[pair]], 60);
  const [was, would] = percentages(sequence.probability[pair], sequence.replaced[pair]);
  if (scoresOnly(sequence.settings)) {
    return `The method ${sequence.settings.method} gives ${cause} at position ${sequence.cause[pair]} a score of ${strengthWords(sequence.strength[pair])} as a cause of ${effect}.`;
  }
  const difference = sequence.replaced[pair] - sequence.probability[pair];
  const moved = was === would ? `stayed at ${was}` : `${difference < 0 ? "fallen" : "risen"} from ${was} to ${would}`;
  const place = `${cause} at position ${sequence.cause[pair]}`;
  if (sequence.settings.intervention === "staircase") {
    return `With everything after it replaced, ${place} gives ${effect} a probability of ${was}; with it replaced too, ${would}.`;
  }
  if (sequence.flags[pair] & HOW) return `Had ${place} turned out otherwise, the probability of ${effect} among the outcomes of its step would have ${moved}.`;
  return `Had ${place} been another event, the probability of ${effect} would have ${moved}.`;
}

// Times are numbers; those that look like seconds since 1970 are shown as dates.
function timeWords(time) {
  if (time > 1e8 && time < 1e11) return new Date(time * 1000).toISOString().replace("T", " ").replace(/\.000Z|Z/u, "");
  return significant(time, 12);
}
