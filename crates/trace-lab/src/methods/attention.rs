//! Attention weights as a graph: what the deepest layer of an encoder, trained to fill in masked events, looks at.

use trace_core::{Discovered, Error, EventId, EventSequence, ModelError};
use trace_models::neural::Encoder;

use super::{Method, MethodName, Span, graph, without_branches};

/// A model with attention weights to look at.
pub trait Attends: Send + Sync {
    /// The weights of the deepest layer, averaged over heads: a row for each position that attends, with a number for
    /// each position attended to.
    fn attention(&self, events: &[EventId]) -> Result<Vec<f32>, ModelError>;
}

impl Attends for Encoder {
    fn attention(&self, events: &[EventId]) -> Result<Vec<f32>, ModelError> {
        Self::attention(self, events).map_err(ModelError::new)
    }
}

/// How much the effect attends to the cause.
#[derive(Clone, Copy)]
pub struct Attention<'a> {
    /// Which pairs are scored.
    pub span: Span,
    /// Whose weights.
    pub encoder: &'a dyn Attends,
    /// What a weight must exceed.
    pub threshold: f64,
}

impl Attention<'_> {
    /// The paper's.
    pub const THRESHOLD: f64 = 0.02;
}

impl Method for Attention<'_> {
    fn name(&self) -> MethodName {
        MethodName::Attention
    }

    fn threshold(&self) -> f64 {
        self.threshold
    }

    fn run(&self, sequence: &EventSequence) -> Result<Discovered, Error> {
        self.span.check(sequence)?;
        let length = sequence.events.len();
        let weights = self.encoder.attention(&sequence.events)?;
        let weight = |effect: usize, cause: usize| f64::from(weights[effect * length + cause]);
        let scores: Vec<Vec<f64>> = self
            .span
            .effects(length)
            .map(|effect| (1..=self.span.lags(effect)).map(|lag| weight(effect, effect - lag)).collect())
            .collect();
        Ok(without_branches(graph(sequence, self.span, self.threshold, None, &scores)?))
    }
}
