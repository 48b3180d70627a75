//! Input × gradient: how steeply the log-probability of the effect changes along the cause's embedding.

use trace_core::{Discovered, Error, EventSequence};
use trace_models::neural::NeuralNetwork;

use super::{Method, MethodName, Span, graph, without_branches};

/// `‖ embedding ⊙ ∂ log p / ∂ embedding ‖`, of networks, which have gradients.
#[derive(Clone, Copy)]
pub struct Saliency<'m> {
    /// Which pairs are scored.
    pub span: Span,
    /// The network.
    pub network: &'m dyn NeuralNetwork,
    /// What a length must exceed.
    pub threshold: f64,
}

impl Saliency<'_> {
    /// The best of `trace-lab table1 --quick` on the sequences that choose thresholds; other models want others.
    pub const THRESHOLD: f64 = 0.13;
}

impl Method for Saliency<'_> {
    fn name(&self) -> MethodName {
        MethodName::Saliency
    }

    fn threshold(&self) -> f64 {
        self.threshold
    }

    fn run(&self, sequence: &EventSequence) -> Result<Discovered, Error> {
        self.span.check(sequence)?;
        let events = &sequence.events;
        let reading = self.network.read(events)?;
        let effects = self.span.effects(events.len());
        let mut lengths = vec![0.0; effects.clone().sum()];
        self.network.saliency(events, effects.clone(), &mut lengths)?;
        let mut rest = lengths.as_slice();
        let scores: Vec<Vec<f64>> = effects
            .map(|effect| {
                let (own, others) = rest.split_at(effect);
                rest = others;
                (1..=self.span.lags(effect)).map(|lag| own[effect - lag]).collect()
            })
            .collect();
        Ok(without_branches(graph(sequence, self.span, self.threshold, Some(reading.observed()), &scores)?))
    }
}
