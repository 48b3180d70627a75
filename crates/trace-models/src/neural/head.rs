//! The head: from hidden rows to the loss, or to what discovery needs of the next-event distribution.
//!
//! `logits = hidden · headᵀ` is `rows × tokens` and is never held as a whole: training goes through it in blocks of
//! rows, scoring in tiles of rows and types, keeping for each row the target's logit and the log-sum of the others
//! (in f64). Cost of a row: `2·d·V` operations and `V` exponentials; memory does not grow with rows or `V`.

use std::ops::Range;

use trace_core::EventScore;

use super::architecture::room;
use super::linear;
use crate::kernels::product::{Grade, Matrix, MatrixMut, Old, multiply};
use crate::kernels::single::{self, RowSum, cross_entropy, fold_tiles};

/// Rows of a block of logits in training: as many as make a block of this many numbers, within bounds. Each block reads
/// the table and adds to its gradient once, which few rows do not pay for.
const BLOCK: usize = 1 << 19;
const FEWEST_ROWS: usize = 128;
const MOST_ROWS: usize = 512;
/// Rows and types of a tile of logits in scoring.
const TILE_ROWS: usize = 512;
const TILE_TYPES: usize = 512;

/// Where a head lies in the weights.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// A row a token.
    pub(crate) table: Range<usize>,
    /// A number a token, where there are such.
    pub(crate) bias: Option<Range<usize>>,
}

/// Room for a loss and its gradient.
#[derive(Debug, Default)]
pub(crate) struct LossRoom {
    logits: Vec<f32>,
    d_hidden: Vec<f32>,
}

impl Head {
    /// Hidden rows and their targets, a block at a time.
    fn blocks<'b>(&self, hidden: &'b [f32], targets: &'b [u32]) -> impl Iterator<Item = (&'b [f32], &'b [u32])> {
        let width = hidden.len() / targets.len();
        let rows = (BLOCK * width / self.table.len()).clamp(FEWEST_ROWS, MOST_ROWS);
        hidden.chunks(rows * width).zip(targets.chunks(rows))
    }

    /// All logits of rows, and how many a row has.
    pub(crate) fn logits<'l>(
        &self,
        grade: Grade,
        weights: &[f32],
        hidden: &[f32],
        width: usize,
        out: &'l mut Vec<f32>,
    ) -> (&'l mut [f32], usize) {
        let table = &weights[self.table.clone()];
        let tokens = table.len() / width;
        let out = room(out, hidden.len() / width * tokens);
        linear::forward(out, Old::Replace, grade, hidden, table, (width, tokens));
        if let Some(bias) = &self.bias {
            single::add_to_rows(out, &weights[bias.clone()]);
        }
        (out, tokens)
    }

    /// The sum of losses over rows, in nats. There is at least one row.
    pub(crate) fn loss(&self, weights: &[f32], hidden: &[f32], targets: &[u32], space: &mut LossRoom) -> f64 {
        let width = hidden.len() / targets.len();
        self.blocks(hidden, targets)
            .map(|(hidden, targets)| {
                let (logits, tokens) = self.logits(Grade::Exact, weights, hidden, width, &mut space.logits);
                cross_entropy(logits, tokens, targets, 1.0)
            })
            .sum()
    }

    /// The sum of losses and the gradient of `scale` times that: of the hidden rows, which is returned, and of the
    /// head, which is added to `gradient`. There is at least one row.
    pub(crate) fn loss_and_gradient<'s>(
        &self,
        weights: &[f32],
        hidden: &[f32],
        targets: &[u32],
        scale: f32,
        space: &'s mut LossRoom,
        gradient: &mut [f32],
    ) -> (f64, &'s mut [f32]) {
        let width = hidden.len() / targets.len();
        let all = room(&mut space.d_hidden, hidden.len());
        let mut rest = &mut *all;
        let mut sum = 0.0;
        for (hidden, targets) in self.blocks(hidden, targets) {
            let d_hidden = rest.split_off_mut(..hidden.len()).unwrap_or_default();
            let (logits, tokens) = self.logits(Grade::Training, weights, hidden, width, &mut space.logits);
            sum += cross_entropy(logits, tokens, targets, scale);
            linear::back_input(d_hidden, Old::Replace, logits, &weights[self.table.clone()], (width, tokens));
            linear::back_weight(&mut gradient[self.table.clone()], logits, hidden, (width, tokens));
            if let Some(bias) = &self.bias {
                single::sum_of_rows(&mut gradient[bias.clone()], logits);
            }
        }
        (sum, all)
    }
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
    linear::forward(logits, Old::Replace, Grade::Exact, hidden, head, (width, types));
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
    linear::forward(out, Old::Replace, Grade::Exact, hidden, head, (width, tokens));
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
        linear::forward(logits, Old::Replace, Grade::Exact, hidden, &head[..types * width], (width, types));
        for (row, logits) in logits.chunks_exact(types).enumerate() {
            for (wide, logit) in wide.iter_mut().zip(logits) {
                *wide = f64::from(*logit);
            }
            crate::kernels::double::normalise(&mut wide);
            visit(block * rows + row, &mut wide);
        }
    }
}
