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

// The first characters of a name; never half of one, and none that turns around what follows.
const segmenter = typeof Intl.Segmenter === "function" ? new Intl.Segmenter("en", { granularity: "grapheme" }) : null;
function shorten(text, most) {
  const clean = text.replace(/[\u202a-\u202e\u2066-\u2069]/gu, "").replace(/\s+/gu, " ");
  if (clean.length <= most) return clean;
  const start = clean.slice(0, most * 8);
  const letters = segmenter ? Array.from(segmenter.segment(start), (part) => part.segment) : Array.from(start);
  return letters.length <= most && start === clean ? clean : `${letters.slice(0, most - 1).join("").trimEnd()}…`;
}

// What an edge says, as a sentence.
function sentence(sequence, pair) {
  const cause = shorten(sequence.nameAt(sequence.cause[pair]), 60);
  const effect = shorten(sequence.nameAt(sequence.effect[pair]), 60);
  const [was, would] = percentages(sequence.probability[pair], sequence.replaced[pair]);
  if (sequence.settings.intervention === "none") {
    return `The method ${sequence.settings.method} gives ${cause} at position ${sequence.cause[pair]} a score of ${strengthWords(sequence.strength[pair])} as a cause of ${effect}.`;
  }
  const difference = sequence.replaced[pair] - sequence.probability[pair];
  const moved = was === would ? `stayed at ${was}` : `${difference < 0 ? "fallen" : "risen"} from ${was} to ${would}`;
  const place = `${cause} at position ${sequence.cause[pair]}`;
  if (sequence.settings.intervention === "staircase") {
    return `With everything after it replaced, ${place} gives ${effect} a probability of ${was}; with it replaced too, ${would}.`;
  }
  return `Had ${place} been another event, the probability of ${effect} would have ${moved}.`;
}

// Times are numbers; those that look like seconds since 1970 are shown as dates.
function timeWords(time) {
  if (time > 1e8 && time < 1e11) return new Date(time * 1000).toISOString().replace("T", " ").replace(/\.000Z|Z/u, "");
  return significant(time, 12);
}
