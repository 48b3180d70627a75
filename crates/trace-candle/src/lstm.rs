//! LSTM: long short-term memory.
//!
//! Hochreiter & Schmidhuber, *Long Short-Term Memory*, 1997, with the forget gate of Gers, Schmidhuber & Cummins, 2000:
//!
//! ```text
//! i = σ(x Wiiᵀ + bii + h Whiᵀ + bhi)
//! f = σ(x Wifᵀ + bif + h Whfᵀ + bhf)
//! g = tanh(x Wigᵀ + big + h Whgᵀ + bhg)
//! o = σ(x Wioᵀ + bio + h Whoᵀ + bho)
//! c ← f ⊙ c + i ⊙ g
//! h ← o ⊙ tanh(c)
//! ```
//!
//! The states of each layer are the inputs of the next layer; the states of the last layer, after an RMS norm, are the
//! inputs of the head.
//!
//! Shapes: tokens `[B, T]`; x, h, c and the gates `[B, d]` for each token; logits `[B, T, V]`. Weights, as PyTorch
//! names and lays them out (`[out, in]`, gates in the order i, f, g, o):
//!
//! | tensor | shape |
//! |---|---|
//! | `embedding.weight` | `[V, d]` |
//! | `rnn.weight_ih_l{i}`, `rnn.weight_hh_l{i}` | `[4d, d]` |
//! | `rnn.bias_ih_l{i}`, `rnn.bias_hh_l{i}` | `[4d]` |
//! | `norm.weight` | `[d]` |
//! | `lm_head.weight` | `[V, d]` |

use candle_core::Tensor;

use crate::layers::{linear, sigmoid, steps};
use crate::recurrent::{Cell, Recurrent};
use crate::{Error, Network, Weights};

/// The configuration of an LSTM network.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// V: the number of tokens, including special ones.
    pub vocab_size: usize,
    /// d: the size of hidden states.
    pub hidden_size: usize,
    /// The number of layers.
    pub layers: usize,
}

/// An LSTM network.
#[derive(Debug)]
pub struct Lstm(Recurrent);

impl Lstm {
    /// Takes the network's tensors from `weights`.
    pub fn new(config: &Config, weights: &Weights) -> Result<Self, Error> {
        Ok(Self(Recurrent::new(config.vocab_size, config.hidden_size, config.layers, 4, weights)?))
    }
}

impl Network for Lstm {
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
    let mut c = h.clone();
    let mut states = Vec::new();
    for input in steps(&linear(x, &cell.weight_ih)?.broadcast_add(&cell.bias_ih)?)? {
        let all = (input + linear(&h, &cell.weight_hh)?.broadcast_add(&cell.bias_hh)?)?;
        let gate = |index: usize| all.narrow(1, index * width, width);
        let (i, f, o) = (sigmoid(&gate(0)?)?, sigmoid(&gate(1)?)?, sigmoid(&gate(3)?)?);
        let g = gate(2)?.tanh()?;
        c = ((f * c)? + (i * g)?)?;
        h = (o * c.tanh()?)?;
        states.push(h.clone());
    }
    Ok(Tensor::stack(&states, 1)?)
}
