//! One training step: the gradient of a batch, on all cores, in an order that does not depend on their number.
//!
//! A batch is cut into *lanes* by its own size, not by the number of threads. Each lane goes through its sequences in
//! chunks, adding to a gradient of its own; the lanes' gradients are then added in order.

use rayon::prelude::*;

use super::super::architecture::{Past, Trainable, room};
use super::super::head;
use super::super::rows::Rows;
use crate::kernels::single;

/// Rows that go through the network at once.
const CHUNK_ROWS: usize = 1024;
/// A lane has at least this many rows, or the products become too thin.
const LANE_ROWS: usize = 512;
const MOST_LANES: usize = 8;
/// Bytes that the lanes' gradients may take together.
const LANE_BYTES: usize = 1 << 30;
/// Numbers that are added at a time.
const BLOCK: usize = 1 << 14;

/// A run of tokens: each but the last is read, each but the first is predicted.
pub(crate) type Window = Vec<u32>;

/// Room for the gradients of batches.
pub(crate) struct Gradients<A: Trainable> {
    lanes: Vec<Lane<A>>,
}

struct Lane<A: Trainable> {
    gradient: Vec<f32>,
    tape: A::Tape,
    d_hidden: Vec<f32>,
    logits: Vec<f32>,
    loss: f64,
}

impl<A: Trainable> Default for Lane<A> {
    fn default() -> Self {
        Self { gradient: Vec::new(), tape: A::Tape::default(), d_hidden: Vec::new(), logits: Vec::new(), loss: 0.0 }
    }
}

/// Rows that a window takes.
pub(crate) fn rows_of(windows: &[Window]) -> usize {
    windows.iter().map(|window| window.len().saturating_sub(1)).sum()
}

/// Cuts windows into runs of at most `most` rows, or of one window.
fn chunks(windows: &[Window], most: usize) -> Vec<&[Window]> {
    let mut list = Vec::new();
    let (mut from, mut rows) = (0, 0);
    for (index, window) in windows.iter().enumerate() {
        let more = window.len().saturating_sub(1);
        if index > from && rows + more > most {
            list.push(&windows[from..index]);
            (from, rows) = (index, 0);
        }
        rows += more;
    }
    if from < windows.len() {
        list.push(&windows[from..]);
    }
    list
}

/// The rows of windows, and each row's target.
pub(crate) fn lay_out<A: Trainable>(windows: &[Window]) -> (Rows, Vec<u32>) {
    let groups: Vec<_> = windows.iter().map(|window| (0, window.len().saturating_sub(1), 1)).collect();
    let rows = Rows::new(&groups, A::ORDER, |group, _, step| windows[group][step]);
    let mut targets = vec![0; rows.len()];
    rows.for_each(|group, _, step, row| targets[row] = windows[group.index][step + 1]);
    (rows, targets)
}

impl<A: Trainable> Default for Gradients<A> {
    fn default() -> Self {
        Self { lanes: Vec::new() }
    }
}

impl<A: Trainable> Gradients<A> {
    /// The mean loss of a batch, and its gradient.
    pub(crate) fn compute(&mut self, network: &A, weights: &[f32], batch: &[Window]) -> (f64, &mut [f32]) {
        let total = rows_of(batch);
        let affordable = (LANE_BYTES / size_of_val(weights)).clamp(2, MOST_LANES);
        let count = (total / LANE_ROWS).clamp(1, affordable);
        let parts = chunks(batch, total.div_ceil(count));
        if self.lanes.len() < parts.len() {
            self.lanes.resize_with(parts.len(), Lane::default);
        }
        let lanes = &mut self.lanes[..parts.len()];
        let scale = 1.0 / total as f32;
        lanes.par_iter_mut().zip(&parts).with_max_len(1).for_each(|(lane, part)| {
            lane.run(network, weights, part, scale);
        });
        let loss = lanes.iter().map(|lane| lane.loss).sum::<f64>() / total as f64;
        let (sum, others) = lanes.split_at_mut(1);
        let sum = &mut sum[0].gradient;
        sum.par_chunks_mut(BLOCK).enumerate().for_each(|(block, sum)| {
            for lane in &*others {
                single::add(sum, &lane.gradient[block * BLOCK..][..sum.len()]);
            }
        });
        (loss, sum)
    }
}

impl<A: Trainable> Lane<A> {
    fn run(&mut self, network: &A, weights: &[f32], windows: &[Window], scale: f32) {
        self.gradient.resize(weights.len(), 0.0);
        self.gradient.fill(0.0);
        self.loss = 0.0;
        for windows in chunks(windows, CHUNK_ROWS) {
            let (rows, targets) = lay_out::<A>(windows);
            if rows.len() == 0 {
                continue;
            }
            network.forward(weights, &rows, Past::Training, &mut self.tape);
            let d_hidden = room(&mut self.d_hidden, rows.len() * network.width());
            self.loss += head::loss_and_gradient(
                A::hidden(&self.tape),
                &weights[network.head()],
                &targets,
                scale,
                d_hidden,
                &mut self.gradient[network.head()],
                &mut self.logits,
            );
            network.backward(weights, &rows, &mut self.tape, d_hidden, &mut self.gradient);
        }
    }
}

/// The sum of losses over windows, and the number of rows; chunks run in parallel and are added in order.
pub(crate) fn loss<A: Trainable>(network: &A, weights: &[f32], windows: &[Window]) -> (f64, usize) {
    let losses: Vec<f64> = chunks(windows, CHUNK_ROWS)
        .into_par_iter()
        .map_init(<(A::Tape, Vec<f32>)>::default, |(tape, logits), windows| {
            let (rows, targets) = lay_out::<A>(windows);
            if rows.len() == 0 {
                return 0.0;
            }
            network.forward(weights, &rows, Past::Nothing, tape);
            head::loss(A::hidden(tape), &weights[network.head()], &targets, network.width(), logits)
        })
        .collect();
    (losses.iter().sum(), rows_of(windows))
}
