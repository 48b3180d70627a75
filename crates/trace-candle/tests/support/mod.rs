//! Tiny networks of every architecture with fixed weights. `golden/make.py` has the same ones.

#![allow(dead_code)] // each test file uses a different part

use candle_core::{Device, Tensor};
use trace_candle::{Architecture, Weights, gpt2, gru, llama, lstm, mamba};

pub const TOKENS: [[u32; 6]; 2] = [[5, 0, 3, 1, 4, 2], [5, 2, 2, 6, 0, 1]];
pub const TARGETS: [[u32; 6]; 2] = [[0, 3, 1, 4, 2, 6], [2, 2, 6, 0, 1, 3]];

pub fn tensor(values: &[[u32; 6]; 2]) -> Tensor {
    Tensor::new(values, &Device::Cpu).unwrap()
}

pub fn architectures() -> [Architecture; 5] {
    let (vocab_size, hidden_size, layers) = (7, 8, 2);
    [
        Architecture::Llama(llama::Config {
            vocab_size,
            hidden_size,
            layers,
            heads: 4,
            num_key_value_heads: 2,
            head_dim: 6,
            intermediate_size: 12,
            rope_theta: 100.0,
            rms_norm_eps: 1e-5,
            tie_word_embeddings: false,
        }),
        Architecture::Gpt2(gpt2::Config {
            vocab_size,
            positions: 10,
            hidden_size,
            layers,
            heads: 2,
            intermediate_size: 20,
            layer_norm_eps: 1e-5,
        }),
        Architecture::Mamba(mamba::Config {
            vocab_size,
            hidden_size,
            layers,
            intermediate_size: 16,
            state_size: 3,
            conv_kernel: 4,
            time_step_rank: 2,
            rms_norm_eps: 1e-5,
            tie_word_embeddings: true,
        }),
        Architecture::Gru(gru::Config { vocab_size, hidden_size, layers }),
        Architecture::Lstm(lstm::Config { vocab_size, hidden_size, layers }),
    ]
}

type Shapes = &'static [(&'static str, &'static [usize])];

/// The tensors of the architectures above, spelled out.
pub fn shapes(architecture: &Architecture) -> Vec<(String, Vec<usize>)> {
    let (once, layer): (Shapes, Shapes) = match architecture {
        Architecture::Llama(_) => (
            &[("lm_head.weight", &[7, 8]), ("model.embed_tokens.weight", &[7, 8]), ("model.norm.weight", &[8])],
            &[
                ("model.layers.{i}.input_layernorm.weight", &[8]),
                ("model.layers.{i}.mlp.down_proj.weight", &[8, 12]),
                ("model.layers.{i}.mlp.gate_proj.weight", &[12, 8]),
                ("model.layers.{i}.mlp.up_proj.weight", &[12, 8]),
                ("model.layers.{i}.post_attention_layernorm.weight", &[8]),
                ("model.layers.{i}.self_attn.k_proj.weight", &[12, 8]),
                ("model.layers.{i}.self_attn.o_proj.weight", &[8, 24]),
                ("model.layers.{i}.self_attn.q_proj.weight", &[24, 8]),
                ("model.layers.{i}.self_attn.v_proj.weight", &[12, 8]),
            ],
        ),
        Architecture::Gpt2(_) => (
            &[
                ("transformer.ln_f.bias", &[8]),
                ("transformer.ln_f.weight", &[8]),
                ("transformer.wpe.weight", &[10, 8]),
                ("transformer.wte.weight", &[7, 8]),
            ],
            &[
                ("transformer.h.{i}.attn.c_attn.bias", &[24]),
                ("transformer.h.{i}.attn.c_attn.weight", &[8, 24]),
                ("transformer.h.{i}.attn.c_proj.bias", &[8]),
                ("transformer.h.{i}.attn.c_proj.weight", &[8, 8]),
                ("transformer.h.{i}.ln_1.bias", &[8]),
                ("transformer.h.{i}.ln_1.weight", &[8]),
                ("transformer.h.{i}.ln_2.bias", &[8]),
                ("transformer.h.{i}.ln_2.weight", &[8]),
                ("transformer.h.{i}.mlp.c_fc.bias", &[20]),
                ("transformer.h.{i}.mlp.c_fc.weight", &[8, 20]),
                ("transformer.h.{i}.mlp.c_proj.bias", &[8]),
                ("transformer.h.{i}.mlp.c_proj.weight", &[20, 8]),
            ],
        ),
        Architecture::Mamba(_) => (
            &[("backbone.embeddings.weight", &[7, 8]), ("backbone.norm_f.weight", &[8])],
            &[
                ("backbone.layers.{i}.mixer.A_log", &[16, 3]),
                ("backbone.layers.{i}.mixer.D", &[16]),
                ("backbone.layers.{i}.mixer.conv1d.bias", &[16]),
                ("backbone.layers.{i}.mixer.conv1d.weight", &[16, 1, 4]),
                ("backbone.layers.{i}.mixer.dt_proj.bias", &[16]),
                ("backbone.layers.{i}.mixer.dt_proj.weight", &[16, 2]),
                ("backbone.layers.{i}.mixer.in_proj.weight", &[32, 8]),
                ("backbone.layers.{i}.mixer.out_proj.weight", &[8, 16]),
                ("backbone.layers.{i}.mixer.x_proj.weight", &[8, 16]),
                ("backbone.layers.{i}.norm.weight", &[8]),
            ],
        ),
        Architecture::Gru(_) => (RECURRENT, recurrent_layer::<24>()),
        Architecture::Lstm(_) => (RECURRENT, recurrent_layer::<32>()),
        _ => panic!("no shapes for {architecture:?}"),
    };
    let mut all: Vec<(String, Vec<usize>)> =
        once.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec())).collect();
    for i in ["0", "1"] {
        all.extend(layer.iter().map(|(name, shape)| (name.replace("{i}", i), shape.to_vec())));
    }
    all.sort();
    all
}

const RECURRENT: Shapes = &[("embedding.weight", &[7, 8]), ("lm_head.weight", &[7, 8]), ("norm.weight", &[8])];

const fn recurrent_layer<const GATES: usize>() -> Shapes {
    &[
        ("rnn.bias_hh_l{i}", &[GATES]),
        ("rnn.bias_ih_l{i}", &[GATES]),
        ("rnn.weight_hh_l{i}", &[GATES, 8]),
        ("rnn.weight_ih_l{i}", &[GATES, 8]),
    ]
}

/// Pseudo-random numbers.
pub fn wave(phase: f64, count: usize) -> Vec<f64> {
    (0..count).map(|i| (12.9898 * (phase + 1.0) + 78.233 * (i as f64 + 1.0)).sin()).collect()
}

pub fn weights(architecture: &Architecture) -> Weights {
    let tensors = shapes(architecture).into_iter().enumerate().map(|(j, (name, shape))| {
        let offset = if shape.len() == 1 && name.ends_with("weight") { 1.0 } else { 0.0 };
        let values = wave(j as f64, shape.iter().product()).iter().map(|w| (0.4 * w + offset) as f32).collect();
        (name, shape, values)
    });
    Weights::new(tensors, &Device::Cpu).unwrap()
}

/// All numbers of a tensor.
pub fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.flatten_all().unwrap().to_dtype(candle_core::DType::F64).unwrap().to_vec1().unwrap()
}
