//! The graphs of many sequences merged into one over event types.
//!
//! For a type pair `u → v`, every place where `u` stands at a tested lag before `v` is an *opportunity*, kept or not,
//! unless both carry the same time or the place left no room for anything else. Two statistics:
//!
//! **Effect size.** With `n` opportunities, the mean `r̄` and spread `s` of their signed log ratios:
//!
//! ```text
//! score(u → v) = r̄ − z · max(s, 0.3) / √n         z = 2.6
//! ```
//!
//! **Evidence** from sequences that the model was not trained on ([`crate::evidence`]): a pair is kept when it promotes
//! with a q-value of at most `fdr` for a ratio above `least_ratio`. Where there is no evidence, it is kept when its score
//! exceeds 0.3: "seeing `u` multiplies the probability of `v` by at least e^0.3 ≈ 1.35, at 99.5 % confidence if
//! opportunities were independent." Either way it needs opportunities in five sequences, and is *untestable* without.
//!
//! The unsigned score is the same bound on the mean strength, for logs where the sign says nothing.

mod pair;
mod record;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use pair::{PopulationPair, Untestable};
pub use record::{Opportunity, PairRecord, SequenceSums, TypePair};

use super::SampleGraph;
use crate::evidence::{
    Evidence, EvidenceRule, LEAST_SEQUENCES, PairEvidence, PairList, PairLists, SequenceEvidence, TestedPair, decide,
};
use crate::numerics::Moments;
use crate::{EventId, Families, Question};

/// The constants of the population rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PopulationRule {
    /// Standard errors that the bound lies below the mean.
    pub z: f64,
    /// Floor of the spread of log ratios, so that few lucky occurrences cannot win.
    pub spread_floor: f64,
    /// Floor of the spread of strengths, likewise.
    pub strength_floor: f64,
    /// Without evidence, a pair is kept when its score exceeds this.
    pub cut: f64,
    /// With evidence, what decides.
    pub evidence: EvidenceRule,
}

impl Default for PopulationRule {
    fn default() -> Self {
        Self { z: 2.6, spread_floor: 0.3, strength_floor: 0.05, cut: 0.3, evidence: EvidenceRule::default() }
    }
}

impl PopulationRule {
    fn margin(&self, moments: &Moments, floor: f64) -> f64 {
        self.z * moments.spread().max(floor) / (moments.count.max(1) as f64).sqrt()
    }

    /// The signed score, a lower confidence bound of the mean log ratio: what ranks pairs.
    pub fn score(&self, record: &PairRecord) -> f64 {
        record.log_ratio.mean - self.margin(&record.log_ratio, self.spread_floor)
    }

    /// The upper confidence bound of the mean log ratio.
    pub fn upper_bound(&self, record: &PairRecord) -> f64 {
        record.log_ratio.mean + self.margin(&record.log_ratio, self.spread_floor)
    }

    /// The unsigned score.
    pub fn unsigned_score(&self, record: &PairRecord) -> f64 {
        record.strength.mean - self.margin(&record.strength, self.strength_floor)
    }
}

/// Which evidence a population holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceBase {
    /// The fingerprint of the pairs it is on; sums of the same pairs can be merged.
    #[serde(with = "hexadecimal")]
    pub pairs: u64,
    /// How many further pairs occurred and are not listed.
    pub unlisted: u64,
    /// How many further pairs of outcomes.
    #[serde(default)]
    pub unlisted_outcomes: u64,
    /// How many sequences it comes from.
    pub sequences: u64,
    /// How many sequences say nothing because the model was trained on them.
    pub trained_on: u64,
}

impl EvidenceBase {
    /// Whether there are enough sequences to test anything.
    pub const fn is_enough(&self) -> bool {
        self.sequences >= LEAST_SEQUENCES
    }
}

/// Numbers beyond 2^53 are not safe in JSON.
mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(super) fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{value:016x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map_err(de::Error::custom)
    }
}

/// Many sequences' graphs over event types, merged.
///
/// `K` is how types are told apart: [`EventId`] within one vocabulary, names across files.
#[derive(Clone, Debug, PartialEq)]
pub struct PopulationGraph<K = EventId> {
    /// How many sequences were merged.
    pub sequences: u64,
    /// What is known of each type pair.
    pub pairs: BTreeMap<TypePair<K>, PairRecord>,
    /// Which evidence they hold.
    pub evidence: Option<EvidenceBase>,
}

impl<K> Default for PopulationGraph<K> {
    fn default() -> Self {
        Self { sequences: 0, pairs: BTreeMap::new(), evidence: None }
    }
}

impl<K: Ord + Clone> PopulationGraph<K> {
    /// Adds one sequence with all its tested places.
    pub fn add_sequence(&mut self, places: impl IntoIterator<Item = Opportunity<K>>) {
        self.sequences += 1;
        // Opportunities, kept ones and the sum of log ratios of this sequence, for each pair.
        let mut here: BTreeMap<TypePair<K>, (u64, u64, f64)> = BTreeMap::new();
        for place in places {
            if self.pairs.entry(place.types.clone()).or_default().push(&place) {
                let sums = here.entry(place.types).or_default();
                *sums = (sums.0 + 1, sums.1 + u64::from(place.kept), sums.2 + place.log_ratio);
            }
        }
        for (types, (opportunities, kept, log_ratio)) in here {
            let record = self.pairs.entry(types).or_default();
            record.sequences += 1;
            record.by_sequence.push(opportunities, kept, log_ratio);
        }
    }

    /// Adds all that another graph holds. Associative and commutative, to rounding. Evidence on other pairs, or beside
    /// sequences without any, cannot be added up and is dropped.
    pub fn merge(&mut self, other: &Self) {
        let same = matches!((&self.evidence, &other.evidence), (Some(a), Some(b)) if a.pairs == b.pairs);
        let evidence = if self.sequences == 0 && self.pairs.is_empty() {
            other.evidence
        } else if other.sequences == 0 && other.pairs.is_empty() {
            self.evidence
        } else {
            self.evidence.zip(other.evidence).filter(|_| same).map(|(a, b)| EvidenceBase {
                sequences: a.sequences + b.sequences,
                trained_on: a.trained_on + b.trained_on,
                ..a
            })
        };
        self.evidence = evidence;
        self.sequences += other.sequences;
        for (types, record) in &other.pairs {
            self.pairs.entry(types.clone()).or_default().merge(record);
        }
        if self.evidence.is_none() {
            self.pairs.values_mut().for_each(|record| record.evidence = None);
            self.pairs.retain(|_, record| record.places > 0);
        }
    }

    /// Every pair with what a rule decides of it: what is kept first, then by score.
    pub fn decided(&self, rule: &PopulationRule) -> Vec<PopulationPair<K>> {
        let tests = self.tests(rule);
        let mut pairs: Vec<PopulationPair<K>> = self
            .pairs
            .iter()
            .map(|(types, record)| {
                let tested = tests.as_ref().map(|tests| tests.get(types).copied());
                PopulationPair::new(types.clone(), record, rule, tested)
            })
            .collect();
        pairs.sort_by(|a, b| b.kept.cmp(&a.kept).then(b.score.total_cmp(&a.score))); // stable: ties stay in order of types
        pairs
    }

    /// Tests every pair that has evidence; pairs of a type with itself, and each question, apart. `None` where there is no
    /// evidence at all.
    fn tests(&self, rule: &PopulationRule) -> Option<BTreeMap<&TypePair<K>, TestedPair>> {
        let base = self.evidence.filter(EvidenceBase::is_enough)?;
        let mut tests = BTreeMap::new();
        for question in [Question::Whether, Question::How] {
            for own in [false, true] {
                let family: Vec<(&TypePair<K>, (PairEvidence, f64))> = self
                    .pairs
                    .iter()
                    .filter(|(types, record)| {
                        types.2 == question && (types.0 == types.1) == own && record.sequences >= LEAST_SEQUENCES
                    })
                    .filter(|(_, record)| !record.required)
                    .filter_map(|(types, record)| Some((types, (record.evidence?, record.log_ratio.mean))))
                    .collect();
                let sums: Vec<(PairEvidence, f64)> = family.iter().map(|(_, sums)| *sums).collect();
                let unlisted = match question {
                    _ if own => 0,
                    Question::Whether => base.unlisted,
                    Question::How => base.unlisted_outcomes,
                };
                let tested = decide(&sums, unlisted, &rule.evidence);
                tests.extend(family.into_iter().map(|(types, _)| types).zip(tested));
            }
        }
        Some(tests)
    }

    /// The same graph with types called otherwise. Types that get the same name are merged.
    pub fn rename<L: Ord + Clone>(&self, mut name: impl FnMut(&K, Question) -> L) -> PopulationGraph<L> {
        let mut renamed =
            PopulationGraph { sequences: self.sequences, pairs: BTreeMap::new(), evidence: self.evidence };
        for ((cause, effect, question), record) in &self.pairs {
            renamed
                .pairs
                .entry((name(cause, *question), name(effect, *question), *question))
                .or_default()
                .merge(record);
        }
        renamed
    }
}

impl PopulationGraph<EventId> {
    /// Adds the graph of one sequence, with all pairs that were tested.
    pub fn add(&mut self, graph: &SampleGraph, families: Option<&Families>) {
        // Whether is asked of steps, which their first types stand for.
        let type_of = |position: crate::Position, question| match (families, question) {
            (Some(families), Question::Whether) => families.representative(graph.events()[position.index()]),
            _ => graph.events()[position.index()],
        };
        self.add_sequence(graph.pairs().iter().map(|pair| {
            Opportunity::new(type_of(pair.cause, pair.question), type_of(pair.effect, pair.question), pair)
        }));
    }

    /// Adds the evidence of a sequence that was just added: `None` where the model was trained on it.
    pub fn add_evidence(&mut self, lists: &PairLists, evidence: Option<&Evidence>) {
        let base = self.evidence.get_or_insert(EvidenceBase {
            pairs: lists.fingerprint(),
            unlisted: lists.whether.unlisted(),
            unlisted_outcomes: lists.how.as_ref().map_or(0, PairList::unlisted),
            sequences: 0,
            trained_on: 0,
        });
        let Some(evidence) = evidence else {
            base.trained_on += 1;
            return;
        };
        base.sequences += 1;
        self.add_sums(&lists.whether, &evidence.whether, Question::Whether);
        if let (Some(list), Some(sums)) = (&lists.how, &evidence.how) {
            self.add_sums(list, sums, Question::How);
        }
    }

    fn add_sums(&mut self, list: &PairList, evidence: &SequenceEvidence, question: Question) {
        for (number, sums) in evidence.pairs() {
            let (cause, effect) = list.pair(number);
            let record = self.pairs.entry((cause, effect, question)).or_default();
            record.evidence.get_or_insert_default().push(&sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Lag;
    use crate::evidence::PlaceSums;
    use crate::graph::Verdict;

    type Tested = Opportunity<u8>;

    fn tested(cause: u8, effect: u8, strength: f64, log_ratio: f64, lag: u32, kept: bool) -> Tested {
        Opportunity {
            types: (cause, effect, Question::Whether),
            strength,
            log_ratio,
            lag: Lag(lag),
            kept,
            tied: false,
            overlap: Some(0.5),
            testable: true,
            required: false,
        }
    }

    prop_compose! {
        fn place()(
            types in (0u8..3, 0u8..3), strength in 0.0..2.0f64, log_ratio in -3.0..3.0f64, lag in 1u32..5,
            kept in any::<bool>(), tied in any::<bool>(), overlap in 0.0..1.0f64
        ) -> Tested {
            let testable = overlap > 0.1;
            let place = tested(types.0, types.1, strength, log_ratio, lag, kept);
            Opportunity { tied, overlap: Some(overlap), testable, ..place }
        }
    }

    fn sequence() -> impl Strategy<Value = Vec<Tested>> {
        proptest::collection::vec(place(), 0..12)
    }

    fn graph_of(sequences: &[Vec<Tested>]) -> PopulationGraph<u8> {
        let mut graph = PopulationGraph::default();
        for sequence in sequences {
            graph.add_sequence(sequence.iter().copied());
        }
        graph
    }

    fn close(a: &PopulationGraph<u8>, b: &PopulationGraph<u8>) -> bool {
        let near = |a: &Moments, b: &Moments| {
            a.count == b.count && (a.mean - b.mean).abs() < 1e-9 && (a.spread() - b.spread()).abs() < 1e-9
        };
        let sums = |record: &PairRecord| {
            let SequenceSums {
                sequences,
                opportunities_squared,
                log_ratio_squared,
                log_ratio_opportunities,
                kept_squared,
                kept_opportunities,
            } = *record.sequence_sums().expect("nothing came without sums");
            let products = [log_ratio_squared, log_ratio_opportunities, kept_squared, kept_opportunities];
            [sequences as f64, opportunities_squared].into_iter().chain(products)
        };
        a.sequences == b.sequences
            && a.pairs.len() == b.pairs.len()
            && a.pairs.iter().all(|(types, x)| {
                let y = &b.pairs[types];
                (x.sequences, x.kept_count, &x.lags) == (y.sequences, y.kept_count, &y.lags)
                    && (x.places, x.tied) == (y.places, y.tied)
                    && near(&x.overlap, &y.overlap)
                    && near(&x.strength, &y.strength)
                    && near(&x.log_ratio, &y.log_ratio)
                    && sums(x).zip(sums(y)).all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + a.abs()))
            })
    }

    fn merged(parts: &[&PopulationGraph<u8>]) -> PopulationGraph<u8> {
        let mut all = PopulationGraph::default();
        for part in parts {
            all.merge(part);
        }
        all
    }

    proptest! {
        #[test]
        fn merging_is_associative_commutative_and_equals_one_run(
            a in proptest::collection::vec(sequence(), 0..4),
            b in proptest::collection::vec(sequence(), 0..4),
            c in proptest::collection::vec(sequence(), 0..4),
        ) {
            let (x, y, z) = (graph_of(&a), graph_of(&b), graph_of(&c));
            let left = merged(&[&merged(&[&x, &y]), &z]);
            let right = merged(&[&x, &merged(&[&y, &z])]);
            prop_assert!(close(&left, &right));
            prop_assert!(close(&left, &merged(&[&z, &y, &x])));
            let all = [a, b, c].concat();
            prop_assert!(close(&left, &graph_of(&all)));
        }
    }

    #[test]
    fn the_rule_on_known_values() {
        let rule = PopulationRule::default();
        let mut record = PairRecord {
            log_ratio: Moments::from_spread(44, 1.2, 0.9),
            strength: Moments::from_spread(44, 0.31, 0.2),
            ..PairRecord::default()
        };
        assert!((rule.score(&record) - (1.2 - 2.6 * 0.9 / 44f64.sqrt())).abs() < 1e-12);
        assert!((rule.unsigned_score(&record) - (0.31 - 2.6 * 0.2 / 44f64.sqrt())).abs() < 1e-12);
        let verdict = |record: &PairRecord| PopulationPair::new((0, 1, Question::Whether), record, &rule, None).verdict;
        record.sequences = 20;
        assert_eq!(verdict(&record), Verdict::Promotes);
        record.log_ratio.mean = -1.2;
        assert_eq!(verdict(&record), Verdict::Inhibits);
        // Perfect opportunities in four sequences are not enough, and few of them are not sure whatever their spread.
        record.strength = Moments::from_spread(4, 0.31, 0.0);
        record.log_ratio = Moments::from_spread(4, 5.0, 0.0);
        record.sequences = 4;
        assert_eq!(verdict(&record), Verdict::Untestable);
        assert!((rule.score(&record) - (5.0 - 2.6 * 0.3 / 2.0)).abs() < 1e-12);
    }

    #[test]
    fn a_pair_counts_a_sequence_once_and_lags_of_kept_edges_only() {
        let graph = graph_of(&[vec![
            tested(0, 1, 0.5, 1.0, 1, true),
            tested(0, 1, 0.01, 0.1, 2, false),
            tested(0, 1, 0.6, 1.1, 3, true),
        ]]);
        let record = &graph.pairs[&(0, 1, Question::Whether)];
        assert_eq!((record.sequences, record.opportunities(), record.kept_count), (1, 3, 2));
        assert_eq!(record.lags, BTreeMap::from([(Lag(1), 1), (Lag(3), 1)]));
        let sums = record.sequence_sums().unwrap();
        assert_eq!((sums.opportunities_squared, sums.kept_squared, sums.kept_opportunities), (9.0, 4.0, 6.0));
        assert!((sums.log_ratio_squared - 2.2 * 2.2).abs() < 1e-12);
        assert!((sums.log_ratio_opportunities - 2.2 * 3.0).abs() < 1e-12);
        let folded = graph.rename(|_, _| 'x');
        assert_eq!(folded.pairs.len(), 1);
    }

    #[test]
    fn ties_and_places_without_room_are_counted_and_say_nothing() {
        let place = tested(0, 1, 0.5, 1.0, 1, true);
        let tied = Opportunity { tied: true, ..place };
        let certain = Opportunity { overlap: Some(0.001), testable: false, kept: false, ..place };
        let graph = graph_of(&vec![vec![place, tied, tied, certain]; 3]);
        let record = &graph.pairs[&(0, 1, Question::Whether)];
        assert_eq!((record.places, record.tied, record.opportunities(), record.kept_count), (12, 6, 3, 3));
        // All tied: never kept, in either direction, unless it is known.
        let mut graph = graph_of(&vec![vec![tied]; 9]);
        let pair = &graph.decided(&PopulationRule::default())[0];
        assert_eq!((pair.kept, pair.verdict, pair.tied, pair.sequences), (false, Verdict::Untestable, 1.0, 0));
        graph.add_sequence([Opportunity { required: true, ..tied }]);
        assert!(graph.decided(&PopulationRule::default())[0].kept);
    }

    fn with_evidence(sequences: u64, residual: f64, pairs: u64) -> PopulationGraph<u8> {
        let mut graph = PopulationGraph::default();
        for _ in 0..sequences {
            graph.add_sequence([tested(0, 1, 0.5, 1.0, 1, true)]);
        }
        graph.evidence = Some(EvidenceBase { pairs, unlisted: 3, unlisted_outcomes: 0, sequences, trained_on: 0 });
        let record = graph.pairs.get_mut(&(0, 1, Question::Whether)).unwrap();
        for _ in 0..sequences {
            let sums = PlaceSums { residual, weight: 0.1, variance: 0.09, expected: 0.1, observed: 1.0 };
            record.evidence.get_or_insert_default().push(&sums);
        }
        graph
    }

    #[test]
    fn evidence_decides_where_there_is_any_and_merges_where_it_is_on_the_same_pairs() {
        let rule = PopulationRule::default();
        let pair = with_evidence(8, 0.9, 1).decided(&rule).remove(0);
        assert!(pair.kept && pair.q_value.unwrap() < 0.01 && (pair.ratio - 1f64.exp()).abs() < 1e-12);
        assert!((pair.q_value.unwrap() / pair.p_value.unwrap() - 4.0).abs() < 1e-9, "three pairs were not listed");
        let pair = with_evidence(8, 0.0, 1).decided(&rule).remove(0);
        assert!(!pair.kept && pair.verdict == Verdict::None && pair.score > rule.cut);
        // Shards of one log.
        let mut merged = with_evidence(8, 0.9, 1);
        merged.merge(&with_evidence(5, 0.9, 1));
        let whole = with_evidence(13, 0.9, 1);
        let (a, b) = (merged.decided(&rule).remove(0), whole.decided(&rule).remove(0));
        assert!((a.p_value.unwrap().ln() - b.p_value.unwrap().ln()).abs() < 1e-9);
        // Another log's pairs: what is left is the effect size.
        merged.merge(&with_evidence(5, 0.9, 2));
        let pair = merged.decided(&rule).remove(0);
        assert_eq!((pair.p_value, pair.evidence, pair.kept), (None, None, true));
    }
}
