//! How good is a graph? Scores of found edges against true ones.
//!
//! Everything is computed for one sequence at a time over the pairs that the run *tested*, and then averaged over
//! sequences. A figure that is undefined for a sequence – recall where there was nothing to find, precision and F1 where
//! there was nothing to find and nothing was found – is left out of the mean instead of being counted as 0 or 1.
//! Finding nothing where there was something has precision 0: silence is not precise.

mod ranking;

use std::collections::BTreeMap;

pub use ranking::{area_under_roc, average_precision};

use crate::Lag;
use crate::numerics::Moments;

/// One tested pair of positions, with what was found and what is true.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate<K> {
    /// The types at cause and effect.
    pub types: (K, K),
    /// Their distance.
    pub lag: Lag,
    /// Whether the run kept it as an edge.
    pub kept: bool,
    /// Its strength, if the run recorded pairs that it did not keep.
    pub strength: Option<f64>,
    /// Whether it is an edge in truth.
    pub truth: bool,
}

/// The figures of one graph against the truth; `None` where undefined.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Harmonic mean of precision and recall.
    pub f1: Option<f64>,
    /// Share of found edges that are true.
    pub precision: Option<f64>,
    /// Share of true edges that were found.
    pub recall: Option<f64>,
    /// Structural Hamming distance: false plus missed edges.
    pub shd: Option<f64>,
    /// Area under the receiver operating characteristic, by strength.
    pub auroc: Option<f64>,
    /// Average precision, by strength.
    pub average_precision: Option<f64>,
}

impl Figures {
    /// The names of the figures, in the order of [`Self::values`].
    pub const NAMES: [&str; 6] = ["f1", "precision", "recall", "shd", "auroc", "average_precision"];

    /// The figures in the order of their names.
    pub const fn values(&self) -> [Option<f64>; 6] {
        [self.f1, self.precision, self.recall, self.shd, self.auroc, self.average_precision]
    }

    /// Scores decisions `(kept, true)` and, where every pair has a strength, the ranking by it.
    pub fn new(pairs: impl IntoIterator<Item = (bool, bool, Option<f64>)>) -> Self {
        let (mut found, mut wrong, mut missed) = (0u64, 0u64, 0u64);
        let mut ranked = Some(Vec::new());
        for (kept, truth, strength) in pairs {
            match (kept, truth) {
                (true, true) => found += 1,
                (true, false) => wrong += 1,
                (false, true) => missed += 1,
                (false, false) => {}
            }
            match (&mut ranked, strength) {
                (Some(list), Some(strength)) => list.push((strength, truth)),
                _ => ranked = None,
            }
        }
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let ranked = ranked.unwrap_or_default();
        Self {
            f1: share(2 * found, 2 * found + wrong + missed),
            precision: share(found, found + wrong).or((missed > 0).then_some(0.0)),
            recall: share(found, found + missed),
            shd: Some((wrong + missed) as f64),
            auroc: area_under_roc(&ranked),
            average_precision: average_precision(&ranked),
        }
    }
}

/// Each figure's mean and spread over sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FigureMeans([Moments; 6]);

impl FigureMeans {
    fn push(&mut self, figures: &Figures) {
        for (moments, value) in self.0.iter_mut().zip(figures.values()) {
            if let Some(value) = value {
                moments.push(value);
            }
        }
    }

    /// Name, mean, spread and number of sequences of each figure; mean and spread are `None` where no sequence
    /// defines it.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Option<f64>, Option<f64>, u64)> + use<> {
        Figures::NAMES.into_iter().zip(self.0).map(|(name, moments)| {
            let some = moments.count > 0;
            (name, some.then_some(moments.mean), some.then(|| moments.spread()), moments.count)
        })
    }

    /// The mean of one figure.
    pub fn mean(&self, name: &str) -> Option<f64> {
        self.iter().find(|figure| figure.0 == name).and_then(|figure| figure.1)
    }
}

/// Scores over many sequences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// How many sequences were scored.
    pub sequences: u64,
    /// On pairs of positions.
    pub positions: FigureMeans,
    /// On pairs of positions of one lag each.
    pub by_lag: BTreeMap<Lag, FigureMeans>,
    /// On pairs of types.
    pub summary: FigureMeans,
}

impl Evaluation {
    /// Adds one sequence, given every pair that the run tested. Types paired with themselves are left out of the
    /// summary unless `self_loops`.
    pub fn add<K: Ord + Clone>(&mut self, candidates: &[Candidate<K>], self_loops: bool) {
        self.sequences += 1;
        let decision = |c: &Candidate<K>| (c.kept, c.truth, c.strength);
        self.positions.push(&Figures::new(candidates.iter().map(decision)));

        let mut lags: BTreeMap<Lag, Vec<(bool, bool, Option<f64>)>> = BTreeMap::new();
        let mut types: BTreeMap<(K, K), (bool, bool, Option<f64>)> = BTreeMap::new();
        for candidate in candidates {
            lags.entry(candidate.lag).or_default().push(decision(candidate));
            if candidate.types.0 != candidate.types.1 || self_loops {
                types
                    .entry(candidate.types.clone())
                    .and_modify(|known| {
                        known.0 |= candidate.kept;
                        known.1 |= candidate.truth;
                        // A type pair is as strong as its strongest occurrence.
                        known.2 = known.2.zip(candidate.strength).map(|(a, b)| a.max(b));
                    })
                    .or_insert_with(|| decision(candidate));
            }
        }
        for (lag, pairs) in lags {
            self.by_lag.entry(lag).or_default().push(&Figures::new(pairs));
        }
        self.summary.push(&Figures::new(types.into_values()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(types: (u8, u8), lag: u32, kept: bool, truth: bool, strength: f64) -> Candidate<u8> {
        Candidate { types, lag: Lag(lag), kept, strength: Some(strength), truth }
    }

    #[test]
    fn figures_of_a_known_case() {
        // 2 found, 1 false, 1 missed
        let figures = Figures::new([
            (true, true, Some(0.9)),
            (true, true, Some(0.8)),
            (true, false, Some(0.7)),
            (false, true, Some(0.3)),
            (false, false, Some(0.1)),
        ]);
        assert_eq!(figures.shd, Some(2.0));
        assert!((figures.precision.unwrap() - 2.0 / 3.0).abs() < 1e-12);
        assert!((figures.recall.unwrap() - 2.0 / 3.0).abs() < 1e-12);
        assert!((figures.f1.unwrap() - 2.0 / 3.0).abs() < 1e-12);
        assert!((figures.auroc.unwrap() - 5.0 / 6.0).abs() < 1e-12);
        assert!((figures.average_precision.unwrap() - (1.0 + 1.0 + 0.75) / 3.0).abs() < 1e-12);
    }

    #[test]
    fn undefined_figures_are_left_out_of_means() {
        let mut evaluation = Evaluation::default();
        evaluation.add(&[candidate((0, 1), 1, false, false, 0.0)], false);
        evaluation.add(&[candidate((0, 1), 1, true, true, 1.0)], false);
        evaluation.add(&[candidate((0, 1), 1, false, true, 0.0)], false);
        let of = |name| evaluation.positions.iter().find(|f| f.0 == name).unwrap();
        assert_eq!(
            (of("precision").1, of("precision").3),
            (Some(0.5), 2),
            "1 for a hit, 0 for silence, nothing for null"
        );
        assert_eq!((of("recall").1, of("recall").3), (Some(0.5), 2));
        assert_eq!(of("f1").1, Some(0.5));
        assert_eq!(of("f1").3, 2);
        assert_eq!(of("shd").3, 3);
        assert_eq!(of("auroc").1, None);
    }

    #[test]
    fn the_summary_joins_occurrences_and_leaves_self_pairs_out() {
        let candidates = [
            candidate((0, 1), 1, false, true, 0.01),
            candidate((0, 1), 2, true, false, 0.5),
            candidate((1, 1), 1, true, false, 0.9),
            candidate((1, 0), 1, false, false, 0.02),
        ];
        let mut without = Evaluation::default();
        without.add(&candidates, false);
        assert_eq!(without.summary.mean("f1"), Some(1.0));
        assert_eq!(without.summary.mean("auroc"), Some(1.0));
        assert_eq!(without.positions.mean("f1"), Some(0.0));
        assert_eq!(without.by_lag[&Lag(2)].mean("precision"), Some(0.0));
        let mut with = Evaluation::default();
        with.add(&candidates, true);
        assert_eq!(with.summary.mean("precision"), Some(0.5));
    }

    #[test]
    fn a_missing_strength_leaves_rankings_undefined() {
        let figures = Figures::new([(true, true, Some(1.0)), (false, false, None)]);
        assert_eq!((figures.auroc, figures.average_precision), (None, None));
        assert_eq!(figures.f1, Some(1.0));
    }
}
