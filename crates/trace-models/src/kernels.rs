//! The hot loops: matrix products and sums of exponentials over slices of f64.
//!
//! All `unsafe` of the workspace is in this file. SIMD comes from run-time detection: `gemm` picks its own kernels,
//! and `pulp` compiles the loops below for each instruction set. Sums run over sixteen fixed lanes, so that their
//! order, and with it the result, does not depend on the width of a register.
#![allow(clippy::inline_always)] // only what is inlined into the dispatched function is compiled for its features

use pulp::{Arch, Simd, WithSimd};
use trace_core::EventScore;

const LANES: usize = 16;

/// `out += left · right`, all row-major: `left` is `rows × depth`, `right` is `depth × columns`.
pub(crate) fn add_product(out: &mut [f64], left: &[f64], right: &[f64], rows: usize, depth: usize, columns: usize) {
    assert_eq!(out.len(), rows * columns);
    assert_eq!(left.len(), rows * depth);
    assert_eq!(right.len(), depth * columns);
    if out.is_empty() {
        return;
    }
    #[expect(unsafe_code)]
    // SAFETY: the pointers come from slices whose lengths were just checked to be those of row-major matrices with
    // these shapes and strides, and the borrow checker keeps `out` apart from the other two.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            depth,
            out.as_mut_ptr(),
            1,
            columns as isize,
            true,
            left.as_ptr(),
            1,
            depth as isize,
            right.as_ptr(),
            1,
            columns as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// `e^x` for `x ≤ 0`, to about one unit in the last place; below −708 it stays at the smallest normal number, which
/// vanishes beside the `e^0` that every sum here contains.
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
    // The low bits of `shifted` hold the power of two; shifted up they become an exponent.
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

/// The larger one; unlike `f64::max` it is a single instruction, and a NaN in `b` is dropped.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

/// Defines a function whose body is compiled for each instruction set and picked at run time. (A closure would do if
/// it could be marked as always inlined; without that its `mul_add`s become calls.)
macro_rules! dispatched {
    ($(#[$doc:meta])* $visible:vis fn $name:ident<$life:lifetime>($($argument:ident: $type:ty),*) -> $output:ty $body:block) => {
        $(#[$doc])*
        $visible fn $name<$life>($($argument: $type),*) -> $output {
            struct Kernel<$life> {
                $($argument: $type,)*
                _borrowed: std::marker::PhantomData<&$life ()>,
            }
            impl<$life> WithSimd for Kernel<$life> {
                type Output = $output;

                #[inline(always)]
                fn with_simd<S: Simd>(self, _: S) -> $output {
                    let Self { $($argument,)* .. } = self;
                    $body
                }
            }
            Arch::new().dispatch(Kernel { $($argument,)* _borrowed: std::marker::PhantomData })
        }
    };
}

dispatched! {
    /// The largest value; minus infinity for none.
    pub(crate) fn maximum<'k>(row: &'k [f64]) -> f64 {
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
    pub(crate) fn dot<'k>(a: &'k [f64], b: &'k [f64]) -> f64 {
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
pub(crate) fn exponentiate(row: &mut [f64]) -> (f64, f64) {
    let high = maximum(row);
    (high, exponentiate_below(row, high))
}

/// The log-sum of all weights but the target's, and the target's score. `row` is left as it was.
pub(crate) fn score_row(row: &mut [f64], target: usize) -> EventScore {
    let event = std::mem::replace(&mut row[target], f64::NEG_INFINITY);
    let high = maximum(row);
    let others = high + sum_exp(row, high).ln();
    row[target] = event;
    EventScore::from_log_weights(event, others)
}

/// `log Σ e^x`.
pub(crate) fn log_sum_exp(row: &[f64]) -> f64 {
    let high = maximum(row);
    high + sum_exp(row, high).ln()
}

/// Turns log-weights into log-probabilities in place.
pub(crate) fn normalise(row: &mut [f64]) {
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
            normalise(&mut scratch);
            prop_assert!((scratch[target] - slow.log_p).abs() < 1e-12 * (1.0 + slow.log_p.abs()));
            let mut weights = row.clone();
            let (high, sum) = exponentiate(&mut weights);
            prop_assert!((high + sum.ln() - log_sum_exp(&row)).abs() < 1e-12);
            let plain: f64 = row.iter().zip(&weights).map(|(a, b)| a * b).sum();
            prop_assert!((dot(&row, &weights) - plain).abs() < 1e-9);
        }

        #[test]
        fn products_equal_their_definition(rows in 1usize..9, depth in 1usize..20, columns in 1usize..40, salt in 0u32..1000) {
            let value = |i: usize| f64::from((i as u32 * 37 + salt) % 101) / 50.0 - 1.0;
            let left: Vec<f64> = (0..rows * depth).map(value).collect();
            let right: Vec<f64> = (0..depth * columns).map(|i| value(i + 7)).collect();
            let start: Vec<f64> = (0..rows * columns).map(|i| value(i + 3)).collect();
            let mut out = start.clone();
            add_product(&mut out, &left, &right, rows, depth, columns);
            for r in 0..rows {
                for c in 0..columns {
                    let sum: f64 = (0..depth).map(|d| left[r * depth + d] * right[d * columns + c]).sum();
                    prop_assert!((out[r * columns + c] - start[r * columns + c] - sum).abs() < 1e-12);
                }
            }
        }
    }
}
