//! From sums to p-values, q-values and verdicts.
//!
//! **One pair.** Two tests of `ratio ≤ ρ` share their statistic `R − (ρ − 1) W`. Where the effect is expected often
//! enough after the cause (`Σ V ≥` [`EvidenceRule::least_variance`]), its variance is that between sequences, and never
//! less than the null's own. Where it is rare, the variance between sequences is made by the signal itself – six
//! sequences can never give more than `z = √6` – and the tail is that of a Poisson count with the null's own variance.
//!
//! **The model's misfit** shows in the pairs that the model itself takes for nothing, with a mean ratio near 1: where at
//! least [`EvidenceRule::least_pairs`] of the frequent pairs are such, the z-values of all frequent pairs are measured in
//! units of their spread, never narrower than theory has it (an empirical null, Efron 2004). Rare pairs are not: which of
//! them are listed depends on how often they came, and their z-values spread for that reason alone.
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

    /// The one-sided p-value.
    fn p_value(&self, rule: &EvidenceRule, side: Side) -> f64 {
        if self.sequences == 0 || self.weight <= 0.0 {
            return 1.0;
        }
        let ratio = match side {
            Side::Promotes => rule.least_ratio,
            Side::Inhibits => 1.0 / rule.least_ratio,
        };
        let shift = ratio - 1.0;
        let residual = self.residual - shift * self.weight;
        // What follows a cause that multiplies the effect's probability varies that much more.
        let null = self.variance * ratio;
        if self.is_rare(rule) {
            return match side {
                Side::Promotes => poisson(residual + null, null),
                Side::Inhibits => poisson_below(residual + null, null),
            };
        }
        let squares = self.residual_squared - 2.0 * shift * self.residual_weight + shift * shift * self.weight_squared;
        let z = residual / squares.max(null).sqrt();
        match side {
            Side::Promotes => normal(z),
            Side::Inhibits => normal(-z),
        }
    }
}

/// Mean log ratios of less than this are nothing to the model.
const NOTHING: f64 = 0.1;

/// Tests all pairs of one family, each with its mean log ratio by the model; `unlisted` further pairs were not looked at.
pub fn decide(pairs: &[(PairEvidence, f64)], unlisted: u64, rule: &EvidenceRule) -> Vec<TestedPair> {
    let spread = spread(pairs, rule);
    let side = |side: Side| {
        let p: Vec<f64> = pairs
            .iter()
            .map(|(pair, _)| {
                let p = pair.p_value(rule, side);
                if pair.is_rare(rule) { p } else { normal(normal_inverse(p) / spread).max(p) }
            })
            .collect();
        let q = q_values(&p, unlisted);
        p.into_iter().zip(q).map(|(p, q)| PairTest { p, q })
    };
    side(Side::Promotes)
        .zip(side(Side::Inhibits))
        .map(|(promotes, inhibits)| TestedPair { promotes, inhibits })
        .collect()
}

/// How widely frequent pairs spread that are nothing to the model, in standard errors; 1 where there are too few of them.
fn spread(pairs: &[(PairEvidence, f64)], rule: &EvidenceRule) -> f64 {
    let nothing = pairs.iter().filter(|(pair, log_ratio)| !pair.is_rare(rule) && log_ratio.abs() < NOTHING);
    let mut z: Vec<f64> = nothing
        .map(|(pair, _)| (pair.residual / pair.residual_squared.max(pair.variance).sqrt()).abs())
        .filter(|z| z.is_finite())
        .collect();
    if z.len() < rule.least_pairs {
        return 1.0;
    }
    z.sort_unstable_by(f64::total_cmp);
    // The median of a standard normal's absolute value.
    (z[z.len() / 2] / 0.674_489_750_196_082).max(1.0)
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
        assert!(pair.p_value(&rule, Side::Promotes) < 1e-12);
        assert!(pair.p_value(&rule, Side::Inhibits) > 0.9);
        assert!(pair.residual / pair.residual_squared.sqrt() < 2.5, "between sequences it is not");
    }

    fn place(residual: f64, variance: f64) -> super::super::PlaceSums {
        super::super::PlaceSums { residual, weight: variance, variance, expected: variance, observed: 0.0 }
    }

    /// A frequent pair whose statistic lies this many standard errors from nothing.
    fn frequent(z: f64) -> PairEvidence {
        let mut pair = PairEvidence::default();
        // A hundred sequences of variance 1 that sum to `10 z`.
        for number in 0..100 {
            let noise = if number % 2 == 0 { 1.0 } else { -1.0 };
            pair.push(&place(z / 10.0 + noise, 0.5));
        }
        pair
    }

    #[test]
    fn nothing_that_spreads_too_widely_is_held_against_every_frequent_pair() {
        // Five hundred pairs that are nothing to the model, with z-values of spread 2; and one that is something.
        let rule = EvidenceRule { least_ratio: 1.0, ..EvidenceRule::default() };
        let nothing =
            |spread: f64| (1..500).map(move |i| (frequent(spread * normal_inverse(f64::from(i) / 500.0)), 0.01));
        let below = |pairs: &[(PairEvidence, f64)]| {
            let tested = decide(pairs, 0, &rule);
            tested[..499].iter().filter(|test| test.promotes.p < 0.05).count()
        };
        let wide: Vec<_> = nothing(2.0).chain([(frequent(6.0), 1.0)]).collect();
        assert!((15..40).contains(&below(&wide)), "{}", below(&wide));
        let few: Vec<_> = wide.iter().map(|(pair, _)| (*pair, 1.0)).collect();
        assert!(
            below(&few) > 80,
            "pairs that the model takes for something say nothing of its misfit: {}",
            below(&few)
        );
        // As wide as it should be: nothing changes.
        let right: Vec<_> = nothing(1.0).chain([(frequent(6.0), 1.0)]).collect();
        assert!((15..40).contains(&below(&right)));
        assert!(decide(&right, 0, &rule)[499].promotes.q < decide(&wide, 0, &rule)[499].promotes.q);
    }

    #[test]
    fn rare_pairs_that_mostly_did_not_happen_hide_no_finding() {
        let mut pairs = vec![(PairEvidence::default(), 0.0); 400];
        for (number, (pair, _)) in pairs.iter_mut().enumerate() {
            (0..10).for_each(|_| pair.push(&place(if number == 0 { 0.5 } else { -0.002 }, 0.002)));
        }
        let tested = decide(&pairs, 0, &EvidenceRule::default());
        assert!(tested[0].promotes.q < 1e-4 && tested[1].promotes.q > 0.5, "{:?}", &tested[..2]);
    }
}
