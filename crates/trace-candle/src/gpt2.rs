//! GPT-2: a pre-norm transformer with learned positions.
//!
//! Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019. Each layer:
//!
//! ```text
//! q, k, v = LayerNorm(x) Wa + ba          side by side in one matrix
//! x ← x + attention(q, k, v) Wp + bp
//! x ← x + gelu(LayerNorm(x) Wf + bf) Wo + bo
//! ```
//!
//! Before the first layer `x = E[token] + P[position]`; after the last layer the logits are `LayerNorm(x) Eᵀ`.
//!
//! Shapes: tokens `[B, T]`; x `[B, T, d]`; q, k, v `[B, H, T, d/H]`; logits `[B, T, V]`. Weights, as Hugging Face
//! names and lays them out (its `Conv1D` is `[in, out]`):
//!
//! | tensor | shape |
//! |---|---|
//! | `transformer.wte.weight` | `[V, d]` |
//! | `transformer.wpe.weight` | `[P, d]` |
//! | `transformer.h.{i}.ln_1`, `….ln_2`, each `.weight` and `.bias` | `[d]` |
//! | `transformer.h.{i}.attn.c_attn.weight`, `.bias` | `[d, 3d]`, `[3d]` |
//! | `transformer.h.{i}.attn.c_proj.weight`, `.bias` | `[d, d]`, `[d]` |
//! | `transformer.h.{i}.mlp.c_fc.weight`, `.bias` | `[d, f]`, `[f]` |
//! | `transformer.h.{i}.mlp.c_proj.weight`, `.bias` | `[f, d]`, `[d]` |
//! | `transformer.ln_f.weight`, `.bias` | `[d]` |

use candle_core::{D, Tensor};

use crate::layers::{attention, embed, gelu_tanh, layer_norm, linear, project, split_heads};
use crate::{Error, Network, Weights};

/// The configuration of a GPT-2 network.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// V: the number of tokens, including special ones.
    pub vocab_size: usize,
    /// P: the number of positions, which limits the number of tokens.
    pub positions: usize,
    /// d: the size of hidden states.
    pub hidden_size: usize,
    /// The number of layers.
    pub layers: usize,
    /// H: the number of heads; divides d.
    pub heads: usize,
    /// f: the size of the feed-forward layers, 4 d in the paper.
    pub intermediate_size: usize,
    /// ε of the norms.
    pub layer_norm_eps: f64,
}

/// A GPT-2 network.
#[derive(Debug)]
pub struct Gpt2 {
    config: Config,
    tokens: Tensor,
    positions: Tensor,
    layers: Vec<Layer>,
    norm: Norm,
}

#[derive(Debug)]
struct Layer {
    attention_norm: Norm,
    attention: Affine,
    output: Affine,
    feed_forward_norm: Norm,
    expand: Affine,
    contract: Affine,
}

#[derive(Debug)]
struct Affine {
    weight: Tensor,
    bias: Tensor,
}

impl Affine {
    fn new(weights: &Weights, name: &str, from: usize, to: usize) -> Result<Self, Error> {
        let weight = weights.get(&format!("transformer.{name}.weight"), &[from, to])?;
        Ok(Self { weight, bias: weights.get(&format!("transformer.{name}.bias"), &[to])? })
    }

    fn apply(&self, x: &Tensor) -> Result<Tensor, Error> {
        Ok(project(x, &self.weight)?.broadcast_add(&self.bias)?)
    }
}

#[derive(Debug)]
struct Norm {
    weight: Tensor,
    bias: Tensor,
    eps: f64,
}

impl Norm {
    fn new(weights: &Weights, name: &str, config: &Config) -> Result<Self, Error> {
        let get = |part: &str| weights.get(&format!("transformer.{name}.{part}"), &[config.hidden_size]);
        Ok(Self { weight: get("weight")?, bias: get("bias")?, eps: config.layer_norm_eps })
    }

    fn apply(&self, x: &Tensor) -> Result<Tensor, Error> {
        layer_norm(x, &self.weight, &self.bias, self.eps)
    }
}

impl Gpt2 {
    /// Takes the network's tensors from `weights`.
    pub fn new(config: &Config, weights: &Weights) -> Result<Self, Error> {
        if config.heads == 0 || !config.hidden_size.is_multiple_of(config.heads) {
            let reason = format!("{} do not divide a width of {}", config.heads, config.hidden_size);
            return Err(Error::setting("heads", reason));
        }
        let (d, f) = (config.hidden_size, config.intermediate_size);
        let mut layers = Vec::with_capacity(config.layers);
        for i in 0..config.layers {
            let affine = |name: &str, from, to| Affine::new(weights, &format!("h.{i}.{name}"), from, to);
            layers.push(Layer {
                attention_norm: Norm::new(weights, &format!("h.{i}.ln_1"), config)?,
                attention: affine("attn.c_attn", d, 3 * d)?,
                output: affine("attn.c_proj", d, d)?,
                feed_forward_norm: Norm::new(weights, &format!("h.{i}.ln_2"), config)?,
                expand: affine("mlp.c_fc", d, f)?,
                contract: affine("mlp.c_proj", f, d)?,
            });
        }
        let tokens = weights.get("transformer.wte.weight", &[config.vocab_size, d])?;
        let positions = weights.get("transformer.wpe.weight", &[config.positions, d])?;
        let norm = Norm::new(weights, "ln_f", config)?;
        Ok(Self { config: config.clone(), tokens, positions, layers, norm })
    }
}

impl Network for Gpt2 {
    fn hidden(&self, tokens: &Tensor) -> Result<Tensor, Error> {
        let (length, limit) = (tokens.dim(1)?, self.config.positions);
        if length > limit {
            return Err(Error::TooLong { length, limit });
        }
        let mut x = embed(&self.tokens, tokens)?.broadcast_add(&self.positions.narrow(0, 0, length)?)?;
        for layer in &self.layers {
            x = (&x + layer.attend(&layer.attention_norm.apply(&x)?, self.config.heads)?)?;
            x = (&x + layer.feed_forward(&layer.feed_forward_norm.apply(&x)?)?)?;
        }
        self.norm.apply(&x)
    }

    fn head(&self, hidden: &Tensor) -> Result<Tensor, Error> {
        linear(hidden, &self.tokens)
    }

    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn max_tokens(&self) -> Option<usize> {
        Some(self.config.positions)
    }
}

impl Layer {
    fn attend(&self, x: &Tensor, heads: usize) -> Result<Tensor, Error> {
        let all = self.attention.apply(x)?;
        let width = x.dim(D::Minus1)?;
        let part = |index: usize| split_heads(&all.narrow(D::Minus1, index * width, width)?, heads);
        self.output.apply(&attention(&part(0)?, &part(1)?, &part(2)?)?)
    }

    fn feed_forward(&self, x: &Tensor) -> Result<Tensor, Error> {
        self.contract.apply(&gelu_tanh(&self.expand.apply(x)?)?)
    }
}
