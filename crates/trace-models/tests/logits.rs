//! Plain logits of many sequences at once.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails by panicking

use trace_models::neural::shape::{Architecture, Shape};
use trace_models::neural::train::OptimizerKind;

const TYPES: usize = 30;

/// Sequences of all lengths, enough of them for several passes.
fn sequences() -> Vec<Vec<u32>> {
    let token = |i: usize| ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as u32 % TYPES as u32;
    (0..60).map(|s| (0..=s * 7 % 23).map(|t| token(31 * s + t)).collect()).collect()
}

#[test]
fn sequences_have_the_same_logits_together_as_alone() {
    let shape = Shape { layers: 1, hidden_size: 16, heads: 2, head_dim: 8, intermediate_size: 16 };
    let sequences = sequences();
    for architecture in [Architecture::Llama, Architecture::Mamba, Architecture::Gru, Architecture::Lstm] {
        let config = shape.network(architecture, TYPES, 23);
        let mut state = config.fresh_state(3, OptimizerKind::AdamW);
        // Some training first: an initial network hardly distinguishes events and positions.
        config.steps(&mut state, &vec![sequences.clone(); 8], 1e-2).unwrap();
        let network = config.with_weights(state.weights).unwrap();
        let together = network.logits(&sequences);
        assert_eq!(together.sequences().count(), sequences.len());
        let mut spread = 0.0f32;
        for (sequence, found) in sequences.iter().zip(together.sequences()) {
            assert_eq!(found.len(), sequence.len() * config.vocab_size(), "{architecture:?}");
            let alone = network.logits(std::slice::from_ref(sequence));
            for (one, other) in found.iter().zip(alone.sequences().next().unwrap()) {
                assert!((one - other).abs() < 1e-4, "{architecture:?}: {one} against {other}");
                spread = spread.max(one.abs());
            }
        }
        assert!(spread > 0.1, "{architecture:?}: logits this flat ({spread}) would not tell a wrong order");
    }
}

#[test]
fn no_sequences_have_no_logits() {
    let config = Shape::TINY.network(Architecture::Llama, TYPES, 8);
    let network = config.with_weights(config.fresh_state(1, OptimizerKind::AdamW).weights).unwrap();
    assert_eq!(network.logits(&[]).sequences().count(), 0);
    assert_eq!(
        network.logits(&[Vec::new(), vec![1]]).sequences().map(<[f32]>::len).collect::<Vec<_>>(),
        [0, TYPES + 1]
    );
}
