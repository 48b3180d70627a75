//! From sums to p-values, q-values and verdicts.
//!
//! **One pair.** Two tests of `ratio ≤ ρ` share their statistic `R − (ρ − 1) W`. Where the effect is expected often
//! enough after the cause (`Σ V ≥` [`EvidenceRule::least_variance`]), its variance is that between sequences, and never
//! less than the null's own. Where it is rare, the variance between sequences is made by the signal itself – six
//! sequences can never give more than `z = √6` – and the tail is that of a Poisson count with the null's own variance.
//!
//! **The model's misfit** shows in the bulk of pairs, most of which are null: where at least
//! [`EvidenceRule::least_pairs`] pairs are tested, their z-values are measured in units of the bulk's own spread, apart
//! for rare and for frequent pairs and never narrower than theory has it (Efron 2004).
//!
//! **All pairs.** Benjamini and Hochberg's q-values; pairs that were not listed count with `p = 1`. Pairs of a type with
//! itself are a family of their own, and promoting and inhibiting are asked apart.

use serde::{Deserialize, Serialize};

use super::PairEvidence;
use super::tail::{normal, normal_inverse, poisson, poisson_below};

/// The constants of the decision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvidenceRule {
    /// Expected share of kept pairs that are false, at most.
    pub fdr: f64,
    /// The ratio that a kept pair must exceed.
    pub least_ratio: f64,
    /// From this variance of the null on, the variance between sequences is used.
    #[serde(skip)]
    pub least_variance: f64,
    /// From this many tested pairs on, the bulk's own spread is used.
    #[serde(skip)]
    pub least_pairs: usize,
}

impl Default for EvidenceRule {
    fn default() -> Self {
        Self { fdr: 0.1, least_ratio: 1.2, least_variance: 20.0, least_pairs: 200 }
    }
}

/// One side of a test of one pair.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairTest {
    /// One-sided p-value.
    pub p: f64,
    /// Its q-value in its family.
    pub q: f64,
}

/// Both sides of a test of one pair.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TestedPair {
    /// That the ratio is above the least ratio.
    pub promotes: PairTest,
    /// That it is below its inverse.
    pub inhibits: PairTest,
}

#[derive(Clone, Copy)]
enum Side {
    Promotes,
    Inhibits,
}

impl PairEvidence {
    /// Whether the effect is so rare after the cause that counts decide.
    fn is_rare(&self, rule: &EvidenceRule) -> bool {
        self.variance < rule.least_variance
    }

    /// The one-sided p-value, and the statistic in units of its standard error, signed by the side.
    fn test(&self, rule: &EvidenceRule, side: Side) -> (f64, f64) {
        if self.sequences == 0 || self.weight <= 0.0 {
            return (1.0, 0.0);
        }
        let ratio = match side {
            Side::Promotes => rule.least_ratio,
            Side::Inhibits => 1.0 / rule.least_ratio,
        };
        let shift = ratio - 1.0;
        let residual = self.residual - shift * self.weight;
        // What follows a cause that multiplies the effect's probability varies that much more.
        let null = self.variance * ratio;
        let sign = match side {
            Side::Promotes => 1.0,
            Side::Inhibits => -1.0,
        };
        if self.is_rare(rule) {
            let p = match side {
                Side::Promotes => poisson(residual + null, null),
                Side::Inhibits => poisson_below(residual + null, null),
            };
            return (p, sign * residual / null.sqrt());
        }
        let squares = self.residual_squared - 2.0 * shift * self.residual_weight + shift * shift * self.weight_squared;
        let z = sign * residual / squares.max(null).sqrt();
        (normal(z), z)
    }
}

/// Tests all pairs of one family; `unlisted` further pairs were not looked at.
pub fn decide(pairs: &[PairEvidence], unlisted: u64, rule: &EvidenceRule) -> Vec<TestedPair> {
    let side = |side: Side| {
        let tests: Vec<(f64, f64)> = pairs.iter().map(|pair| pair.test(rule, side)).collect();
        let mut p: Vec<f64> = tests.iter().map(|test| test.0).collect();
        for rare in [true, false] {
            let stratum: Vec<usize> = (0..pairs.len()).filter(|i| pairs[*i].is_rare(rule) == rare).collect();
            if stratum.len() >= rule.least_pairs {
                let bulk = Bulk::new(stratum.iter().map(|i| tests[*i].1));
                stratum.into_iter().for_each(|i| p[i] = bulk.widen(p[i]));
            }
        }
        let q = q_values(&p, unlisted);
        p.into_iter().zip(q).map(|(p, q)| PairTest { p, q })
    };
    side(Side::Promotes)
        .zip(side(Side::Inhibits))
        .map(|(promotes, inhibits)| TestedPair { promotes, inhibits })
        .collect()
}

/// Where most pairs of a stratum lie, in standard errors. The lower half says how widely: real findings are in the upper
/// one.
struct Bulk {
    center: f64,
    spread: f64,
}

impl Bulk {
    fn new(statistics: impl Iterator<Item = f64>) -> Self {
        let mut z: Vec<f64> = statistics.collect();
        z.sort_unstable_by(f64::total_cmp);
        let quantile = |share: f64| z[((z.len() - 1) as f64 * share).round() as usize];
        Self { center: quantile(0.5).max(0.0), spread: (quantile(0.5) - quantile(0.158_655)).max(1.0) }
    }

    /// A p-value in units of the bulk, never smaller than it was.
    fn widen(&self, p: f64) -> f64 {
        normal((normal_inverse(p) - self.center) / self.spread).max(p)
    }
}

/// Benjamini and Hochberg's q-values; `unlisted` further tests have `p = 1`.
pub fn q_values(p: &[f64], unlisted: u64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_unstable_by(|a, b| p[*a].total_cmp(&p[*b]));
    let tests = p.len() as f64 + unlisted as f64;
    let mut q = vec![1.0; p.len()];
    let mut least = 1.0f64;
    for (rank, index) in order.iter().enumerate().rev() {
        least = least.min(p[*index] * tests / (rank + 1) as f64);
        q[*index] = least;
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_values_of_known_p_values() {
        let q = q_values(&[0.01, 0.04, 0.03, 0.5], 0);
        let expected = [0.04, 0.04 * 4.0 / 3.0, 0.04 * 4.0 / 3.0, 0.5];
        assert!(q.iter().zip(expected).all(|(q, e)| (q - e).abs() < 1e-12), "{q:?}");
        // Tests that were not made count.
        assert!((q_values(&[0.01], 9)[0] - 0.1).abs() < 1e-12);
    }

    #[test]
    fn six_rare_events_are_overwhelming_evidence() {
        // Six sequences, the effect expected with a probability of 0.002 after the cause, and there each time.
        let mut pair = PairEvidence::default();
        for _ in 0..6 {
            let place = super::super::PlaceSums {
                residual: 0.98,
                weight: 0.002 * 0.02,
                variance: 0.002 * 0.02,
                expected: 0.002,
                observed: 1.0,
            };
            pair.push(&place);
        }
        let rule = EvidenceRule::default();
        assert!(pair.test(&rule, Side::Promotes).0 < 1e-12);
        assert!(pair.test(&rule, Side::Inhibits).0 > 0.9);
        assert!(pair.residual / pair.residual_squared.sqrt() < 2.5, "between sequences it is not");
    }

    #[test]
    fn a_bulk_that_spreads_too_widely_is_held_against_every_pair() {
        // z-values of spread 2: a thousand nulls, most of them beyond what theory allows.
        let z: Vec<f64> = (1..1000).map(|i| 2.0 * normal_inverse(f64::from(i) / 1000.0)).collect();
        let p: Vec<f64> = z.iter().map(|z| normal(*z)).collect();
        let below = |p: &[f64]| p.iter().filter(|p| **p < 0.05).count();
        let bulk = Bulk::new(z.iter().copied());
        let widened: Vec<f64> = p.iter().map(|p| bulk.widen(*p)).collect();
        assert!(below(&p) > 150 && (45..=55).contains(&below(&widened)), "{} {}", below(&p), below(&widened));
        // A bulk that spreads as it should, or less, changes nothing.
        let narrow = Bulk::new(z.iter().map(|z| z / 3.0));
        assert!(p.iter().all(|p| (narrow.widen(*p) - p).abs() < 1e-9));
    }

    #[test]
    fn a_stratum_of_rare_pairs_that_mostly_did_not_happen_hides_no_finding() {
        let place = |residual: f64| super::super::PlaceSums {
            residual,
            weight: 0.002,
            variance: 0.002,
            expected: 0.002,
            observed: 0.0,
        };
        let mut pairs = vec![PairEvidence::default(); 400];
        for (number, pair) in pairs.iter_mut().enumerate() {
            (0..10).for_each(|_| pair.push(&place(if number == 0 { 0.5 } else { -0.002 })));
        }
        let tested = decide(&pairs, 0, &EvidenceRule::default());
        assert!(tested[0].promotes.q < 1e-4 && tested[1].promotes.q > 0.5, "{:?}", &tested[..2]);
    }
}
