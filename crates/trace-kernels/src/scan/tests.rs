//! Tests of [`super`].

use super::*;

#[test]
fn scalar_functions_are_exact_to_rounding() {
    let mut x = -124.9f32;
    while x < 0.0 {
        assert!((f64::from(exp2(x)) / f64::from(x).exp2() - 1.0).abs() < 3e-7, "2^{x}");
        x += 0.0173;
    }
    assert_eq!(exp2(0.0), 1.0);
    assert!(exp2(-1e9) < 1e-37);
    let mut x = 1e-6f32;
    while x < 90.0 {
        assert!((f64::from(slope_of_softplus(x)) / -(-f64::from(x)).exp_m1() - 1.0).abs() < 2e-6, "slope at {x}");
        x *= 1.013;
    }
}

const SHAPE: Shape = Shape { channels: 19, states: 3, rank: 2 };
const STEPS: usize = 2 * CHUNK + 5;

/// `u`, the input of the softplus of `Δ`, rows of step sizes, `B` and `C`, rows of `x` and `z`, `D` and the logarithms.
type Arguments = [Vec<f64>; 6];

fn arguments() -> Arguments {
    let Shape { channels, states, .. } = SHAPE;
    let sizes = [channels, channels, SHAPE.mixing(), 2 * channels].map(|size| size * STEPS);
    let mut salt = 7u32;
    let mut draw = |size: usize| {
        let mut next = || {
            salt = salt.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(f32::from((salt >> 16) as u16) / 32_768.0 - 1.0)
        };
        (0..size).map(|_| next()).collect::<Vec<_>>()
    };
    let [u, under, mixing, inputs] = sizes.map(&mut draw);
    [u, under, mixing, inputs, draw(channels), draw(channels * states)]
}

/// `Σ weight · out` by the definition.
fn loss([u, under, mixing, inputs, skip, logs]: &Arguments) -> f64 {
    let Shape { channels, states, rank } = SHAPE;
    let mut h = vec![0.0; channels * states];
    let mut sum = 0.0;
    for t in 0..STEPS {
        let (b, c) = mixing[t * SHAPE.mixing()..][rank..2 * states + rank].split_at(states);
        for e in 0..channels {
            let (u, z) = (u[t * channels + e], inputs[(2 * t + 1) * channels + e]);
            let delta = under[t * channels + e].exp().ln_1p();
            let mut y = skip[e] * u;
            for k in 0..states {
                let h = &mut h[e * states + k];
                *h = (-delta * logs[e * states + k].exp()).exp() * *h + delta * u * b[k];
                y += *h * c[k];
            }
            sum += weight(t * channels + e) * y * z / (1.0 + (-z).exp());
        }
    }
    sum
}

fn weight(place: usize) -> f64 {
    (place * 37 % 23) as f64 / 11.0 - 1.0
}

#[test]
fn the_scan_and_its_gradient_are_those_of_the_definition() {
    let arguments = arguments();
    let narrow = |values: &Vec<f64>| values.iter().map(|x| *x as f32).collect::<Vec<_>>();
    let [u, mut delta, mixing, mut inputs, skip, logs] = std::array::from_fn(|i| narrow(&arguments[i]));
    let width = SHAPE.channels;
    step_sizes(&mut delta, &vec![0.0; width]);
    let mut table = vec![0.0; SHAPE.state()];
    rates(&mut table, &logs, SHAPE);
    let rows: Vec<usize> = (0..STEPS).collect();
    let mut states = vec![0.0; STEPS / CHUNK * SHAPE.state()];
    let mut scratch = vec![0.0; SHAPE.back_scratch()];
    let mut out = vec![0.0; STEPS * width];
    let scanned = Scanned { u: &u, delta: &delta, inputs: &inputs, mixing: &mixing, skip: &skip, rates: &table };
    let kept = Kept { states: &mut states, every: CHUNK, before: 0 };
    scan(&mut out, scanned, &rows, None, kept, SHAPE, &mut scratch);
    let sum: f64 = out.iter().enumerate().map(|(place, x)| weight(place) * f64::from(*x)).sum();
    assert!((sum - loss(&arguments)).abs() < 1e-4);

    let mut d_u: Vec<f32> = (0..STEPS * width).map(|place| weight(place) as f32).collect();
    let mut d_mixing = vec![0.0; mixing.len()];
    let (mut d_skip, mut sums) = (vec![0.0; width], vec![0.0; SHAPE.state()]);
    let scanned = Scanned { u: &u, delta: &[], inputs: &[], mixing: &mixing, skip: &skip, rates: &table };
    let gradients = ScanGradients {
        out: &mut d_u,
        delta: &mut delta,
        inputs: &mut inputs,
        mixing: &mut d_mixing,
        skip: &mut d_skip,
        rates: &mut sums,
    };
    back_scan(gradients, scanned, &rows, &states, SHAPE, &mut scratch);
    let mut d_logs = vec![0.0; logs.len()];
    back_rates(&mut d_logs, &sums, &table, SHAPE);
    for (number, gradient) in [d_u, delta, d_mixing, inputs, d_skip, d_logs].iter().enumerate() {
        for (place, got) in gradient.iter().enumerate() {
            if number == 3 && (place / width).is_multiple_of(2) {
                continue; // x, which the scan does not use
            }
            let moved = |by: f64| {
                let mut arguments = arguments.clone();
                arguments[number][place] += by;
                loss(&arguments)
            };
            let expected = (moved(1e-4) - moved(-1e-4)) / 2e-4;
            assert!(
                (f64::from(*got) - expected).abs() < 1e-5 * (1.0 + expected.abs()),
                "{number}, {place}: {got} against {expected}"
            );
        }
    }
}
