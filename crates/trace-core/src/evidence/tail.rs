//! Tail probabilities of the test statistics.

use statrs::function::erf::{erfc, erfc_inv};
use statrs::function::gamma::gamma_lr;

/// `P(Z ≥ z)` of a standard normal variable.
pub(super) fn normal(z: f64) -> f64 {
    0.5 * erfc(z / std::f64::consts::SQRT_2)
}

/// The `z` with `P(Z ≥ z) = p`, finite also for `p` of 0 and 1.
pub(super) fn normal_inverse(p: f64) -> f64 {
    std::f64::consts::SQRT_2 * erfc_inv(2.0 * p.clamp(1e-300, 1.0 - 1e-16))
}

/// `P(N ≥ count)` of a Poisson variable, also between whole numbers; 1 for a count of 0 or less.
pub(super) fn poisson(count: f64, mean: f64) -> f64 {
    if count <= 0.0 {
        1.0
    } else if mean <= 0.0 {
        0.0
    } else {
        gamma_lr(count, mean)
    }
}

/// `P(N ≤ count)` of a Poisson variable, also between whole numbers.
pub(super) fn poisson_below(count: f64, mean: f64) -> f64 {
    1.0 - poisson(count.max(0.0) + 1.0, mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_tails() {
        assert!((normal(1.644_853_626_951_472_7) - 0.05).abs() < 1e-9);
        assert!((normal_inverse(0.05) - 1.644_853_626_951_472_7).abs() < 1e-6);
        // P(N ≥ 2) at mean 0.5 is 1 − 1.5 e^-0.5.
        assert!((poisson(2.0, 0.5) - (1.0 - 1.5 * (-0.5f64).exp())).abs() < 1e-12);
        assert!((poisson_below(1.0, 0.5) - 1.5 * (-0.5f64).exp()).abs() < 1e-12);
        assert!(poisson(6.0, 0.012) < 1e-13);
        assert_eq!((poisson(0.0, 0.5), poisson(3.0, 0.0)), (1.0, 0.0));
    }
}
