//! Where a network runs.
//!
//! On a CPU the kernels of `trace-models` run; on a GPU the composed operations of `trace-candle`, if the program was
//! built with the feature for it.

use std::path::Path;

use crate::{Error, Model};

/// Moves an opened model to the device of this name.
#[cfg(not(feature = "candle"))]
pub(crate) fn place(_opened: Model, _folder: &Path, device: &str) -> Result<Model, Error> {
    let reason = "this build runs on CPUs alone; GPUs need one with the feature cuda or metal";
    Err(Error::option("device", format!("{device}: {reason}")))
}

/// Moves an opened model to the device of this name; of a cross-fit, both halves.
#[cfg(feature = "candle")]
pub(crate) fn place(opened: Model, folder: &Path, device: &str) -> Result<Model, Error> {
    if opened.is_process() || opened.density().backbone() == "ngram" {
        let reason = format!("{device}: {} runs on a CPU", opened.density().backbone());
        return Err(Error::option("device", reason));
    }
    if opened.is_cross_fit() {
        let [first, second] = trace_models::cross_fit::HALVES;
        return Ok(opened.with_halves([network(&folder.join(first), device)?, network(&folder.join(second), device)?]));
    }
    Ok(opened.with_density(network(folder, device)?))
}

/// The network in a folder, on the device of this name.
#[cfg(feature = "candle")]
fn network(folder: &Path, device: &str) -> Result<Box<dyn trace_core::DensityModel>, Error> {
    use trace_candle::{Backend, CandleModel, Tokens, Weights};

    let fault = |error: trace_candle::Error| Error::option("device", format!("{device}: {error}"));
    // `candle` alone is the CPU through candle, which is slow: for comparing with what a GPU would do.
    let backend: Backend = if device == "candle" { Backend::Cpu } else { device.parse().map_err(fault)? };
    let network = trace_models::neural::open_network(folder)?;
    let architecture = architecture(&network.config())?;
    let place = backend.device().map_err(fault)?;
    let named = network
        .layout()
        .entries()
        .iter()
        .map(|entry| (entry.name.clone(), entry.shape.clone(), network.weights()[entry.range()].to_vec()));
    let weights = Weights::new(named, &place).map_err(fault)?;
    let tokens = Tokens { events: network.vocabulary_size(), begin: network.begin(), end: network.predicts_end() };
    let mut model = CandleModel::new(&architecture, &weights, tokens).map_err(fault)?.with_fitness(network.fitness());
    if let Some(frequencies) = network.frequencies() {
        model = model.with_frequencies(frequencies.to_vec()).map_err(fault)?;
    }
    Ok(Box::new(model))
}

#[cfg(feature = "candle")]
fn architecture(config: &trace_models::neural::NetworkConfig) -> Result<trace_candle::Architecture, Error> {
    use trace_candle::{Architecture, gpt2, gru, llama, lstm, mamba};
    use trace_models::neural::NetworkConfig;

    Ok(match config {
        NetworkConfig::Llama(config) => Architecture::Llama(llama::Config {
            vocab_size: config.vocab_size,
            hidden_size: config.hidden_size,
            layers: config.layers,
            heads: config.heads,
            num_key_value_heads: config.num_key_value_heads,
            head_dim: config.head_dim,
            intermediate_size: config.intermediate_size,
            rope_theta: f64::from(config.rope_theta),
            rms_norm_eps: f64::from(config.rms_norm_eps),
            tie_word_embeddings: config.tie_word_embeddings,
        }),
        NetworkConfig::Gpt2(config) if !config.tie_word_embeddings => {
            return Err(Error::option("device", "a gpt2 with a head of its own runs on a CPU alone"));
        }
        NetworkConfig::Gru(config) | NetworkConfig::Lstm(config)
            if config.tie_word_embeddings || config.rms_norm_eps != 1e-6 =>
        {
            return Err(Error::option("device", "a recurrent network with this head or norm runs on a CPU alone"));
        }
        NetworkConfig::Gpt2(config) => Architecture::Gpt2(gpt2::Config {
            vocab_size: config.vocab_size,
            positions: config.positions,
            hidden_size: config.hidden_size,
            layers: config.layers,
            heads: config.heads,
            intermediate_size: config.intermediate_size,
            layer_norm_eps: f64::from(config.layer_norm_eps),
        }),
        NetworkConfig::Mamba(config) if config.use_bias || !config.use_conv_bias => {
            return Err(Error::option("device", "a mamba with these biases runs on a CPU alone"));
        }
        NetworkConfig::Mamba(config) => Architecture::Mamba(mamba::Config {
            vocab_size: config.vocab_size,
            hidden_size: config.hidden_size,
            layers: config.layers,
            intermediate_size: config.intermediate_size,
            state_size: config.state_size,
            conv_kernel: config.conv_kernel,
            time_step_rank: config.time_step_rank,
            rms_norm_eps: f64::from(config.rms_norm_eps),
            tie_word_embeddings: config.tie_word_embeddings,
        }),
        NetworkConfig::Gru(config) => Architecture::Gru(gru::Config {
            vocab_size: config.vocab_size,
            hidden_size: config.hidden_size,
            layers: config.layers,
        }),
        NetworkConfig::Bert(_) => return Err(Error::option("device", "bert runs on a CPU")),
        NetworkConfig::Lstm(config) => Architecture::Lstm(lstm::Config {
            vocab_size: config.vocab_size,
            hidden_size: config.hidden_size,
            layers: config.layers,
        }),
    })
}
