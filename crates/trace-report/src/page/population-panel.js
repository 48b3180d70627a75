// The explanation of a type pair or a type, in words.

function showPopulationPanel() {
  const chosen = state.populationSelection;
  const parts = !chosen ? nothingChosenThere() : chosen.edge ? populationEdgeChosen(chosen.edge) : populationTypeChosen(chosen.type);
  byId("population-panel").replaceChildren(...parts.filter(Boolean));
}

function populationSentence(edge) {
  const [cause, effect] = [label(edge.cause, 60), inWords(edge.effect, 60)];
  if (!population.scored) return `${cause} caused ${effect} in ${count(edge.sequences)} of ${plural(population.sequences, "sequence")}.`;
  if (edge.untestable) return `${cause} before ${effect}: ${VERDICT_WORDS[edge.verdict]}.`;
  const outcome = edge.how ? ", as an outcome of its step," : "";
  return `${cause} makes ${effect}${outcome} ${likely(edge.ratio)}.`;
}

// One line for a tooltip.
function populationFacts(edge) {
  if (!population.scored) return `${plural(edge.sequences, "sequence")}`;
  const parts = [edge.verdict === "promotes" || edge.verdict === "inhibits" ? edge.verdict : VERDICT_WORDS[edge.verdict]];
  if (edge.how) parts.push("how");
  if (!edge.untestable) parts.push(likely(edge.ratio));
  if (edge.q !== null) parts.push(equals("q", edge.q), equals("p", edge.p));
  parts.push(plural(edge.sequences, "sequence"));
  if (edge.tied > 0) parts.push(`tied ${percent(edge.tied)}`);
  if (edge.overlap !== null) parts.push(`room ${percent(edge.overlap)}`);
  if (!edge.untestable) parts.push(`hidden-cause ratio ${times(edge.hiddenCause)}`);
  return parts.join(" · ");
}

function populationItem(edge) {
  return element("li", { class: "edge-item" },
    element("button", { type: "button", class: "sentence", text: populationSentence(edge), onclick: () => selectPopulation({ edge }) }),
    edge.q !== null && element("span", { class: "note item-note", text: `${equals("q", edge.q)}, ${plural(edge.sequences, "sequence")}` }));
}

function nothingChosenThere() {
  const edges = populationEdges();
  const promoting = edges.filter((edge) => !edge.inhibits);
  const inhibiting = edges.filter((edge) => edge.inhibits);
  const list = (pairs) => element("ul", { class: "plain-list" }, ...pairs.slice(0, 6).map(populationItem));
  return [
    element("p", { class: "kicker", text: "Explanation" }),
    element("h2", { class: "name", text: "Choose a type or an edge" }),
    element("p", { class: "muted", text: "What holds across sequences. Choose an edge to see in which sequences it was found." }),
    edges.length === 0 && element("p", { class: "callout", text: "No pair of types passes these filters." }),
    promoting.length > 0 && element("h3", { text: population.scored ? "Strongest pairs" : "Most frequent pairs" }),
    promoting.length > 0 && list(promoting),
    inhibiting.length > 0 && element("h3", { text: "Inhibiting pairs" }),
    inhibiting.length > 0 && list(inhibiting),
  ];
}

function populationRowsOf(edge) {
  const rows = [];
  if (population.scored) {
    rows.push(["Verdict", VERDICT_WORDS[edge.verdict] + (edge.required ? ", required by prior knowledge" : "")]);
    if (!edge.untestable) rows.push(["Ratio", likely(edge.ratio)]);
    if (population.evident && !edge.untestable) rows.push(["q-value", tail(edge.q)], ["p-value, one-sided", tail(edge.p)]);
    rows.push(["Sequences with a testable place", count(edge.sequences)], ["Places", `${count(edge.places)}, ${count(edge.opportunities)} testable`], ["Places at the same time", percent(edge.tied)]);
    if (edge.overlap !== null) rows.push(["Room for anything else (overlap)", percent(edge.overlap)]);
    if (!edge.untestable) {
      const low = edge.inhibits ? "" : `; at the lower bound ${times(edge.hiddenCauseLow)}`;
      rows.push(["Hidden-cause ratio", `${times(edge.hiddenCause)}${low}`], ["Score", edge.rank.toFixed(2)], ["Mean log ratio", edge.logRatio.toFixed(2)]);
    }
  } else rows.push(["Sequences", count(edge.sequences)]);
  rows.push(["Edges kept in sequences", count(edge.keptCount)], ["Mean strength", strengthWords(edge.meanStrength)],
    ["Lags", Object.entries(edge.lags).map(([lag, number]) => `${lag} (${count(number)}×)`).join(", ") || "none kept"]);
  return rows;
}

function populationEdgeChosen(edge) {
  const places = occurrences(edge);
  const kind = `${edge.own ? "Self-pair" : "Type pair"}${edge.how ? ", how it turns out" : ""}`;
  return [
    element("p", { class: "kicker", text: kind }),
    element("h2", { class: "name", text: `${label(edge.cause, 80)} → ${label(edge.effect, 80)}` }),
    element("p", { class: "sentence-lead", text: populationSentence(edge) }),
    element("dl", { class: "facts" }, ...populationRowsOf(edge).map(([term, words]) => element("div", {}, element("dt", { text: term }), element("dd", { text: words })))),
    population.scored && !edge.untestable && element("p", { class: "note", text: HIDDEN_CAUSE }),
    element("h3", { text: "Sequences with this edge" }),
    places.length === 0 ? element("p", { class: "muted", text: "None of the sequences in this page." })
      : listOf(places.map(({ index, pair }) => element("li", { class: "starts" },
        element("button", { type: "button", class: "event-link", text: shorten(page.sequences[index].id, 40), onclick: () => openSequence(index, { pair }) }),
        element("span", { class: "note", text: strengthWords(sequenceAt(index).strength[pair]) }))), 8),
  ];
}

// The strongest edge of a type pair in each sequence of the page that has one.
function occurrences(edge) {
  const places = [];
  page.sequences.forEach((_, index) => {
    const sequence = sequenceAt(index);
    let best = -1;
    for (const pair of sequence.kept(null)) {
      const fits = sequence.events[sequence.cause[pair]] === edge.cause && sequence.events[sequence.effect[pair]] === edge.effect
        && ((sequence.flags[pair] & HOW) > 0) === edge.how;
      if (fits && (best < 0 || sequence.strength[pair] > sequence.strength[best])) best = pair;
    }
    if (best >= 0) places.push({ index, pair: best });
  });
  return places.sort((a, b) => sequenceAt(b.index).strength[b.pair] - sequenceAt(a.index).strength[a.pair]);
}

function populationTypeChosen(type) {
  const edges = populationEdges();
  const list = (found) => (found.length > 0 ? listOf(found.map(populationItem)) : element("p", { class: "muted", text: "No type at these filters." }));
  const part = (title, found, always) => (always || found.length > 0 ? [element("h3", { text: title }), list(found)] : []);
  const never = population.edges.filter((edge) => edge.verdict === "always so" && edge.effect === type);
  return [
    ...heading("Event type", page.names[type]),
    ...part("Promoted by", edges.filter((edge) => edge.effect === type && !edge.inhibits), true),
    ...part("Promotes", edges.filter((edge) => edge.cause === type && !edge.inhibits), true),
    ...part("Inhibited by", edges.filter((edge) => edge.effect === type && edge.inhibits)),
    ...part("Inhibits", edges.filter((edge) => edge.cause === type && edge.inhibits)),
    ...part("Always so here", never),
  ];
}
