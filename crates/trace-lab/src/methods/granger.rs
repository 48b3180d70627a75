//! Neural Granger causality: how far the effect's probability moves when the cause is replaced, as a difference
//! instead of a divergence.

use trace_core::{Discovered, Discovery, Error, EventSequence, SampleGraph};

use super::{Method, MethodName};

/// `|p − mean p_r|`, from the same replacements as those of TRACE.
#[derive(Clone, Copy)]
pub struct Granger<'m> {
    /// Model and replacements.
    pub discovery: Discovery<'m>,
    /// What a difference must exceed.
    pub threshold: f64,
}

impl Granger<'_> {
    /// Five hundredths of a probability.
    pub const THRESHOLD: f64 = 0.05;
}

impl Method for Granger<'_> {
    fn name(&self) -> MethodName {
        MethodName::Granger
    }

    fn threshold(&self) -> f64 {
        self.threshold
    }

    fn run(&self, sequence: &EventSequence) -> Result<Discovered, Error> {
        let found = self.discovery.run(sequence)?;
        let mut pairs = found.graph.pairs().to_vec();
        for pair in &mut pairs {
            pair.strength = (pair.probability - pair.probability_replaced).abs();
            // Of the divergence, which is no longer what the strength is.
            pair.std_error = 0.0;
            pair.kept = pair.required || pair.strength > self.threshold;
        }
        let excluded = found.graph.excluded().to_vec();
        let graph = SampleGraph::new(sequence.events.clone(), pairs, self.threshold).with_excluded(excluded);
        Ok(Discovered { graph, ..found })
    }
}
