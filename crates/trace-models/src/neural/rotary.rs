//! Rotary positions (Su et al., 2021), and heads that attend to given lags.
//!
//! Queries and keys are pairs of numbers. Each pair is rotated by an angle that is proportional to the position, with a
//! frequency per pair. If query and key do not depend on the event, their score depends only on the distance `t − u`:
//!
//! ```text
//! score(t, u) = Σ_i  s_i ( x_i cos(f_i (t − u)) − y_i sin(f_i (t − u)) ) / √c        query (x_i, y_i), key (s_i, 0)
//! ```

use super::attention::Heads;
use super::rows::Group;

/// Pairs with a smaller frequency than this, in radians per token, are not used for attending to lags.
const SLOWEST: f64 = 0.02;
/// The distance, in tokens, up to which the attention of a head is fitted.
const REACH: usize = 64;
/// The ridge penalty of scores.
const RIDGE: f64 = 1e-3;
/// The minimum size of a pair: if query and key are both zero, both have a zero gradient and never learn.
const SMALLEST: f64 = 0.01;
const NEWTON_STEPS: usize = 20;

/// Rotary positions: the frequency of each pair of a head's numbers.
#[derive(Clone, Debug)]
pub(crate) struct Rotary {
    frequencies: Vec<f32>,
}

/// Cosines and sines, one row per position, up to the largest position so far.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    cosines: Vec<f32>,
    sines: Vec<f32>,
}

impl Rotary {
    pub(crate) fn new(width: usize, theta: f32) -> Self {
        let frequencies = (0..width / 2).map(|i| 1.0 / theta.powf((2 * i) as f32 / width as f32)).collect();
        Self { frequencies }
    }

    /// Computes the cosines and sines of every position below `positions`.
    pub(crate) fn prepare(&self, turns: &mut Turns, positions: usize) {
        for position in turns.cosines.len() / self.frequencies.len()..positions {
            for frequency in &self.frequencies {
                // In f32 like in PyTorch: at large positions a more exact angle would differ from that in training.
                let (sine, cosine) = f64::from(position as f32 * frequency).sin_cos();
                turns.cosines.push(cosine as f32);
                turns.sines.push(sine as f32);
            }
        }
    }

    /// A query, as pairs of numbers, and the first number of each pair of a key, with which a head gives the first of
    /// these shares of its attention to the previous token, the second share to the token before that, and so on, at
    /// every position. Minimizes the divergence of the attention from these shares, with a ridge penalty: a convex
    /// problem, solved by Newton's method. Pairs whose frequency is too low to matter within about a hundred tokens are
    /// not used.
    pub(crate) fn look_back(&self, shares: &[f64]) -> Vec<((f32, f32), f32)> {
        let turning: Vec<f64> = self.frequencies.iter().map(|f| f64::from(*f)).filter(|f| *f > SLOWEST).collect();
        let total: f64 = shares.iter().sum();
        let wanted = |distance: usize| {
            distance.checked_sub(1).and_then(|before| shares.get(before)).map_or(0.0, |share| share / total)
        };
        let places: Vec<(Vec<f64>, f64)> = (0..REACH.max(2 * shares.len()))
            .map(|distance| {
                let angles = turning.iter().map(|frequency| distance as f64 * frequency);
                (angles.flat_map(|angle| [angle.cos(), angle.sin()]).collect(), wanted(distance))
            })
            .collect();
        let mut sizes = vec![0.0; 2 * turning.len()];
        // Without shares the attention is uniform.
        let steps = if total > 0.0 { NEWTON_STEPS } else { 0 };
        for _ in 0..steps {
            let old = divergence(&places, &sizes).0;
            let step = solve(newton_system(&places, &sizes));
            // Backtracking: a full step may overshoot.
            let next = (0..20).map(|halved| {
                let part = 0.5f64.powi(halved);
                let next: Vec<f64> = sizes.iter().zip(&step).map(|(size, step)| size - part * step).collect();
                (divergence(&places, &next).0, next)
            });
            match next.into_iter().find(|(new, _)| *new < old) {
                Some((_, next)) => sizes = next,
                None => break,
            }
        }
        let scale = (2.0 * self.frequencies.len() as f64).sqrt();
        let pair = |pair: &[f64]| {
            let size = (scale * pair[0].hypot(pair[1]).max(SMALLEST)).sqrt();
            (((scale * pair[0] / size) as f32, (-scale * pair[1] / size) as f32), size as f32)
        };
        sizes.chunks_exact(2).map(pair).collect()
    }

    /// Rotates the queries and keys of all rows of a group by their positions; `turn` is 1, or −1 to undo it.
    pub(crate) fn rotate(&self, turns: &Turns, heads: &Heads, group: &Group, rows: &mut [f32], turn: f32) {
        let rotated = (heads.queries + heads.keys) * heads.head_dim;
        let half = self.frequencies.len();
        for (index, row) in rows.chunks_exact_mut(heads.row()).enumerate() {
            let position = (group.start + index % group.steps) * half;
            let (cosines, sines) = (&turns.cosines[position..][..half], &turns.sines[position..][..half]);
            trace_kernels::f32::rotate(&mut row[..rotated], cosines, sines, turn);
        }
    }
}

/// For scores that are sums of `sizes` times the terms of each distance: the divergence of their softmax from the
/// wanted shares, up to a constant, plus [`RIDGE`]/2 times the squares of the sizes; and the softmax.
fn divergence(places: &[(Vec<f64>, f64)], sizes: &[f64]) -> (f64, Vec<f64>) {
    let dot = |terms: &[f64]| -> f64 { terms.iter().zip(sizes).map(|(term, size)| term * size).sum() };
    let scores: Vec<f64> = places.iter().map(|(terms, _)| dot(terms)).collect();
    let high = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().map(|score| (score - high).exp()).sum();
    let squares: f64 = sizes.iter().map(|size| size * size).sum();
    let wish: f64 = places.iter().zip(&scores).map(|((_, wanted), score)| wanted * score).sum();
    let weights = scores.iter().map(|score| (score - high).exp() / sum).collect();
    (high + sum.ln() + RIDGE / 2.0 * squares - wish, weights)
}

/// The second derivatives of [`divergence`] by the sizes; each row ends with the first derivative.
fn newton_system(places: &[(Vec<f64>, f64)], sizes: &[f64]) -> Vec<Vec<f64>> {
    let (_, weights) = divergence(places, sizes);
    let mut mean = vec![0.0; sizes.len()];
    let mut system = vec![vec![0.0; sizes.len() + 1]; sizes.len()];
    for ((terms, wanted), weight) in places.iter().zip(&weights) {
        for (i, term) in terms.iter().enumerate() {
            mean[i] += weight * term;
            system[i][sizes.len()] += (weight - wanted) * term;
            for (sum, other) in system[i].iter_mut().zip(terms) {
                *sum += weight * term * other;
            }
        }
    }
    for (i, row) in system.iter_mut().enumerate() {
        for (sum, other) in row.iter_mut().zip(&mean) {
            *sum -= mean[i] * other;
        }
        row[i] += RIDGE;
        row[sizes.len()] += RIDGE * sizes[i];
    }
    system
}

/// Solves linear equations with a positive definite matrix; each row ends with its right-hand side.
fn solve(mut system: Vec<Vec<f64>>) -> Vec<f64> {
    for place in 0..system.len() {
        let (above, rest) = system.split_at_mut(place + 1);
        let pivot = &above[place];
        for row in rest {
            let factor = row[place] / pivot[place];
            for (value, pivot) in row.iter_mut().zip(pivot).skip(place) {
                *value -= factor * pivot;
            }
        }
    }
    let mut solution = vec![0.0; system.len()];
    for (place, row) in system.iter().enumerate().rev() {
        let known: f64 = row[place + 1..].iter().zip(&solution[place + 1..]).map(|(a, x)| a * x).sum();
        solution[place] = (row[system.len()] - known) / row[place];
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At every position, a head attends to the wanted lags.
    #[test]
    fn heads_look_back_as_far_as_they_should() {
        let heads = Heads { queries: 1, keys: 1, head_dim: 20 };
        let rotary = Rotary::new(heads.head_dim, 10_000.0);
        let mut turns = Turns::default();
        rotary.prepare(&mut turns, 60);
        let only = |distance: usize| (1..=distance).map(|d| f64::from(u8::from(d == distance))).collect::<Vec<_>>();
        let fading = |rate: f64, count: i32| (0..count).map(|lag| (-rate * f64::from(lag)).exp()).collect::<Vec<_>>();
        // Shares, and how much of the attention may go to other positions.
        for (shares, most) in [(only(1), 0.04), (only(5), 0.04), (fading(1.0, 8), 0.2), (fading(0.1, 20), 0.15)] {
            let mut row = vec![0.0; heads.row()];
            for (i, ((low, high), key)) in rotary.look_back(&shares).into_iter().enumerate() {
                (row[i], row[i + 10], row[heads.head_dim + i]) = (low, high, key);
            }
            let mut rows: Vec<f32> = (0..60).flat_map(|_| row.clone()).collect();
            let group = Group { index: 0, start: 0, steps: 60, count: 1, branch: 0, row: 0 };
            rotary.rotate(&turns, &heads, &group, &mut rows, 1.0);
            for t in [40, 59] {
                let score = |u: usize| -> f64 {
                    let (query, key) = (&rows[t * heads.row()..][..20], &rows[u * heads.row() + 20..][..20]);
                    f64::from(query.iter().zip(key).map(|(a, b)| a * b).sum::<f32>() * heads.scale())
                };
                let weights: Vec<f64> = (0..=t).rev().map(|u| score(u).exp()).collect();
                let (sum, total): (f64, f64) = (weights.iter().sum(), shares.iter().sum());
                let share = |distance: usize| {
                    if distance == 0 { 0.0 } else { shares.get(distance - 1).unwrap_or(&0.0) / total }
                };
                let apart: f64 = weights.iter().enumerate().map(|(d, weight)| (weight / sum - share(d)).abs()).sum();
                assert!(apart / 2.0 < most, "{shares:?} at {t}: {apart}");
            }
        }
    }

    /// Empty and zero shares give uniform attention.
    #[test]
    fn heads_without_a_place_to_look_at_look_everywhere() {
        let rotary = Rotary::new(16, 10_000.0);
        for shares in [&[][..], &[0.0; 3]] {
            assert!(rotary.look_back(shares).iter().all(|((a, b), size)| a.abs() + b.abs() < 1e-6 && *size > 0.0));
        }
    }
}
