//! The Gaussian error linear unit (Hendrycks & Gimpel, 2016), `x Φ(x)`: exact, and in its tanh approximation.

use pulp::{Arch, Simd, WithSimd};

use super::dispatched;
use super::f32::{exp, tanh_of};

/// `Φ(x)`, to 2e-7, and `e^(−x²/2)`.
#[inline(always)]
fn normal_of(x: f32) -> (f32, f32) {
    let bell = exp(-0.5 * x * x);
    // Abramowitz & Stegun, 7.1.26: the tail of a normal distribution over its density.
    let t = 1.0 / (0.327_591_1 * std::f32::consts::FRAC_1_SQRT_2).mul_add(x.abs(), 1.0);
    let series =
        1.061_405_4f32.mul_add(t, -1.453_152).mul_add(t, 1.421_413_7).mul_add(t, -0.284_496_74).mul_add(t, 0.254_829_6);
    let tail = 0.5 * series * t * bell;
    (if x > 0.0 { 1.0 - tail } else { tail }, bell)
}

dispatched! {
    /// `out = x Φ(x)`.
    pub fn gelu<'k>(out: &'k mut [f32], x: &'k [f32]) -> () {
        for (out, x) in out.iter_mut().zip(x) {
            *out = *x * normal_of(*x).0;
        }
    }
}

dispatched! {
    /// Backward of [`gelu`]: replaces the gradient `d` of its output by that of its input `x`.
    pub fn back_gelu<'k>(d: &'k mut [f32], x: &'k [f32]) -> () {
        const DENSITY: f32 = 0.398_942_3; // 1/√(2π)
        for (d, x) in d.iter_mut().zip(x) {
            let (below, bell) = normal_of(*x);
            *d *= (*x * DENSITY).mul_add(bell, below);
        }
    }
}

dispatched! {
    /// The tanh approximation of GELU, in place: `x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
    pub fn tanh_gelu<'k>(x: &'k mut [f32]) -> () {
        for x in x {
            let inner = 0.797_884_6 * (0.044_715 * *x * *x).mul_add(*x, *x);
            *x = 0.5 * *x * (1.0 + tanh_of(inner));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Φ(x)` as the integral of the density from zero, by Simpson's rule.
    fn normal(x: f64) -> f64 {
        const STEPS: usize = 400;
        let width = x / STEPS as f64;
        let density = |i: usize| (-0.5 * (i as f64 * width).powi(2)).exp();
        let inner: f64 = (1..STEPS).map(|i| density(i) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
        0.5 + (density(0) + inner + density(STEPS)) * width / 3.0 / (2.0 * std::f64::consts::PI).sqrt()
    }

    #[test]
    fn it_is_the_definition_and_its_slope() {
        let x: Vec<f32> = (-160..=160).map(|i| i as f32 * 0.05).collect();
        let (mut out, mut slope) = (vec![0.0; x.len()], vec![2.0; x.len()]);
        gelu(&mut out, &x);
        back_gelu(&mut slope, &x);
        for ((x, out), slope) in x.iter().zip(out).zip(slope) {
            let exact = |x: f64| x * normal(x);
            let x = f64::from(*x);
            assert!((f64::from(out) - exact(x)).abs() < 1e-6, "{x}: {out}");
            let numeric = (exact(x + 1e-4) - exact(x - 1e-4)) / 2e-4;
            assert!((f64::from(slope) - 2.0 * numeric).abs() < 2e-6, "{x}: slope {slope}");
        }
    }
}
