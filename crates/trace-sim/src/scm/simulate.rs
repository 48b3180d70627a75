//! Samples sequences from the process.

use rand::RngExt;
use rayon::prelude::*;
use trace_core::EventId;
use trace_core::random::{Purpose, Streams};
use trace_kernels::f64::{dot, exponentiate};

use super::Process;

/// One simulated sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// What happened.
    pub events: Vec<EventId>,
    /// Sum of the entropies, given their past, of the events after the first `h`, in nats.
    pub entropy: f64,
}

impl Process {
    /// Samples `count` sequences with the indices from `first` on; each index has its own random stream.
    pub fn simulate(&self, seed: u64, first: usize, count: usize, length: usize) -> Vec<Simulated> {
        let streams = Streams::new(seed, "sequences");
        (first..first + count)
            .into_par_iter()
            .map(|index| self.sample(&streams, Purpose::Simulation, index, length, 1.0))
            .collect()
    }

    /// One sequence, with `W` multiplied by `scale`.
    pub(super) fn sample(
        &self,
        streams: &Streams,
        purpose: Purpose,
        index: usize,
        length: usize,
        scale: f64,
    ) -> Simulated {
        let mut random = streams.stream(purpose, index as u32, (index >> 32) as u32);
        let mut events = Vec::with_capacity(length);
        let mut logits = vec![0.0; self.size];
        let mut weights = vec![0.0; self.size];
        let mut entropy = 0.0;
        for q in 0..length {
            if q < self.memory {
                events.push(EventId(random.random_range(0..self.size as u32)));
                continue;
            }
            self.logits(&events, q, scale, &mut logits);
            weights.copy_from_slice(&logits);
            let (high, total) = exponentiate(&mut weights);
            // −Σ p log p with p = w / total and log p = logit − high − log total
            entropy += total.ln() + high - dot(&weights, &logits) / total;
            let mut rest = random.random::<f64>() * total;
            let event = weights.iter().position(|weight| {
                rest -= weight;
                rest < 0.0
            });
            events.push(EventId(event.unwrap_or(self.size - 1) as u32));
        }
        Simulated { events, entropy }
    }
}
