//! The common parts of the GRU and the LSTM: everything except the cell.

use candle_core::Tensor;

use crate::layers::{embed, linear, rms_norm};
use crate::{Error, Weights};

/// ε of the norm before the head.
const RMS_NORM_EPS: f64 = 1e-6;

/// Embedding, stacked cells, norm and head.
#[derive(Debug)]
pub(crate) struct Recurrent {
    pub(crate) vocab_size: usize,
    embedding: Tensor,
    cells: Vec<Cell>,
    norm: Tensor,
    head: Tensor,
}

/// The weights of one layer, its gates stacked.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) weight_ih: Tensor,
    pub(crate) weight_hh: Tensor,
    pub(crate) bias_ih: Tensor,
    pub(crate) bias_hh: Tensor,
}

impl Recurrent {
    pub(crate) fn new(
        vocab_size: usize,
        hidden_size: usize,
        layers: usize,
        gates: usize,
        weights: &Weights,
    ) -> Result<Self, Error> {
        let mut cells = Vec::with_capacity(layers);
        for i in 0..layers {
            cells.push(Cell {
                weight_ih: weights.get(&format!("rnn.weight_ih_l{i}"), &[gates * hidden_size, hidden_size])?,
                weight_hh: weights.get(&format!("rnn.weight_hh_l{i}"), &[gates * hidden_size, hidden_size])?,
                bias_ih: weights.get(&format!("rnn.bias_ih_l{i}"), &[gates * hidden_size])?,
                bias_hh: weights.get(&format!("rnn.bias_hh_l{i}"), &[gates * hidden_size])?,
            });
        }
        Ok(Self {
            vocab_size,
            embedding: weights.get("embedding.weight", &[vocab_size, hidden_size])?,
            cells,
            norm: weights.get("norm.weight", &[hidden_size])?,
            head: weights.get("lm_head.weight", &[vocab_size, hidden_size])?,
        })
    }

    pub(crate) fn hidden(
        &self,
        tokens: &Tensor,
        run: impl Fn(&Cell, &Tensor) -> Result<Tensor, Error>,
    ) -> Result<Tensor, Error> {
        let mut x = embed(&self.embedding, tokens)?;
        for cell in &self.cells {
            x = run(cell, &x)?;
        }
        rms_norm(&x, &self.norm, RMS_NORM_EPS)
    }

    pub(crate) fn head(&self, hidden: &Tensor) -> Result<Tensor, Error> {
        linear(hidden, &self.head)
    }
}
