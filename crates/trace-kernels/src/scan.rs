//! The causal convolution and the selective scan of a state-space model (Gu & Dao, 2023), forward and backward.
//!
//! ```text
//! u_t = silu( Σ_j tap_j ⊙ x_{t−K+1+j} + bias )
//! h_t = e^{Δ_t A} ⊙ h_{t−1} + Δ_t u_t B_tᵀ          y_t = h_t C_t + D ⊙ u_t          out_t = y_t ⊙ silu(z_t)
//! ```
//!
//! Shapes: `e` channels, `n` numbers of state per channel; `x`, `u`, `Δ`, `z`, `y` have `e` numbers per row, `B` and
//! `C` have `n`, `A` and `h` are `e × n`. A branch is given by the indices of its rows, in any place.
//!
//! Channels are SIMD lanes: they are independent of each other, any `n` works, and only the gradients of `B` and `C`
//! need sums across lanes. States, rates and their gradients are stored in blocks of `WIDTH` channels,
//! `[block][n][WIDTH]`, where lanes beyond the last channel are 0. A block runs through [`CHUNK`] steps of a branch
//! before the next block, so that its state stays in the first-level cache and rows are still read in order.
//!
//! Cost per row: `e·n` exponentials and about `4·e·n` other operations forward. The backward pass needs every state
//! again. Storing them would write and read `e·n` numbers per row, which takes longer than recomputing them. Therefore
//! the forward pass keeps one state per [`CHUNK`] steps. From these the backward pass, last chunk first, recomputes the
//! states and decays of one block and chunk in a scratch buffer that fits the first-level cache. It costs about twice
//! as much as the forward pass.

use pulp::{Arch, Simd, WithSimd};

use super::f32::{exp, sigmoid_of, softplus_of};
use super::{LANES, dispatched};

/// Channels of a block.
const WIDTH: usize = LANES;
const HALF: usize = WIDTH / 2;

/// Steps between the states that are kept for a backward pass.
pub const CHUNK: usize = 8;

type Lanes = [f32; WIDTH];

/// The sizes of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// `e`: a row of projected inputs holds `x` and then `z`.
    pub channels: usize,
    /// `n`: numbers of state per channel.
    pub states: usize,
    /// Numbers before `B` and `C` in a row of `mixing`.
    pub rank: usize,
}

impl Shape {
    /// Numbers in a row of low-rank step sizes, `B` and `C`.
    pub const fn mixing(&self) -> usize {
        self.rank + 2 * self.states
    }

    /// Numbers of a state in blocks.
    pub const fn state(&self) -> usize {
        self.channels.div_ceil(WIDTH) * self.block()
    }

    /// Numbers of a block of a state.
    const fn block(&self) -> usize {
        self.states * WIDTH
    }

    /// Numbers of scratch for [`scan`].
    pub const fn scratch(&self) -> usize {
        self.state()
    }

    /// Numbers of scratch for [`back_scan`].
    pub const fn back_scratch(&self) -> usize {
        self.state() + (3 * CHUNK + 1) * self.block()
    }
}

/// `2^x` for x ≤ 0 to about one unit in the last place; `x` below −125 is clamped.
#[inline(always)]
fn exp2(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // as in `exp`
    let x = if x < -125.0 { -125.0 } else { x };
    let shifted = x + ROUND;
    let r = x - (shifted - ROUND);
    // Minimax polynomial of degree 5 for 2^r on |r| ≤ 1/2, with its value and slope at 0.
    let value = 1.330_061_6e-3f32
        .mul_add(r, 9.669_694e-3)
        .mul_add(r, 5.550_558_5e-2)
        .mul_add(r, 2.402_228_3e-1)
        .mul_add(r, std::f32::consts::LN_2)
        .mul_add(r, 1.0);
    f32::from_bits(value.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// Loads lanes from a row, padded with zeros.
#[inline(always)]
fn load(row: &[f32]) -> Lanes {
    if let Some(lanes) = row.first_chunk() {
        *lanes
    } else {
        let mut lanes = [0.0; WIDTH];
        lanes[..row.len()].copy_from_slice(row);
        lanes
    }
}

/// Stores lanes into a row, up to its end.
#[inline(always)]
fn store(row: &mut [f32], lanes: &Lanes) {
    if let Some(row) = row.first_chunk_mut() {
        *row = *lanes;
    } else {
        row.copy_from_slice(&lanes[..row.len()]);
    }
}

/// `sum + a ⊙ b`, with both halves of the lanes added.
#[inline(always)]
fn add_halves(sum: &[f32; HALF], a: &Lanes, b: &Lanes) -> [f32; HALF] {
    let mut out = *sum;
    for i in 0..HALF {
        out[i] = a[i + HALF].mul_add(b[i + HALF], a[i].mul_add(b[i], out[i]));
    }
    out
}

#[inline(always)]
fn each(f: impl Fn(usize) -> f32) -> Lanes {
    let mut lanes = [0.0; WIDTH];
    for (i, lane) in lanes.iter_mut().enumerate() {
        *lane = f(i);
    }
    lanes
}

/// `out += a ⊙ b`. (With zips of single numbers the compiler does not vectorize some of these loops.)
#[inline(always)]
fn add_product_of(out: &mut [f32], a: &[f32], b: &[f32]) {
    let (blocks, rest) = out.as_chunks_mut::<WIDTH>();
    let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<WIDTH>(), b.as_chunks::<WIDTH>());
    for ((out, a), b) in blocks.iter_mut().zip(a).zip(b) {
        *out = each(|i| a[i].mul_add(b[i], out[i]));
    }
    for ((out, a), b) in rest.iter_mut().zip(rest_a).zip(rest_b) {
        *out = a.mul_add(*b, *out);
    }
}

dispatched! {
    /// `A / ln 2` in blocks, from `A = −e^log`, so that a decay is a power of two.
    pub fn rates<'k>(out: &'k mut [f32], logs: &'k [f32], shape: Shape) -> () {
        let blocks = out.chunks_exact_mut(shape.block()).zip(logs.chunks(shape.block()));
        for (out, logs) in blocks {
            let (out, _) = out.as_chunks_mut::<WIDTH>();
            for (k, out) in out.iter_mut().enumerate() {
                for (lane, out) in out.iter_mut().enumerate() {
                    let log = logs.get(lane * shape.states + k);
                    *out = log.map_or(0.0, |log| -exp(*log) * std::f32::consts::LOG2_E);
                }
            }
        }
    }
}

/// Adds the gradient of the logarithms of the rates, from the sums of [`back_scan`].
pub fn back_rates(d_logs: &mut [f32], sums: &[f32], rates: &[f32], shape: Shape) {
    let sums = sums.chunks_exact(shape.block()).zip(rates.chunks_exact(shape.block()));
    for (d_logs, (sums, rates)) in d_logs.chunks_mut(shape.block()).zip(sums) {
        for (lane, d_logs) in d_logs.chunks_exact_mut(shape.states).enumerate() {
            for (k, d_log) in d_logs.iter_mut().enumerate() {
                *d_log += sums[k * WIDTH + lane] * rates[k * WIDTH + lane] * std::f32::consts::LN_2;
            }
        }
    }
}

dispatched! {
    /// `rows ← ln(1 + e^(rows + bias))`.
    pub fn step_sizes<'k>(rows: &'k mut [f32], bias: &'k [f32]) -> () {
        for row in rows.chunks_exact_mut(bias.len()) {
            for (x, bias) in row.iter_mut().zip(bias) {
                *x = softplus_of(*x + bias);
            }
        }
    }
}

/// The rows of `x` before a branch and within it.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// The rows, `stride` apart.
    pub x: &'a [f32],
    /// Numbers from one row to the next.
    pub stride: usize,
    /// The rows before the branch, latest last; may be fewer than the convolution reads.
    pub before: &'a [f32],
}

/// `out = bias + Σ_j tap_j ⊙ x_{t−K+1+j}` for step `t` of a branch.
#[inline(always)]
fn convolve_row(out: &mut [f32], window: &Window<'_>, rows: &[usize], t: usize, taps: &[f32], bias: &[f32]) {
    let width = out.len();
    out.copy_from_slice(bias);
    for (back, tap) in taps.chunks_exact(width).rev().enumerate() {
        let x = if back <= t {
            &window.x[rows[t - back] * window.stride..][..width]
        } else if (back - t) * width <= window.before.len() {
            &window.before[window.before.len() - (back - t) * width..][..width]
        } else {
            break;
        };
        add_product_of(out, tap, x);
    }
}

dispatched! {
    /// The convolution of one branch, followed by silu. `taps` is `K × e`; the last tap is that of the row itself.
    pub fn convolve<'k>(
        out: &'k mut [f32],
        window: Window<'k>,
        rows: &'k [usize],
        taps: &'k [f32],
        bias: &'k [f32],
    ) -> () {
        let width = bias.len();
        for (t, row) in rows.iter().enumerate() {
            let out = &mut out[row * width..][..width];
            convolve_row(out, &window, rows, t, taps, bias);
            for x in out {
                *x *= sigmoid_of(*x);
            }
        }
    }
}

dispatched! {
    /// Backward of [`convolve`] for a branch without earlier rows: the rows of `x`, `stride` apart, are replaced by
    /// their gradient; the rows of `d_out` are overwritten. `weights` are taps and bias, and their gradients are added
    /// to `gradients`. `scratch` holds one row.
    pub fn back_convolve<'k>(
        x: &'k mut [f32],
        stride: usize,
        d_out: &'k mut [f32],
        rows: &'k [usize],
        weights: (&'k [f32], &'k [f32]),
        gradients: (&'k mut [f32], &'k mut [f32]),
        scratch: &'k mut [f32],
    ) -> () {
        let ((taps, bias), (d_taps, d_bias)) = (weights, gradients);
        let width = bias.len();
        // Last step first: a step needs `x` at or before itself, and `d_out` at or after itself.
        for (t, row) in rows.iter().enumerate().rev() {
            let window = Window { x: &*x, stride, before: &[] };
            convolve_row(scratch, &window, rows, t, taps, bias);
            let d = &mut d_out[row * width..][..width];
            for (d, c) in d.iter_mut().zip(&*scratch) {
                let s = sigmoid_of(*c);
                *d *= s * (1.0 - s).mul_add(*c, 1.0);
            }
            for (d_bias, d) in d_bias.iter_mut().zip(&*d) {
                *d_bias += d;
            }
            let x = &mut x[row * stride..][..width];
            scratch.fill(0.0);
            let pieces = taps.chunks_exact(width).zip(d_taps.chunks_exact_mut(width)).rev();
            for ((tap, d_tap), later) in pieces.zip(&rows[t..]) {
                let d = &d_out[later * width..][..width];
                add_product_of(d_tap, d, x);
                add_product_of(scratch, d, tap);
            }
            x.copy_from_slice(scratch);
        }
    }
}

/// One step of a block: `h ← 2^(Δ·rate) h + w B`, with `w = Δ u`; returns `h · C`.
#[inline(always)]
fn step(h: &mut [Lanes], rates: &[Lanes], (b, c): (&[f32], &[f32]), delta: &Lanes, w: &Lanes) -> Lanes {
    let mut y = [0.0; WIDTH];
    for (((h, rate), b), c) in h.iter_mut().zip(rates).zip(b).zip(c) {
        let decay = each(|i| exp2(delta[i] * rate[i]));
        let new = each(|i| decay[i].mul_add(h[i], w[i] * b));
        y = each(|i| new[i].mul_add(*c, y[i]));
        *h = new;
    }
    y
}

dispatched! {
    /// Advances a state in blocks by tokens whose `u`, `Δ` and `B` are in contiguous rows.
    pub fn advance<'k>(
        state: &'k mut [f32],
        tokens: (&'k [f32], &'k [f32], &'k [f32]),
        rates: &'k [f32],
        shape: Shape,
    ) -> () {
        let (u, delta, b) = tokens;
        let blocks = state.chunks_exact_mut(shape.block()).zip(rates.chunks_exact(shape.block()));
        for (block, (state, rates)) in blocks.enumerate() {
            let ((h, _), (rates, _)) = (state.as_chunks_mut(), rates.as_chunks());
            let at = block * WIDTH;
            let rows = u.chunks_exact(shape.channels).zip(delta.chunks_exact(shape.channels));
            for ((u, delta), b) in rows.zip(b.chunks_exact(shape.states)) {
                let (u, delta) = (load(&u[at..]), load(&delta[at..]));
                step(h, rates, (b, b), &delta, &each(|i| delta[i] * u[i]));
            }
        }
    }
}

/// The inputs of a scan; row indices are the same in all of them. In a backward pass `delta` and `inputs` are empty,
/// because they are among the gradients.
#[derive(Clone, Copy, Debug)]
pub struct Scanned<'a> {
    /// `u`.
    pub u: &'a [f32],
    /// `Δ`.
    pub delta: &'a [f32],
    /// Rows of `x` and `z`.
    pub inputs: &'a [f32],
    /// Rows of `rank` numbers, `B` and `C`.
    pub mixing: &'a [f32],
    /// `D`.
    pub skip: &'a [f32],
    /// `A` as [`rates`] writes it.
    pub rates: &'a [f32],
}

impl Scanned<'_> {
    #[inline(always)]
    fn b_and_c(&self, row: usize, shape: &Shape) -> (&[f32], &[f32]) {
        self.mixing[row * shape.mixing()..][..shape.mixing()][shape.rank..].split_at(shape.states)
    }
}

/// The states to keep of a branch: one per `every` tokens, in blocks.
#[derive(Debug)]
pub struct Kept<'a> {
    /// The destination.
    pub states: &'a mut [f32],
    /// Tokens from one kept state to the next.
    pub every: usize,
    /// Tokens before the branch; the first state of `states` is that after the first `every` tokens of the sequence.
    pub before: usize,
}

dispatched! {
    /// The scan of one branch, and its gate. `start` is the state before it, `None` for zeros.
    pub fn scan<'k>(
        out: &'k mut [f32],
        scanned: Scanned<'k>,
        rows: &'k [usize],
        start: Option<&'k [f32]>,
        kept: Kept<'k>,
        shape: Shape,
        scratch: &'k mut [f32],
    ) -> () {
        let Shape { channels, .. } = shape;
        let state = &mut scratch[..shape.state()];
        match start {
            Some(start) => state.copy_from_slice(start),
            None => state.fill(0.0),
        }
        let Kept { states, every, before } = kept;
        let mut before = before;
        for rows in rows.chunks(CHUNK) {
            let blocks = state.chunks_exact_mut(shape.block()).zip(scanned.rates.chunks_exact(shape.block()));
            for (block, (h, rates)) in blocks.enumerate() {
                let ((h, _), (rates, _)) = (h.as_chunks_mut(), rates.as_chunks());
                let at = block * WIDTH;
                let end = channels.min(at + WIDTH);
                let skip = load(&scanned.skip[at..end]);
                let (mut slot, mut left) = (before / every, every - before % every);
                for row in rows {
                    let u = load(&scanned.u[row * channels..][at..end]);
                    let delta = load(&scanned.delta[row * channels..][at..end]);
                    let z = load(&scanned.inputs[(2 * row + 1) * channels..][at..end]);
                    let y = step(h, rates, scanned.b_and_c(*row, &shape), &delta, &each(|i| delta[i] * u[i]));
                    let gated = each(|i| skip[i].mul_add(u[i], y[i]) * z[i] * sigmoid_of(z[i]));
                    store(&mut out[row * channels..][at..end], &gated);
                    left -= 1;
                    if left == 0 {
                        let to = slot * shape.state() + block * shape.block();
                        if let Some(to) = states.get_mut(to..to + shape.block()) {
                            to.copy_from_slice(h.as_flattened());
                        }
                        (slot, left) = (slot + 1, every);
                    }
                }
            }
            before += rows.len();
        }
    }
}

/// Gradients that a backward scan writes or adds to.
#[derive(Debug)]
pub struct ScanGradients<'a> {
    /// The gradient of `out`; becomes that of `u`.
    pub out: &'a mut [f32],
    /// `Δ`; becomes the gradient of the input of the softplus.
    pub delta: &'a mut [f32],
    /// Rows of `x` and `z`; `z` is replaced by its gradient.
    pub inputs: &'a mut [f32],
    /// Receives the gradients of `B` and `C`; the numbers before them are unchanged.
    pub mixing: &'a mut [f32],
    /// The gradient of `D`, which is added to.
    pub skip: &'a mut [f32],
    /// Sums for [`back_rates`], which are added to.
    pub rates: &'a mut [f32],
}

dispatched! {
    /// Backward of [`scan`] for a branch that started from zeros; `states` are those kept per [`CHUNK`] steps.
    pub fn back_scan<'k>(
        gradients: ScanGradients<'k>,
        scanned: Scanned<'k>,
        rows: &'k [usize],
        states: &'k [f32],
        shape: Shape,
        scratch: &'k mut [f32],
    ) -> () {
        let Shape { channels, states: n, .. } = shape;
        let ScanGradients { out: d_out, delta: deltas, inputs, mixing: d_mixing, skip: d_skip, rates: d_rates } = gradients;
        let (carries, scratch) = scratch.split_at_mut(shape.state());
        let (scratch, _) = scratch.as_chunks_mut::<WIDTH>();
        let (hs, scratch) = scratch.split_at_mut((CHUNK + 1) * n);
        let (decays, sums) = scratch.split_at_mut(CHUNK * n);
        let (sums, _) = sums.as_flattened_mut().as_chunks_mut::<HALF>();
        let sums = &mut sums[..2 * CHUNK * n];
        carries.fill(0.0);
        for (chunk, rows) in rows.chunks(CHUNK).enumerate().rev() {
            sums.fill([0.0; HALF]);
            let blocks = carries.chunks_exact_mut(shape.block()).zip(d_rates.chunks_exact_mut(shape.block()));
            for (block, (carry, d_rates)) in blocks.enumerate() {
                let (carry, _) = carry.as_chunks_mut::<WIDTH>();
                let (d_rates, _) = d_rates.as_chunks_mut::<WIDTH>();
                let (rates, _) = scanned.rates[block * shape.block()..][..shape.block()].as_chunks::<WIDTH>();
                let at = block * WIDTH;
                let end = channels.min(at + WIDTH);
                let skip = load(&scanned.skip[at..end]);
                if chunk == 0 {
                    hs[..n].fill([0.0; WIDTH]);
                } else {
                    let from = (chunk - 1) * shape.state() + block * shape.block();
                    hs[..n].as_flattened_mut().copy_from_slice(&states[from..][..shape.block()]);
                }
                // Recomputes the states, and the gradient of the gate.
                let mut loaded = [[[0.0; WIDTH]; 4]; CHUNK];
                for (row, [u, delta, z, d_y]) in rows.iter().zip(&mut loaded) {
                    *u = load(&scanned.u[row * channels..][at..end]);
                    *delta = load(&deltas[row * channels..][at..end]);
                    *z = load(&inputs[(2 * row + 1) * channels..][at..end]);
                    *d_y = load(&d_out[row * channels..][at..end]);
                }
                for ((t, row), [u, delta, z, d_y]) in rows.iter().enumerate().zip(&mut loaded) {
                    let w = each(|i| delta[i] * u[i]);
                    let (b, c) = scanned.b_and_c(*row, &shape);
                    let (old, new) = hs[t * n..][..2 * n].split_at_mut(n);
                    let mut y = each(|i| skip[i] * u[i]);
                    for (((((new, old), decay), rate), b), c) in
                        new.iter_mut().zip(old).zip(&mut decays[t * n..]).zip(rates).zip(b).zip(c)
                    {
                        let power = each(|i| exp2(delta[i] * rate[i]));
                        let h = each(|i| power[i].mul_add(old[i], w[i] * b));
                        y = each(|i| h[i].mul_add(*c, y[i]));
                        (*decay, *new) = (power, h);
                    }
                    let s = each(|i| sigmoid_of(z[i]));
                    let d_z = each(|i| d_y[i] * y[i] * s[i] * (1.0 - s[i]).mul_add(z[i], 1.0));
                    store(&mut inputs[(2 * row + 1) * channels..][at..end], &d_z);
                    *d_y = each(|i| d_y[i] * z[i] * s[i]);
                }
                let mut d_skips = load(&d_skip[at..end]);
                for ((t, row), [u, delta, _, d_y]) in rows.iter().enumerate().zip(&loaded).rev() {
                    let w = each(|i| delta[i] * u[i]);
                    let (b, c) = scanned.b_and_c(*row, &shape);
                    let (old, new) = hs[t * n..][..2 * n].split_at(n);
                    let (sum_b, sum_c) = sums[2 * t * n..][..2 * n].split_at_mut(n);
                    let (mut d_w, mut d_delta) = ([0.0; WIDTH], [0.0; WIDTH]);
                    let numbers = carry.iter_mut().zip(&mut *d_rates).zip(sum_b).zip(sum_c);
                    let numbers = numbers.zip(old).zip(new).zip(&decays[t * n..]).zip(rates).zip(b).zip(c);
                    for (((((((((carry, d_rate), sum_b), sum_c), old), new), decay), rate), b), c) in numbers {
                        let d_h = each(|i| d_y[i].mul_add(*c, carry[i]));
                        *sum_c = add_halves(sum_c, d_y, new);
                        *sum_b = add_halves(sum_b, &d_h, &w);
                        d_w = each(|i| d_h[i].mul_add(*b, d_w[i]));
                        let back = each(|i| d_h[i] * decay[i]);
                        *carry = back;
                        let d_power = each(|i| back[i] * old[i]);
                        d_delta = each(|i| d_power[i].mul_add(rate[i], d_delta[i]));
                        *d_rate = each(|i| d_power[i].mul_add(delta[i], d_rate[i]));
                    }
                    let d_u = each(|i| d_w[i].mul_add(delta[i], d_y[i] * skip[i]));
                    store(&mut d_out[row * channels..][at..end], &d_u);
                    // The slope of a softplus that has the value Δ is 1 − e^−Δ.
                    let d_step = each(|i| {
                        let d_delta = d_delta[i].mul_add(std::f32::consts::LN_2, d_w[i] * u[i]);
                        d_delta * slope_of_softplus(delta[i])
                    });
                    store(&mut deltas[row * channels..][at..end], &d_step);
                    for i in 0..WIDTH {
                        d_skips[i] = d_y[i].mul_add(u[i], d_skips[i]);
                    }
                }
                store(&mut d_skip[at..end], &d_skips);
            }
            for (row, sums) in rows.iter().zip(sums.chunks_exact(2 * n)) {
                let d_mixing = &mut d_mixing[row * shape.mixing()..][..shape.mixing()][shape.rank..];
                for (d, sum) in d_mixing.iter_mut().zip(sums) {
                    *d = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
                }
            }
        }
    }
}

/// `1 − e^−x` for x ≥ 0.
#[inline(always)]
fn slope_of_softplus(x: f32) -> f32 {
    // Near zero the difference would cancel; the series is exact there.
    let near = x * x.mul_add(x.mul_add(x.mul_add(-1.0 / 24.0, 1.0 / 6.0), -0.5), 1.0);
    if x < 0.05 { near } else { 1.0 - exp(-x) }
}

#[cfg(test)]
mod tests;
