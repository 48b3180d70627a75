//! A standard error that rare, large draws do not fool.
//!
//! ```text
//! se² = ( s² / n  +  2 (B − x̄)² / n² ) · (1 − n / N)
//! ```
//!
//! for `n` draws in `[0, B]` with mean `x̄` and variance `s²`, from `N` types without replacement (`N = ∞` with). The
//! second term is that of two more draws that hit the bound. It stands for draws that happen once in `n` times and were
//! missed: if a share `f` of all draws lies at `B`, the number of hits is Poisson with `λ = n f`, and of `k` hits the
//! interval of 2.6 errors reaches up to `k + 2.6 √(k + 2)`. With two pseudo-draws it covers `λ` with a chance of at least
//! 0.973 for every `λ`; with none, as in the plain error, the chance falls to 0 for small `λ` (no hit: error 0), and with
//! one to 0.93. Draws that are spread over the range hardly notice: 2 % at `n = 128` for uniform ones. Where all draws are
//! tiny against `B`, the second term is most of the error, and must be: nothing but the bound limits what was not seen.

/// Two is the least whole number of pseudo-draws for which the interval covers whatever the rate of large draws is.
const UNSEEN_DRAWS: f64 = 2.0;

/// Standard error of the mean of `count` draws in `0 ..= bound`, with what few draws may have missed; from `population`
/// types without replacement, or independent ones for `None`. `variance` is that of single draws.
pub fn skewed_std_error(count: usize, mean: f64, variance: f64, bound: f64, population: Option<usize>) -> f64 {
    if count == 0 {
        return bound;
    }
    let n = count as f64;
    let unseen = population.map_or(1.0, |size| (1.0 - n / size as f64).max(0.0));
    let reach = (bound - mean).max(0.0);
    ((variance / n + UNSEEN_DRAWS * (reach / n).powi(2)) * unseen).sqrt()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::numerics::Moments;

    const BOUND: f64 = 3.0;
    const RUNS: usize = 4000;

    fn error_of(moments: &Moments, population: Option<usize>) -> f64 {
        let n = moments.count as usize;
        skewed_std_error(n, moments.mean, moments.squares / (n - 1) as f64, BOUND, population)
    }

    fn moments(draws: impl Iterator<Item = f64>) -> Moments {
        let mut moments = Moments::default();
        draws.for_each(|draw| moments.push(draw));
        moments
    }

    #[test]
    fn it_covers_the_mean_of_skewed_draws() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for rate in [0.005, 0.02, 0.1] {
            for n in [32, 64, 128, 256, 512] {
                let (mut covered, mut plainly) = (0, 0);
                for _ in 0..RUNS {
                    let found = moments((0..n).map(|_| if random.random::<f64>() < rate { BOUND } else { 0.0 }));
                    let gap = (found.mean - rate * BOUND).abs();
                    covered += usize::from(gap <= 2.6 * error_of(&found, None));
                    let plain = (found.squares / f64::from(n - 1) / f64::from(n)).sqrt();
                    plainly += usize::from(gap <= 2.6 * plain);
                }
                let share = covered as f64 / RUNS as f64;
                assert!(share >= 0.97, "rate {rate}, {n} draws: {share}");
                if n == 32 && rate < 0.05 {
                    assert!((plainly as f64) < 0.6 * RUNS as f64, "the plain error is what this is for");
                }
            }
        }
    }

    #[test]
    fn it_covers_without_replacement_too() {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        let size = 300;
        let mut types: Vec<f64> = (0..size).map(|index| if index < 6 { BOUND } else { 0.001 }).collect();
        let truth = types.iter().sum::<f64>() / size as f64;
        for n in [32, 128, 250] {
            let mut covered = 0;
            for _ in 0..RUNS {
                for front in 0..n {
                    types.swap(front, random.random_range(front..size));
                }
                let found = moments(types[..n].iter().copied());
                covered += usize::from((found.mean - truth).abs() <= 2.6 * error_of(&found, Some(size)));
            }
            assert!(covered as f64 >= 0.97 * RUNS as f64, "{n} draws: {covered} of {RUNS}");
        }
        assert_eq!(skewed_std_error(size, 0.1, 0.2, BOUND, Some(size)), 0.0);
    }

    #[test]
    fn spread_draws_hardly_notice() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        for n in [128, 512] {
            let uniform = moments((0..n).map(|_| BOUND * random.random::<f64>()));
            let bell = moments((0..n).map(|_| BOUND * (0..3).map(|_| random.random::<f64>()).sum::<f64>() / 3.0));
            let coin = moments((0..n).map(|_| if random.random::<bool>() { BOUND } else { 0.0 }));
            for found in [uniform, bell, coin] {
                let plain = (found.squares / f64::from(n - 1) / f64::from(n)).sqrt();
                let ratio = error_of(&found, None) / plain;
                assert!((1.0..1.15).contains(&ratio), "{n} draws: {ratio}");
            }
        }
    }

    #[test]
    fn no_draws_tell_nothing() {
        assert_eq!(skewed_std_error(0, 0.0, 0.0, BOUND, None), BOUND);
        // Zeros only: √2 B / n.
        assert!((skewed_std_error(100, 0.0, 0.0, BOUND, None) - 2f64.sqrt() * BOUND / 100.0).abs() < 1e-12);
    }
}
