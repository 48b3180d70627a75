//! LLaMA (Touvron et al., 2023): a pre-norm Transformer with RMSNorm, rotary positions, grouped-query attention and
//! SwiGLU.
//!
//! ```text
//! x ← x + Wo · attention(Wqkv · norm(x))
//! x ← x + Wd · ( silu(Wg · norm(x)) ⊙ Wu · norm(x) )
//! ```
//!
//! Shapes: `n` rows, `d` numbers per row, `H` heads and `G` key heads of `c` numbers, `f` numbers in the feed-forward
//! layer. `Wqkv` is `(H + 2G)·c × d`, `Wo` is `d × H·c`, `Wg` and `Wu` together `2f × d`, `Wd` is `d × f`. Cost of a
//! row and layer: `2·(d·(2H + 2G)·c + 3·d·f)` operations and the attention; the backward pass costs twice that.

mod initialize;

use std::ops::Range;

use serde_json::{Map, Value, json};
use trace_kernels as kernels;
use trace_kernels::matmul::Accumulate;

use super::architecture::{Network, Past, Trainable, embed, resize};
use super::attention::{self, Heads, KeyValueCache};
use super::layout::{Initializer, Layout, Role};
use super::linear;
use super::network::{MAX_LAYERS, MAX_VOCAB_SIZE, MAX_WIDTH, fields, short};
use super::rotary::{Rotary, Turns};
use super::rows::{Order, Rows};
use crate::Error;
use crate::folder::Config;

/// The configuration of a LLaMA.
#[derive(Clone, Debug, PartialEq)]
pub struct LlamaConfig {
    /// Number of tokens, including special ones.
    pub vocab_size: usize,
    /// Numbers in a hidden row.
    pub hidden_size: usize,
    /// Number of layers.
    pub layers: usize,
    /// Number of query heads.
    pub heads: usize,
    /// Number of key and value heads; divides the number of query heads.
    pub num_key_value_heads: usize,
    /// Numbers in a head; even.
    pub head_dim: usize,
    /// Numbers in the feed-forward layer.
    pub intermediate_size: usize,
    /// Base of the rotary frequencies.
    pub rope_theta: f32,
    /// Keeps a norm from dividing by zero.
    pub rms_norm_eps: f32,
    /// Whether the head is the embedding table.
    pub tie_word_embeddings: bool,
    /// The length of the longest sequence that it was trained on.
    pub trained_length: usize,
}

impl LlamaConfig {
    /// From a Transformers config; `has_head` tells whether the files contain a separate head.
    pub(crate) fn read(config: &Config<'_>, has_head: bool) -> Result<Self, Error> {
        config.only("hidden_act", &[json!("silu")])?;
        config.only("attention_bias", &[json!(false), Value::Null])?;
        config.only("mlp_bias", &[json!(false), Value::Null])?;
        let width = config.size("hidden_size", 1, MAX_WIDTH)?;
        let heads = config.size("num_attention_heads", 1, MAX_WIDTH)?;
        let num_key_value_heads = config.size_or("num_key_value_heads", 1, heads, heads)?;
        if !heads.is_multiple_of(num_key_value_heads) {
            let found = config.values.get("num_key_value_heads");
            return Err(config.fault("num_key_value_heads", &format!("a divisor of {heads} heads"), found));
        }
        let head_dim = config.size_or("head_dim", 2, MAX_WIDTH, width / heads)?;
        if head_dim == 0 || !head_dim.is_multiple_of(2) {
            return Err(config.fault("head_dim", "an even number", Some(&json!(head_dim))));
        }
        Ok(Self {
            vocab_size: config.size("vocab_size", 2, MAX_VOCAB_SIZE)?,
            hidden_size: width,
            layers: config.size("num_hidden_layers", 1, MAX_LAYERS)?,
            heads,
            num_key_value_heads,
            head_dim,
            intermediate_size: config.size("intermediate_size", 1, 16 * MAX_WIDTH)?,
            rope_theta: rope_theta(config)? as f32,
            rms_norm_eps: config.number_or("rms_norm_eps", 1e-6)? as f32,
            tie_word_embeddings: config.flag_or("tie_word_embeddings", !has_head)?,
            trained_length: config.size_or("max_position_embeddings", 1, usize::MAX, 2048)?,
        })
    }

    /// As a Transformers config.
    pub(crate) fn describe(&self) -> Map<String, Value> {
        fields(json!({
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "attention_bias": false,
            "mlp_bias": false,
            "max_position_embeddings": self.trained_length,
            "rms_norm_eps": short(self.rms_norm_eps),
            // The first is read by Transformers 4, the second by 5.
            "rope_theta": short(self.rope_theta),
            "rope_parameters": {"rope_type": "default", "rope_theta": short(self.rope_theta)},
            "tie_word_embeddings": self.tie_word_embeddings,
        }))
    }
}

/// The base of the rotary frequencies, from either key that versions of Transformers use.
fn rope_theta(config: &Config<'_>) -> Result<f64, Error> {
    for name in ["rope_scaling", "rope_parameters"] {
        let Some(Value::Object(rope)) = config.values.get(name) else { continue };
        let kind = rope.get("rope_type").or_else(|| rope.get("type"));
        if kind.is_some_and(|kind| kind != "default") {
            return Err(config.fault(name, "rope_type \"default\", the only one that this version computes", kind));
        }
        if let Some(theta) = rope.get("rope_theta") {
            return usable_theta(config, name, theta);
        }
    }
    match config.values.get("rope_theta") {
        None | Some(Value::Null) => Ok(10_000.0),
        Some(theta) => usable_theta(config, "rope_theta", theta),
    }
}

fn usable_theta(config: &Config<'_>, name: &str, theta: &Value) -> Result<f64, Error> {
    let number = theta.as_f64().filter(|theta| (*theta as f32).is_normal() && *theta > 0.0);
    number.ok_or_else(|| config.fault(name, "a positive rope_theta", Some(theta)))
}

#[derive(Clone, Debug)]
struct Layer {
    norm: Range<usize>,
    qkv: Range<usize>,
    out: Range<usize>,
    mlp_norm: Range<usize>,
    gate_up: Range<usize>,
    down: Range<usize>,
}

/// The tensors of a LLaMA, and its forward and backward pass.
#[derive(Clone, Debug)]
pub(crate) struct Llama {
    pub(crate) config: LlamaConfig,
    heads: Heads,
    rotary: Rotary,
    layout: Layout,
    embedding: Range<usize>,
    layers: Vec<Layer>,
    norm: Range<usize>,
    head: Range<usize>,
}

impl Llama {
    pub(crate) fn new(config: LlamaConfig) -> Self {
        let LlamaConfig { vocab_size, hidden_size: width, intermediate_size, head_dim, .. } = config;
        let heads = Heads { queries: config.heads, keys: config.num_key_value_heads, head_dim };
        let mut layout = Layout::default();
        let normal = |inputs: usize| Initializer::Normal((1.0 / inputs as f32).sqrt());
        // Outputs into the residual stream start small, so that it does not grow with depth.
        let added = |inputs: usize| Initializer::Normal((0.5 / (inputs * config.layers) as f32).sqrt());
        let embedding = layout.add(
            "model.embed_tokens.weight",
            &[vocab_size, width],
            Role::Embedding,
            Initializer::Normal(initialize::EMBEDDING_STD),
        );
        let layers = (0..config.layers)
            .map(|index| {
                let mut add = |name: &str, shape: &[usize], role, start| {
                    layout.add(format!("model.layers.{index}.{name}.weight"), shape, role, start)
                };
                let norm = add("input_layernorm", &[width], Role::Vector, Initializer::Constant(1.0));
                let q = add("self_attn.q_proj", &[heads.out(), width], Role::Hidden, normal(width));
                let keys = heads.keys * head_dim;
                add("self_attn.k_proj", &[keys, width], Role::Hidden, normal(width));
                let v = add("self_attn.v_proj", &[keys, width], Role::Hidden, normal(width));
                let out = add("self_attn.o_proj", &[width, heads.out()], Role::Hidden, added(heads.out()));
                let mlp_norm = add("post_attention_layernorm", &[width], Role::Vector, Initializer::Constant(1.0));
                let gate = add("mlp.gate_proj", &[intermediate_size, width], Role::Hidden, normal(width));
                let up = add("mlp.up_proj", &[intermediate_size, width], Role::Hidden, normal(width));
                let down = add("mlp.down_proj", &[width, intermediate_size], Role::Hidden, added(intermediate_size));
                Layer { norm, qkv: q.start..v.end, out, mlp_norm, gate_up: gate.start..up.end, down }
            })
            .collect();
        let norm = layout.add("model.norm.weight", &[width], Role::Vector, Initializer::Constant(1.0));
        let head = if config.tie_word_embeddings {
            embedding.clone()
        } else {
            layout.add("lm_head.weight", &[vocab_size, width], Role::Head, Initializer::Normal(0.02))
        };
        let rotary = Rotary::new(head_dim, config.rope_theta);
        Self { config, heads, rotary, layout, embedding, layers, norm, head }
    }
}

/// What a layer keeps for its backward pass.
#[derive(Debug, Default)]
struct LayerTape {
    input: Vec<f32>,
    norm: Vec<f32>,
    inverse: Vec<f32>,
    qkv: Vec<f32>,
    scores: Vec<Vec<f32>>,
    attended: Vec<f32>,
    middle: Vec<f32>,
    mlp_norm: Vec<f32>,
    mlp_inverse: Vec<f32>,
    gate_up: Vec<f32>,
    gated: Vec<f32>,
}

/// Activations of a LLaMA.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    x: Vec<f32>,
    layers: Vec<LayerTape>,
    inverse: Vec<f32>,
    hidden: Vec<f32>,
    /// How many numbers of `hidden` the last pass wrote.
    size: usize,
    scratch: Vec<f32>,
    d_wide: Vec<f32>,
    d_narrow: Vec<f32>,
    d_scores: Vec<f32>,
    turns: Turns,
}

impl Network for Llama {
    type Cache = Vec<KeyValueCache>;
    type Tape = Tape;
    const ORDER: Order = Order::Branches;

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn initialize(&self, weights: &mut [f32]) {
        self.initialize_copy_heads(weights);
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

    fn cache(&self, tokens: usize) -> Vec<KeyValueCache> {
        self.layers.iter().map(|_| KeyValueCache::with_capacity(&self.heads, tokens)).collect()
    }

    fn cost(&self, tokens: usize) -> (usize, usize) {
        let cache = self.config.layers * tokens * 2 * self.heads.keys * self.heads.head_dim;
        let row = 4 * self.config.hidden_size
            + self.heads.row()
            + self.heads.out()
            + 3 * self.config.intermediate_size
            + self.heads.scores(tokens);
        (cache * size_of::<f32>(), row * size_of::<f32>())
    }

    fn forward(&self, weights: &[f32], rows: &Rows, mut past: Past<'_, Vec<KeyValueCache>>, tape: &mut Tape) {
        let (n, width, inner) = (rows.len(), self.config.hidden_size, self.config.intermediate_size);
        let (heads, epsilon) = (&self.heads, self.config.rms_norm_eps);
        let (keep, precision) = (matches!(past, Past::Training), past.precision());
        tape.size = n * width;
        let positions = rows.groups.iter().map(|group| group.start + group.steps).max().unwrap_or(0);
        self.rotary.prepare(&mut tape.turns, positions);
        let needed = if keep { self.config.layers } else { 1 };
        if tape.layers.len() < needed {
            tape.layers.resize_with(needed, LayerTape::default);
        }
        let x = resize(&mut tape.x, n * width);
        embed(x, &weights[self.embedding.clone()], &rows.tokens, width);
        for (index, layer) in self.layers.iter().enumerate() {
            let kept = &mut tape.layers[if keep { index } else { 0 }];
            let norm = resize(&mut kept.norm, n * width);
            kernels::f32::rms_norm(norm, resize(&mut kept.inverse, n), x, &weights[layer.norm.clone()], epsilon);
            let qkv = resize(&mut kept.qkv, n * heads.row());
            linear::forward(
                qkv,
                Accumulate::Replace,
                precision,
                norm,
                &weights[layer.qkv.clone()],
                (width, heads.row()),
            );
            let attended = resize(&mut kept.attended, n * heads.out());
            let needed = if keep { rows.groups.len() } else { 1 };
            if kept.scores.len() < needed {
                kept.scores.resize_with(needed, Vec::new);
            }
            for (number, group) in rows.groups.iter().enumerate() {
                let own = group.row..group.row + group.count * group.steps;
                let qkv = &mut qkv[own.start * heads.row()..own.end * heads.row()];
                let attended = &mut attended[own.start * heads.out()..own.end * heads.out()];
                self.rotary.rotate(&tape.turns, heads, group, qkv, 1.0);
                let cache = match &past {
                    Past::Training | Past::Nothing => None,
                    Past::Shared(cache) => Some(&cache[index]),
                    Past::Growing(cache) => Some(&cache[index]),
                };
                let scores = &mut kept.scores[if keep { number } else { 0 }];
                attention::forward(heads, group, cache, qkv, attended, scores, keep);
                if let Past::Growing(cache) = &mut past {
                    cache[index].extend(heads, qkv);
                }
            }
            if keep {
                resize(&mut kept.input, n * width).copy_from_slice(x);
            }
            linear::forward(x, Accumulate::Add, precision, attended, &weights[layer.out.clone()], (heads.out(), width));
            if keep {
                resize(&mut kept.middle, n * width).copy_from_slice(x);
            }
            let norm = resize(&mut kept.mlp_norm, n * width);
            kernels::f32::rms_norm(
                norm,
                resize(&mut kept.mlp_inverse, n),
                x,
                &weights[layer.mlp_norm.clone()],
                epsilon,
            );
            let gate_up = resize(&mut kept.gate_up, n * 2 * inner);
            linear::forward(
                gate_up,
                Accumulate::Replace,
                precision,
                norm,
                &weights[layer.gate_up.clone()],
                (width, 2 * inner),
            );
            let gated = resize(&mut kept.gated, n * inner);
            kernels::f32::swiglu(gated, gate_up, inner);
            linear::forward(x, Accumulate::Add, precision, gated, &weights[layer.down.clone()], (inner, width));
        }
        let hidden = resize(&mut tape.hidden, n * width);
        kernels::f32::rms_norm(hidden, resize(&mut tape.inverse, n), x, &weights[self.norm.clone()], epsilon);
    }

    fn hidden(tape: &Tape) -> &[f32] {
        &tape.hidden[..tape.size]
    }
}

impl Trainable for Llama {
    fn back_to_rows<'t>(
        &self,
        weights: &[f32],
        rows: &Rows,
        tape: &'t mut Tape,
        d_hidden: &mut [f32],
        gradient: &mut [f32],
    ) -> &'t [f32] {
        let (n, width, inner) = (rows.len(), self.config.hidden_size, self.config.intermediate_size);
        let heads = &self.heads;
        let d_x = resize(&mut tape.scratch, n * width);
        d_x.fill(0.0);
        let norm = self.norm.clone();
        let x = &tape.x[..n * width];
        kernels::f32::back_rms_norm(d_x, &mut gradient[norm.clone()], d_hidden, x, &tape.inverse[..n], &weights[norm]);
        for (layer, kept) in self.layers.iter().zip(&mut tape.layers).rev() {
            let d_norm = &mut d_hidden[..n * width];
            // Feed-forward layer.
            let d_gated = resize(&mut tape.d_wide, n * inner);
            linear::back_input(d_gated, Accumulate::Replace, d_x, &weights[layer.down.clone()], (inner, width));
            linear::back_weight(&mut gradient[layer.down.clone()], d_x, &kept.gated[..n * inner], (inner, width));
            let gate_up = &mut kept.gate_up[..n * 2 * inner];
            kernels::f32::back_swiglu(gate_up, d_gated, inner);
            linear::back_input(
                d_norm,
                Accumulate::Replace,
                gate_up,
                &weights[layer.gate_up.clone()],
                (width, 2 * inner),
            );
            let norm = &kept.mlp_norm[..n * width];
            linear::back_weight(&mut gradient[layer.gate_up.clone()], gate_up, norm, (width, 2 * inner));
            let gain = layer.mlp_norm.clone();
            let (middle, inverse) = (&kept.middle[..n * width], &kept.mlp_inverse[..n]);
            kernels::f32::back_rms_norm(d_x, &mut gradient[gain.clone()], d_norm, middle, inverse, &weights[gain]);
            // Attention.
            let d_attended = resize(&mut tape.d_wide, n * heads.out());
            linear::back_input(d_attended, Accumulate::Replace, d_x, &weights[layer.out.clone()], (heads.out(), width));
            let attended = &kept.attended[..n * heads.out()];
            linear::back_weight(&mut gradient[layer.out.clone()], d_x, attended, (heads.out(), width));
            let d_qkv = resize(&mut tape.d_narrow, n * heads.row());
            for (group, scores) in rows.groups.iter().zip(&kept.scores) {
                let own = group.row..group.row + group.steps;
                let d_qkv = &mut d_qkv[own.start * heads.row()..own.end * heads.row()];
                let qkv = &kept.qkv[own.start * heads.row()..own.end * heads.row()];
                let d_attended = &d_attended[own.start * heads.out()..own.end * heads.out()];
                let scores = &scores[..heads.kept_scores(group)];
                attention::backward(heads, group.steps, qkv, scores, d_attended, d_qkv, &mut tape.d_scores);
                self.rotary.rotate(&tape.turns, heads, group, d_qkv, -1.0);
            }
            linear::back_input(d_norm, Accumulate::Replace, d_qkv, &weights[layer.qkv.clone()], (width, heads.row()));
            let norm = &kept.norm[..n * width];
            linear::back_weight(&mut gradient[layer.qkv.clone()], d_qkv, norm, (width, heads.row()));
            let gain = layer.norm.clone();
            let (input, inverse) = (&kept.input[..n * width], &kept.inverse[..n]);
            kernels::f32::back_rms_norm(d_x, &mut gradient[gain.clone()], d_norm, input, inverse, &weights[gain]);
        }
        d_x
    }
}

#[cfg(test)]
mod tests;
