// Root causes of one event.
//
// Only edges that were kept and that promote their effect count. The chain of an ancestor is the path to the event
// whose weakest edge is strongest; among equals the one with fewest links; among equals the one that steps to the
// smaller position first. A root is an ancestor that nothing promotes. Roots are ranked by the weakest edge of their
// chain, then by their direct edge to the event, then by position.

function rootCauses(graph, event) {
  const { sequence } = graph;
  const promoting = (pair) => sequence.logRatio[pair] > 0;
  const causes = (position) => graph.causesOf(position).filter(promoting);

  // Widest paths, backwards: an effect is done before its causes, because it comes later.
  const width = new Map([[event, Infinity]]);
  for (let position = event; position >= 0; position -= 1) {
    if (!width.has(position)) continue;
    for (const pair of causes(position)) {
      const cause = sequence.cause[pair];
      const through = Math.min(width.get(position), sequence.strength[pair]);
      if (through > (width.get(cause) ?? -Infinity)) width.set(cause, through);
    }
  }

  const chains = [];
  for (const [root, weakest] of width) {
    if (root === event || causes(root).length > 0) continue;
    const direct = causes(event).find((pair) => sequence.cause[pair] === root);
    chains.push({
      root,
      weakest,
      direct: direct === undefined ? 0 : sequence.strength[direct],
      pairs: shortestPath(graph, root, event, weakest),
    });
  }
  chains.sort((a, b) => b.weakest - a.weakest || b.direct - a.direct || a.root - b.root);
  return chains;
}

// Fewest links among promoting edges of at least this strength; of equals, the smaller position first.
function shortestPath(graph, root, event, least) {
  const { sequence } = graph;
  const usable = (pair) => sequence.logRatio[pair] > 0 && sequence.strength[pair] >= least;
  const links = new Map([[event, 0]]);
  let front = [event];
  while (front.length > 0 && !links.has(root)) {
    const next = [];
    for (const position of front) {
      for (const pair of graph.causesOf(position).filter(usable)) {
        const cause = sequence.cause[pair];
        if (links.has(cause)) continue;
        links.set(cause, links.get(position) + 1);
        next.push(cause);
      }
    }
    front = next;
  }
  const path = [];
  let position = root;
  while (position !== event) {
    const left = links.get(position);
    const steps = graph.effectsOf(position).filter((pair) => usable(pair) && links.get(sequence.effect[pair]) === left - 1);
    const step = steps.reduce((best, pair) => (sequence.effect[pair] < sequence.effect[best] ? pair : best));
    path.push(step);
    position = sequence.effect[step];
  }
  return path;
}
