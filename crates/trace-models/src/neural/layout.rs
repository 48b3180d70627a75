//! The place of each tensor of a network in its flat buffer of weights.
//!
//! A network's weights, gradients and optimizer states are each one `Vec<f32>`; a [`Layout`] names the parts. Tensors
//! that are multiplied with the same input are stored side by side, so that one matrix product computes them all.

use std::ops::Range;

use rand::RngExt;
use rand_distr::{Distribution, Normal};
use trace_core::random::{Purpose, Streams};

/// The role of a tensor, which decides how it is optimized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A matrix between hidden layers.
    Hidden,
    /// A lookup table with one row per token or position.
    Embedding,
    /// The table of the head, with one row per token.
    Head,
    /// Gains, biases and other vectors; without weight decay.
    Vector,
}

/// How a tensor is initialized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Initializer {
    /// Normal with this standard deviation.
    Normal(f32),
    /// Uniform between plus and minus this.
    Uniform(f32),
    /// The same number for all elements.
    Constant(f32),
    /// `ln(1), ln(2), …, ln(columns)` in every row: the decay rates of a state-space model.
    LogCount,
    /// `softplus⁻¹` of step sizes that are log-uniform between these bounds.
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
    /// Its role.
    pub role: Role,
    initializer: Initializer,
}

impl Entry {
    /// Its place in the buffer.
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
    /// Adds a tensor and returns its place.
    pub(crate) fn add(
        &mut self,
        name: impl Into<String>,
        shape: &[usize],
        role: Role,
        initializer: Initializer,
    ) -> Range<usize> {
        let entry = Entry { name: name.into(), shape: shape.to_vec(), offset: self.total, role, initializer };
        let range = entry.range();
        self.total = range.end;
        self.entries.push(entry);
        range
    }

    /// The tensors in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The number of weights.
    pub const fn len(&self) -> usize {
        self.total
    }

    /// Whether there are no weights.
    pub const fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Random initial weights; each tensor has its own random stream.
    pub(crate) fn draw(&self, seed: u64) -> Vec<f32> {
        let mut weights = vec![0.0; self.total];
        for entry in &self.entries {
            let mut stream = Streams::new(seed, &entry.name).stream(Purpose::Weights, 0, 0);
            let columns = entry.shape.last().copied().unwrap_or(1);
            let values = &mut weights[entry.range()];
            match entry.initializer {
                Initializer::Normal(spread) => {
                    // Only a NaN has no normal distribution, and it never occurs.
                    if let Ok(normal) = Normal::new(0.0, spread) {
                        values.fill_with(|| normal.sample(&mut stream));
                    }
                }
                Initializer::Uniform(most) => values.fill_with(|| stream.random_range(-most..most)),
                Initializer::Constant(value) => values.fill(value),
                Initializer::LogCount => {
                    for (index, value) in values.iter_mut().enumerate() {
                        *value = ((index % columns + 1) as f32).ln();
                    }
                }
                Initializer::StepBias(least, most) => values.fill_with(|| {
                    let step = (stream.random_range(0.0..1.0f32) * (most / least).ln()).exp() * least;
                    step + (-(-step).exp_m1()).ln()
                }),
            }
        }
        weights
    }
}
