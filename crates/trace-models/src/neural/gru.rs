//! GRU (Cho et al., 2014), in the variant of PyTorch, which applies the reset gate after the matrix product.
//!
//! ```text
//! r = σ(W_ir x + b_ir + W_hr h + b_hr)        n  = tanh(W_in x + b_in + r ⊙ q),    q = W_hn h + b_hn
//! z = σ(W_iz x + b_iz + W_hz h + b_hz)        h' = (1 − z) ⊙ n + z ⊙ h
//! ```
//!
//! Shapes: `x`, `h` and every gate have `d` numbers; `W_ih` and `W_hh` are `3d × d` in the order r, z, n. A row stores
//! `r, z, q, n`. Cost per row and layer: `12·d²` operations and `3d` exponentials.

use trace_kernels::gates;

use super::recurrent::{BackStep, Cell, Part, Recurrent, RecurrentConfig, Step};

/// The configuration of a GRU.
pub type GruConfig = RecurrentConfig;

/// The tensors of a GRU, and its forward and backward pass.
pub(crate) type Gru = Recurrent<GruCell>;

/// The GRU cell.
#[derive(Clone, Debug)]
pub(crate) struct GruCell;

impl Cell for GruCell {
    const GATES: usize = 3;
    const INPUT: &'static [Part] = &[Part { weight: 0, count: 2, kept: 0 }, Part { weight: 2, count: 1, kept: 3 }];
    const CELL_STATES: usize = 0;

    fn step(step: Step<'_>) {
        gates::gru_step(step.gates, step.hidden, step.bias, step.before.output, step.after.output);
    }

    fn back(step: BackStep<'_>) {
        gates::back_gru_step(step.gates, step.before.output, step.d_out, step.d_state.output, step.width);
    }
}
