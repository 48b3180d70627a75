//! GPT-2 (Radford et al., 2019): a pre-norm Transformer with layer norm, learned positions and GELU. It can be read and
//! queried, but not trained. Tensors are named as in Hugging Face's `GPT2LMHeadModel`.
//!
//! ```text
//! x ← embedding(token) + position
//! x ← x + attention(norm(x) · Wa + ba) · Wo + bo
//! x ← x + gelu(norm(x) · Wf + bf) · Wp + bp
//! ```
//!
//! Shapes: `d` numbers per row, `H` heads of `d / H` numbers, `f` numbers in the feed-forward layer. Matrices are
//! stored as `in × out`: `Wa` is `d × 3d`, `Wo` is `d × d`, `Wf` is `d × f`, `Wp` is `f × d`. Cost per row and layer:
//! `2·(4·d² + 2·d·f)` operations and the attention.

use std::ops::Range;

use serde_json::{Map, Value, json};
use trace_kernels::gelu::tanh_gelu;
use trace_kernels::matmul::Accumulate;

use super::affine::Affine;
use super::architecture::{Network, Past, embed, resize};
use super::attention::{self, Heads, KeyValueCache};
use super::layout::{Initializer, Layout, Role};
use super::network::{MAX_LAYERS, MAX_VOCAB_SIZE, MAX_WIDTH, fields, short};
use super::rows::{Order, Rows};
use crate::Error;
use crate::folder::Config;

/// The configuration of a GPT-2.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpt2Config {
    /// Number of tokens, including special ones.
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
    /// Keeps a norm from dividing by zero.
    pub layer_norm_eps: f32,
    /// Whether the head is the embedding table.
    pub tie_word_embeddings: bool,
}

impl Gpt2Config {
    /// From a Transformers config; `has_head` tells whether the files contain a separate head.
    pub(crate) fn read(config: &Config<'_>, has_head: bool) -> Result<Self, Error> {
        config.only("activation_function", &[json!("gelu_new"), json!("gelu_pytorch_tanh")])?;
        config.only("scale_attn_weights", &[json!(true)])?;
        config.only("scale_attn_by_inverse_layer_idx", &[json!(false)])?;
        config.only("add_cross_attention", &[json!(false)])?;
        let width = config.size("n_embd", 1, MAX_WIDTH)?;
        let heads = config.size("n_head", 1, MAX_WIDTH)?;
        if !width.is_multiple_of(heads) {
            return Err(config.fault("n_head", &format!("a divisor of n_embd {width}"), config.values.get("n_head")));
        }
        Ok(Self {
            vocab_size: config.size("vocab_size", 2, MAX_VOCAB_SIZE)?,
            hidden_size: width,
            layers: config.size("n_layer", 1, MAX_LAYERS)?,
            heads,
            intermediate_size: config.size_or("n_inner", 1, 16 * MAX_WIDTH, 4 * width)?,
            positions: config.size_or("n_positions", 1, MAX_VOCAB_SIZE, 1024)?,
            layer_norm_eps: config.number_or("layer_norm_epsilon", 1e-5)? as f32,
            tie_word_embeddings: config.flag_or("tie_word_embeddings", !has_head)?,
        })
    }

    /// As a Transformers config.
    pub(crate) fn describe(&self) -> Map<String, Value> {
        fields(json!({
            "architectures": ["GPT2LMHeadModel"],
            "model_type": "gpt2",
            "vocab_size": self.vocab_size,
            "n_embd": self.hidden_size,
            "n_layer": self.layers,
            "n_head": self.heads,
            "n_inner": self.intermediate_size,
            "n_positions": self.positions,
            "layer_norm_epsilon": short(self.layer_norm_eps),
            "activation_function": "gelu_new",
            "tie_word_embeddings": self.tie_word_embeddings,
        }))
    }
}

#[derive(Clone, Debug)]
struct Layer {
    norm: Affine,
    qkv: Affine,
    out: Affine,
    mlp_norm: Affine,
    up: Affine,
    down: Affine,
}

/// The tensors of a GPT-2, and its forward pass.
#[derive(Clone, Debug)]
pub(crate) struct Gpt2 {
    pub(crate) config: Gpt2Config,
    heads: Heads,
    layout: Layout,
    embedding: Range<usize>,
    positions: Range<usize>,
    layers: Vec<Layer>,
    norm: Affine,
    head: Range<usize>,
}

impl Gpt2 {
    pub(crate) fn new(config: Gpt2Config) -> Self {
        let Gpt2Config { vocab_size, hidden_size: width, intermediate_size, positions, .. } = config;
        let heads = Heads { queries: config.heads, keys: config.heads, head_dim: width / config.heads };
        let mut layout = Layout::default();
        let start = Initializer::Normal(0.02);
        let embedding = layout.add("transformer.wte.weight", &[vocab_size, width], Role::Embedding, start);
        let places = layout.add("transformer.wpe.weight", &[positions, width], Role::Embedding, start);
        let mut add = |name: String, shape: &[usize], start| {
            let role = if shape.len() == 1 { Role::Vector } else { Role::Hidden };
            let weight = layout.add(format!("transformer.{name}.weight"), shape, role, start);
            let outputs = &shape[shape.len() - 1..];
            let bias =
                layout.add(format!("transformer.{name}.bias"), outputs, Role::Vector, Initializer::Constant(0.0));
            Affine { weight, bias }
        };
        let ones = Initializer::Constant(1.0);
        let layers = (0..config.layers)
            .map(|index| {
                let mut add = |name: &str, shape: &[usize], start| add(format!("h.{index}.{name}"), shape, start);
                Layer {
                    norm: add("ln_1", &[width], ones),
                    qkv: add("attn.c_attn", &[width, 3 * width], start),
                    out: add("attn.c_proj", &[width, width], start),
                    mlp_norm: add("ln_2", &[width], ones),
                    up: add("mlp.c_fc", &[width, intermediate_size], start),
                    down: add("mlp.c_proj", &[intermediate_size, width], start),
                }
            })
            .collect();
        let norm = add("ln_f".to_owned(), &[width], ones);
        let head = if config.tie_word_embeddings {
            embedding.clone()
        } else {
            layout.add("lm_head.weight", &[vocab_size, width], Role::Head, start)
        };
        Self { config, heads, layout, embedding, positions: places, layers, norm, head }
    }
}

/// Activations of one layer of a GPT-2 at a time.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    x: Vec<f32>,
    norm: Vec<f32>,
    qkv: Vec<f32>,
    scores: Vec<f32>,
    attended: Vec<f32>,
    up: Vec<f32>,
    hidden: Vec<f32>,
    /// How many numbers of `hidden` the last pass wrote.
    size: usize,
}

impl Network for Gpt2 {
    type Cache = Vec<KeyValueCache>;
    type Tape = Tape;
    const ORDER: Order = Order::Branches;

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

    fn max_tokens(&self) -> Option<usize> {
        Some(self.config.positions)
    }

    fn cache(&self, tokens: usize) -> Vec<KeyValueCache> {
        self.layers.iter().map(|_| KeyValueCache::with_capacity(&self.heads, tokens)).collect()
    }

    fn cost(&self, tokens: usize) -> (usize, usize) {
        let cache = self.config.layers * tokens * 2 * self.heads.out();
        let row = 3 * self.config.hidden_size
            + self.heads.row()
            + self.heads.out()
            + self.config.intermediate_size
            + self.heads.scores(tokens);
        (cache * size_of::<f32>(), row * size_of::<f32>())
    }

    fn forward(&self, weights: &[f32], rows: &Rows, mut past: Past<'_, Vec<KeyValueCache>>, tape: &mut Tape) {
        let (n, width, inner) = (rows.len(), self.config.hidden_size, self.config.intermediate_size);
        let (heads, epsilon) = (&self.heads, self.config.layer_norm_eps);
        tape.size = n * width;
        let x = resize(&mut tape.x, n * width);
        embed(x, &weights[self.embedding.clone()], &rows.tokens, width);
        let places = &weights[self.positions.clone()];
        rows.for_each(|group, _, step, row| {
            trace_kernels::f32::add(&mut x[row * width..][..width], &places[(group.start + step) * width..][..width]);
        });
        let norm = resize(&mut tape.norm, n * width);
        let qkv = resize(&mut tape.qkv, n * heads.row());
        let attended = resize(&mut tape.attended, n * heads.out());
        let up = resize(&mut tape.up, n * inner);
        for (index, layer) in self.layers.iter().enumerate() {
            layer.norm.norm(norm, x, weights, epsilon);
            layer.qkv.forward_plain(qkv, Accumulate::Replace, norm, weights);
            for group in &rows.groups {
                let own = group.row..group.row + group.count * group.steps;
                let qkv = &qkv[own.start * heads.row()..own.end * heads.row()];
                let attended = &mut attended[own.start * heads.out()..own.end * heads.out()];
                let cache = match &past {
                    Past::Training | Past::Nothing => None,
                    Past::Shared(cache) => Some(&cache[index]),
                    Past::Growing(cache) => Some(&cache[index]),
                };
                attention::forward(heads, group, cache, qkv, attended, &mut tape.scores, false);
                if let Past::Growing(cache) = &mut past {
                    cache[index].extend(heads, qkv);
                }
            }
            layer.out.forward_plain(x, Accumulate::Add, attended, weights);
            layer.mlp_norm.norm(norm, x, weights, epsilon);
            layer.up.forward_plain(up, Accumulate::Replace, norm, weights);
            tanh_gelu(up);
            layer.down.forward_plain(x, Accumulate::Add, up, weights);
        }
        self.norm.norm(resize(&mut tape.hidden, n * width), x, weights, epsilon);
    }

    fn hidden(tape: &Tape) -> &[f32] {
        &tape.hidden[..tape.size]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> Gpt2 {
        Gpt2::new(Gpt2Config {
            vocab_size: 9,
            hidden_size: 12,
            layers: 2,
            heads: 3,
            intermediate_size: 20,
            positions: 24,
            layer_norm_eps: 1e-5,
            tie_word_embeddings: true,
        })
    }

    /// Weights large enough to distinguish tensors.
    fn weights(network: &Gpt2) -> Vec<f32> {
        let mut weights = network.layout().draw(5);
        for (index, weight) in weights.iter_mut().enumerate() {
            *weight += 0.6 * ((index * 7919 % 101) as f32 / 101.0 - 0.5);
        }
        weights
    }

    /// The hidden rows of one sequence, in f64, by the definition.
    fn plain(network: &Gpt2, weights: &[f32], tokens: &[u32]) -> Vec<Vec<f64>> {
        let (width, head) = (network.config.hidden_size, network.heads.head_dim);
        let get = |range: &Range<usize>| weights[range.clone()].iter().map(|w| f64::from(*w)).collect::<Vec<_>>();
        let apply = |affine: &Affine, x: &[f64]| {
            let (weight, mut y) = (get(&affine.weight), get(&affine.bias));
            let outputs = y.len();
            for (i, x) in x.iter().enumerate() {
                for (o, y) in y.iter_mut().enumerate() {
                    *y += x * weight[i * outputs + o];
                }
            }
            y
        };
        let norm = |affine: &Affine, x: &[f64]| -> Vec<f64> {
            let mean = x.iter().sum::<f64>() / width as f64;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
            let root = (variance + f64::from(network.config.layer_norm_eps)).sqrt();
            let (gain, bias) = (get(&affine.weight), get(&affine.bias));
            x.iter().zip(gain.iter().zip(&bias)).map(|(x, (gain, bias))| (x - mean) / root * gain + bias).collect()
        };
        let gelu =
            |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh());
        let (table, places) = (get(&network.embedding), get(&network.positions));
        let mut residual: Vec<Vec<f64>> = tokens
            .iter()
            .enumerate()
            .map(|(t, token)| (0..width).map(|i| table[*token as usize * width + i] + places[t * width + i]).collect())
            .collect();
        for layer in &network.layers {
            let qkv: Vec<_> = residual.iter().map(|row| apply(&layer.qkv, &norm(&layer.norm, row))).collect();
            for (t, row) in residual.iter_mut().enumerate() {
                let mut attended = vec![0.0; width];
                for (at, out) in attended.iter_mut().enumerate() {
                    let first = at / head * head;
                    let score = |u: usize| -> f64 {
                        let dot: f64 = (first..first + head).map(|i| qkv[t][i] * qkv[u][width + i]).sum();
                        (dot / (head as f64).sqrt()).exp()
                    };
                    let total: f64 = (0..=t).map(score).sum();
                    *out = (0..=t).map(|u| score(u) / total * qkv[u][2 * width + at]).sum();
                }
                row.iter_mut().zip(apply(&layer.out, &attended)).for_each(|(x, y)| *x += y);
                let up: Vec<f64> = apply(&layer.up, &norm(&layer.mlp_norm, row)).into_iter().map(gelu).collect();
                row.iter_mut().zip(apply(&layer.down, &up)).for_each(|(x, y)| *x += y);
            }
        }
        residual.iter().map(|row| norm(&network.norm, row)).collect()
    }

    fn observed(position: usize) -> u32 {
        (position * 5 % 7) as u32
    }

    fn branched(group: usize, branch: usize, step: usize) -> u32 {
        ((group * 3 + branch * 2 + step * 5 + 1) % 9) as u32
    }

    #[test]
    fn branches_from_a_cache_equal_whole_sequences() {
        let network = network();
        let (weights, width) = (weights(&network), network.hidden_size());
        let mut cache = network.cache(12);
        let (mut tape, mut reading) = (Tape::default(), Vec::new());
        for (start, steps) in [(0, 5), (5, 1), (6, 6)] {
            let rows = Rows::new(&[(start, steps, 1)], Gpt2::ORDER, |_, _, step| observed(start + step));
            network.forward(&weights, &rows, Past::Growing(&mut cache), &mut tape);
            reading.extend_from_slice(Gpt2::hidden(&tape));
        }
        let agree = |got: &[f32], expected: &[f64]| {
            for (a, b) in got.iter().zip(expected) {
                assert!((f64::from(*a) - b).abs() < 1e-5, "{a} against {b}");
            }
        };
        let whole: Vec<u32> = (0..12).map(observed).collect();
        for (row, expected) in plain(&network, &weights, &whole).iter().enumerate() {
            agree(&reading[row * width..][..width], expected);
        }
        let groups = [(0, 3, 1), (7, 1, 2), (2, 14, 2), (12, 5, 2), (1, 2, 2), (12, 12, 1)];
        let rows = Rows::new(&groups, Gpt2::ORDER, branched);
        network.forward(&weights, &rows, Past::Shared(&cache), &mut tape);
        let hidden = Gpt2::hidden(&tape).to_vec();
        rows.for_each(|group, branch, step, row| {
            let mut tokens: Vec<u32> = (0..group.start).map(observed).collect();
            tokens.extend((0..=step).map(|step| branched(group.index, branch, step)));
            let got = &hidden[row * width..][..width];
            agree(got, &plain(&network, &weights, &tokens)[group.start + step]);
            let alone = Rows::new(&[(0, tokens.len(), 1)], Gpt2::ORDER, |_, _, step| tokens[step]);
            let mut tape = Tape::default();
            network.forward(&weights, &alone, Past::Nothing, &mut tape);
            for (a, b) in got.iter().zip(&Gpt2::hidden(&tape)[(tokens.len() - 1) * width..]) {
                assert!((a - b).abs() < 1e-5, "{a} against {b}");
            }
        });
    }

    #[test]
    fn tensors_are_those_of_the_file() {
        let network = network();
        let names: Vec<_> = network.layout().entries().iter().map(|entry| entry.name.as_str()).collect();
        for name in ["transformer.wpe.weight", "transformer.h.1.attn.c_attn.bias", "transformer.ln_f.weight"] {
            assert!(names.contains(&name), "{name}");
        }
        assert_eq!((names.len(), network.max_tokens()), (2 + 2 * 12 + 2, Some(24)));
    }
}
