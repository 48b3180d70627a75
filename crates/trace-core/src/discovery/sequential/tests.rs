use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

const RUNS: usize = 2000;
const BOUND: f64 = 4.0;

/// How often a test says each of the two, when it may look after every draw.
fn rates(mut run: impl FnMut(&mut ChaCha8Rng) -> Option<Decision>) -> (f64, f64) {
    let (mut above, mut below) = (0, 0);
    for seed in 0..RUNS {
        match run(&mut ChaCha8Rng::seed_from_u64(seed as u64)) {
            Some(Decision::Above) => above += 1,
            Some(Decision::Below) => below += 1,
            None => {}
        }
    }
    (f64::from(above) / RUNS as f64, f64::from(below) / RUNS as f64)
}

/// Draws until the test decides or `most` draws are taken.
fn decide(mut test: SequentialTest, most: usize, mut draw: impl FnMut() -> f64) -> Option<Decision> {
    while test.decision().is_none() && test.draws() < most {
        test.push(draw());
    }
    test.decision()
}

/// `α` and three standard errors of a rate over the runs.
fn at_most(alpha: f64) -> f64 {
    alpha + 3.0 * (alpha * (1.0 - alpha) / RUNS as f64).sqrt()
}

fn coin(random: &mut ChaCha8Rng, rate: f64) -> f64 {
    if random.random::<f64>() < rate { BOUND } else { 0.0 }
}

#[test]
fn at_the_threshold_neither_answer_comes_more_often_than_allowed() {
    for confidence in [0.95, 0.99] {
        let limit = at_most(1.0 - confidence);
        let test = |threshold| SequentialTest::new(threshold, BOUND, confidence, Population::Independent).unwrap();
        // Rare large draws, from one in 2 to one in 200.
        for rate in [0.5, 0.05, 0.005] {
            let (above, below) = rates(|random| decide(test(rate * BOUND), 1500, || coin(random, rate)));
            assert!(above <= limit && below <= limit, "{rate}: {above} {below} at {confidence}");
        }
        // Mostly tiny, seldom large, and something between.
        let mean = 0.9 * 0.5 * 0.01 + 0.1 * 1.0 / 3.0;
        let (above, below) = rates(|random| {
            decide(test(mean * BOUND), 1500, || {
                let uniform = random.random::<f64>();
                BOUND * if random.random::<f64>() < 0.9 { 0.01 * uniform } else { uniform.powi(2) }
            })
        });
        assert!(above <= limit && below <= limit, "skewed: {above} {below} at {confidence}");
    }
}

/// A population with its weights, shuffled by weighted draws without replacement.
fn without_replacement(
    values: &[f64],
    weights: &[f64],
    threshold: f64,
    confidence: f64,
    random: &mut ChaCha8Rng,
) -> SequentialTest {
    let total = weights.iter().sum();
    let mut test = SequentialTest::new(threshold, BOUND, confidence, Population::Weighted(total)).unwrap();
    for id in draw_order(weights, random) {
        test.push_weighted(values[id.index()], weights[id.index()]);
        if test.decision().is_some() {
            break;
        }
    }
    test
}

fn weighted_mean(values: &[f64], weights: &[f64]) -> f64 {
    values.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>() / weights.iter().sum::<f64>()
}

#[test]
fn without_replacement_it_errs_no_more_often() {
    let size = 400;
    for confidence in [0.95, 0.99] {
        let limit = at_most(1.0 - confidence);
        for large in [4, 40] {
            // The mean is a hair from the threshold, on either side: whatever is said against it is wrong.
            let mut types: Vec<f64> = (0..size).map(|index| if index < large { BOUND } else { 0.01 }).collect();
            let mean = types.iter().sum::<f64>() / size as f64;
            for (threshold, wrong) in [(mean * (1.0 + 1e-9), Decision::Above), (mean * (1.0 - 1e-9), Decision::Below)] {
                let (above, below) = rates(|random| {
                    let mut test = SequentialTest::new(threshold, BOUND, confidence, Population::Finite(size)).unwrap();
                    for front in 0..size {
                        types.swap(front, random.random_range(front..size));
                        test.push(types[front]);
                        if test.decision().is_some() {
                            break;
                        }
                    }
                    test.decision()
                });
                let errors = if wrong == Decision::Above { above } else { below };
                assert!(errors <= limit, "{large} large ones: {errors} at {confidence}");
                assert!(above + below == 1.0, "all types decide");
            }
        }
    }
}

#[test]
fn weighted_types_err_no_more_often_and_decide_sooner_than_independent_draws() {
    // Frequencies fall as 1/rank; every seventh type does much.
    let size = 300;
    let weights: Vec<f64> = (0..size).map(|rank| 1.0 / (1.0 + f64::from(rank))).collect();
    let values: Vec<f64> = (0..size).map(|rank| if rank % 7 == 3 { BOUND } else { 0.02 }).collect();
    let mean = weighted_mean(&values, &weights);
    for (threshold, wrong) in [(mean * (1.0 + 1e-9), Decision::Above), (mean * (1.0 - 1e-9), Decision::Below)] {
        let (above, below) = rates(|random| without_replacement(&values, &weights, threshold, 0.95, random).decision());
        let errors = if wrong == Decision::Above { above } else { below };
        assert!(errors <= at_most(0.05), "{errors}");
        assert!(above + below == 1.0);
    }
    let table = crate::CumulativeTable::new(weights.iter().copied()).unwrap();
    let (mut once, mut again) = (0, 0);
    for seed in 0..200 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let threshold = 1.5 * mean;
        once += without_replacement(&values, &weights, threshold, 0.99, &mut random).draws();
        let mut test = SequentialTest::new(threshold, BOUND, 0.99, Population::Independent).unwrap();
        while test.decision().is_none() && test.draws() < 5000 {
            test.push(values[table.draw(&mut random).index()]);
        }
        again += test.draws();
    }
    assert!(once * 3 < again * 2, "{once} draws without replacement, {again} with");
}

#[test]
fn far_means_take_few_draws() {
    let draws_of = |mean: f64, spread: f64| {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let mut all: Vec<usize> = (0..101)
            .map(|_| {
                let mut test = SequentialTest::new(0.05, 2.0, 0.99, Population::Independent).unwrap();
                while test.decision().is_none() && test.draws() < 20_000 {
                    test.push(mean * (1.0 + spread * (2.0 * random.random::<f64>() - 1.0)));
                }
                assert_eq!(test.decision(), Some(if mean > 0.05 { Decision::Above } else { Decision::Below }));
                test.draws()
            })
            .collect();
        all.sort_unstable();
        all[50]
    };
    assert!(draws_of(0.5, 0.9) <= 5, "{}", draws_of(0.5, 0.9));
    assert!(draws_of(0.1, 0.9) <= 15, "{}", draws_of(0.1, 0.9));
    // That nothing was seen excludes a mean of 0.05 under a bound of 2 after 182 draws at the earliest.
    assert!((182..=260).contains(&draws_of(0.001, 0.9)), "{}", draws_of(0.001, 0.9));
}

#[test]
fn all_of_a_population_gives_the_exact_answer() {
    let mut random = ChaCha8Rng::seed_from_u64(6);
    for size in [1, 2, 7, 30] {
        for _ in 0..200 {
            let values: Vec<f64> = (0..size).map(|_| BOUND * random.random::<f64>()).collect();
            let weights: Vec<f64> = (0..size).map(|_| random.random::<f64>().powi(3)).collect();
            let threshold = BOUND * random.random::<f64>();
            let truth = |mean: f64| Some(if mean > threshold { Decision::Above } else { Decision::Below });
            let mut equal = SequentialTest::new(threshold, BOUND, 0.8, Population::Finite(size)).unwrap();
            let total = Population::Weighted(weights.iter().sum());
            let mut weighted = SequentialTest::new(threshold, BOUND, 0.8, total).unwrap();
            for id in draw_order(&weights, &mut random) {
                equal.push(values[id.index()]);
                weighted.push_weighted(values[id.index()], weights[id.index()]);
            }
            assert_eq!(equal.decision(), truth(values.iter().sum::<f64>() / size as f64));
            assert_eq!(weighted.decision(), truth(weighted_mean(&values, &weights)));
        }
    }
    // Nothing exceeds the bound, and all zeros exceed nothing.
    let test = SequentialTest::new(BOUND, BOUND, 0.99, Population::Independent).unwrap();
    assert_eq!((test.decision(), test.draws()), (Some(Decision::Below), 0));
    let mut zeros = SequentialTest::new(0.0, BOUND, 0.99, Population::Finite(3)).unwrap();
    (0..3).for_each(|_| zeros.push(0.0));
    assert_eq!(zeros.decision(), Some(Decision::Below));
}

#[test]
fn weighted_orders_follow_their_weights() {
    let weights = [1.0, 0.0, 3.0, 4.0];
    let mut first = [0usize; 4];
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..8000 {
        let order = draw_order(&weights, &mut random);
        assert_eq!(order.len(), 3, "a type of weight 0 is never drawn");
        first[order[0].index()] += 1;
    }
    for (count, weight) in first.iter().zip(weights) {
        assert!((*count as f64 - 1000.0 * weight).abs() < 150.0, "{first:?}");
    }
}

#[test]
fn intervals_cover_at_all_times_and_shrink() {
    let (rate, draws) = (0.05, 200);
    let mut missed = 0;
    for seed in 0..300 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let drawn: Vec<(f64, f64)> = (0..draws).map(|_| (coin(&mut random, rate), 1.0)).collect();
        let (low, high) = confidence_interval(&drawn, BOUND, 0.9, Population::Independent).unwrap();
        missed += usize::from(!(low..=high).contains(&(rate * BOUND)));
        let (earlier_low, earlier_high) =
            confidence_interval(&drawn[..50], BOUND, 0.9, Population::Independent).unwrap();
        assert!(earlier_low <= low && high <= earlier_high);
    }
    assert!(missed <= 45, "{missed} of 300 at 0.9");
    // A narrow sample gives a narrow interval, and all of a population a point.
    let same = [(0.3 * BOUND, 1.0); 300];
    let (low, high) = confidence_interval(&same, BOUND, 0.99, Population::Independent).unwrap();
    assert!(0.25 * BOUND < low && low < 0.3 * BOUND && 0.3 * BOUND < high && high < 0.35 * BOUND, "{low} {high}");
    let (low, high) = confidence_interval(&same, BOUND, 0.99, Population::Finite(300)).unwrap();
    assert!((low - 0.3 * BOUND).abs() < 1e-6 && (high - 0.3 * BOUND).abs() < 1e-6, "{low} {high}");
    assert_eq!(confidence_interval(&[], BOUND, 0.99, Population::Independent).unwrap(), (0.0, BOUND));
}

#[test]
fn what_cannot_be_tested_is_an_error() {
    let new = |threshold, bound, confidence, population| {
        SequentialTest::new(threshold, bound, confidence, population).map(|_| ()).unwrap_err().to_string()
    };
    assert!(new(-1.0, 1.0, 0.9, Population::Independent).starts_with("threshold:"));
    assert!(new(0.1, f64::INFINITY, 0.9, Population::Independent).starts_with("bound:"));
    assert!(new(0.1, 1.0, 1.0, Population::Independent).starts_with("confidence:"));
    assert!(new(0.1, 1.0, 0.9, Population::Finite(0)).starts_with("population:"));
    assert!(new(0.1, 1.0, 0.9, Population::Weighted(f64::NAN)).starts_with("population:"));
    let mut test = SequentialTest::new(0.1, 1.0, 0.9, Population::Independent).unwrap();
    (0..100).for_each(|_| test.push(f64::NAN));
    assert_eq!(test.decision(), None);
}
