//! Saliency: how much each earlier event matters to a prediction, by the gradient of the prediction.
//!
//! ```text
//! s_qj = ‖ e_j ⊙ ∂ log P(x_q | x_<q) / ∂ e_j ‖₂,        e_j = embedding(x_j),  j < q
//! ```
//!
//! The gradient is that of the embedded row; a gradient of the table's row would mix all positions where an event
//! repeats. Every effect `q` is a separate sequence that ends right before it. Only its last hidden row `h` has a
//! gradient to start with, `∂ log P(x_q) / ∂h = head[x_q] − Σ_v P(v) · head[v]` over all outcomes. Several effects go
//! through the network together, like the sequences of a training batch; the grouping does not depend on the number of
//! threads.
//!
//! Cost: that of a training step on `q` rows per effect. Memory per thread: what a pass of [`PASS_ROWS`] rows, or of
//! the longest effect, keeps for its backward pass, and a gradient of all weights.

use std::ops::Range;

use rayon::prelude::*;

use trace_core::{EventId, ModelError};

use super::architecture::{Past, Trainable, resize};
use super::head;
use super::rows::Rows;

/// Models whose predictions can be differentiated with respect to their inputs.
pub trait InputGradients {
    /// How much each earlier event matters to the prediction of an observed event: for each of `positions` and each
    /// earlier position `j`, the L2 norm of
    /// `embedding(x_j) ⊙ ∂ log P(x_position | x_<position) / ∂ embedding(x_j)`, known as input × gradient.
    ///
    /// `out` holds `position` numbers for each position, one position after the other: those of events `0 .. position`,
    /// in order. The first position has none. `events` reaches at least to `positions.end`; all ids are below `V`. The
    /// numbers of a position do not depend on the other positions of the range, up to rounding, nor on the number of
    /// threads.
    ///
    /// Returns an error if the architecture has no backward pass.
    fn saliency(&self, events: &[EventId], positions: Range<usize>, out: &mut [f64]) -> Result<(), ModelError>;
}

/// Rows of a pass, unless one effect has more.
const PASS_ROWS: usize = 256;

/// Observed events whose predictions are to be explained.
pub(crate) struct Effects<'a> {
    /// The tokens that the network reads, at least up to the last effect.
    pub(crate) tokens: &'a [u32],
    /// Number of tokens before the first event.
    pub(crate) begin: usize,
    /// Number of tokens that are predicted: event types, and the end where it is one.
    pub(crate) outcomes: usize,
    /// The positions of the effects among the events.
    pub(crate) positions: Range<usize>,
}

/// Buffers of a pass.
struct Workspace<A: Trainable> {
    tape: A::Tape,
    logits: Vec<f32>,
    d_hidden: Vec<f32>,
    /// The gradient of the weights, which the backward pass adds to and nobody reads.
    gradient: Vec<f32>,
}

/// Fills `out` with the saliency of each effect's earlier events, effect after effect.
pub(crate) fn fill<A: Trainable>(network: &A, weights: &[f32], effects: &Effects<'_>, mut out: &mut [f64]) {
    let mut passes = Vec::new();
    let Range { start, end } = effects.positions;
    // The first event has no earlier events.
    let mut from = start.max(1);
    while from < end {
        let (mut to, mut rows) = (from + 1, from + effects.begin);
        while to < end && rows + to + effects.begin <= PASS_ROWS {
            rows += to + effects.begin;
            to += 1;
        }
        let lists: Vec<_> = (from..to).map(|position| out.split_off_mut(..position).unwrap_or_default()).collect();
        passes.push((from, lists));
        from = to;
    }
    let workspace = || Workspace::<A> {
        tape: A::Tape::default(),
        logits: Vec::new(),
        d_hidden: Vec::new(),
        gradient: vec![0.0; weights.len()],
    };
    passes.into_par_iter().for_each_init(workspace, |workspace, (first, mut lists)| {
        pass(network, weights, effects, first, &mut lists, workspace);
    });
}

/// The effects from position `first` on, one for each list.
fn pass<A: Trainable>(
    network: &A,
    weights: &[f32],
    effects: &Effects<'_>,
    first: usize,
    lists: &mut [&mut [f64]],
    workspace: &mut Workspace<A>,
) {
    let Effects { tokens, begin, outcomes, .. } = *effects;
    let width = network.hidden_size();
    let groups: Vec<_> = (0..lists.len()).map(|effect| (0, first + effect + begin, 1)).collect();
    let rows = Rows::new(&groups, A::ORDER, |_, _, step| tokens[step]);
    network.forward(weights, &rows, Past::Training, &mut workspace.tape);

    let mut last_rows = vec![0; lists.len()];
    rows.for_each(|group, _, step, row| {
        if step + 1 == group.steps {
            last_rows[group.index] = row;
        }
    });
    let hidden = A::hidden(&workspace.tape);
    let mut last: Vec<f32> = Vec::with_capacity(lists.len() * width);
    for row in &last_rows {
        last.extend_from_slice(&hidden[row * width..][..width]);
    }
    let targets = &tokens[first + begin..][..lists.len()];
    head::back_log_probability(&mut last, &weights[network.head()], (width, outcomes), targets, &mut workspace.logits);
    let d_hidden = resize(&mut workspace.d_hidden, rows.len() * width);
    d_hidden.fill(0.0);
    for (row, gradient) in last_rows.iter().zip(last.chunks_exact(width)) {
        d_hidden[row * width..][..width].copy_from_slice(gradient);
    }

    let d_rows = network.back_to_rows(weights, &rows, &mut workspace.tape, d_hidden, &mut workspace.gradient);
    let table = &weights[network.embedding()];
    rows.for_each(|group, _, step, row| {
        let Some(position) = step.checked_sub(begin) else { return };
        let embedded = &table[rows.tokens[row] as usize * width..][..width];
        let products = embedded.iter().zip(&d_rows[row * width..]).map(|(x, d_x)| f64::from(*x) * f64::from(*d_x));
        lists[group.index][position] = products.map(|product| product * product).sum::<f64>().sqrt();
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use trace_core::{DensityModel, EventId};

    use super::super::architecture::Network;
    use super::super::llama::LlamaConfig;
    use super::super::mamba::MambaConfig;
    use super::super::model::{ModelInfo, NeuralModel};
    use super::super::network::{NetworkConfig, with_kind};
    use super::super::recurrent::RecurrentConfig;
    use super::super::store::bare_info;
    use super::InputGradients;

    /// Every event occurs once, so that each row of the table belongs to one position.
    const EVENTS: [u32; 9] = [3, 7, 0, 5, 1, 8, 2, 6, 4];

    fn log_probability<A: Network>(model: &NeuralModel<A>, events: &[EventId], position: usize) -> f64 {
        let mut row = vec![0.0; model.row_size()];
        model.forward(events, position..position + 1, &mut row).expect("a forward pass");
        row[events[position].index()]
    }

    /// Compares with central differences of each embedding.
    fn check<A: Network>(model: &mut NeuralModel<A>) {
        let events = EVENTS.map(EventId);
        let mut found = vec![0.0; (0..events.len()).sum()];
        model.saliency(&events, 0..events.len(), &mut found).expect("gradients");
        let (table, width) = (model.network.embedding(), model.network.hidden_size());
        let numbers = &model.weights[table.clone()];
        let spread = (numbers.iter().map(|x| x * x).sum::<f32>() / numbers.len() as f32).sqrt();
        // Small relative to the weights, and large enough for f32.
        let step = 0.06 * spread.min(0.5);
        let mut found = found.into_iter();
        for position in 1..events.len() {
            let numeric: Vec<f64> = (0..position)
                .map(|earlier| {
                    let row = table.start + events[earlier].index() * width;
                    let squares = (row..row + width).map(|at| {
                        let weight = model.weights[at];
                        let mut moved = |by: f32| {
                            model.weights[at] = weight + by;
                            let value = log_probability(model, &events, position);
                            model.weights[at] = weight;
                            value
                        };
                        // Fourth order, which allows a larger step.
                        let mut slope = |by: f32| (moved(by) - moved(-by)) / f64::from(2.0 * by);
                        let (half, whole) = (slope(step), slope(2.0 * step));
                        (f64::from(weight) * (4.0 * half - whole) / 3.0).powi(2)
                    });
                    squares.sum::<f64>().sqrt()
                })
                .collect();
            let largest = numeric.iter().copied().fold(0.0, f64::max);
            assert!(largest > 0.01, "{}: {largest} at {position}", model.backbone());
            for (earlier, (numeric, found)) in numeric.iter().zip(&mut found).enumerate() {
                let what = format!("{} {earlier} to {position}: {found} against {numeric}", model.backbone());
                assert!((found - numeric).abs() < 2e-3 * largest, "{what}");
            }
        }
    }

    #[test]
    fn saliency_is_that_of_finite_differences() {
        let recurrent = RecurrentConfig {
            vocab_size: 11,
            hidden_size: 12,
            layers: 2,
            rms_norm_eps: 1e-6,
            tie_word_embeddings: false,
        };
        let configs = [
            NetworkConfig::Llama(LlamaConfig {
                vocab_size: 11,
                hidden_size: 12,
                layers: 2,
                heads: 4,
                num_key_value_heads: 2,
                head_dim: 6,
                intermediate_size: 20,
                rope_theta: 10_000.0,
                rms_norm_eps: 1e-5,
                tie_word_embeddings: false,
                trained_length: 64,
            }),
            NetworkConfig::Mamba(MambaConfig {
                vocab_size: 11,
                hidden_size: 12,
                layers: 2,
                state_size: 4,
                conv_kernel: 4,
                intermediate_size: 16,
                time_step_rank: 2,
                rms_norm_eps: 1e-5,
                use_conv_bias: true,
                use_bias: true,
                tie_word_embeddings: false,
            }),
            NetworkConfig::Gru(recurrent.clone()),
            NetworkConfig::Lstm(recurrent),
        ];
        for config in &configs {
            // Without special tokens, with a begin token and one more special token, and with a predicted end.
            for (types, begin, end) in [(11, None, false), (9, Some(10), false), (9, Some(10), true)] {
                with_kind!(
                    config,
                    network => {
                        let mut weights = network.layout().draw(3);
                        // A embedding table large enough to matter, and a head that prefers something.
                        for (index, weight) in weights.iter_mut().enumerate() {
                            *weight += 0.5 * ((index * 29 % 17) as f32 / 17.0 - 0.5);
                        }
                        let info = ModelInfo { types, end, begin, ..bare_info(config) };
                        check(&mut NeuralModel { network, weights, info, workspaces: Mutex::default() });
                    },
                    _network => unreachable!("all have a backward pass"),
                    _encoder => unreachable!("none is masked")
                );
            }
        }
    }
}
