//! Compares losses and gradients of the kernels of `trace-models` with those of composed candle operations.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use trace_candle::candle_core::{Device, Tensor};
use trace_candle::{Architecture, Weights, gradients, gru, llama, loss, lstm, mamba};
use trace_models::neural::NetworkConfig;
use trace_models::neural::llama::LlamaConfig;
use trace_models::neural::mamba::MambaConfig;
use trace_models::neural::recurrent::RecurrentConfig;

/// Compares both with the same weights, on a batch of two sequences of the same length.
fn compare(config: &NetworkConfig, architecture: &Architecture) {
    let layout = config.layout();
    let mut values = config.fresh_state(11, trace_models::neural::train::OptimizerKind::AdamW).weights;
    for (index, value) in values.iter_mut().enumerate() {
        *value += 0.1 * ((index * 31 % 19) as f32 / 19.0 - 0.5);
    }
    let windows: Vec<Vec<u32>> =
        (0..2u32).map(|s| (0..18u32).map(|i| (i * 5 + s * 3 + i * i) % config.vocab_size() as u32).collect()).collect();
    let (fast, fast_gradient) = config.loss_and_gradient(&values, &windows).unwrap();

    let device = Device::Cpu;
    let named = layout.entries().iter().map(|e| (e.name.clone(), e.shape.clone(), values[e.range()].to_vec()));
    let weights = Weights::new(named, &device).unwrap();
    let network = architecture.network(&weights).unwrap();
    let side = |from: usize| {
        let flat: Vec<u32> = windows.iter().flat_map(|w| w[from..from + w.len() - 1].to_vec()).collect();
        Tensor::from_vec(flat, (windows.len(), windows[0].len() - 1), &device).unwrap()
    };
    let slow = f64::from(loss(&*network, &side(0), &side(1)).unwrap().to_scalar::<f32>().unwrap());
    assert!((fast - slow).abs() < 1e-5 * slow, "{}: {fast} against {slow}", architecture.name());

    let slow_gradient = gradients(&*network, &weights, &side(0), &side(1)).unwrap();
    assert_eq!(slow_gradient.len(), layout.entries().len());
    for entry in layout.entries() {
        let slow = &slow_gradient[&entry.name];
        let size = slow.iter().map(|g| g * g).sum::<f32>().sqrt() / (slow.len() as f32).sqrt();
        assert!(size > 0.0, "{}: {} has no gradient", architecture.name(), entry.name);
        for (a, b) in fast_gradient[entry.range()].iter().zip(slow) {
            assert!((a - b).abs() < 1e-4 * size + 2e-4 * b.abs() + 1e-7, "{}: {a} against {b}", entry.name);
        }
    }
}

#[test]
fn llama_kernels() {
    for (num_key_value_heads, tie_word_embeddings) in [(4, true), (2, false)] {
        let config = LlamaConfig {
            vocab_size: 23,
            hidden_size: 32,
            layers: 2,
            heads: 4,
            num_key_value_heads,
            head_dim: 8,
            intermediate_size: 40,
            rope_theta: 10_000.0,
            rms_norm_eps: 1e-5,
            tie_word_embeddings,
            trained_length: 64,
        };
        let reference = llama::Config {
            vocab_size: 23,
            hidden_size: 32,
            layers: 2,
            heads: 4,
            num_key_value_heads,
            head_dim: 8,
            intermediate_size: 40,
            rope_theta: 10_000.0,
            rms_norm_eps: 1e-5,
            tie_word_embeddings,
        };
        compare(&NetworkConfig::Llama(config), &Architecture::Llama(reference));
    }
}

#[test]
fn recurrent_kernels() {
    let config =
        RecurrentConfig { vocab_size: 23, hidden_size: 20, layers: 2, rms_norm_eps: 1e-6, tie_word_embeddings: false };
    let reference = gru::Config { vocab_size: 23, hidden_size: 20, layers: 2 };
    compare(&NetworkConfig::Gru(config.clone()), &Architecture::Gru(reference));
    let reference = lstm::Config { vocab_size: 23, hidden_size: 20, layers: 2 };
    compare(&NetworkConfig::Lstm(config), &Architecture::Lstm(reference));
}

#[test]
fn mamba_kernels() {
    for (state_size, tie_word_embeddings) in [(16, true), (5, false)] {
        let (vocab_size, hidden_size, layers, intermediate_size, time_step_rank, conv_kernel) = (23, 16, 2, 32, 3, 4);
        let config = MambaConfig {
            vocab_size,
            hidden_size,
            layers,
            state_size,
            conv_kernel,
            intermediate_size,
            time_step_rank,
            rms_norm_eps: 1e-5,
            use_conv_bias: true,
            use_bias: false,
            tie_word_embeddings,
        };
        let reference = mamba::Config {
            vocab_size,
            hidden_size,
            layers,
            intermediate_size,
            state_size,
            conv_kernel,
            time_step_rank,
            rms_norm_eps: 1e-5,
            tie_word_embeddings,
        };
        compare(&NetworkConfig::Mamba(config), &Architecture::Mamba(reference));
    }
}
