//! Shapley values beside Captum's, on the same weights.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::path::{Path, PathBuf};

use serde_json::Value;
use trace_core::{DensityModel, EventId, EventSequence, Memory};
use trace_lab::methods::{Absent, Shapley, Span};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace-models/tests/golden")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn shapley_values_are_those_of_captum() {
    let text = std::fs::read_to_string(golden().join("attributions.json")).unwrap();
    let golden_file: Value = serde_json::from_str(&text).unwrap();
    let model = trace_models::open(&golden().join(golden_file["checkpoint"].as_str().unwrap())).unwrap().model;
    let events: Vec<EventId> = numbers(&golden_file["tokens"]).into_iter().map(|token| EventId(token as u32)).collect();
    let sequence = EventSequence::new("golden", events.clone());
    let reading = model.read(&events).unwrap();
    let games = golden_file["shapley"].as_array().unwrap();
    assert_eq!(games.len(), 4);
    for game in games {
        let effect = game["position"].as_u64().unwrap() as usize;
        let players = game["players"].as_array().unwrap().len();
        let expected = numbers(&game["values"]);
        let observed = game["observed"].as_f64().unwrap();
        assert!((reading.observed()[effect].log_p - observed).abs() < 1e-5);
        let shapley = |orders: usize, seed: u64| Shapley {
            span: Span { memory: Memory::Lags(players), context: effect - players },
            model: &*model as &dyn DensityModel,
            orders,
            absent: Absent::Type(EventId(game["baseline"].as_u64().unwrap() as u32)),
            threshold: 0.0,
            seed,
        };
        // However few orders, the values share out exactly what all players together are worth.
        let (values, _) = shapley(3, 1).values(&sequence, &*reading, effect).unwrap();
        let worth = observed - game["absent"].as_f64().unwrap();
        assert!((values.iter().sum::<f64>() - worth).abs() < 1e-5, "{values:?} do not add up to {worth}");
        // Every order once: Captum's exact values. Here they are listed from the nearest player on.
        let (mut exact, _) = shapley(120, 2).values(&sequence, &*reading, effect).unwrap();
        exact.reverse();
        let largest = expected.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
        for (value, captum) in exact.iter().zip(&expected) {
            // Products on a tile unit are exact to some 2⁻¹⁶.
            assert!((value - captum).abs() < 5e-5 * largest, "position {effect}: {exact:?} against {expected:?}");
        }
        // Sampled orders come close.
        let (mut sampled, _) = shapley(100, 3).values(&sequence, &*reading, effect).unwrap();
        sampled.reverse();
        for (value, captum) in sampled.iter().zip(&expected) {
            assert!((value - captum).abs() < 0.3 * largest, "position {effect}: {sampled:?} against {expected:?}");
        }
    }
}
