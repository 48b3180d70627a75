//! Stacked recurrent layers: what a GRU and an LSTM have in common.
//!
//! ```text
//! x⁰_t = embedding(token_t)
//! gates = W_ih · xˡ_t + b_ih  and  W_hh · hˡ_{t−1} + b_hh,    hˡ_t = cell(gates, hˡ_{t−1}),    xˡ⁺¹_t = hˡ_t
//! hidden_t = norm(hᴸ_t)
//! ```
//!
//! Shapes: `n` rows, `d` numbers a row, `g` gates (3 in a GRU, 4 in an LSTM); `W_ih` and `W_hh` are `g·d × d`. Rows lie
//! step after step, so a layer is one product for the inputs of all rows and then one small product a step, with the
//! states of all branches that have not ended. Cost of a row and layer: `4·g·d²` operations; the backward pass takes
//! twice that. Names and orders of tensors are those of torch.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;

use serde_json::{Map, Value, json};

use super::architecture::{Architecture, Past, Trainable, embed, room};
use super::layout::{Layout, Role, Start};
use super::network::{MOST_LAYERS, MOST_TOKENS, WIDEST, fields, short};
use super::rows::{Order, Rows};
use crate::Error;
use crate::folder::Config;
use crate::kernels::panels::Panels;
use crate::kernels::product::{Grade, Matrix, MatrixMut, Old, multiply_to};
use crate::kernels::single;

/// The shape of a recurrent network.
#[derive(Clone, Debug, PartialEq)]
pub struct RecurrentConfig {
    /// Tokens, special ones counted.
    pub tokens: usize,
    /// Numbers in a hidden row, and in the state of each layer.
    pub width: usize,
    /// Layers.
    pub layers: usize,
    /// What keeps the norm from dividing by zero; usually 1e-6.
    pub norm_epsilon: f32,
    /// Whether the head is the table of embeddings.
    pub tied: bool,
}

impl RecurrentConfig {
    /// From `config.json`.
    pub(crate) fn read(config: &Config<'_>) -> Result<Self, Error> {
        Ok(Self {
            tokens: config.size("vocab_size", 2, MOST_TOKENS)?,
            width: config.size("hidden_size", 1, WIDEST)?,
            layers: config.size("num_hidden_layers", 1, MOST_LAYERS)?,
            norm_epsilon: config.number_or("rms_norm_eps", 1e-6)? as f32,
            tied: config.flag_or("tie_word_embeddings", false)?,
        })
    }

    /// As `config.json`.
    pub(crate) fn describe(&self, kind: &str) -> Map<String, Value> {
        fields(json!({
            "model_type": kind,
            "vocab_size": self.tokens,
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "rms_norm_eps": short(self.norm_epsilon),
            "tie_word_embeddings": self.tied,
        }))
    }
}

/// Blocks of `width` numbers that a row keeps of its gates.
const KEPT: usize = 4;

/// Blocks of the input's weights and where their results lie among the kept ones.
pub(crate) struct Part {
    pub(crate) weight: usize,
    pub(crate) count: usize,
    pub(crate) kept: usize,
}

/// A step of some branches: the numbers of each branch follow each other.
pub(crate) struct Step<'a> {
    /// Four blocks a branch: what the input gives to the gates; what [`Cell::back`] needs, afterwards.
    pub(crate) gates: &'a mut [f32],
    /// What the state gives to the gates, without bias.
    pub(crate) hidden: &'a [f32],
    /// What is added to both, four blocks.
    pub(crate) bias: &'a [f32],
    pub(crate) before: State<&'a [f32]>,
    pub(crate) after: State<&'a mut [f32]>,
}

/// The same step backward.
pub(crate) struct BackStep<'a> {
    /// From what the step left to the gradient of what went into the gates.
    pub(crate) gates: &'a mut [f32],
    pub(crate) before: State<&'a [f32]>,
    pub(crate) after: State<&'a [f32]>,
    /// The gradient of what the cells show, from the layer above.
    pub(crate) d_out: &'a [f32],
    /// From the gradient of the state afterwards, from later steps, to that of the state before, except what goes
    /// there by `W_hh`.
    pub(crate) d_state: State<&'a mut [f32]>,
    pub(crate) width: usize,
}

/// What a layer carries from step to step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State<T> {
    /// What it shows to the next layer and to its own next step.
    pub(crate) shown: T,
    /// What it keeps to itself; empty where it shows everything.
    pub(crate) cell: T,
}

/// A kind of cell.
pub(crate) trait Cell: Clone + Debug + Send + Sync + 'static {
    /// Blocks of rows in a weight matrix. Those of `W_hh` are the first of the kept ones, in order.
    const GATES: usize;
    /// The blocks of `W_ih`.
    const INPUT: &'static [Part];
    /// Numbers that a cell keeps to itself.
    const OWN: usize;

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

/// A recurrent network's tensors and how to compute with them.
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
        let RecurrentConfig { tokens, width, .. } = config;
        let mut layout = Layout::default();
        let embedding = layout.add("embedding.weight", &[tokens, width], Role::Embedding, Start::Normal(0.5));
        let matrix = Start::Uniform((1.0 / width as f32).sqrt());
        let layers = (0..config.layers)
            .map(|index| {
                let mut add = |name: &str, shape: &[usize], role, start| {
                    layout.add(format!("rnn.{name}_l{index}"), shape, role, start)
                };
                let rows = C::GATES * width;
                Layer {
                    input: add("weight_ih", &[rows, width], Role::Hidden, matrix),
                    hidden: add("weight_hh", &[rows, width], Role::Hidden, matrix),
                    input_bias: add("bias_ih", &[rows], Role::Vector, Start::Constant(0.0)),
                    hidden_bias: add("bias_hh", &[rows], Role::Vector, Start::Constant(0.0)),
                }
            })
            .collect();
        let norm = layout.add("norm.weight", &[width], Role::Vector, Start::Constant(1.0));
        let head = if config.tied {
            embedding.clone()
        } else {
            layout.add("lm_head.weight", &[tokens, width], Role::Head, Start::Normal(0.02))
        };
        Self { config, layout, embedding, layers, norm, head, cell: PhantomData }
    }

    /// Numbers of a layer's state.
    fn state(&self) -> usize {
        (1 + C::OWN) * self.config.width
    }

    /// The product of all rows with the input's weights.
    fn project(&self, grade: Grade, gates: &mut [f32], x: &[f32], weight: &[f32], n: usize) {
        let width = self.config.width;
        for part in C::INPUT {
            let rows = part.count * width;
            let weight = Matrix::new(&weight[part.weight * width * width..], rows, width).transposed();
            let gates = MatrixMut::strided(&mut gates[part.kept * width..], n, rows, KEPT * width);
            multiply_to(grade, gates, Old::Replace, 1.0, Matrix::new(x, n, width), weight);
        }
    }

    /// Both biases, summed where a gate has both.
    fn bias(&self, bias: &mut [f32], weights: &[f32], layer: &Layer) {
        let width = self.config.width;
        bias.fill(0.0);
        bias[..C::GATES * width].copy_from_slice(&weights[layer.hidden_bias.clone()]);
        for part in C::INPUT {
            let own = &weights[layer.input_bias.clone()][part.weight * width..][..part.count * width];
            single::add(&mut bias[part.kept * width..][..own.len()], own);
        }
    }

    /// The state that each branch starts from: that of its past, or zeros.
    fn start(&self, start: &mut State<Vec<f32>>, memory: Option<&[f32]>, rows: &Rows) {
        let width = self.config.width;
        let shown = room(&mut start.shown, rows.branches() * width);
        let cell = room(&mut start.cell, rows.branches() * C::OWN * width);
        shown.fill(0.0);
        cell.fill(0.0);
        let Some(memory) = memory else { return };
        for group in &rows.groups {
            let (past, own) = memory[group.start * self.state()..][..self.state()].split_at(width);
            for branch in group.branch..group.branch + group.count {
                shown[branch * width..][..width].copy_from_slice(past);
                cell[branch * own.len()..][..own.len()].copy_from_slice(own);
            }
        }
    }

    /// Takes a layer through its steps; `fresh` says that it starts from zeros. All states are written in the order
    /// of rows.
    fn steps(&self, rows: &Rows, fresh: bool, room_of: Steps<'_>) {
        let width = self.config.width;
        let own = C::OWN * width;
        let Steps { gates, bias, panels, start, shown, cell, scratch } = room_of;
        let mut last = 0;
        for (index, range) in rows.steps().iter().enumerate() {
            let active = range.len();
            let (shown_done, shown) = shown.split_at_mut(range.start * width);
            let (cell_done, cell) = cell.split_at_mut(range.start * own);
            let before = if index == 0 {
                State { shown: &start.shown[..active * width], cell: &start.cell[..active * own] }
            } else {
                // Branches that go on are the first of those before.
                State {
                    shown: &shown_done[last * width..][..active * width],
                    cell: &cell_done[last * own..][..active * own],
                }
            };
            let hidden = room(scratch, active * C::GATES * width);
            if index == 0 && fresh {
                hidden.fill(0.0);
            } else {
                panels.multiply(hidden, Old::Replace, before.shown, width);
            }
            let gates = &mut gates[range.start * KEPT * width..range.end * KEPT * width];
            let after = State { shown: &mut shown[..active * width], cell: &mut cell[..active * own] };
            C::step(Step { gates, hidden, bias, before, after });
            last = range.start;
        }
    }

    /// Takes a layer back through its steps, which turns `gates` into the gradient of what went into them.
    fn back_steps(&self, rows: &Rows, room_of: BackSteps<'_>) {
        let width = self.config.width;
        let own = C::OWN * width;
        let BackSteps { gates, panels, start, shown, cell, d_out, d_state } = room_of;
        d_state.shown.fill(0.0);
        d_state.cell.fill(0.0);
        for (index, range) in rows.steps().iter().enumerate().rev() {
            let active = range.len();
            let before = match index.checked_sub(1).map(|index| rows.steps()[index].start) {
                None => State { shown: &start.shown[..active * width], cell: &start.cell[..active * own] },
                Some(last) => {
                    State { shown: &shown[last * width..][..active * width], cell: &cell[last * own..][..active * own] }
                }
            };
            let after = State {
                shown: &shown[range.start * width..range.end * width],
                cell: &cell[range.start * own..range.end * own],
            };
            let gates = &mut gates[range.start * KEPT * width..range.end * KEPT * width];
            let d_shown = &mut d_state.shown[..active * width];
            let d_cell = &mut d_state.cell[..active * own];
            let d_out = &d_out[range.start * width..range.end * width];
            let d_step = State { shown: &mut *d_shown, cell: d_cell };
            C::back(BackStep { gates, before, after, d_out, d_state: d_step, width });
            if index > 0 {
                panels.multiply(d_shown, Old::Add, gates, KEPT * width);
            }
        }
    }
}

/// What [`Recurrent::steps`] works on.
struct Steps<'a> {
    gates: &'a mut [f32],
    bias: &'a [f32],
    panels: &'a Panels,
    start: &'a State<Vec<f32>>,
    shown: &'a mut [f32],
    cell: &'a mut [f32],
    scratch: &'a mut Vec<f32>,
}

/// What [`Recurrent::back_steps`] works on.
struct BackSteps<'a> {
    gates: &'a mut [f32],
    panels: &'a Panels,
    start: &'a State<Vec<f32>>,
    shown: &'a [f32],
    cell: &'a [f32],
    d_out: &'a [f32],
    d_state: State<&'a mut [f32]>,
}

/// What a layer keeps for its backward pass. What it showed is the input of the next.
#[derive(Debug, Default)]
struct LayerTape {
    input: Vec<f32>,
    gates: Vec<f32>,
    cell: Vec<f32>,
}

/// Activations of a recurrent network.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    /// What goes into a layer, and then what comes out of it.
    x: Vec<f32>,
    layers: Vec<LayerTape>,
    inverse: Vec<f32>,
    hidden: Vec<f32>,
    /// Numbers of `hidden` that the last pass wrote.
    size: usize,
    start: State<Vec<f32>>,
    bias: Vec<f32>,
    panels: Panels,
    scratch: Vec<f32>,
    d_x: Vec<f32>,
    d_state: State<Vec<f32>>,
}

impl<C: Cell> Architecture for Recurrent<C> {
    /// For each layer the states before every token and after the last, `(1 + own) · d` numbers each.
    type Memory = Vec<Vec<f32>>;
    type Tape = Tape;
    const ORDER: Order = Order::Steps;

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn width(&self) -> usize {
        self.config.width
    }

    fn tokens(&self) -> usize {
        self.config.tokens
    }

    fn embedding(&self) -> Range<usize> {
        self.embedding.clone()
    }

    fn head(&self) -> Range<usize> {
        self.head.clone()
    }

    fn memory(&self, tokens: usize) -> Vec<Vec<f32>> {
        let layer = || {
            let mut states = Vec::with_capacity((tokens + 1) * self.state());
            states.resize(self.state(), 0.0);
            states
        };
        self.layers.iter().map(|_| layer()).collect()
    }

    fn cost(&self, tokens: usize) -> (usize, usize) {
        let memory = self.config.layers * (tokens + 1) * self.state();
        // Output and hidden row, kept gates, what the state gives to them, what a cell keeps to itself, and a state that
        // the branch starts from.
        let row = (2 + KEPT + C::GATES + C::OWN) * self.config.width + self.state();
        (memory * size_of::<f32>(), row * size_of::<f32>())
    }

    fn forward(&self, weights: &[f32], rows: &Rows, mut past: Past<'_, Vec<Vec<f32>>>, tape: &mut Tape) {
        let (n, width) = (rows.len(), self.config.width);
        let own = C::OWN * width;
        let (keep, grade) = (matches!(past, Past::Training), past.grade());
        tape.size = n * width;
        if let Past::Growing(memory) = &past {
            let read = rows.groups.first().map_or(0, |group| group.start) + 1;
            debug_assert!(
                memory.iter().all(|layer| layer.len() == read * self.state()),
                "reading goes on where it was"
            );
        }
        // Never fewer: a pass that keeps nothing must not drop the room of one that does.
        tape.layers.resize_with(tape.layers.len().max(if keep { self.config.layers } else { 1 }), LayerTape::default);
        embed(room(&mut tape.x, n * width), &weights[self.embedding.clone()], &rows.tokens, width);
        for (index, layer) in self.layers.iter().enumerate() {
            let kept = &mut tape.layers[if keep { index } else { 0 }];
            let gates = room(&mut kept.gates, n * KEPT * width);
            self.project(grade, gates, &tape.x[..n * width], &weights[layer.input.clone()], n);
            if keep {
                std::mem::swap(&mut kept.input, &mut tape.x);
            }
            let memory = match &past {
                Past::Training | Past::Nothing => None,
                Past::Shared(memory) => Some(&memory[index][..]),
                Past::Growing(memory) => Some(&memory[index][..]),
            };
            self.start(&mut tape.start, memory, rows);
            let bias = room(&mut tape.bias, KEPT * width);
            self.bias(bias, weights, layer);
            tape.panels.pack_transposed(&weights[layer.hidden.clone()], width, C::GATES * width);
            let shown = room(&mut tape.x, n * width);
            let cell = room(&mut kept.cell, n * own);
            let fresh = memory.is_none();
            let (panels, start, scratch) = (&tape.panels, &tape.start, &mut tape.scratch);
            self.steps(rows, fresh, Steps { gates, bias, panels, start, shown, cell, scratch });
            if let Past::Growing(memory) = &mut past {
                for row in 0..n {
                    memory[index].extend_from_slice(&shown[row * width..][..width]);
                    memory[index].extend_from_slice(&cell[row * own..][..own]);
                }
            }
        }
        let hidden = room(&mut tape.hidden, n * width);
        let (norm, x) = (&weights[self.norm.clone()], &tape.x[..n * width]);
        single::rms_norm(hidden, room(&mut tape.inverse, n), x, norm, self.config.norm_epsilon);
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
        let (n, width) = (rows.len(), self.config.width);
        let own = C::OWN * width;
        let d_x = room(&mut tape.d_x, n * width);
        d_x.fill(0.0);
        let norm = self.norm.clone();
        let x = &tape.x[..n * width];
        single::back_rms_norm(d_x, &mut gradient[norm.clone()], d_hidden, x, &tape.inverse[..n], &weights[norm]);
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let (below, above) = tape.layers[..self.config.layers].split_at_mut(index + 1);
            let Some(kept) = below.last_mut() else { continue };
            let shown = &above.first().map_or(&tape.x, |above| &above.input)[..n * width];
            let (input, gates) = (&kept.input[..n * width], &mut kept.gates[..n * KEPT * width]);
            tape.panels.pack(&weights[layer.hidden.clone()], C::GATES * width, width);
            let d_state = State {
                shown: room(&mut tape.d_state.shown, rows.branches() * width),
                cell: room(&mut tape.d_state.cell, rows.branches() * own),
            };
            let (panels, start, cell) = (&tape.panels, &tape.start, &kept.cell[..n * own]);
            self.back_steps(rows, BackSteps { gates, panels, start, shown, cell, d_out: d_x, d_state });

            // The states before each step but the first, which starts from zeros, in the order of rows.
            let first = rows.steps().first().map_or(0, Range::len);
            let before = room(&mut tape.scratch, (n - first) * width);
            for pair in rows.steps().windows(2) {
                let (last, now) = (pair[0].start * width, (pair[1].start - first) * width);
                let size = pair[1].len() * width;
                before[now..now + size].copy_from_slice(&shown[last..last + size]);
            }
            let part = C::GATES * width;
            let d_gates = Matrix::strided(&gates[first * KEPT * width..], n - first, part, KEPT * width).transposed();
            let d_weight = MatrixMut::new(&mut gradient[layer.hidden.clone()], part, width);
            multiply_to(Grade::Training, d_weight, Old::Add, 1.0, d_gates, Matrix::new(before, n - first, width));

            let bias = room(&mut tape.bias, KEPT * width);
            bias.fill(0.0);
            single::sum_of_rows(bias, gates);
            single::add(&mut gradient[layer.hidden_bias.clone()], &bias[..part]);
            for (number, part) in C::INPUT.iter().enumerate() {
                let size = part.count * width;
                let d_gates = Matrix::strided(&gates[part.kept * width..], n, size, KEPT * width);
                let d_weight = &mut gradient[layer.input.clone()][part.weight * width * width..];
                let d_weight = MatrixMut::new(d_weight, size, width);
                multiply_to(
                    Grade::Training,
                    d_weight,
                    Old::Add,
                    1.0,
                    d_gates.transposed(),
                    Matrix::new(input, n, width),
                );
                let weight = Matrix::new(&weights[layer.input.clone()][part.weight * width * width..], size, width);
                let old = if number == 0 { Old::Replace } else { Old::Add };
                multiply_to(Grade::Training, MatrixMut::new(d_x, n, width), old, 1.0, d_gates, weight);
                let d_bias = &mut gradient[layer.input_bias.clone()][part.weight * width..][..size];
                single::add(d_bias, &bias[part.kept * width..][..size]);
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

    /// Hidden rows 0, 2 and 6 of a network whose tensors are filled by a formula.
    fn rows_of<C: Cell>() -> Vec<f32> {
        let (tokens, width, layers) = (5, 4, 2);
        let network = Recurrent::<C>::new(RecurrentConfig { tokens, width, layers, norm_epsilon: 1e-6, tied: true });
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

    // Expected numbers: torch.nn.GRU and torch.nn.LSTM in f64 with the same weights, followed by the norm.

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
