//! Operations on rows of f32 between the matrix products of a network, forward and backward.
//!
//! A *row* is one position of one sequence; matrices are row-major. Functions that start with `back_` take the
//! gradient of the loss with respect to an output, and add to or replace the gradient of the inputs.

use pulp::{Arch, Simd, WithSimd};

use super::{LANES, dispatched};

/// `e^x` to about two units in the last place, for x in [−87, 88]; other x are clamped to that range.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2^23: adding it leaves the nearest integer in the low bits
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let power = shifted - ROUND;
    let r = power.mul_add(-LN2_LOW, power.mul_add(-LN2_HIGH, x));
    // Minimax polynomial of degree 5 for (e^r − 1 − r) / r² on |r| ≤ ln2/2.
    let series = 1.987_569_1e-4f32
        .mul_add(r, 1.398_199_9e-3)
        .mul_add(r, 8.333_452e-3)
        .mul_add(r, 4.166_579_6e-2)
        .mul_add(r, 1.666_666_5e-1)
        .mul_add(r, 0.5);
    let value = series.mul_add(r * r, r) + 1.0;
    value * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

#[inline(always)]
pub(crate) fn sigmoid_of(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[inline(always)]
pub(crate) fn tanh_of(x: f32) -> f32 {
    // Near zero 1 − 2/(1+e^2x) would cancel; the series is exact there.
    let far = 1.0 - 2.0 / (1.0 + exp(2.0 * x));
    let square = x * x;
    let near = x * (square.mul_add(square.mul_add(square.mul_add(-17.0 / 315.0, 2.0 / 15.0), -1.0 / 3.0), 1.0));
    if square < 0.01 { near } else { far }
}

/// `ln(1 + e^x)` from `e^−|x|`, by a continued series for the logarithm of one plus a number in (0, 1].
#[inline(always)]
pub(crate) fn softplus_of(x: f32) -> f32 {
    let high = if x > 0.0 { x } else { 0.0 };
    let u = exp(if x > 0.0 { -x } else { x });
    // ln(1+u) = 2 atanh(u / (2+u)); the argument is at most 1/3.
    let z = u / (2.0 + u);
    let s = z * z;
    let series = (1.0 / 13.0f32)
        .mul_add(s, 1.0 / 11.0)
        .mul_add(s, 1.0 / 9.0)
        .mul_add(s, 1.0 / 7.0)
        .mul_add(s, 0.2)
        .mul_add(s, 1.0 / 3.0)
        .mul_add(s, 1.0);
    high + 2.0 * z * series
}

#[inline(always)]
pub(crate) fn reduce(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

#[inline(always)]
pub(crate) fn dot_of(a: &[f32], b: &[f32]) -> f32 {
    let ((x, rest_x), (y, rest_y)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [0.0; LANES];
    for (p, q) in x.iter().zip(y) {
        for i in 0..LANES {
            lanes[i] = p[i].mul_add(q[i], lanes[i]);
        }
    }
    let mut sum = reduce(lanes);
    for (p, q) in rest_x.iter().zip(rest_y) {
        sum = p.mul_add(*q, sum);
    }
    sum
}

#[inline(always)]
fn maximum_of(row: &[f32]) -> f32 {
    let (blocks, rest) = row.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for block in blocks {
        for i in 0..LANES {
            lanes[i] = larger(lanes[i], block[i]);
        }
    }
    let mut high = f32::NEG_INFINITY;
    for x in lanes.iter().chain(rest) {
        high = larger(high, *x);
    }
    high
}

/// Replaces `row` by `e^(x − high)` and returns the sum, which is accumulated in f64 between blocks of 256 numbers.
#[inline(always)]
fn exponentiate_of(row: &mut [f32], high: f32) -> f64 {
    let mut sum = 0.0f64;
    for piece in row.chunks_mut(LANES * 16) {
        let (blocks, rest) = piece.as_chunks_mut::<LANES>();
        let mut lanes = [0.0f32; LANES];
        for block in blocks {
            for i in 0..LANES {
                block[i] = exp(block[i] - high);
                lanes[i] += block[i];
            }
        }
        let mut part = reduce(lanes);
        for x in rest {
            *x = exp(*x - high);
            part += *x;
        }
        sum += f64::from(part);
    }
    sum
}

dispatched! {
    /// Root-mean-square norm of each row: `out = x · gain / sqrt(mean(x²) + ε)`; keeps the inverse roots.
    pub fn rms_norm<'k>(
        out: &'k mut [f32],
        inverse: &'k mut [f32],
        x: &'k [f32],
        gain: &'k [f32],
        epsilon: f32,
    ) -> () {
        let width = gain.len();
        for ((out, x), inverse) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)).zip(inverse) {
            *inverse = 1.0 / (dot_of(x, x) / width as f32 + epsilon).sqrt();
            for ((out, x), gain) in out.iter_mut().zip(x).zip(gain) {
                *out = x * *inverse * gain;
            }
        }
    }
}

dispatched! {
    /// Backward of [`rms_norm`]: adds to `d_x` and `d_gain`.
    pub fn back_rms_norm<'k>(
        d_x: &'k mut [f32],
        d_gain: &'k mut [f32],
        d_out: &'k [f32],
        x: &'k [f32],
        inverse: &'k [f32],
        gain: &'k [f32],
    ) -> () {
        let width = gain.len();
        let d_gain = &mut d_gain[..width]; // with a known length the loops below check no index
        let rows = d_x.chunks_exact_mut(width).zip(d_out.chunks_exact(width)).zip(x.chunks_exact(width));
        for (((d_x, d_out), x), inverse) in rows.zip(inverse) {
            let mut along = [0.0f32; LANES];
            let mut rest = 0.0f32;
            let whole = width - width % LANES;
            for at in (0..whole).step_by(LANES) {
                let (d, v, g) = (&d_out[at..at + LANES], &x[at..at + LANES], &gain[at..at + LANES]);
                for i in 0..LANES {
                    along[i] = (d[i] * g[i]).mul_add(v[i], along[i]);
                }
            }
            for i in whole..width {
                rest = (d_out[i] * gain[i]).mul_add(x[i], rest);
            }
            let pull = (reduce(along) + rest) * inverse * inverse * inverse / width as f32;
            for i in 0..width {
                d_gain[i] = (d_out[i] * inverse).mul_add(x[i], d_gain[i]);
                d_x[i] += (d_out[i] * gain[i]).mul_add(*inverse, -(x[i] * pull));
            }
        }
    }
}

dispatched! {
    /// SwiGLU: each row of `both` holds gates and then values; `out = silu(gate) · value`.
    pub fn swiglu<'k>(out: &'k mut [f32], both: &'k [f32], width: usize) -> () {
        for (out, both) in out.chunks_exact_mut(width).zip(both.chunks_exact(2 * width)) {
            let (gate, value) = both.split_at(width);
            for i in 0..width {
                out[i] = gate[i] * sigmoid_of(gate[i]) * value[i];
            }
        }
    }
}

dispatched! {
    /// Backward of [`swiglu`]: `both` is replaced by its gradient.
    pub fn back_swiglu<'k>(both: &'k mut [f32], d_out: &'k [f32], width: usize) -> () {
        for (d_out, both) in d_out.chunks_exact(width).zip(both.chunks_exact_mut(2 * width)) {
            let (gate, value) = both.split_at_mut(width);
            for i in 0..width {
                let s = sigmoid_of(gate[i]);
                let silu = gate[i] * s;
                let slope = s * (gate[i] - silu + 1.0);
                gate[i] = d_out[i] * value[i] * slope;
                value[i] = d_out[i] * silu;
            }
        }
    }
}

dispatched! {
    /// Rotates pairs `(i, i + half)` of each head by the angle of the row's position; `turn` is 1, or −1 to undo it.
    /// `row` holds `heads` heads; `cosines` and `sines` hold half a head each.
    pub fn rotate<'k>(row: &'k mut [f32], cosines: &'k [f32], sines: &'k [f32], turn: f32) -> () {
        let half = cosines.len();
        for head in row.chunks_exact_mut(2 * half) {
            let (low, high) = head.split_at_mut(half);
            for i in 0..half {
                let (a, b, sine) = (low[i], high[i], turn * sines[i]);
                low[i] = a.mul_add(cosines[i], -(b * sine));
                high[i] = b.mul_add(cosines[i], a * sine);
            }
        }
    }
}

dispatched! {
    /// Softmax over the first numbers of each row: `first` numbers in the first row and one more in each next row. The
    /// other numbers become 0.
    pub fn causal_softmax<'k>(scores: &'k mut [f32], columns: usize, first: usize) -> () {
        for (index, row) in scores.chunks_exact_mut(columns).enumerate() {
            let (row, rest) = row.split_at_mut((first + index).min(columns));
            rest.fill(0.0);
            let high = maximum_of(row);
            let inverse = (1.0 / exponentiate_of(row, high)) as f32;
            for x in row {
                *x *= inverse;
            }
        }
    }
}

dispatched! {
    /// Backward of a softmax: replaces the gradient of the weights by that of the scores.
    pub fn back_softmax<'k>(d_weights: &'k mut [f32], weights: &'k [f32], columns: usize) -> () {
        for (d_weights, weights) in d_weights.chunks_exact_mut(columns).zip(weights.chunks_exact(columns)) {
            let mean = dot_of(d_weights, weights);
            for (d, w) in d_weights.iter_mut().zip(weights) {
                *d = w * (*d - mean);
            }
        }
    }
}

/// The state of a softmax over tiles for one row: the largest score so far, and the sum of `e^(score − largest)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoftSum {
    /// The largest score so far.
    pub high: f32,
    /// The sum of exponentials relative to it.
    pub sum: f64,
}

impl SoftSum {
    /// The state before the first score.
    pub const EMPTY: Self = Self { high: f32::NEG_INFINITY, sum: 0.0 };
}

dispatched! {
    /// Adds a tile of scores to the softmax of each row. Of the tile's `columns`, the first row uses `first` and each
    /// next row one more. The scores become `e^(score − largest so far)`, and the row's `width` outputs so far are
    /// rescaled to match.
    pub fn fold_scores<'k>(
        scores: &'k mut [f32],
        columns: usize,
        first: usize,
        states: &'k mut [SoftSum],
        out: &'k mut [f32],
        width: usize,
    ) -> () {
        let rows = scores.chunks_exact_mut(columns).zip(states).zip(out.chunks_exact_mut(width));
        for (index, ((row, state), out)) in rows.enumerate() {
            let (row, rest) = row.split_at_mut(first.saturating_add(index).min(columns));
            rest.fill(0.0);
            let high = maximum_of(row);
            if high > state.high {
                let factor = f64::from(state.high - high).exp();
                state.high = high;
                state.sum *= factor;
                for x in out {
                    *x *= factor as f32;
                }
            }
            state.sum += exponentiate_of(row, state.high);
        }
    }
}

/// The layout of one branch in the rows of a head: strides, and the number of values.
#[derive(Clone, Copy, Debug)]
pub struct BranchShape {
    /// Numbers of a head.
    pub width: usize,
    /// Positions before the branch, shared with other branches; their scores come first in a row of scores.
    pub prefix: usize,
    /// Numbers from one row of scores to the next.
    pub score_stride: usize,
    /// Numbers from one row of queries, keys and values to the next.
    pub stride: usize,
    /// Numbers from one row of outputs to the next.
    pub out_stride: usize,
    /// The factor of scores.
    pub scale: f32,
}

dispatched! {
    /// Attention weights of one branch's positions to a shared prefix and to each other. Each row of `scores` holds its
    /// scores with the prefix; the scores with the branch's positions up to itself are added, and all become weights.
    pub fn branch_attention<'k>(scores: &'k mut [f32], queries: &'k [f32], keys: &'k [f32], shape: BranchShape) -> () {
        let BranchShape { width, prefix, score_stride, stride, scale, .. } = shape;
        for (t, row) in scores.chunks_mut(score_stride).enumerate() {
            let query = &queries[t * stride..][..width];
            for u in 0..=t {
                row[prefix + u] = scale * dot_of(query, &keys[u * stride..][..width]);
            }
            let (row, rest) = row.split_at_mut(prefix + t + 1);
            rest.fill(0.0); // a backward pass multiplies whole rows
            let high = maximum_of(row);
            let inverse = (1.0 / exponentiate_of(row, high)) as f32;
            for x in row {
                *x *= inverse;
            }
        }
    }
}

dispatched! {
    /// `out += Σ weight · value` over the branch's own positions, with the weights of [`branch_attention`].
    pub fn branch_values<'k>(out: &'k mut [f32], weights: &'k [f32], values: &'k [f32], shape: BranchShape) -> () {
        let BranchShape { width, prefix, score_stride, stride, out_stride, .. } = shape;
        for (t, row) in weights.chunks(score_stride).enumerate() {
            let out = &mut out[t * out_stride..][..width];
            for u in 0..=t {
                let weight = row[prefix + u];
                for (out, value) in out.iter_mut().zip(&values[u * stride..][..width]) {
                    *out = weight.mul_add(*value, *out);
                }
            }
        }
    }
}

/// The state of the fused head for one row of logits: the logit of the target, the largest other logit, and the sum of
/// `e^(x − largest)` over the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowSum {
    /// The logit of the target.
    pub target: f32,
    /// The largest other logit so far.
    pub high: f32,
    /// The sum of the exponentials of the others, relative to it.
    pub sum: f64,
}

impl RowSum {
    /// The state before the first logit.
    pub const EMPTY: Self = Self { target: f32::NEG_INFINITY, high: f32::NEG_INFINITY, sum: 0.0 };
}

dispatched! {
    /// Adds a tile of a row of logits to its [`RowSum`]; `target` is the index of the row's target in the tile, if it
    /// is there. The tile is overwritten.
    fn fold_tile<'k>(state: RowSum, tile: &'k mut [f32], target: Option<usize>) -> RowSum {
        let mut state = state;
        if let Some(target) = target {
            state.target = tile[target];
            tile[target] = f32::NEG_INFINITY;
        }
        let high = maximum_of(tile);
        if high == f32::NEG_INFINITY {
            return state; // the tile held only the target
        }
        if high > state.high {
            state.sum *= f64::from(state.high - high).exp();
            state.high = high;
        }
        if let Some(target) = target {
            // `exp` returns a small positive number instead of 0 here; it must not be counted.
            let sum = exponentiate_of(tile, state.high);
            state.sum += sum - f64::from(tile[target]);
        } else {
            state.sum += exponentiate_of(tile, state.high);
        }
        state
    }
}

/// Adds a tile of `columns` logits per row to the rows' sums; `first` is the event type of the tile's first column.
pub fn fold_tiles(states: &mut [RowSum], tile: &mut [f32], columns: usize, first: usize, targets: &[u32]) {
    for ((state, tile), target) in states.iter_mut().zip(tile.chunks_exact_mut(columns)).zip(targets) {
        let target = (*target as usize).checked_sub(first).filter(|at| *at < columns);
        *state = fold_tile(*state, tile, target);
    }
}

dispatched! {
    /// Cross-entropy of each row of logits, which become `scale · (softmax − target)`; returns the sum of losses.
    pub fn cross_entropy<'k>(logits: &'k mut [f32], columns: usize, targets: &'k [u32], scale: f32) -> f64 {
        let mut loss = 0.0;
        for (row, target) in logits.chunks_exact_mut(columns).zip(targets) {
            let high = maximum_of(row);
            let own = row[*target as usize];
            let sum = exponentiate_of(row, high);
            loss += sum.ln() + f64::from(high) - f64::from(own);
            let factor = (f64::from(scale) / sum) as f32;
            for x in row.iter_mut() {
                *x *= factor;
            }
            row[*target as usize] -= scale;
        }
        loss
    }
}

dispatched! {
    /// `out += x`.
    pub fn add<'k>(out: &'k mut [f32], x: &'k [f32]) -> () {
        for (out, x) in out.iter_mut().zip(x) {
            *out += x;
        }
    }
}

dispatched! {
    /// `out += x · y`.
    pub fn add_scaled<'k>(out: &'k mut [f32], x: &'k [f32], y: f32) -> () {
        for (out, x) in out.iter_mut().zip(x) {
            *out = x.mul_add(y, *out);
        }
    }
}

dispatched! {
    /// `x ← x · y`.
    pub fn scale<'k>(x: &'k mut [f32], y: f32) -> () {
        for x in x {
            *x *= y;
        }
    }
}

/// Adds `row` to each row.
pub fn add_to_rows(rows: &mut [f32], row: &[f32]) {
    for one in rows.chunks_exact_mut(row.len()) {
        add(one, row);
    }
}

/// Adds all rows to `out`.
pub fn sum_of_rows(out: &mut [f32], rows: &[f32]) {
    for one in rows.chunks_exact(out.len()) {
        add(out, one);
    }
}

dispatched! {
    /// `Σ x²` in f64.
    pub fn sum_of_squares<'k>(x: &'k [f32]) -> f64 {
        x.chunks(LANES * 16).map(|piece| f64::from(dot_of(piece, piece))).sum()
    }
}

/// The constants of one step of AdamW.
#[derive(Clone, Copy, Debug)]
pub struct AdamStep {
    /// Decay of the mean gradient.
    pub beta1: f32,
    /// Decay of the mean square.
    pub beta2: f32,
    /// Keeps a step from dividing by zero.
    pub epsilon: f32,
    /// Learning rate divided by the first moment's bias correction.
    pub rate: f32,
    /// Inverse square root of the second moment's bias correction.
    pub root_correction: f32,
    /// Factor of the weights: what weight decay leaves.
    pub keep: f32,
    /// Factor of the gradient: what clipping leaves.
    pub clip: f32,
}

dispatched! {
    /// AdamW on a run of weights.
    pub fn adam_step<'k>(
        weights: &'k mut [f32],
        gradient: &'k [f32],
        first: &'k mut [f32],
        second: &'k mut [f32],
        step: AdamStep,
    ) -> () {
        let AdamStep { beta1, beta2, epsilon, rate, root_correction, keep, clip } = step;
        for (((w, g), m), v) in weights.iter_mut().zip(gradient).zip(first).zip(second) {
            let g = g * clip;
            *m = beta1.mul_add(*m, (1.0 - beta1) * g);
            *v = beta2.mul_add(*v, (1.0 - beta2) * g * g);
            *w = w.mul_add(keep, -(rate * *m / v.sqrt().mul_add(root_correction, epsilon)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(a: f32, b: f64, tolerance: f64) -> bool {
        (f64::from(a) - b).abs() <= tolerance * (1.0 + b.abs())
    }

    #[test]
    fn scalar_functions_are_exact_to_rounding() {
        let mut x = -86.0f32;
        while x < 87.0 {
            let wide = f64::from(x);
            assert!((f64::from(exp(x)) / wide.exp() - 1.0).abs() < 4e-7, "exp {x}");
            assert!(close(sigmoid_of(x), 1.0 / (1.0 + (-wide).exp()), 2e-7), "sigmoid {x}");
            assert!((f64::from(tanh_of(x)) - wide.tanh()).abs() < 3e-7, "tanh {x}");
            assert!(close(softplus_of(x), wide.exp().ln_1p(), 4e-7), "softplus {x}");
            x += 0.0173;
        }
        assert_eq!(exp(0.0), 1.0);
    }

    proptest! {
        #[test]
        fn tiles_give_the_sum_over_the_others(
            row in proptest::collection::vec(-30.0..30.0f32, 2..90),
            (pick, tile) in (0usize..90, 1usize..40),
        ) {
            let target = pick % row.len();
            let mut state = [RowSum::EMPTY];
            for (index, part) in row.chunks(tile).enumerate() {
                let mut part = part.to_vec();
                let columns = part.len();
                fold_tiles(&mut state, &mut part, columns, index * tile, &[target as u32]);
            }
            let others: f64 = row.iter().enumerate().filter(|(i, _)| *i != target).map(|(_, x)| f64::from(*x).exp()).sum();
            prop_assert_eq!(state[0].target, row[target]);
            prop_assert!((f64::from(state[0].high) + state[0].sum.ln() - others.ln()).abs() < 2e-6);
        }

        #[test]
        fn cross_entropy_and_its_gradient(row in proptest::collection::vec(-8.0..8.0f32, 2..70), pick in 0usize..70) {
            let target = pick % row.len();
            let mut gradient = row.clone();
            let loss = cross_entropy(&mut gradient, row.len(), &[target as u32], 0.5);
            let total: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
            prop_assert!((loss - (total.ln() - f64::from(row[target]))).abs() < 1e-5);
            for (i, (x, g)) in row.iter().zip(&gradient).enumerate() {
                let expected = 0.5 * (f64::from(*x).exp() / total - f64::from(u8::from(i == target)));
                prop_assert!(close(*g, expected, 1e-6));
            }
        }
    }
}
