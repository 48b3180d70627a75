//! LLaMA: a pre-norm transformer with rotary positions, grouped-query attention and gated feed-forward layers.
//!
//! Touvron et al., *LLaMA: Open and Efficient Foundation Language Models*, 2023; rotary positions: Su et al.,
//! *RoFormer*, 2021; SwiGLU: Shazeer, *GLU Variants Improve Transformer*, 2020; grouped queries: Ainslie et al.,
//! *GQA*, 2023. Each layer:
//!
//! ```text
//! n = RMSNorm(x)
//! q, k, v = n Wqᵀ, n Wkᵀ, n Wvᵀ          q and k rotated by position
//! x ← x + attention(q, k, v) Woᵀ         each key-value head serves H/G query heads
//! m = RMSNorm(x)
//! x ← x + (silu(m Wgᵀ) ⊙ m Wuᵀ) Wdᵀ
//! ```
//!
//! Shapes: tokens `[B, T]`; x, n, m `[B, T, d]`; q `[B, H, T, w]`; k, v `[B, G, T, w]`; logits `[B, T, V]`.
//! Weights, as Hugging Face names and lays them out (`[out, in]`):
//!
//! | tensor | shape |
//! |---|---|
//! | `model.embed_tokens.weight` | `[V, d]` |
//! | `model.layers.{i}.input_layernorm.weight`, `….post_attention_layernorm.weight` | `[d]` |
//! | `model.layers.{i}.self_attn.q_proj.weight` | `[H·w, d]` |
//! | `model.layers.{i}.self_attn.k_proj.weight`, `….v_proj.weight` | `[G·w, d]` |
//! | `model.layers.{i}.self_attn.o_proj.weight` | `[d, H·w]` |
//! | `model.layers.{i}.mlp.gate_proj.weight`, `….up_proj.weight` | `[f, d]` |
//! | `model.layers.{i}.mlp.down_proj.weight` | `[d, f]` |
//! | `model.norm.weight` | `[d]` |
//! | `lm_head.weight`, unless tied | `[V, d]` |

use candle_core::{D, DType, Device, Tensor};

use crate::layers::{attention, embed, linear, rms_norm, split_heads};
use crate::{Error, Network, Weights};

/// The configuration of a LLaMA network.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// V: the number of tokens, including special ones.
    pub vocab_size: usize,
    /// d: the size of hidden states.
    pub hidden_size: usize,
    /// The number of layers.
    pub layers: usize,
    /// H: the number of query heads.
    pub heads: usize,
    /// G: the number of key-value heads; divides H.
    pub num_key_value_heads: usize,
    /// w: the size of a head; even.
    pub head_dim: usize,
    /// f: the size of the feed-forward layers.
    pub intermediate_size: usize,
    /// The base of the rotary angles.
    pub rope_theta: f64,
    /// ε of the norms.
    pub rms_norm_eps: f64,
    /// Whether the head shares the embedding table.
    pub tie_word_embeddings: bool,
}

/// A LLaMA network.
#[derive(Debug)]
pub struct Llama {
    config: Config,
    embedding: Tensor,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Tensor,
}

#[derive(Debug)]
struct Layer {
    attention_norm: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    feed_forward_norm: Tensor,
    gate: Tensor,
    up: Tensor,
    down: Tensor,
}

impl Llama {
    /// Takes the network's tensors from `weights`.
    pub fn new(config: &Config, weights: &Weights) -> Result<Self, Error> {
        if config.num_key_value_heads == 0 || !config.heads.is_multiple_of(config.num_key_value_heads) {
            let reason =
                format!("{} heads cannot share {} key-value heads evenly", config.heads, config.num_key_value_heads);
            return Err(Error::setting("num_key_value_heads", reason));
        }
        if !config.head_dim.is_multiple_of(2) {
            return Err(Error::setting("head_dim", format!("{} is odd; rotation needs pairs", config.head_dim)));
        }
        let (tokens, d, f) = (config.vocab_size, config.hidden_size, config.intermediate_size);
        let (queries, keys) = (config.heads * config.head_dim, config.num_key_value_heads * config.head_dim);
        let mut layers = Vec::with_capacity(config.layers);
        for i in 0..config.layers {
            let get = |name: &str, shape: &[usize]| weights.get(&format!("model.layers.{i}.{name}.weight"), shape);
            layers.push(Layer {
                attention_norm: get("input_layernorm", &[d])?,
                query: get("self_attn.q_proj", &[queries, d])?,
                key: get("self_attn.k_proj", &[keys, d])?,
                value: get("self_attn.v_proj", &[keys, d])?,
                output: get("self_attn.o_proj", &[d, queries])?,
                feed_forward_norm: get("post_attention_layernorm", &[d])?,
                gate: get("mlp.gate_proj", &[f, d])?,
                up: get("mlp.up_proj", &[f, d])?,
                down: get("mlp.down_proj", &[d, f])?,
            });
        }
        let embedding = weights.get("model.embed_tokens.weight", &[tokens, d])?;
        let norm = weights.get("model.norm.weight", &[d])?;
        let head =
            if config.tie_word_embeddings { embedding.clone() } else { weights.get("lm_head.weight", &[tokens, d])? };
        Ok(Self { config: config.clone(), embedding, layers, norm, head })
    }
}

impl Network for Llama {
    fn hidden(&self, tokens: &Tensor) -> Result<Tensor, Error> {
        let eps = self.config.rms_norm_eps;
        let mut x = embed(&self.embedding, tokens)?;
        let rotation = Rotation::new(&self.config, tokens.dim(1)?, x.dtype(), x.device())?;
        for layer in &self.layers {
            x = (&x + layer.attend(&rms_norm(&x, &layer.attention_norm, eps)?, &self.config, &rotation)?)?;
            x = (&x + layer.feed_forward(&rms_norm(&x, &layer.feed_forward_norm, eps)?)?)?;
        }
        rms_norm(&x, &self.norm, eps)
    }

    fn head(&self, hidden: &Tensor) -> Result<Tensor, Error> {
        linear(hidden, &self.head)
    }

    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }
}

impl Layer {
    fn attend(&self, x: &Tensor, config: &Config, rotation: &Rotation) -> Result<Tensor, Error> {
        let q = split_heads(&linear(x, &self.query)?, config.heads)?;
        let k = split_heads(&linear(x, &self.key)?, config.num_key_value_heads)?;
        let v = split_heads(&linear(x, &self.value)?, config.num_key_value_heads)?;
        let (q, k) = (rotation.rotate(&q)?, rotation.rotate(&k)?);
        let (k, v) = (share_heads(&k, config.heads)?, share_heads(&v, config.heads)?);
        linear(&attention(&q, &k, &v)?, &self.output)
    }

    fn feed_forward(&self, x: &Tensor) -> Result<Tensor, Error> {
        let gated = (linear(x, &self.gate)?.silu()? * linear(x, &self.up)?)?;
        linear(&gated, &self.down)
    }
}

/// `[B, G, T, w]` as `[B, H, T, w]`: each key-value head is repeated `H/G` times.
fn share_heads(x: &Tensor, heads: usize) -> Result<Tensor, Error> {
    let (batch, groups, length, width) = x.dims4()?;
    let shared = x.unsqueeze(2)?.broadcast_as((batch, groups, heads / groups, length, width))?;
    Ok(shared.reshape((batch, heads, length, width))?)
}

/// The rotary angles of all positions: numbers `i` and `i + w/2` of a head are a pair, which is rotated by
/// `t · θ^(−2i/w)` at position `t` (the `rotate_half` layout of Hugging Face).
struct Rotation {
    cos: Tensor, // [T, w/2]
    sin: Tensor,
}

impl Rotation {
    fn new(config: &Config, length: usize, dtype: DType, device: &Device) -> Result<Self, Error> {
        let half = config.head_dim / 2;
        let table = |of: fn(f64) -> f64| -> Result<Tensor, Error> {
            let angle =
                |t: usize, i: usize| t as f64 * config.rope_theta.powf(-2.0 * i as f64 / config.head_dim as f64);
            let values: Vec<f64> =
                (0..length).flat_map(|t| (0..half).map(move |i| (t, i))).map(|(t, i)| of(angle(t, i))).collect();
            // Rounded on the CPU: not every device has 64-bit floats.
            Ok(Tensor::from_vec(values, (length, half), &Device::Cpu)?.to_dtype(dtype)?.to_device(device)?)
        };
        Ok(Self { cos: table(f64::cos)?, sin: table(f64::sin)? })
    }

    fn rotate(&self, x: &Tensor) -> Result<Tensor, Error> {
        let half = x.dim(D::Minus1)? / 2;
        let (a, b) = (x.narrow(D::Minus1, 0, half)?, x.narrow(D::Minus1, half, half)?);
        let first = (a.broadcast_mul(&self.cos)? - b.broadcast_mul(&self.sin)?)?;
        let second = (b.broadcast_mul(&self.cos)? + a.broadcast_mul(&self.sin)?)?;
        Ok(Tensor::cat(&[first, second], D::Minus1)?)
    }
}
