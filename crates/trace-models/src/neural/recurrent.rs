//! Stacked recurrent layers: the common parts of a GRU and an LSTM.
//!
//! ```text
//! x⁰_t = embedding(token_t)
//! gates = W_ih · xˡ_t + b_ih  and  W_hh · hˡ_{t−1} + b_hh,    hˡ_t = cell(gates, hˡ_{t−1}),    xˡ⁺¹_t = hˡ_t
//! hidden_t = norm(hᴸ_t)
//! ```
//!
//! Shapes: `n` rows, `d` numbers per row, `g` gates (3 in a GRU, 4 in an LSTM); `W_ih` and `W_hh` are `g·d × d`. Rows
//! are in step order, so a layer is one product for the inputs of all rows and then one small product per step for the
//! states of all branches that have not ended. Cost per row and layer: `4·g·d²` operations; the backward pass costs
//! twice that. Names and order of tensors are those of PyTorch.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;

use serde_json::{Map, Value, json};
use trace_kernels as kernels;
use trace_kernels::matmul::{Accumulate, Matrix, MatrixMut, Precision, multiply_with};
use trace_kernels::panels::Panels;

use super::architecture::{Network, Past, Trainable, embed, resize};
use super::layout::{Initializer, Layout, Role};
use super::network::{MAX_LAYERS, MAX_VOCAB_SIZE, MAX_WIDTH, fields, short};
use super::rows::{Order, Rows};
use crate::Error;
use crate::folder::Config;

/// The configuration of a recurrent network.
#[derive(Clone, Debug, PartialEq)]
pub struct RecurrentConfig {
    /// Number of tokens, including special ones.
    pub vocab_size: usize,
    /// Numbers in a hidden row, and in the state of each layer.
    pub hidden_size: usize,
    /// Number of layers.
    pub layers: usize,
    /// Keeps the norm from dividing by zero; usually 1e-6.
    pub rms_norm_eps: f32,
    /// Whether the head is the embedding table.
    pub tie_word_embeddings: bool,
}

impl RecurrentConfig {
    /// From `config.json`.
    pub(crate) fn read(config: &Config<'_>) -> Result<Self, Error> {
        Ok(Self {
            vocab_size: config.size("vocab_size", 2, MAX_VOCAB_SIZE)?,
            hidden_size: config.size("hidden_size", 1, MAX_WIDTH)?,
            layers: config.size("num_hidden_layers", 1, MAX_LAYERS)?,
            rms_norm_eps: config.number_or("rms_norm_eps", 1e-6)? as f32,
            tie_word_embeddings: config.flag_or("tie_word_embeddings", false)?,
        })
    }

    /// As `config.json`.
    pub(crate) fn describe(&self, kind: &str) -> Map<String, Value> {
        fields(json!({
            "model_type": kind,
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.layers,
            "rms_norm_eps": short(self.rms_norm_eps),
            "tie_word_embeddings": self.tie_word_embeddings,
        }))
    }
}

/// Blocks of `width` numbers that a row stores for its gates.
const KEPT: usize = 4;

/// Blocks of the input weights, and the place of their results among the stored blocks.
pub(crate) struct Part {
    pub(crate) weight: usize,
    pub(crate) count: usize,
    pub(crate) kept: usize,
}

/// A step of some branches; the numbers of a branch are contiguous.
pub(crate) struct Step<'a> {
    /// Four blocks per branch: before the step the input part of the gates, afterwards what [`Cell::back`] needs.
    pub(crate) gates: &'a mut [f32],
    /// The recurrent part of the gates, without bias.
    pub(crate) hidden: &'a [f32],
    /// The bias of the gates, four blocks.
    pub(crate) bias: &'a [f32],
    pub(crate) before: State<&'a [f32]>,
    pub(crate) after: State<&'a mut [f32]>,
}

/// The same step backward.
pub(crate) struct BackStep<'a> {
    /// What the step stored; replaced by the gradient of the inputs of the gates.
    pub(crate) gates: &'a mut [f32],
    pub(crate) before: State<&'a [f32]>,
    pub(crate) after: State<&'a [f32]>,
    /// The gradient of the output, from the layer above.
    pub(crate) d_out: &'a [f32],
    /// The gradient of the state after the step, from later steps; replaced by that of the state before the step,
    /// except for the part through `W_hh`.
    pub(crate) d_state: State<&'a mut [f32]>,
    pub(crate) width: usize,
}

/// What a layer carries from step to step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State<T> {
    /// The output, which the next layer and the next step read.
    pub(crate) output: T,
    /// The cell state, which only the next step reads; empty for a GRU.
    pub(crate) cell: T,
}

/// A kind of cell.
pub(crate) trait Cell: Clone + Debug + Send + Sync + 'static {
    /// Blocks of rows in a weight matrix. Those of `W_hh` are the first of the stored blocks, in order.
    const GATES: usize;
    /// The blocks of `W_ih`.
    const INPUT: &'static [Part];
    /// Number of cell states besides the output: 0 for a GRU, 1 for an LSTM.
    const CELL_STATES: usize;

    fn step(step: Step<'_>);
    fn back(step: BackStep<'_>);
}

#[derive(Clone, Debug)]
struct Layer {
    input: Range<usize>,
    hidden: Range<usize>,
    input_bias: Range<usize>,
    hidden_bias: Range<usize>,
}

/// The tensors of a recurrent network, and its forward and backward pass.
#[derive(Clone, Debug)]
pub(crate) struct Recurrent<C> {
    pub(crate) config: RecurrentConfig,
    layout: Layout,
    embedding: Range<usize>,
    layers: Vec<Layer>,
    norm: Range<usize>,
    head: Range<usize>,
    cell: PhantomData<C>,
}

impl<C: Cell> Recurrent<C> {
    pub(crate) fn new(config: RecurrentConfig) -> Self {
        let RecurrentConfig { vocab_size, hidden_size: width, .. } = config;
        let mut layout = Layout::default();
        let embedding = layout.add("embedding.weight", &[vocab_size, width], Role::Embedding, Initializer::Normal(0.5));
        let matrix = Initializer::Uniform((1.0 / width as f32).sqrt());
        let layers = (0..config.layers)
            .map(|index| {
                let mut add = |name: &str, shape: &[usize], role, start| {
                    layout.add(format!("rnn.{name}_l{index}"), shape, role, start)
                };
                let rows = C::GATES * width;
                Layer {
                    input: add("weight_ih", &[rows, width], Role::Hidden, matrix),
                    hidden: add("weight_hh", &[rows, width], Role::Hidden, matrix),
                    input_bias: add("bias_ih", &[rows], Role::Vector, Initializer::Constant(0.0)),
                    hidden_bias: add("bias_hh", &[rows], Role::Vector, Initializer::Constant(0.0)),
                }
            })
            .collect();
        let norm = layout.add("norm.weight", &[width], Role::Vector, Initializer::Constant(1.0));
        let head = if config.tie_word_embeddings {
            embedding.clone()
        } else {
            layout.add("lm_head.weight", &[vocab_size, width], Role::Head, Initializer::Normal(0.02))
        };
        Self { config, layout, embedding, layers, norm, head, cell: PhantomData }
    }

    /// Numbers of a layer's state.
    fn state(&self) -> usize {
        (1 + C::CELL_STATES) * self.config.hidden_size
    }

    /// The product of all rows with the input weights.
    fn project(&self, precision: Precision, gates: &mut [f32], x: &[f32], weight: &[f32], n: usize) {
        let width = self.config.hidden_size;
        for part in C::INPUT {
            let rows = part.count * width;
            let weight = Matrix::new(&weight[part.weight * width * width..], rows, width).transposed();
            let gates = MatrixMut::strided(&mut gates[part.kept * width..], n, rows, KEPT * width);
            multiply_with(precision, gates, Accumulate::Replace, 1.0, Matrix::new(x, n, width), weight);
        }
    }

    /// Both biases, summed where a gate has both.
    fn bias(&self, bias: &mut [f32], weights: &[f32], layer: &Layer) {
        let width = self.config.hidden_size;
        bias.fill(0.0);
        bias[..C::GATES * width].copy_from_slice(&weights[layer.hidden_bias.clone()]);
        for part in C::INPUT {
            let cell_size = &weights[layer.input_bias.clone()][part.weight * width..][..part.count * width];
            kernels::f32::add(&mut bias[part.kept * width..][..cell_size.len()], cell_size);
        }
    }

    /// Sets the state that each branch starts from: that of its past, or zeros.
    fn start(&self, start: &mut State<Vec<f32>>, cache: Option<&[f32]>, rows: &Rows) {
        let width = self.config.hidden_size;
        let output = resize(&mut start.output, rows.branches() * width);
        let cell = resize(&mut start.cell, rows.branches() * C::CELL_STATES * width);
        output.fill(0.0);
        cell.fill(0.0);
        let Some(cache) = cache else { return };
        for group in &rows.groups {
            let (past, cell_size) = cache[group.start * self.state()..][..self.state()].split_at(width);
            for branch in group.branch..group.branch + group.count {
                output[branch * width..][..width].copy_from_slice(past);
                cell[branch * cell_size.len()..][..cell_size.len()].copy_from_slice(cell_size);
            }
        }
    }

    /// Runs a layer through its steps; `fresh` tells that it starts from zeros. States are written in the order of
    /// rows.
    fn steps(&self, rows: &Rows, fresh: bool, buffers: Steps<'_>) {
        let width = self.config.hidden_size;
        let cell_size = C::CELL_STATES * width;
        let Steps { gates, bias, panels, start, output, cell, scratch } = buffers;
        let mut last = 0;
        for (index, range) in rows.steps().iter().enumerate() {
            let active = range.len();
            let (output_done, output) = output.split_at_mut(range.start * width);
            let (cell_done, cell) = cell.split_at_mut(range.start * cell_size);
            let before = if index == 0 {
                State { output: &start.output[..active * width], cell: &start.cell[..active * cell_size] }
            } else {
                // The branches that continue are the first ones of the step before.
                State {
                    output: &output_done[last * width..][..active * width],
                    cell: &cell_done[last * cell_size..][..active * cell_size],
                }
            };
            let hidden = resize(scratch, active * C::GATES * width);
            if index == 0 && fresh {
                hidden.fill(0.0);
            } else {
                panels.multiply(hidden, Accumulate::Replace, before.output, width);
            }
            let gates = &mut gates[range.start * KEPT * width..range.end * KEPT * width];
            let after = State { output: &mut output[..active * width], cell: &mut cell[..active * cell_size] };
            C::step(Step { gates, hidden, bias, before, after });
            last = range.start;
        }
    }

    /// Runs a layer backward through its steps, which replaces `gates` by the gradient of their inputs.
    fn back_steps(&self, rows: &Rows, buffers: BackSteps<'_>) {
        let width = self.config.hidden_size;
        let cell_size = C::CELL_STATES * width;
        let BackSteps { gates, panels, start, output, cell, d_out, d_state } = buffers;
        d_state.output.fill(0.0);
        d_state.cell.fill(0.0);
        for (index, range) in rows.steps().iter().enumerate().rev() {
            let active = range.len();
            let before = match index.checked_sub(1).map(|index| rows.steps()[index].start) {
                None => State { output: &start.output[..active * width], cell: &start.cell[..active * cell_size] },
                Some(last) => State {
                    output: &output[last * width..][..active * width],
                    cell: &cell[last * cell_size..][..active * cell_size],
                },
            };
            let after = State {
                output: &output[range.start * width..range.end * width],
                cell: &cell[range.start * cell_size..range.end * cell_size],
            };
            let gates = &mut gates[range.start * KEPT * width..range.end * KEPT * width];
            let d_output = &mut d_state.output[..active * width];
            let d_cell = &mut d_state.cell[..active * cell_size];
            let d_out = &d_out[range.start * width..range.end * width];
            let d_step = State { output: &mut *d_output, cell: d_cell };
            C::back(BackStep { gates, before, after, d_out, d_state: d_step, width });
            if index > 0 {
                panels.multiply(d_output, Accumulate::Add, gates, KEPT * width);
            }
        }
    }
}

/// The buffers of [`Recurrent::steps`].
struct Steps<'a> {
    gates: &'a mut [f32],
    bias: &'a [f32],
    panels: &'a Panels,
    start: &'a State<Vec<f32>>,
    output: &'a mut [f32],
    cell: &'a mut [f32],
    scratch: &'a mut Vec<f32>,
}

/// The buffers of [`Recurrent::back_steps`].
struct BackSteps<'a> {
    gates: &'a mut [f32],
    panels: &'a Panels,
    start: &'a State<Vec<f32>>,
    output: &'a [f32],
    cell: &'a [f32],
    d_out: &'a [f32],
    d_state: State<&'a mut [f32]>,
}

/// What a layer keeps for its backward pass. Its output is the input of the next layer.
#[derive(Debug, Default)]
struct LayerTape {
    input: Vec<f32>,
    gates: Vec<f32>,
    cell: Vec<f32>,
}

/// Activations of a recurrent network.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    /// The input of a layer, and then its output.
    x: Vec<f32>,
    layers: Vec<LayerTape>,
    inverse: Vec<f32>,
    hidden: Vec<f32>,
    /// How many numbers of `hidden` the last pass wrote.
    size: usize,
    start: State<Vec<f32>>,
    bias: Vec<f32>,
    panels: Panels,
    scratch: Vec<f32>,
    d_x: Vec<f32>,
    d_state: State<Vec<f32>>,
}

impl<C: Cell> Network for Recurrent<C> {
    /// For each layer the state before every token and after the last one, `(1 + CELL_STATES) · d` numbers each.
    type Cache = Vec<Vec<f32>>;
    type Tape = Tape;
    const ORDER: Order = Order::Steps;

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn hidden_size(&self) -> usize {
        self.config.hidden_size
    }

    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn embedding(&self) -> Range<usize> {
        self.embedding.clone()
    }

    fn head(&self) -> Range<usize> {
        self.head.clone()
    }

    fn cache(&self, tokens: usize) -> Vec<Vec<f32>> {
        let layer = || {
            let mut states = Vec::with_capacity((tokens + 1) * self.state());
            states.resize(self.state(), 0.0);
            states
        };
        self.layers.iter().map(|_| layer()).collect()
    }

    fn cost(&self, tokens: usize) -> (usize, usize) {
        let cache = self.config.layers * (tokens + 1) * self.state();
        // Output and hidden row, stored gates, their recurrent part, the cell state, and the state that the branch
        // starts from.
        let row = (2 + KEPT + C::GATES + C::CELL_STATES) * self.config.hidden_size + self.state();
        (cache * size_of::<f32>(), row * size_of::<f32>())
    }

    fn forward(&self, weights: &[f32], rows: &Rows, mut past: Past<'_, Vec<Vec<f32>>>, tape: &mut Tape) {
        let (n, width) = (rows.len(), self.config.hidden_size);
        let cell_size = C::CELL_STATES * width;
        let (keep, precision) = (matches!(past, Past::Training), past.precision());
        tape.size = n * width;
        if let Past::Growing(cache) = &past {
            let read = rows.groups.first().map_or(0, |group| group.start) + 1;
            debug_assert!(cache.iter().all(|layer| layer.len() == read * self.state()), "reading goes on where it was");
        }
        // Never shrinks: a pass that keeps nothing must not drop the buffers of one that does.
        tape.layers.resize_with(tape.layers.len().max(if keep { self.config.layers } else { 1 }), LayerTape::default);
        embed(resize(&mut tape.x, n * width), &weights[self.embedding.clone()], &rows.tokens, width);
        for (index, layer) in self.layers.iter().enumerate() {
            let kept = &mut tape.layers[if keep { index } else { 0 }];
            let gates = resize(&mut kept.gates, n * KEPT * width);
            self.project(precision, gates, &tape.x[..n * width], &weights[layer.input.clone()], n);
            if keep {
                std::mem::swap(&mut kept.input, &mut tape.x);
            }
            let cache = match &past {
                Past::Training | Past::Nothing => None,
                Past::Shared(cache) => Some(&cache[index][..]),
                Past::Growing(cache) => Some(&cache[index][..]),
            };
            self.start(&mut tape.start, cache, rows);
            let bias = resize(&mut tape.bias, KEPT * width);
            self.bias(bias, weights, layer);
            tape.panels.pack_transposed(&weights[layer.hidden.clone()], width, C::GATES * width);
            let output = resize(&mut tape.x, n * width);
            let cell = resize(&mut kept.cell, n * cell_size);
            let fresh = cache.is_none();
            let (panels, start, scratch) = (&tape.panels, &tape.start, &mut tape.scratch);
            self.steps(rows, fresh, Steps { gates, bias, panels, start, output, cell, scratch });
            if let Past::Growing(cache) = &mut past {
                for row in 0..n {
                    cache[index].extend_from_slice(&output[row * width..][..width]);
                    cache[index].extend_from_slice(&cell[row * cell_size..][..cell_size]);
                }
            }
        }
        let hidden = resize(&mut tape.hidden, n * width);
        let (norm, x) = (&weights[self.norm.clone()], &tape.x[..n * width]);
        kernels::f32::rms_norm(hidden, resize(&mut tape.inverse, n), x, norm, self.config.rms_norm_eps);
    }

    fn hidden(tape: &Tape) -> &[f32] {
        &tape.hidden[..tape.size]
    }
}

impl<C: Cell> Trainable for Recurrent<C> {
    fn back_to_rows<'t>(
        &self,
        weights: &[f32],
        rows: &Rows,
        tape: &'t mut Tape,
        d_hidden: &mut [f32],
        gradient: &mut [f32],
    ) -> &'t [f32] {
        let (n, width) = (rows.len(), self.config.hidden_size);
        let cell_size = C::CELL_STATES * width;
        let d_x = resize(&mut tape.d_x, n * width);
        d_x.fill(0.0);
        let norm = self.norm.clone();
        let x = &tape.x[..n * width];
        kernels::f32::back_rms_norm(d_x, &mut gradient[norm.clone()], d_hidden, x, &tape.inverse[..n], &weights[norm]);
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let (below, above) = tape.layers[..self.config.layers].split_at_mut(index + 1);
            let Some(kept) = below.last_mut() else { continue };
            let output = &above.first().map_or(&tape.x, |above| &above.input)[..n * width];
            let (input, gates) = (&kept.input[..n * width], &mut kept.gates[..n * KEPT * width]);
            tape.panels.pack(&weights[layer.hidden.clone()], C::GATES * width, width);
            let d_state = State {
                output: resize(&mut tape.d_state.output, rows.branches() * width),
                cell: resize(&mut tape.d_state.cell, rows.branches() * cell_size),
            };
            let (panels, start, cell) = (&tape.panels, &tape.start, &kept.cell[..n * cell_size]);
            self.back_steps(rows, BackSteps { gates, panels, start, output, cell, d_out: d_x, d_state });

            // The states before each step but the first, which starts from zeros, in the order of rows.
            let first = rows.steps().first().map_or(0, Range::len);
            let before = resize(&mut tape.scratch, (n - first) * width);
            for pair in rows.steps().windows(2) {
                let (last, now) = (pair[0].start * width, (pair[1].start - first) * width);
                let size = pair[1].len() * width;
                before[now..now + size].copy_from_slice(&output[last..last + size]);
            }
            let part = C::GATES * width;
            let d_gates = Matrix::strided(&gates[first * KEPT * width..], n - first, part, KEPT * width).transposed();
            let d_weight = MatrixMut::new(&mut gradient[layer.hidden.clone()], part, width);
            multiply_with(
                Precision::Training,
                d_weight,
                Accumulate::Add,
                1.0,
                d_gates,
                Matrix::new(before, n - first, width),
            );

            let bias = resize(&mut tape.bias, KEPT * width);
            bias.fill(0.0);
            kernels::f32::sum_of_rows(bias, gates);
            kernels::f32::add(&mut gradient[layer.hidden_bias.clone()], &bias[..part]);
            for (number, part) in C::INPUT.iter().enumerate() {
                let size = part.count * width;
                let d_gates = Matrix::strided(&gates[part.kept * width..], n, size, KEPT * width);
                let d_weight = &mut gradient[layer.input.clone()][part.weight * width * width..];
                let d_weight = MatrixMut::new(d_weight, size, width);
                multiply_with(
                    Precision::Training,
                    d_weight,
                    Accumulate::Add,
                    1.0,
                    d_gates.transposed(),
                    Matrix::new(input, n, width),
                );
                let weight = Matrix::new(&weights[layer.input.clone()][part.weight * width * width..], size, width);
                let accumulate = if number == 0 { Accumulate::Replace } else { Accumulate::Add };
                multiply_with(Precision::Training, MatrixMut::new(d_x, n, width), accumulate, 1.0, d_gates, weight);
                let d_bias = &mut gradient[layer.input_bias.clone()][part.weight * width..][..size];
                kernels::f32::add(d_bias, &bias[part.kept * width..][..size]);
            }
        }
        d_x
    }
}

#[cfg(test)]
mod tests {
    use super::super::gru::GruCell;
    use super::super::lstm::LstmCell;
    use super::*;

    /// Hidden rows 0, 2 and 6 of a network with fixed weights.
    fn rows_of<C: Cell>() -> Vec<f32> {
        let (vocab_size, width, layers) = (5, 4, 2);
        let network = Recurrent::<C>::new(RecurrentConfig {
            vocab_size,
            hidden_size: width,
            layers,
            rms_norm_eps: 1e-6,
            tie_word_embeddings: true,
        });
        let mut weights = network.layout().draw(0); // the norm's gains are ones and stay
        for (salt, entry) in network.layout().entries().iter().enumerate().filter(|(_, e)| e.name != "norm.weight") {
            for (index, weight) in weights[entry.range()].iter_mut().enumerate() {
                *weight = ((index * 29 + (salt + 1) * 7) % 53) as f32 / 26.5 - 1.0;
            }
        }
        let events = [1, 4, 0, 2, 3, 3, 1];
        let rows = Rows::new(&[(0, events.len(), 1)], Order::Steps, |_, _, step| events[step]);
        let mut tape = Tape::default();
        network.forward(&weights, &rows, Past::Nothing, &mut tape);
        let hidden = Recurrent::<C>::hidden(&tape);
        [0, 2, 6].iter().flat_map(|row| hidden[row * width..][..width].to_vec()).collect()
    }

    fn close(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2e-6), "{found:?} against {expected:?}");
    }

    // Expected values: torch.nn.GRU and torch.nn.LSTM in f64 with the same weights, followed by the norm.

    #[test]
    fn a_gru_is_that_of_torch() {
        let expected = [
            1.471_369_7,
            -0.100_870_4,
            -0.278_608_7,
            -1.321_825_1,
            0.739_474_4,
            0.180_235_6,
            -0.085_972_1,
            -1.847_507,
            0.276_745_7,
            0.566_829_1,
            0.187_000_4,
            -1.888_684_1,
        ];
        close(&rows_of::<GruCell>(), &expected);
    }

    #[test]
    fn an_lstm_is_that_of_torch() {
        let expected = [
            0.186_334_8,
            0.155_175,
            0.577_019_9,
            -1.899_421_9,
            0.327_523_7,
            0.643_349_6,
            0.568_138_5,
            -1.776_477_1,
            0.330_093_8,
            1.237_161_2,
            0.511_339,
            -1.448_754_7,
        ];
        close(&rows_of::<LstmCell>(), &expected);
    }
}
