//! A layered drawing of a directed graph, causes to the left of their effects, or above them where that fits a page
//! better.
//!
//! Sugiyama's scheme, on the strongest edges: each weakly connected part is laid out on its own –
//!
//! 1. cycles: edges are taken in order of weight, and one that would close a cycle is turned around (`cycles`);
//! 2. layers: longest paths, then nodes move to where their edges are shortest (`layers`);
//! 3. order: long edges get a dummy in every layer they pass; barycenter sweeps, fewest crossings kept (`order`);
//! 4. coordinates: least squares with a least distance, by pooling (`coordinates`);
//!
//! – and the parts are packed onto shelves. With `E` edges, `n` nodes and dummies: cycles cost `O(E²)`, a sweep
//! `O(n log n)`, so that only some hundred edges take part; the others are drawn along the places that these give.

mod coordinates;
mod cycles;
mod layers;
mod order;
mod shelves;

use rustc_hash::FxHashMap;

/// Height of a node.
pub const NODE_HEIGHT: f64 = 22.0;
/// Letters of a name that a node shows at most.
pub const NODE_LETTERS: usize = 18;
/// Between layers, for edges to cross in.
const LAYER_GAP: f64 = 52.0;
/// The page that a drawing should fit.
const PAGE: (f64, f64) = (1000.0, 640.0);
/// Between nodes of a layer.
const ROW_GAP: f64 = 14.0;
/// A dummy takes this much room: lines may lie closer than nodes.
const DUMMY: f64 = 4.0;
/// Between parts that no edge joins.
const PART_GAP: f64 = 36.0;

/// An edge to lay out, between node indices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connection {
    /// The cause.
    pub from: usize,
    /// The effect.
    pub to: usize,
    /// How much it matters: strong edges keep their direction and become short.
    pub weight: f64,
}

/// A point of the drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Downwards.
    pub y: f64,
}

/// Where everything goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The centre of each node.
    pub nodes: Vec<Point>,
    /// The width of every node.
    pub node_width: f64,
    /// Whether effects stand below their causes rather than to the right of them.
    pub down: bool,
    /// For each connection that took part, the points it passes between its ends, from cause to effect.
    pub routes: FxHashMap<(usize, usize), Vec<Point>>,
    /// Width of the drawing.
    pub width: f64,
    /// Height of the drawing.
    pub height: f64,
}

impl Layout {
    /// How many connections can be told apart in a drawing of `count` nodes.
    pub fn legible(count: usize) -> usize {
        (3 * count).clamp(30, 120)
    }

    /// Lays out `count` nodes by their strongest connections, as many as are [legible](Self::legible). A connection of a node with itself takes no part.
    /// Nodes that no connection reaches stand below the rest, beside the first of their `hints`, so that a graph that
    /// grows by weaker edges need not be laid out again. `letters` is the length of the longest name.
    pub fn new(count: usize, letters: usize, connections: &[Connection], hints: &[Connection]) -> Self {
        let mut strongest: Vec<Connection> =
            connections.iter().copied().filter(|connection| connection.from != connection.to).collect();
        strongest.sort_by(|a, b| b.weight.total_cmp(&a.weight)); // stable: equals stay in the order given
        let drawn = spanning(count, &strongest, Self::legible(count));
        let node_width = 16.0 + 6.7 * letters.clamp(4, NODE_LETTERS) as f64;
        let across = Self::directed(count, &drawn, Grain { node_width, down: false });
        let mut best = across;
        if best.fit() < 1.0 {
            let down = Self::directed(count, &drawn, Grain { node_width, down: true });
            if down.fit() > best.fit() {
                best = down;
            }
        }
        best.place_the_rest(&drawn, hints);
        best
    }

    /// How much of its size a drawing keeps on a page.
    fn fit(&self) -> f64 {
        (PAGE.0 / self.width.max(1.0)).min(PAGE.1 / self.height.max(1.0)).min(1.0)
    }

    fn directed(count: usize, drawn: &[Connection], grain: Grain) -> Self {
        let Grain { node_width, down } = grain;
        let mut layout = Self { nodes: vec![Point::default(); count], node_width, down, ..Self::default() };
        let parts = parts_of(count, drawn).into_iter().map(|(members, edges)| Part::new(members, &edges, grain));
        let mut parts: Vec<Part> = parts.collect();
        shelves::pack(&mut parts, grain);
        for part in parts {
            layout.width = layout.width.max(part.corner.x + part.width);
            layout.height = layout.height.max(part.corner.y + part.height);
            let moved = |point: Point| Point { x: point.x + part.corner.x, y: point.y + part.corner.y };
            for (node, place) in part.members.iter().zip(&part.places) {
                layout.nodes[*node] = moved(*place);
            }
            for (pair, points) in part.routes {
                layout.routes.insert(pair, points.into_iter().map(moved).collect());
            }
        }
        layout
    }

    /// Rows below the drawing for nodes without an edge.
    fn place_the_rest(&mut self, drawn: &[Connection], hints: &[Connection]) {
        let count = self.nodes.len();
        let step = self.node_width + if self.down { ROW_GAP } else { LAYER_GAP };
        let mut placed = vec![false; count];
        for connection in drawn {
            placed[connection.from] = true;
            placed[connection.to] = true;
        }
        if placed.iter().all(|placed| *placed) {
            return;
        }
        let columns = ((self.width / step).ceil() as usize).max(count.min(4)).max(1);
        let top = if self.height > 0.0 { self.height + PART_GAP } else { 0.0 };
        let mut filled = vec![0usize; columns];
        for node in 0..count {
            if placed[node] {
                continue;
            }
            // The column to the right of a cause, or to the left of an effect, if that stands already.
            let wish = hints.iter().find_map(|hint| {
                let column = |other: usize| ((self.nodes[other].x / step).floor() as usize).min(columns - 1);
                match () {
                    () if hint.to == node && placed[hint.from] => Some((column(hint.from) + 1).min(columns - 1)),
                    () if hint.from == node && placed[hint.to] => Some(column(hint.to).saturating_sub(1)),
                    () => None,
                }
            });
            let emptiest = (0..columns).min_by_key(|column| filled[*column]).unwrap_or(0);
            let column = wish.filter(|wish| filled[*wish] <= filled[emptiest] + 2).unwrap_or(emptiest);
            let y = top + filled[column] as f64 * (NODE_HEIGHT + ROW_GAP) + NODE_HEIGHT / 2.0;
            self.nodes[node] = Point { x: column as f64 * step + self.node_width / 2.0, y };
            filled[column] += 1;
            self.height = self.height.max(y + NODE_HEIGHT / 2.0);
            self.width = self.width.max(self.nodes[node].x + self.node_width / 2.0);
        }
    }
}

/// The sizes of a drawing, by the way it runs: *along* it from layer to layer, *across* it within them.
#[derive(Clone, Copy, Debug)]
struct Grain {
    node_width: f64,
    down: bool,
}

impl Grain {
    /// How far a node reaches along.
    fn depth(self) -> f64 {
        if self.down { NODE_HEIGHT } else { self.node_width }
    }

    /// How far it reaches across.
    fn breadth(self) -> f64 {
        if self.down { self.node_width } else { NODE_HEIGHT }
    }

    /// From one layer to the next. Lines that run down need less room to turn.
    fn step(self) -> f64 {
        self.depth() + if self.down { 0.7 * LAYER_GAP } else { LAYER_GAP }
    }

    fn point(self, along: f64, across: f64) -> Point {
        if self.down { Point { x: across, y: along } } else { Point { x: along, y: across } }
    }
}

/// The strongest `most`, and beyond them each that reaches a node no stronger one does: leaving out edges must not
/// leave out nodes.
fn spanning(count: usize, strongest: &[Connection], most: usize) -> Vec<Connection> {
    let mut reached = vec![false; count];
    let mut drawn = Vec::new();
    for (rank, connection) in strongest.iter().enumerate() {
        if rank < most || !reached[connection.from] || !reached[connection.to] {
            reached[connection.from] = true;
            reached[connection.to] = true;
            drawn.push(*connection);
        }
    }
    drawn
}

/// Who speaks for the part that a node belongs to.
fn find(leader: &mut [usize], mut node: usize) -> usize {
    while leader[node] != node {
        leader[node] = leader[leader[node]];
        node = leader[node];
    }
    node
}

/// Weakly connected parts with their edges, largest first; edges by index into the members.
fn parts_of(count: usize, connections: &[Connection]) -> Vec<(Vec<usize>, Vec<Connection>)> {
    let mut leader: Vec<usize> = (0..count).collect();
    for connection in connections {
        let (a, b) = (find(&mut leader, connection.from), find(&mut leader, connection.to));
        leader[a.max(b)] = a.min(b);
    }
    let mut touched = vec![false; count];
    for connection in connections {
        touched[connection.from] = true;
        touched[connection.to] = true;
    }
    let mut numbers: FxHashMap<usize, usize> = FxHashMap::default();
    let mut parts: Vec<(Vec<usize>, Vec<Connection>)> = Vec::new();
    let mut inside = vec![0; count];
    for node in (0..count).filter(|node| touched[*node]) {
        let part = *numbers.entry(find(&mut leader, node)).or_insert_with(|| {
            parts.push((Vec::new(), Vec::new()));
            parts.len() - 1
        });
        inside[node] = parts[part].0.len();
        parts[part].0.push(node);
    }
    for connection in connections {
        let part = numbers[&find(&mut leader, connection.from)];
        let (from, to) = (inside[connection.from], inside[connection.to]);
        parts[part].1.push(Connection { from, to, weight: connection.weight });
    }
    parts.sort_by_key(|(members, _)| std::cmp::Reverse(members.len())); // stable
    parts
}

/// One connected part, laid out.
struct Part {
    members: Vec<usize>,
    places: Vec<Point>,
    routes: Vec<((usize, usize), Vec<Point>)>,
    width: f64,
    height: f64,
    corner: Point,
}

impl Part {
    fn new(members: Vec<usize>, connections: &[Connection], grain: Grain) -> Self {
        let directed = cycles::break_cycles(members.len(), connections);
        let layer = layers::assign(members.len(), &directed);
        let mut ladder = order::Ladder::new(&layer, &directed, grain);
        ladder.reduce_crossings();
        let across = coordinates::assign(&ladder);
        let along = |cell: usize| ladder.layer_of[cell] as f64 * grain.step() + grain.depth() / 2.0;
        let centre = |cell: usize| grain.point(along(cell), across[cell]);
        let places = (0..members.len()).map(centre).collect();
        let routes = directed
            .iter()
            .zip(&ladder.dummies)
            .map(|(edge, dummies)| {
                // Straight through the layer of a dummy, where nodes are.
                let mut points: Vec<Point> = dummies
                    .iter()
                    .flat_map(|dummy| {
                        let half = grain.depth() / 2.0;
                        [-half, half].map(|shift| grain.point(along(*dummy) + shift, across[*dummy]))
                    })
                    .collect();
                let mut ends = (members[edge.from], members[edge.to]);
                if edge.turned {
                    points.reverse();
                    ends = (ends.1, ends.0);
                }
                (ends, points)
            })
            .collect();
        let layers = layer.iter().max().map_or(0, |last| last + 1);
        let length = (layers.max(1) - 1) as f64 * grain.step() + grain.depth();
        let breadth = (0..across.len()).map(|cell| across[cell] + ladder.breadth(cell) / 2.0).fold(0.0, f64::max);
        let Point { x: width, y: height } = grain.point(length, breadth);
        Self { members, places, routes, width, height, corner: Point::default() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn graph() -> impl Strategy<Value = (usize, Vec<Connection>)> {
        (2usize..40).prop_flat_map(|count| {
            let edge = (0..count, 0..count, 0.0..2.0f64).prop_map(|(from, to, weight)| Connection { from, to, weight });
            (Just(count), proptest::collection::vec(edge, 0..80))
        })
    }

    proptest! {
        #[test]
        fn no_node_lies_on_another_and_all_lie_inside((count, connections) in graph()) {
            let layout = Layout::new(count, 12, &connections, &connections);
            for (index, a) in layout.nodes.iter().enumerate() {
                prop_assert!(a.x >= layout.node_width / 2.0 - 1e-6 && a.x <= layout.width - layout.node_width / 2.0 + 1e-6);
                prop_assert!(a.y >= NODE_HEIGHT / 2.0 - 1e-6 && a.y <= layout.height - NODE_HEIGHT / 2.0 + 1e-6);
                for b in &layout.nodes[..index] {
                    let apart = (a.x - b.x).abs() >= layout.node_width + 1.0 || (a.y - b.y).abs() >= NODE_HEIGHT + 1.0;
                    prop_assert!(apart, "{a:?} and {b:?}");
                }
            }
        }
    }

    #[test]
    fn a_chain_reads_from_left_to_right_in_one_row() {
        let chain: Vec<Connection> = (0..5).map(|from| Connection { from, to: from + 1, weight: 1.0 }).collect();
        let layout = Layout::new(6, 5, &chain, &[]);
        for pair in layout.nodes.windows(2) {
            assert_eq!(pair[1].x - pair[0].x, layout.node_width + LAYER_GAP);
            assert_eq!(pair[1].y, pair[0].y);
        }
        assert!(layout.routes.values().all(Vec::is_empty));
    }

    #[test]
    fn the_weakest_edge_of_a_cycle_goes_back_and_long_edges_pass_between_nodes() {
        let connection = |from, to, weight| Connection { from, to, weight };
        let layout = Layout::new(3, 30, &[connection(2, 0, 0.1), connection(0, 1, 1.0), connection(1, 2, 0.9)], &[]);
        assert!(layout.nodes[0].x < layout.nodes[1].x && layout.nodes[1].x < layout.nodes[2].x);
        let back = &layout.routes[&(2, 0)];
        assert_eq!(back.len(), 2);
        assert!(back[0].x > back[1].x, "from cause to effect, that is to the left");
        assert!((back[0].y - layout.nodes[1].y).abs() > NODE_HEIGHT / 2.0);
    }

    #[test]
    fn two_hundred_types_take_a_moment_and_a_legible_place() {
        let mut state = 1u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let connections: Vec<Connection> = (0..2000)
            .map(|_| Connection { from: next(200), to: next(200), weight: next(1000) as f64 / 500.0 })
            .collect();
        let start = std::time::Instant::now();
        let layout = Layout::new(200, 30, &connections, &[]);
        assert!(start.elapsed().as_secs_f64() < 5.0, "{:?}", start.elapsed());
        assert!(layout.width < 6000.0 && layout.height < 6000.0, "{} × {}", layout.width, layout.height);
    }
}
