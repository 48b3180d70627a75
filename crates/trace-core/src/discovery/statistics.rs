//! The running estimate of one candidate edge, and when it is good enough.

use crate::EventScore;

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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PairStatistics {
    pub(super) count: usize,
    weight: f64,
    pub(super) strength: f64,
    squares: f64,
    log_kept: f64,
    log_replaced: f64,
    pub(super) probability: f64,
    pub(super) probability_replaced: f64,
    /// The largest Bernoulli divergence from the effect as kept that any replacement could have.
    largest: f64,
}

impl PairStatistics {
    pub(super) fn push(&mut self, sample: &Sample, weight: f64) {
        self.count += 1;
        self.weight += weight;
        self.largest = self.largest.max(-sample.kept.log_p).max(-sample.kept.log_not_p);
        let share = weight / self.weight;
        let before = sample.strength - self.strength;
        self.strength += before * share;
        self.squares += weight * before * (sample.strength - self.strength);
        self.log_kept += (sample.kept.log_p - self.log_kept) * share;
        self.log_replaced += (sample.replaced.log_p - self.log_replaced) * share;
        self.probability += (sample.kept.probability() - self.probability) * share;
        self.probability_replaced += (sample.replaced.probability() - self.probability_replaced) * share;
    }

    /// `log p − mean log p_r`: positive where the cause promoted the effect.
    pub(super) fn log_ratio(&self) -> f64 {
        self.log_kept - self.log_replaced
    }

    fn variance(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.squares / (self.count - 1) as f64).max(0.0) }
    }

    /// Standard error of the strength after draws from a population of `population` types without replacement, or
    /// with replacement for `None`.
    pub(super) fn std_error(&self, population: Option<usize>) -> f64 {
        self.error_of(self.variance(), population)
    }

    fn error_of(&self, variance: f64, population: Option<usize>) -> f64 {
        let unseen = population.map_or(1.0, |size| 1.0 - self.count as f64 / size as f64);
        (variance / self.count as f64 * unseen.max(0.0)).sqrt()
    }

    /// Whether more draws are unlikely to move the strength across the threshold.
    ///
    /// A strength below the threshold may owe that to a single type that was not drawn yet: of a population of `V` it
    /// can add `largest / V`. No spread among the others tells of it, so that much is set aside. (Divergences of whole
    /// distributions have no such limit; for them it is no more than a cautious guess.)
    pub(super) fn is_decided(&self, threshold: f64, population: Option<usize>) -> bool {
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

    fn statistics(strengths: &[f64]) -> PairStatistics {
        let score = EventScore { log_p: -1.0, log_not_p: -0.5 };
        let mut pair = PairStatistics::default();
        for strength in strengths {
            pair.push(&Sample { strength: *strength, kept: score, replaced: score }, 1.0);
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
        assert_eq!(statistics(&near).std_error(Some(16)), 0.0);
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
}
