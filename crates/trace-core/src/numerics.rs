//! Probabilities in log space.
//!
//! Everything here is exact up to rounding: no probability is ever clamped to a constant. A near-certain event
//! keeps its `log(1 − p)` because that is summed over the *other* types instead of being taken from `1 − p`.

use serde::{Deserialize, Serialize};

/// The probability of one observed event, kept so that neither tail loses digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventScore {
    /// `log p`.
    pub log_p: f64,
    /// `log(1 − p)`, from the log-sum over the other types.
    pub log_not_p: f64,
}

impl EventScore {
    /// From an unnormalized log-weight of the event and the log-sum of all other types' weights.
    pub fn from_log_weights(event: f64, others: f64) -> Self {
        let total = log_add_exp(event, others);
        Self { log_p: event - total, log_not_p: others - total }
    }

    /// From a row of (possibly unnormalized) log-weights over all types.
    pub fn from_row(row: &[f64], event: usize) -> Self {
        let others = log_sum_exp(row[..event].iter().chain(&row[event + 1..]).copied());
        Self::from_log_weights(row[event], others)
    }

    /// The probability itself.
    pub fn probability(self) -> f64 {
        self.log_p.exp()
    }
}

/// `log(e^a + e^b)`.
pub fn log_add_exp(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if high == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// `log Σ e^v`; minus infinity for no values.
pub fn log_sum_exp(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let high = values.clone().fold(f64::NEG_INFINITY, f64::max);
    if high == f64::NEG_INFINITY { high } else { high + values.map(|v| (v - high).exp()).sum::<f64>().ln() }
}

/// Turns log-weights into log-probabilities in place.
pub fn normalize(row: &mut [f64]) {
    let total = log_sum_exp(row.iter().copied());
    for value in row {
        *value -= total;
    }
}

/// One term `p · (log p − log q)` of a divergence, with its limit 0 at `p = 0`.
fn divergence_term(log_p: f64, log_q: f64) -> f64 {
    if log_p == f64::NEG_INFINITY { 0.0 } else { log_p.exp() * (log_p - log_q) }
}

/// Bernoulli Kullback–Leibler divergence `d_B(a ‖ b)` in nats.
///
/// The two terms nearly cancel when `a ≈ b`; what is then left below zero is rounding, and is returned as 0.
pub fn bernoulli_divergence(a: EventScore, b: EventScore) -> f64 {
    let sum = divergence_term(a.log_p, b.log_p) + divergence_term(a.log_not_p, b.log_not_p);
    // Not `f64::max`, which would turn a NaN of the model into a silent 0.
    if sum < 0.0 { 0.0 } else { sum }
}

/// Kullback–Leibler divergence `KL(p ‖ q)` in nats of two normalized rows of log-probabilities.
pub fn divergence(log_p: &[f64], log_q: &[f64]) -> f64 {
    let sum: f64 = log_p.iter().zip(log_q).map(|(&p, &q)| divergence_term(p, q)).sum();
    if sum < 0.0 { 0.0 } else { sum }
}

/// Entropy in nats of a normalized row of log-probabilities.
pub fn entropy(log_p: &[f64]) -> f64 {
    -log_p.iter().filter(|p| **p > f64::NEG_INFINITY).map(|p| p.exp() * p).sum::<f64>()
}

/// Mean and spread of a stream of numbers, mergeable: Welford's update and Chan's merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// How many numbers were seen.
    pub count: u64,
    /// Their mean; 0 for none.
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub squares: f64,
}

impl Moments {
    /// Adds one number.
    pub fn push(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// Adds all that another stream saw.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let total = a + b;
        let gap = other.mean - self.mean;
        // Symmetric in the two sides, so that merging is commutative to the last bit but for the mean's rounding.
        self.mean = (self.mean * a + other.mean * b) / total;
        self.squares += other.squares + gap * gap * (a * b / total);
        self.count += other.count;
    }

    /// Sample variance; 0 for fewer than two numbers.
    pub fn variance(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.squares / (self.count - 1) as f64).max(0.0) }
    }

    /// Sample standard deviation.
    pub fn spread(&self) -> f64 {
        self.variance().sqrt()
    }

    /// The moments that have this mean and spread.
    pub fn from_spread(count: u64, mean: f64, spread: f64) -> Self {
        Self { count, mean, squares: spread * spread * count.saturating_sub(1) as f64 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn near_certain_events_keep_their_complement() {
        // p = 1 − 1e-30: from 1 − exp(log p) the complement would be 0 and its logarithm −∞.
        let score = EventScore::from_row(&[0.0, -70.0, -75.0], 0);
        assert!((score.log_not_p - log_add_exp(-70.0, -75.0)).abs() < 1e-12);
        let other = EventScore::from_row(&[0.0, -60.0, -75.0], 0);
        let strength = bernoulli_divergence(other, score);
        assert!(strength.is_finite() && strength > 0.0);
    }

    #[test]
    fn divergence_of_known_values() {
        let score = |p: f64| EventScore { log_p: p.ln(), log_not_p: (1.0 - p).ln() };
        let expected = 0.2 * (0.2f64 / 0.5).ln() + 0.8 * (0.8f64 / 0.5).ln();
        assert!((bernoulli_divergence(score(0.2), score(0.5)) - expected).abs() < 1e-15);
        assert!((bernoulli_divergence(score(0.0), score(0.5)) - 2f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn a_models_nan_is_not_hidden() {
        let nan = EventScore { log_p: f64::NAN, log_not_p: -1.0 };
        assert!(bernoulli_divergence(nan, nan).is_nan());
    }

    #[test]
    fn log_sums_of_nothing_and_infinities() {
        assert_eq!(log_sum_exp(std::iter::empty()), f64::NEG_INFINITY);
        assert_eq!(log_add_exp(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(log_add_exp(f64::NEG_INFINITY, 1.5), 1.5);
        assert!((entropy(&[0.5f64.ln(), 0.5f64.ln(), f64::NEG_INFINITY]) - 2f64.ln()).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn divergences_are_not_negative(rows in proptest::collection::vec((-30.0..30.0f64, -30.0..30.0f64), 2..9)) {
            let (a, b): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
            let (p, q) = (EventScore::from_row(&a, 0), EventScore::from_row(&b, 0));
            prop_assert!(bernoulli_divergence(p, q) >= 0.0);
            prop_assert_eq!(bernoulli_divergence(p, p), 0.0);
            prop_assert!((p.log_p.exp() + p.log_not_p.exp() - 1.0).abs() < 1e-12);
            let normal = |row: &[f64]| {
                let total = log_sum_exp(row.iter().copied());
                row.iter().map(|v| v - total).collect::<Vec<_>>()
            };
            // Data processing: lumping all other types together cannot raise the divergence.
            prop_assert!(divergence(&normal(&a), &normal(&b)) >= bernoulli_divergence(p, q) - 1e-9);
        }

        #[test]
        fn merged_moments_are_those_of_all(values in proptest::collection::vec(-5.0..5.0f64, 2..60), cut in 0usize..60) {
            let cut = cut.min(values.len());
            let of = |values: &[f64]| values.iter().fold(Moments::default(), |mut m, v| { m.push(*v); m });
            let (mut merged, all) = (of(&values[..cut]), of(&values));
            merged.merge(&of(&values[cut..]));
            prop_assert_eq!(merged.count, all.count);
            prop_assert!((merged.mean - all.mean).abs() < 1e-12);
            prop_assert!((merged.squares - all.squares).abs() < 1e-9);
            let direct = values.iter().map(|v| (v - all.mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64;
            prop_assert!((all.variance() - direct).abs() < 1e-9);
        }
    }
}
