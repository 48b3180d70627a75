//! What a model's fit guarantees, and how little that often is.
//!
//! With `ε = L_AR − H(P)` the model's excess loss in nats per event:
//!
//! ```text
//! δ   = sqrt(ε / 2)                                   total-variation proxy (Pinsker), valid while δ ≤ 1/2
//! τ_ε = 2 δ ln 2 + 2 (1 + δ) h_b(δ / (1 + δ))         noise floor of a strength
//! ε̂   = (L_AR − H(P)) / (ln V − H(P))                 oracle score, comparable across vocabularies
//! R   = 1 − H(P) / ln V                               Shannon redundancy
//! ```
//!
//! An edge is guaranteed to be found when its true strength exceeds `2 τ_ε`. The strength of a binary event is at
//! most ln 2 on average, so a noise floor of ln 2 or more guarantees nothing.

use std::f64::consts::LN_2;

/// How well a model predicts events it was not trained on, in nats per event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fitness {
    /// The model's cross-entropy on held-out events, `L_AR`.
    pub held_out_loss: Option<f64>,
    /// The cross-entropy of event frequencies alone on the same events: what a model must beat to know anything.
    pub unigram_loss: Option<f64>,
    /// The entropy `H(P)` of the process that made the events; known only for simulated ones.
    pub entropy: Option<f64>,
}

impl Fitness {
    /// The excess loss `ε`, where the entropy is known. A loss that sampling put below the entropy counts as 0.
    pub fn epsilon(&self) -> Option<f64> {
        Some((self.held_out_loss? - self.entropy?).max(0.0))
    }

    /// The oracle score `ε̂`, where the entropy is known: 0 for a perfect model, 1 for a uniform guess.
    pub fn epsilon_hat(&self, vocabulary_size: usize) -> Option<f64> {
        let room = (vocabulary_size as f64).ln() - self.entropy?;
        // A process of full entropy leaves nothing to learn; every model that says so is perfect.
        if room > 0.0 { Some(self.epsilon()? / room) } else { None }
    }

    /// The Shannon redundancy of the process, where its entropy is known.
    pub fn redundancy(&self, vocabulary_size: usize) -> Option<f64> {
        Some(redundancy(self.entropy?, vocabulary_size))
    }
}

/// Shannon redundancy `1 − H / ln V`.
pub fn redundancy(entropy: f64, vocabulary_size: usize) -> f64 {
    1.0 - entropy / (vocabulary_size as f64).ln()
}

/// Entropy of a coin with probability `p`, in nats.
pub fn binary_entropy(p: f64) -> f64 {
    let term = |x: f64| if x > 0.0 { -x * x.ln() } else { 0.0 };
    term(p) + term(1.0 - p)
}

/// What follows from an excess loss `ε`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorBound {
    /// The excess loss in nats per event.
    pub epsilon: f64,
    /// `δ = sqrt(ε/2)`.
    pub total_variation: f64,
    /// `τ_ε`: the largest error of a strength that this fit allows.
    pub noise_floor: f64,
}

impl ErrorBound {
    /// The bound for an excess loss of `epsilon` nats per event.
    pub fn new(epsilon: f64) -> Self {
        let delta = (epsilon / 2.0).sqrt();
        let noise_floor = 2.0 * delta * LN_2 + 2.0 * (1.0 + delta) * binary_entropy(delta / (1.0 + delta));
        Self { epsilon, total_variation: delta, noise_floor }
    }

    /// `2 τ_ε`: true strengths above it are guaranteed to be told from none.
    pub fn identifiability_margin(&self) -> f64 {
        2.0 * self.noise_floor
    }

    /// Whether the bound promises nothing, because the noise floor reaches the largest possible mean strength or
    /// Pinsker's proxy left its range.
    pub fn is_vacuous(&self) -> bool {
        self.noise_floor >= LN_2 || self.total_variation > 0.5
    }
}

/// The paper's fit of the best staircase threshold, `1.72e-2 / V`.
pub fn scaling_law_threshold(vocabulary_size: usize) -> f64 {
    1.72e-2 / vocabulary_size as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_model_has_no_noise_floor() {
        let bound = ErrorBound::new(0.0);
        assert_eq!((bound.total_variation, bound.noise_floor), (0.0, 0.0));
        assert!(!bound.is_vacuous());
    }

    #[test]
    fn the_bound_at_the_usual_fit_is_vacuous() {
        // ε̂ = 0.05 at V = 1000 and redundancy 0.6 is ε ≈ 0.2, τ_ε ≈ 1.9.
        let fitness = Fitness { held_out_loss: Some(2.76 + 0.207), unigram_loss: None, entropy: Some(2.76) };
        assert!((fitness.epsilon_hat(1000).unwrap() - 0.05).abs() < 1e-3);
        let bound = ErrorBound::new(fitness.epsilon().unwrap());
        assert!((bound.noise_floor - 1.9).abs() < 0.05, "{}", bound.noise_floor);
        assert!(bound.is_vacuous());
        assert!((bound.identifiability_margin() - 2.0 * bound.noise_floor).abs() < 1e-15);
    }

    #[test]
    fn unknown_entropy_gives_no_score() {
        let fitness = Fitness { held_out_loss: Some(2.0), ..Fitness::default() };
        assert_eq!((fitness.epsilon(), fitness.epsilon_hat(10), fitness.redundancy(10)), (None, None, None));
    }

    #[test]
    fn redundancy_and_entropy_of_known_values() {
        assert!((binary_entropy(0.5) - LN_2).abs() < 1e-15);
        assert_eq!(binary_entropy(0.0), 0.0);
        assert!((redundancy(LN_2, 4) - 0.5).abs() < 1e-15);
        assert!((scaling_law_threshold(1000) - 1.72e-5).abs() < 1e-20);
    }
}
