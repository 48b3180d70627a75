//! GRU: a gated recurrent network.
//!
//! Cho et al., *Learning Phrase Representations using RNN Encoder–Decoder*, 2014, in the variant of cuDNN and
//! PyTorch, which applies the reset gate after the product with the old state:
//!
//! ```text
//! r = σ(x Wirᵀ + bir + h Whrᵀ + bhr)
//! z = σ(x Wizᵀ + biz + h Whzᵀ + bhz)
//! n = tanh(x Winᵀ + bin + r ⊙ (h Whnᵀ + bhn))
//! h ← (1 − z) ⊙ n + z ⊙ h
//! ```
//!
//! The states of each layer are the inputs of the next layer; the states of the last layer, after an RMS norm, are the
//! inputs of the head.
//!
//! Shapes: tokens `[B, T]`; x, h, r, z, n `[B, d]` for each token; logits `[B, T, V]`. Weights, as PyTorch names and
//! lays them out (`[out, in]`, gates in the order r, z, n):
//!
//! | tensor | shape |
//! |---|---|
//! | `embedding.weight` | `[V, d]` |
//! | `rnn.weight_ih_l{i}`, `rnn.weight_hh_l{i}` | `[3d, d]` |
//! | `rnn.bias_ih_l{i}`, `rnn.bias_hh_l{i}` | `[3d]` |
//! | `norm.weight` | `[d]` |
//! | `lm_head.weight` | `[V, d]` |

use candle_core::Tensor;

use crate::layers::{linear, sigmoid, steps};
use crate::recurrent::{Cell, Recurrent};
use crate::{Error, Network, Weights};

/// The configuration of a GRU network.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// V: the number of tokens, including special ones.
    pub vocab_size: usize,
    /// d: the size of hidden states.
    pub hidden_size: usize,
    /// The number of layers.
    pub layers: usize,
}

/// A GRU network.
#[derive(Debug)]
pub struct Gru(Recurrent);

impl Gru {
    /// Takes the network's tensors from `weights`.
    pub fn new(config: &Config, weights: &Weights) -> Result<Self, Error> {
        Ok(Self(Recurrent::new(config.vocab_size, config.hidden_size, config.layers, 3, weights)?))
    }
}

impl Network for Gru {
    fn hidden(&self, tokens: &Tensor) -> Result<Tensor, Error> {
        self.0.hidden(tokens, run)
    }

    fn head(&self, hidden: &Tensor) -> Result<Tensor, Error> {
        self.0.head(hidden)
    }

    fn vocab_size(&self) -> usize {
        self.0.vocab_size
    }
}

/// One layer over all tokens: `[B, T, d]` in, `[B, T, d]` out.
fn run(cell: &Cell, x: &Tensor) -> Result<Tensor, Error> {
    let (batch, _, width) = x.dims3()?;
    let mut h = Tensor::zeros((batch, width), x.dtype(), x.device())?;
    let mut states = Vec::new();
    for input in steps(&linear(x, &cell.weight_ih)?.broadcast_add(&cell.bias_ih)?)? {
        let old = linear(&h, &cell.weight_hh)?.broadcast_add(&cell.bias_hh)?;
        let gate = |from: &Tensor, index: usize| from.narrow(1, index * width, width);
        let r = sigmoid(&(gate(&input, 0)? + gate(&old, 0)?)?)?;
        let z = sigmoid(&(gate(&input, 1)? + gate(&old, 1)?)?)?;
        let n = (gate(&input, 2)? + (r * gate(&old, 2)?)?)?.tanh()?;
        h = (&n + (z * (h - &n)?)?)?;
        states.push(h.clone());
    }
    Ok(Tensor::stack(&states, 1)?)
}
