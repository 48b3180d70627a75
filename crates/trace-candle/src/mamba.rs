//! Mamba: a selective state-space model.
//!
//! Gu & Dao, *Mamba: Linear-Time Sequence Modeling with Selective State Spaces*, 2023. Each layer adds to x
//!
//! ```text
//! u, z = RMSNorm(x) Wiᵀ                   u, z: e channels each
//! u ← silu(conv(u))                       a causal filter of K taps for each channel
//! δ, B, C = u Wxᵀ
//! Δ = softplus(δ Wdᵀ + bd),  A = −exp(A_log)
//! h_t = exp(Δ_t A) ⊙ h_{t−1} + Δ_t B_t u_t
//! y_t = C_t h_t + D ⊙ u_t
//! out = (y ⊙ silu(z)) Woᵀ
//! ```
//!
//! Shapes: tokens `[B, T]`; x `[B, T, d]`; u, z, Δ, y `[B, T, e]`; δ `[B, T, r]`; B, C `[B, T, n]`; h `[B, e, n]`;
//! logits `[B, T, V]`. Weights, as Hugging Face names and lays them out (`[out, in]`):
//!
//! | tensor | shape |
//! |---|---|
//! | `backbone.embeddings.weight` | `[V, d]` |
//! | `backbone.layers.{i}.norm.weight` | `[d]` |
//! | `backbone.layers.{i}.mixer.in_proj.weight` | `[2e, d]` |
//! | `backbone.layers.{i}.mixer.conv1d.weight`, `.bias` | `[e, 1, K]`, `[e]` |
//! | `backbone.layers.{i}.mixer.x_proj.weight` | `[r + 2n, e]` |
//! | `backbone.layers.{i}.mixer.dt_proj.weight`, `.bias` | `[e, r]`, `[e]` |
//! | `backbone.layers.{i}.mixer.A_log` | `[e, n]` |
//! | `backbone.layers.{i}.mixer.D` | `[e]` |
//! | `backbone.layers.{i}.mixer.out_proj.weight` | `[d, e]` |
//! | `backbone.norm_f.weight` | `[d]` |
//! | `lm_head.weight`, unless tied | `[V, d]` |

use candle_core::{D, Tensor};

use crate::layers::{embed, linear, rms_norm, softplus, steps};
use crate::{Error, Network, Weights};

/// The configuration of a Mamba network.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// V: the number of tokens, including special ones.
    pub vocab_size: usize,
    /// d: the size of hidden states.
    pub hidden_size: usize,
    /// The number of layers.
    pub layers: usize,
    /// e: the number of channels, 2 d in the paper.
    pub intermediate_size: usize,
    /// n: the size of each channel's state.
    pub state_size: usize,
    /// K: the taps of the convolution.
    pub conv_kernel: usize,
    /// r: the rank of the step sizes, d / 16 in the paper.
    pub time_step_rank: usize,
    /// ε of the norms.
    pub rms_norm_eps: f64,
    /// Whether the head shares the embedding table.
    pub tie_word_embeddings: bool,
}

/// A Mamba network.
#[derive(Debug)]
pub struct Mamba {
    config: Config,
    embedding: Tensor,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Tensor,
}

#[derive(Debug)]
struct Layer {
    norm: Tensor,
    input: Tensor,
    filter: Tensor,
    filter_bias: Tensor,
    select: Tensor,
    step: Tensor,
    step_bias: Tensor,
    log_decay: Tensor,
    skip: Tensor,
    output: Tensor,
}

impl Mamba {
    /// Takes the network's tensors from `weights`.
    pub fn new(config: &Config, weights: &Weights) -> Result<Self, Error> {
        if config.conv_kernel == 0 {
            return Err(Error::setting("conv_kernel", "a convolution needs at least one tap"));
        }
        let (tokens, d, e) = (config.vocab_size, config.hidden_size, config.intermediate_size);
        let (n, r) = (config.state_size, config.time_step_rank);
        let mut layers = Vec::with_capacity(config.layers);
        for i in 0..config.layers {
            let get = |name: &str, shape: &[usize]| weights.get(&format!("backbone.layers.{i}.{name}"), shape);
            layers.push(Layer {
                norm: get("norm.weight", &[d])?,
                input: get("mixer.in_proj.weight", &[2 * e, d])?,
                filter: get("mixer.conv1d.weight", &[e, 1, config.conv_kernel])?,
                filter_bias: get("mixer.conv1d.bias", &[e])?,
                select: get("mixer.x_proj.weight", &[r + 2 * n, e])?,
                step: get("mixer.dt_proj.weight", &[e, r])?,
                step_bias: get("mixer.dt_proj.bias", &[e])?,
                log_decay: get("mixer.A_log", &[e, n])?,
                skip: get("mixer.D", &[e])?,
                output: get("mixer.out_proj.weight", &[d, e])?,
            });
        }
        let embedding = weights.get("backbone.embeddings.weight", &[tokens, d])?;
        let norm = weights.get("backbone.norm_f.weight", &[d])?;
        let head =
            if config.tie_word_embeddings { embedding.clone() } else { weights.get("lm_head.weight", &[tokens, d])? };
        Ok(Self { config: config.clone(), embedding, layers, norm, head })
    }
}

impl Network for Mamba {
    fn hidden(&self, tokens: &Tensor) -> Result<Tensor, Error> {
        let eps = self.config.rms_norm_eps;
        let mut x = embed(&self.embedding, tokens)?;
        for layer in &self.layers {
            x = (&x + layer.mix(&rms_norm(&x, &layer.norm, eps)?, &self.config)?)?;
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
    fn mix(&self, x: &Tensor, config: &Config) -> Result<Tensor, Error> {
        let (e, n, r) = (config.intermediate_size, config.state_size, config.time_step_rank);
        let both = linear(x, &self.input)?;
        let (u, z) = (both.narrow(D::Minus1, 0, e)?, both.narrow(D::Minus1, e, e)?);
        let u = self.convolve(&u)?.silu()?;
        let selected = linear(&u, &self.select)?;
        let delta = linear(&selected.narrow(D::Minus1, 0, r)?, &self.step)?;
        let delta = softplus(&delta.broadcast_add(&self.step_bias)?)?;
        let (enter, leave) = (selected.narrow(D::Minus1, r, n)?, selected.narrow(D::Minus1, r + n, n)?);
        let y = (self.scan(&u, &delta, &enter, &leave)? + u.broadcast_mul(&self.skip)?)?;
        linear(&(y * z.silu()?)?, &self.output)
    }

    /// `b + Σ_k w_k ⊙ u_{t−K+1+k}`, with zeros before the first token.
    fn convolve(&self, u: &Tensor) -> Result<Tensor, Error> {
        let (length, taps) = (u.dim(1)?, self.filter.dim(2)?);
        let padded = u.pad_with_zeros(1, taps - 1, 0)?;
        let mut sum = self.filter_bias.broadcast_as(u.shape())?;
        for tap in 0..taps {
            let weight = self.filter.narrow(2, tap, 1)?.flatten_all()?;
            sum = (sum + padded.narrow(1, tap, length)?.broadcast_mul(&weight)?)?;
        }
        Ok(sum)
    }

    /// The recurrence over time; `enter` is B and `leave` is C of the equations.
    fn scan(&self, u: &Tensor, delta: &Tensor, enter: &Tensor, leave: &Tensor) -> Result<Tensor, Error> {
        let (batch, _, channels) = u.dims3()?;
        let decay = self.log_decay.exp()?.neg()?; // A, [e, n]
        let mut h = Tensor::zeros((batch, channels, decay.dim(1)?), u.dtype(), u.device())?;
        let mut outputs = Vec::new();
        let inputs = steps(&(delta * u)?)?;
        for (((input, delta), enter), leave) in inputs.iter().zip(steps(delta)?).zip(steps(enter)?).zip(steps(leave)?) {
            let keep = delta.unsqueeze(2)?.broadcast_mul(&decay)?.exp()?; // [B, e, n]
            let add = input.unsqueeze(2)?.broadcast_mul(&enter.unsqueeze(1)?)?;
            h = ((keep * h)? + add)?;
            outputs.push(h.broadcast_mul(&leave.unsqueeze(1)?)?.sum(2)?);
        }
        Ok(Tensor::stack(&outputs, 1)?)
    }
}
