//! Every pair is an edge with the same small probability: what guessing scores.

use rand::RngExt;
use trace_core::random::Purpose;
use trace_core::{Discovered, Error, EventSequence};

use super::{Method, MethodName, Span, graph, guesses, without_branches};

/// Guesses.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    /// Which pairs are scored.
    pub span: Span,
    /// What a uniform draw must exceed.
    pub threshold: f64,
    /// Seed of the draws.
    pub seed: u64,
}

impl Random {
    /// The paper guesses one pair in a hundred.
    pub const THRESHOLD: f64 = 0.99;
}

impl Method for Random {
    fn name(&self) -> MethodName {
        MethodName::Random
    }

    fn threshold(&self) -> f64 {
        self.threshold
    }

    fn run(&self, sequence: &EventSequence) -> Result<Discovered, Error> {
        self.span.check(sequence)?;
        let streams = guesses(self.seed, &sequence.id);
        let scores: Vec<Vec<f64>> = self
            .span
            .effects(sequence.events.len())
            .map(|effect| {
                let mut random = streams.stream(Purpose::Simulation, effect as u32, 0);
                (0..self.span.lags(effect)).map(|_| random.random()).collect()
            })
            .collect();
        Ok(without_branches(graph(sequence, self.span, self.threshold, None, &scores)?))
    }
}
