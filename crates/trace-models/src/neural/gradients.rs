//! Compares every backward pass with central differences of its forward pass.

use rand_chacha::ChaCha8Rng;
use trace_core::random::{Purpose, Streams};

use super::architecture::Trainable;
use super::train::objective::{NextEvent, Objective};

/// Three sequences of different lengths.
fn examples<O: Objective>(objective: &O, tokens: usize, lengths: [usize; 3]) -> Vec<O::Example> {
    let token = |group: usize, step: usize| ((group * 7 + step * 3) % tokens) as u32;
    let windows =
        lengths.iter().enumerate().map(|(group, length)| (0..*length).map(|step| token(group, step)).collect());
    objective.examples(windows.collect(), chance())
}

fn chance() -> ChaCha8Rng {
    Streams::new(1, "gradients").stream(Purpose::Mask, 0, 0)
}

/// The contents that an earlier pass left in the buffers must not matter.
fn check_reuse<O: Objective>(objective: &O, tokens: usize, weights: &[f32]) {
    let mut used = O::Workspace::default();
    for lengths in [[11, 13, 4], [5, 2, 13], [9, 11, 11], [3, 7, 2]] {
        let examples = examples(objective, tokens, lengths);
        let (mut again, mut fresh) = (vec![0.0; weights.len()], vec![0.0; weights.len()]);
        objective.loss_and_gradient(weights, &examples, 1.0, &mut used, &mut again);
        objective.loss_and_gradient(weights, &examples, 1.0, &mut O::Workspace::default(), &mut fresh);
        assert!(again == fresh, "lengths {lengths:?}");
    }
}

pub(super) fn check<A: Trainable>(network: &A) {
    check_objective(&NextEvent(network), network.vocab_size());
}

/// Compares along random directions within each tensor, so that an error in a small tensor is found too.
fn check_objective<O: Objective>(objective: &O, tokens: usize) {
    let layout = objective.layout();
    let mut weights = layout.draw(3);
    // Avoids special values such as gains of one and tables of zeros.
    for (index, weight) in weights.iter_mut().enumerate() {
        *weight += 0.1 * ((index * 29 % 17) as f32 / 17.0 - 0.5);
    }
    check_reuse(objective, tokens, &weights);
    let examples = examples(objective, tokens, [6, 2, 14]);
    let loss = |weights: &[f32]| objective.loss(weights, &examples, &mut O::Workspace::default());
    let mut gradient = vec![0.0; layout.len()];
    let sum = objective.loss_and_gradient(&weights, &examples, 1.0, &mut O::Workspace::default(), &mut gradient);
    assert!((sum - loss(&weights)).abs() < 1e-4 * sum);
    for entry in layout.entries() {
        let direction: Vec<f32> =
            entry.range().map(|index| (((index * 7919 + 13) % 101) as f32 / 50.0 - 1.0) * 0.7).collect();
        let length = direction.iter().map(|d| d * d).sum::<f32>().sqrt();
        let step = 0.02 / length;
        let moved = |sign: f32| {
            let mut weights = weights.clone();
            for (weight, d) in weights[entry.range()].iter_mut().zip(&direction) {
                *weight += sign * step * d;
            }
            loss(&weights)
        };
        // A fourth-order difference, so that a step large enough for f32 is still accurate.
        let half = (moved(1.0) - moved(-1.0)) / f64::from(2.0 * step);
        let whole = (moved(2.0) - moved(-2.0)) / f64::from(4.0 * step);
        let numeric = (4.0 * half - whole) / 3.0;
        let analytic: f64 =
            gradient[entry.range()].iter().zip(&direction).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
        let size: f64 = gradient[entry.range()].iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        let scale = size * f64::from(length) / (direction.len() as f64).sqrt() + 0.02;
        assert!((numeric - analytic).abs() < 0.02 * scale, "{}: {numeric} against {analytic}", entry.name);
    }
}

mod bert {
    use super::super::bert::{Bert, BertConfig};
    use super::super::train::Masked;

    #[test]
    fn gradients_are_those_of_the_loss() {
        for (layers, heads, token_types) in [(2, 3, 1), (1, 1, 2), (3, 4, 1)] {
            let (vocab_size, hidden_size, intermediate_size, positions, layer_norm_eps) = (11, 12, 20, 16, 1e-6);
            super::check_objective(
                &Masked(&Bert::new(BertConfig {
                    vocab_size,
                    hidden_size,
                    layers,
                    heads,
                    intermediate_size,
                    positions,
                    token_types,
                    layer_norm_eps,
                })),
                vocab_size - 1,
            );
        }
    }
}

mod llama {
    use super::super::llama::{Llama, LlamaConfig};

    #[test]
    fn gradients_are_those_of_the_loss() {
        for (heads, num_key_value_heads, tie_word_embeddings) in [(4, 4, true), (4, 2, false), (2, 1, false)] {
            super::check(&Llama::new(LlamaConfig {
                vocab_size: 11,
                hidden_size: 12,
                layers: 2,
                heads,
                num_key_value_heads,
                head_dim: 6,
                intermediate_size: 20,
                rope_theta: 10_000.0,
                rms_norm_eps: 1e-5,
                tie_word_embeddings,
                trained_length: 64,
            }));
        }
    }
}

mod gru {
    use super::super::gru::{Gru, GruConfig};

    #[test]
    fn gradients_are_those_of_the_loss() {
        for (hidden_size, tie_word_embeddings) in [(12, true), (12, false), (21, false)] {
            let (vocab_size, layers, rms_norm_eps) = (11, 2, 1e-6);
            super::check(&Gru::new(GruConfig { vocab_size, hidden_size, layers, rms_norm_eps, tie_word_embeddings }));
        }
    }
}

mod lstm {
    use super::super::lstm::{Lstm, LstmConfig};

    #[test]
    fn gradients_are_those_of_the_loss() {
        for (hidden_size, tie_word_embeddings) in [(12, true), (12, false), (21, false)] {
            let (vocab_size, layers, rms_norm_eps) = (11, 2, 1e-6);
            super::check(&Lstm::new(LstmConfig { vocab_size, hidden_size, layers, rms_norm_eps, tie_word_embeddings }));
        }
    }
}

mod mamba {
    use super::super::mamba::{Mamba, MambaConfig};

    #[test]
    fn gradients_are_those_of_the_loss() {
        for (state, inner, bias, tie_word_embeddings) in
            [(4, 16, false, true), (16, 20, true, false), (16, 32, false, false)]
        {
            super::check(&Mamba::new(MambaConfig {
                vocab_size: 11,
                hidden_size: 12,
                layers: 2,
                state_size: state,
                conv_kernel: 4,
                intermediate_size: inner,
                time_step_rank: 2,
                rms_norm_eps: 1e-5,
                use_conv_bias: !bias,
                use_bias: bias,
                tie_word_embeddings,
            }));
        }
    }
}
