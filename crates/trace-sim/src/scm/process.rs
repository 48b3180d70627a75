//! The parameters of the process and its logits.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use trace_core::EventId;
use trace_core::random::{Purpose, Streams};
use trace_core::theory::Fitness;
use trace_kernels::matmul::add_product;

use super::calibrate::MEASURED_ON;
use super::{DENSITY, EMBEDDING, HIDDEN};

/// Rows of `W` that are drawn in parallel before they are joined; bounds the memory that is used twice.
const ROWS_AT_A_TIME: usize = 512;

/// The options of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessSpec {
    /// Number of event types, at least 2.
    pub vocabulary: usize,
    /// How far back the process looks, at least 1.
    pub memory: usize,
    /// The requested Shannon redundancy `1 − H/ln V`; 0 for the null process.
    pub redundancy: f64,
    /// How fast the direct influence of `W` decays with the lag: `e^{-decay·(k-1)}`.
    pub decay: f64,
    /// Seed of the parameters.
    pub seed: u64,
}

/// The process: a density model, a simulator and the truth.
#[derive(Clone, Debug)]
pub struct Process {
    pub(super) size: usize,
    pub(super) memory: usize,
    pub(super) decay: f64,
    pub(super) bias: Vec<f64>,
    pub(super) layers: Option<Layers>,
    pub(super) fitness: Fitness,
}

/// Everything but the bias; the null process has none of it.
#[derive(Clone, Debug)]
pub(super) struct Layers {
    pub(super) interaction: SparseRows,
    /// V × 16
    pub(super) embedding: Vec<f64>,
    /// 16h × 64; the block of lag `k` starts at row `16 (h − k)`
    pub(super) input: Vec<f64>,
    /// 64 × V
    pub(super) output: Vec<f64>,
}

/// A matrix whose rows are mostly zero. Values are f32 so that V = 29,100 (85 million entries) takes 0.7 GB.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SparseRows {
    /// The start of each row, and the end of the last row.
    pub(super) offsets: Vec<u64>,
    pub(super) columns: Vec<u32>,
    pub(super) values: Vec<f32>,
}

impl SparseRows {
    /// `row += factor · self[event]`
    pub(super) fn add_row(&self, event: EventId, factor: f64, row: &mut [f64]) {
        let range = self.offsets[event.index()] as usize..self.offsets[event.index() + 1] as usize;
        for (column, value) in self.columns[range.clone()].iter().zip(&self.values[range]) {
            row[*column as usize] += factor * f64::from(*value);
        }
    }
}

impl Process {
    /// The null process: every event is uniform, independent of the past.
    pub(super) fn null(size: usize, memory: usize, decay: f64) -> Self {
        Self { size, memory, decay, bias: vec![0.0; size], layers: None, fitness: Fitness::default() }
    }

    /// Normal parameters, scaled by the square root of each layer's width, with `W` at scale 1.
    pub(super) fn unscaled(spec: &ProcessSpec) -> Self {
        let ProcessSpec { vocabulary: size, memory, decay, .. } = *spec;
        let streams = Streams::new(spec.seed, "process");
        let normals = |part: u32, count: usize, scale: f64| -> Vec<f64> {
            let mut random = streams.stream(Purpose::Parameters, part, 0);
            // Rounded to f32 as in the folder, so that a process read from its folder is the same process.
            (0..count).map(|_| f64::from((scale * normal(&mut random)) as f32)).collect()
        };
        let mut interaction = SparseRows { offsets: vec![0], ..SparseRows::default() };
        for start in (0..size).step_by(ROWS_AT_A_TIME) {
            let rows: Vec<_> = (start..size.min(start + ROWS_AT_A_TIME))
                .into_par_iter()
                .map(|row| sparse_row(size, &mut streams.stream(Purpose::Parameters, 3, row as u32)))
                .collect();
            for (columns, values) in rows {
                interaction.columns.extend_from_slice(&columns);
                interaction.values.extend_from_slice(&values);
                interaction.offsets.push(interaction.columns.len() as u64);
            }
        }
        let inputs = EMBEDDING * memory;
        let layers = Layers {
            interaction,
            embedding: normals(0, size * EMBEDDING, 1.0),
            input: normals(1, inputs * HIDDEN, 1.0 / (inputs as f64).sqrt()),
            output: normals(2, HIDDEN * size, 1.0 / (HIDDEN as f64).sqrt()),
        };
        Self { layers: Some(layers), ..Self::null(size, memory, decay) }
    }

    /// How far back the process looks, `h`.
    pub const fn memory(&self) -> usize {
        self.memory
    }

    /// Number of parameters that are not zero by construction.
    pub fn parameters(&self) -> usize {
        let layers = self.layers.as_ref().map_or(0, |layers| {
            layers.interaction.values.len() + layers.embedding.len() + layers.input.len() + layers.output.len()
        });
        layers + self.bias.len()
    }

    /// Sets the entropy of the process in nats per event, which is also its loss as a model of itself.
    ///
    /// `sum` is the entropy of `count` simulated events that depend on their past; if these are few, the entropy is
    /// measured on newly sampled sequences instead.
    pub fn set_entropy(&mut self, sum: f64, count: usize, seed: u64) {
        let entropy = if count < MEASURED_ON { self.measure_entropy(seed) } else { sum / count as f64 };
        let entropy = entropy.min((self.size as f64).ln()); // what exceeds it is rounding
        self.fitness = Fitness { held_out_loss: Some(entropy), unigram_loss: None, entropy: Some(entropy) };
    }

    /// `row += Σ e^{-decay (k-1)} W[event]` over events with their lags `k`.
    pub(super) fn add_linear(&self, events: impl Iterator<Item = (usize, EventId)>, scale: f64, row: &mut [f64]) {
        if let Some(layers) = &self.layers {
            for (lag, event) in events {
                let fade = (-self.decay * (lag - 1) as f64).exp();
                layers.interaction.add_row(event, scale * fade, row);
            }
        }
    }

    /// `hidden += Σ E[event] · W1[block of its lag]` over events with their lags.
    pub(super) fn add_hidden(&self, events: impl Iterator<Item = (usize, EventId)>, hidden: &mut [f64; HIDDEN]) {
        let Some(layers) = &self.layers else { return };
        for (lag, event) in events {
            let embedding = &layers.embedding[event.index() * EMBEDDING..][..EMBEDDING];
            let block = &layers.input[(self.memory - lag) * EMBEDDING * HIDDEN..][..EMBEDDING * HIDDEN];
            for (factor, weights) in embedding.iter().zip(block.chunks_exact(HIDDEN)) {
                for (sum, weight) in hidden.iter_mut().zip(weights) {
                    *sum += factor * weight;
                }
            }
        }
    }

    /// `rows += ReLU(hidden) · W2`, for as many rows as there are of `HIDDEN` sums in `hidden`.
    pub(super) fn add_output(&self, hidden: &mut [f64], rows: &mut [f64]) {
        let Some(layers) = &self.layers else { return };
        for value in hidden.iter_mut() {
            *value = if *value < 0.0 { 0.0 } else { *value };
        }
        add_product(rows, hidden, &layers.output, hidden.len() / HIDDEN, HIDDEN, self.size);
    }

    /// Logits of position `q` given the events before it; constant while `q < h`. `scale` multiplies `W`.
    pub(super) fn logits(&self, events: &[EventId], q: usize, scale: f64, row: &mut [f64]) {
        row.copy_from_slice(&self.bias);
        if q < self.memory {
            row.fill(0.0);
            return;
        }
        let window = || (1..=self.memory).map(|lag| (lag, events[q - lag]));
        self.add_linear(window(), scale, row);
        let mut hidden = [0.0; HIDDEN];
        self.add_hidden(window(), &mut hidden);
        self.add_output(&mut hidden, row);
    }
}

fn normal(random: &mut impl Rng) -> f64 {
    StandardNormal.sample(random)
}

/// One row of `W` at scale 1: each column is present with probability `DENSITY`.
fn sparse_row(size: usize, random: &mut impl Rng) -> (Vec<u32>, Vec<f32>) {
    let expected = (size as f64 * DENSITY) as usize;
    let (mut columns, mut values) = (Vec::with_capacity(expected + 64), Vec::with_capacity(expected + 64));
    let miss = (1.0 - DENSITY).ln();
    let mut column = 0usize;
    loop {
        // The number of absent columns before the next present one is geometric.
        let skip = (1.0 - random.random::<f64>()).ln() / miss;
        column += skip as usize;
        if column >= size {
            return (columns, values);
        }
        columns.push(column as u32);
        values.push(normal(random) as f32);
        column += 1;
    }
}
