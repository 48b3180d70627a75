//! AdamW (Loshchilov & Hutter, 2019) and Muon (Jordan et al., 2024).
//!
//! AdamW divides the mean gradient of each weight by the root of its mean square:
//!
//! ```text
//! m ← β₁ m + (1 − β₁) g      v ← β₂ v + (1 − β₂) g²      w ← (1 − η λ) w − η m̂ / (√v̂ + ε)
//! ```
//!
//! Muon orthogonalizes the momentum of each hidden matrix: five steps of a Newton–Schulz iteration set all singular
//! values to about one. All other tensors use AdamW:
//!
//! ```text
//! m ← μ m + g      X ← (g + μ m) / ‖·‖      5 times:  A = X Xᵀ,  X ← a X + (b A + c A²) X      w ← (1 − η λ) w − η s X
//! ```
//!
//! with `s = 0.2 √max(rows, columns)`, which makes a step as large as one of AdamW, so that both use the same rate.
//!
//! Each kind of tensor has its own multiple of the learning rate ([`LearningRates`]). The output of a matrix changes
//! with the sum over its inputs: at the learning rate of the tables, a matrix with hundreds of inputs forgets its
//! initial values after a few dozen steps (see Yang et al., 2022, "Tensor Programs V"). Weight decay applies only to
//! hidden matrices: rare rows of a table would lose what they have learned.
//!
//! Cost of Muon for a matrix of `r ≤ c`: `10·(2 r² c + r³)·2` operations per step, for any batch size.
//!
//! All work is elementwise or per matrix, so that results do not depend on the number of threads.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use trace_kernels as kernels;
use trace_kernels::f32::AdamStep;
use trace_kernels::matmul::{Accumulate, Matrix, MatrixMut, multiply};

use super::super::layout::{Layout, Role};

/// The optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// AdamW for every tensor.
    AdamW,
    /// Muon for hidden matrices, AdamW for the rest.
    Muon,
}

/// The learning rate of each kind of tensor, as a multiple of the learning rate of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearningRates {
    /// Of hidden matrices.
    pub hidden: f32,
    /// Of embedding tables.
    pub embedding: f32,
    /// Of the head.
    pub head: f32,
    /// Of gains and biases.
    pub vector: f32,
}

impl LearningRates {
    /// The same learning rate for all tensors.
    pub const UNIFORM: Self = Self { hidden: 1.0, embedding: 1.0, head: 1.0, vector: 1.0 };

    const fn of(&self, role: Role) -> f32 {
        match role {
            Role::Hidden => self.hidden,
            Role::Embedding => self.embedding,
            Role::Head => self.head,
            Role::Vector => self.vector,
        }
    }
}

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.98;
const EPSILON: f32 = 1e-8;
const MOMENTUM: f32 = 0.95;
/// Maximum norm of the whole gradient.
const CLIP: f64 = 1.0;
/// Weights that one job updates or squares.
const BLOCK: usize = 1 << 14;
const ITERATIONS: usize = 5;
/// Coefficients of the iteration. They converge fast but not exactly: singular values end between 0.7 and 1.2.
const A: f32 = 3.4445;
const B: f32 = -4.775;
const C: f32 = 2.0315;

/// The state of an optimizer, laid out like the weights.
#[derive(Clone, Debug)]
pub(crate) struct Optimizer {
    kind: OptimizerKind,
    weight_decay: f32,
    learning_rates: LearningRates,
    pub(crate) first: Vec<f32>,
    pub(crate) second: Vec<f32>,
    steps: u64,
}

impl Optimizer {
    pub(crate) fn new(kind: OptimizerKind, size: usize) -> Self {
        Self {
            kind,
            weight_decay: 0.0,
            learning_rates: LearningRates::UNIFORM,
            first: vec![0.0; size],
            second: vec![0.0; size],
            steps: 0,
        }
    }

    /// Sets the weight decay of hidden matrices and the learning rate of each kind of tensor.
    pub(crate) const fn configure(&mut self, weight_decay: f32, learning_rates: LearningRates) {
        self.weight_decay = weight_decay;
        self.learning_rates = learning_rates;
    }

    /// An optimizer that has taken this many steps.
    pub(crate) const fn restore(kind: OptimizerKind, first: Vec<f32>, second: Vec<f32>, steps: u64) -> Self {
        Self { kind, weight_decay: 0.0, learning_rates: LearningRates::UNIFORM, first, second, steps }
    }

    /// Updates the weights; `gradient` is overwritten. Returns the norm of the gradient before clipping.
    pub(crate) fn step(&mut self, layout: &Layout, weights: &mut [f32], gradient: &mut [f32], rate: f32) -> f64 {
        self.steps += 1;
        let squares: Vec<f64> = gradient.par_chunks(BLOCK).map(kernels::f32::sum_of_squares).collect();
        let norm = squares.iter().sum::<f64>().sqrt();
        let clip = if norm > CLIP { (CLIP / norm) as f32 } else { 1.0 };
        let count = self.steps.min(i32::MAX as u64) as i32;
        let adam = AdamStep {
            beta1: BETA1,
            beta2: BETA2,
            epsilon: EPSILON,
            rate: rate / (1.0 - BETA1.powi(count)),
            root_correction: 1.0 / (1.0 - BETA2.powi(count)).sqrt(),
            keep: 1.0,
            clip,
        };
        let mut jobs = Vec::new();
        let (mut weights, mut gradient) = (weights, gradient);
        let (mut first, mut second) = (self.first.as_mut_slice(), self.second.as_mut_slice());
        for entry in layout.entries() {
            let size = entry.range().len();
            let mut part = Part {
                weights: take(&mut weights, size),
                gradient: take(&mut gradient, size),
                first: take(&mut first, size),
                second: take(&mut second, size),
            };
            let columns = entry.shape.last().copied().unwrap_or(1);
            let share = self.learning_rates.of(entry.role);
            let rate = rate * share;
            let keep = if entry.role == Role::Hidden { 1.0 - rate * self.weight_decay } else { 1.0 };
            if self.kind == OptimizerKind::Muon && entry.role == Role::Hidden {
                jobs.push(Job::Muon(part, columns, MuonStep { rate, keep, clip }));
                continue;
            }
            let adam = AdamStep { rate: adam.rate * share, keep, ..adam };
            while !part.weights.is_empty() {
                let size = BLOCK.min(part.weights.len());
                let block = Part {
                    weights: take(&mut part.weights, size),
                    gradient: take(&mut part.gradient, size),
                    first: take(&mut part.first, size),
                    second: take(&mut part.second, size),
                };
                jobs.push(Job::Adam(block, adam));
            }
        }
        jobs.into_par_iter().with_max_len(1).for_each(|job| match job {
            Job::Adam(part, step) => {
                kernels::f32::adam_step(part.weights, part.gradient, part.first, part.second, step);
            }
            Job::Muon(part, columns, step) => muon_step(part, columns, step),
        });
        norm
    }
}

/// The weights, gradient and state of one tensor or one block.
struct Part<'a> {
    weights: &'a mut [f32],
    gradient: &'a mut [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

enum Job<'a> {
    Adam(Part<'a>, AdamStep),
    Muon(Part<'a>, usize, MuonStep),
}

/// The constants of a step of Muon.
#[derive(Clone, Copy)]
struct MuonStep {
    rate: f32,
    /// Factor of the weights: what weight decay leaves.
    keep: f32,
    /// Factor of the gradient: what clipping leaves.
    clip: f32,
}

/// Splits the next `size` numbers off.
#[expect(clippy::mut_mut)] // the slice itself gets shorter
fn take<'a>(rest: &mut &'a mut [f32], size: usize) -> &'a mut [f32] {
    rest.split_off_mut(..size).unwrap_or_default()
}

fn muon_step(part: Part<'_>, columns: usize, step: MuonStep) {
    let MuonStep { rate, keep, clip } = step;
    let Part { weights, gradient, first, .. } = part;
    kernels::f32::scale(first, MOMENTUM);
    kernels::f32::add_scaled(first, gradient, clip);
    // Nesterov momentum: the gradient is added once more.
    kernels::f32::scale(gradient, clip);
    kernels::f32::add_scaled(gradient, first, MOMENTUM);
    let rows = gradient.len() / columns;
    orthogonalize(gradient, rows, columns);
    let size = 0.2 * (rows.max(columns) as f32).sqrt();
    kernels::f32::scale(weights, keep);
    kernels::f32::add_scaled(weights, gradient, -rate * size);
}

/// Sets all singular values to about one.
fn orthogonalize(matrix: &mut [f32], rows: usize, columns: usize) {
    let norm = kernels::f32::sum_of_squares(matrix).sqrt();
    kernels::f32::scale(matrix, (1.0 / (norm + 1e-7)) as f32);
    // Uses the smaller Gram matrix: X Xᵀ for wide matrices, Xᵀ X for tall ones.
    let tall = rows > columns;
    let small = rows.min(columns);
    let (mut gram, mut mixed) = (vec![0.0; small * small], vec![0.0; small * small]);
    let mut next = vec![0.0; matrix.len()];
    for _ in 0..ITERATIONS {
        let x = Matrix::new(&*matrix, rows, columns);
        let (left, right) = if tall { (x.transposed(), x) } else { (x, x.transposed()) };
        multiply(MatrixMut::new(&mut gram, small, small), Accumulate::Replace, 1.0, left, right);
        mixed.copy_from_slice(&gram);
        kernels::f32::scale(&mut mixed, B);
        let square = Matrix::new(&gram, small, small);
        multiply(MatrixMut::new(&mut mixed, small, small), Accumulate::Add, C, square, square);
        next.copy_from_slice(matrix);
        kernels::f32::scale(&mut next, A);
        let mixed = Matrix::new(&mixed, small, small);
        let (left, right) = if tall { (x, mixed) } else { (mixed, x) };
        multiply(MatrixMut::new(&mut next, rows, columns), Accumulate::Add, 1.0, left, right);
        matrix.copy_from_slice(&next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neural::layout::Initializer;

    #[test]
    fn adamw_follows_its_definition() {
        let mut layout = Layout::default();
        layout.add("hidden", &[2, 2], Role::Hidden, Initializer::Constant(1.0));
        let mut weights = vec![1.0f32, -2.0, 0.5, 3.0];
        let mut optimizer = Optimizer::new(OptimizerKind::AdamW, 4);
        optimizer.configure(0.01, LearningRates::UNIFORM);
        let (mut m, mut v, mut w) = ([0.0f64; 4], [0.0f64; 4], [1.0f64, -2.0, 0.5, 3.0]);
        for step in 1..=5 {
            let gradient = [0.1f64, -0.2, 0.05, 0.0].map(|g| g * f64::from(step));
            let mut single: Vec<f32> = gradient.iter().map(|g| *g as f32).collect();
            optimizer.step(&layout, &mut weights, &mut single, 0.01);
            let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            for i in 0..4 {
                let g = gradient[i] * if norm > 1.0 { 1.0 / norm } else { 1.0 };
                m[i] = 0.9 * m[i] + 0.1 * g;
                v[i] = 0.98 * v[i] + 0.02 * g * g;
                let corrected = (m[i] / (1.0 - 0.9f64.powi(step)), v[i] / (1.0 - 0.98f64.powi(step)));
                w[i] = w[i] * (1.0 - 0.01 * 0.01) - 0.01 * corrected.0 / (corrected.1.sqrt() + 1e-8);
            }
        }
        for (a, b) in weights.iter().zip(w) {
            assert!((f64::from(*a) - b).abs() < 1e-5, "{a} {b}");
        }
    }

    #[test]
    fn every_kind_of_tensor_moves_at_its_share_of_the_rate() {
        let learning_rates = LearningRates { hidden: 0.25, embedding: 10.0, head: 2.0, vector: 0.1 };
        let roles = [Role::Hidden, Role::Embedding, Role::Head, Role::Vector];
        for kind in [OptimizerKind::AdamW, OptimizerKind::Muon] {
            let mut layout = Layout::default();
            let parts = roles.map(|role| layout.add(format!("{role:?}"), &[4, 64], role, Initializer::Constant(0.0)));
            let moved = |learning_rates: LearningRates| {
                let mut weights = vec![0.0f32; 1024];
                let mut gradient: Vec<f32> = (0..1024).map(|i| ((i * 37 % 101) as f32 - 50.0) / 5000.0).collect();
                let mut optimizer = Optimizer::new(kind, 1024);
                optimizer.configure(0.0, learning_rates);
                optimizer.step(&layout, &mut weights, &mut gradient, 0.01);
                parts.clone().map(|part| kernels::f32::sum_of_squares(&weights[part]).sqrt())
            };
            for ((role, even), uneven) in
                roles.into_iter().zip(moved(LearningRates::UNIFORM)).zip(moved(learning_rates))
            {
                let wanted = f64::from(learning_rates.of(role));
                assert!((uneven / even / wanted - 1.0).abs() < 1e-4, "{kind:?}, {role:?}: {uneven} against {even}");
            }
        }
    }

    #[test]
    fn only_hidden_matrices_shrink() {
        let mut layout = Layout::default();
        for role in [Role::Hidden, Role::Embedding, Role::Head, Role::Vector] {
            layout.add(format!("{role:?}"), &[1, 1], role, Initializer::Constant(1.0));
        }
        let mut weights = vec![1.0f32; 4];
        let mut optimizer = Optimizer::new(OptimizerKind::AdamW, 4);
        optimizer.configure(0.5, LearningRates::UNIFORM);
        optimizer.step(&layout, &mut weights, &mut [0.0; 4], 0.1);
        assert_eq!(weights, [0.95, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn orthogonal_matrices_have_singular_values_near_one() {
        for (rows, columns) in [(6, 10), (10, 6), (8, 8)] {
            let mut matrix: Vec<f32> = (0..rows * columns).map(|i| ((i * 37 % 101) as f32 / 50.0) - 1.0).collect();
            orthogonalize(&mut matrix, rows, columns);
            let squares = kernels::f32::sum_of_squares(&matrix);
            let small = rows.min(columns) as f64;
            // The mean squared singular value.
            assert!((0.5..1.5).contains(&(squares / small)), "{rows} × {columns}: {squares}");
        }
    }
}
