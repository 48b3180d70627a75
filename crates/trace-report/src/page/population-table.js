// The table of type pairs.

// What is claimed of a pair, in a word or two.
function verdictCell(edge) {
  const short = { "always so": "always so here", "same time": "same time", "too rare": "too rare" }[edge.verdict] || edge.verdict;
  const tags = [];
  if (edge.how) tags.push(element("span", { class: "tag", title: HOW_TITLE, text: "how" }));
  if (edge.own) tags.push(element("span", { class: "tag", title: "A type and its own next occurrence", text: "self" }));
  if (edge.required) tags.push(element("span", { class: "tag", title: "Prior knowledge says that this is an edge", text: "required" }));
  const kind = edge.verdict === "inhibits" ? "despite" : edge.verdict === "promotes" ? "promoting" : "unclaimed";
  return element("span", { class: "verdict-cell" }, element("span", { class: `verdict ${kind}`, text: short, title: VERDICT_TITLES[edge.verdict] || VERDICT_WORDS[edge.verdict] }), ...tags);
}

function populationColumns() {
  const name = (type) => element("span", { class: "cell-name", title: page.names[type].slice(0, 400), text: label(type, 44) });
  const number = (label, title, key, cell) => ({ label, number: true, title, key, cell });
  const orLast = (value, last) => value ?? last;
  const columns = [
    { label: "Cause", key: (edge) => page.names[edge.cause], cell: (edge) => name(edge.cause) },
    { label: "Effect", key: (edge) => page.names[edge.effect], cell: (edge) => name(edge.effect) },
  ];
  if (!population.scored) {
    columns.push(number("Sequences", "Sequences that have the edge", (edge) => edge.sequences, (edge) => count(edge.sequences)),
      number("Ratio", "How many times as likely the cause makes the effect, where the edge was kept", (edge) => edge.ratio, (edge) => times(edge.ratio)));
  } else {
    const tested = (edge, words) => (edge.opportunities > 0 ? words : "–");
    columns.push(
      { label: "Verdict", title: "What is claimed", key: (edge) => edge.verdict, cell: verdictCell },
      number("Ratio", "How many times as likely the cause makes the effect, as the mean over its places", (edge) => (edge.opportunities > 0 ? edge.ratio : 0), (edge) => tested(edge, times(edge.ratio))),
      number("Score", "Lower confidence bound of the size of the log ratio: ranks", (edge) => edge.rank,
        (edge) => (edge.untestable ? "–" : strengthCell(Math.max(edge.rank, 0), null, Math.max(population.edges.length > 0 ? population.edges[0].rank : 1, 0.1), edge.inhibits ? "despite" : "promoting"))));
    if (population.evident) {
      columns.push(number("q", "q-value: the share of pairs at least as sure as this one that is expected to be false", (edge) => orLast(edge.q, 2), (edge) => tail(edge.q)),
        number("p", "One-sided p-value of the pair alone", (edge) => orLast(edge.p, 2), (edge) => tail(edge.p)));
    }
    columns.push(number("Sequences", "Sequences with a place that can be tested", (edge) => edge.sequences, (edge) => count(edge.sequences)),
      number("Places", "Places where the cause stood before the effect", (edge) => edge.places, (edge) => count(edge.places)),
      number("Tied", "Share of places where both carry the same time", (edge) => edge.tied, (edge) => (edge.tied > 0 ? percent(edge.tied) : "–")),
      number("Room", "Overlap: how much room places left for anything else, on average", (edge) => orLast(edge.overlap, -1), (edge) => (edge.overlap === null ? "–" : percent(edge.overlap))),
      number("Hidden cause", HIDDEN_CAUSE, (edge) => (edge.opportunities > 0 ? edge.hiddenCause : 0), (edge) => tested(edge, times(edge.hiddenCause))));
  }
  columns.push(number("Strength", unit() ? `Mean strength in ${unit()}` : "Mean score of the method", (edge) => edge.meanStrength, (edge) => nats(edge.meanStrength)),
    number("Edges", "Edges kept in single sequences", (edge) => edge.keptCount, (edge) => count(edge.keptCount)),
    { label: "Lags", title: "Lags of kept edges", key: (edge) => Object.keys(edge.lags).join(" "), cell: (edge) => Object.keys(edge.lags).join(" ") });
  return columns;
}

function populationTable() {
  const columns = populationColumns();
  const sortBy = columns.findIndex((column) => column.label === (population.scored ? "Score" : "Sequences"));
  const table = new SortedTable(byId("population-table"), { label: "Type pairs across sequences", sortBy, columns,
    group: (edge) => (edge.untestable ? 3 : edge.own ? 2 : edge.inhibits ? 1 : 0), // promoting, inhibiting, self-pairs, and what cannot be tested
    row: (edge) => ({ "data-edge": edge.index, tabindex: -1, class: edge.untestable ? "unclaimed" : "" }) });
  table.body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row) selectPopulation({ edge: population.edges[Number(row.dataset.edge)] });
  });
  let shown = null;
  const fill = () => {
    const words = state.query.trim().toLowerCase();
    const key = `${populationVersion} ${words}`;
    if (shown !== key) {
      shown = key;
      const has = (type) => page.names[type].toLowerCase().includes(words);
      const rows = populationRows().filter((edge) => !words || has(edge.cause) || has(edge.effect));
      table.show(rows);
      const never = rows.filter((edge) => edge.untestable).length;
      byId("population-count").textContent = plural(rows.length, "pair") + (never > 0 ? `, ${count(never)} of them cannot be tested. ${ALWAYS[0].toUpperCase()}${ALWAYS.slice(1)}.` : "");
    }
    const chosen = state.populationSelection;
    for (const row of table.body.children) {
      const edge = population.edges[Number(row.dataset.edge)];
      row.classList.toggle("lit", chosen !== null && (chosen.edge === edge || chosen.type === edge.cause || chosen.type === edge.effect));
    }
  };
  listen("population", fill);
  listen("graph", fill);
}
