//! What this machine can do at most, to compare with.

use std::time::Instant;

use rayon::prelude::*;

use crate::kernels::product::{Matrix, MatrixMut, Old, multiply};

/// Sides of the square matrices that are multiplied: which one suits the caches best depends on the machine.
const SIDES: [usize; 4] = [256, 384, 512, 1024];
/// Operations of a round, so that it takes some hundredths of a second whatever the side.
const OPERATIONS: f64 = 4e9;

/// The best rate of f32 matrix products over some rounds, in operations a second, with every thread of the current
/// pool at work on a product of its own.
pub fn matrix_product_peak(rounds: usize) -> f64 {
    SIDES.into_iter().map(|side| best_of(rounds.max(1), side)).fold(0.0, f64::max)
}

fn best_of(rounds: usize, side: usize) -> f64 {
    let threads = rayon::current_num_threads();
    let each = 2.0 * (side * side * side) as f64;
    let repeats = (OPERATIONS / each).ceil() as usize;
    let mut pairs: Vec<(Vec<f32>, Vec<f32>)> = (0..threads)
        .map(|_| ((0..side * side).map(|i| (i % 13) as f32 / 13.0).collect(), vec![0.0; side * side]))
        .collect();
    (0..rounds)
        .map(|_| {
            let start = Instant::now();
            pairs.par_iter_mut().with_max_len(1).for_each(|(input, out)| {
                let matrix = Matrix::new(&*input, side, side);
                for _ in 0..repeats {
                    multiply(MatrixMut::new(out, side, side), Old::Replace, 1.0, matrix, matrix);
                }
            });
            (repeats * threads) as f64 * each / start.elapsed().as_secs_f64()
        })
        .fold(0.0, f64::max)
}
