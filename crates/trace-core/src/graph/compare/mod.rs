//! Two cohorts' population graphs compared: which edges appear, vanish, strengthen or weaken.
//!
//! Of a type pair with `n` opportunities in `G` sequences the mean signed log ratio `r̄` has the variance
//!
//! ```text
//! V = G/(G−1) · Σ_i (S_i − r̄ n_i)² / n²        S_i, n_i: log ratios and opportunities of sequence i
//! ```
//!
//! with sequences, not opportunities, as the independent unit; likewise the share of opportunities that were kept, and
//! the numbers of edges and of opportunities a sequence. The difference of two cohorts is tested by `|Δ| / √(V_a + V_b)`
//! against Student's t with Welch's degrees of freedom.
//!
//! A model may well differ from another one by its training alone, and knows the cohort that it was trained on better
//! than one that it was not. No sample of sequences shows how much. So a difference of log ratios or of edges counts only
//! as far as the number of opportunities, in which no model has a part, differs in the same direction: its `p` is the
//! larger of the two.
//!
//! The false discovery rate over all differences of log ratios and of edges a sequence together is held by Benjamini and
//! Hochberg's step-up rule; where it picks `R` of `m`, intervals cover at `1 − R α / m` (Benjamini and Yekutieli 2005),
//! so that the interval of what was picked leaves out 0. The rule holds for tests that are independent or depend on each
//! other positively.
//!
//! Where a graph came from a file without sums over sequences, all opportunities of a sequence are taken for one
//! (`V = s²/G`), which errs on the safe side.

mod estimate;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Serialize, Serializer};

use self::estimate::{Estimate, decide, edges_found, kept_share, mean_log_ratio, opportunities};
use super::{PairRecord, PopulationGraph, PopulationRule, TypePair};
use crate::Question;

/// What a comparison holds to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompareRule {
    /// Expected share of false findings, at most.
    pub level: f64,
    /// Log ratios that differ by no more than this count as equal.
    pub margin: f64,
    /// What makes a pair an edge of either graph.
    pub population: PopulationRule,
    /// Sequences with an opportunity that both graphs must have for log ratios to be compared.
    pub least_sequences: u64,
    /// Edges in both graphs together that there must be for their frequency to be compared.
    pub least_edges: u64,
}

impl Default for CompareRule {
    fn default() -> Self {
        let population = PopulationRule::default();
        Self { level: 0.05, margin: 0.0, population, least_sequences: 5, least_edges: 10 }
    }
}

/// One quantity in both graphs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// In the first graph.
    pub a: f64,
    /// In the second.
    pub b: f64,
    /// `b − a`.
    pub difference: f64,
    /// Lower end of the interval of `b − a`.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Probability of a difference this large by chance. Of log ratios and edges: or of as large a difference of
    /// opportunities in the same direction, whichever is larger.
    pub p: f64,
    /// The same corrected for the number of differences: the level at which this one would just be picked.
    pub q: f64,
}

/// What became of an edge from the first graph to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Only the second has it.
    Appears,
    /// Only the first has it.
    Vanishes,
    /// Its log ratio is larger in the second.
    Strengthens,
    /// Its log ratio is smaller in the second.
    Weakens,
    /// As strong where it is found, but found in more of the second's sequences, or more often in them.
    MoreOften,
    /// As strong where it is found, but found less often in the second.
    LessOften,
    /// No difference that could not be chance.
    Same,
    /// Too few occurrences to say.
    Unknown,
}

impl Change {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Appears => "appears",
            Self::Vanishes => "vanishes",
            Self::Strengthens => "strengthens",
            Self::Weakens => "weakens",
            Self::MoreOften => "more often",
            Self::LessOften => "less often",
            Self::Same => "same",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One type pair that is an edge of at least one of the graphs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairComparison<K> {
    /// The causing type.
    pub cause: K,
    /// The caused type.
    pub effect: K,
    /// What was asked.
    #[serde(skip_serializing_if = "Question::is_whether")]
    pub question: Question,
    /// What became of it.
    pub change: Change,
    /// Whether it is an edge of the first graph.
    pub kept_a: bool,
    /// Whether it is an edge of the second.
    pub kept_b: bool,
    /// Opportunities in the first.
    pub opportunities_a: u64,
    /// Opportunities in the second.
    pub opportunities_b: u64,
    /// Mean signed log ratio over opportunities; `None` where one of the graphs has too few.
    pub log_ratio: Option<Difference>,
    /// Share of opportunities that were kept; `None` likewise. It decides nothing.
    pub kept_share: Option<Difference>,
    /// Edges per sequence, over all sequences; `None` where there are too few edges.
    pub edges_per_sequence: Option<Difference>,
    /// Opportunities per sequence: how often the effect follows the cause, whatever any model says; `None` where a
    /// graph has fewer than two sequences.
    pub opportunities_per_sequence: Option<Difference>,
}

/// Two population graphs compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison<K> {
    /// Every pair that is an edge of at least one of them: changed ones first.
    pub pairs: Vec<PairComparison<K>>,
    /// How many pairs had their log ratios compared.
    pub log_ratios: usize,
    /// How many had their edges a sequence compared.
    pub frequencies: usize,
}

impl<K: Ord + Clone> Comparison<K> {
    /// Compares two graphs.
    pub fn new(a: &PopulationGraph<K>, b: &PopulationGraph<K>, rule: &CompareRule) -> Self {
        let nothing = PairRecord::default();
        let edges = |graph: &PopulationGraph<K>| {
            let kept = graph.decided(&rule.population).into_iter().filter(|pair| pair.kept);
            kept.map(|pair| (pair.cause, pair.effect, pair.question)).collect::<BTreeSet<_>>()
        };
        let (in_a, in_b) = (edges(a), edges(b));
        let types: Vec<TypePair<K>> = in_a.union(&in_b).cloned().collect();
        let of = |types: &TypePair<K>| (a.pairs.get(types).unwrap_or(&nothing), b.pairs.get(types).unwrap_or(&nothing));
        let enough = |record: &PairRecord| record.sequences >= rule.least_sequences;
        let comparable = |types: &TypePair<K>| Some(of(types)).filter(|(a, b)| enough(a) && enough(b));
        let floor = rule.population.spread_floor;
        let countable = a.sequences > 1 && b.sequences > 1;
        let follows: Vec<Option<Estimate>> = types
            .iter()
            .map(|types| {
                let (x, y) = of(types);
                countable.then(|| Estimate::rates(opportunities(x, a.sequences), opportunities(y, b.sequences)))
            })
            .collect();
        let ratios = types.iter().zip(&follows).map(|(types, follows)| {
            let (a, b) = comparable(types)?;
            let means = Estimate::means(mean_log_ratio(a, floor), mean_log_ratio(b, floor), rule.margin);
            Some(means.borne_out_by(follows.as_ref()))
        });
        let frequencies = types.iter().zip(&follows).map(|(types, follows)| {
            let (x, y) = of(types);
            let enough = countable && x.kept_count + y.kept_count >= rule.least_edges;
            let rates = || Estimate::rates(edges_found(x, a.sequences), edges_found(y, b.sequences));
            enough.then(|| rates().borne_out_by(follows.as_ref()))
        });
        let shares = types
            .iter()
            .map(|types| comparable(types).map(|(a, b)| Estimate::means(kept_share(a), kept_share(b), 0.0)));
        let mut ratios = decide(&ratios.chain(frequencies).collect::<Vec<_>>(), rule.level);
        let frequencies = ratios.split_off(types.len());
        let shares = decide(&shares.collect::<Vec<_>>(), rule.level);
        let follows = decide(&follows, rule.level);
        let counts = (ratios.iter().flatten().count(), frequencies.iter().flatten().count());
        let mut pairs: Vec<PairComparison<K>> = types
            .into_iter()
            .zip(ratios.into_iter().zip(frequencies).zip(shares.into_iter().zip(follows)))
            .map(|(types, ((log_ratio, edges), (kept_share, follows)))| {
                let (x, y) = of(&types);
                let kept = (in_a.contains(&types), in_b.contains(&types));
                PairComparison {
                    change: change(kept, log_ratio.as_ref(), edges.as_ref(), rule.level),
                    kept_a: kept.0,
                    kept_b: kept.1,
                    opportunities_a: x.opportunities(),
                    opportunities_b: y.opportunities(),
                    cause: types.0,
                    effect: types.1,
                    question: types.2,
                    log_ratio,
                    kept_share,
                    edges_per_sequence: edges,
                    opportunities_per_sequence: follows,
                }
            })
            .collect();
        let size = |pair: &PairComparison<K>| {
            let of = |quantity: &Option<Difference>| quantity.map_or(0.0, |quantity| quantity.difference.abs());
            (of(&pair.log_ratio), of(&pair.edges_per_sequence))
        };
        pairs.sort_by(|x, y| {
            let ((x_ratio, x_edges), (y_ratio, y_edges)) = (size(x), size(y));
            x.change.cmp(&y.change).then(y_ratio.total_cmp(&x_ratio)).then(y_edges.total_cmp(&x_edges))
        });
        Self { pairs, log_ratios: counts.0, frequencies: counts.1 }
    }
}

fn change(kept: (bool, bool), log_ratio: Option<&Difference>, edges: Option<&Difference>, level: f64) -> Change {
    let picked = |quantity: Option<&Difference>| quantity.filter(|quantity| quantity.q <= level).copied();
    let rises = |quantity: Difference| quantity.difference > 0.0;
    match (picked(log_ratio).map(rises), picked(edges).map(rises)) {
        (Some(true), _) if !kept.0 => Change::Appears,
        (Some(false), _) if !kept.1 => Change::Vanishes,
        (Some(true), _) => Change::Strengthens,
        (Some(false), _) => Change::Weakens,
        // Where log ratios cannot be compared because one graph hardly has the pair at all.
        (None, Some(true)) if log_ratio.is_none() && !kept.0 => Change::Appears,
        (None, Some(false)) if log_ratio.is_none() && !kept.1 => Change::Vanishes,
        (None, Some(true)) => Change::MoreOften,
        (None, Some(false)) => Change::LessOften,
        (None, None) if log_ratio.is_none() && edges.is_none() => Change::Unknown,
        (None, None) => Change::Same,
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::estimate::Mean;
    use super::*;
    use crate::Lag;
    use crate::graph::{Opportunity, SequenceSums};

    /// Sequences with up to three opportunities of each of `pairs` pairs; the log ratios of a sequence share half of
    /// their spread. `effect` says the mean of each pair, `share` how many sequences have it.
    fn cohort(
        seed: u64,
        sequences: usize,
        pairs: u32,
        effect: impl Fn(u32) -> f64,
        share: impl Fn(u32) -> f64,
    ) -> PopulationGraph<u32> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut graph = PopulationGraph::default();
        for _ in 0..sequences {
            let mut tested = Vec::new();
            for pair in 0..pairs {
                let mut noise = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                let shared = noise();
                let own = [noise(), noise(), noise()];
                if random.random::<f64>() < share(pair) {
                    let count = random.random_range(1..4);
                    for noise in &own[..count] {
                        let log_ratio = effect(pair) + shared + noise;
                        tested.push(Opportunity {
                            types: (pair, pair, Question::Whether),
                            strength: log_ratio.abs(),
                            log_ratio,
                            lag: Lag(1),
                            kept: log_ratio > 0.0,
                            tied: false,
                            overlap: None,
                            testable: true,
                            required: false,
                        });
                    }
                }
            }
            graph.add_sequence(tested);
        }
        graph
    }

    #[test]
    fn the_variance_is_that_of_repeated_cohorts() {
        let cohorts: Vec<PairRecord> = (0..400)
            .map(|seed| cohort(seed, 60, 1, |_| 2.0, |_| 0.7).pairs.remove(&(0, 0, Question::Whether)).unwrap())
            .collect();
        let check = |name: &str, mean: fn(&PairRecord) -> Mean, naive: fn(&PairRecord) -> f64| {
            let means: Vec<Mean> = cohorts.iter().map(mean).collect();
            let average = means.iter().map(|mean| mean.value).sum::<f64>() / 400.0;
            let actual = means.iter().map(|mean| (mean.value - average).powi(2)).sum::<f64>() / 399.0;
            let stated = means.iter().map(|mean| mean.variance).sum::<f64>() / 400.0;
            assert!((stated / actual - 1.0).abs() < 0.2, "{name}: stated {stated}, actual {actual}");
            let naive = cohorts.iter().map(naive).sum::<f64>() / 400.0;
            assert!(naive < 0.75 * actual, "{name}: opportunities as units give {naive} of {actual}");
        };
        check(
            "log ratio",
            |record| mean_log_ratio(record, 0.0),
            |record| record.log_ratio.variance() / record.opportunities() as f64,
        );
        check("kept share", kept_share, |record| {
            let share = record.kept_count as f64 / record.opportunities() as f64;
            share * (1.0 - share) / record.opportunities() as f64
        });
    }

    #[test]
    fn alike_cohorts_differ_rarely_and_unlike_ones_are_told() {
        let rule = CompareRule::default();
        let mut false_runs = 0;
        for seed in 0..100 {
            let effect = |pair: u32| 1.0 + f64::from(pair) / 10.0;
            let share = |_: u32| 0.3;
            let a = cohort(2 * seed, 80, 20, effect, share);
            let b = cohort(2 * seed + 1, 80, 20, effect, share);
            let comparison = Comparison::new(&a, &b, &rule);
            assert!(comparison.log_ratios >= 19, "{}", comparison.log_ratios);
            let changed = |pair: &PairComparison<u32>| !matches!(pair.change, Change::Same | Change::Unknown);
            false_runs += usize::from(comparison.pairs.iter().any(changed));
        }
        // Five of a hundred runs are expected at most, and thirteen are very unlikely.
        assert!(false_runs <= 12, "{false_runs} of 100 runs found a difference where there is none");

        // What is stronger is also followed more often, as it is where a mechanism differs; the last pair's strength
        // differs alone, as it does between two models.
        let often = |pair: u32| [0.4, 0.4, 0.2, 0.5, 0.4, 0.2, 0.4][pair as usize];
        let a = cohort(11, 300, 7, |pair| [2.0, 2.0, 1.0, 4.0, 2.0, 0.0, 4.0][pair as usize], often);
        let often = |pair: u32| [0.4, 0.2, 0.4, 0.3, 0.1, 0.4, 0.4][pair as usize];
        let b = cohort(12, 300, 7, |pair| [2.0, 0.0, 3.0, 2.0, 2.0, 2.0, 2.0][pair as usize], often);
        let changes: Vec<(u32, Change)> =
            Comparison::new(&a, &b, &rule).pairs.iter().map(|pair| (pair.cause, pair.change)).collect();
        let expected = [
            (5, Change::Appears),
            (1, Change::Vanishes),
            (2, Change::Strengthens),
            (3, Change::Weakens),
            (4, Change::LessOften),
            (6, Change::Same),
            (0, Change::Same),
        ];
        assert_eq!(changes, expected);
        let back: BTreeSet<(u32, Change)> =
            Comparison::new(&b, &a, &rule).pairs.iter().map(|pair| (pair.cause, pair.change)).collect();
        assert!(back.contains(&(5, Change::Vanishes)) && back.contains(&(4, Change::MoreOften)));
        // A margin that the differences do not exceed takes them back.
        let wide = Comparison::new(&a, &b, &CompareRule { margin: 3.0, ..rule });
        assert!(wide.pairs.iter().all(|pair| pair.log_ratio.is_none_or(|ratio| ratio.q > 0.05)), "{wide:?}");
    }

    #[test]
    fn an_edge_that_one_cohort_never_has_an_opportunity_for_vanishes() {
        let a = cohort(3, 100, 2, |_| 3.0, |_| 0.5);
        let mut b = cohort(4, 100, 2, |_| 3.0, |_| 0.5);
        b.pairs.remove(&(1, 1, Question::Whether));
        let comparison = Comparison::new(&a, &b, &CompareRule::default());
        let gone = comparison.pairs.iter().find(|pair| pair.cause == 1).unwrap();
        assert_eq!((gone.change, gone.log_ratio, gone.opportunities_b), (Change::Vanishes, None, 0));
        let edges = gone.edges_per_sequence.unwrap();
        assert!(edges.high < 0.0 && edges.b == 0.0 && edges.q < 1e-6);
    }

    #[test]
    fn the_interval_of_what_is_picked_leaves_out_zero() {
        let mut picked = 0;
        for seed in 0..20 {
            let a = cohort(seed, 60, 30, |_| 2.0, |_| 0.5);
            let more = |pair: u32| f64::from(pair) / 60.0;
            let b = cohort(100 + seed, 60, 30, |pair| 2.0 + 3.0 * more(pair), |pair| 0.5 + more(pair));
            let comparison = Comparison::new(&a, &b, &CompareRule::default());
            for pair in &comparison.pairs {
                for value in
                    [pair.log_ratio, pair.edges_per_sequence].into_iter().flatten().filter(|value| value.q <= 0.05)
                {
                    assert!(value.low > 0.0 || value.high < 0.0, "{value:?}");
                    picked += 1;
                }
            }
        }
        assert!(picked > 40, "{picked}");
    }

    #[test]
    fn without_sums_over_sequences_the_answer_is_more_careful() {
        let strip = |mut graph: PopulationGraph<u32>| {
            graph.pairs.values_mut().for_each(|record| record.by_sequence = SequenceSums::default());
            graph
        };
        let (a, b) = (cohort(1, 100, 5, |_| 2.0, |_| 0.5), cohort(2, 100, 5, |_| 2.5, |_| 0.5));
        let rule = CompareRule::default();
        let (known, unknown) = (Comparison::new(&a, &b, &rule), Comparison::new(&strip(a), &strip(b), &rule));
        for pair in &known.pairs {
            let other =
                unknown.pairs.iter().find(|other| (other.cause, other.effect) == (pair.cause, pair.effect)).unwrap();
            let (x, y) = (pair.log_ratio.unwrap(), other.log_ratio.unwrap());
            assert!(x.p <= y.p && x.difference == y.difference, "{x:?} {y:?}");
        }
    }
}
