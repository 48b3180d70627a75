//! One type pair of a population graph with all that is known and decided of it: what files hold and pages show.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{PairRecord, PopulationRule, SequenceSums, TypePair};
use crate::evidence::{LEAST_SEQUENCES, PairEvidence, TestedPair};
use crate::graph::{Verdict, hidden_cause_ratio};
use crate::numerics::Moments;
use crate::{EventId, Lag, Question};

/// Why a type pair cannot be tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Untestable {
    /// Hardly anything else could have stood there: the log cannot say what would have happened otherwise.
    AlwaysSo,
    /// Both always carry the same time.
    SameTime,
    /// Too few sequences have a place that can be tested.
    TooRare,
}

/// One type pair of a population graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PopulationPair<K = EventId> {
    /// The causing type.
    pub cause: K,
    /// The caused type.
    pub effect: K,
    /// What was asked.
    #[serde(default, skip_serializing_if = "Question::is_whether")]
    pub question: Question,
    /// What is claimed.
    #[serde(default)]
    pub verdict: Verdict,
    /// Whether the pair is an edge of the population graph.
    pub kept: bool,
    /// One-sided p-value of the verdict's side; of promoting where nothing is claimed. Null where there is no evidence.
    #[serde(default)]
    pub p_value: Option<f64>,
    /// Its q-value among all pairs tested with it.
    #[serde(default)]
    pub q_value: Option<f64>,
    /// How many times as likely the cause makes the effect, as the mean over opportunities.
    #[serde(default = "one")]
    pub ratio: f64,
    /// Sequences with at least one opportunity.
    pub sequences: u64,
    /// Times the cause stood at a tested lag before the effect, not at the same time and with room for anything else.
    pub opportunities: u64,
    /// Times it stood there at all.
    #[serde(default)]
    pub places: u64,
    /// The share of places with equal times.
    #[serde(default)]
    pub tied: f64,
    /// How much room places left for anything else, on average; null where it is not known.
    #[serde(default)]
    pub overlap: Option<f64>,
    /// Its spread.
    #[serde(default)]
    pub overlap_spread: f64,
    /// See [`hidden_cause_ratio`].
    #[serde(default = "one")]
    pub hidden_cause_ratio: f64,
    /// The same at the lower bound of the ratio.
    #[serde(default = "one")]
    pub hidden_cause_ratio_low: f64,
    /// How many opportunities were kept as edges.
    pub kept_count: u64,
    /// Mean strength over opportunities.
    pub mean_strength: f64,
    /// Its spread.
    pub strength_spread: f64,
    /// Mean signed log ratio over opportunities.
    pub mean_log_ratio: f64,
    /// Its spread.
    pub log_ratio_spread: f64,
    /// Signed lower-bound score: ranks.
    pub score: f64,
    /// The same bound on the strength.
    pub unsigned_score: f64,
    /// How many kept edges have each lag.
    pub lags: BTreeMap<Lag, u64>,
    /// How all that is spread over sequences; absent in files of early versions and in what was merged from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_sequence: Option<SequenceSums>,
    /// The sums that the p-value comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<PairEvidence>,
    /// Whether the pair is known beforehand, so that nothing decided.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
}

const fn one() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl<K> PopulationPair<K> {
    /// What a record comes to under a rule: decided by the tests of its evidence, which it may lack, or by its effect size
    /// where no pair has any.
    pub fn new(
        (cause, effect, question): TypePair<K>,
        record: &PairRecord,
        rule: &PopulationRule,
        tests: Option<Option<TestedPair>>,
    ) -> Self {
        let (score, mean) = (rule.score(record), record.log_ratio.mean);
        let (verdict, test) = verdict(record, rule, tests);
        Self {
            cause,
            effect,
            question,
            verdict,
            kept: record.required || verdict == Verdict::Promotes,
            p_value: test.map(|test| test.0),
            q_value: test.map(|test| test.1),
            ratio: mean.exp().min(f64::MAX),
            sequences: record.sequences,
            opportunities: record.opportunities(),
            places: record.places,
            tied: if record.places == 0 { 0.0 } else { record.tied as f64 / record.places as f64 },
            overlap: (record.overlap.count > 0).then_some(record.overlap.mean),
            overlap_spread: record.overlap.spread(),
            hidden_cause_ratio: hidden_cause_ratio(mean),
            hidden_cause_ratio_low: hidden_cause_ratio(if mean > 0.0 { score.max(0.0) } else { 0.0 }),
            kept_count: record.kept_count,
            mean_strength: record.strength.mean,
            strength_spread: record.strength.spread(),
            mean_log_ratio: mean,
            log_ratio_spread: record.log_ratio.spread(),
            score,
            unsigned_score: rule.unsigned_score(record),
            lags: record.lags.clone(),
            // How many there are is said by `sequences` above.
            by_sequence: record.sequence_sums().map(|sums| SequenceSums { sequences: 0, ..*sums }),
            evidence: record.evidence,
            required: record.required,
        }
    }

    /// The record it came from, to rounding.
    pub fn record(&self) -> PairRecord {
        let sums = |sums: SequenceSums| SequenceSums { sequences: self.sequences, ..sums };
        // Files of the first version know neither ties nor overlap.
        let places = self.places.max(self.opportunities);
        let tied = (self.tied * places as f64).round() as u64;
        let untied = if self.overlap.is_some() { places - tied.min(places) } else { 0 };
        PairRecord {
            sequences: self.sequences,
            places,
            tied,
            kept_count: self.kept_count,
            strength: Moments::from_spread(self.opportunities, self.mean_strength, self.strength_spread),
            log_ratio: Moments::from_spread(self.opportunities, self.mean_log_ratio, self.log_ratio_spread),
            overlap: Moments::from_spread(untied, self.overlap.unwrap_or(0.0), self.overlap_spread),
            lags: self.lags.clone(),
            by_sequence: self.by_sequence.map(sums).unwrap_or_default(),
            evidence: self.evidence,
            required: self.required,
        }
    }

    /// The same pair with its types called otherwise.
    pub fn renamed<L>(self, mut name: impl FnMut(K) -> L) -> PopulationPair<L> {
        PopulationPair {
            cause: name(self.cause),
            effect: name(self.effect),
            question: self.question,
            verdict: self.verdict,
            kept: self.kept,
            p_value: self.p_value,
            q_value: self.q_value,
            ratio: self.ratio,
            sequences: self.sequences,
            opportunities: self.opportunities,
            places: self.places,
            tied: self.tied,
            overlap: self.overlap,
            overlap_spread: self.overlap_spread,
            hidden_cause_ratio: self.hidden_cause_ratio,
            hidden_cause_ratio_low: self.hidden_cause_ratio_low,
            kept_count: self.kept_count,
            mean_strength: self.mean_strength,
            strength_spread: self.strength_spread,
            mean_log_ratio: self.mean_log_ratio,
            log_ratio_spread: self.log_ratio_spread,
            score: self.score,
            unsigned_score: self.unsigned_score,
            lags: self.lags,
            by_sequence: self.by_sequence,
            evidence: self.evidence,
            required: self.required,
        }
    }

    /// Why the pair cannot be tested; `None` where it can.
    pub fn untestable(&self) -> Option<Untestable> {
        if self.verdict != Verdict::Untestable {
            return None;
        }
        let untied = self.places as f64 * (1.0 - self.tied);
        Some(if self.places > 0 && untied < 0.5 {
            Untestable::SameTime
        } else if (self.opportunities as f64) < 0.5 * untied {
            Untestable::AlwaysSo
        } else {
            Untestable::TooRare
        })
    }

    /// Whether the numbers can be those of a pair.
    pub fn is_possible(&self) -> bool {
        let numbers = [self.mean_strength, self.strength_spread, self.mean_log_ratio, self.log_ratio_spread];
        self.opportunities <= self.places.max(self.opportunities)
            && (self.opportunities > 0 || self.places > 0 || self.evidence.is_some())
            && (0.0..=1.0).contains(&self.tied)
            && self.overlap.is_none_or(|overlap| (0.0..=1.0 + 1e-9).contains(&overlap))
            && numbers.iter().chain([&self.overlap_spread]).all(|number| number.is_finite())
            && self.by_sequence.is_none_or(|sums| sums.is_possible())
            && self.evidence.is_none_or(|evidence| evidence.is_possible())
    }
}

/// What is claimed of a pair, and the p- and q-value that go with it.
#[expect(clippy::option_option, reason = "no evidence at all is not the same as none of this pair")]
fn verdict(
    record: &PairRecord,
    rule: &PopulationRule,
    tests: Option<Option<TestedPair>>,
) -> (Verdict, Option<(f64, f64)>) {
    if record.sequences < LEAST_SEQUENCES {
        return (Verdict::Untestable, None);
    }
    let mean = record.log_ratio.mean;
    let Some(tested) = tests else {
        let claimed = if rule.score(record) > rule.cut {
            Verdict::Promotes
        } else if rule.upper_bound(record) < -rule.cut {
            Verdict::Inhibits
        } else {
            Verdict::None
        };
        return (claimed, None);
    };
    // Without evidence of its own, nothing is claimed of it.
    let Some(TestedPair { promotes, inhibits }) = tested else { return (Verdict::None, None) };
    // What is shown must agree with what is claimed: the mean ratio lies on the same side as the test.
    let least = rule.evidence.least_ratio.ln();
    if promotes.q <= rule.evidence.fdr && mean > least {
        (Verdict::Promotes, Some((promotes.p, promotes.q)))
    } else if inhibits.q <= rule.evidence.fdr && mean < -least {
        (Verdict::Inhibits, Some((inhibits.p, inhibits.q)))
    } else {
        (Verdict::None, Some((promotes.p, promotes.q)))
    }
}
