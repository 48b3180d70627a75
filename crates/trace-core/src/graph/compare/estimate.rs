//! Means and rates with their variances, their differences, and the correction for how many are compared.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Difference;
use crate::graph::PairRecord;

/// A mean with the variance of its estimate and the number of independent units behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mean {
    pub(super) value: f64,
    pub(super) variance: f64,
    units: u64,
}

/// `Σ (y_i − ȳ n_i)²` from sums of products; what is below zero is rounding.
fn residual(squares: f64, products: f64, counts: f64, ratio: f64) -> f64 {
    (squares - 2.0 * ratio * products + ratio * ratio * counts).max(0.0)
}

/// Variance of a ratio of sums over `units` sequences, with this sum of squared residuals.
fn ratio_variance(residual: f64, units: u64, count: u64) -> f64 {
    let (units, count) = (units as f64, count as f64);
    residual * units / (units - 1.0) / (count * count)
}

pub(super) fn mean_log_ratio(record: &PairRecord, floor: f64) -> Mean {
    let (value, units) = (record.log_ratio.mean, record.sequences);
    let variance = record.sequence_sums().map_or_else(
        || record.log_ratio.variance() / units as f64,
        |sums| {
            let left =
                residual(sums.log_ratio_squared, sums.log_ratio_opportunities, sums.opportunities_squared, value);
            ratio_variance(left, units, record.opportunities())
        },
    );
    // The floor of the population rule: few occurrences that happen to agree are not certain.
    Mean { value, variance: variance.max(floor * floor / units as f64), units }
}

pub(super) fn kept_share(record: &PairRecord) -> Mean {
    let (kept, count, units) = (record.kept_count as f64, record.opportunities() as f64, record.sequences);
    let value = kept / count;
    // As if one more had been kept and one more not: a share of exactly 0 or 1 is not certain either.
    let middling = (kept + 1.0) / (count + 2.0);
    let floor = middling * (1.0 - middling) / count;
    let variance = record.sequence_sums().map_or_else(
        || middling * (1.0 - middling) / units as f64,
        |sums| {
            let left = residual(sums.kept_squared, sums.kept_opportunities, sums.opportunities_squared, value);
            ratio_variance(left, units, record.opportunities())
        },
    );
    Mean { value, variance: variance.max(floor), units }
}

/// How often something happens, over all sequences of a graph: how many times, the sum of its squared number in each
/// sequence, and how many sequences there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    count: f64,
    squares: f64,
    sequences: f64,
}

impl Rate {
    fn mean(&self) -> f64 {
        self.count / self.sequences
    }

    /// Variance of the number in a sequence.
    fn spread(&self) -> f64 {
        (self.squares / self.sequences - self.mean() * self.mean()).max(0.0)
    }
}

pub(super) fn opportunities(record: &PairRecord, sequences: u64) -> Rate {
    let count = record.opportunities() as f64;
    // Where it is not known how they are spread: twice as unevenly as if every sequence that has any had the same.
    let guess = || if count > 0.0 { 2.0 * count * count / record.sequences as f64 } else { 0.0 };
    let squares = record.sequence_sums().map_or_else(guess, |sums| sums.opportunities_squared);
    Rate { count, squares, sequences: sequences as f64 }
}

pub(super) fn edges_found(record: &PairRecord, sequences: u64) -> Rate {
    let count = record.kept_count as f64;
    // All opportunities of a sequence kept or none, where nothing better is known.
    let guess = || count * record.opportunities() as f64 / record.sequences as f64;
    let squares = record.sequence_sums().map_or_else(guess, |sums| sums.kept_squared);
    Rate { count, squares, sequences: sequences as f64 }
}

/// The difference of two quantities, before it is known how many are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    a: f64,
    b: f64,
    error: f64,
    freedom: f64,
    p: f64,
}

impl Estimate {
    /// `p` is the probability of a difference at least this large, on either side, if the true one is `margin`.
    fn new(a: f64, b: f64, variance: f64, freedom: f64, margin: f64) -> Self {
        let mut estimate = Self { a, b, error: variance.sqrt(), freedom, p: 1.0 };
        if let Some(student) = estimate.student().filter(|_| variance > 0.0) {
            let tail = |distance: f64| student.cdf(-distance / estimate.error);
            let size = (b - a).abs();
            estimate.p = (tail(size - margin) + tail(size + margin)).min(1.0);
        }
        estimate
    }

    pub(super) fn means(a: Mean, b: Mean, margin: f64) -> Self {
        let sum = a.variance + b.variance;
        let part = |mean: Mean| mean.variance * mean.variance / (mean.units - 1) as f64;
        Self::new(a.value, b.value, sum, sum * sum / (part(a) + part(b)), margin)
    }

    /// The variance is the larger of that with a rate of its own for each graph and that with the same for both: where
    /// one of them is 0, the former takes it for certain.
    pub(super) fn rates(a: Rate, b: Rate) -> Self {
        let own = a.spread() / (a.sequences - 1.0) + b.spread() / (b.sequences - 1.0);
        let both =
            Rate { count: a.count + b.count, squares: a.squares + b.squares, sequences: a.sequences + b.sequences };
        let pooled = both.spread() * (1.0 / a.sequences + 1.0 / b.sequences);
        Self::new(a.mean(), b.mean(), own.max(pooled), both.sequences - 2.0, 0.0)
    }

    /// As sure as another difference in the same direction is, at most.
    pub(super) fn borne_out_by(mut self, other: Option<&Self>) -> Self {
        let same_direction = |other: &&Self| (other.b - other.a) * (self.b - self.a) > 0.0;
        self.p = other.filter(same_direction).map_or(1.0, |other| self.p.max(other.p));
        self
    }

    fn student(&self) -> Option<StudentsT> {
        StudentsT::new(0.0, 1.0, self.freedom.max(1.0)).ok()
    }
}

/// Corrects all comparisons for their number.
pub(super) fn decide(estimates: &[Option<Estimate>], level: f64) -> Vec<Option<Difference>> {
    let mut ranked: Vec<(f64, usize)> = estimates
        .iter()
        .enumerate()
        .filter_map(|(index, estimate)| estimate.map(|estimate| (estimate.p, index)))
        .collect();
    ranked.sort_by(|x, y| x.0.total_cmp(&y.0));
    let count = ranked.len() as f64;
    let mut corrected = vec![1.0; estimates.len()];
    let mut least: f64 = 1.0;
    for (rank, (p, index)) in ranked.iter().enumerate().rev() {
        least = least.min(p * count / (rank + 1) as f64);
        corrected[*index] = least;
    }
    let picked = ranked.iter().filter(|(_, index)| corrected[*index] <= level).count().max(1);
    let uncovered = level * picked as f64 / count;
    estimates
        .iter()
        .zip(corrected)
        .map(|(estimate, q)| {
            estimate.map(|estimate| {
                let quantile = estimate.student().map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - uncovered / 2.0));
                let (middle, half) = (estimate.b - estimate.a, quantile * estimate.error);
                let (low, high) = (middle - half, middle + half);
                Difference {
                    a: estimate.a,
                    b: estimate.b,
                    difference: estimate.b - estimate.a,
                    low,
                    high,
                    p: estimate.p,
                    q,
                }
            })
        })
        .collect()
}
