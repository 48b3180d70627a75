// The explanation of what is chosen, in words.

function showPanel() {
  const { selection } = state;
  const parts = !selection ? nothingChosen() : selection.event !== undefined ? eventChosen(selection.event)
    : selection.pair !== undefined ? pairChosen(selection.pair) : selection.types ? typesChosen(selection.types) : typeChosen(selection.type);
  byId("panel").replaceChildren(...parts.filter(Boolean));
}

const heading = (kind, name) => [element("p", { class: "kicker", text: kind }), longName(name)];

// A name of any length: the start, and all of it on request.
function longName(name) {
  if (name.length <= 90) return element("h2", { class: "name", text: name });
  const title = element("h2", { class: "name", text: shorten(name, 80) });
  const more = element("button", { type: "button", class: "link", text: `show all ${count(name.length)} characters` });
  more.addEventListener("click", () => {
    title.textContent = name;
    more.remove();
  });
  return element("div", {}, title, more);
}

// A button that chooses an event.
function eventLink(position) {
  const name = current.sequence.nameAt(position);
  return element("button", { type: "button", class: "event-link", title: name.slice(0, 400), onclick: () => select({ event: position }) },
    element("span", { class: "place", text: position }), element("span", { text: label(current.sequence.events[position], 34) }));
}

function edgeItem(pair, other) {
  const { sequence } = current;
  const item = element("li", { class: "edge-item", "data-pair": pair },
    element("div", { class: "edge-head" }, eventLink(other),
      element("button", { type: "button", class: "link strength", title: "Show this edge", text: strengthWords(sequence.strength[pair]), onclick: () => select({ pair }) })),
    beforeAfter(sequence.probability[pair], sequence.replaced[pair], sequence.promotes(pair)),
    marks(pair));
  item.addEventListener("pointerenter", () => hoverPair(pair));
  item.addEventListener("pointerleave", () => hoverPair(null));
  return item;
}

function marks(pair) {
  const flags = current.sequence.flags[pair];
  const list = [];
  if (flags & TIED) list.push(element("span", { class: "tag", title: "Both events carry the same time; their order is that of the file", text: "tied" }));
  if (flags & HOW) list.push(element("span", { class: "tag", title: HOW_TITLE, text: "how" }));
  if (flags & REQUIRED) list.push(element("span", { class: "tag", title: "Prior knowledge says that this is an edge, however strong", text: "required" }));
  return list.length > 0 ? element("div", { class: "tags" }, ...list) : null;
}

// How much room there was for anything else at a pair.
function overlapWords(sequence, pair) {
  const overlap = sequence.overlap ? sequence.overlap[pair] : NaN;
  return Number.isNaN(overlap) ? "–" : percent(overlap);
}

// Earlier events of which nothing can be said, because nothing else could have stood there.
function untestableItems(pairs) {
  const { sequence } = current;
  return listOf(pairs.map((pair) => element("li", { class: "starts untestable", "data-untestable": pair }, eventLink(sequence.cause[pair]),
    element("span", { class: "note", text: `room ${overlapWords(sequence, pair)}${sequence.flags[pair] & HOW ? " · how" : ""}` }))));
}

// A list that shows its first entries, and the rest on request.
function listOf(items, most = 6) {
  const list = element("ul", { class: "plain-list" }, ...items.slice(0, most));
  if (items.length <= most) return list;
  const more = element("button", { type: "button", class: "link", text: `show ${count(items.length - most)} more` });
  more.addEventListener("click", () => {
    list.append(...items.slice(most));
    more.remove();
  });
  return element("div", {}, list, more);
}

function nothingChosen() {
  const { sequence, graph } = current;
  const strongest = [...graph.pairs].sort((a, b) => sequence.strength[b] - sequence.strength[a]).slice(0, 5);
  const starts = [...graph.outOf.keys()].filter((position) => graph.causesOf(position).length === 0)
    .map((position) => ({ position, total: graph.effectsOf(position).reduce((sum, pair) => sum + sequence.strength[pair], 0) }))
    .sort((a, b) => b.total - a.total).slice(0, 5);
  return [
    element("p", { class: "kicker", text: "Explanation" }),
    element("h2", { class: "name", text: "Choose an event" }),
    element("p", { class: "muted", text: "Click an event to see what caused it, what it caused and where its chains of causes begin. Click an arc for its numbers." }),
    graph.pairs.length === 0 && element("p", { class: "callout", text: "At this threshold nothing in the sequence explains anything else in it." }),
    strongest.length > 0 && element("h3", { text: "Strongest edges" }),
    strongest.length > 0 && element("ul", { class: "plain-list" }, ...strongest.map((pair) => {
      const item = element("li", { class: "edge-item", "data-pair": pair },
        element("button", { type: "button", class: "sentence", text: sentence(sequence, pair), onclick: () => select({ pair }) }), marks(pair));
      item.addEventListener("pointerenter", () => hoverPair(pair));
      item.addEventListener("pointerleave", () => hoverPair(null));
      return item;
    })),
    starts.length > 0 && element("h3", { text: "Where chains begin" }),
    starts.length > 0 && element("ul", { class: "plain-list starts" }, ...starts.map(({ position }) => element("li", {}, eventLink(position),
      element("span", { class: "note", text: plural(graph.effectsOf(position).length, "effect") })))),
  ];
}

function eventChosen(position) {
  const { sequence, graph, lit } = current;
  const causes = graph.causesOf(position);
  const promoting = causes.filter((pair) => sequence.promotes(pair));
  const despite = causes.filter((pair) => !sequence.promotes(pair));
  const effects = graph.effectsOf(position);
  const facts = [`Position ${position}`];
  if (sequence.times) facts.push(`time ${timeWords(sequence.times[position])}`);
  const alike = sequence.events.filter((type) => type === sequence.events[position]).length;
  facts.push(alike === 1 ? "the only one of its type" : `one of ${count(alike)} of its type`);
  const predicted = causes.length > 0 ? sequence.probability[causes[0]] : null;
  const untestable = sequence.untestable(position);
  const ends = sequence.nameAt(position) === END;
  return [
    ...heading(ends ? "After the last event" : "Event", sequence.nameAt(position)),
    element("p", { class: "muted", text: facts.join(" · ") }),
    predicted !== null && sequence.settings.intervention === "atomic"
      && element("p", { text: `Given everything before it, the model gave ${ends ? "an end here" : "this event"} a probability of ${percent(predicted)}.` }),
    element("h3", { text: "Direct causes" }),
    promoting.length === 0
      ? element("p", { class: "muted", text: position === 0 ? "It is the first event: nothing before it could have caused it." : "Nothing in the log explains this event at this threshold." })
      : element("p", { class: "sentence-lead", text: sentence(sequence, promoting[0]) }),
    promoting.length > 0 && listOf(promoting.map((pair) => edgeItem(pair, sequence.cause[pair]))),
    lit.roots.length > 0 && element("h3", { text: lit.roots.length === 1 ? "Root cause" : "Root causes, strongest chain first" }),
    lit.roots.length > 0 && listOf(lit.roots.map(chainItem), 4),
    despite.length > 0 && element("h3", { text: "Happened in spite of" }),
    despite.length > 0 && listOf(despite.map((pair) => edgeItem(pair, sequence.cause[pair]))),
    untestable.length > 0 && element("h3", { text: "Always so here" }),
    untestable.length > 0 && element("p", { class: "muted", text: "Hardly anything else could have stood in these places, so the log cannot say what would have happened otherwise. Nothing is claimed." }),
    untestable.length > 0 && untestableItems(untestable),
    !ends && element("h3", { text: "Effects" }),
    ends ? null : effects.length === 0 ? element("p", { class: "muted", text: "No later event depends on it at this threshold." })
      : listOf(effects.map((pair) => edgeItem(pair, sequence.effect[pair]))),
  ];
}

// A chain from a root to the event, one step below the other.
function chainItem(chain) {
  const { sequence } = current;
  const steps = [element("li", { class: "root" }, eventLink(chain.root))];
  for (const pair of chain.pairs) {
    const [was, would] = percentages(sequence.probability[pair], sequence.replaced[pair]);
    steps.push(element("li", { "data-pair": pair }, element("span", { class: "step", text: `${would} → ${was}, ${strengthWords(sequence.strength[pair])}` }), eventLink(sequence.effect[pair])));
  }
  return element("li", { class: "chain-item" },
    element("p", { class: "note", text: `${plural(chain.pairs.length, "link")}, weakest ${strengthWords(chain.weakest)}` }),
    element("ol", { class: "chain" }, ...steps));
}

function pairChosen(pair) {
  const { sequence } = current;
  const rows = [
    ["Strength", `${nats(sequence.strength[pair])} ± ${strengthWords(sequence.error[pair])}`],
    ["Lag", plural(sequence.lag[pair], "event")],
    ["Replacements tried", count(sequence.particles[pair])],
  ];
  if (!scoresOnly(sequence.settings)) {
    rows.unshift(["Ratio", likely(sequence.ratio(pair))]);
    rows.push(["Hidden-cause ratio", times(hiddenCauseRatio(Math.log(sequence.ratio(pair))))], ["Log ratio", Math.log(sequence.ratio(pair)).toFixed(2)]);
    if (sequence.overlap) rows.push(["Room for anything else (overlap)", overlapWords(sequence, pair)]);
  }
  if (sequence.times) rows.push(["Time between", significant(sequence.times[sequence.effect[pair]] - sequence.times[sequence.cause[pair]], 6)]);
  return [
    element("p", { class: "kicker", text: `${sequence.promotes(pair) ? "Edge, promoting" : "Edge, inhibiting"}${sequence.flags[pair] & HOW ? ", how it turns out" : ""}` }),
    element("p", { class: "sentence-lead big", text: sentence(sequence, pair) }),
    beforeAfter(sequence.probability[pair], sequence.replaced[pair], sequence.promotes(pair)),
    marks(pair),
    element("dl", { class: "facts" }, ...rows.map(([term, words]) => element("div", {}, element("dt", { text: term }), element("dd", { text: words })))),
    !scoresOnly(sequence.settings) && element("p", { class: "note", text: HIDDEN_CAUSE }),
    element("h3", { text: "Cause" }), eventLink(sequence.cause[pair]),
    element("h3", { text: "Effect" }), eventLink(sequence.effect[pair]),
    !sequence.promotes(pair) && element("p", { class: "muted", text: "The effect happened in spite of this cause: replaced by another event, it would typically have been more likely." }),
  ];
}

function typesChosen([cause, effect]) {
  const { sequence, lit } = current;
  const pairs = [...lit.pairs].sort((a, b) => sequence.strength[b] - sequence.strength[a]);
  return [
    element("p", { class: "kicker", text: "Type pair" }),
    element("h2", { class: "name", text: `${label(cause, 60)} → ${label(effect, 60)}` }),
    element("p", { class: "muted", text: `${plural(pairs.length, "edge")} in this sequence` }),
    listOf(pairs.map((pair) => element("li", { class: "edge-item", "data-pair": pair },
      element("button", { type: "button", class: "sentence", text: sentence(sequence, pair), onclick: () => select({ pair }) }), marks(pair)))),
  ];
}

function typeChosen(type) {
  const { sequence, graph } = current;
  const positions = [];
  sequence.events.forEach((other, position) => { if (other === type) positions.push(position); });
  return [
    ...heading("Event type", page.names[type]),
    element("p", { class: "muted", text: `${plural(positions.length, "occurrence")} in this sequence` }),
    listOf(positions.map((position) => element("li", { class: "starts" }, eventLink(position),
      element("span", { class: "note", text: `${plural(graph.causesOf(position).length, "cause")}, ${plural(graph.effectsOf(position).length, "effect")}` }))), 12),
  ];
}
