//! The head: from hidden rows to the loss, or to the scores that discovery needs.
//!
//! `logits = hidden · headᵀ` is `rows × tokens` and is never stored as a whole: training computes it in blocks of rows,
//! scoring in tiles of rows and types, which keeps for each row the logit of the target and the log-sum of the others
//! (in f64). Cost per row: `2·d·V` operations and `V` exponentials; memory does not grow with rows or `V`.

use std::ops::Range;

use trace_core::EventScore;
use trace_kernels as kernels;
use trace_kernels::f32::{RowSum, cross_entropy, fold_tiles};
use trace_kernels::matmul::{Accumulate, Matrix, MatrixMut, Precision, multiply};

use super::architecture::resize;
use super::linear;

/// Numbers in a block of logits in training; the number of rows follows from it, within the bounds below. Each block
/// reads the table and adds to its gradient once, which is too expensive for few rows.
const BLOCK: usize = 1 << 19;
const FEWEST_ROWS: usize = 128;
const MOST_ROWS: usize = 512;
/// Rows and types of a tile of logits in scoring.
const TILE_ROWS: usize = 512;
const TILE_TYPES: usize = 512;

/// The place of a head in the weights.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// One row per token.
    pub(crate) table: Range<usize>,
    /// One number per token, where the head has a bias.
    pub(crate) bias: Option<Range<usize>>,
}

/// Buffers for a loss and its gradient.
#[derive(Debug, Default)]
pub(crate) struct LossBuffers {
    logits: Vec<f32>,
    d_hidden: Vec<f32>,
}

impl Head {
    /// Hidden rows and their targets, in blocks.
    fn blocks<'b>(&self, hidden: &'b [f32], targets: &'b [u32]) -> impl Iterator<Item = (&'b [f32], &'b [u32])> {
        let width = hidden.len() / targets.len();
        let rows = (BLOCK * width / self.table.len()).clamp(FEWEST_ROWS, MOST_ROWS);
        hidden.chunks(rows * width).zip(targets.chunks(rows))
    }

    /// All logits of rows, and their number per row.
    pub(crate) fn logits<'l>(
        &self,
        precision: Precision,
        weights: &[f32],
        hidden: &[f32],
        width: usize,
        out: &'l mut Vec<f32>,
    ) -> (&'l mut [f32], usize) {
        let table = &weights[self.table.clone()];
        let tokens = table.len() / width;
        let out = resize(out, hidden.len() / width * tokens);
        linear::forward(out, Accumulate::Replace, precision, hidden, table, (width, tokens));
        if let Some(bias) = &self.bias {
            kernels::f32::add_to_rows(out, &weights[bias.clone()]);
        }
        (out, tokens)
    }

    /// The sum of losses over rows, in nats. Needs at least one row.
    pub(crate) fn loss(&self, weights: &[f32], hidden: &[f32], targets: &[u32], workspace: &mut LossBuffers) -> f64 {
        let width = hidden.len() / targets.len();
        self.blocks(hidden, targets)
            .map(|(hidden, targets)| {
                let (logits, tokens) = self.logits(Precision::Exact, weights, hidden, width, &mut workspace.logits);
                cross_entropy(logits, tokens, targets, 1.0)
            })
            .sum()
    }

    /// The sum of losses, and the gradient of `scale` times that sum: the gradient of the hidden rows is returned, and
    /// that of the head is added to `gradient`. Needs at least one row.
    pub(crate) fn loss_and_gradient<'s>(
        &self,
        weights: &[f32],
        hidden: &[f32],
        targets: &[u32],
        scale: f32,
        workspace: &'s mut LossBuffers,
        gradient: &mut [f32],
    ) -> (f64, &'s mut [f32]) {
        let width = hidden.len() / targets.len();
        let all = resize(&mut workspace.d_hidden, hidden.len());
        let mut rest = &mut *all;
        let mut sum = 0.0;
        for (hidden, targets) in self.blocks(hidden, targets) {
            let d_hidden = rest.split_off_mut(..hidden.len()).unwrap_or_default();
            let (logits, tokens) = self.logits(Precision::Training, weights, hidden, width, &mut workspace.logits);
            sum += cross_entropy(logits, tokens, targets, scale);
            linear::back_input(d_hidden, Accumulate::Replace, logits, &weights[self.table.clone()], (width, tokens));
            linear::back_weight(&mut gradient[self.table.clone()], logits, hidden, (width, tokens));
            if let Some(bias) = &self.bias {
                kernels::f32::sum_of_rows(&mut gradient[bias.clone()], logits);
            }
        }
        (sum, all)
    }
}

/// Replaces each hidden row by the gradient of its target's log-probability among the first `types` tokens.
pub(crate) fn back_log_probability(
    hidden: &mut [f32],
    head: &[f32],
    (width, types): (usize, usize),
    targets: &[u32],
    logits: &mut Vec<f32>,
) {
    let head = &head[..types * width];
    let logits = resize(logits, targets.len() * types);
    linear::forward(logits, Accumulate::Replace, Precision::Exact, hidden, head, (width, types));
    cross_entropy(logits, types, targets, -1.0);
    for (row, target) in logits.chunks_exact_mut(types).zip(targets) {
        // `1 − p` of a near-certain event has no significant digits; the sum over the other types has.
        row[*target as usize] = 0.0;
        row[*target as usize] = -row.iter().map(|other| f64::from(*other)).sum::<f64>() as f32;
    }
    linear::back_input(hidden, Accumulate::Replace, logits, head, (width, types));
}

/// All logits of rows.
pub(crate) fn logits(hidden: &[f32], head: &[f32], (width, tokens): (usize, usize), out: &mut [f32]) {
    linear::forward(out, Accumulate::Replace, Precision::Exact, hidden, head, (width, tokens));
}

/// Buffers for [`score`].
#[derive(Debug, Default)]
pub(crate) struct TileBuffers {
    tile: Vec<f32>,
    sums: Vec<RowSum>,
}

/// The score of each row's target among the first `types` tokens.
pub(crate) fn score(
    hidden: &[f32],
    head: &[f32],
    (width, types): (usize, usize),
    targets: &[u32],
    workspace: &mut TileBuffers,
    mut visit: impl FnMut(usize, EventScore),
) {
    for (block, (hidden, targets)) in hidden.chunks(TILE_ROWS * width).zip(targets.chunks(TILE_ROWS)).enumerate() {
        let rows = targets.len();
        workspace.sums.clear();
        workspace.sums.resize(rows, RowSum::EMPTY);
        for first in (0..types).step_by(TILE_TYPES) {
            let columns = TILE_TYPES.min(types - first);
            let tile = resize(&mut workspace.tile, rows * columns);
            let part = Matrix::new(&head[first * width..], columns, width).transposed();
            let hidden = Matrix::new(hidden, rows, width);
            multiply(MatrixMut::new(tile, rows, columns), Accumulate::Replace, 1.0, hidden, part);
            fold_tiles(&mut workspace.sums, tile, columns, first, targets);
        }
        for (row, sum) in workspace.sums.iter().enumerate() {
            let others = f64::from(sum.high) + sum.sum.ln();
            visit(block * TILE_ROWS + row, EventScore::from_log_weights(f64::from(sum.target), others));
        }
    }
}

/// The normalized log-distribution of each row over the first `types` tokens.
pub(crate) fn distributions(
    hidden: &[f32],
    head: &[f32],
    (width, types): (usize, usize),
    workspace: &mut TileBuffers,
    mut visit: impl FnMut(usize, &mut [f64]),
) {
    // As many rows as fit a tile, at least one.
    let rows = (TILE_ROWS * TILE_TYPES / types).clamp(1, TILE_ROWS);
    let mut wide = vec![0.0f64; types];
    for (block, hidden) in hidden.chunks(rows * width).enumerate() {
        let logits = resize(&mut workspace.tile, hidden.len() / width * types);
        linear::forward(logits, Accumulate::Replace, Precision::Exact, hidden, &head[..types * width], (width, types));
        for (row, logits) in logits.chunks_exact(types).enumerate() {
            for (wide, logit) in wide.iter_mut().zip(logits) {
                *wide = f64::from(*logit);
            }
            kernels::f64::normalize(&mut wide);
            visit(block * rows + row, &mut wide);
        }
    }
}
