//! Every backward pass against central differences of its own forward pass.

use super::architecture::{Past, Trainable};
use super::head;
use super::rows::Rows;

/// Three sequences of different lengths and a loss over all of their rows.
fn loss<A: Trainable>(network: &A, weights: &[f32], gradient: Option<&mut [f32]>) -> f64 {
    loss_on(network, weights, gradient, [5, 1, 13], &mut A::Tape::default())
}

fn loss_on<A: Trainable>(
    network: &A,
    weights: &[f32],
    gradient: Option<&mut [f32]>,
    lengths: [usize; 3],
    tape: &mut A::Tape,
) -> f64 {
    let tokens = network.tokens();
    let groups = lengths.map(|length| (0, length, 1));
    let rows = Rows::new(&groups, A::ORDER, |group, _, step| ((group * 7 + step * 3) % tokens) as u32);
    let targets: Vec<u32> = (0..rows.len()).map(|row| ((row * 5 + 1) % tokens) as u32).collect();
    network.forward(weights, &rows, Past::Training, tape);
    let hidden = A::hidden(tape).to_vec();
    let (table, width) = (&weights[network.head()], network.width());
    let mut logits = Vec::new();
    let Some(gradient) = gradient else { return head::loss(&hidden, table, &targets, width, &mut logits) };
    let mut d_hidden = vec![0.0; hidden.len()];
    let d_head = &mut gradient[network.head()];
    let sum = head::loss_and_gradient(&hidden, table, &targets, 1.0, &mut d_hidden, d_head, &mut logits);
    network.backward(weights, &rows, tape, &mut d_hidden, gradient);
    sum
}

/// What an earlier pass left in the buffers must not matter.
fn check_reuse<A: Trainable>(network: &A, weights: &[f32]) {
    let size = network.layout().len();
    let mut used = A::Tape::default();
    for lengths in [[11, 13, 4], [5, 1, 13], [9, 11, 11], [3, 7, 2]] {
        let (mut again, mut fresh) = (vec![0.0; size], vec![0.0; size]);
        loss_on(network, weights, Some(&mut again), lengths, &mut used);
        loss_on(network, weights, Some(&mut fresh), lengths, &mut A::Tape::default());
        assert!(again == fresh, "lengths {lengths:?}");
    }
}

/// Compares along random directions within each tensor, so that no tensor hides behind a larger one.
pub(super) fn check<A: Trainable>(network: &A) {
    let layout = network.layout();
    let mut weights = layout.draw(3);
    // Away from special points such as gains of one and tables of zeros.
    for (index, weight) in weights.iter_mut().enumerate() {
        *weight += 0.1 * ((index * 29 % 17) as f32 / 17.0 - 0.5);
    }
    check_reuse(network, &weights);
    let mut gradient = vec![0.0; layout.len()];
    let sum = loss(network, &weights, Some(&mut gradient));
    assert!((sum - loss(network, &weights, None)).abs() < 1e-4 * sum);
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
            loss(network, &weights, None)
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

mod llama {
    use super::super::llama::{Llama, LlamaConfig};

    #[test]
    fn gradients_are_those_of_the_loss() {
        for (heads, key_heads, tied) in [(4, 4, true), (4, 2, false), (2, 1, false)] {
            super::check(&Llama::new(LlamaConfig {
                tokens: 11,
                width: 12,
                layers: 2,
                heads,
                key_heads,
                head_width: 6,
                feed_forward: 20,
                rope_theta: 10_000.0,
                norm_epsilon: 1e-5,
                tied,
                trained_length: 64,
            }));
        }
    }
}

mod gru {
    use super::super::gru::{Gru, GruConfig};

    #[test]
    fn gradients_are_those_of_the_loss() {
        for (width, tied) in [(12, true), (12, false), (21, false)] {
            let (tokens, layers, norm_epsilon) = (11, 2, 1e-6);
            super::check(&Gru::new(GruConfig { tokens, width, layers, norm_epsilon, tied }));
        }
    }
}

mod lstm {
    use super::super::lstm::{Lstm, LstmConfig};

    #[test]
    fn gradients_are_those_of_the_loss() {
        for (width, tied) in [(12, true), (12, false), (21, false)] {
            let (tokens, layers, norm_epsilon) = (11, 2, 1e-6);
            super::check(&Lstm::new(LstmConfig { tokens, width, layers, norm_epsilon, tied }));
        }
    }
}

mod mamba {
    use super::super::mamba::{Mamba, MambaConfig};

    #[test]
    fn gradients_are_those_of_the_loss() {
        for (state, inner, bias, tied) in [(4, 16, false, true), (16, 20, true, false), (16, 32, false, false)] {
            super::check(&Mamba::new(MambaConfig {
                tokens: 11,
                width: 12,
                layers: 2,
                state,
                kernel: 4,
                inner,
                step_rank: 2,
                norm_epsilon: 1e-5,
                conv_bias: !bias,
                bias,
                tied,
            }));
        }
    }
}
