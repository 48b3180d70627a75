//! BERT (Devlin et al., 2019): a bidirectional Transformer encoder with post-norm, learned positions, GELU and a head
//! that predicts masked events. It is not a density model: it predicts the event at a position from both sides of it.
//! Tensors are named as in Hugging Face's `BertForMaskedLM`.
//!
//! ```text
//! x ← norm(embedding(token) + position + type)
//! x ← norm(x + Wo · attention(Wqkv · x + bqkv) + bo)
//! x ← norm(x + Wd · gelu(Wu · x + bu) + bd)
//! logits = embedding · norm(gelu(Wt · x + bt)) + b
//! ```
//!
//! Shapes: `n` rows, `d` numbers per row, `H` heads of `d / H` numbers, `f` numbers in the feed-forward layer. `Wqkv`
//! is `3d × d`, `Wo` and `Wt` are `d × d`, `Wu` is `f × d`, `Wd` is `d × f`. Cost per row and layer: `2·(4·d² + 2·d·f)`
//! operations and the attention, `4·L·d` for a sequence of `L`; the backward pass costs twice that.

use std::ops::Range;

use serde_json::{Map, Value, json};
use trace_kernels as kernels;
use trace_kernels::gelu::{back_gelu, gelu};
use trace_kernels::matmul::Accumulate;

use super::affine::Affine;
use super::architecture::{back_embed, embed, resize};
use super::attention::{self, Heads};
use super::head::Head;
use super::layout::{Initializer, Layout, Role};
use super::network::{MAX_LAYERS, MAX_VOCAB_SIZE, MAX_WIDTH, fields, short};
use super::rows::{Order, Rows};
use crate::Error;
use crate::folder::Config;

/// The configuration of a BERT.
#[derive(Clone, Debug, PartialEq)]
pub struct BertConfig {
    /// Number of tokens, including special ones; the last token of a network trained here is the mask.
    pub vocab_size: usize,
    /// Numbers in a hidden row.
    pub hidden_size: usize,
    /// Number of layers.
    pub layers: usize,
    /// Number of heads; divides the hidden size.
    pub heads: usize,
    /// Numbers in the feed-forward layer.
    pub intermediate_size: usize,
    /// The maximum number of tokens of a sequence.
    pub positions: usize,
    /// Number of token types that have weights; every token is of the first type.
    pub token_types: usize,
    /// Keeps a norm from dividing by zero.
    pub layer_norm_eps: f32,
}

impl BertConfig {
    /// From a Transformers config.
    pub(crate) fn read(config: &Config<'_>) -> Result<Self, Error> {
        config.only("hidden_act", &[json!("gelu")])?;
        config.only("position_embedding_type", &[json!("absolute"), Value::Null])?;
        config.only("is_decoder", &[json!(false)])?;
        config.only("add_cross_attention", &[json!(false)])?;
        config.only("tie_word_embeddings", &[json!(true), Value::Null])?;
        let width = config.size("hidden_size", 1, MAX_WIDTH)?;
        let heads = config.size("num_attention_heads", 1, MAX_WIDTH)?;
        if !width.is_multiple_of(heads) {
            let found = config.values.get("num_attention_heads");
            return Err(config.fault("num_attention_heads", &format!("a divisor of hidden_size {width}"), found));
        }
        Ok(Self {
            vocab_size: config.size("vocab_size", 2, MAX_VOCAB_SIZE)?,
            hidden_size: width,
            layers: config.size("num_hidden_layers", 1, MAX_LAYERS)?,
            heads,
            intermediate_size: config.size("intermediate_size", 1, 16 * MAX_WIDTH)?,
            positions: config.size_or("max_position_embeddings", 1, MAX_VOCAB_SIZE, 512)?,
            token_types: config.size_or("type_vocab_size", 1, MAX_WIDTH, 2)?,
            layer_norm_eps: config.number_or("layer_norm_eps", 1e-12)? as f32,
        })
    }

    /// As a Transformers config.
    pub(crate) fn describe(&self) -> Map<String, Value> {
        fields(json!({
            "architectures": ["BertForMaskedLM"],
            "model_type": "bert",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.intermediate_size,
            "max_position_embeddings": self.positions,
            "type_vocab_size": self.token_types,
            "layer_norm_eps": short(self.layer_norm_eps),
            "hidden_act": "gelu",
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "position_embedding_type": "absolute",
            "tie_word_embeddings": true,
        }))
    }
}

/// Tensors of a file that no computation here needs: a copy of the head, and those of other tasks.
pub(crate) fn is_idle(name: &str) -> bool {
    name == "bert.embeddings.position_ids"
        || ["cls.predictions.decoder.", "cls.seq_relationship.", "bert.pooler."]
            .iter()
            .any(|part| name.starts_with(part))
}

#[derive(Clone, Debug)]
struct Layer {
    qkv: Affine,
    out: Affine,
    norm: Affine,
    up: Affine,
    down: Affine,
    mlp_norm: Affine,
}

/// The tensors of a BERT, and its forward and backward pass.
#[derive(Clone, Debug)]
pub(crate) struct Bert {
    pub(crate) config: BertConfig,
    heads: Heads,
    layout: Layout,
    embedding: Range<usize>,
    positions: Range<usize>,
    token_type: Range<usize>,
    norm: Affine,
    layers: Vec<Layer>,
    transform: Affine,
    transform_norm: Affine,
    head: Head,
}

/// Standard deviation of initial embeddings, and amplitude of the waves that positions start as.
const EMBEDDED: f32 = 0.04;
const WAVE: f64 = 0.06;
/// Variance of the outputs of an initial linear map for normal inputs. With the published standard deviation of 0.02,
/// narrow networks need several times as many steps to learn where to attend.
const PASSED: f32 = 0.4;

/// Adds linear maps of the same input side by side, so that one product computes them all.
fn add_linear(layout: &mut Layout, names: &[String], inputs: usize, outputs: usize) -> Affine {
    let start = layout.len();
    for name in names {
        let start = Initializer::Normal((PASSED / inputs as f32).sqrt());
        layout.add(format!("{name}.weight"), &[outputs, inputs], Role::Hidden, start);
    }
    let middle = layout.len();
    for name in names {
        layout.add(format!("{name}.bias"), &[outputs], Role::Vector, Initializer::Constant(0.0));
    }
    Affine { weight: start..middle, bias: middle..layout.len() }
}

impl Bert {
    pub(crate) fn new(config: BertConfig) -> Self {
        let BertConfig { vocab_size, hidden_size: width, intermediate_size, positions, token_types, .. } = config;
        let heads = Heads { queries: config.heads, keys: config.heads, head_dim: width / config.heads };
        let mut layout = Layout::default();
        let mut table = |name: &str, rows: usize| {
            let name = format!("bert.embeddings.{name}_embeddings.weight");
            layout.add(name, &[rows, width], Role::Embedding, Initializer::Normal(EMBEDDED))
        };
        let embedding = table("word", vocab_size);
        let positions = table("position", positions);
        let types = table("token_type", token_types);
        let norm = Affine::add_norm(&mut layout, "bert.embeddings.LayerNorm", width);
        let layers = (0..config.layers)
            .map(|index| {
                let name = |part: &str| format!("bert.encoder.layer.{index}.{part}");
                let qkv = ["query", "key", "value"].map(|part| name(&format!("attention.self.{part}")));
                Layer {
                    qkv: add_linear(&mut layout, &qkv, width, width),
                    out: add_linear(&mut layout, &[name("attention.output.dense")], width, width),
                    norm: Affine::add_norm(&mut layout, &name("attention.output.LayerNorm"), width),
                    up: add_linear(&mut layout, &[name("intermediate.dense")], width, intermediate_size),
                    down: add_linear(&mut layout, &[name("output.dense")], intermediate_size, width),
                    mlp_norm: Affine::add_norm(&mut layout, &name("output.LayerNorm"), width),
                }
            })
            .collect();
        let transform = add_linear(&mut layout, &["cls.predictions.transform.dense".to_owned()], width, width);
        let transform_norm = Affine::add_norm(&mut layout, "cls.predictions.transform.LayerNorm", width);
        let bias = layout.add("cls.predictions.bias", &[vocab_size], Role::Vector, Initializer::Constant(0.0));
        let head = Head { table: embedding.clone(), bias: Some(bias) };
        let token_type = types.start..types.start + width;
        Self { config, heads, layout, embedding, positions, token_type, norm, layers, transform, transform_norm, head }
    }

    pub(crate) const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Positions start as waves (Vaswani et al., 2017) and are then trained: a head can learn to attend to a fixed
    /// offset for all positions at once, instead of learning it for each position.
    pub(crate) fn initialize(&self, weights: &mut [f32]) {
        let width = self.config.hidden_size;
        for (position, row) in weights[self.positions.clone()].chunks_exact_mut(width).enumerate() {
            for (i, value) in row.iter_mut().enumerate() {
                let angle = position as f64 * 10_000f64.powf(-((i / 2 * 2) as f64 / width as f64));
                *value = (WAVE * if i % 2 == 0 { angle.sin() } else { angle.cos() }) as f32;
            }
        }
    }

    /// The decoder: the embedding table and a bias.
    pub(crate) const fn head(&self) -> &Head {
        &self.head
    }

    /// Numbers in a hidden row.
    pub(crate) const fn hidden_size(&self) -> usize {
        self.config.hidden_size
    }

    /// The rows of whole sequences; each sequence attends to itself.
    pub(crate) fn rows(sequences: &[&[u32]]) -> Rows {
        let groups: Vec<_> = sequences.iter().map(|sequence| (0, sequence.len(), 1)).collect();
        Rows::new(&groups, Order::Branches, |group, _, step| sequences[group][step])
    }
}

/// What a layer keeps for its backward pass. Sums are replaced by their normalized rows.
#[derive(Debug, Default)]
struct LayerTape {
    input: Vec<f32>,
    qkv: Vec<f32>,
    scores: Vec<Vec<f32>>,
    attended: Vec<f32>,
    sum: Vec<f32>,
    inverse: Vec<f32>,
    middle: Vec<f32>,
    up: Vec<f32>,
    active: Vec<f32>,
    mlp_sum: Vec<f32>,
    mlp_inverse: Vec<f32>,
}

/// Activations of a BERT.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    sum: Vec<f32>,
    inverse: Vec<f32>,
    x: Vec<f32>,
    layers: Vec<LayerTape>,
    /// The rows that the head predicts from.
    selected: Vec<usize>,
    head_input: Vec<f32>,
    transformed: Vec<f32>,
    normal: Vec<f32>,
    head_inverse: Vec<f32>,
    hidden: Vec<f32>,
    d_x: Vec<f32>,
    d_wide: Vec<f32>,
    d_qkv: Vec<f32>,
    d_scores: Vec<f32>,
}

impl Tape {
    /// The rows that the head multiplies, of the last call of [`Bert::transform_rows`].
    pub(crate) fn hidden(&self, width: usize) -> &[f32] {
        &self.hidden[..self.selected.len() * width]
    }
}

impl Bert {
    /// Runs rows through the encoder; `keep` tells whether a backward pass follows.
    pub(crate) fn forward(&self, weights: &[f32], rows: &Rows, tape: &mut Tape, keep: bool) {
        self.enter(weights, rows, tape);
        self.pass(&self.layers, weights, rows, tape, keep);
    }

    /// The embedded rows.
    fn enter(&self, weights: &[f32], rows: &Rows, tape: &mut Tape) {
        let (n, width) = (rows.len(), self.config.hidden_size);
        let sum = resize(&mut tape.sum, n * width);
        embed(sum, &weights[self.embedding.clone()], &rows.tokens, width);
        let places = &weights[self.positions.clone()];
        rows.for_each(|_, _, step, row| {
            kernels::f32::add(&mut sum[row * width..][..width], &places[step * width..][..width]);
        });
        kernels::f32::add_to_rows(sum, &weights[self.token_type.clone()]);
        let (x, inverse) = (resize(&mut tape.x, n * width), resize(&mut tape.inverse, n));
        self.norm.norm_kept(x, sum, inverse, weights, self.config.layer_norm_eps);
    }

    fn pass(&self, layers: &[Layer], weights: &[f32], rows: &Rows, tape: &mut Tape, keep: bool) {
        let needed = if keep { layers.len() } else { 1 };
        if tape.layers.len() < needed {
            tape.layers.resize_with(needed, LayerTape::default);
        }
        let x = &mut tape.x[..rows.len() * self.config.hidden_size];
        for (index, layer) in layers.iter().enumerate() {
            let kept = &mut tape.layers[if keep { index } else { 0 }];
            self.layer(layer, weights, rows, x, kept, keep);
        }
    }

    fn layer(&self, layer: &Layer, weights: &[f32], rows: &Rows, x: &mut [f32], kept: &mut LayerTape, keep: bool) {
        let (n, width, inner) = (rows.len(), self.config.hidden_size, self.config.intermediate_size);
        let (heads, epsilon) = (&self.heads, self.config.layer_norm_eps);
        if keep {
            resize(&mut kept.input, n * width).copy_from_slice(x);
        }
        let qkv = resize(&mut kept.qkv, n * heads.row());
        layer.qkv.forward(qkv, Accumulate::Replace, x, weights);
        let attended = resize(&mut kept.attended, n * heads.out());
        let needed = if keep { rows.groups.len() } else { 1 };
        if kept.scores.len() < needed {
            kept.scores.resize_with(needed, Vec::new);
        }
        for (number, group) in rows.groups.iter().enumerate() {
            let own = group.row..group.row + group.steps;
            let qkv = &qkv[own.start * heads.row()..own.end * heads.row()];
            let attended = &mut attended[own.start * heads.out()..own.end * heads.out()];
            let scores = &mut kept.scores[if keep { number } else { 0 }];
            attention::forward_full(heads, group.steps, qkv, attended, scores, keep);
        }
        let sum = resize(&mut kept.sum, n * width);
        sum.copy_from_slice(x);
        layer.out.forward(sum, Accumulate::Add, attended, weights);
        let middle = resize(&mut kept.middle, n * width);
        layer.norm.norm_kept(middle, sum, resize(&mut kept.inverse, n), weights, epsilon);
        let up = resize(&mut kept.up, n * inner);
        layer.up.forward(up, Accumulate::Replace, middle, weights);
        let active = resize(&mut kept.active, n * inner);
        gelu(active, up);
        let sum = resize(&mut kept.mlp_sum, n * width);
        sum.copy_from_slice(middle);
        layer.down.forward(sum, Accumulate::Add, active, weights);
        layer.mlp_norm.norm_kept(x, sum, resize(&mut kept.mlp_inverse, n), weights, epsilon);
    }

    /// After a forward pass: transforms the rows with these indices into those that the head multiplies.
    pub(crate) fn transform_rows(&self, weights: &[f32], selected: Vec<usize>, tape: &mut Tape) {
        let (n, width) = (selected.len(), self.config.hidden_size);
        let head_input = resize(&mut tape.head_input, n * width);
        for (row, from) in head_input.chunks_exact_mut(width).zip(&selected) {
            row.copy_from_slice(&tape.x[from * width..][..width]);
        }
        let transformed = resize(&mut tape.transformed, n * width);
        self.transform.forward(transformed, Accumulate::Replace, head_input, weights);
        let normal = resize(&mut tape.normal, n * width);
        gelu(normal, transformed);
        let (hidden, inverse) = (resize(&mut tape.hidden, n * width), resize(&mut tape.head_inverse, n));
        self.transform_norm.norm_kept(hidden, normal, inverse, weights, self.config.layer_norm_eps);
        tape.selected = selected;
    }

    /// After a forward pass with `keep` and [`Self::transform_rows`]: adds the gradient of all weights except the
    /// head's, from that of the transformed rows. `d_hidden` is overwritten.
    pub(crate) fn backward(
        &self,
        weights: &[f32],
        rows: &Rows,
        tape: &mut Tape,
        d_hidden: &mut [f32],
        gradient: &mut [f32],
    ) {
        let (n, width) = (rows.len(), self.config.hidden_size);
        let head_input = tape.selected.len();
        let (normal, inverse) = (&tape.normal[..head_input * width], &tape.head_inverse[..head_input]);
        self.transform_norm.back_norm(d_hidden, normal, inverse, weights, gradient);
        back_gelu(d_hidden, &tape.transformed[..head_input * width]);
        let d_head_input = resize(&mut tape.d_wide, head_input * width);
        let input = &tape.head_input[..head_input * width];
        self.transform.backward((d_head_input, Accumulate::Replace), d_hidden, input, weights, gradient);
        let d_x = resize(&mut tape.d_x, n * width);
        d_x.fill(0.0);
        for (d_row, row) in d_head_input.chunks_exact(width).zip(&tape.selected) {
            kernels::f32::add(&mut d_x[row * width..][..width], d_row);
        }
        for index in (0..self.layers.len()).rev() {
            self.back_layer(index, weights, rows, tape, gradient);
        }
        let d_x = &mut tape.d_x[..n * width];
        self.norm.back_norm(d_x, &tape.sum[..n * width], &tape.inverse[..n], weights, gradient);
        back_embed(&mut gradient[self.embedding.clone()], d_x, &rows.tokens, width);
        let d_places = &mut gradient[self.positions.clone()];
        rows.for_each(|_, _, step, row| {
            kernels::f32::add(&mut d_places[step * width..][..width], &d_x[row * width..][..width]);
        });
        kernels::f32::sum_of_rows(&mut gradient[self.token_type.clone()], d_x);
    }

    /// Replaces the gradient of a layer's output in `tape.d_x` by that of its input.
    fn back_layer(&self, index: usize, weights: &[f32], rows: &Rows, tape: &mut Tape, gradient: &mut [f32]) {
        let (n, width, inner) = (rows.len(), self.config.hidden_size, self.config.intermediate_size);
        let (layer, kept, heads) = (&self.layers[index], &tape.layers[index], &self.heads);
        let d_x = &mut tape.d_x[..n * width];
        // Feed-forward layer; the sum's gradient reaches its input directly, and through the layer.
        layer.mlp_norm.back_norm(d_x, &kept.mlp_sum[..n * width], &kept.mlp_inverse[..n], weights, gradient);
        let d_up = resize(&mut tape.d_wide, n * inner);
        layer.down.backward((d_up, Accumulate::Replace), d_x, &kept.active[..n * inner], weights, gradient);
        back_gelu(d_up, &kept.up[..n * inner]);
        layer.up.backward((d_x, Accumulate::Add), d_up, &kept.middle[..n * width], weights, gradient);
        // Attention.
        layer.norm.back_norm(d_x, &kept.sum[..n * width], &kept.inverse[..n], weights, gradient);
        let d_attended = resize(&mut tape.d_wide, n * heads.out());
        let attended = &kept.attended[..n * heads.out()];
        layer.out.backward((d_attended, Accumulate::Replace), d_x, attended, weights, gradient);
        let d_qkv = resize(&mut tape.d_qkv, n * heads.row());
        for (group, scores) in rows.groups.iter().zip(&kept.scores) {
            let own = group.row..group.row + group.steps;
            let qkv = &kept.qkv[own.start * heads.row()..own.end * heads.row()];
            let d_attended = &d_attended[own.start * heads.out()..own.end * heads.out()];
            let d_qkv = &mut d_qkv[own.start * heads.row()..own.end * heads.row()];
            let scores = &scores[..heads.kept_scores(group)];
            attention::backward(heads, group.steps, qkv, scores, d_attended, d_qkv, &mut tape.d_scores);
        }
        layer.qkv.backward((d_x, Accumulate::Add), d_qkv, &kept.input[..n * width], weights, gradient);
    }

    /// The attention weights of the last layer for one sequence, averaged over heads: one row per position that
    /// attends.
    pub(crate) fn attention(&self, weights: &[f32], tokens: &[u32]) -> Vec<f32> {
        let Some((deepest, before)) = self.layers.split_last() else { return Vec::new() };
        let (rows, mut tape) = (Self::rows(&[tokens]), Tape::default());
        self.enter(weights, &rows, &mut tape);
        self.pass(before, weights, &rows, &mut tape, false);
        let mut qkv = vec![0.0; rows.len() * self.heads.row()];
        deepest.qkv.forward(&mut qkv, Accumulate::Replace, &tape.x, weights);
        attention::mean_weights(&self.heads, rows.len(), &qkv)
    }
}
