//! The causal graph of one sequence over its positions.

use serde::{Deserialize, Serialize};

use crate::discovery::LEAST_OVERLAP;
use crate::discovery::sequential::Decision;
use crate::{EventId, Lag, Position, Question};

/// What is claimed of a pair, of positions or of types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The cause made the effect more likely.
    Promotes,
    /// The cause made the effect less likely.
    Inhibits,
    /// Nothing.
    #[default]
    None,
    /// There was no room for anything else: the log cannot say what would have happened otherwise.
    Untestable,
    /// Too few of the draws carry weight to decide.
    Undecided,
}

impl Verdict {
    /// The word for it, as in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Promotes => "promotes",
            Self::Inhibits => "inhibits",
            Self::None => "none",
            Self::Untestable => "untestable",
            Self::Undecided => "undecided",
        }
    }
}

/// How strongly an unseen common cause would have to be tied to both cause and effect to explain a ratio away:
/// `RR + √(RR (RR − 1))` with `RR = max(ratio, 1/ratio)` (`VanderWeele` & Ding 2017).
pub fn hidden_cause_ratio(log_ratio: f64) -> f64 {
    let ratio = log_ratio.abs().exp();
    (ratio * (1.0 + (1.0 - 1.0 / ratio).max(0.0).sqrt())).min(f64::MAX)
}

/// Draws of equal weight that a decision needs at least.
pub const LEAST_EFFECTIVE: f64 = 8.0;

/// One tested pair of positions; an edge where it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The candidate cause.
    pub cause: Position,
    /// The effect, later than the cause.
    pub effect: Position,
    /// How many events the effect comes after the cause.
    pub lag: Lag,
    /// What was asked.
    #[serde(default, skip_serializing_if = "Question::is_whether")]
    pub question: Question,
    /// Mean divergence over replacements of the cause, in nats.
    pub strength: f64,
    /// Monte-Carlo standard error of the strength; 0 when all replacements were enumerated.
    pub std_error: f64,
    /// Number of replacements tried.
    pub particles: u32,
    /// `ln(probability / probability_replaced)`: positive where the cause promoted the effect, negative where the effect
    /// happened despite it.
    pub log_ratio: f64,
    /// The effect's probability with the cause as observed.
    pub probability: f64,
    /// Its mean probability with the cause replaced.
    pub probability_replaced: f64,
    /// How many draws of equal weight say as much; absent where weights do not differ or all types were tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_particles: Option<f64>,
    /// How much room there was for anything else than the cause and the effect; absent where the model does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<f64>,
    /// What is claimed.
    #[serde(default)]
    pub verdict: Verdict,
    /// See [`hidden_cause_ratio`].
    #[serde(default)]
    pub hidden_cause_ratio: f64,
    /// Whether both carry the same timestamp, so that their order is only that of the log.
    #[serde(default)]
    pub tied: bool,
    /// Whether the pair is an edge: testable and stronger than the threshold, or known beforehand.
    #[serde(default = "yes")]
    pub kept: bool,
    /// Whether the edge is known beforehand, so that its strength did not decide.
    #[serde(rename = "knowledge", default, skip_serializing_if = "is_false", with = "required")]
    pub required: bool,
}

impl Pair {
    /// The same pair, decided by a threshold.
    #[must_use]
    pub fn decided(self, threshold: f64) -> Self {
        let verdict = if !self.is_testable() {
            Verdict::Untestable
        } else if self.effective_particles.is_some_and(|draws| draws < LEAST_EFFECTIVE) {
            Verdict::Undecided
        } else {
            Self::sign(self.strength > threshold, self.log_ratio)
        };
        let kept = self.required || matches!(verdict, Verdict::Promotes | Verdict::Inhibits);
        Self { verdict, kept, hidden_cause_ratio: hidden_cause_ratio(self.log_ratio), ..self }
    }

    /// The same pair, decided by a test of its draws; undecided where that has not decided.
    #[must_use]
    pub(crate) fn decided_by(self, decision: Option<Decision>) -> Self {
        let verdict = match decision {
            Some(decision) => Self::sign(decision == Decision::Above, self.log_ratio),
            None => Verdict::Undecided,
        };
        let kept = self.required || matches!(verdict, Verdict::Promotes | Verdict::Inhibits);
        Self { verdict, kept, ..self }
    }

    /// The same pair as files of the first version have it: what was kept there was claimed.
    #[must_use]
    pub fn as_it_was_kept(self) -> Self {
        let verdict = Self::sign(self.kept, self.log_ratio);
        Self { verdict, hidden_cause_ratio: hidden_cause_ratio(self.log_ratio), ..self }
    }

    const fn sign(claimed: bool, log_ratio: f64) -> Verdict {
        match (claimed, log_ratio < 0.0) {
            (false, _) => Verdict::None,
            (true, false) => Verdict::Promotes,
            (true, true) => Verdict::Inhibits,
        }
    }

    /// Whether there was room for anything else.
    pub fn is_testable(&self) -> bool {
        self.overlap.is_none_or(|overlap| overlap >= LEAST_OVERLAP)
    }
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
