//! The leading directions of a symmetric matrix, by subspace iteration (Golub & Van Loan, "Matrix Computations", 7.3).
//!
//! ```text
//! X ← orthonormal rows of (X · G)        X: k × n,  G: n × n, no direction of which is negative
//! ```
//!
//! Cost: [`ITERATIONS`] times `2·k·n² + 4·k²·n` operations.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::kernels::product::{Matrix, MatrixMut, Old, multiply};
use crate::kernels::single;

const ITERATIONS: usize = 30;
/// What is left of a direction that the others make up already.
const NOTHING: f64 = 1e-6;

/// Rows that span the `count` leading directions of `gram`, orthonormal, the leading ones first; zeros where it has fewer.
pub(super) fn leading(gram: &[f32], size: usize, count: usize) -> Vec<f32> {
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut rows: Vec<f32> = (0..count * size).map(|_| StandardNormal.sample(&mut random)).collect();
    let mut next = vec![0.0; rows.len()];
    for _ in 0..ITERATIONS {
        let (x, g) = (Matrix::new(&rows, count, size), Matrix::new(gram, size, size));
        multiply(MatrixMut::new(&mut next, count, size), Old::Replace, 1.0, x, g);
        std::mem::swap(&mut rows, &mut next);
        orthonormalise(&mut rows, size);
    }
    rows
}

/// Gram and Schmidt's method, each row against those before it, twice, as once is not exact.
fn orthonormalise(rows: &mut [f32], size: usize) {
    for at in 0..rows.len() / size {
        let (before, rest) = rows.split_at_mut(at * size);
        let row = &mut rest[..size];
        let whole = single::sum_of_squares(row).sqrt();
        for _ in 0..2 {
            for other in before.chunks_exact(size) {
                let share: f64 = row.iter().zip(other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                single::add_scaled(row, other, -share as f32);
            }
        }
        let left = single::sum_of_squares(row).sqrt();
        let scale = if left > NOTHING * whole { 1.0 / left } else { 0.0 };
        single::scale(row, scale as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_directions_are_those_of_the_largest_eigenvalues() {
        // Q diag(5, 3, 1, 0, 0, 0) Qᵀ with Q = 1 − 2 n nᵀ.
        let normal = [0.5f32, -0.5, 0.1, 0.7, 0.0, 0.0];
        let q = |r: usize, c: usize| f32::from(u8::from(r == c)) - 2.0 * normal[r] * normal[c];
        let values = [5.0f32, 3.0, 1.0];
        let gram: Vec<f32> =
            (0..36).map(|i| (0..3).map(|e| values[e] * q(i / 6, e) * q(i % 6, e)).sum::<f32>()).collect();
        let found = leading(&gram, 6, 4);
        for e in 0..3 {
            let dot: f32 = (0..6).map(|r| found[e * 6 + r] * q(r, e)).sum();
            assert!((dot.abs() - 1.0).abs() < 1e-4, "{e}: {dot}");
        }
        assert!(found[18..].iter().all(|value| *value == 0.0), "there is no fourth: {:?}", &found[18..]);
    }
}
