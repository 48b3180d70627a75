//! The order of nodes within their layers.

use super::cycles::Directed;
use super::{DUMMY, Grain, ROW_GAP};

/// Sweeps over all layers; crossings rarely fall after a dozen.
const SWEEPS: usize = 24;

/// Nodes and dummies ("cells") in layers, with an edge only between neighboring layers. Cells below `nodes` are
/// nodes.
pub(super) struct Ladder {
    grain: Grain,
    pub(super) nodes: usize,
    /// The cells of each layer, from the top.
    pub(super) rows: Vec<Vec<usize>>,
    pub(super) layer_of: Vec<usize>,
    /// The cells of each edge between its ends, from left to right.
    pub(super) dummies: Vec<Vec<usize>>,
    /// Neighbors to the left and to the right of each cell, with weights.
    pub(super) left: Vec<Vec<(usize, f64)>>,
    pub(super) right: Vec<Vec<(usize, f64)>>,
}

impl Ladder {
    pub(super) fn new(layer: &[usize], edges: &[Directed], grain: Grain) -> Self {
        let nodes = layer.len();
        let layers = layer.iter().max().map_or(0, |last| last + 1);
        let mut ladder = Self {
            grain,
            nodes,
            rows: vec![Vec::new(); layers],
            layer_of: layer.to_vec(),
            dummies: Vec::with_capacity(edges.len()),
            left: vec![Vec::new(); nodes],
            right: vec![Vec::new(); nodes],
        };
        for edge in edges {
            let mut dummies = Vec::new();
            let mut last = edge.from;
            for between in layer[edge.from] + 1..layer[edge.to] {
                let dummy = ladder.layer_of.len();
                ladder.layer_of.push(between);
                ladder.left.push(Vec::new());
                ladder.right.push(Vec::new());
                ladder.join(last, dummy, edge.weight);
                dummies.push(dummy);
                last = dummy;
            }
            ladder.join(last, edge.to, edge.weight);
            ladder.dummies.push(dummies);
        }
        ladder.first_order();
        ladder
    }

    /// How far a cell reaches across its layer.
    pub(super) fn breadth(&self, cell: usize) -> f64 {
        if cell < self.nodes { self.grain.breadth() } else { DUMMY }
    }

    /// The least distance between the centres of two neighboring cells.
    pub(super) fn distance(&self, above: usize, below: usize) -> f64 {
        f64::midpoint(self.breadth(above), self.breadth(below)) + ROW_GAP
    }

    fn join(&mut self, from: usize, to: usize, weight: f64) {
        self.right[from].push((to, weight));
        self.left[to].push((from, weight));
    }

    /// Depth first, so that what hangs together starts together.
    fn first_order(&mut self) {
        let mut seen = vec![false; self.layer_of.len()];
        let mut starts: Vec<usize> = (0..self.layer_of.len()).collect();
        starts.sort_by_key(|cell| self.layer_of[*cell]); // stable
        for start in starts {
            let mut open = vec![start];
            while let Some(cell) = open.pop() {
                if std::mem::replace(&mut seen[cell], true) {
                    continue;
                }
                self.rows[self.layer_of[cell]].push(cell);
                open.extend(self.left[cell].iter().chain(&self.right[cell]).map(|(next, _)| *next).rev());
            }
        }
    }

    /// Sweeps right and left, each layer sorted by the mean place of its neighbors; the best order seen is kept.
    pub(super) fn reduce_crossings(&mut self) {
        let mut best = self.rows.clone();
        let mut fewest = self.crossings();
        for sweep in 0..SWEEPS {
            if fewest == 0 {
                break;
            }
            let rightwards = sweep % 2 == 0;
            let layers = self.rows.len();
            let order: Vec<usize> = if rightwards { (1..layers).collect() } else { (0..layers - 1).rev().collect() };
            for layer in order {
                self.sort_layer(layer, rightwards);
            }
            let crossings = self.crossings();
            if crossings < fewest {
                fewest = crossings;
                best.clone_from(&self.rows);
            }
        }
        self.rows = best;
    }

    fn sort_layer(&mut self, layer: usize, by_left: bool) {
        let place = self.places(if by_left { layer - 1 } else { layer + 1 });
        let mut keyed: Vec<(f64, usize)> = self.rows[layer]
            .iter()
            .enumerate()
            .map(|(row, cell)| {
                let neighbors = if by_left { &self.left[*cell] } else { &self.right[*cell] };
                let sum: f64 = neighbors.iter().map(|(next, _)| place[*next] as f64).sum();
                let key = if neighbors.is_empty() { row as f64 } else { sum / neighbors.len() as f64 };
                (key, *cell)
            })
            .collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0)); // stable
        self.rows[layer] = keyed.into_iter().map(|(_, cell)| cell).collect();
    }

    /// The row of each cell of a layer; 0 for cells of others.
    fn places(&self, layer: usize) -> Vec<usize> {
        let mut place = vec![0; self.layer_of.len()];
        for (row, cell) in self.rows[layer].iter().enumerate() {
            place[*cell] = row;
        }
        place
    }

    /// Pairs of edges that cross.
    fn crossings(&self) -> usize {
        (1..self.rows.len())
            .map(|layer| {
                let place = self.places(layer);
                let mut ends: Vec<usize> = Vec::new();
                let mut crossings = 0;
                for cell in &self.rows[layer - 1] {
                    let mut mine: Vec<usize> = self.right[*cell].iter().map(|(next, _)| place[*next]).collect();
                    mine.sort_unstable();
                    // Ends so far are sorted; those below mine are crossed.
                    crossings +=
                        mine.iter().map(|end| ends.len() - ends.partition_point(|other| other <= end)).sum::<usize>();
                    for end in mine {
                        let at = ends.partition_point(|other| *other <= end);
                        ends.insert(at, end);
                    }
                }
                crossings
            })
            .sum()
    }
}
