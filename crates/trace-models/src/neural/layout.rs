//! Where each tensor of a network lies in its one flat buffer of weights.
//!
//! A network's weights, gradients and optimiser states are each one `Vec<f32>`; a [`Layout`] names the pieces.
//! Tensors that are multiplied with the same input lie side by side, so that one matrix product does them all.

use std::ops::Range;

use rand::RngExt;
use rand_distr::{Distribution, Normal};
use trace_core::random::{Purpose, Streams};

/// What a tensor is for, which decides how it is optimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A matrix between hidden layers.
    Hidden,
    /// A table with a row for each token, or place, that is looked up.
    Embedding,
    /// A table with a row for each token that logits come from.
    Head,
    /// Gains, biases and other vectors; never decayed.
    Vector,
}

/// How a tensor starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Start {
    /// Normal with this standard deviation.
    Normal(f32),
    /// Uniform between plus and minus this.
    Uniform(f32),
    /// The same number everywhere.
    Constant(f32),
    /// `ln(1), ln(2), …, ln(columns)` in every row: the decay rates of a state-space model.
    LogCount,
    /// `softplus⁻¹` of step sizes spread evenly in the logarithm between these.
    StepBias(f32, f32),
}

/// One tensor.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name in the file.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its first number in the buffer.
    pub offset: usize,
    /// What it is for.
    pub role: Role,
    start: Start,
}

impl Entry {
    /// Its numbers in the buffer.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.shape.iter().product::<usize>()
    }
}

/// All tensors of a network.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    entries: Vec<Entry>,
    total: usize,
}

impl Layout {
    /// Adds a tensor and says where it lies.
    pub(crate) fn add(&mut self, name: impl Into<String>, shape: &[usize], role: Role, start: Start) -> Range<usize> {
        let entry = Entry { name: name.into(), shape: shape.to_vec(), offset: self.total, role, start };
        let range = entry.range();
        self.total = range.end;
        self.entries.push(entry);
        range
    }

    /// The tensors in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many numbers there are.
    pub const fn len(&self) -> usize {
        self.total
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Fresh weights; each tensor has a random stream of its own.
    pub(crate) fn draw(&self, seed: u64) -> Vec<f32> {
        let mut weights = vec![0.0; self.total];
        for entry in &self.entries {
            let mut stream = Streams::new(seed, &entry.name).stream(Purpose::Weights, 0, 0);
            let columns = entry.shape.last().copied().unwrap_or(1);
            let values = &mut weights[entry.range()];
            match entry.start {
                Start::Normal(spread) => {
                    // A spread that is not a number has no normal distribution; none is ever asked for.
                    if let Ok(normal) = Normal::new(0.0, spread) {
                        values.fill_with(|| normal.sample(&mut stream));
                    }
                }
                Start::Uniform(most) => values.fill_with(|| stream.random_range(-most..most)),
                Start::Constant(value) => values.fill(value),
                Start::LogCount => {
                    for (index, value) in values.iter_mut().enumerate() {
                        *value = ((index % columns + 1) as f32).ln();
                    }
                }
                Start::StepBias(least, most) => values.fill_with(|| {
                    let step = (stream.random_range(0.0..1.0f32) * (most / least).ln()).exp() * least;
                    step + (-(-step).exp_m1()).ln()
                }),
            }
        }
        weights
    }
}
