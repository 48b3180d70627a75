//! What this machine can do at most, to compare with.

use std::time::Instant;

use rayon::prelude::*;

use crate::kernels::product::{Matrix, MatrixMut, Old, multiply};

/// Side of the square matrices that are multiplied: small enough for the caches, large enough to hide the edges.
const SIDE: usize = 1024;

/// The best rate of f32 matrix products over some rounds, in operations a second, with every thread of the current
/// pool at work on a product of its own.
pub fn matrix_product_peak(rounds: usize) -> f64 {
    let threads = rayon::current_num_threads();
    let each = 2.0 * (SIDE * SIDE * SIDE) as f64;
    let mut pairs: Vec<(Vec<f32>, Vec<f32>)> = (0..threads)
        .map(|_| ((0..SIDE * SIDE).map(|i| (i % 13) as f32 / 13.0).collect(), vec![0.0; SIDE * SIDE]))
        .collect();
    (0..rounds.max(1))
        .map(|_| {
            let start = Instant::now();
            pairs.par_iter_mut().with_max_len(1).for_each(|(input, out)| {
                let matrix = Matrix::new(&*input, SIDE, SIDE);
                for _ in 0..4 {
                    multiply(MatrixMut::new(out, SIDE, SIDE), Old::Replace, 1.0, matrix, matrix);
                }
            });
            4.0 * each * threads as f64 / start.elapsed().as_secs_f64()
        })
        .fold(0.0, f64::max)
}
