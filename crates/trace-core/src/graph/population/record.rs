//! What many sequences say about one type pair.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::evidence::PairEvidence;
use crate::graph::Pair;
use crate::numerics::Moments;
use crate::{Lag, Question};

/// Two types and what is asked of them: cause, effect, question.
pub type TypePair<K> = (K, K, Question);

/// One place of a sequence where the cause stood at a tested lag before the effect.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Opportunity<K> {
    /// Which pair of types it is of.
    pub types: TypePair<K>,
    /// Divergence, in nats.
    pub strength: f64,
    /// Signed log ratio.
    pub log_ratio: f64,
    /// How far apart they are.
    pub lag: Lag,
    /// Whether the place is an edge.
    pub kept: bool,
    /// Whether both carry the same time.
    pub tied: bool,
    /// How much room there was for anything else, where that is known.
    pub overlap: Option<f64>,
    /// Whether there was enough.
    pub testable: bool,
    /// Whether the pair is known beforehand.
    pub required: bool,
}

impl<K> Opportunity<K> {
    /// A tested pair of positions whose types are these.
    pub fn new(cause: K, effect: K, pair: &Pair) -> Self {
        Self {
            types: (cause, effect, pair.question),
            strength: pair.strength,
            log_ratio: pair.log_ratio,
            lag: pair.lag,
            kept: pair.kept,
            tied: pair.tied,
            overlap: pair.overlap,
            testable: pair.is_testable(),
            required: pair.required,
        }
    }
}

/// What many sequences say about one type pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairRecord {
    /// Sequences with at least one opportunity.
    pub sequences: u64,
    /// Places where the cause stood at a tested lag before the effect.
    pub places: u64,
    /// How many of them are tied: their order is only that of the log.
    pub tied: u64,
    /// Opportunities – places that are not tied and left room for anything else – that were kept as edges.
    pub kept_count: u64,
    /// Strengths of all opportunities.
    pub strength: Moments,
    /// Signed log ratios of all opportunities.
    pub log_ratio: Moments,
    /// How much room places that are not tied left for anything else.
    pub overlap: Moments,
    /// How many kept edges have each lag.
    pub lags: BTreeMap<Lag, u64>,
    /// How opportunities and edges are spread over sequences.
    pub by_sequence: SequenceSums,
    /// Evidence from sequences that the model was not trained on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<PairEvidence>,
    /// Whether the pair is known beforehand.
    #[serde(default)]
    pub required: bool,
}

impl PairRecord {
    /// The sums over sequences, where they cover all of them.
    pub fn sequence_sums(&self) -> Option<&SequenceSums> {
        (self.by_sequence.sequences == self.sequences).then_some(&self.by_sequence)
    }

    /// The number of opportunities.
    pub const fn opportunities(&self) -> u64 {
        self.strength.count
    }

    /// Adds one place; whether it is an opportunity.
    pub(super) fn push<K>(&mut self, place: &Opportunity<K>) -> bool {
        self.places += 1;
        self.required |= place.required;
        if place.tied {
            self.tied += 1;
            return false;
        }
        if let Some(overlap) = place.overlap {
            self.overlap.push(overlap);
        }
        if !place.testable {
            return false;
        }
        self.strength.push(place.strength);
        self.log_ratio.push(place.log_ratio);
        if place.kept {
            self.kept_count += 1;
            *self.lags.entry(place.lag).or_default() += 1;
        }
        true
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.sequences += other.sequences;
        self.places += other.places;
        self.tied += other.tied;
        self.kept_count += other.kept_count;
        self.strength.merge(&other.strength);
        self.log_ratio.merge(&other.log_ratio);
        self.overlap.merge(&other.overlap);
        for (lag, count) in &other.lags {
            *self.lags.entry(*lag).or_default() += count;
        }
        self.by_sequence.merge(&other.by_sequence);
        if let Some(evidence) = &other.evidence {
            self.evidence.get_or_insert_default().merge(evidence);
        }
        self.required |= other.required;
    }
}

/// Sums over sequences of products of what each holds of one type pair: `n` opportunities, of which `k` were kept, with
/// log ratios that sum to `S`.
///
/// Opportunities in one sequence are not independent of each other, sequences are. These sums give the variance of a
/// mean over opportunities with sequences as the unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SequenceSums {
    /// How many sequences are in the sums. Less than the pair has where part of it came from a file without them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sequences: u64,
    /// `Σ n²`
    pub opportunities_squared: f64,
    /// `Σ S²`
    pub log_ratio_squared: f64,
    /// `Σ S n`
    pub log_ratio_opportunities: f64,
    /// `Σ k²`
    pub kept_squared: f64,
    /// `Σ k n`
    pub kept_opportunities: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl SequenceSums {
    pub(super) fn is_possible(&self) -> bool {
        let squares = [self.opportunities_squared, self.log_ratio_squared, self.kept_squared, self.kept_opportunities];
        squares.iter().all(|sum| sum.is_finite() && *sum >= 0.0) && self.log_ratio_opportunities.is_finite()
    }

    pub(super) fn push(&mut self, opportunities: u64, kept: u64, log_ratio: f64) {
        let (n, k) = (opportunities as f64, kept as f64);
        self.sequences += 1;
        self.opportunities_squared += n * n;
        self.log_ratio_squared += log_ratio * log_ratio;
        self.log_ratio_opportunities += log_ratio * n;
        self.kept_squared += k * k;
        self.kept_opportunities += k * n;
    }

    fn merge(&mut self, other: &Self) {
        self.sequences += other.sequences;
        self.opportunities_squared += other.opportunities_squared;
        self.log_ratio_squared += other.log_ratio_squared;
        self.log_ratio_opportunities += other.log_ratio_opportunities;
        self.kept_squared += other.kept_squared;
        self.kept_opportunities += other.kept_opportunities;
    }
}
