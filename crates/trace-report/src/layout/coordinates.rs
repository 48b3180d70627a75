//! How far across its layer each cell stands.
//!
//! A cell wants to stand at the mean `d_i` of its neighbors, but the order within a layer holds and cells keep their
//! distance. In `z_i = y_i − offset_i`, with offsets that add up the least distances, that is
//!
//! ```text
//! minimize Σ w_i (z_i − (d_i − offset_i))²   subject to   z_1 ≤ z_2 ≤ …
//! ```
//!
//! which pooling of neighbors that are out of order solves exactly, in one pass.

use super::order::Ladder;

/// Passes over all layers, in both directions.
const PASSES: usize = 16;

pub(super) fn assign(ladder: &Ladder) -> Vec<f64> {
    let mut y = vec![0.0; ladder.layer_of.len()];
    for row in &ladder.rows {
        let mut at = 0.0;
        for (index, cell) in row.iter().enumerate() {
            if index > 0 {
                at += ladder.distance(row[index - 1], *cell);
            }
            y[*cell] = at;
        }
    }
    for pass in 0..PASSES {
        let layers: Vec<usize> =
            if pass % 2 == 0 { (0..ladder.rows.len()).collect() } else { (0..ladder.rows.len()).rev().collect() };
        for layer in layers {
            place_layer(ladder, &ladder.rows[layer], &mut y);
        }
    }
    let top = (0..y.len()).map(|cell| y[cell] - ladder.breadth(cell) / 2.0).fold(f64::INFINITY, f64::min);
    for y in &mut y {
        *y -= top;
    }
    y
}

/// A run of cells that move as one.
struct Block {
    wish: f64,
    weight: f64,
    cells: usize,
}

fn place_layer(ladder: &Ladder, row: &[usize], y: &mut [f64]) {
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(row.len());
    let mut blocks: Vec<Block> = Vec::new();
    for (index, cell) in row.iter().enumerate() {
        if index > 0 {
            offset += ladder.distance(row[index - 1], *cell);
        }
        offsets.push(offset);
        let (mut sum, mut weight) = (0.0, 0.0);
        for (next, edge_weight) in ladder.left[*cell].iter().chain(&ladder.right[*cell]) {
            // Bends show most in long lines, so lines of dummies pull hardest.
            let dummies = usize::from(*next >= ladder.nodes) + usize::from(*cell >= ladder.nodes);
            let pull = (0.2 + edge_weight) * [1.0, 2.0, 8.0][dummies];
            sum += pull * y[*next];
            weight += pull;
        }
        let wish = if weight > 0.0 { sum / weight } else { y[*cell] };
        blocks.push(Block { wish: wish - offset, weight: weight.max(1e-3), cells: 1 });
        while let [.., above, below] = blocks.as_slice() {
            if above.wish <= below.wish {
                break;
            }
            let weight = above.weight + below.weight;
            let merged = Block {
                wish: (above.wish * above.weight + below.wish * below.weight) / weight,
                weight,
                cells: above.cells + below.cells,
            };
            blocks.truncate(blocks.len() - 2);
            blocks.push(merged);
        }
    }
    let mut index = 0;
    for block in blocks {
        for _ in 0..block.cells {
            y[row[index]] = block.wish + offsets[index];
            index += 1;
        }
    }
}
