// What the population graph claims, and how sure that is, in words.

const are = (number) => (number === 1 ? "is" : "are");

// Why there are no p-values.
function whyNoEvidence() {
  if (population.merged) return "The graph was merged from results, which hold no evidence; discover --population writes a file that does.";
  const { evidence } = population;
  if (!population.decision) return "The file is of an early version, which had none.";
  if (evidence && evidence.trained_on > 0) {
    return `The model was trained on all ${plural(evidence.trained_on, "sequence")}, and p-values need sequences that it has not seen: use train --cross-fit, or another log.`;
  }
  return "No evidence was gathered: it needs single events replaced in the history as it was observed, and sequences that the model has not seen (train --cross-fit).";
}

// How many pairs cannot be tested, and why.
function untestableWords({ untestable, always_so: always, same_time: same }) {
  if (untestable === 0) return "Every pair could be tested.";
  const rare = untestable - always - same;
  const parts = [];
  if (always > 0) parts.push(`${count(always)} ${are(always)} always so here: the log cannot say what would have happened otherwise`);
  if (rare > 0) parts.push(`${count(rare)} ${are(rare)} seen at testable places in fewer than ${population.least} sequences`);
  if (same > 0) parts.push(`${count(same)} ${are(same)} always at the same time`);
  return `${plural(untestable, "pair")} cannot be tested, and nothing is claimed of ${untestable === 1 ? "it" : "them"}: ${parts.join("; ")}.`;
}

// The claim itself.
function claimWords() {
  const { counts, decision, evidence } = population;
  const kept = `Of ${plural(counts.pairs, "pair")} of types, ${count(counts.kept)} ${are(counts.kept)} kept`;
  const [selves, keptSelves] = population.own;
  const own = selves > 0 ? ` Self-pairs, a type and its own next occurrence, are tested apart: ${count(keptSelves)} of ${count(selves)} ${are(keptSelves)} kept.` : "";
  if (!population.evident) {
    return [`${kept}: there the lower bound of the log ratio exceeds ${significant(population.cut)}, a ratio of ${Math.exp(population.cut).toFixed(2)}. There are no p-values, and no error rate holds. ${whyNoEvidence()}${own}`];
  }
  const against = counts.inhibits > 0 ? ` ${plural(counts.inhibits, "pair")} ${counts.inhibits === 1 ? "inhibits" : "inhibit"}, tested and listed apart.` : "";
  const seen = evidence && evidence.trained_on > 0 ? `; ${count(evidence.trained_on)} more it was trained on, and they give none` : "";
  return [
    `${kept}: there the cause makes the effect more than ${significant(decision.least_ratio)} times as likely. At most ${significant(100 * decision.fdr)}${THIN}% of these are expected to be false.${against}${own}`,
    `The p-values come from ${plural(evidence.sequences, "sequence")} that the model had not seen${seen}.`,
  ];
}

// How far errors of the model and of drawing reach.
function errorWords() {
  const { held_out_loss: held, unigram_loss: frequencies } = page.models[0];
  const fits = held === null ? "How well the model predicts is not recorded"
    : frequencies === null ? `On events it had not seen, the model loses ${held.toFixed(2)} nats per event`
      : `On events it had not seen, the model loses ${held.toFixed(2)} nats per event; plain frequencies lose ${frequencies.toFixed(2)}`;
  const centred = population.evident ? " P-values centre cause and effect by the model, so its error enters only as the product of two errors; ratios carry all of it." : " Ratios carry all of its error.";
  const drawn = page.monte_carlo === null ? "" : page.monte_carlo === 0 ? " All replacements were tried, so strengths have no Monte-Carlo error."
    : ` Strengths of single edges have a Monte-Carlo error of ± ${strengthWords(page.monte_carlo)} on average.`;
  return `${fits}.${centred}${drawn}`;
}

function showClaims() {
  const place = byId("claims");
  if (!population.scored) {
    place.hidden = true;
    return;
  }
  const [claim, ...more] = claimWords();
  place.replaceChildren(
    element("h2", { text: "What is claimed" }),
    element("p", { class: "claim", text: claim }),
    ...more.map((text) => element("p", { text })),
    element("p", { text: untestableWords(population.counts) }),
    element("p", { text: errorWords() }),
    element("p", { text: `A common cause that is missing from the log is seen by no test of this kind. ${HIDDEN_CAUSE}` }));
}
