//! GRU (Cho et al., 2014), in the form that torch has, where the reset gate comes after the product.
//!
//! ```text
//! r = σ(W_ir x + b_ir + W_hr h + b_hr)        n  = tanh(W_in x + b_in + r ⊙ q),    q = W_hn h + b_hn
//! z = σ(W_iz x + b_iz + W_hz h + b_hz)        h' = (1 − z) ⊙ n + z ⊙ h
//! ```
//!
//! Shapes: `x`, `h` and every gate have `d` numbers; `W_ih` and `W_hh` are `3d × d` in the order r, z, n. A row keeps
//! `r, z, q, n`. Cost of a row and layer: `12·d²` operations and `3d` exponentials.

use super::recurrent::{BackStep, Cell, Part, Recurrent, RecurrentConfig, Step};
use crate::kernels::gates;

/// The shape of a GRU.
pub type GruConfig = RecurrentConfig;

/// A GRU's tensors and how to compute with them.
pub(crate) type Gru = Recurrent<GruCell>;

/// One cell.
#[derive(Clone, Debug)]
pub(crate) struct GruCell;

impl Cell for GruCell {
    const GATES: usize = 3;
    const INPUT: &'static [Part] = &[Part { weight: 0, count: 2, kept: 0 }, Part { weight: 2, count: 1, kept: 3 }];
    const OWN: usize = 0;

    fn step(step: Step<'_>) {
        gates::gru_step(step.gates, step.hidden, step.bias, step.before.shown, step.after.shown);
    }

    fn back(step: BackStep<'_>) {
        gates::back_gru_step(step.gates, step.before.shown, step.d_out, step.d_state.shown, step.width);
    }
}
