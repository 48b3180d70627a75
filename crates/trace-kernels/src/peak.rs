//! The peak speed of this machine, for comparison.

use std::time::Instant;

use rayon::prelude::*;

use crate::matmul::{Accumulate, Matrix, MatrixMut, multiply, multiply_in_vectors, tile_unit};

/// Sizes of the square matrices that are multiplied; the fastest one depends on the caches of the machine.
const SIDES: [usize; 4] = [256, 384, 512, 1024];
/// Operations of a round, which takes some hundredths of a second for any size.
const OPERATIONS: f64 = 4e9;

/// The peak speed of f32 matrix products, in operations per second, with every thread of the current pool working on
/// its own product.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProductPeak {
    /// On the vector units, by `gemm`.
    pub vectors: f64,
    /// On the tile unit, if the processor has one, with the exact precision.
    pub tiles: Option<f64>,
}

impl ProductPeak {
    /// Measures over this many rounds.
    pub fn measure(rounds: usize) -> Self {
        let best = |tiles| SIDES.into_iter().map(|side| best_of(rounds.max(1), side, tiles)).fold(0.0, f64::max);
        Self { vectors: best(false), tiles: tile_unit().then(|| best(true)) }
    }

    /// The better of two measurements.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        let tiles = self.tiles.into_iter().chain(other.tiles).reduce(f64::max);
        Self { vectors: self.vectors.max(other.vectors), tiles }
    }
}

fn best_of(rounds: usize, side: usize, tiles: bool) -> f64 {
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
                    let mut out = MatrixMut::new(out, side, side);
                    if tiles {
                        multiply(out, Accumulate::Replace, 1.0, matrix, matrix);
                    } else {
                        multiply_in_vectors(&mut out, Accumulate::Replace, 1.0, &matrix, &matrix);
                    }
                }
            });
            (repeats * threads) as f64 * each / start.elapsed().as_secs_f64()
        })
        .fold(0.0, f64::max)
}
