// The sequence as a line of events with an arc from each cause to its effects.
//
// Only what is near the window is drawn. Labels are shown where they fit; further out, only those of events that are
// lit or found. Of very many arcs in the window the strongest are drawn, and the note says so.

const MOST_ARCS = 1200;
const ARC_HEIGHT = 210;
const RIGHT = 40;
const LONGEST_LABEL = 20;

class Timeline {
  constructor(place) {
    this.view = shape("svg", { class: "timeline-view", role: "img", "aria-label": "Timeline of events with arcs from causes to effects" });
    this.spacer = element("div", { class: "timeline-spacer" }, this.view);
    this.box = element("div", { class: "timeline-box", tabindex: 0, id: "timeline-box", role: "group",
      "aria-label": "Timeline. Arrow keys move between events, up and down go to the strongest cause and effect, Escape clears." }, this.spacer);
    this.overview = shape("svg", { class: "overview", height: 34, preserveAspectRatio: "none", "aria-hidden": "true" });
    place.append(this.box, this.overview);
    this.spacing = null;
    this.redraw = oncePerFrame(() => this.draw());
    this.box.addEventListener("scroll", () => {
      this.moveBrush();
      if (this.box.scrollLeft < this.drawn.from || this.box.scrollLeft + this.box.clientWidth > this.drawn.to) this.redraw();
      this.arcs.setAttribute("transform", `translate(${-this.box.scrollLeft} 0)`);
    }, { passive: true });
    this.box.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 1.25 : 0.8, event.clientX - this.box.getBoundingClientRect().left);
    }, { passive: false });
    this.view.addEventListener("click", (event) => this.click(event));
    this.view.addEventListener("pointerover", (event) => this.hover(event.target.closest("[data-pair]")));
    this.view.addEventListener("pointerleave", () => this.hover(null));
    this.brushing();
    new ResizeObserver(() => this.redraw()).observe(this.box);
    listen("graph", () => {
      if (this.sequence !== current.sequence) {
        this.sequence = current.sequence;
        this.spacing = null;
        this.measure();
        this.box.scrollLeft = 0;
      }
      this.draw();
    });
    listen("selection", () => {
      this.show();
      this.draw();
    });
  }

  // Room for the longest name of the whole sequence, so that nothing jumps while scrolling.
  measure() {
    this.longest = 0;
    for (const type of new Set(this.sequence.events)) this.longest = Math.max(this.longest, [...label(type, LONGEST_LABEL)].length);
    this.left = 24 + this.longest * 5.6;
  }

  x(position) {
    return this.left + position * this.spacing;
  }

  // As wide as the window if labels fit, else as wide as labels need.
  fit() {
    const room = this.box.clientWidth - this.left - RIGHT;
    return room / Math.max(this.sequence.events.length - 1, 1);
  }

  zoom(factor, at = this.box.clientWidth / 2) {
    const position = (this.box.scrollLeft + at - this.left) / this.spacing;
    this.spacing = Math.min(Math.max(this.spacing * factor, Math.min(this.fit(), 20)), 160);
    this.draw();
    this.box.scrollLeft = this.left + position * this.spacing - at;
    this.draw();
  }

  fitAll() {
    this.spacing = this.fit();
    this.box.scrollLeft = 0;
    this.draw();
  }

  draw() {
    if (!this.sequence || this.box.clientWidth === 0) return;
    if (this.spacing === null) this.spacing = Math.min(Math.max(this.fit(), 20), 110);
    const { sequence } = this;
    const { shown, lit, matches } = current;
    const length = sequence.events.length;
    const width = Math.max(this.x(length - 1) + RIGHT, 1);
    this.spacer.style.width = `${Math.max(width, this.box.clientWidth)}px`;
    const window = this.box.clientWidth;
    const left = this.box.scrollLeft;
    this.drawn = { from: left - window / 2, to: left + window * 1.5 };
    const first = Math.max(Math.floor((this.drawn.from - this.left) / this.spacing), 0);
    const last = Math.min(Math.ceil((this.drawn.to - this.left) / this.spacing), length - 1);

    const labels = this.labels(first, last);
    // Arcs are as tall as they are wide, as far as there is room.
    this.tallest = Math.min(Math.max(26 + 0.55 * sequence.longestLag * this.spacing, 90), ARC_HEIGHT);
    const base = this.tallest + 18;
    const height = base + labels.height + 16;
    this.view.setAttribute("width", window);
    this.view.setAttribute("height", height);
    this.base = base;

    let inside = shown.filter((pair) => sequence.effect[pair] >= first && sequence.cause[pair] <= last);
    this.cut = 0;
    if (inside.length > MOST_ARCS) {
      this.cut = inside.length - MOST_ARCS;
      const wanted = (pair) => (lit && lit.pairs.has(pair) ? Infinity : sequence.strength[pair]);
      inside = inside.sort((a, b) => wanted(b) - wanted(a)).slice(0, MOST_ARCS);
    }
    // Weak arcs first, so that strong ones lie on top; lit ones above all.
    inside.sort((a, b) => (lit ? lit.pairs.has(a) - lit.pairs.has(b) : 0) || sequence.strength[a] - sequence.strength[b]);
    const arcs = inside.map((pair) => this.arc(pair, lit));
    const lines = shape("line", { class: "axis", x1: this.x(0), x2: this.x(length - 1), y1: base, y2: base });
    const nodes = [];
    for (let position = first; position <= last; position += 1) nodes.push(this.node(position, lit, matches, labels));
    this.arcs = shape("g", { transform: `translate(${-left} 0)` }, lines, shape("g", { class: "arcs" }, ...arcs), shape("g", { class: "nodes" }, ...nodes));
    this.view.classList.toggle("has-choice", lit !== null);
    this.view.replaceChildren(markers("arc"), this.arcs);
    this.drawOverview(width);
    this.note();
  }

  // Which labels there are, and how they lie: level where they fit, slanted where not, only the lit ones where even
  // that is too dense.
  labels(first, last) {
    const dense = this.spacing < 13;
    const { lit, matches } = current;
    const texts = new Map();
    const chosen = state.selection && state.selection.event !== undefined ? state.selection.event : -1;
    let taken = -Infinity;
    for (let position = first; position <= last; position += 1) {
      if (dense && position !== chosen) {
        if (!(lit && lit.events.has(position)) && !matches.has(position)) continue;
        const x = this.x(position);
        if (x - taken < 13 || (chosen >= 0 && Math.abs(x - this.x(chosen)) < 13)) continue;
      }
      taken = this.x(position);
      const text = label(this.sequence.events[position], LONGEST_LABEL);
      texts.set(position, text);
    }
    const level = !dense && this.longest * 7 + 8 < this.spacing;
    const height = level ? 34 : dense && texts.size === 0 ? 10 : 26 + this.longest * 5.2;
    return { texts, level, height };
  }

  arc(pair, lit) {
    const { sequence } = this;
    const [from, to] = [this.x(sequence.cause[pair]), this.x(sequence.effect[pair])];
    const lag = sequence.lag[pair];
    const height = (14 + (this.tallest - 14) * Math.pow(lag / sequence.longestLag, 0.85)) * (4 / 3);
    const y = this.base - 5;
    const fine = Math.min(Math.max(this.spacing / 14, 0.25), 1); // thin where arcs stand close
    const kind = sequence.promotes(pair) ? "promoting" : "despite";
    const on = lit ? (lit.pairs.has(pair) ? " lit" : " dim") : "";
    const chain = lit && lit.chain.has(pair) ? " chain" : "";
    const path = shape("path", {
      class: `arc ${kind}${on}${chain}`,
      d: `M${from.toFixed(1)} ${y}C${from.toFixed(1)} ${(y - height).toFixed(1)} ${to.toFixed(1)} ${(y - height).toFixed(1)} ${to.toFixed(1)} ${y - 1}`,
      "stroke-width": (weight(sequence.strength[pair]) * fine).toFixed(2),
      "stroke-opacity": (opacity(sequence.strength[pair]) * Math.sqrt(fine)).toFixed(2),
      "marker-end": fine < 0.5 ? null : `url(#arc-${kind})`,
      "data-pair": pair,
    });
    const size = scoresOnly(sequence.settings) ? "" : ` It was ${likely(sequence.ratio(pair))}${sequence.overlap ? `, with room ${overlapWords(sequence, pair)}` : ""}.`;
    path.append(shape("title", { text: sentence(sequence, pair) + size }));
    return path;
  }

  node(position, lit, matches, labels) {
    const x = this.x(position);
    const chosen = state.selection && state.selection.event === position;
    const causes = current.graph.causesOf(position).length;
    const effects = current.graph.effectsOf(position).length;
    const name = this.sequence.nameAt(position);
    const classes = ["node"];
    if (name === END) classes.push("end");
    if (causes + effects === 0) classes.push("alone");
    if (effects > 0 && causes === 0) classes.push("root");
    if (chosen) classes.push("chosen");
    if (lit) classes.push(lit.events.has(position) ? "lit" : "dim");
    if (matches.has(position)) classes.push("match");
    const small = this.spacing < 7;
    const radius = chosen ? 7 : small ? Math.max(this.spacing / 3, 1) : 4.5;
    const text = labels.texts.get(position);
    const group = shape("g", { class: classes.join(" "), "data-event": position, transform: `translate(${x.toFixed(1)} ${this.base})` },
      shape("title", { text: `${position}: ${name.slice(0, 400)}` }),
      shape("rect", { class: "target", x: -Math.max(this.spacing / 2, 1), y: -10, width: Math.max(this.spacing, 2), height: labels.height + 16 }),
      shape("circle", { r: radius }));
    if (text !== undefined) {
      const turned = labels.level ? { x: 0, y: 22, "text-anchor": "middle" } : { x: -4, y: 14, "text-anchor": "end", transform: "rotate(-42 0 10)" };
      group.append(shape("text", { ...turned, text }));
    }
    return group;
  }

  click(event) {
    const pair = event.target.closest("[data-pair]");
    const node = event.target.closest("[data-event]");
    if (pair) select({ pair: Number(pair.dataset.pair) });
    else if (node) select({ event: Number(node.dataset.event) });
    else select(null);
  }

  hover(target) {
    hoverPair(target ? Number(target.dataset.pair) : null);
  }

  // Scrolls to what was chosen.
  show() {
    const { selection } = state;
    if (!selection || this.spacing === null) return;
    const position = selection.event ?? (selection.pair !== undefined ? this.sequence.effect[selection.pair] : null);
    if (position === null) return;
    const x = this.x(position);
    const { scrollLeft, clientWidth } = this.box;
    if (x < scrollLeft + 60 || x > scrollLeft + clientWidth - 60) this.box.scrollLeft = x - clientWidth / 2;
  }

  // The whole sequence in one strip: how many edges come in and go out at each event.
  drawOverview(width) {
    const window = this.box.clientWidth;
    const needed = width > window * 1.1;
    this.overview.classList.toggle("unneeded", !needed);
    if (!needed) return;
    const { sequence } = this;
    const scale = window / width;
    this.overview.setAttribute("width", window);
    this.overview.setAttribute("viewBox", `0 0 ${window} 34`);
    if (this.overviewOf !== current.shown || this.overviewWidth !== width) {
      this.overviewOf = current.shown;
      this.overviewWidth = width;
      const columns = Math.min(Math.floor(window / 2), sequence.events.length);
      const bins = new Array(columns).fill(0);
      for (const pair of current.shown) bins[Math.floor((sequence.effect[pair] / sequence.events.length) * columns)] += sequence.strength[pair];
      const tallest = Math.max(...bins, 1e-9);
      const step = (this.x(sequence.events.length - 1) - this.left) * scale / columns;
      const path = bins.map((bin, place) => {
        const x = this.left * scale + place * step;
        const height = bin > 0 ? 2 + 26 * Math.sqrt(bin / tallest) : 0;
        return `M${x.toFixed(1)} 32V${(32 - height).toFixed(1)}H${(x + Math.max(step - 0.5, 0.5)).toFixed(1)}V32Z`;
      }).join("");
      this.brush = shape("rect", { class: "brush", y: 1, height: 32, rx: 3 });
      this.overview.replaceChildren(shape("path", { class: "bins", d: path }), this.brush);
    }
    this.moveBrush();
  }

  moveBrush() {
    if (!this.brush) return;
    const scale = this.box.clientWidth / this.box.scrollWidth;
    this.brush.setAttribute("x", this.box.scrollLeft * scale);
    this.brush.setAttribute("width", Math.max(this.box.clientWidth * scale, 6));
  }

  brushing() {
    const go = (event) => {
      const share = (event.clientX - this.overview.getBoundingClientRect().left) / this.box.clientWidth;
      this.box.scrollLeft = share * this.box.scrollWidth - this.box.clientWidth / 2;
    };
    this.overview.addEventListener("pointerdown", (event) => {
      this.overview.setPointerCapture(event.pointerId);
      go(event);
    });
    this.overview.addEventListener("pointermove", (event) => {
      if (event.buttons) go(event);
    });
  }

  note() {
    const { sequence } = this;
    const parts = [plural(sequence.events.length, "event")];
    if (this.cut > 0) parts.push(`the ${count(MOST_ARCS)} strongest arcs in view drawn, ${count(this.cut)} weaker not`);
    if (sequence.skipped > 0) parts.push(`${plural(sequence.skipped, "event")} unknown to the model left out`);
    if (sequence.excluded > 0) parts.push(`${plural(sequence.excluded, "pair")} not tested by prior knowledge`);
    byId("timeline-note").textContent = parts.join(" · ");
  }
}

function weight(strength) {
  return 1 + 3.2 * Math.min(Math.sqrt(strength / 1.5), 1.2);
}

function opacity(strength) {
  return 0.34 + 0.6 * Math.min(Math.sqrt(strength / 0.8), 1);
}

function markers(name) {
  const head = (kind) => shape("marker", { id: `${name}-${kind}`, viewBox: "0 0 8 8", refX: 6.5, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" },
    shape("path", { class: `head ${kind}`, d: "M0.5 0.8L7.2 4L0.5 7.2Z" }));
  return shape("defs", {}, head("promoting"), head("despite"));
}

// Lights the same edge wherever it is drawn.
let hovered = null;
function hoverPair(pair) {
  if (pair === hovered) return;
  hovered = pair;
  for (const old of document.querySelectorAll(".hover")) old.classList.remove("hover");
  if (pair !== null) for (const same of document.querySelectorAll(`[data-pair="${pair}"]`)) same.classList.add("hover");
}
