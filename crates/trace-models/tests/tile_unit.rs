//! Networks on the tile unit beside the same networks on the vector units.
//!
//! What is allowed holds for the whole program, so that this file has one test.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails by panicking

use trace_models::neural::NetworkConfig;
use trace_models::neural::llama::LlamaConfig;
use trace_models::neural::mamba::MambaConfig;
use trace_models::neural::recurrent::RecurrentConfig;
use trace_models::neural::train::OptimiserKind;
use trace_models::{allow_tile_unit, tile_unit};

const TYPES: usize = 200;

/// Large enough for their products to be worth the unit.
fn networks() -> Vec<NetworkConfig> {
    let recurrent = RecurrentConfig { tokens: TYPES, width: 96, layers: 1, norm_epsilon: 1e-6, tied: false };
    vec![
        NetworkConfig::Llama(LlamaConfig {
            tokens: TYPES,
            width: 96,
            layers: 2,
            heads: 4,
            key_heads: 4,
            head_width: 24,
            feed_forward: 160,
            rope_theta: 10_000.0,
            norm_epsilon: 1e-5,
            tied: false,
            trained_length: 48,
        }),
        NetworkConfig::Mamba(MambaConfig {
            tokens: TYPES,
            width: 96,
            layers: 1,
            state: 8,
            kernel: 4,
            inner: 192,
            step_rank: 6,
            norm_epsilon: 1e-5,
            conv_bias: true,
            bias: false,
            tied: false,
        }),
        NetworkConfig::Gru(recurrent.clone()),
        NetworkConfig::Lstm(recurrent),
    ]
}

/// The distance of two vectors beside the length of the second.
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
        // Some steps first: at its start a network says hardly anything.
        let mut state = config.fresh_state(3, OptimiserKind::AdamW);
        config.steps(&mut state, &vec![windows.clone(); 12], 3e-3).unwrap();
        let network = config.with_weights(state.weights.clone()).unwrap();
        let run = |allowed: bool| {
            allow_tile_unit(allowed);
            assert_eq!(tile_unit(), allowed);
            let (loss, gradient) = config.loss_and_gradient(&state.weights, &windows).unwrap();
            (network.logits(&windows).sequences().collect::<Vec<_>>().concat(), loss, gradient)
        };
        let (vectors, tiles) = (run(false), run(true));
        // Exact products are exact to 2⁻¹⁶ or so, those of training to 2⁻⁸; that both differ shows that they were used.
        let (logits, gradient) = (apart(&tiles.0, &vectors.0), apart(&tiles.2, &vectors.2));
        assert!(logits > 0.0 && logits < 5e-5, "{name}: logits are {logits:.1e} apart");
        assert!((tiles.1 / vectors.1 - 1.0).abs() < 2e-3, "{name}: losses {} and {}", tiles.1, vectors.1);
        assert!(gradient > 1e-5 && gradient < 2e-2, "{name}: gradients are {gradient:.1e} apart");
    }
}
