//! Sums of exponentials and dot products over slices of f64, for the synthetic process.

use pulp::{Arch, Simd, WithSimd};
use trace_core::EventScore;

use super::{LANES, dispatched};

/// `e^x` for `x ≤ 0`, to about one unit in the last place; `x` below −708 is clamped, and the result is negligible next
/// to the `e^0` that every sum here contains.
#[inline(always)]
fn exp(x: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 · 2^52: adding it leaves the nearest integer in the low bits
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // Taylor coefficients 1/13! … 1/2!; on |r| ≤ ln2/2 the remainder is below 2^-58.
    const COEFFICIENTS: [f64; 12] = [
        1.605_904_383_682_161_5e-10,
        2.087_675_698_786_81e-9,
        2.505_210_838_544_172e-8,
        2.755_731_922_398_589e-7,
        2.755_731_922_398_589_3e-6,
        2.480_158_730_158_73e-5,
        1.984_126_984_126_984e-4,
        1.388_888_888_888_889e-3,
        8.333_333_333_333_333e-3,
        4.166_666_666_666_666_4e-2,
        1.666_666_666_666_666_6e-1,
        0.5,
    ];
    let x = if x < -708.0 { -708.0 } else { x };
    let shifted = x.mul_add(std::f64::consts::LOG2_E, ROUND);
    let power = shifted - ROUND;
    let r = power.mul_add(-LN2_LOW, power.mul_add(-LN2_HIGH, x));
    let mut series = COEFFICIENTS[0];
    let mut index = 1;
    while index < COEFFICIENTS.len() {
        series = series.mul_add(r, COEFFICIENTS[index]);
        index += 1;
    }
    let value = (series * r).mul_add(r, r) + 1.0;
    // The low bits of `shifted` hold the power of two; shifted left they are the exponent.
    let scale = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
    value * scale
}

#[inline(always)]
fn reduce(mut lanes: [f64; LANES], combine: fn(f64, f64) -> f64) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = combine(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn add(a: f64, b: f64) -> f64 {
    a + b
}

/// The larger number; unlike `f64::max` it is a single instruction, and a NaN in `b` is ignored.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

dispatched! {
    /// The largest value; minus infinity for an empty slice.
    pub fn maximum<'k>(row: &'k [f64]) -> f64 {
        let (blocks, rest) = row.as_chunks::<LANES>();
        let mut lanes = [f64::NEG_INFINITY; LANES];
        for block in blocks {
            for i in 0..LANES {
                lanes[i] = larger(lanes[i], block[i]);
            }
        }
        let mut high = reduce(lanes, larger);
        for x in rest {
            high = larger(high, *x);
        }
        high
    }
}

dispatched! {
    /// `Σ e^(x − shift)`, for a shift not below the largest value.
    fn sum_exp<'k>(row: &'k [f64], shift: f64) -> f64 {
        let (blocks, rest) = row.as_chunks::<LANES>();
        let mut lanes = [0.0; LANES];
        for block in blocks {
            for i in 0..LANES {
                lanes[i] += exp(block[i] - shift);
            }
        }
        let mut sum = reduce(lanes, add);
        for x in rest {
            sum += exp(x - shift);
        }
        sum
    }
}

dispatched! {
    /// `Σ a · b` over the shorter of the two.
    pub fn dot<'k>(a: &'k [f64], b: &'k [f64]) -> f64 {
        let ((x, rest_x), (y, rest_y)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        let mut lanes = [0.0; LANES];
        for (p, q) in x.iter().zip(y) {
            for i in 0..LANES {
                lanes[i] = p[i].mul_add(q[i], lanes[i]);
            }
        }
        let mut sum = reduce(lanes, add);
        for (p, q) in rest_x.iter().zip(rest_y) {
            sum = p.mul_add(*q, sum);
        }
        sum
    }
}

dispatched! {
    /// Turns log-weights into weights `e^(x − high)` in place and returns their sum.
    fn exponentiate_below<'k>(row: &'k mut [f64], high: f64) -> f64 {
        let (blocks, rest) = row.as_chunks_mut::<LANES>();
        let mut lanes = [0.0; LANES];
        for block in blocks {
            for i in 0..LANES {
                block[i] = exp(block[i] - high);
                lanes[i] += block[i];
            }
        }
        let mut sum = reduce(lanes, add);
        for value in rest {
            *value = exp(*value - high);
            sum += *value;
        }
        sum
    }
}

/// Turns log-weights into weights `e^(x − max)` in place and returns `(max, sum of weights)`.
pub fn exponentiate(row: &mut [f64]) -> (f64, f64) {
    let high = maximum(row);
    (high, exponentiate_below(row, high))
}

/// The score of the target, from the log-sum of all other weights. `row` is unchanged afterwards.
pub fn score_row(row: &mut [f64], target: usize) -> EventScore {
    let event = std::mem::replace(&mut row[target], f64::NEG_INFINITY);
    let high = maximum(row);
    let others = high + sum_exp(row, high).ln();
    row[target] = event;
    EventScore::from_log_weights(event, others)
}

/// `log Σ e^x`.
pub fn log_sum_exp(row: &[f64]) -> f64 {
    let high = maximum(row);
    high + sum_exp(row, high).ln()
}

/// Turns log-weights into log-probabilities in place.
pub fn normalize(row: &mut [f64]) {
    let total = log_sum_exp(row);
    for value in row {
        *value -= total;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_exponential_is_exact_to_rounding() {
        let mut x = 0.0f64;
        while x > -707.0 {
            let (fast, true_value) = (exp(x), x.exp());
            assert!((fast - true_value).abs() <= 4e-16 * true_value, "{x}: {fast} {true_value}");
            x -= 0.137;
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f64::NEG_INFINITY) < 1e-300);
    }

    proptest! {
        #[test]
        fn kernels_equal_their_definition(row in proptest::collection::vec(-80.0..80.0f64, 2..70), pick in 0usize..70) {
            let target = pick % row.len();
            let mut scratch = row.clone();
            let fast = score_row(&mut scratch, target);
            let slow = EventScore::from_row(&row, target);
            prop_assert_eq!(&scratch, &row);
            prop_assert!((fast.log_p - slow.log_p).abs() < 1e-12 * (1.0 + slow.log_p.abs()));
            prop_assert!((fast.log_not_p - slow.log_not_p).abs() < 1e-12 * (1.0 + slow.log_not_p.abs()));
            normalize(&mut scratch);
            prop_assert!((scratch[target] - slow.log_p).abs() < 1e-12 * (1.0 + slow.log_p.abs()));
            let mut weights = row.clone();
            let (high, sum) = exponentiate(&mut weights);
            prop_assert!((high + sum.ln() - log_sum_exp(&row)).abs() < 1e-12);
            let plain: f64 = row.iter().zip(&weights).map(|(a, b)| a * b).sum();
            prop_assert!((dot(&row, &weights) - plain).abs() < 1e-9);
        }
    }
}
