//! Finds the scale of `W` that gives the requested redundancy.

use rayon::prelude::*;
use trace_core::random::{Purpose, Streams};
use trace_core::theory::redundancy;

use super::{Process, ProcessSpec};
use crate::Error;

/// The number of sequences, and of events in each after the first `h`, that an entropy is measured on.
const SEQUENCES: usize = 64;
const EVENTS: usize = 48;
/// The total number of these events.
pub(super) const MEASURED_ON: usize = SEQUENCES * EVENTS;
/// Number of bisection steps.
const STEPS: usize = 16;
/// With larger scales every event is certain.
const LARGEST_SCALE: f64 = 256.0;

impl Process {
    /// Draws a process and scales it to the requested redundancy.
    pub fn draw(spec: &ProcessSpec) -> Result<Self, Error> {
        check(spec)?;
        if spec.redundancy == 0.0 {
            return Ok(Self::null(spec.vocabulary, spec.memory, spec.decay));
        }
        let process = Self::unscaled(spec);
        let scale = process.find_scale(spec)?;
        Ok(process.scaled(scale))
    }

    /// Draws a process with this scale of `W`, without calibration.
    pub fn draw_at_scale(spec: &ProcessSpec, scale: f64) -> Result<Self, Error> {
        check(spec)?;
        Ok(Self::unscaled(spec).scaled(scale))
    }

    fn scaled(mut self, scale: f64) -> Self {
        if let Some(layers) = &mut self.layers {
            for value in &mut layers.interaction.values {
                *value = (f64::from(*value) * scale) as f32;
            }
        }
        self
    }

    fn find_scale(&self, spec: &ProcessSpec) -> Result<f64, Error> {
        let least = self.redundancy_at(0.0, spec.seed);
        if spec.redundancy < least {
            return Err(Error::spec(
                "redundancy",
                format!(
                    "{} is out of reach: the hidden layer alone gives {least:.3}; expected 0 (the null process) or more than that",
                    spec.redundancy
                ),
            ));
        }
        let (mut low, mut high) = (0.0, 4.0);
        loop {
            let most = self.redundancy_at(high, spec.seed);
            if most >= spec.redundancy {
                break;
            }
            (low, high) = (high, 2.0 * high);
            if high > LARGEST_SCALE {
                return Err(Error::spec(
                    "redundancy",
                    format!(
                        "{} is out of reach with {} types and memory {}: at most {most:.2} is",
                        spec.redundancy, spec.vocabulary, spec.memory
                    ),
                ));
            }
        }
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if self.redundancy_at(middle, spec.seed) < spec.redundancy {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(high)
    }

    /// The mean entropy of an event given its past, in nats, over newly sampled sequences. The first `h` events, which
    /// do not depend on their past, are excluded.
    pub fn measure_entropy(&self, seed: u64) -> f64 {
        self.mean_entropy(&Streams::new(seed, "entropy"), 1.0)
    }

    /// The redundancy of the events that depend on their past, with `W` multiplied by `scale`.
    fn redundancy_at(&self, scale: f64, seed: u64) -> f64 {
        // Every scale uses the same random numbers, which makes the comparison smooth.
        redundancy(self.mean_entropy(&Streams::new(seed, "calibration"), scale), self.size)
    }

    fn mean_entropy(&self, streams: &Streams, scale: f64) -> f64 {
        let length = self.memory + EVENTS;
        let entropies: Vec<f64> = (0..SEQUENCES)
            .into_par_iter()
            .map(|i| self.sample(streams, Purpose::Calibration, i, length, scale).entropy)
            .collect();
        entropies.iter().sum::<f64>() / MEASURED_ON as f64
    }
}

/// The largest vocabulary and memory that are accepted; the sparse matrix of the first takes 3.4 GB.
const LARGEST_VOCABULARY: usize = 1 << 16;
const LARGEST_MEMORY: usize = 4096;

fn check(spec: &ProcessSpec) -> Result<(), Error> {
    if !(2..=LARGEST_VOCABULARY).contains(&spec.vocabulary) {
        return Err(Error::spec(
            "vocabulary",
            format!("{} is out of range; expected 2 to {LARGEST_VOCABULARY} types", spec.vocabulary),
        ));
    }
    if !(1..=LARGEST_MEMORY).contains(&spec.memory) {
        return Err(Error::spec(
            "memory",
            format!("{} is out of range; expected 1 to {LARGEST_MEMORY} events", spec.memory),
        ));
    }
    if !(0.0..1.0).contains(&spec.redundancy) {
        return Err(Error::spec(
            "redundancy",
            format!("{} is out of range; expected a number from 0 to less than 1", spec.redundancy),
        ));
    }
    if !(spec.decay >= 0.0 && spec.decay.is_finite()) {
        return Err(Error::spec("decay", format!("{} is out of range; expected a number, 0 or more", spec.decay)));
    }
    Ok(())
}
