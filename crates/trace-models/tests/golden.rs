//! Compares logits of small checkpoints with those of Transformers and PyTorch (`scripts/golden.py` writes the files).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::path::Path;

use serde::Deserialize;
use trace_core::{DensityModel, EventId};
use trace_models::neural::open_network;
use trace_models::open_encoder;

#[derive(Deserialize)]
struct Expected {
    tokens: Vec<Vec<u32>>,
    logits: Vec<Vec<Vec<f32>>>,
    /// Of masked models.
    #[serde(default)]
    attention: Vec<Vec<Vec<f32>>>,
}

fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn expected(name: &str) -> Expected {
    serde_json::from_slice(&std::fs::read(golden(name).join("expected.json")).unwrap()).unwrap()
}

fn check(name: &str) {
    let expected = expected(name);
    let network = open_network(&golden(name)).unwrap();
    let logits = network.logits(&expected.tokens);
    let mut spread = 0.0f32;
    for ((tokens, found), expected) in expected.tokens.iter().zip(logits.sequences()).zip(&expected.logits) {
        let expected: Vec<f32> = expected.concat();
        assert_eq!(found.len(), expected.len(), "{name}");
        for (a, b) in found.iter().zip(&expected) {
            assert!((a - b).abs() < 1e-4, "{name}: {a} against {b}");
            spread = spread.max(b.abs());
        }
        check_rows(&*network, tokens, &expected, name);
    }
    assert!(spread > 0.3, "{name}: logits this flat ({spread}) would not tell a wrong network");
}

/// The normalized rows that discovery uses, for models whose tokens are all events.
fn check_rows(network: &dyn DensityModel, tokens: &[u32], logits: &[f32], name: &str) {
    let size = network.vocabulary_size();
    if size * tokens.len() != logits.len() {
        return;
    }
    let events: Vec<EventId> = tokens.iter().map(|token| EventId(*token)).collect();
    let mut rows = vec![0.0; size * (events.len() - 1)];
    network.forward(&events, 1..events.len(), &mut rows).unwrap();
    for (row, logits) in rows.chunks_exact(size).zip(logits.chunks_exact(size)) {
        let total = logits.iter().map(|x| f64::from(*x).exp()).sum::<f64>().ln();
        for (a, b) in row.iter().zip(logits) {
            assert!((a - (f64::from(*b) - total)).abs() < 1e-4, "{name}: {a} against {b}");
        }
    }
}

#[test]
fn llama() {
    for name in ["llama-tied", "llama-gqa", "llama-bf16", "llama-v4"] {
        check(name);
    }
}

#[test]
fn gpt2() {
    for name in ["gpt2", "gpt2-f16"] {
        check(name);
    }
}

#[test]
fn mamba() {
    for name in ["mamba", "mamba-untied"] {
        check(name);
    }
}

#[test]
fn recurrent() {
    for name in ["gru", "lstm"] {
        check(name);
    }
}

/// Logits, and the attention of the last layer.
fn check_encoder(name: &str) {
    let (expected, encoder) = (expected(name), open_encoder(&golden(name)).unwrap().encoder);
    let close = |found: &[f32], expected: &[f32], what: &str| {
        assert_eq!(found.len(), expected.len(), "{name}: {what}");
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 1e-4, "{name}: {what} {a} against {b}");
        }
    };
    let mut far = 0.0f32;
    assert_eq!(expected.tokens.len(), expected.attention.len(), "{name}");
    for ((tokens, logits), attention) in expected.tokens.iter().zip(&expected.logits).zip(&expected.attention) {
        close(&encoder.logits(tokens).unwrap(), &logits.concat(), "logit");
        // Attention takes events; the mask is not an event.
        if tokens.iter().all(|token| (*token as usize) < encoder.vocabulary_size()) {
            let events: Vec<EventId> = tokens.iter().map(|token| EventId(*token)).collect();
            close(&encoder.attention(&events).unwrap(), &attention.concat(), "attention");
            let even = 1.0 / tokens.len() as f32;
            far = attention.concat().iter().fold(far, |far, weight| far.max((weight - even).abs()));
        }
    }
    assert!(far > 0.03, "{name}: attention this even ({far}) would not tell a wrong network");
}

#[test]
fn bert() {
    for name in ["bert", "trained-bert"] {
        check_encoder(name);
    }
}

/// Folders that `trace train` wrote, and their logits by Transformers and PyTorch.
#[test]
fn trained_here() {
    for name in ["trained-llama", "trained-mamba", "trained-gru", "trained-lstm"] {
        check(name);
    }
}
