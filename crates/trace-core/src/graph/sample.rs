//! The causal graph of one sequence over its positions.

use crate::{EventId, Lag, Position};

/// One tested pair of positions: a candidate edge, kept or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// The candidate cause.
    pub cause: Position,
    /// The effect, later than the cause.
    pub effect: Position,
    /// Mean divergence over replacements of the cause, in nats.
    pub strength: f64,
    /// Monte-Carlo standard error of the strength; 0 when all replacements were enumerated.
    pub std_error: f64,
    /// Number of replacements tried.
    pub particles: u32,
    /// `log p − mean log p_r`: positive where the cause promoted the effect, negative where the effect happened
    /// despite it.
    pub log_ratio: f64,
    /// The effect's probability with the cause as observed.
    pub probability: f64,
    /// Its mean probability with the cause replaced.
    pub probability_replaced: f64,
    /// Whether the strength exceeds the threshold, or the edge is known beforehand.
    pub kept: bool,
    /// Whether the edge is known beforehand, so that its strength did not decide.
    pub required: bool,
}

impl Edge {
    /// How many events the effect comes after the cause.
    pub fn lag(&self) -> Lag {
        Lag(self.effect.0 - self.cause.0)
    }
}

/// `G_{t,s}`: a directed acyclic graph over the positions of one sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleGraph {
    events: Vec<EventId>,
    pairs: Vec<Edge>,
    excluded: Vec<(Position, Position)>,
    threshold: f64,
}

impl SampleGraph {
    /// A graph of tested pairs, in order of cause and lag.
    pub fn new(events: Vec<EventId>, pairs: Vec<Edge>, threshold: f64) -> Self {
        Self { events, pairs, excluded: Vec::new(), threshold }
    }

    /// The same graph, with the pairs that prior knowledge kept from being tested.
    #[must_use]
    pub fn with_excluded(self, excluded: Vec<(Position, Position)>) -> Self {
        Self { excluded, ..self }
    }

    /// The events at the nodes.
    pub fn events(&self) -> &[EventId] {
        &self.events
    }

    /// What a strength had to exceed.
    pub const fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Every tested pair, kept or not.
    pub fn pairs(&self) -> &[Edge] {
        &self.pairs
    }

    /// Pairs of cause and effect that were not tested, because prior knowledge says that they are no edges.
    pub fn excluded(&self) -> &[(Position, Position)] {
        &self.excluded
    }

    /// The edges: pairs whose strength exceeds the threshold, and those known beforehand.
    pub fn edges(&self) -> impl Iterator<Item = &Edge> {
        self.pairs.iter().filter(|pair| pair.kept)
    }
}
