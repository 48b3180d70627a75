//! Training steps and ragged batches.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use candle_core::{DType, Device, Tensor};
use support::{TARGETS, TOKENS, architectures, numbers, tensor, weights};
use trace_candle::{Architecture, Batch, Error, Trainer, TrainerSettings, Weights, gradients, loss, masked_loss};

const RAGGED: [&[u32]; 3] = [&[0, 1, 2, 3, 4], &[1, 2], &[]];

fn trainer(architecture: &Architecture, weights: &Weights, settings: TrainerSettings) -> Trainer {
    Trainer::new(architecture.network(weights).unwrap(), weights, settings).unwrap()
}

#[test]
fn batches_pad_and_mask() {
    let batch = Batch::new(&RAGGED, Some(5), &Device::Cpu).unwrap();
    assert_eq!(batch.tokens.to_vec2::<u32>().unwrap(), [[5, 0, 1, 2, 3], [5, 1, 0, 0, 0], [0; 5]]);
    assert_eq!(batch.targets.to_vec2::<u32>().unwrap(), [[0, 1, 2, 3, 4], [1, 2, 0, 0, 0], [0; 5]]);
    assert_eq!(batch.mask.to_vec2::<f32>().unwrap(), [[1.0; 5], [1.0, 1.0, 0.0, 0.0, 0.0], [0.0; 5]]);
    let batch = Batch::new(&RAGGED, None, &Device::Cpu).unwrap();
    assert_eq!(batch.tokens.to_vec2::<u32>().unwrap(), [[0, 1, 2, 3], [1, 0, 0, 0], [0; 4]]);
    assert_eq!(batch.mask.to_vec2::<f32>().unwrap(), [[1.0; 4], [1.0, 0.0, 0.0, 0.0], [0.0; 4]]);
    assert!(matches!(Batch::new(&[[3u32]], None, &Device::Cpu), Err(Error::EmptyBatch)));
    assert!(matches!(Batch::new::<Vec<u32>>(&[], Some(5), &Device::Cpu), Err(Error::EmptyBatch)));
}

#[test]
fn padding_does_not_count() {
    for architecture in architectures() {
        let weights = weights(&architecture).to_dtype(DType::F64).unwrap();
        let network = architecture.network(&weights).unwrap();
        let of = |sequences: &[&[u32]]| {
            let batch = Batch::new(sequences, Some(5), &Device::Cpu).unwrap();
            numbers(&masked_loss(&*network, &batch.tokens, &batch.targets, &batch.mask).unwrap())[0]
        };
        let expected = (of(&RAGGED[..1]) * 5.0 + of(&RAGGED[1..2]) * 2.0) / 7.0;
        assert!((of(&RAGGED) - expected).abs() < 1e-12, "{}", architecture.name());
        let ones = Tensor::ones((2, 6), DType::F32, &Device::Cpu).unwrap();
        let masked = masked_loss(&*network, &tensor(&TOKENS), &tensor(&TARGETS), &ones).unwrap();
        let plain = loss(&*network, &tensor(&TOKENS), &tensor(&TARGETS)).unwrap();
        assert!((numbers(&masked)[0] - numbers(&plain)[0]).abs() < 1e-12);
    }
}

#[test]
fn steps_lower_the_loss() {
    for architecture in architectures() {
        let weights = weights(&architecture);
        let watcher = architecture.network(&weights.frozen()).unwrap();
        let mut trainer = trainer(&architecture, &weights, TrainerSettings::default());
        let batch = Batch::new(&RAGGED, Some(5), &Device::Cpu).unwrap();
        let losses: Vec<f64> = (0..60).map(|_| trainer.step(&batch, 0.02).unwrap().loss).collect();
        assert!(losses[59] < losses[0] / 4.0, "{}: {losses:?}", architecture.name());
        let seen = masked_loss(&*watcher, &batch.tokens, &batch.targets, &batch.mask).unwrap();
        assert!(numbers(&seen)[0] < losses[0] / 4.0, "a frozen network sees the training");
    }
}

/// The first step of AdamW by hand. An epsilon far above the gradients makes the step proportional to them, so that
/// clipping has a visible effect.
#[test]
fn a_step_is_what_adamw_says() {
    for architecture in architectures() {
        let weights = weights(&architecture).to_dtype(DType::F64).unwrap();
        let before = weights.to_vec().unwrap();
        let network = architecture.network(&weights).unwrap();
        let gradients = gradients(&*network, &weights, &tensor(&TOKENS), &tensor(&TARGETS)).unwrap();
        let norm = gradients.values().flatten().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        let settings = TrainerSettings { eps: 1e6, weight_decay: 1e-6, clip: norm / 2.0, ..TrainerSettings::default() };
        let mask = Tensor::ones((2, 6), DType::F32, &Device::Cpu).unwrap();
        let batch = Batch { tokens: tensor(&TOKENS), targets: tensor(&TARGETS), mask };
        let step = trainer(&architecture, &weights, settings).step(&batch, 1e5).unwrap();
        assert!((step.gradient_norm / norm - 1.0).abs() < 1e-6);
        for ((name, shape, before), (_, _, after)) in before.iter().zip(&weights.to_vec().unwrap()) {
            let decay = if shape.len() >= 2 && !name.ends_with("A_log") { 1e5 * 1e-6 } else { 0.0 };
            for ((before, after), gradient) in before.iter().zip(after).zip(&gradients[name]) {
                let expected = f64::from(*before) * (1.0 - decay) - 1e5 / 1e6 * 0.5 * f64::from(*gradient);
                assert!((f64::from(*after) - expected).abs() < 1e-6, "{name}: {before} {after} {expected}");
            }
        }
    }
}

#[test]
fn a_diverged_step_changes_nothing() {
    let [architecture, ..] = architectures();
    let weights = weights(&architecture);
    let norm = &weights.variables()["model.norm.weight"];
    norm.set(&Tensor::full(f32::INFINITY, 8, &Device::Cpu).unwrap()).unwrap();
    let before = weights.to_vec().unwrap();
    let mut trainer = trainer(&architecture, &weights, TrainerSettings::default());
    let batch = Batch::new(&RAGGED, Some(5), &Device::Cpu).unwrap();
    assert!(matches!(trainer.step(&batch, 0.1), Err(Error::Diverged { .. })));
    assert_eq!(weights.to_vec().unwrap(), before);
    let network = architecture.network(&weights).unwrap();
    let wrong = TrainerSettings { clip: 0.0, ..TrainerSettings::default() };
    assert!(Trainer::new(network, &weights, wrong).err().unwrap().to_string().starts_with("clip: "));
}

/// Candle traverses and frees the graph of a computation recursively.
#[test]
fn long_sequences_do_not_overrun_the_stack() {
    for architecture in &architectures()[2..] {
        let weights = weights(architecture);
        let mut trainer = trainer(architecture, &weights, TrainerSettings::default());
        let long: Vec<u32> = (0..6000).map(|t| t * t % 5).collect();
        let batch = Batch::new(&[long], Some(5), &Device::Cpu).unwrap();
        assert!(trainer.step(&batch, 1e-3).unwrap().loss.is_finite());
    }
}
