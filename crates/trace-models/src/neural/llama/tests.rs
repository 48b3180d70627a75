//! Tests of [`super`].

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use trace_core::EventId;

use super::begin::{KNOWN, QUIETEST, SIZE};
use super::*;
use crate::neural::NetworkConfig;
use crate::neural::train::{OptimiserKind, Survey};

fn fresh(heads: usize, head_width: usize) -> (Llama, Vec<f32>) {
    let llama = Llama::new(LlamaConfig {
        tokens: 9,
        width: 32,
        layers: 2,
        heads,
        key_heads: heads,
        head_width,
        feed_forward: 8,
        rope_theta: 10_000.0,
        norm_epsilon: 1e-5,
        tied: false,
        trained_length: 8,
    });
    let mut weights = llama.layout.draw(3);
    llama.begin(&mut weights, &Echo::default(), None);
    (llama, weights)
}

/// Where a fresh head looks depends on no event, yet every pair of its numbers can learn to; nothing else speaks.
#[test]
fn a_fresh_network_is_quiet() {
    let (llama, weights) = fresh(2, 20);
    let rows: Vec<&[f32]> = weights[llama.layers[0].qkv.clone()].chunks_exact(32).collect();
    let (queries, keys) = (&rows[..40], &rows[40..80]);
    let of_events = |row: &[f32]| row[1..].iter().any(|weight| *weight != 0.0);
    assert!(!queries.iter().any(|row| of_events(row)), "no query depends on the event");
    let (mut asked, mut free) = (0, 0);
    for head in 0..2 {
        for i in 0..10 {
            let pair = [head * 20 + i, head * 20 + 10 + i];
            if pair.iter().any(|row| queries[*row][0] != 0.0) {
                assert!(!pair.iter().any(|row| of_events(keys[*row])), "what is asked for is the distance");
                assert!(keys[pair[0]][0] > 0.0);
                asked += 1;
            } else {
                assert!(pair.iter().all(|row| of_events(keys[*row])), "queries can learn to ask for it");
                free += 1;
            }
        }
    }
    assert_eq!((asked, free), (10, 10));
    let silent = |range: &Range<usize>| weights[range.clone()].iter().all(|weight| *weight == 0.0);
    assert!(llama.layers.iter().all(|layer| silent(&layer.down)) && silent(&llama.layers[1].out));
    assert!(!silent(&llama.layers[0].out), "the first layer passes on what its heads see");
}

/// Rows of fresh networks have nearly the same size, heads carry the public part of the row before the last and
/// whisper of the private part, which the head of the network does not read.
#[test]
fn a_fresh_network_keeps_part_of_its_rows_private() {
    let (llama, weights) = fresh(4, 8);
    assert_eq!((llama.public(), llama.carriers()), (24, 3));
    let table = |range: &Range<usize>, columns: usize| -> Vec<Vec<f32>> {
        weights[range.clone()].chunks_exact(columns).map(<[f32]>::to_vec).collect()
    };
    let silent = |values: &[f32]| values.iter().all(|value| *value == 0.0);
    assert!(table(&llama.head, 32).iter().all(|row| silent(&row[24..]) && !silent(&row[1..24])));
    assert!(silent(&table(&llama.norm, 32)[0][24..]));
    for row in table(&llama.embedding, 32) {
        let size = (row.iter().map(|x| x * x).sum::<f32>() / 32.0).sqrt();
        assert!((size / SIZE - 1.0).abs() < 0.02, "{size}");
    }
    let values = &table(&llama.layers[0].qkv, 32)[64..];
    let out = table(&llama.layers[0].out, 32);
    for place in 1..24 {
        assert_eq!((values[place][place], out[place][place]), (1.0, QUIETEST as f32));
        assert!(!silent(&out[place][24..]), "the last head speaks to the public part");
    }
    assert!(values[24..].iter().all(|row| silent(&row[..24]) && !silent(&row[24..])), "and sees the private one");
    assert!(out[24..].iter().all(|row| silent(row)));
}

/// An undertone is said from the first step on: by the heads that look at one event each, in the words of the head.
#[test]
fn a_fresh_network_knows_its_undertone() {
    let (llama, _) = fresh(4, 8);
    let room = llama.undertone_room().expect("a private part");
    assert_eq!(room, Room { causes: 8, effects: 4, lags: 1 });
    // Of each type but the last, which was not looked at and says nothing.
    let causes: Vec<f32> = (0..64).map(|i| if i < 56 { (i as f32 * 0.7).sin() } else { 0.0 }).collect();
    let effects: Vec<f32> = (0..32).map(|i| (i as f32 * 1.3).cos()).collect();
    let lag: Vec<f32> = (0..32).map(|i| (i as f32 * 2.1).sin() / 10.0).collect();
    let undertone = Undertone { room, causes, effects, lags: vec![lag] };
    let mut weights = llama.layout.draw(3);
    let plain = {
        let mut weights = weights.clone();
        llama.begin(&mut weights, &Echo::default(), None);
        weights
    };
    llama.begin(&mut weights, &Echo::default(), Some(&undertone));
    let table = |weights: &[f32], range: &Range<usize>| -> Vec<Vec<f32>> {
        weights[range.clone()].chunks_exact(32).map(<[f32]>::to_vec).collect()
    };
    // The last head's values are the private numbers, its output goes to the last four public ones.
    let (values, out) = (&table(&weights, &llama.layers[0].qkv)[64..], table(&weights, &llama.layers[0].out));
    let (events, head) = (table(&weights, &llama.embedding), table(&weights, &llama.head));
    for (u, v) in (0..8).flat_map(|u| (0..8).map(move |v| (u, v))) {
        let mut logit = 0.0;
        for (to, out) in out.iter().enumerate().take(24).skip(20) {
            for i in 0..8 {
                let number: f32 = values[24 + i].iter().zip(&events[u]).skip(24).map(|(a, b)| a * b).sum();
                logit += head[v][to] * out[24 + i] * number / KNOWN;
            }
        }
        let mut wanted = 0.0;
        for i in 0..8 {
            for j in 0..4 {
                wanted += undertone.causes[u * 8 + i] * undertone.lags[0][i * 4 + j] * undertone.effects[v * 4 + j];
            }
        }
        assert!((logit - wanted).abs() < 1e-5, "{u} {v}: {logit} {wanted}");
    }
    assert!(events.iter().all(|row| row[20..24].iter().all(|number| *number == 0.0)), "it alone speaks there at first");
    assert_eq!(table(&plain, &llama.embedding)[3][1..20], events[3][1..20], "the rest is as it was");
}

/// A log says what it does two events later; where it does the same at all lags, that is an echo, and heard as one.
#[test]
fn a_far_echo_leaves_no_undertone() {
    let (llama, plain) = fresh(4, 8);
    let network = NetworkConfig::Llama(llama.config.clone());
    // Does a network start with more than an echo, if events follow those so many events earlier? And had it the usual one?
    let says_more = |lags: std::ops::RangeInclusive<usize>| {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        let mut sequence = || {
            let mut events: Vec<EventId> = Vec::new();
            for at in 0..50 {
                let lag = random.random_range(lags.clone());
                let follows = at >= lag && random.random::<f64>() < 0.9;
                let event = if follows { events[at - lag].0 * 2 + 1 } else { random.random_range(0..9) };
                events.push(EventId(event % 9));
            }
            events
        };
        let corpus: Vec<Vec<EventId>> = (0..800).map(|_| sequence()).collect();
        let survey = Survey::new(&corpus, 9, 0.1, 1).expect("a corpus");
        let echo = Echo::measure(&corpus, &survey).expect("a corpus");
        let usual = echo.is_usual();
        let says_more = [echo, Echo::default()].map(|echo| {
            let state = network.fresh_state_on(&corpus, &survey, &echo, 3, OptimiserKind::AdamW).expect("a corpus");
            state.weights[llama.embedding.clone()] != plain[llama.embedding.clone()]
        });
        (usual, says_more)
    };
    assert_eq!(says_more(2..=2), (true, [true, true]));
    assert_eq!(says_more(1..=6), (false, [false, true]));
}

/// Head and last gain are each the other's gradient where both are zero: training changes neither, while the private part
/// of the embeddings learns.
#[test]
fn training_leaves_the_private_part_private() {
    let (llama, before) = fresh(4, 8);
    let network = NetworkConfig::Llama(llama.config.clone());
    let mut state = network.fresh_state(3, OptimiserKind::AdamW);
    assert_eq!(state.weights, before);
    let batch: Vec<Vec<u32>> = (0..4).map(|s| (0..9).map(|i| (5 * s + i * i) % 9).collect()).collect();
    network.steps(&mut state, &vec![batch; 4], 0.01).expect("batches are in order");
    let silent = |values: &[f32]| values.iter().all(|value| *value == 0.0);
    let rows = |range: &Range<usize>| state.weights[range.clone()].chunks_exact(32);
    assert!(rows(&llama.head).all(|row| silent(&row[24..])));
    assert!(silent(&state.weights[llama.norm.clone()][24..]));
    let fresh_rows = before[llama.embedding.clone()].chunks_exact(32);
    assert!(rows(&llama.embedding).zip(fresh_rows).all(|(now, before)| now[24..] != before[24..]));
}
