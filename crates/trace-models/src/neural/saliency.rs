//! Saliency: how much each earlier event matters to a prediction, by its gradient.
//!
//! ```text
//! s_qj = ‖ e_j ⊙ ∂ log P(x_q | x_<q) / ∂ e_j ‖₂,        e_j = embedding(x_j),  j < q
//! ```
//!
//! The gradient is that of the embedded row; the table's row would mix the places where an event repeats. Every effect
//! `q` is a sequence of its own that ends just before it and whose last hidden row `h` alone has a gradient to begin
//! with, `∂ log P(x_q) / ∂h = head[x_q] − Σ_v P(v) · head[v]` over event types. Effects go through the network some at
//! a time, as the sequences of a training batch do; which ones go together does not depend on the number of threads.
//!
//! Cost: a training step's work on `q` rows for each effect. Memory of a thread: what a pass of [`PASS_ROWS`] rows, or
//! of the longest effect, keeps for its backward pass, and a gradient of all weights.

use std::ops::Range;

use rayon::prelude::*;

use super::architecture::{Past, Trainable, room};
use super::head;
use super::rows::Rows;

/// Rows of a pass, unless one effect has more.
const PASS_ROWS: usize = 256;

/// Observed events whose predictions are to be explained.
pub(crate) struct Effects<'a> {
    /// What the network reads, to the last effect at least.
    pub(crate) tokens: &'a [u32],
    /// Tokens before the first event.
    pub(crate) begin: usize,
    /// Event types; tokens from here on are special.
    pub(crate) types: usize,
    /// Their positions among the events.
    pub(crate) positions: Range<usize>,
}

/// Buffers of a pass.
struct Space<A: Trainable> {
    tape: A::Tape,
    logits: Vec<f32>,
    d_hidden: Vec<f32>,
    /// That of the weights, which the backward pass adds to and nothing reads.
    gradient: Vec<f32>,
}

/// Fills `out` with the saliency of each effect's earlier events, effect after effect.
pub(crate) fn fill<A: Trainable>(network: &A, weights: &[f32], effects: &Effects<'_>, mut out: &mut [f64]) {
    let mut passes = Vec::new();
    let Range { start, end } = effects.positions;
    // The first event has none before it.
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
    let space = || Space::<A> {
        tape: A::Tape::default(),
        logits: Vec::new(),
        d_hidden: Vec::new(),
        gradient: vec![0.0; weights.len()],
    };
    passes.into_par_iter().for_each_init(space, |space, (first, mut lists)| {
        pass(network, weights, effects, first, &mut lists, space);
    });
}

/// The effects from position `first` on, one for each list.
fn pass<A: Trainable>(
    network: &A,
    weights: &[f32],
    effects: &Effects<'_>,
    first: usize,
    lists: &mut [&mut [f64]],
    space: &mut Space<A>,
) {
    let Effects { tokens, begin, types, .. } = *effects;
    let width = network.width();
    let groups: Vec<_> = (0..lists.len()).map(|effect| (0, first + effect + begin, 1)).collect();
    let rows = Rows::new(&groups, A::ORDER, |_, _, step| tokens[step]);
    network.forward(weights, &rows, Past::Training, &mut space.tape);

    let mut last_rows = vec![0; lists.len()];
    rows.for_each(|group, _, step, row| {
        if step + 1 == group.steps {
            last_rows[group.index] = row;
        }
    });
    let hidden = A::hidden(&space.tape);
    let mut last: Vec<f32> = Vec::with_capacity(lists.len() * width);
    for row in &last_rows {
        last.extend_from_slice(&hidden[row * width..][..width]);
    }
    let targets = &tokens[first + begin..][..lists.len()];
    head::back_log_probability(&mut last, &weights[network.head()], (width, types), targets, &mut space.logits);
    let d_hidden = room(&mut space.d_hidden, rows.len() * width);
    d_hidden.fill(0.0);
    for (row, gradient) in last_rows.iter().zip(last.chunks_exact(width)) {
        d_hidden[row * width..][..width].copy_from_slice(gradient);
    }

    let d_rows = network.back_to_rows(weights, &rows, &mut space.tape, d_hidden, &mut space.gradient);
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

    use super::super::architecture::Architecture;
    use super::super::llama::LlamaConfig;
    use super::super::mamba::MambaConfig;
    use super::super::model::{Facts, NeuralModel};
    use super::super::network::{NetworkConfig, with_kind};
    use super::super::recurrent::RecurrentConfig;
    use super::super::store::bare_facts;

    /// Every event once, so that a row of the table is the row of one position.
    const EVENTS: [u32; 9] = [3, 7, 0, 5, 1, 8, 2, 6, 4];

    fn log_probability<A: Architecture>(model: &NeuralModel<A>, events: &[EventId], position: usize) -> f64 {
        let mut row = vec![0.0; model.vocabulary_size()];
        model.forward(events, position..position + 1, &mut row).expect("a forward pass");
        row[events[position].index()]
    }

    /// Compares with central differences in the numbers of each embedding.
    fn check<A: Architecture>(model: &mut NeuralModel<A>) {
        let events = EVENTS.map(EventId);
        let mut found = vec![0.0; (0..events.len()).sum()];
        model.saliency(&events, 0..events.len(), &mut found).expect("gradients");
        let (table, width) = (model.network.embedding(), model.network.width());
        let numbers = &model.weights[table.clone()];
        let spread = (numbers.iter().map(|x| x * x).sum::<f32>() / numbers.len() as f32).sqrt();
        // Small beside what it moves, and large enough for f32.
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
                        // Of fourth order, for the sake of a larger step.
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
        let recurrent = RecurrentConfig { tokens: 11, width: 12, layers: 2, norm_epsilon: 1e-6, tied: false };
        let configs = [
            NetworkConfig::Llama(LlamaConfig {
                tokens: 11,
                width: 12,
                layers: 2,
                heads: 4,
                key_heads: 2,
                head_width: 6,
                feed_forward: 20,
                rope_theta: 10_000.0,
                norm_epsilon: 1e-5,
                tied: false,
                trained_length: 64,
            }),
            NetworkConfig::Mamba(MambaConfig {
                tokens: 11,
                width: 12,
                layers: 2,
                state: 4,
                kernel: 4,
                inner: 16,
                step_rank: 2,
                norm_epsilon: 1e-5,
                conv_bias: true,
                bias: true,
                tied: false,
            }),
            NetworkConfig::Gru(recurrent.clone()),
            NetworkConfig::Lstm(recurrent),
        ];
        for config in &configs {
            // Without special tokens, and with a begin token and one that no event is.
            for (types, begin) in [(11, None), (9, Some(10))] {
                with_kind!(
                    config,
                    network => {
                        let mut weights = network.layout().draw(3);
                        // A table of embeddings large enough to matter, and a head that prefers something.
                        for (index, weight) in weights.iter_mut().enumerate() {
                            *weight += 0.5 * ((index * 29 % 17) as f32 / 17.0 - 0.5);
                        }
                        let facts = Facts { types, begin, ..bare_facts(config) };
                        check(&mut NeuralModel { network, weights, facts, spaces: Mutex::default() });
                    },
                    _network => unreachable!("all have a backward pass"),
                    _encoder => unreachable!("none is masked")
                );
            }
        }
    }
}
