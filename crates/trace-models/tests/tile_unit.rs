//! Compares networks on the tile unit with the same networks on the vector units.
//!
//! The setting is global, so this file has only one test.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails by panicking

use trace_kernels::matmul::{allow_tile_unit, tile_unit};
use trace_models::neural::NetworkConfig;
use trace_models::neural::llama::LlamaConfig;
use trace_models::neural::mamba::MambaConfig;
use trace_models::neural::recurrent::RecurrentConfig;
use trace_models::neural::train::OptimizerKind;

const TYPES: usize = 200;

/// Networks whose products are large enough for the tile unit.
fn networks() -> Vec<NetworkConfig> {
    let recurrent = RecurrentConfig {
        vocab_size: TYPES,
        hidden_size: 96,
        layers: 1,
        rms_norm_eps: 1e-6,
        tie_word_embeddings: false,
    };
    vec![
        NetworkConfig::Llama(LlamaConfig {
            vocab_size: TYPES,
            hidden_size: 96,
            layers: 2,
            heads: 4,
            num_key_value_heads: 4,
            head_dim: 24,
            intermediate_size: 160,
            rope_theta: 10_000.0,
            rms_norm_eps: 1e-5,
            tie_word_embeddings: false,
            trained_length: 48,
        }),
        NetworkConfig::Mamba(MambaConfig {
            vocab_size: TYPES,
            hidden_size: 96,
            layers: 1,
            state_size: 8,
            conv_kernel: 4,
            intermediate_size: 192,
            time_step_rank: 6,
            rms_norm_eps: 1e-5,
            use_conv_bias: true,
            use_bias: false,
            tie_word_embeddings: false,
        }),
        NetworkConfig::Gru(recurrent.clone()),
        NetworkConfig::Lstm(recurrent),
    ]
}

/// The distance of two vectors relative to the length of the second.
fn apart(one: &[f32], other: &[f32]) -> f64 {
    let square = |values: &mut dyn Iterator<Item = f32>| values.map(|value| f64::from(value).powi(2)).sum::<f64>();
    let difference = square(&mut one.iter().zip(other).map(|(one, other)| one - other));
    (difference / square(&mut other.iter().copied())).sqrt()
}

#[test]
fn the_tile_unit_multiplies_like_the_vector_units() {
    if !tile_unit() {
        eprintln!("skipped: this machine has no tile unit");
        return;
    }
    let token = |i: usize| ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as u32 % TYPES as u32;
    let windows: Vec<Vec<u32>> = (0..16).map(|s| (0..48).map(|t| token(48 * s + t)).collect()).collect();
    for config in networks() {
        let name = config.backbone();
        // Some training first: the logits of an initial network are nearly constant.
        let mut state = config.fresh_state(3, OptimizerKind::AdamW);
        config.steps(&mut state, &vec![windows.clone(); 12], 3e-3).unwrap();
        let network = config.with_weights(state.weights.clone()).unwrap();
        let run = |allowed: bool| {
            allow_tile_unit(allowed);
            assert_eq!(tile_unit(), allowed);
            let (loss, gradient) = config.loss_and_gradient(&state.weights, &windows).unwrap();
            (network.logits(&windows).sequences().collect::<Vec<_>>().concat(), loss, gradient)
        };
        let (vectors, tiles) = (run(false), run(true));
        // Exact products have errors of about 2⁻¹⁶, those of training of about 2⁻⁸; a difference shows that the unit
        // was used.
        let (logits, gradient) = (apart(&tiles.0, &vectors.0), apart(&tiles.2, &vectors.2));
        assert!(logits > 0.0 && logits < 5e-5, "{name}: logits are {logits:.1e} apart");
        assert!((tiles.1 / vectors.1 - 1.0).abs() < 2e-3, "{name}: losses {} and {}", tiles.1, vectors.1);
        assert!(gradient > 1e-5 && gradient < 2e-2, "{name}: gradients are {gradient:.1e} apart");
    }
}
