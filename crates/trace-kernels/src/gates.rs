//! The gates of recurrent cells, forward and backward: all operations of a step between its matrix products.
//!
//! A row of `gates` has four blocks of `width` numbers. Before a step they hold the input part of each gate, a row of
//! `hidden` the recurrent part, and `bias` the bias; the step stores the activated gates in `gates`, which the backward
//! step needs. The backward step replaces them by the gradient of their inputs. The loops process blocks of sixteen
//! numbers that are all loaded before any is stored, so that the compiler need not prove that the rows do not overlap.

use pulp::{Arch, Simd, WithSimd};

use super::f32::{sigmoid_of, tanh_of};
use super::{LANES, dispatched};

type Lanes = [f32; LANES];

/// The place of a block in a row of `width` numbers; the last block may be shorter.
#[derive(Clone, Copy)]
struct Place {
    width: usize,
    at: usize,
    count: usize,
}

/// Loads a block of numbers from the given gate of a row; a short block is filled with zeros.
#[inline(always)]
fn load<const WHOLE: bool>(row: &[f32], block: usize, place: Place) -> Lanes {
    let mut lanes = [0.0; LANES];
    let from = block * place.width + place.at;
    if WHOLE {
        lanes.copy_from_slice(&row[from..from + LANES]);
    } else {
        lanes[..place.count].copy_from_slice(&row[from..from + place.count]);
    }
    lanes
}

#[inline(always)]
fn store<const WHOLE: bool>(row: &mut [f32], block: usize, place: Place, lanes: &Lanes) {
    let from = block * place.width + place.at;
    if WHOLE {
        row[from..from + LANES].copy_from_slice(lanes);
    } else {
        row[from..from + place.count].copy_from_slice(&lanes[..place.count]);
    }
}

/// Visits the blocks of a row: whole blocks, then the last one if it is short.
macro_rules! places {
    ($width:expr, $function:ident($($argument:expr),*)) => {
        let whole = $width - $width % LANES;
        for at in (0..whole).step_by(LANES) {
            $function::<true>($($argument,)* Place { width: $width, at, count: LANES });
        }
        if whole < $width {
            $function::<false>($($argument,)* Place { width: $width, at: whole, count: $width - whole });
        }
    };
}

/// The sum of three rows in a block.
#[inline(always)]
fn sum<const WHOLE: bool>(a: &[f32], b: &[f32], c: &[f32], block: usize, place: Place) -> Lanes {
    let mut sum = load::<WHOLE>(a, block, place);
    let (b, c) = (load::<WHOLE>(b, block, place), load::<WHOLE>(c, block, place));
    for i in 0..LANES {
        sum[i] = sum[i] + b[i] + c[i];
    }
    sum
}

#[inline(always)]
fn sigmoids(mut x: Lanes) -> Lanes {
    for x in &mut x {
        *x = sigmoid_of(*x);
    }
    x
}

#[inline(always)]
fn tanhs(mut x: Lanes) -> Lanes {
    for x in &mut x {
        *x = tanh_of(*x);
    }
    x
}

#[inline(always)]
fn gru_block<const WHOLE: bool>(
    gates: &mut [f32],
    hidden: &[f32],
    bias: &[f32],
    before: &[f32],
    after: &mut [f32],
    place: Place,
) {
    let reset = sigmoids(sum::<WHOLE>(gates, hidden, bias, 0, place));
    let update = sigmoids(sum::<WHOLE>(gates, hidden, bias, 1, place));
    let (mut inner, inner_bias) = (load::<WHOLE>(hidden, 2, place), load::<WHOLE>(bias, 2, place));
    let (mut new, new_bias) = (load::<WHOLE>(gates, 3, place), load::<WHOLE>(bias, 3, place));
    for i in 0..LANES {
        inner[i] += inner_bias[i];
        new[i] = reset[i].mul_add(inner[i], new[i] + new_bias[i]);
    }
    let new = tanhs(new);
    let mut state = load::<WHOLE>(before, 0, place);
    for i in 0..LANES {
        state[i] = update[i].mul_add(state[i] - new[i], new[i]);
    }
    store::<WHOLE>(gates, 0, place, &reset);
    store::<WHOLE>(gates, 1, place, &update);
    store::<WHOLE>(gates, 2, place, &inner);
    store::<WHOLE>(gates, 3, place, &new);
    store::<WHOLE>(after, 0, place, &state);
}

dispatched! {
    /// A step of a GRU. Blocks of `gates` and `bias`: reset, update, the recurrent part of the new state, the input
    /// part of the new state; `hidden` has the first three.
    pub fn gru_step<'k>(
        gates: &'k mut [f32],
        hidden: &'k [f32],
        bias: &'k [f32],
        before: &'k [f32],
        after: &'k mut [f32],
    ) -> () {
        let width = bias.len() / 4;
        let rows = gates.chunks_exact_mut(4 * width).zip(hidden.chunks_exact(3 * width));
        let states = before.chunks_exact(width).zip(after.chunks_exact_mut(width));
        for ((gates, hidden), (before, after)) in rows.zip(states) {
            places!(width, gru_block(gates, hidden, bias, before, after));
        }
    }
}

#[inline(always)]
fn back_gru_block<const WHOLE: bool>(
    gates: &mut [f32],
    before: &[f32],
    d_out: &[f32],
    d_state: &mut [f32],
    place: Place,
) {
    let (mut reset, mut update) = (load::<WHOLE>(gates, 0, place), load::<WHOLE>(gates, 1, place));
    let (mut inner, mut new) = (load::<WHOLE>(gates, 2, place), load::<WHOLE>(gates, 3, place));
    let (before, d_out, mut d_after) =
        (load::<WHOLE>(before, 0, place), load::<WHOLE>(d_out, 0, place), load::<WHOLE>(d_state, 0, place));
    for i in 0..LANES {
        let (r, z, q, n) = (reset[i], update[i], inner[i], new[i]);
        let d = d_after[i] + d_out[i];
        let kept = d * z;
        let d_new = (d - kept) * n.mul_add(-n, 1.0);
        update[i] = (kept - kept * z) * (before[i] - n);
        reset[i] = d_new * q * (r - r * r);
        inner[i] = d_new * r;
        new[i] = d_new;
        d_after[i] = kept;
    }
    store::<WHOLE>(gates, 0, place, &reset);
    store::<WHOLE>(gates, 1, place, &update);
    store::<WHOLE>(gates, 2, place, &inner);
    store::<WHOLE>(gates, 3, place, &new);
    store::<WHOLE>(d_state, 0, place, &d_after);
}

dispatched! {
    /// Backward of [`gru_step`]. `d_out` is the gradient of the state from the layer above, `d_state` that from later
    /// steps; `d_state` becomes the gradient of the state before the step, except for the part through the gates.
    pub fn back_gru_step<'k>(
        gates: &'k mut [f32],
        before: &'k [f32],
        d_out: &'k [f32],
        d_state: &'k mut [f32],
        width: usize,
    ) -> () {
        let rows = gates.chunks_exact_mut(4 * width).zip(before.chunks_exact(width));
        let gradients = d_out.chunks_exact(width).zip(d_state.chunks_exact_mut(width));
        for ((gates, before), (d_out, d_state)) in rows.zip(gradients) {
            places!(width, back_gru_block(gates, before, d_out, d_state));
        }
    }
}

#[inline(always)]
fn lstm_block<const WHOLE: bool>(
    (gates, hidden, bias): (&mut [f32], &[f32], &[f32]),
    before: &[f32],
    (after, out): (&mut [f32], &mut [f32]),
    place: Place,
) {
    let input = sigmoids(sum::<WHOLE>(gates, hidden, bias, 0, place));
    let forget = sigmoids(sum::<WHOLE>(gates, hidden, bias, 1, place));
    let new = tanhs(sum::<WHOLE>(gates, hidden, bias, 2, place));
    let output = sigmoids(sum::<WHOLE>(gates, hidden, bias, 3, place));
    let mut cell = load::<WHOLE>(before, 0, place);
    for i in 0..LANES {
        cell[i] = forget[i].mul_add(cell[i], input[i] * new[i]);
    }
    let mut state = tanhs(cell);
    for i in 0..LANES {
        state[i] *= output[i];
    }
    store::<WHOLE>(gates, 0, place, &input);
    store::<WHOLE>(gates, 1, place, &forget);
    store::<WHOLE>(gates, 2, place, &new);
    store::<WHOLE>(gates, 3, place, &output);
    store::<WHOLE>(after, 0, place, &cell);
    store::<WHOLE>(out, 0, place, &state);
}

dispatched! {
    /// A step of an LSTM. Blocks of `gates`, `hidden` and `bias`: input, forget, new, output. `before` and `after` are
    /// the cell states, `out` is the output.
    pub fn lstm_step<'k>(
        gates: &'k mut [f32],
        hidden: &'k [f32],
        bias: &'k [f32],
        before: &'k [f32],
        after: &'k mut [f32],
        out: &'k mut [f32],
    ) -> () {
        let width = bias.len() / 4;
        let rows = gates.chunks_exact_mut(4 * width).zip(hidden.chunks_exact(4 * width));
        let states = before.chunks_exact(width).zip(after.chunks_exact_mut(width)).zip(out.chunks_exact_mut(width));
        for ((gates, hidden), ((before, after), out)) in rows.zip(states) {
            places!(width, lstm_block((gates, hidden, bias), before, (after, out)));
        }
    }
}

#[inline(always)]
fn back_lstm_block<const WHOLE: bool>(
    gates: &mut [f32],
    (before, after): (&[f32], &[f32]),
    d_out: &[f32],
    (d_state, d_cell): (&mut [f32], &mut [f32]),
    place: Place,
) {
    let (mut input, mut forget) = (load::<WHOLE>(gates, 0, place), load::<WHOLE>(gates, 1, place));
    let (mut new, mut output) = (load::<WHOLE>(gates, 2, place), load::<WHOLE>(gates, 3, place));
    let (before, activated) = (load::<WHOLE>(before, 0, place), tanhs(load::<WHOLE>(after, 0, place)));
    let (d_out, d_later, mut d_after) =
        (load::<WHOLE>(d_out, 0, place), load::<WHOLE>(d_state, 0, place), load::<WHOLE>(d_cell, 0, place));
    for i in 0..LANES {
        let (open, keep, value, out_gate, t) = (input[i], forget[i], new[i], output[i], activated[i]);
        let d = d_out[i] + d_later[i];
        let d_now = (d * out_gate).mul_add(t.mul_add(-t, 1.0), d_after[i]);
        output[i] = d * t * (out_gate - out_gate * out_gate);
        input[i] = d_now * value * (open - open * open);
        forget[i] = d_now * before[i] * (keep - keep * keep);
        new[i] = d_now * open * value.mul_add(-value, 1.0);
        d_after[i] = d_now * keep;
    }
    store::<WHOLE>(gates, 0, place, &input);
    store::<WHOLE>(gates, 1, place, &forget);
    store::<WHOLE>(gates, 2, place, &new);
    store::<WHOLE>(gates, 3, place, &output);
    store::<WHOLE>(d_state, 0, place, &[0.0; LANES]);
    store::<WHOLE>(d_cell, 0, place, &d_after);
}

dispatched! {
    /// Backward of [`lstm_step`]. `d_out` is the gradient of the output from the layer above, `d_state` that from later
    /// steps; `d_state` becomes zero, because it reaches the state before the step only through the gates. `d_cell`
    /// becomes the gradient of the cell state before the step.
    pub fn back_lstm_step<'k>(
        gates: &'k mut [f32],
        before: &'k [f32],
        after: &'k [f32],
        d_out: &'k [f32],
        d_state: &'k mut [f32],
        d_cell: &'k mut [f32],
        width: usize,
    ) -> () {
        let rows = gates.chunks_exact_mut(4 * width).zip(before.chunks_exact(width).zip(after.chunks_exact(width)));
        let gradients = d_state.chunks_exact_mut(width).zip(d_cell.chunks_exact_mut(width));
        for (((gates, states), d_out), (d_state, d_cell)) in rows.zip(d_out.chunks_exact(width)).zip(gradients) {
            places!(width, back_lstm_block(gates, states, d_out, (d_state, d_cell)));
        }
    }
}
