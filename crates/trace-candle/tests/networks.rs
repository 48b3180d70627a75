//! Compares the networks with PyTorch and Hugging Face Transformers and with finite differences of their loss, and
//! tests the properties of autoregressive networks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;

use candle_core::{DType, Device, Tensor};
use support::{TARGETS, TOKENS, architectures, numbers, shapes, tensor, wave, weights};
use trace_candle::{Architecture, Llama, Mamba, Weights, gradients, llama, loss, mamba};

/// The results of `golden/make.py`, by architecture and name.
fn golden() -> BTreeMap<(&'static str, &'static str), Vec<f64>> {
    let line = |line: &'static str| {
        let mut words = line.split(' ');
        let key = (words.next().unwrap(), words.next().unwrap());
        (key, words.map(|word| word.parse().unwrap()).collect())
    };
    include_str!("golden/golden.txt").lines().map(line).collect()
}

fn assert_close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let bound = tolerance * expected.abs().max(1.0);
        assert!((found - expected).abs() <= bound, "{what}, number {i}: found {found}, expected {expected}");
    }
}

#[test]
fn logits_and_gradients_are_those_of_other_implementations() {
    let golden = golden();
    for architecture in architectures() {
        // Transformers computes norms and rotations in 32 bits even in a 64-bit network.
        for (dtype, tolerance) in [(DType::F64, 2e-6), (DType::F32, 1e-5)] {
            let name = architecture.name();
            let weights = weights(&architecture).to_dtype(dtype).unwrap();
            let network = architecture.network(&weights).unwrap();
            let (tokens, targets) = (tensor(&TOKENS), tensor(&TARGETS));
            let logits = network.logits(&tokens).unwrap();
            assert_eq!(logits.dims(), [2, 6, 7]);
            assert_close(&numbers(&logits), &golden[&(name, "logits")], tolerance, name);
            let found = numbers(&loss(&*network, &tokens, &targets).unwrap());
            assert_close(&found, &golden[&(name, "loss")], tolerance, name);
            let gradients = gradients(&*network, &weights, &tokens, &targets).unwrap();
            assert_eq!(gradients.len(), golden.keys().filter(|(of, _)| *of == name).count() - 2);
            for (j, (tensor, gradient)) in gradients.iter().enumerate() {
                let gradient: Vec<f64> = gradient.iter().copied().map(f64::from).collect();
                let dot = |other: &[f64]| gradient.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
                let found = [dot(&gradient).sqrt(), dot(&wave(j as f64 + 0.5, gradient.len()))];
                assert_close(&found, &golden[&(name, tensor.as_str())], tolerance, &format!("{name} {tensor}"));
            }
        }
    }
}

/// Compares the gradients, in 64 bits, with central differences of the loss; only every third weight, to save time.
fn check_differences(architecture: &Architecture, weights: &Weights) {
    let weights = weights.to_dtype(DType::F64).unwrap();
    let (tokens, targets) = (tensor(&TOKENS), tensor(&TARGETS));
    let gradients = gradients(&*architecture.network(&weights).unwrap(), &weights, &tokens, &targets).unwrap();
    let frozen = architecture.network(&weights.frozen()).unwrap();
    let step = 1e-5;
    for (name, variable) in weights.variables() {
        let original = variable.as_detached_tensor().copy().unwrap();
        let values = numbers(&original);
        let slope = |i: usize| {
            let at = |offset: f64| {
                let mut moved = values.clone();
                moved[i] += offset;
                variable.set(&Tensor::from_vec(moved, variable.shape(), &Device::Cpu).unwrap()).unwrap();
                numbers(&loss(&*frozen, &tokens, &targets).unwrap())[0]
            };
            (at(step) - at(-step)) / (2.0 * step)
        };
        let expected: Vec<f64> = (0..values.len()).step_by(3).map(slope).collect();
        variable.set(&original).unwrap();
        let found: Vec<f64> = gradients[name].iter().step_by(3).copied().map(f64::from).collect();
        assert_close(&found, &expected, 2e-7, &format!("{} {name}", architecture.name()));
        assert!(found.iter().any(|slope| slope.abs() > 1e-6), "{name} has no gradient");
    }
}

#[test]
fn gradients_are_slopes() {
    for architecture in architectures() {
        check_differences(&architecture, &weights(&architecture));
    }
}

#[test]
fn heads_can_be_tied_or_not() {
    for architecture in architectures() {
        let (other, head) = match architecture.clone() {
            Architecture::Llama(config) => {
                (Architecture::Llama(llama::Config { tie_word_embeddings: true, ..config }), None)
            }
            Architecture::Mamba(config) => (
                Architecture::Mamba(mamba::Config { tie_word_embeddings: false, ..config }),
                Some(("lm_head.weight", vec![7, 8])),
            ),
            _ => continue,
        };
        let mut tensors = weights(&architecture).to_vec().unwrap();
        tensors.retain(|(name, _, _)| name != "lm_head.weight");
        let values = wave(0.25, 56).iter().map(|value| *value as f32).collect::<Vec<f32>>();
        tensors.extend(head.map(|(name, shape)| (name.to_owned(), shape, values)));
        check_differences(&other, &Weights::new(tensors, &Device::Cpu).unwrap());
    }
}

#[test]
fn later_tokens_do_not_matter_to_earlier_logits() {
    for architecture in architectures() {
        let network = architecture.network(&weights(&architecture).frozen()).unwrap();
        let before = numbers(&network.logits(&tensor(&TOKENS)).unwrap());
        for place in 0..6 {
            let mut tokens = TOKENS;
            tokens[0][place] = (tokens[0][place] + 1) % 7;
            let after = numbers(&network.logits(&tensor(&tokens)).unwrap());
            let name = architecture.name();
            // Rows before the change, and the whole other sequence, are the same to the last bit.
            assert_eq!(before[..place * 7], after[..place * 7], "{name}");
            assert_eq!(before[42..], after[42..], "{name}");
            for row in place..6 {
                let rows = row * 7..row * 7 + 7;
                assert_ne!(before[rows.clone()], after[rows], "{name}: token {place} does not matter to row {row}");
            }
        }
    }
}

#[test]
fn frozen_weights_leave_no_record() {
    for architecture in architectures() {
        let weights = weights(&architecture);
        let tracked = architecture.network(&weights).unwrap().logits(&tensor(&TOKENS)).unwrap();
        let frozen = architecture.network(&weights.frozen()).unwrap().logits(&tensor(&TOKENS)).unwrap();
        assert!(tracked.track_op() && !frozen.track_op());
        assert_eq!(numbers(&tracked), numbers(&frozen));
    }
}

#[test]
fn every_tensor_is_needed_in_its_shape() {
    for architecture in architectures() {
        for (name, shape) in shapes(&architecture) {
            let mut tensors = weights(&architecture).to_vec().unwrap();
            let place = tensors.iter().position(|tensor| tensor.0 == name).unwrap();
            tensors[place].1.push(1);
            let refused = |tensors| {
                let refused = architecture.network(&Weights::new::<String, Vec<usize>>(tensors, &Device::Cpu).unwrap());
                refused.err().unwrap().to_string()
            };
            let mut longer = shape.clone();
            longer.push(1);
            let expected = format!("tensor {name}: expected shape {shape:?}, found {longer:?}");
            assert_eq!(refused(tensors.clone()), expected);
            tensors.remove(place);
            assert_eq!(refused(tensors), format!("tensor {name}: missing, expected shape {shape:?}"));
        }
    }
}

#[test]
fn sizes_must_go_together() {
    let [Architecture::Llama(config), _, Architecture::Mamba(mamba), ..] = architectures() else { panic!("reordered") };
    let nothing = Weights::new::<String, Vec<usize>>([], &Device::Cpu).unwrap();
    let refused = |config: &llama::Config| Llama::new(config, &nothing).unwrap_err().to_string();
    assert!(refused(&llama::Config { num_key_value_heads: 3, ..config.clone() }).starts_with("num_key_value_heads: "));
    assert!(refused(&llama::Config { num_key_value_heads: 0, ..config.clone() }).starts_with("num_key_value_heads: "));
    assert!(refused(&llama::Config { head_dim: 3, ..config }).starts_with("head_dim: "));
    let refused = Mamba::new(&mamba::Config { conv_kernel: 0, ..mamba }, &nothing).unwrap_err();
    assert!(refused.to_string().starts_with("conv_kernel: "));
}
