// The words around the graphs: what this is, how far the model can be trusted, what is assumed.

// How well a model fits, in words.
function fitness(model) {
  const held = model.held_out_loss;
  const frequencies = model.unigram_loss;
  const lines = [];
  let level = "unknown";
  let verdict = "Fit not recorded";
  if (held !== null && frequencies !== null) {
    const gain = 1 - held / frequencies;
    if (frequencies - held < 0.05 || gain < 0.03) [level, verdict] = ["poor", "Hardly better than frequencies"];
    else if (gain < 0.2) [level, verdict] = ["fair", "Somewhat better than frequencies"];
    else [level, verdict] = ["good", "Clearly better than frequencies"];
    lines.push(`On events it had not seen, the model is as unsure as between ${significant(Math.exp(held), 2)} equally likely events. `
      + `Knowing only how frequent each event is, it would be ${significant(Math.exp(frequencies), 2)}.`);
    if (level === "poor") {
      lines.push("A model that has learned so little sees few causes, and some that are not there. Read the graphs with great caution; train longer, or on more data.");
    }
  } else if (held !== null) {
    lines.push(`On events it had not seen, the model is as unsure as between ${significant(Math.exp(held), 2)} equally likely events (loss ${significant(held)} nats).`);
  } else {
    lines.push("The results do not say how well their model predicts. Whatever it has not learned, no method can read out of it.");
  }
  if (model.epsilon_hat !== null && model.epsilon_hat !== undefined) {
    const score = model.epsilon_hat;
    if (score === 0) {
      [level, verdict] = ["good", "The process itself"];
      lines.push("The events are simulated and the model is the process that made them: nothing is left to learn.");
    } else {
      if (held === null || frequencies === null) {
        [level, verdict] = score < 0.1 ? ["good", "Close to the true process"] : score < 0.5 ? ["fair", "Some way from the true process"] : ["poor", "Far from the true process"];
      }
      lines.push(`Oracle score ${significant(score, 2)}: 0 is the true process, 1 a blind guess.`);
    }
  }
  return { level, verdict, lines, held, frequencies };
}

// Two bars: how unsure the model is, against frequencies.
function lossBars({ held, frequencies }) {
  if (held === null || frequencies === null) return null;
  const most = Math.max(held, frequencies, 1e-9);
  const row = (label, loss, kind) => {
    const inner = element("span", { class: `bar-fill ${kind}` });
    inner.style.width = `${(100 * loss) / most}%`;
    return [element("span", { class: "bar-label", text: label }), element("span", { class: "bar" }, inner),
      element("span", { class: "bar-number", text: loss.toFixed(2) })];
  };
  return element("div", { class: "before-after loss", role: "img",
    "aria-label": `Loss in nats per event: model ${held.toFixed(2)}, frequencies ${frequencies.toFixed(2)}` },
    ...row("model", held, "promoting"), ...row("frequencies", frequencies, "replaced"));
}

function showFitness(model) {
  const fit = fitness(model);
  byId("fitness").replaceChildren(
    element("h2", { text: "Model fitness" }),
    element("p", { class: `badge ${fit.level}`, text: fit.verdict }),
    lossBars(fit) || "",
    ...fit.lines.map((line) => element("p", { text: line })),
    element("p", { class: "note", text: `${model.backbone} · loss in nats per event, lower is better` }));
}

function showIntro() {
  document.title = page.title;
  byId("title").textContent = shorten(page.title, 300);
  const { total } = page;
  const types = page.names.length;
  const settings = page.settings[0];
  const lead = total.sequences === 1
    ? "Which events of this sequence caused which, found by asking a model that predicts the next event: had this one been another, would that one have been as likely?"
    : "Which events caused which, sequence by sequence, found by asking a model that predicts the next event: had this one been another, would that one have been as likely?";
  byId("lead").textContent = lead;
  const figures = [
    [count(total.sequences), total.sequences === 1 ? "sequence" : "sequences"],
    [count(total.events), "events"],
    [count(types), "event types"],
    [count(total.edges), `edges above ${significant(settings.threshold)} ${unit()}`.trim()],
  ];
  byId("figures").replaceChildren(...figures.map(([figure, label]) =>
    element("div", {}, element("dt", { text: label }), element("dd", { text: figure }))));
  showFitness(page.models[0]);
  const size = `${plural(page.sequences.length, "sequence")} in this page`;
  const left = total.left_out > 0 ? `; ${plural(total.left_out, "other")} ${total.left_out === 1 ? "is" : "are"} counted and merged but not drawn` : "";
  byId("foot").textContent = `Made by ${page.software}. ${size}${left}. Nothing leaves this file: it makes no network requests.`;
}

const ASSUMPTIONS = [
  ["Causes come first.", "An event can only be caused by earlier ones, and none acts within the same instant. Where two events carry the same time, their order is that of the file and the edge is marked as tied."],
  ["Nothing that matters is missing.", "If something that is not in the log drives two events, one may look like the cause of the other."],
  ["Mechanisms stay the same.", "What causes what does not change along a sequence."],
  ["Effects are strong enough to see.", "An edge is drawn when replacing the cause changes the prediction of its effect by more than the threshold. Weaker ones are not denied, only not shown."],
  ["The model fits.", "Everything here is read out of a model that predicts the next event. What it has not learned cannot be found, and what it has learned wrongly is found wrongly."],
];

const SETTINGS = [
  ["threshold", "Threshold", (settings) => `${significant(settings.threshold)} ${unit(settings)} (${settings.threshold_rule})`.replace("  ", " ")],
  ["method", "Method", (settings) => settings.method],
  ["memory", "Largest lag tested", (settings) => `${settings.memory}`],
  ["intervention", "What is replaced", (settings) => (settings.intervention === "atomic" ? "the cause alone (atomic)" : "the cause and what follows it (staircase)")],
  ["proposal", "Replacements drawn from", (settings) => ({ uniform: "all types alike", unigram: "training frequencies", model: "the model's prediction", plausible: "what else the model finds plausible there" }[settings.proposal] || settings.proposal)],
  ["particles", "Replacements tried", (settings) => `${settings.particles}`],
  ["divergence", "What is compared", (settings) => (settings.divergence === "event" ? "the probability of the event that happened" : "the whole prediction")],
  ["context", "Events at the start left out", (settings) => `${settings.context}`],
  ["history", "Those events are", (settings) => settings.history],
  ["knowledge", "Prior knowledge", (settings) => (settings.knowledge ? `yes (${settings.knowledge})` : "none")],
  ["seed", "Seed", (settings) => `${settings.seed}`],
];

function showAbout() {
  const definition = ([term, words]) => element("div", {}, element("dt", { text: term }), element("dd", { text: words }));
  const settings = page.settings[0];
  const shown = SETTINGS.filter(([name]) => (name !== "history" || settings.context > 0) && (name !== "method" || settings.method));
  const keys = [["← →", "previous and next event"], ["↑ ↓", "strongest cause, strongest effect of the chosen event"], ["Home End", "first and last event"],
    ["/", "search"], ["+ −", "zoom the timeline"], ["Esc", "clear the choice, then the search"], ["[ ]", "previous and next sequence"]];
  const parts = [
    element("h2", { text: "What an edge says" }),
    element("p", { text: "An arc from one event to a later one says: replacing the first by another event, with everything else in the past as it was, changes the model's prediction of the second. Its strength is the mean change, a divergence in nats; an edge is drawn where it exceeds the threshold. Solid blue arcs promote: without the cause, the effect would have been less likely. Dashed orange arcs inhibit: the effect happened in spite of the cause. Positions count from 0." }),
    settings.method && element("p", { class: "note", text: `This result was made by the method ${settings.method}, which the software is compared with: its strengths are the scores of that method, and the paragraph above does not hold for them.` }),
    element("h2", { text: "Root causes" }),
    element("p", { text: "Choosing an event shows the chains of promoting edges that lead to it from events which nothing promotes. Of all paths from such a root the page shows the one whose weakest edge is strongest, and ranks roots by that edge. Chains follow the threshold, not the filters." }),
    element("h2", { text: "What is assumed" }),
    element("p", { text: "Calling these edges causes rests on five assumptions. They cannot be checked from the log alone." }),
    element("dl", { class: "assumptions" }, ...ASSUMPTIONS.map(definition)),
    population && element("h2", { text: "Across sequences" }),
    population && element("p", { text: population.scored
      ? `For every pair of types, the ratio is the mean over all places where the cause stood before the effect, whether an edge was kept there or not, and the score is a lower confidence bound of its logarithm. Places at the same time, and places where nothing else could have stood, do not count. ${population.evident
        ? `A pair is kept when it promotes with a q-value of at most ${significant(population.decision.fdr)} for a ratio above ${significant(population.decision.least_ratio)}.`
        : `Pairs with a score above ${population.cut} and at least ${population.least} sequences with such a place are kept.`}`
      : `${scoresOnly(settings) ? `The method ${settings.method} gives no ratios of probabilities` : "These results hold only the edges that were kept"}, so pairs of types are ranked by the number of sequences that have the edge. Results made with --all-pairs, or a population file, give a score that also counts the places where the edge was absent.` }),
    element("h2", { text: "Always so here" }),
    element("p", { text: "Where hardly anything but the cause and the effect could have stood, the log cannot say what would have happened otherwise. Such a pair is neither an edge nor the lack of one: it is untestable and is not drawn. Room (overlap) says how much else could have stood there. The panel of an event lists its untestable pairs where the results hold all pairs (discover --all-pairs)." }),
    element("h2", { text: "Hidden causes" }),
    element("p", { text: `${HIDDEN_CAUSE} No test reveals such a cause.` }),
    element("h2", { text: "Settings of the run" }),
    page.settings.length > 1 && element("p", { class: "note", text: `Results of ${page.settings.length} different settings are in this page; these are the first.` }),
    element("dl", { class: "settings" }, ...shown.map(([, label, words]) => definition([label, words(settings)]))),
    element("h2", { text: "Keys" }),
    element("dl", { class: "settings keys" }, ...keys.map(([key, words]) => element("div", {}, element("dt", {}, element("kbd", { text: key })), element("dd", { text: words })))),
  ];
  byId("about").replaceChildren(...parts.filter(Boolean));
}
