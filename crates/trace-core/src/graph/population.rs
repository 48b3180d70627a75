//! The graphs of many sequences merged into one over event types.
//!
//! For a type pair `u → v`, every place where `u` stands at a tested lag before `v` is an *opportunity*, kept or not.
//! With `n` opportunities, the mean `r̄` and spread `s` of their signed log ratios:
//!
//! ```text
//! score(u → v) = r̄ − z · max(s, 0.3) / √n         z = 2.6;  kept when score > 0.3 and n ≥ 5
//! ```
//!
//! "Seeing `u` multiplies the probability of `v` by at least e^0.3 ≈ 1.35, at 99.5 % confidence if opportunities were
//! independent." The unsigned score is the same bound on the mean strength, for logs where the sign says nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SampleGraph;
use crate::numerics::Moments;
use crate::{EventId, Lag};

/// The constants of the population rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PopulationRule {
    /// Standard errors that the bound lies below the mean.
    pub z: f64,
    /// Floor of the spread of log ratios, so that few lucky occurrences cannot win.
    pub spread_floor: f64,
    /// Floor of the spread of strengths, likewise.
    pub strength_floor: f64,
    /// A pair is kept when its score exceeds this.
    pub cut: f64,
    /// And when it has at least this many opportunities.
    pub least: u64,
}

impl Default for PopulationRule {
    fn default() -> Self {
        Self { z: 2.6, spread_floor: 0.3, strength_floor: 0.05, cut: 0.3, least: 5 }
    }
}

impl PopulationRule {
    /// Lower confidence bound of a mean.
    fn bound(&self, moments: &Moments, floor: f64) -> f64 {
        moments.mean - self.z * moments.spread().max(floor) / (moments.count as f64).sqrt()
    }

    /// The signed score: what ranks pairs, and what decides.
    pub fn score(&self, record: &PairRecord) -> f64 {
        self.bound(&record.log_ratio, self.spread_floor)
    }

    /// The unsigned score.
    pub fn unsigned_score(&self, record: &PairRecord) -> f64 {
        self.bound(&record.strength, self.strength_floor)
    }

    /// Whether the pair is an edge of the population graph.
    pub fn keeps(&self, record: &PairRecord) -> bool {
        record.opportunities() >= self.least && self.score(record) > self.cut
    }
}

/// What many sequences say about one type pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairRecord {
    /// Sequences with at least one opportunity.
    pub sequences: u64,
    /// Opportunities that were kept as edges.
    pub kept_count: u64,
    /// Strengths of all opportunities.
    pub strength: Moments,
    /// Signed log ratios of all opportunities.
    pub log_ratio: Moments,
    /// How many kept edges have each lag.
    pub lags: BTreeMap<Lag, u64>,
    /// How opportunities and edges are spread over sequences.
    pub by_sequence: SequenceSums,
}

/// One type pair of a population graph with all that is known and decided of it: what files hold and pages show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PopulationPair<K = EventId> {
    /// The causing type.
    pub cause: K,
    /// The caused type.
    pub effect: K,
    /// Sequences with at least one opportunity.
    pub sequences: u64,
    /// Times the cause stood at a tested lag before the effect.
    pub opportunities: u64,
    /// How many of them were kept as edges.
    pub kept_count: u64,
    /// Mean strength over opportunities.
    pub mean_strength: f64,
    /// Its spread.
    pub strength_spread: f64,
    /// Mean signed log ratio over opportunities.
    pub mean_log_ratio: f64,
    /// Its spread.
    pub log_ratio_spread: f64,
    /// Signed lower-bound score: ranks and decides.
    pub score: f64,
    /// The same bound on the strength.
    pub unsigned_score: f64,
    /// Whether the pair is an edge of the population graph.
    pub kept: bool,
    /// How many kept edges have each lag.
    pub lags: BTreeMap<Lag, u64>,
    /// How all that is spread over sequences; absent in files of early versions and in what was merged from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_sequence: Option<SequenceSums>,
}

impl<K> PopulationPair<K> {
    /// What a record comes to under a rule.
    pub fn new((cause, effect): (K, K), record: &PairRecord, rule: &PopulationRule) -> Self {
        Self {
            cause,
            effect,
            sequences: record.sequences,
            opportunities: record.opportunities(),
            kept_count: record.kept_count,
            mean_strength: record.strength.mean,
            strength_spread: record.strength.spread(),
            mean_log_ratio: record.log_ratio.mean,
            log_ratio_spread: record.log_ratio.spread(),
            score: rule.score(record),
            unsigned_score: rule.unsigned_score(record),
            kept: rule.keeps(record),
            lags: record.lags.clone(),
            // How many there are is said by `sequences` above.
            by_sequence: record.sequence_sums().map(|sums| SequenceSums { sequences: 0, ..*sums }),
        }
    }

    /// The record it came from, to rounding.
    pub fn record(&self) -> PairRecord {
        let sums = |sums: SequenceSums| SequenceSums { sequences: self.sequences, ..sums };
        PairRecord {
            sequences: self.sequences,
            kept_count: self.kept_count,
            strength: Moments::from_spread(self.opportunities, self.mean_strength, self.strength_spread),
            log_ratio: Moments::from_spread(self.opportunities, self.mean_log_ratio, self.log_ratio_spread),
            lags: self.lags.clone(),
            by_sequence: self.by_sequence.map(sums).unwrap_or_default(),
        }
    }

    /// The same pair with its types called otherwise.
    pub fn renamed<L>(self, mut name: impl FnMut(K) -> L) -> PopulationPair<L> {
        PopulationPair {
            cause: name(self.cause),
            effect: name(self.effect),
            sequences: self.sequences,
            opportunities: self.opportunities,
            kept_count: self.kept_count,
            mean_strength: self.mean_strength,
            strength_spread: self.strength_spread,
            mean_log_ratio: self.mean_log_ratio,
            log_ratio_spread: self.log_ratio_spread,
            score: self.score,
            unsigned_score: self.unsigned_score,
            kept: self.kept,
            lags: self.lags,
            by_sequence: self.by_sequence,
        }
    }

    /// Whether the numbers can be those of a pair that had an opportunity.
    pub fn is_possible(&self) -> bool {
        let numbers = [self.mean_strength, self.strength_spread, self.mean_log_ratio, self.log_ratio_spread];
        self.opportunities > 0
            && numbers.iter().all(|number| number.is_finite())
            && self.by_sequence.is_none_or(|sums| sums.is_possible())
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
    fn is_possible(&self) -> bool {
        let squares = [self.opportunities_squared, self.log_ratio_squared, self.kept_squared, self.kept_opportunities];
        squares.iter().all(|sum| sum.is_finite() && *sum >= 0.0) && self.log_ratio_opportunities.is_finite()
    }

    fn push(&mut self, opportunities: u64, kept: u64, log_ratio: f64) {
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

impl PairRecord {
    /// The sums over sequences, where they cover all of them.
    pub fn sequence_sums(&self) -> Option<&SequenceSums> {
        (self.by_sequence.sequences == self.sequences).then_some(&self.by_sequence)
    }

    /// The number of opportunities.
    pub const fn opportunities(&self) -> u64 {
        self.strength.count
    }

    fn merge(&mut self, other: &Self) {
        self.sequences += other.sequences;
        self.kept_count += other.kept_count;
        self.strength.merge(&other.strength);
        self.log_ratio.merge(&other.log_ratio);
        for (lag, count) in &other.lags {
            *self.lags.entry(*lag).or_default() += count;
        }
        self.by_sequence.merge(&other.by_sequence);
    }
}

/// Many sequences' graphs over event types, merged.
///
/// `K` is how types are told apart: [`EventId`] within one vocabulary, names across files.
#[derive(Clone, Debug, PartialEq)]
pub struct PopulationGraph<K = EventId> {
    /// How many sequences were merged.
    pub sequences: u64,
    /// What is known of each type pair that had an opportunity.
    pub pairs: BTreeMap<(K, K), PairRecord>,
}

impl<K> Default for PopulationGraph<K> {
    fn default() -> Self {
        Self { sequences: 0, pairs: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> PopulationGraph<K> {
    /// Adds one sequence: for each tested pair its two types, strength, log ratio, lag and whether it was kept.
    pub fn add_sequence(&mut self, pairs: impl IntoIterator<Item = ((K, K), f64, f64, Lag, bool)>) {
        self.sequences += 1;
        // Opportunities, kept ones and the sum of log ratios of this sequence, for each pair.
        let mut here: BTreeMap<(K, K), (u64, u64, f64)> = BTreeMap::new();
        for (types, strength, log_ratio, lag, kept) in pairs {
            let record = self.pairs.entry(types.clone()).or_default();
            record.strength.push(strength);
            record.log_ratio.push(log_ratio);
            if kept {
                record.kept_count += 1;
                *record.lags.entry(lag).or_default() += 1;
            }
            let sums = here.entry(types).or_default();
            *sums = (sums.0 + 1, sums.1 + u64::from(kept), sums.2 + log_ratio);
        }
        for (types, (opportunities, kept, log_ratio)) in here {
            let record = self.pairs.entry(types).or_default();
            record.sequences += 1;
            record.by_sequence.push(opportunities, kept, log_ratio);
        }
    }

    /// Adds all that another graph holds. Associative and commutative, to rounding.
    pub fn merge(&mut self, other: &Self) {
        self.sequences += other.sequences;
        for (types, record) in &other.pairs {
            self.pairs.entry(types.clone()).or_default().merge(record);
        }
    }

    /// Every pair with what a rule decides of it, best score first.
    pub fn decided(&self, rule: &PopulationRule) -> Vec<PopulationPair<K>> {
        let mut pairs: Vec<PopulationPair<K>> =
            self.pairs.iter().map(|(types, record)| PopulationPair::new(types.clone(), record, rule)).collect();
        pairs.sort_by(|a, b| b.score.total_cmp(&a.score)); // stable: ties stay in order of types
        pairs
    }

    /// The same graph with types called otherwise. Types that get the same name are merged.
    pub fn rename<L: Ord + Clone>(&self, mut name: impl FnMut(&K) -> L) -> PopulationGraph<L> {
        let mut renamed = PopulationGraph { sequences: self.sequences, pairs: BTreeMap::new() };
        for ((cause, effect), record) in &self.pairs {
            renamed.pairs.entry((name(cause), name(effect))).or_default().merge(record);
        }
        renamed
    }
}

impl PopulationGraph<EventId> {
    /// Adds the graph of one sequence, with all pairs that were tested.
    pub fn add(&mut self, graph: &SampleGraph) {
        let type_of = |position: crate::Position| graph.events()[position.index()];
        self.add_sequence(graph.pairs().iter().map(|pair| {
            ((type_of(pair.cause), type_of(pair.effect)), pair.strength, pair.log_ratio, pair.lag, pair.kept)
        }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Tested = ((u8, u8), f64, f64, Lag, bool);

    fn sequence() -> impl Strategy<Value = Vec<Tested>> {
        proptest::collection::vec(
            ((0u8..3, 0u8..3), 0.0..2.0f64, -3.0..3.0f64, (1u32..5).prop_map(Lag), any::<bool>()),
            0..12,
        )
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
        assert!(rule.keeps(&record));
        // Four perfect opportunities are not enough, and few of them are not sure whatever their spread.
        record.strength = Moments::from_spread(4, 0.31, 0.0);
        record.log_ratio = Moments::from_spread(4, 5.0, 0.0);
        assert!(!rule.keeps(&record));
        assert!((rule.score(&record) - (5.0 - 2.6 * 0.3 / 2.0)).abs() < 1e-12);
    }

    #[test]
    fn a_pair_counts_a_sequence_once_and_lags_of_kept_edges_only() {
        let graph = graph_of(&[vec![
            ((0, 1), 0.5, 1.0, Lag(1), true),
            ((0, 1), 0.01, 0.1, Lag(2), false),
            ((0, 1), 0.6, 1.1, Lag(3), true),
        ]]);
        let record = &graph.pairs[&(0, 1)];
        assert_eq!((record.sequences, record.opportunities(), record.kept_count), (1, 3, 2));
        assert_eq!(record.lags, BTreeMap::from([(Lag(1), 1), (Lag(3), 1)]));
        let sums = record.sequence_sums().unwrap();
        assert_eq!((sums.opportunities_squared, sums.kept_squared, sums.kept_opportunities), (9.0, 4.0, 6.0));
        assert!((sums.log_ratio_squared - 2.2 * 2.2).abs() < 1e-12);
        assert!((sums.log_ratio_opportunities - 2.2 * 3.0).abs() < 1e-12);
        let folded = graph.rename(|_| 'x');
        assert_eq!(folded.pairs.len(), 1);
    }
}
