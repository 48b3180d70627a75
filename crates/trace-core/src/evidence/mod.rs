//! Evidence that one type promotes or inhibits another, over many sequences.
//!
//! For a pair of types `u → v`, every sequence `s` gives the sums of
//! [`discovery::posterior`](crate::Discovery::evidence) over its places: the double residual `R_s`, centered by the model
//! in both factors, so that an error of the model enters only as the product of two errors; `W_s`, what `R_s` grows by when
//! the ratio grows by one; the variance `V_s` that `R_s` has where `u` does nothing to `v`; and the number of times `v`
//! followed `u`, with how many were expected. Sequences are the independent units:
//!
//! ```text
//! z = Σ_s (R_s − (ρ − 1) W_s) / √Σ_s (R_s − (ρ − 1) W_s)²          ratio above ρ?
//! ```
//!
//! Sums over sequences are all that is kept, so that the evidence of shards merges, and `ρ` can be moved later.

mod decide;
mod list;
mod tail;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

pub use decide::{EvidenceRule, PairTest, TestedPair, decide, q_values};
pub use list::{LEAST_SEQUENCES, MOST_PAIRS, PairList, PairScope};

use crate::{EventSequence, Families, Question};

/// What the places of one sequence say of one pair of types.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlaceSums {
    /// `R_s`.
    pub residual: f64,
    /// `W_s`.
    pub weight: f64,
    /// `V_s`.
    pub variance: f64,
    /// How often the effect was expected after the cause, each place of the effect counted once.
    pub expected: f64,
    /// How often it came.
    pub observed: f64,
}

impl PlaceSums {
    fn add(&mut self, other: &Self) {
        self.residual += other.residual;
        self.weight += other.weight;
        self.variance += other.variance;
        self.expected += other.expected;
        self.observed += other.observed;
    }
}

/// The pairs that evidence is gathered for, by question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairLists {
    /// Whether the effect happens.
    pub whether: PairList,
    /// How the effect's step turns out, where event types have families.
    pub how: Option<PairList>,
}

impl PairLists {
    /// The pairs of a log, in the scope of both questions where there are families.
    pub fn count(sequences: &[EventSequence], scope: PairScope<'_>, families: Option<&Families>) -> Self {
        let of = |question| {
            let families = families.map(|families| (families, question));
            PairList::count(sequences, PairScope { families, ..scope })
        };
        Self { whether: of(Question::Whether), how: families.map(|_| of(Question::How)) }
    }

    /// A hash of all pairs: sums can be merged where it is the same.
    pub fn fingerprint(&self) -> u64 {
        self.whether.fingerprint() ^ self.how.as_ref().map_or(0, |list| list.fingerprint().rotate_left(1))
    }
}

/// What one sequence says of the pairs of both questions.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Whether effects happen.
    pub whether: SequenceEvidence,
    /// How their steps turn out.
    pub how: Option<SequenceEvidence>,
}

impl Evidence {
    pub(crate) fn new(lists: &PairLists) -> Self {
        let of = |list: &PairList| SequenceEvidence::new(list.len());
        Self { whether: of(&lists.whether), how: lists.how.as_ref().map(of) }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.whether.add(&other.whether);
        if let (Some(mine), Some(theirs)) = (&mut self.how, &other.how) {
            mine.add(theirs);
        }
    }
}

/// What one sequence says of every listed pair.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceEvidence {
    /// One for each pair, where the list is short.
    dense: Vec<PlaceSums>,
    sparse: FxHashMap<usize, PlaceSums>,
}

/// Lists up to this length have a place for every pair in each sequence.
const DENSE: usize = 1 << 16;

impl SequenceEvidence {
    /// Nothing said yet of a list of this many pairs.
    pub fn new(pairs: usize) -> Self {
        let dense = if pairs <= DENSE { vec![PlaceSums::default(); pairs] } else { Vec::new() };
        Self { dense, sparse: FxHashMap::default() }
    }

    /// The sums of one pair.
    pub(crate) fn at(&mut self, pair: usize) -> &mut PlaceSums {
        if self.dense.is_empty() { self.sparse.entry(pair).or_default() } else { &mut self.dense[pair] }
    }

    /// Adds what another part of the same sequence says.
    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.dense.iter_mut().zip(&other.dense) {
            mine.add(theirs);
        }
        for (pair, theirs) in &other.sparse {
            self.sparse.entry(*pair).or_default().add(theirs);
        }
    }

    /// The pairs that anything is said of, by number.
    pub fn pairs(&self) -> Vec<(usize, PlaceSums)> {
        let said = |sums: &PlaceSums| sums.weight > 0.0 || sums.residual != 0.0;
        let mut pairs: Vec<(usize, PlaceSums)> = self.dense.iter().copied().enumerate().collect();
        pairs.extend(self.sparse.iter().map(|(pair, sums)| (*pair, *sums)));
        pairs.retain(|(_, sums)| said(sums));
        pairs.sort_unstable_by_key(|(pair, _)| *pair);
        pairs
    }
}

/// What many sequences say of one pair of types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairEvidence {
    /// How many sequences say anything.
    pub sequences: u64,
    /// `Σ R_s`
    pub residual: f64,
    /// `Σ R_s²`
    pub residual_squared: f64,
    /// `Σ W_s`
    pub weight: f64,
    /// `Σ R_s W_s`
    pub residual_weight: f64,
    /// `Σ W_s²`
    pub weight_squared: f64,
    /// `Σ V_s`
    pub variance: f64,
    /// How often the effect was expected after the cause.
    pub expected: f64,
    /// How often it came.
    pub observed: f64,
}

impl PairEvidence {
    /// Adds one sequence.
    pub fn push(&mut self, sums: &PlaceSums) {
        let PlaceSums { residual, weight, variance, expected, observed } = *sums;
        self.merge(&Self {
            sequences: 1,
            residual,
            residual_squared: residual * residual,
            weight,
            residual_weight: residual * weight,
            weight_squared: weight * weight,
            variance,
            expected,
            observed,
        });
    }

    /// Adds other sequences.
    pub fn merge(&mut self, other: &Self) {
        self.sequences += other.sequences;
        self.residual += other.residual;
        self.residual_squared += other.residual_squared;
        self.weight += other.weight;
        self.residual_weight += other.residual_weight;
        self.weight_squared += other.weight_squared;
        self.variance += other.variance;
        self.expected += other.expected;
        self.observed += other.observed;
    }

    /// Whether the sums can be those of sequences.
    pub fn is_possible(&self) -> bool {
        let sums =
            [self.residual_squared, self.weight, self.weight_squared, self.variance, self.expected, self.observed];
        sums.iter().all(|sum| sum.is_finite() && *sum >= 0.0)
            && self.residual.is_finite()
            && self.residual_weight.is_finite()
    }
}
