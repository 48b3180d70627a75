//! Tests of [`super`].

use super::initialize::{GAIN, SCALE};
use super::*;
use crate::neural::NetworkConfig;
use crate::neural::train::OptimizerKind;

fn fresh(heads: usize, head_dim: usize) -> (Llama, Vec<f32>) {
    let llama = Llama::new(LlamaConfig {
        vocab_size: 9,
        hidden_size: 32,
        layers: 2,
        heads,
        num_key_value_heads: heads,
        head_dim,
        intermediate_size: 8,
        rope_theta: 10_000.0,
        rms_norm_eps: 1e-5,
        tie_word_embeddings: false,
        trained_length: 8,
    });
    let mut weights = llama.layout.draw(3);
    llama.initialize(&mut weights);
    (llama, weights)
}

/// Where a new head looks depends on no event, yet every pair of its numbers can learn to; nothing else speaks.
#[test]
fn heads_of_a_new_network_attend_to_lags() {
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

/// Rows of new networks have nearly the same size, and heads copy the rows of earlier events.
#[test]
fn a_new_network_copies_rows() {
    for heads in [4, 2] {
        let (llama, weights) = fresh(heads, 32 / heads);
        let table = |range: &Range<usize>| -> Vec<Vec<f32>> {
            weights[range.clone()].chunks_exact(32).map(<[f32]>::to_vec).collect()
        };
        for row in table(&llama.embedding) {
            let size = (row.iter().map(|x| x * x).sum::<f32>() / 32.0).sqrt();
            assert!((size / SCALE - 1.0).abs() < 0.02, "{size}");
        }
        let (values, out) = (&table(&llama.layers[0].qkv)[64..], table(&llama.layers[0].out));
        for place in 1..32 {
            assert_eq!((values[place][place], out[place][place]), (1.0, GAIN));
            assert_eq!(values[place].iter().filter(|value| **value != 0.0).count(), 1);
            assert_eq!(out[place].iter().filter(|value| **value != 0.0).count(), 1);
        }
        assert!(table(&llama.head).iter().all(|row| row[0] == 0.0));
    }
}

/// New weights depend on the seed alone.
#[test]
fn a_seed_decides_new_weights() {
    let (llama, before) = fresh(4, 8);
    let network = NetworkConfig::Llama(llama.config);
    assert_eq!(network.fresh_state(3, OptimizerKind::AdamW).weights, before);
    assert_ne!(network.fresh_state(4, OptimizerKind::AdamW).weights, before);
}
