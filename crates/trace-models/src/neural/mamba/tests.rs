//! Tests of [`super`].

use super::*;

fn network(state: usize, kernel: usize, inner: usize, bias: bool) -> Mamba {
    Mamba::new(MambaConfig {
        vocab_size: 9,
        hidden_size: 12,
        layers: 2,
        state_size: state,
        conv_kernel: kernel,
        intermediate_size: inner,
        time_step_rank: 3,
        rms_norm_eps: 1e-5,
        use_conv_bias: !bias,
        use_bias: bias,
        tie_word_embeddings: true,
    })
}

/// Weights without special values, with steps large enough for the state to matter.
fn weights(network: &Mamba) -> Vec<f32> {
    let mut weights = network.layout().draw(5);
    for (index, weight) in weights.iter_mut().enumerate() {
        *weight += 0.3 * ((index * 7919 % 101) as f32 / 101.0 - 0.5);
    }
    for layer in &network.layers {
        weights[layer.step_bias.clone()].iter_mut().for_each(|bias| *bias += 4.0);
    }
    weights
}

/// The hidden rows of one sequence, in f64, by the definition.
fn plain(network: &Mamba, weights: &[f64], tokens: &[u32]) -> Vec<Vec<f64>> {
    let MambaConfig {
        hidden_size: width,
        state_size: state,
        conv_kernel: kernel,
        intermediate_size: inner,
        time_step_rank: step_rank,
        rms_norm_eps,
        ..
    } = network.config;
    let get = |range: &Range<usize>| weights[range.clone()].to_vec();
    let product = |matrix: &[f64], x: &[f64]| -> Vec<f64> {
        matrix.chunks_exact(x.len()).map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
    };
    let norm = |x: &[f64], gain: &[f64]| -> Vec<f64> {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / width as f64;
        let root = (mean + f64::from(rms_norm_eps)).sqrt();
        x.iter().zip(gain).map(|(x, gain)| x / root * gain).collect()
    };
    let silu = |x: f64| x / (1.0 + (-x).exp());
    let table = get(&network.embedding);
    let mut residual: Vec<Vec<f64>> =
        tokens.iter().map(|token| table[*token as usize * width..][..width].to_vec()).collect();
    for layer in &network.layers {
        let optional = |range: &Option<Range<usize>>, size| range.as_ref().map_or(vec![0.0; size], get);
        let (in_bias, out_bias) = (optional(&layer.input_bias, 2 * inner), optional(&layer.out_bias, width));
        let (taps, taps_bias) = (get(&layer.taps), optional(&layer.taps_bias, inner));
        let mut xs: Vec<Vec<f64>> = Vec::new();
        let mut h = vec![0.0; inner * state];
        for row in &mut residual {
            let mut both = product(&get(&layer.input), &norm(row, &get(&layer.norm)));
            both.iter_mut().zip(&in_bias).for_each(|(x, bias)| *x += bias);
            let z = both.split_off(inner);
            xs.push(both);
            let u: Vec<f64> = (0..inner)
                .map(|e| {
                    let taps = (0..kernel.min(xs.len()))
                        .map(|back| taps[e * kernel + kernel - 1 - back] * xs[xs.len() - 1 - back][e]);
                    silu(taps.sum::<f64>() + taps_bias[e])
                })
                .collect();
            let mixing = product(&get(&layer.mixing), &u);
            let (rank, b_and_c) = mixing.split_at(step_rank);
            let steps = product(&get(&layer.step), rank);
            let (bias, logs, skip) = (get(&layer.step_bias), get(&layer.rates), get(&layer.skip));
            let y: Vec<f64> = (0..inner)
                .map(|e| {
                    let delta = (steps[e] + bias[e]).exp().ln_1p();
                    let mut y = skip[e] * u[e];
                    for k in 0..state {
                        let h = &mut h[e * state + k];
                        *h = (-delta * logs[e * state + k].exp()).exp() * *h + delta * u[e] * b_and_c[k];
                        y += *h * b_and_c[state + k];
                    }
                    y * silu(z[e])
                })
                .collect();
            for ((x, y), bias) in row.iter_mut().zip(product(&get(&layer.out), &y)).zip(&out_bias) {
                *x += y + bias;
            }
        }
    }
    residual.iter().map(|row| norm(row, &get(&network.norm))).collect()
}

fn observed(position: usize) -> u32 {
    (position * 5 % 7) as u32
}

fn branched(group: usize, branch: usize, step: usize) -> u32 {
    ((group * 3 + branch * 2 + step * 5 + 1) % 9) as u32
}

#[test]
fn branches_from_a_cache_equal_whole_sequences() {
    let groups = [(0, 3, 1), (7, 1, 2), (2, 9, 3), (12, 5, 2), (1, 2, 2), (5, 4, 1)];
    for (state, kernel, inner, bias, stride) in
        [(16, 4, 24, false, 1), (4, 4, 16, true, 3), (5, 2, 40, false, 5), (16, 1, 7, true, 4), (3, 6, 33, false, 50)]
    {
        let network = network(state, kernel, inner, bias);
        let weights = weights(&network);
        let wide: Vec<f64> = weights.iter().map(|w| f64::from(*w)).collect();
        let mut cache = network.cache(12);
        assert_eq!(cache.stride, 1);
        cache.stride = stride;
        let (mut tape, mut reading) = (Tape::default(), Vec::new());
        for (start, steps) in [(0, 5), (5, 1), (6, 6)] {
            let rows = Rows::new(&[(start, steps, 1)], Mamba::ORDER, |_, _, step| observed(start + step));
            network.forward(&weights, &rows, Past::Growing(&mut cache), &mut tape);
            reading.extend_from_slice(Mamba::hidden(&tape));
        }
        let rows = Rows::new(&groups, Mamba::ORDER, branched);
        network.forward(&weights, &rows, Past::Shared(&cache), &mut tape);
        let hidden = Mamba::hidden(&tape).to_vec();
        let width = network.hidden_size();
        let agree = |got: &[f32], expected: &[f64]| {
            for (a, b) in got.iter().zip(expected) {
                assert!((f64::from(*a) - b).abs() < 1e-5, "{a} against {b}");
            }
        };
        let whole: Vec<u32> = (0..12).map(observed).collect();
        for (row, expected) in plain(&network, &wide, &whole).iter().enumerate() {
            agree(&reading[row * width..][..width], expected);
        }
        rows.for_each(|group, branch, step, row| {
            let mut tokens: Vec<u32> = (0..group.start).map(observed).collect();
            tokens.extend((0..=step).map(|step| branched(group.index, branch, step)));
            let got = &hidden[row * width..][..width];
            agree(got, &plain(&network, &wide, &tokens)[group.start + step]);
            let alone = Rows::new(&[(0, tokens.len(), 1)], Mamba::ORDER, |_, _, step| tokens[step]);
            let mut tape = Tape::default();
            network.forward(&weights, &alone, Past::Nothing, &mut tape);
            for (a, b) in got.iter().zip(&Mamba::hidden(&tape)[(tokens.len() - 1) * width..]) {
                assert!((a - b).abs() < 1e-5, "{a} against {b}");
            }
        });
    }
}

#[test]
fn gradients_are_those_of_the_definition() {
    let lengths = [5, 1, 2 * CHUNK + 3, CHUNK, 2 * CHUNK];
    let share = |row: usize, at: usize| ((row * 5 + at * 3) % 13) as f64 / 6.0 - 1.0;
    for (state, inner, bias) in [(16, 24, true), (4, 16, false)] {
        let network = network(state, 4, inner, bias);
        let (weights, width) = (weights(&network), network.hidden_size());
        let rows = Rows::new(&lengths.map(|length| (0, length, 1)), Mamba::ORDER, branched);
        let loss = |weights: &[f64]| {
            let hidden: Vec<_> = (0..lengths.len())
                .map(|group| {
                    let tokens: Vec<u32> = (0..lengths[group]).map(|step| branched(group, 0, step)).collect();
                    plain(&network, weights, &tokens)
                })
                .collect();
            let mut sum = 0.0;
            rows.for_each(|group, _, step, row| {
                let hidden = hidden[group.index][step].iter().enumerate();
                sum += hidden.map(|(at, x)| share(row, at) * x).sum::<f64>();
            });
            sum
        };
        let (mut tape, mut gradient) = (Tape::default(), vec![0.0; weights.len()]);
        // Twice: buffers are reused, and gradients add up.
        for _ in 0..2 {
            network.forward(&weights, &rows, Past::Training, &mut tape);
            let mut d_hidden: Vec<f32> =
                (0..rows.len() * width).map(|place| 0.5 * share(place / width, place % width) as f32).collect();
            network.backward(&weights, &rows, &mut tape, &mut d_hidden, &mut gradient);
        }
        let wide: Vec<f64> = weights.iter().map(|w| f64::from(*w)).collect();
        for entry in network.layout().entries() {
            let direction: Vec<f64> = entry.range().map(|index| (index * 7919 % 103) as f64 / 51.0 - 1.0).collect();
            let moved = |by: f64| {
                let mut weights = wide.clone();
                weights[entry.range()].iter_mut().zip(&direction).for_each(|(w, d)| *w += by * d);
                loss(&weights)
            };
            let expected = (moved(1e-4) - moved(-1e-4)) / 2e-4;
            let gradient = || gradient[entry.range()].iter().map(|g| f64::from(*g));
            let got: f64 = gradient().zip(&direction).map(|(g, d)| g * d).sum();
            let size = gradient().map(|g| g * g).sum::<f64>().sqrt();
            assert!(size > 0.01, "{}: {size}", entry.name);
            assert!((got - expected).abs() < 1e-4 * size, "{}: {got} against {expected}", entry.name);
        }
    }
}

#[test]
fn a_long_cache_keeps_fewer_states() {
    let network = network(16, 4, 24, false);
    let (inputs, state) = network.bytes();
    assert_eq!(network.cost(100).0, 100 * inputs + 101 * state);
    for tokens in [0, 1, 60_000, 300_000] {
        let (bytes, _) = network.cost(tokens);
        assert!(bytes <= CACHE_BYTES + state, "{bytes} bytes for {tokens} tokens");
    }
    assert!(network.stride(300_000) > 1);
    // For longer sequences the inputs of every token alone take more.
    assert!(network.cost(1_000_000).0 <= 1_000_000 * inputs + STATE_BYTES + state);
}
