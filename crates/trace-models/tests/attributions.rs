//! Compares saliency with that of Captum (`scripts/attributions.py` writes the file), and tests its other guarantees.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::path::{Path, PathBuf};

use serde::Deserialize;
use trace_core::EventId;
use trace_models::neural::{NeuralNetwork, open_network};

#[derive(Deserialize)]
struct Attributions {
    checkpoint: String,
    tokens: Vec<u32>,
    input_x_gradient: Vec<InputXGradient>,
}

#[derive(Deserialize)]
struct InputXGradient {
    position: usize,
    norms: Vec<f64>,
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn saliency(model: &dyn NeuralNetwork, events: &[EventId], positions: std::ops::Range<usize>) -> Vec<f64> {
    let mut out = vec![f64::NAN; positions.clone().sum()];
    model.saliency(events, positions, &mut out).unwrap();
    out
}

/// Within a tolerance relative to the largest.
fn close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().copied().fold(0.0, f64::max);
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= tolerance * largest, "{what}: {a} against {b}, the largest being {largest}");
    }
}

#[test]
fn saliency_is_that_of_captum() {
    let expected: Attributions = serde_json::from_slice(&std::fs::read(golden("attributions.json")).unwrap()).unwrap();
    let model = open_network(&golden(&expected.checkpoint)).unwrap();
    let events: Vec<EventId> = expected.tokens.iter().map(|token| EventId(*token)).collect();
    assert!(expected.input_x_gradient.len() > 2);
    for InputXGradient { position, norms } in expected.input_x_gradient {
        assert_eq!(norms.len(), position);
        let found = saliency(&*model, &events, position..position + 1);
        close(&found, &norms, 1e-5, &format!("position {position}"));
    }
}

/// A sequence long enough for several passes.
fn long() -> Vec<EventId> {
    (0..48).map(|position| EventId((position * position * 7 + position * 3) % 19)).collect()
}

#[test]
fn neither_threads_nor_ranges_matter() {
    let events = long();
    for name in ["llama-tied", "mamba", "gru", "lstm", "trained-llama", "trained-lstm"] {
        let model = open_network(&golden(name)).unwrap();
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| saliency(&*model, &events, 0..events.len()))
        };
        let whole = with(1);
        assert!(whole.iter().all(|x| x.is_finite() && *x > 0.0), "{name}");
        assert!(whole == with(3), "{name}");
        for position in [0, 1, 2, 30, 47] {
            let own = &whole[(0..position).sum()..][..position];
            close(&saliency(&*model, &events, position..position + 1), own, 1e-5, name);
        }
        close(&saliency(&*model, &events, 20..40), &whole[(0..20).sum()..(0..40).sum()], 1e-5, name);
        // What comes after an effect does not matter to it.
        assert!(saliency(&*model, &events[..25], 0..25) == saliency(&*model, &events, 0..25), "{name}");
    }
}

#[test]
fn models_without_gradients_say_so() {
    let model = open_network(&golden("gpt2")).unwrap();
    let complaint = model.saliency(&long(), 1..2, &mut [0.0]).unwrap_err().to_string();
    assert!(complaint.contains("gpt2 has no gradients"), "{complaint}");
}
