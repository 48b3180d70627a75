// A graph over event types, at the places that the layered layout gave them. Edges appear and vanish with the
// threshold; nodes keep their places, so that the eye can follow.

const NODE_HEIGHT = 22;
const SMALLEST_READABLE = 0.88;
const TALLEST = 700;

class TypeGraph {
  // source: () => {layout, edges, maximum}; lit: () => null or {types, edge(edge)}; choose({type} | {edge} | null).
  constructor(place, { name, source, lit, matches, choose, label }) {
    Object.assign(this, { name, source, lit, matches, choose });
    this.view = shape("svg", { class: "graph-view", tabindex: 0, role: "img", "aria-label": label, id: `${name}-view` });
    this.most = element("input", { type: "number", min: 1, step: 10, "aria-label": "Edges shown at most" });
    this.wanted = null; // as many as are legible
    this.most.addEventListener("change", () => {
      this.wanted = Number(this.most.value) > 0 ? Number(this.most.value) : null;
      this.draw();
    });
    this.left = element("span", { class: "note" });
    this.limit = element("label", { class: "limit" }, "Strongest ", this.most, this.left);
    const tools = element("div", { class: "tools graph-tools" },
      this.limit,
      toolButton("−", "Zoom out", () => this.zoom(0.8)), toolButton("+", "Zoom in", () => this.zoom(1.25)),
      toolButton("⤢", "Show all of the graph", () => this.fit(0)));
    this.empty = element("p", { class: "empty", text: "No edges at this threshold." });
    place.append(element("div", { class: "graph-box" }, this.view, tools, this.empty));
    this.camera = { scale: 1, x: 0, y: 0 };
    this.view.addEventListener("click", (event) => this.click(event));
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = this.view.getBoundingClientRect();
      this.zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    this.panning();
    this.width = 0;
    new ResizeObserver(() => {
      if (this.view.clientWidth !== this.width) this.fit();
    }).observe(this.view);
  }

  // Draws the edges of the source; the places change only with the layout.
  draw() {
    const { layout, edges, maximum } = this.source();
    const other = this.layout !== layout;
    if (other) {
      this.layout = layout;
      this.nodeWidth = layout.node_width;
      this.places = new Map(layout.types.map((type, index) => [type, { x: layout.x[index], y: layout.y[index] }]));
      this.routes = new Map(layout.routes.map(([from, to, ...points]) => [`${layout.types[from]} ${layout.types[to]}`, points]));
    }
    const most = this.wanted ?? layout.legible;
    this.most.value = most;
    const drawn = edges.filter((edge) => this.places.has(edge.cause) && this.places.has(edge.effect)).slice(0, most);
    this.limit.hidden = edges.length <= layout.legible;
    this.left.textContent = ` of ${count(edges.length)}`;
    this.drawn = drawn;
    const types = new Set(drawn.flatMap((edge) => [edge.cause, edge.effect]));
    this.types = types;
    this.ports(drawn);
    const paths = [...drawn].reverse().map((edge) => this.edge(edge, maximum));
    const nodes = [...types].map((type) => this.node(type));
    const questions = drawn.filter((edge) => edge.how).map((edge) => shape("text", { class: "question", "text-anchor": "middle", x: edge.middle.x, y: edge.middle.y + 3, text: "how" }));
    this.empty.hidden = drawn.length > 0;
    this.group = shape("g", {}, shape("g", { class: "links" }, ...paths), shape("g", { class: "questions" }, ...questions), shape("g", { class: "boxes" }, ...nodes));
    this.view.replaceChildren(markers(this.name), this.group);
    if (other) this.fit();
    else this.place();
    this.light();
  }

  // Where on the side of its box each edge begins or ends: sorted by where it goes, so that edges do not cross there.
  ports(edges) {
    const sides = new Map();
    const put = (type, side, edge, end, towards) => {
      const key = `${type} ${side}`;
      if (!sides.has(key)) sides.set(key, []);
      sides.get(key).push({ edge, end, towards });
    };
    for (const edge of edges) {
      if (edge.cause === edge.effect) continue;
      const [from, to] = [this.turned(this.places.get(edge.cause)), this.turned(this.places.get(edge.effect))];
      edge.back = to.along < from.along - 1;
      edge.level = Math.abs(to.along - from.along) <= 1;
      const route = this.route(edge);
      put(edge.cause, edge.back ? "before" : "after", edge, "start", (route[0] || to).across);
      put(edge.effect, edge.back || edge.level ? "after" : "before", edge, "end", (route[route.length - 1] || from).across);
    }
    const [room, widest] = this.layout.down ? [this.nodeWidth - 20, 12] : [NODE_HEIGHT - 6, 5];
    for (const list of sides.values()) {
      list.sort((a, b) => a.towards - b.towards);
      const step = Math.min(widest, room / Math.max(list.length - 1, 1));
      list.forEach(({ edge, end }, index) => {
        edge[end] = (index - (list.length - 1) / 2) * step;
      });
    }
  }

  // A point by how far it lies along and across the layers, and back.
  turned({ x, y }) {
    return this.layout.down ? { along: y, across: x } : { along: x, across: y };
  }

  point(along, across) {
    return this.layout.down ? { x: across, y: along } : { x: along, y: across };
  }

  at(along, across) {
    return this.layout.down ? `${across} ${along}` : `${along} ${across}`;
  }

  // The points that an edge passes between its ends.
  route(edge) {
    const flat = this.routes.get(`${edge.cause} ${edge.effect}`) || [];
    const points = [];
    for (let index = 0; index < flat.length; index += 2) points.push(this.turned({ x: flat[index], y: flat[index + 1] }));
    return points;
  }

  path(edge) {
    if (edge.cause === edge.effect) {
      const { x, y } = this.places.get(edge.cause);
      edge.middle = { x: x + this.nodeWidth / 2 - 20, y: y - NODE_HEIGHT / 2 - 15 };
      return `M${x + this.nodeWidth / 2 - 32} ${y - NODE_HEIGHT / 2}c-4 -20 28 -20 24 -2`;
    }
    const [from, to] = [this.turned(this.places.get(edge.cause)), this.turned(this.places.get(edge.effect))];
    const half = (this.layout.down ? NODE_HEIGHT : this.nodeWidth) / 2;
    const start = { along: from.along + (edge.back ? -half : half), across: from.across + edge.start };
    const end = { along: to.along + (edge.back || edge.level ? half + 2 : -half - 2), across: to.across + edge.end };
    let path = `M${this.at(start.along, start.across)}`;
    if (edge.level) {
      const out = start.along + 34 + Math.abs(end.across - start.across) / 12;
      edge.middle = this.point((start.along + end.along + 6 * out) / 8, (start.across + end.across) / 2);
      return `${path}C${this.at(out, start.across)} ${this.at(out, end.across)} ${this.at(end.along, end.across)}`;
    }
    let last = start;
    const points = [...this.route(edge), end];
    const halfway = Math.floor((points.length - 1) / 2);
    points.forEach((point, index) => {
      if (index === halfway) edge.middle = this.point((last.along + point.along) / 2, (last.across + point.across) / 2);
      const middle = (last.along + point.along) / 2;
      path += `C${this.at(middle, last.across)} ${this.at(middle, point.across)} ${this.at(point.along, point.across)}`;
      last = point;
    });
    return path;
  }

  edge(edge, maximum) {
    const kind = edge.logRatio < 0 ? "despite" : "promoting";
    const share = Math.sqrt(Math.max(edge.strength, 0) / Math.max(maximum, 1e-9));
    const path = shape("path", {
      class: `link ${kind}`, d: this.path(edge), "stroke-width": (0.9 + 2.6 * share).toFixed(2), "stroke-opacity": (0.35 + 0.6 * share).toFixed(2),
      "marker-end": `url(#${this.name}-${kind})`, "data-types": `${edge.cause} ${edge.effect}`,
    }, shape("title", { text: `${page.names[edge.cause].slice(0, 200)} → ${page.names[edge.effect].slice(0, 200)}${edge.words ? `\n${edge.words()}` : ""}` }));
    edge.path = path;
    return path;
  }

  node(type) {
    const { x, y } = this.places.get(type);
    const name = page.names[type];
    return shape("g", { class: "box", "data-type": type, transform: `translate(${x} ${y})` },
      shape("title", { text: name.slice(0, 400) }),
      shape("rect", { x: -this.nodeWidth / 2, y: -NODE_HEIGHT / 2, width: this.nodeWidth, height: NODE_HEIGHT, rx: 6 }),
      shape("text", { "text-anchor": "middle", y: 4, text: label(type, 18) }));
  }

  // Moves the view to a type that was chosen elsewhere.
  follow(type) {
    const place = this.places.get(type);
    if (!place || !this.types.has(type) || this.width === 0) return;
    const [x, y] = [place.x * this.camera.scale + this.camera.x, place.y * this.camera.scale + this.camera.y];
    const height = this.view.clientHeight;
    if (x > 60 && x < this.width - 60 && y > 20 && y < height - 50) return;
    this.camera.x += this.width / 2 - x;
    this.camera.y += height / 2 - y;
    this.place();
  }

  // Lights what is chosen, without drawing again.
  light() {
    const lit = this.lit();
    if (lit && lit.chosen !== null) this.follow(lit.chosen);
    const matches = this.matches();
    this.view.classList.toggle("has-choice", lit !== null);
    for (const edge of this.drawn) {
      edge.path.classList.toggle("lit", lit !== null && lit.edge(edge));
      edge.path.classList.toggle("dim", lit !== null && !lit.edge(edge));
    }
    for (const box of this.group.lastChild.children) {
      const type = Number(box.dataset.type);
      box.classList.toggle("lit", lit !== null && lit.types.has(type));
      box.classList.toggle("chosen", lit !== null && lit.chosen === type);
      box.classList.toggle("dim", lit !== null && !lit.types.has(type));
      box.classList.toggle("match", matches.has(type));
    }
  }

  bounds() {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const type of this.types || []) {
      const { x, y } = this.places.get(type);
      left = Math.min(left, x - this.nodeWidth / 2);
      right = Math.max(right, x + this.nodeWidth / 2 + 24);
      top = Math.min(top, y - NODE_HEIGHT / 2 - 18);
      bottom = Math.max(bottom, y + NODE_HEIGHT / 2);
    }
    return left === Infinity ? { left: 0, top: 0, width: 300, height: 120 } : { left, top, width: right - left, height: bottom - top };
  }

  // All of the graph if it can be read then, otherwise its upper left at a size that can.
  fit(smallest = SMALLEST_READABLE) {
    this.width = this.view.clientWidth;
    if (this.width === 0) return;
    const bounds = this.bounds();
    const margin = 16;
    const wide = Math.min((this.width - 2 * margin) / bounds.width, 1.1);
    const tall = (TALLEST - 64) / bounds.height;
    const scale = Math.max(Math.min(wide, tall), Math.min(smallest, 1.1));
    const height = Math.min(Math.max(bounds.height * scale + 64, 200), TALLEST);
    this.view.setAttribute("height", height);
    this.camera = {
      scale,
      x: bounds.width * scale <= this.width ? (this.width - bounds.width * scale) / 2 - bounds.left * scale : margin - bounds.left * scale,
      y: bounds.height * scale <= height - 40 ? (height - 40 - bounds.height * scale) / 2 + 4 - bounds.top * scale : margin - bounds.top * scale,
    };
    this.place();
  }

  zoom(factor, x = this.view.clientWidth / 2, y = this.view.clientHeight / 2) {
    const scale = Math.min(Math.max(this.camera.scale * factor, 0.08), 3);
    const ratio = scale / this.camera.scale;
    this.camera = { scale, x: x - (x - this.camera.x) * ratio, y: y - (y - this.camera.y) * ratio };
    this.place();
  }

  place() {
    const { scale, x, y } = this.camera;
    this.group.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${scale.toFixed(4)})`);
    this.view.classList.toggle("far", scale < 0.45);
  }

  panning() {
    let last = null;
    this.moved = 0;
    this.view.addEventListener("pointerdown", (event) => {
      last = [event.clientX, event.clientY];
      this.moved = 0;
    });
    this.view.addEventListener("pointermove", (event) => {
      if (!last || event.buttons === 0) return;
      const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
      this.moved += Math.abs(dx) + Math.abs(dy);
      if (this.moved < 4) return;
      this.view.setPointerCapture(event.pointerId);
      last = [event.clientX, event.clientY];
      this.camera.x += dx;
      this.camera.y += dy;
      this.place();
    });
    this.view.addEventListener("pointerup", () => { last = null; });
  }

  click(event) {
    if (this.moved >= 4) return;
    const box = event.target.closest("[data-type]");
    const link = event.target.closest("[data-types]");
    if (box) this.choose({ type: Number(box.dataset.type) });
    else if (link) this.choose({ edge: this.drawn.find((edge) => edge.path === link) });
    else this.choose(null);
  }

  key(event) {
    const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    if (step) {
      this.camera.x += step[0];
      this.camera.y += step[1];
      this.place();
    } else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

// The type graph of the sequence.
function sequenceGraph() {
  const graph = new TypeGraph(byId("graph"), {
    name: "types",
    label: "Graph of event types in this sequence",
    source: () => {
      const edges = current.shownGraph.summary();
      return { layout: current.sequence.layout, edges, maximum: Math.max(edges.length > 0 ? edges[0].strength : 0, 0.5) };
    },
    lit: () => {
      const { lit, sequence } = current;
      if (!lit) return null;
      const chosen = state.selection.type ?? (state.selection.event !== undefined ? sequence.events[state.selection.event] : null);
      return {
        chosen,
        types: new Set([...lit.events].map((position) => sequence.events[position])),
        edge: (edge) => edge.pairs.some((pair) => lit.pairs.has(pair)),
      };
    },
    matches: () => new Set([...current.matches].map((position) => current.sequence.events[position])),
    choose: (choice) => {
      if (!choice) select(null);
      else if (choice.edge) select(choice.edge.pairs.length === 1 ? { pair: choice.edge.pairs[0] } : { types: [choice.edge.cause, choice.edge.effect] });
      else select({ type: choice.type });
    },
  });
  listen("graph", () => {
    graph.draw();
    byId("graph-note").textContent = `${plural(graph.types.size, "type")}, ${plural(current.shownGraph.summary().length, "type pair")}`;
  });
  listen("selection", () => graph.light());
}

// The graph of all sequences.
function populationGraph() {
  const graph = new TypeGraph(byId("population-graph"), {
    name: "population",
    label: "Graph of event types across sequences",
    source: () => {
      const edges = populationEdges();
      return { layout: population.layout, edges, maximum: edges.length > 0 ? edges[0].strength : 1 };
    },
    lit: () => {
      const chosen = state.populationSelection;
      if (!chosen) return null;
      const edges = chosen.edge ? [chosen.edge] : populationEdges().filter((edge) => edge.cause === chosen.type || edge.effect === chosen.type);
      const set = new Set(edges);
      const types = new Set(edges.flatMap((edge) => [edge.cause, edge.effect]));
      if (chosen.type !== undefined) types.add(chosen.type);
      return { chosen: chosen.type ?? null, types, edge: (edge) => set.has(edge) };
    },
    matches: () => {
      const words = state.query.trim().toLowerCase();
      return new Set(words ? population.layout.types.filter((type) => page.names[type].toLowerCase().includes(words)) : []);
    },
    choose: selectPopulation,
  });
  for (const edge of population.edges) edge.words = () => populationFacts(edge);
  let version = null;
  listen("population", () => {
    if (version !== populationVersion) {
      version = populationVersion;
      graph.draw();
    } else graph.light();
    byId("population-note").textContent = `${plural(population.sequences, "sequence")}, ${plural(graph.types.size, "type")}`
      + (population.left_out > 0 ? ` · ${count(population.left_out)} weaker pairs are not in this page` : "");
  });
  listen("graph", () => {
    if (graph.drawn) graph.light();
  });
}
