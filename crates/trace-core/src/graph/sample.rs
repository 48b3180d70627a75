//! The causal graph of one sequence over its positions.

use serde::{Deserialize, Serialize};

use crate::{EventId, Lag, Position};

/// One tested pair of positions; an edge where it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The candidate cause.
    pub cause: Position,
    /// The effect, later than the cause.
    pub effect: Position,
    /// How many events the effect comes after the cause.
    pub lag: Lag,
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
    /// Whether both carry the same timestamp, so that their order is only that of the log.
    #[serde(default)]
    pub tied: bool,
    /// Whether the strength exceeds the threshold, or the edge is known beforehand.
    #[serde(default = "yes")]
    pub kept: bool,
    /// Whether the edge is known beforehand, so that its strength did not decide.
    #[serde(rename = "knowledge", default, skip_serializing_if = "is_false", with = "required")]
    pub required: bool,
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// `"knowledge": "required"` where prior knowledge asks for an edge.
mod required {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Known {
        Required,
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(super) fn serialize<S: Serializer>(_required: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        Known::Required.serialize(serializer) // only what is required is written
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
        Known::deserialize(deserializer).map(|Known::Required| true)
    }
}

/// `G_{t,s}`: a directed acyclic graph over the positions of one sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleGraph {
    events: Vec<EventId>,
    pairs: Vec<Pair>,
    excluded: Vec<(Position, Position)>,
    threshold: f64,
}

impl SampleGraph {
    /// A graph of tested pairs, in order of cause and lag.
    pub fn new(events: Vec<EventId>, pairs: Vec<Pair>, threshold: f64) -> Self {
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
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Pairs of cause and effect that were not tested, because prior knowledge says that they are no edges.
    pub fn excluded(&self) -> &[(Position, Position)] {
        &self.excluded
    }

    /// The edges: pairs whose strength exceeds the threshold, and those known beforehand.
    pub fn edges(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.kept)
    }
}
