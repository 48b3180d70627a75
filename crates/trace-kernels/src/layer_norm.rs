//! Layer norm of rows (Ba et al., 2016), forward and backward:
//!
//! ```text
//! x̂ = (x − mean) / √(variance + ε)          out = x̂ · gain + bias
//! ```

use pulp::{Arch, Simd, WithSimd};

use super::f32::{dot_of, reduce};
use super::{LANES, dispatched};

/// Subtracts the mean from a row and returns `1 / √(variance + ε)`.
#[inline(always)]
fn center_of(row: &mut [f32], epsilon: f32) -> f32 {
    let width = row.len();
    let mean = row.iter().map(|x| f64::from(*x)).sum::<f64>() / width as f64;
    let mean = mean as f32;
    for x in &mut *row {
        *x -= mean;
    }
    1.0 / (dot_of(row, row) / width as f32 + epsilon).sqrt()
}

#[inline(always)]
fn sum_of(row: &[f32]) -> f32 {
    let (blocks, rest) = row.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for block in blocks {
        for i in 0..LANES {
            lanes[i] += block[i];
        }
    }
    reduce(lanes) + rest.iter().sum::<f32>()
}

dispatched! {
    /// Normalizes each row, without a backward pass.
    pub fn layer_norm<'k>(out: &'k mut [f32], x: &'k [f32], gain: &'k [f32], bias: &'k [f32], epsilon: f32) -> () {
        let width = gain.len();
        let bias = &bias[..width];
        for (out, x) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
            out.copy_from_slice(x);
            let inverse = center_of(out, epsilon);
            for i in 0..width {
                out[i] = (out[i] * inverse).mul_add(gain[i], bias[i]);
            }
        }
    }
}

dispatched! {
    /// Normalizes each row; `x` becomes `x̂`, and `inverse` receives the factor of each row.
    pub fn layer_norm_kept<'k>(
        out: &'k mut [f32],
        x: &'k mut [f32],
        inverse: &'k mut [f32],
        gain: &'k [f32],
        bias: &'k [f32],
        epsilon: f32,
    ) -> () {
        let width = gain.len();
        let bias = &bias[..width];
        for ((out, x), inverse) in out.chunks_exact_mut(width).zip(x.chunks_exact_mut(width)).zip(inverse) {
            *inverse = center_of(x, epsilon);
            for i in 0..width {
                x[i] *= *inverse;
                out[i] = x[i].mul_add(gain[i], bias[i]);
            }
        }
    }
}

dispatched! {
    /// Backward of [`layer_norm_kept`]: replaces the gradient `d` of its output by that of its input; adds to `d_gain`
    /// and `d_bias`.
    pub fn back_layer_norm<'k>(
        d: &'k mut [f32],
        d_gain: &'k mut [f32],
        d_bias: &'k mut [f32],
        normal: &'k [f32],
        inverse: &'k [f32],
        gain: &'k [f32],
    ) -> () {
        let width = gain.len();
        let (d_gain, d_bias) = (&mut d_gain[..width], &mut d_bias[..width]); // known lengths: no bounds checks below
        for ((d, normal), inverse) in d.chunks_exact_mut(width).zip(normal.chunks_exact(width)).zip(inverse) {
            for i in 0..width {
                d_gain[i] = d[i].mul_add(normal[i], d_gain[i]);
                d_bias[i] += d[i];
                d[i] *= gain[i];
            }
            let along = dot_of(d, normal) / width as f32;
            let mean = sum_of(d) / width as f32;
            for i in 0..width {
                d[i] = inverse * (normal[i].mul_add(-along, d[i]) - mean);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: usize = 3;
    const EPSILON: f32 = 1e-3;

    /// Pseudo-random numbers.
    fn numbers(count: usize, salt: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 + salt * 104_729) % 1009) as f32 / 300.0 - 1.7).collect()
    }

    /// The weighted sum of all outputs, in f64, by the definition.
    fn plain(x: &[f64], gain: &[f64], bias: &[f64], weights: &[f32]) -> f64 {
        let width = gain.len();
        let mut sum = 0.0;
        for (x, weights) in x.chunks(width).zip(weights.chunks(width)) {
            let mean = x.iter().sum::<f64>() / width as f64;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
            let root = (variance + f64::from(EPSILON)).sqrt();
            for i in 0..width {
                sum += f64::from(weights[i]) * ((x[i] - mean) / root * gain[i] + bias[i]);
            }
        }
        sum
    }

    fn wide(x: &[f32]) -> Vec<f64> {
        x.iter().map(|x| f64::from(*x)).collect()
    }

    #[test]
    fn gradients_are_differences_of_the_definition() {
        for width in [5, 16, 37] {
            let (x, weights) = (numbers(ROWS * width, 1), numbers(ROWS * width, 2));
            let (gain, bias) = (numbers(width, 3), numbers(width, 4));
            let (mut out, mut kept) = (vec![0.0; x.len()], vec![0.0; x.len()]);
            let (mut normal, mut inverse) = (x.clone(), [0.0; ROWS]);
            layer_norm(&mut out, &x, &gain, &bias, EPSILON);
            layer_norm_kept(&mut kept, &mut normal, &mut inverse, &gain, &bias, EPSILON);
            let parts = [wide(&x), wide(&gain), wide(&bias)];
            let value = |parts: &[Vec<f64>; 3]| plain(&parts[0], &parts[1], &parts[2], &weights);
            for out in [out, kept] {
                let sum: f64 = out.iter().zip(&weights).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                assert!((sum - value(&parts)).abs() < 1e-4, "width {width}: {sum}");
            }
            let (mut d, mut d_gain, mut d_bias) = (weights.clone(), vec![1.0; width], vec![1.0; width]);
            back_layer_norm(&mut d, &mut d_gain, &mut d_bias, &normal, &inverse, &gain);
            for (part, (found, before)) in [(d, 0.0), (d_gain, 1.0), (d_bias, 1.0)].into_iter().enumerate() {
                for (i, found) in found.iter().enumerate() {
                    let moved = |by: f64| {
                        let mut parts = parts.clone();
                        parts[part][i] += by;
                        value(&parts)
                    };
                    let numeric = before + (moved(1e-5) - moved(-1e-5)) / 2e-5;
                    assert!(
                        (f64::from(*found) - numeric).abs() < 1e-4,
                        "width {width}, part {part}: {found} {numeric}"
                    );
                }
            }
        }
    }
}
