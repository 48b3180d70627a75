//! The head: from hidden rows to the loss, or to what discovery needs of the next-event distribution.
//!
//! `logits = hidden · headᵀ` is `rows × tokens` and is never held as a whole: training goes through it in blocks of
//! rows, scoring in tiles of rows and types, keeping for each row the target's logit and the log-sum of the others
//! (in f64). Cost of a row: `2·d·V` operations and `V` exponentials; memory does not grow with rows or `V`.

use trace_core::EventScore;

use super::architecture::room;
use super::linear;
use crate::kernels::product::{Matrix, MatrixMut, Old, multiply};
use crate::kernels::single::{RowSum, cross_entropy, fold_tiles};

/// Rows of a block of logits in training.
const BLOCK_ROWS: usize = 128;
/// Rows and types of a tile of logits in scoring.
const TILE_ROWS: usize = 512;
const TILE_TYPES: usize = 512;

/// The sum of losses over rows, in nats.
pub(crate) fn loss(hidden: &[f32], head: &[f32], targets: &[u32], width: usize, logits: &mut Vec<f32>) -> f64 {
    let tokens = head.len() / width;
    let blocks = hidden.chunks(BLOCK_ROWS * width).zip(targets.chunks(BLOCK_ROWS));
    blocks
        .map(|(hidden, targets)| {
            let logits = room(logits, targets.len() * tokens);
            linear::forward(logits, Old::Replace, hidden, head, (width, tokens));
            cross_entropy(logits, tokens, targets, 1.0)
        })
        .sum()
}

/// The sum of losses, and the gradient of `scale` times that: `d_hidden` is set, `d_head` added to.
pub(crate) fn loss_and_gradient(
    hidden: &[f32],
    head: &[f32],
    targets: &[u32],
    scale: f32,
    d_hidden: &mut [f32],
    d_head: &mut [f32],
    logits: &mut Vec<f32>,
) -> f64 {
    let width = hidden.len() / targets.len();
    let tokens = head.len() / width;
    let mut sum = 0.0;
    for ((hidden, targets), d_hidden) in
        hidden.chunks(BLOCK_ROWS * width).zip(targets.chunks(BLOCK_ROWS)).zip(d_hidden.chunks_mut(BLOCK_ROWS * width))
    {
        let logits = room(logits, targets.len() * tokens);
        linear::forward(logits, Old::Replace, hidden, head, (width, tokens));
        sum += cross_entropy(logits, tokens, targets, scale);
        linear::back_input(d_hidden, Old::Replace, logits, head, (width, tokens));
        linear::back_weight(d_head, logits, hidden, (width, tokens));
    }
    sum
}

/// From hidden rows to the gradient, by each, of its target's log-probability among the first `types` tokens.
pub(crate) fn back_log_probability(
    hidden: &mut [f32],
    head: &[f32],
    (width, types): (usize, usize),
    targets: &[u32],
    logits: &mut Vec<f32>,
) {
    let head = &head[..types * width];
    let logits = room(logits, targets.len() * types);
    linear::forward(logits, Old::Replace, hidden, head, (width, types));
    cross_entropy(logits, types, targets, -1.0);
    for (row, target) in logits.chunks_exact_mut(types).zip(targets) {
        // The difference of 1 and a near-certain event's probability has no digits left; the sum of the others has.
        row[*target as usize] = 0.0;
        row[*target as usize] = -row.iter().map(|other| f64::from(*other)).sum::<f64>() as f32;
    }
    linear::back_input(hidden, Old::Replace, logits, head, (width, types));
}

/// All logits of rows.
pub(crate) fn logits(hidden: &[f32], head: &[f32], (width, tokens): (usize, usize), out: &mut [f32]) {
    linear::forward(out, Old::Replace, hidden, head, (width, tokens));
}

/// Room for [`score`].
#[derive(Debug, Default)]
pub(crate) struct TileRoom {
    tile: Vec<f32>,
    sums: Vec<RowSum>,
}

/// The score of each row's target among the first `types` tokens.
pub(crate) fn score(
    hidden: &[f32],
    head: &[f32],
    (width, types): (usize, usize),
    targets: &[u32],
    space: &mut TileRoom,
    mut visit: impl FnMut(usize, EventScore),
) {
    for (block, (hidden, targets)) in hidden.chunks(TILE_ROWS * width).zip(targets.chunks(TILE_ROWS)).enumerate() {
        let rows = targets.len();
        space.sums.clear();
        space.sums.resize(rows, RowSum::EMPTY);
        for first in (0..types).step_by(TILE_TYPES) {
            let columns = TILE_TYPES.min(types - first);
            let tile = room(&mut space.tile, rows * columns);
            let part = Matrix::new(&head[first * width..], columns, width).transposed();
            let hidden = Matrix::new(hidden, rows, width);
            multiply(MatrixMut::new(tile, rows, columns), Old::Replace, 1.0, hidden, part);
            fold_tiles(&mut space.sums, tile, columns, first, targets);
        }
        for (row, sum) in space.sums.iter().enumerate() {
            let others = f64::from(sum.high) + sum.sum.ln();
            visit(block * TILE_ROWS + row, EventScore::from_log_weights(f64::from(sum.target), others));
        }
    }
}

/// The normalised log-distribution of each row over the first `types` tokens.
pub(crate) fn distributions(
    hidden: &[f32],
    head: &[f32],
    (width, types): (usize, usize),
    space: &mut TileRoom,
    mut visit: impl FnMut(usize, &mut [f64]),
) {
    // As many rows as a tile has room for, at least one.
    let rows = (TILE_ROWS * TILE_TYPES / types).clamp(1, TILE_ROWS);
    let mut wide = vec![0.0f64; types];
    for (block, hidden) in hidden.chunks(rows * width).enumerate() {
        let logits = room(&mut space.tile, hidden.len() / width * types);
        linear::forward(logits, Old::Replace, hidden, &head[..types * width], (width, types));
        for (row, logits) in logits.chunks_exact(types).enumerate() {
            for (wide, logit) in wide.iter_mut().zip(logits) {
                *wide = f64::from(*logit);
            }
            crate::kernels::double::normalise(&mut wide);
            visit(block * rows + row, &mut wide);
        }
    }
}
