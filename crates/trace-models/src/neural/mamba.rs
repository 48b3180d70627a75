//! Mamba (Gu & Dao, 2023): a selective state-space model; tensors are named as in Hugging Face's `MambaForCausalLM`.
//!
//! ```text
//! (x, z) = W_in · norm(r)                       u = silu(convolution(x))
//! (s, B, C) = W_x · u                           Δ = softplus(W_Δ · s + bias)
//! h_t = e^{Δ_t A} ⊙ h_{t−1} + Δ_t u_t B_tᵀ      with A = −e^{A_log}
//! r ← r + W_out · ( (h C + D ⊙ u) ⊙ silu(z) )
//! ```
//!
//! Shapes: `d` numbers per row, `e` channels, `n` numbers of state per channel, rank `q` of the step sizes, and `K`
//! taps per channel. `W_in` is `2e × d`, `W_x` is `(q + 2n) × e`, `W_Δ` is `e × q`, `A` is `e × n`, `W_out` is `d × e`.
//! Each projection is one product over all rows; the convolution and the scan ([`trace_kernels::scan`]) run per branch.
//! Cost per row and layer: `2·e·(3d + 2q + 2n + K)` operations, `e·n` exponentials and about `4·e·n` other operations;
//! the backward pass costs about twice that.

use std::ops::Range;

use serde_json::{Map, Value, json};
use trace_kernels as kernels;
use trace_kernels::matmul::{Accumulate, Matrix, MatrixMut, Precision, multiply_with};
use trace_kernels::scan::{self, CHUNK, Kept, ScanGradients, Scanned, Shape, Window};

use super::architecture::{Network, Past, Trainable, embed, resize};
use super::layout::{Initializer, Layout, Role};
use super::linear;
use super::network::{MAX_LAYERS, MAX_VOCAB_SIZE, MAX_WIDTH, fields, short};
use super::rows::{Group, Order, Rows};
use crate::Error;
use crate::folder::Config;

/// Bytes that a cache should stay below.
const CACHE_BYTES: usize = 256 << 20;
/// Bytes that the states in a cache may take in any case.
const STATE_BYTES: usize = 64 << 20;

/// The configuration of a Mamba.
#[derive(Clone, Debug, PartialEq)]
pub struct MambaConfig {
    /// Number of tokens, including special ones.
    pub vocab_size: usize,
    /// Numbers in a hidden row.
    pub hidden_size: usize,
    /// Number of layers.
    pub layers: usize,
    /// Numbers of state per channel.
    pub state_size: usize,
    /// Number of taps of the convolution.
    pub conv_kernel: usize,
    /// Number of channels; usually twice the hidden size.
    pub intermediate_size: usize,
    /// Rank of the step sizes.
    pub time_step_rank: usize,
    /// Keeps a norm from dividing by zero.
    pub rms_norm_eps: f32,
    /// Whether the convolution has a bias.
    pub use_conv_bias: bool,
    /// Whether the input and output projections have a bias.
    pub use_bias: bool,
    /// Whether the head is the embedding table.
    pub tie_word_embeddings: bool,
}

impl MambaConfig {
    /// From a Transformers config; `has_head` tells whether the files contain a separate head.
    pub(crate) fn read(config: &Config<'_>, has_head: bool) -> Result<Self, Error> {
        config.only("hidden_act", &[json!("silu")])?;
        let width = config.size("hidden_size", 1, MAX_WIDTH)?;
        let expand = config.size_or("expand", 1, 64, 2)?;
        let rank = match config.values.get("time_step_rank") {
            Some(Value::String(word)) if word == "auto" => width.div_ceil(16),
            _ => config.size_or("time_step_rank", 1, MAX_WIDTH, width.div_ceil(16))?,
        };
        Ok(Self {
            vocab_size: config.size("vocab_size", 2, MAX_VOCAB_SIZE)?,
            hidden_size: width,
            layers: config.size("num_hidden_layers", 1, MAX_LAYERS)?,
            state_size: config.size_or("state_size", 1, 4096, 16)?,
            conv_kernel: config.size_or("conv_kernel", 1, 256, 4)?,
            intermediate_size: config.size_or("intermediate_size", 1, 64 * MAX_WIDTH, expand * width)?,
            time_step_rank: rank,
            rms_norm_eps: config.number_or("layer_norm_epsilon", 1e-5)? as f32,
            use_conv_bias: config.flag_or("use_conv_bias", true)?,
            use_bias: config.flag_or("use_bias", false)?,
            tie_word_embeddings: config.flag_or("tie_word_embeddings", !has_head)?,
        })
    }

    /// As a Transformers config.
    pub(crate) fn describe(&self) -> Map<String, Value> {
        fields(json!({
            "architectures": ["MambaForCausalLM"],
            "model_type": "mamba",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.layers,
            "state_size": self.state_size,
            "conv_kernel": self.conv_kernel,
            // Transformers derives one from the other; only multiples can be trained here.
            "expand": self.intermediate_size / self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "time_step_rank": self.time_step_rank,
            "layer_norm_epsilon": short(self.rms_norm_eps),
            "hidden_act": "silu",
            "use_conv_bias": self.use_conv_bias,
            "use_bias": self.use_bias,
            "tie_word_embeddings": self.tie_word_embeddings,
        }))
    }
}

#[derive(Clone, Debug)]
struct Layer {
    norm: Range<usize>,
    input: Range<usize>,
    input_bias: Option<Range<usize>>,
    taps: Range<usize>,
    taps_bias: Option<Range<usize>>,
    mixing: Range<usize>,
    step: Range<usize>,
    step_bias: Range<usize>,
    rates: Range<usize>,
    skip: Range<usize>,
    out: Range<usize>,
    out_bias: Option<Range<usize>>,
}

/// The tensors of a Mamba, and its forward and backward pass.
#[derive(Clone, Debug)]
pub(crate) struct Mamba {
    pub(crate) config: MambaConfig,
    shape: Shape,
    layout: Layout,
    embedding: Range<usize>,
    layers: Vec<Layer>,
    norm: Range<usize>,
    head: Range<usize>,
}

impl Mamba {
    pub(crate) fn new(config: MambaConfig) -> Self {
        let MambaConfig {
            vocab_size,
            hidden_size: width,
            state_size: state,
            conv_kernel: kernel,
            intermediate_size: inner,
            time_step_rank: step_rank,
            ..
        } = config;
        let shape = Shape { channels: inner, states: state, rank: step_rank };
        let mut layout = Layout::default();
        let normal = |inputs: usize| Initializer::Normal((1.0 / inputs as f32).sqrt());
        let uniform = |inputs: usize| Initializer::Uniform((1.0 / inputs as f32).sqrt());
        // Outputs into the residual stream start small, so that it does not grow with depth.
        let added = |inputs: usize| Initializer::Normal((0.5 / (inputs * config.layers) as f32).sqrt());
        let (zeros, ones) = (Initializer::Constant(0.0), Initializer::Constant(1.0));
        let embedding =
            layout.add("backbone.embeddings.weight", &[vocab_size, width], Role::Embedding, Initializer::Normal(0.5));
        let layers = (0..config.layers)
            .map(|index| {
                let mut add = |name: &str, shape: &[usize], role, start| {
                    layout.add(format!("backbone.layers.{index}.{name}"), shape, role, start)
                };
                let norm = add("norm.weight", &[width], Role::Vector, ones);
                let input = add("mixer.in_proj.weight", &[2 * inner, width], Role::Hidden, normal(width));
                let input_bias = config.use_bias.then(|| add("mixer.in_proj.bias", &[2 * inner], Role::Vector, zeros));
                let taps = add("mixer.conv1d.weight", &[inner, 1, kernel], Role::Vector, uniform(kernel));
                let taps_bias = config.use_conv_bias.then(|| add("mixer.conv1d.bias", &[inner], Role::Vector, zeros));
                let mixing = add("mixer.x_proj.weight", &[shape.mixing(), inner], Role::Hidden, normal(inner));
                let step = add("mixer.dt_proj.weight", &[inner, step_rank], Role::Hidden, uniform(step_rank));
                let step_bias = add("mixer.dt_proj.bias", &[inner], Role::Vector, Initializer::StepBias(0.001, 0.1));
                let rates = add("mixer.A_log", &[inner, state], Role::Vector, Initializer::LogCount);
                let skip = add("mixer.D", &[inner], Role::Vector, ones);
                let out = add("mixer.out_proj.weight", &[width, inner], Role::Hidden, added(inner));
                let out_bias = config.use_bias.then(|| add("mixer.out_proj.bias", &[width], Role::Vector, zeros));
                Layer { norm, input, input_bias, taps, taps_bias, mixing, step, step_bias, rates, skip, out, out_bias }
            })
            .collect();
        let norm = layout.add("backbone.norm_f.weight", &[width], Role::Vector, ones);
        let head = if config.tie_word_embeddings {
            embedding.clone()
        } else {
            layout.add("lm_head.weight", &[vocab_size, width], Role::Head, Initializer::Normal(0.02))
        };
        Self { config, shape, layout, embedding, layers, norm, head }
    }

    /// Bytes that all layers keep per token, and bytes per state of all layers.
    fn bytes(&self) -> (usize, usize) {
        let inputs =
            self.config.layers * (2 * self.config.intermediate_size + self.config.state_size) * size_of::<f32>();
        (inputs, self.config.layers * self.shape.state() * size_of::<f32>())
    }

    /// Tokens between the states that a cache of this many tokens keeps.
    fn stride(&self, tokens: usize) -> usize {
        let (inputs, state) = self.bytes();
        let budget = CACHE_BYTES.saturating_sub(tokens * inputs).max(STATE_BYTES);
        (tokens * state).div_ceil(budget).max(1)
    }
}

/// What a layer keeps for its backward pass.
#[derive(Debug, Default)]
struct LayerTape {
    input: Vec<f32>,
    norm: Vec<f32>,
    inverse: Vec<f32>,
    /// `x` and `z`.
    inputs: Vec<f32>,
    u: Vec<f32>,
    /// The low-rank step sizes, `B` and `C`.
    mixing: Vec<f32>,
    delta: Vec<f32>,
    gated: Vec<f32>,
    /// States after every [`CHUNK`] steps of each branch, branch after branch.
    states: Vec<f32>,
    prepared: Prepared,
}

/// A layer's small tensors in the order that its kernels need; the kernels derive shapes from their lengths.
#[derive(Debug, Default)]
struct Prepared {
    /// `K × e`.
    taps: Vec<f32>,
    bias: Vec<f32>,
    /// In blocks.
    rates: Vec<f32>,
}

impl Prepared {
    fn set(&mut self, weights: &[f32], layer: &Layer, shape: Shape) {
        let inner = shape.channels;
        let kernel = layer.taps.len() / inner;
        self.taps.resize(kernel * inner, 0.0);
        for (channel, weights) in weights[layer.taps.clone()].chunks_exact(kernel).enumerate() {
            for (tap, weight) in weights.iter().enumerate() {
                self.taps[tap * inner + channel] = *weight;
            }
        }
        self.bias.clear();
        match &layer.taps_bias {
            Some(range) => self.bias.extend_from_slice(&weights[range.clone()]),
            None => self.bias.resize(inner, 0.0),
        }
        self.rates.resize(shape.state(), 0.0);
        scan::rates(&mut self.rates, &weights[layer.rates.clone()], shape);
    }
}

/// Activations of a Mamba.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    x: Vec<f32>,
    layers: Vec<LayerTape>,
    inverse: Vec<f32>,
    hidden: Vec<f32>,
    /// How many numbers of `hidden` the last pass wrote.
    size: usize,
    /// The rows of one branch.
    rows: Vec<usize>,
    replay: Replay,
    scratch: Vec<f32>,
    d_x: Vec<f32>,
    d_gated: Vec<f32>,
    d_mixing: Vec<f32>,
    d_rates: Vec<f32>,
    d_taps: Vec<f32>,
    d_taps_bias: Vec<f32>,
}

/// What a layer keeps of the observed sequence.
#[derive(Debug, Default)]
struct LayerCache {
    /// `x`, `Δ` and `B` of every token.
    x: Vec<f32>,
    delta: Vec<f32>,
    b: Vec<f32>,
    /// The state before the first token, then the state after every `stride` tokens.
    states: Vec<f32>,
}

impl LayerCache {
    /// Adds the tokens of one branch, whose rows are in order.
    fn extend(&mut self, inputs: &[f32], delta: &[f32], mixing: &[f32], shape: Shape) {
        for (row, mixing) in inputs.chunks_exact(2 * shape.channels).zip(mixing.chunks_exact(shape.mixing())) {
            self.x.extend_from_slice(&row[..shape.channels]);
            self.b.extend_from_slice(&mixing[shape.rank..][..shape.states]);
        }
        self.delta.extend_from_slice(delta);
    }

    /// The rows of `x` before a position that a convolution there reads.
    fn before(&self, position: usize, width: usize, kernel: usize) -> &[f32] {
        &self.x[position.saturating_sub(kernel - 1) * width..position * width]
    }

    /// Sets the state of `replay` to that after `position` tokens, from the last state kept before it and the tokens
    /// since then.
    fn start(&self, position: usize, stride: usize, layer: &Prepared, shape: Shape, replay: &mut Replay) {
        let (slot, width) = (position / stride, shape.channels);
        let first = slot * stride;
        replay.state.clear();
        replay.state.extend_from_slice(&self.states[slot * shape.state()..][..shape.state()]);
        if first == position {
            return;
        }
        let u = resize(&mut replay.u, (position - first) * width);
        replay.rows.clear();
        replay.rows.extend(0..position - first);
        let before = self.before(first, width, layer.taps.len() / width);
        let window = Window { x: &self.x[first * width..], stride: width, before };
        scan::convolve(u, window, &replay.rows, &layer.taps, &layer.bias);
        let tokens = (&*u, &self.delta[first * width..], &self.b[first * shape.states..]);
        scan::advance(&mut replay.state, tokens, &layer.rates, shape);
    }
}

/// The state that a group starts from, and the buffers to compute it.
#[derive(Debug, Default)]
struct Replay {
    state: Vec<f32>,
    u: Vec<f32>,
    rows: Vec<usize>,
}

/// What is kept of an observed sequence: the small inputs of the scans for every token, and a state every few tokens,
/// from which the states in between are recomputed.
#[derive(Debug)]
pub(crate) struct Cache {
    stride: usize,
    layers: Vec<LayerCache>,
}

/// The rows of a branch.
fn rows_of(into: &mut Vec<usize>, rows: &Rows, group: &Group, branch: usize) {
    into.clear();
    into.extend(rows.steps()[..group.steps].iter().map(|step| step.start + group.branch + branch));
}

impl Network for Mamba {
    type Cache = Cache;
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

    fn cache(&self, tokens: usize) -> Cache {
        let stride = self.stride(tokens);
        let layers = self.layers.iter().map(|_| {
            let mut states = Vec::with_capacity((tokens / stride + 1) * self.shape.state());
            states.resize(self.shape.state(), 0.0);
            LayerCache {
                x: Vec::with_capacity(tokens * self.config.intermediate_size),
                delta: Vec::with_capacity(tokens * self.config.intermediate_size),
                b: Vec::with_capacity(tokens * self.config.state_size),
                states,
            }
        });
        Cache { stride, layers: layers.collect() }
    }

    fn cost(&self, tokens: usize) -> (usize, usize) {
        let (inputs, state) = self.bytes();
        let row = 3 * self.config.hidden_size + 1 + 5 * self.config.intermediate_size + self.shape.mixing();
        (tokens * inputs + (tokens / self.stride(tokens) + 1) * state, row * size_of::<f32>())
    }

    fn forward(&self, weights: &[f32], rows: &Rows, mut past: Past<'_, Cache>, tape: &mut Tape) {
        let MambaConfig { hidden_size: width, intermediate_size: inner, time_step_rank: step_rank, .. } = self.config;
        let (kernel, epsilon) = (self.config.conv_kernel, self.config.rms_norm_eps);
        let (n, shape) = (rows.len(), self.shape);
        let (keep, precision) = (matches!(past, Past::Training), past.precision());
        tape.size = n * width;
        let layers = if keep { self.config.layers } else { 1 };
        tape.layers.resize_with(layers.max(tape.layers.len()), LayerTape::default);
        let x = resize(&mut tape.x, n * width);
        embed(x, &weights[self.embedding.clone()], &rows.tokens, width);
        for (index, layer) in self.layers.iter().enumerate() {
            let kept = &mut tape.layers[if keep { index } else { 0 }];
            kept.prepared.set(weights, layer, shape);
            let norm = resize(&mut kept.norm, n * width);
            kernels::f32::rms_norm(norm, resize(&mut kept.inverse, n), x, &weights[layer.norm.clone()], epsilon);
            let inputs = resize(&mut kept.inputs, n * 2 * inner);
            linear::forward(
                inputs,
                Accumulate::Replace,
                precision,
                norm,
                &weights[layer.input.clone()],
                (width, 2 * inner),
            );
            if let Some(bias) = &layer.input_bias {
                kernels::f32::add_to_rows(inputs, &weights[bias.clone()]);
            }
            let u = resize(&mut kept.u, n * inner);
            for group in &rows.groups {
                let before: &[f32] = match &past {
                    Past::Training | Past::Nothing => &[],
                    Past::Shared(cache) => cache.layers[index].before(group.start, inner, kernel),
                    Past::Growing(cache) => cache.layers[index].before(group.start, inner, kernel),
                };
                let window = Window { x: inputs, stride: 2 * inner, before };
                for branch in 0..group.count {
                    rows_of(&mut tape.rows, rows, group, branch);
                    scan::convolve(u, window, &tape.rows, &kept.prepared.taps, &kept.prepared.bias);
                }
            }
            let mixing = resize(&mut kept.mixing, n * shape.mixing());
            linear::forward(
                mixing,
                Accumulate::Replace,
                precision,
                u,
                &weights[layer.mixing.clone()],
                (inner, shape.mixing()),
            );
            let delta = resize(&mut kept.delta, n * inner);
            let from = Matrix::strided(mixing, n, step_rank, shape.mixing());
            let step = Matrix::new(&weights[layer.step.clone()], inner, step_rank).transposed();
            multiply_with(precision, MatrixMut::new(delta, n, inner), Accumulate::Replace, 1.0, from, step);
            scan::step_sizes(delta, &weights[layer.step_bias.clone()]);

            let gated = resize(&mut kept.gated, n * inner);
            let scratch = resize(&mut tape.scratch, shape.scratch());
            let mut slot = 0;
            for group in &rows.groups {
                let cache = match &past {
                    Past::Training | Past::Nothing => None,
                    Past::Shared(cache) => Some((&cache.layers[index], cache.stride)),
                    Past::Growing(cache) => Some((&cache.layers[index], cache.stride)),
                };
                if let Some((cache, stride)) = cache {
                    cache.start(group.start, stride, &kept.prepared, shape, &mut tape.replay);
                }
                let start = cache.map(|_| &*tape.replay.state);
                for branch in 0..group.count {
                    rows_of(&mut tape.rows, rows, group, branch);
                    let states = match &mut past {
                        Past::Training => {
                            let (first, count) = (slot, group.steps / CHUNK);
                            slot += count;
                            let states = &mut resize(&mut kept.states, slot * shape.state())[first * shape.state()..];
                            Kept { states, every: CHUNK, before: 0 }
                        }
                        Past::Nothing | Past::Shared(_) => Kept { states: &mut [], every: usize::MAX, before: 0 },
                        Past::Growing(cache) => {
                            let (states, stride) = (&mut cache.layers[index].states, cache.stride);
                            states.resize(((group.start + group.steps) / stride + 1) * shape.state(), 0.0);
                            Kept { states: &mut states[shape.state()..], every: stride, before: group.start }
                        }
                    };
                    let skip = &weights[layer.skip.clone()];
                    let scanned = Scanned { u, delta, inputs, mixing, skip, rates: &kept.prepared.rates };
                    scan::scan(gated, scanned, &tape.rows, start, states, shape, scratch);
                }
            }
            if let Past::Growing(cache) = &mut past {
                cache.layers[index].extend(inputs, delta, mixing, shape);
            }
            if keep {
                resize(&mut kept.input, n * width).copy_from_slice(x);
            }
            linear::forward(x, Accumulate::Add, precision, gated, &weights[layer.out.clone()], (inner, width));
            if let Some(bias) = &layer.out_bias {
                kernels::f32::add_to_rows(x, &weights[bias.clone()]);
            }
        }
        let hidden = resize(&mut tape.hidden, n * width);
        kernels::f32::rms_norm(hidden, resize(&mut tape.inverse, n), x, &weights[self.norm.clone()], epsilon);
    }

    fn hidden(tape: &Tape) -> &[f32] {
        &tape.hidden[..tape.size]
    }
}

impl Trainable for Mamba {
    fn back_to_rows<'t>(
        &self,
        weights: &[f32],
        rows: &Rows,
        tape: &'t mut Tape,
        d_hidden: &mut [f32],
        gradient: &mut [f32],
    ) -> &'t [f32] {
        let MambaConfig { hidden_size: width, intermediate_size: inner, time_step_rank: step_rank, .. } = self.config;
        let kernel = self.config.conv_kernel;
        let (n, shape) = (rows.len(), self.shape);
        let d_x = resize(&mut tape.d_x, n * width);
        d_x.fill(0.0);
        let norm = self.norm.clone();
        let x = &tape.x[..n * width];
        kernels::f32::back_rms_norm(d_x, &mut gradient[norm.clone()], d_hidden, x, &tape.inverse[..n], &weights[norm]);
        for (layer, kept) in self.layers.iter().zip(&mut tape.layers).rev() {
            let d_norm = &mut d_hidden[..n * width];
            // Output projection.
            let d_gated = resize(&mut tape.d_gated, n * inner);
            linear::back_input(d_gated, Accumulate::Replace, d_x, &weights[layer.out.clone()], (inner, width));
            linear::back_weight(&mut gradient[layer.out.clone()], d_x, &kept.gated[..n * inner], (inner, width));
            if let Some(bias) = &layer.out_bias {
                kernels::f32::sum_of_rows(&mut gradient[bias.clone()], d_x);
            }
            // Scan; afterwards `d_gated` is the gradient of `u`.
            let u = &kept.u[..n * inner];
            let mixing = &kept.mixing[..n * shape.mixing()];
            let delta = &mut kept.delta[..n * inner];
            let inputs = &mut kept.inputs[..n * 2 * inner];
            let d_mixing = resize(&mut tape.d_mixing, n * shape.mixing());
            let d_rates = resize(&mut tape.d_rates, shape.state());
            d_rates.fill(0.0);
            let scratch = resize(&mut tape.scratch, shape.back_scratch());
            let skip = &weights[layer.skip.clone()];
            let scanned = Scanned { u, delta: &[], inputs: &[], mixing, skip, rates: &kept.prepared.rates };
            let mut slot = 0;
            for group in &rows.groups {
                for branch in 0..group.count {
                    rows_of(&mut tape.rows, rows, group, branch);
                    let gradients = ScanGradients {
                        out: d_gated,
                        delta,
                        inputs,
                        mixing: d_mixing,
                        skip: &mut gradient[layer.skip.clone()],
                        rates: d_rates,
                    };
                    let states = &kept.states[slot * shape.state()..];
                    scan::back_scan(gradients, scanned, &tape.rows, states, shape, scratch);
                    slot += group.steps / CHUNK;
                }
            }
            scan::back_rates(&mut gradient[layer.rates.clone()], d_rates, &kept.prepared.rates, shape);
            // Inputs of the scan.
            kernels::f32::sum_of_rows(&mut gradient[layer.step_bias.clone()], delta);
            let d_delta = Matrix::new(delta, n, inner);
            let step = Matrix::new(&weights[layer.step.clone()], inner, step_rank);
            let into = MatrixMut::strided(d_mixing, n, step_rank, shape.mixing());
            multiply_with(Precision::Training, into, Accumulate::Replace, 1.0, d_delta, step);
            let from = Matrix::strided(mixing, n, step_rank, shape.mixing());
            let d_step = MatrixMut::new(&mut gradient[layer.step.clone()], inner, step_rank);
            multiply_with(Precision::Training, d_step, Accumulate::Add, 1.0, d_delta.transposed(), from);
            linear::back_input(
                d_gated,
                Accumulate::Add,
                d_mixing,
                &weights[layer.mixing.clone()],
                (inner, shape.mixing()),
            );
            linear::back_weight(&mut gradient[layer.mixing.clone()], d_mixing, u, (inner, shape.mixing()));
            // Convolution; afterwards `inputs` is the gradient of `x` and `z`.
            let d_taps = resize(&mut tape.d_taps, kernel * inner);
            d_taps.fill(0.0);
            let d_bias = resize(&mut tape.d_taps_bias, inner);
            d_bias.fill(0.0);
            let scratch = resize(&mut tape.scratch, inner);
            for group in &rows.groups {
                for branch in 0..group.count {
                    rows_of(&mut tape.rows, rows, group, branch);
                    let weights = (&*kept.prepared.taps, &*kept.prepared.bias);
                    let gradients = (&mut *d_taps, &mut *d_bias);
                    scan::back_convolve(inputs, 2 * inner, d_gated, &tape.rows, weights, gradients, scratch);
                }
            }
            for (channel, gradient) in gradient[layer.taps.clone()].chunks_exact_mut(kernel).enumerate() {
                for (tap, gradient) in gradient.iter_mut().enumerate() {
                    *gradient += d_taps[tap * inner + channel];
                }
            }
            if let Some(bias) = &layer.taps_bias {
                kernels::f32::add(&mut gradient[bias.clone()], d_bias);
            }
            // Input projection.
            linear::back_input(d_norm, Accumulate::Replace, inputs, &weights[layer.input.clone()], (width, 2 * inner));
            let norm = &kept.norm[..n * width];
            linear::back_weight(&mut gradient[layer.input.clone()], inputs, norm, (width, 2 * inner));
            if let Some(bias) = &layer.input_bias {
                kernels::f32::sum_of_rows(&mut gradient[bias.clone()], inputs);
            }
            let gain = layer.norm.clone();
            let (input, inverse) = (&kept.input[..n * width], &kept.inverse[..n]);
            kernels::f32::back_rms_norm(d_x, &mut gradient[gain.clone()], d_norm, input, inverse, &weights[gain]);
        }
        d_x
    }
}

#[cfg(test)]
mod tests;
