//! One training step: the gradient of a batch, on all cores, with a result that does not depend on their number.
//!
//! A batch is cut into *lanes* by its size, not by the number of threads. Each lane processes its sequences in chunks
//! and adds to its own gradient; the gradients of the lanes are then added in order.

use rayon::prelude::*;

use super::objective::Objective;

/// Rows of one pass through the network.
const CHUNK_ROWS: usize = 1024;
/// A lane has at least this many rows; with fewer rows matrix products are inefficient.
const LANE_ROWS: usize = 512;
const MOST_LANES: usize = 8;
/// Bytes that the gradients of all lanes together may take.
const LANE_BYTES: usize = 1 << 30;
/// Numbers that one job adds.
const BLOCK: usize = 1 << 14;

/// Buffers for the gradients of batches.
pub(crate) struct Gradients<O: Objective> {
    lanes: Vec<Lane<O>>,
}

struct Lane<O: Objective> {
    gradient: Vec<f32>,
    workspace: O::Workspace,
    loss: f64,
}

impl<O: Objective> Default for Lane<O> {
    fn default() -> Self {
        Self { gradient: Vec::new(), workspace: O::Workspace::default(), loss: 0.0 }
    }
}

/// The number of rows of examples.
pub(crate) fn rows_of<O: Objective>(examples: &[O::Example]) -> usize {
    examples.iter().map(O::rows).sum()
}

fn predictions_of<O: Objective>(examples: &[O::Example]) -> usize {
    examples.iter().map(O::predictions).sum()
}

/// Cuts examples into runs of at most `most` rows, or of one example.
fn chunks<O: Objective>(examples: &[O::Example], most: usize) -> Vec<&[O::Example]> {
    let mut list = Vec::new();
    let (mut from, mut rows) = (0, 0);
    for (index, example) in examples.iter().enumerate() {
        let more = O::rows(example);
        if index > from && rows + more > most {
            list.push(&examples[from..index]);
            (from, rows) = (index, 0);
        }
        rows += more;
    }
    if from < examples.len() {
        list.push(&examples[from..]);
    }
    list
}

impl<O: Objective> Default for Gradients<O> {
    fn default() -> Self {
        Self { lanes: Vec::new() }
    }
}

impl<O: Objective> Gradients<O> {
    /// The mean loss of a batch, and its gradient.
    pub(crate) fn compute(&mut self, objective: &O, weights: &[f32], batch: &[O::Example]) -> (f64, &mut [f32]) {
        let total = rows_of::<O>(batch);
        let affordable = (LANE_BYTES / size_of_val(weights)).clamp(2, MOST_LANES);
        let count = (total / LANE_ROWS).clamp(1, affordable);
        let parts = chunks::<O>(batch, total.div_ceil(count));
        if self.lanes.len() < parts.len() {
            self.lanes.resize_with(parts.len(), Lane::default);
        }
        let lanes = &mut self.lanes[..parts.len()];
        let predictions = predictions_of::<O>(batch);
        let scale = 1.0 / predictions as f32;
        lanes.par_iter_mut().zip(&parts).with_max_len(1).for_each(|(lane, part)| {
            lane.run(objective, weights, part, scale);
        });
        let loss = lanes.iter().map(|lane| lane.loss).sum::<f64>() / predictions as f64;
        let (sum, others) = lanes.split_at_mut(1);
        let sum = &mut sum[0].gradient;
        sum.par_chunks_mut(BLOCK).enumerate().for_each(|(block, sum)| {
            for lane in &*others {
                trace_kernels::f32::add(sum, &lane.gradient[block * BLOCK..][..sum.len()]);
            }
        });
        (loss, sum)
    }
}

impl<O: Objective> Lane<O> {
    fn run(&mut self, objective: &O, weights: &[f32], examples: &[O::Example], scale: f32) {
        self.gradient.resize(weights.len(), 0.0);
        self.gradient.fill(0.0);
        self.loss = 0.0;
        for examples in chunks::<O>(examples, CHUNK_ROWS) {
            self.loss += objective.loss_and_gradient(weights, examples, scale, &mut self.workspace, &mut self.gradient);
        }
    }
}

/// The sum of losses over examples, and the number of predictions; chunks run in parallel and are added in order.
pub(crate) fn loss<O: Objective>(objective: &O, weights: &[f32], examples: &[O::Example]) -> (f64, usize) {
    let losses: Vec<f64> = chunks::<O>(examples, CHUNK_ROWS)
        .into_par_iter()
        .map_init(O::Workspace::default, |workspace, examples| objective.loss(weights, examples, workspace))
        .collect();
    (losses.iter().sum(), predictions_of::<O>(examples))
}
