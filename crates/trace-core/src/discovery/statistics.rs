//! The running estimate of one candidate edge, and when it is good enough.
//!
//! With weights `w_r` of the alternatives `r` that were tried:
//!
//! ```text
//! strength = Σ w_r d_r / Σ w_r        log ratio = log p − log(Σ w_r p_r / Σ w_r)        n_eff = (Σ w_r)² / Σ w_r²
//! ```
//!
//! Weights come as logarithms, because those of plausible alternatives are products of many probabilities.

use super::sequential::skewed_std_error;
use crate::EventScore;
use crate::numerics::log_add_exp;

/// How sure a decision must be: standard errors between the mean and the threshold.
const DECIDED_AT: f64 = 2.6;
/// Floor of the standard deviation that decisions assume, in units of the threshold. Strengths are skewed: most
/// draws do little and a few do much, so that a handful of draws easily shows too small a spread.
const SPREAD_FLOOR: f64 = 0.5;

/// What one particle says about one candidate edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) strength: f64,
    /// The effect's score with the cause as observed.
    pub(super) kept: EventScore,
    /// The effect's score with the cause replaced.
    pub(super) replaced: EventScore,
}

/// Weighted running means over particles.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairStatistics {
    /// Alternatives tried.
    pub(super) count: usize,
    /// The logarithm of the unit that weights are counted in: the largest weight so far.
    unit: f64,
    weight: f64,
    weight_squares: f64,
    pub(super) strength: f64,
    squares: f64,
    /// `log Σ w p` of the effect with the cause as observed, and replaced.
    log_kept: f64,
    log_replaced: f64,
    /// The largest Bernoulli divergence from the effect as kept that any replacement could have.
    largest: f64,
}

impl Default for PairStatistics {
    fn default() -> Self {
        let none = f64::NEG_INFINITY;
        Self {
            count: 0,
            unit: none,
            weight: 0.0,
            weight_squares: 0.0,
            strength: 0.0,
            squares: 0.0,
            log_kept: none,
            log_replaced: none,
            largest: 0.0,
        }
    }
}

impl PairStatistics {
    /// Adds what one alternative says, with the logarithm of its weight.
    pub(super) fn push(&mut self, sample: &Sample, log_weight: f64) {
        self.count += 1;
        self.largest = self.largest.max(-sample.kept.log_p).max(-sample.kept.log_not_p);
        if log_weight == f64::NEG_INFINITY {
            return;
        }
        if log_weight > self.unit {
            let shrink = (self.unit - log_weight).exp();
            self.weight *= shrink;
            self.weight_squares *= shrink * shrink;
            self.squares *= shrink;
            self.unit = log_weight;
        }
        let weight = (log_weight - self.unit).exp();
        self.weight += weight;
        self.weight_squares += weight * weight;
        let before = sample.strength - self.strength;
        self.strength += before * weight / self.weight;
        self.squares += weight * before * (sample.strength - self.strength);
        self.log_kept = log_add_exp(self.log_kept, log_weight + sample.kept.log_p);
        self.log_replaced = log_add_exp(self.log_replaced, log_weight + sample.replaced.log_p);
    }

    /// Whether any alternative had weight.
    pub(super) fn is_empty(&self) -> bool {
        self.weight == 0.0
    }

    /// `log p − log mean p_r`: positive where the cause promoted the effect.
    pub(super) fn log_ratio(&self) -> f64 {
        self.log_kept - self.log_replaced
    }

    /// The logarithm of all weights together.
    fn log_weight(&self) -> f64 {
        self.unit + self.weight.ln()
    }

    /// The effect's mean probability with the cause as observed.
    pub(super) fn probability(&self) -> f64 {
        (self.log_kept - self.log_weight()).exp().min(1.0)
    }

    /// Its mean probability with the cause replaced.
    pub(super) fn probability_replaced(&self) -> f64 {
        (self.log_replaced - self.log_weight()).exp().min(1.0)
    }

    /// How many draws of equal weight say as much.
    pub(super) fn effective(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.weight * self.weight / self.weight_squares }
    }

    /// The largest divergence that any replacement could have.
    pub(super) const fn largest(&self) -> f64 {
        self.largest
    }

    fn variance(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let correction = self.count as f64 / (self.count - 1) as f64;
        (self.squares / self.weight * correction).max(0.0)
    }

    /// Standard error of the strength after draws from a population of `population` types without replacement, or
    /// with replacement for `None`; with what few draws may have missed where strengths are `bounded`.
    pub(super) fn std_error(&self, population: Option<usize>, bounded: bool) -> f64 {
        if self.is_empty() {
            0.0
        } else if bounded {
            let draws = self.effective().round() as usize;
            skewed_std_error(draws, self.strength, self.variance(), self.largest, population)
        } else {
            self.error_of(self.variance(), population)
        }
    }

    fn error_of(&self, variance: f64, population: Option<usize>) -> f64 {
        let unseen = population.map_or(1.0, |size| 1.0 - self.count as f64 / size as f64);
        (variance / self.effective() * unseen.max(0.0)).sqrt()
    }

    /// Whether more draws are unlikely to move the strength across the threshold.
    ///
    /// A strength below the threshold may owe that to a single type that was not drawn yet: of a population of `V` it
    /// can add `largest / V`. No spread among the others tells of it, so that much is set aside. (Divergences of whole
    /// distributions have no such limit; for them it is no more than a cautious guess.)
    pub(super) fn is_decided(&self, threshold: f64, population: Option<usize>) -> bool {
        if self.is_empty() {
            return population.is_some_and(|size| self.count >= size);
        }
        let floor = SPREAD_FLOOR * threshold;
        let error = self.error_of(self.variance().max(floor * floor), population);
        let unseen = match population {
            Some(size) if self.count < size => self.largest / size as f64,
            _ => 0.0,
        };
        self.strength - DECIDED_AT * error > threshold || self.strength + DECIDED_AT * error + unseen < threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORE: EventScore = EventScore { log_p: -1.0, log_not_p: -0.5 };

    fn statistics(strengths: &[f64]) -> PairStatistics {
        let mut pair = PairStatistics::default();
        for strength in strengths {
            pair.push(&Sample { strength: *strength, kept: SCORE, replaced: SCORE }, 0.0);
        }
        pair
    }

    #[test]
    fn a_pair_is_decided_by_its_distance_in_standard_errors() {
        // Mean 0.2, standard deviation 0.1 in sixteen draws: standard error 0.0258 with n − 1, 5.8 of them from 0.05.
        let far: Vec<f64> = (0..16).map(|i| if i % 2 == 0 { 0.1 } else { 0.3 }).collect();
        assert!(statistics(&far).is_decided(0.05, None));
        // The same spread around 0.1 is 1.9 standard errors from it.
        let near: Vec<f64> = far.iter().map(|value| value - 0.1).collect();
        assert!(!statistics(&near).is_decided(0.05, None));
        // Unless almost all of the population was seen.
        assert!(statistics(&near).is_decided(0.05, Some(17)));
        assert_eq!(statistics(&near).std_error(Some(16), true), 0.0);
    }

    #[test]
    fn equal_draws_are_not_taken_for_certainty() {
        // No spread at all, but close to the threshold: the floor of half the threshold keeps the pair open.
        assert!(!statistics(&[0.04; 16]).is_decided(0.05, None));
        assert!(statistics(&[0.04; 256]).is_decided(0.05, None));
        assert!(statistics(&[0.0; 16]).is_decided(0.05, None));
    }

    #[test]
    fn one_unseen_type_can_lift_a_pair_over_the_threshold() {
        // −log p = 1 is the most a replacement can do here: one type of 19 would add 0.053, one of 1000 only 0.001.
        assert!(!statistics(&[0.0; 16]).is_decided(0.05, Some(19)));
        assert!(statistics(&[0.0; 16]).is_decided(0.05, Some(1000)));
        assert!(statistics(&[0.0; 19]).is_decided(0.05, Some(19)));
    }

    #[test]
    fn weights_may_be_of_any_size_and_come_in_any_order() {
        let push = |pair: &mut PairStatistics, strength: f64, log_p: f64, log_weight: f64| {
            let replaced = EventScore { log_p, log_not_p: -0.5 };
            pair.push(&Sample { strength, kept: SCORE, replaced }, log_weight);
        };
        // Weights 1, 3 and 4 in units of e^-900, and one so small that it says nothing.
        let parts = [(0.2, -2.0, 1f64.ln()), (0.4, -3.0, 3f64.ln()), (0.1, -1.0, 4f64.ln()), (9.0, -1.0, -800.0)];
        for turn in 0..4 {
            let mut pair = PairStatistics::default();
            for (strength, log_p, log_weight) in parts.iter().cycle().skip(turn).take(4) {
                push(&mut pair, *strength, *log_p, log_weight - 900.0);
            }
            let mean = |of: [f64; 3]| (of[0] + 3.0 * of[1] + 4.0 * of[2]) / 8.0;
            assert!((pair.strength - mean([0.2, 0.4, 0.1])).abs() < 1e-12);
            let replaced = mean([-2.0, -3.0, -1.0].map(f64::exp));
            assert!((pair.probability_replaced() - replaced).abs() < 1e-12);
            assert!((pair.log_ratio() - (-1.0 - replaced.ln())).abs() < 1e-12);
            assert!((pair.effective() - 64.0 / 26.0).abs() < 1e-9);
        }
    }
}
