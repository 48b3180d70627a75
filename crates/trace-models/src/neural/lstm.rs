//! LSTM (Hochreiter and Schmidhuber, 1997; forget gates by Gers et al., 2000).
//!
//! ```text
//! i = σ(W_ii x + b_ii + W_hi h + b_hi)        g  = tanh(W_ig x + b_ig + W_hg h + b_hg)
//! f = σ(W_if x + b_if + W_hf h + b_hf)        c' = f ⊙ c + i ⊙ g
//! o = σ(W_io x + b_io + W_ho h + b_ho)        h' = o ⊙ tanh(c')
//! ```
//!
//! Shapes: `x`, `h`, `c` and every gate have `d` numbers; `W_ih` and `W_hh` are `4d × d` in the order i, f, g, o. Cost
//! of a row and layer: `16·d²` operations and `5d` exponentials.

use trace_kernels::gates;

use super::recurrent::{BackStep, Cell, Part, Recurrent, RecurrentConfig, Step};

/// The configuration of an LSTM.
pub type LstmConfig = RecurrentConfig;

/// The tensors of an LSTM, and its forward and backward pass.
pub(crate) type Lstm = Recurrent<LstmCell>;

/// The LSTM cell.
#[derive(Clone, Debug)]
pub(crate) struct LstmCell;

impl Cell for LstmCell {
    const GATES: usize = 4;
    const INPUT: &'static [Part] = &[Part { weight: 0, count: 4, kept: 0 }];
    const CELL_STATES: usize = 1;

    fn step(step: Step<'_>) {
        let Step { gates, hidden, bias, before, after } = step;
        gates::lstm_step(gates, hidden, bias, before.cell, after.cell, after.output);
    }

    fn back(step: BackStep<'_>) {
        let BackStep { gates, before, after, d_out, d_state, width } = step;
        gates::back_lstm_step(gates, before.cell, after.cell, d_out, d_state.output, d_state.cell, width);
    }
}
