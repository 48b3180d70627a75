//! `trace-lab speed`: the same weights, data and threads, here and in PyTorch with the reference package.
//!
//! Rounds alternate between the two sides, so that what disturbs the machine disturbs both; the best round of each
//! side counts. Peak memory is that of a process that does nothing else.

mod discovery;
mod measure;
pub mod read;
mod reference;
pub mod scale;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use serde_json::{Value, json};
use trace_core::Vocabulary;
use trace_kernels::peak::ProductPeak;
use trace_lab::Error;
use trace_models::ModelRecord;
use trace_models::neural::llama::LlamaConfig;
use trace_models::neural::train::OptimizerKind;
use trace_models::neural::{NetworkConfig, open_network};

pub use self::measure::peak_bytes;
use self::measure::{arbitrary, random_weights};
use self::reference::{Environment, Server, TORCH};
use crate::cli::SpeedArgs;
use crate::failure::Failure;
use crate::output::{print, say};

/// The setting of the comparison.
const TYPES: usize = 1000;
const SEQUENCES: usize = 64;
const LENGTH: usize = 64;
const WIDTHS: [usize; 2] = [128, 256];
/// Steps of training and repeats of inference in a round.
const STEPS: usize = 6;

pub fn run(args: &SpeedArgs, quiet: bool) -> anyhow::Result<()> {
    if let Some(job) = &args.job {
        return discovery::child(job);
    }
    if args.rounds == 0 {
        return Err(Failure::usage("--rounds: expected at least 1"));
    }
    let threads = rayon::current_num_threads();
    let environment = match &args.venv {
        _ if args.no_reference => None,
        Some(folder) => Some(Environment::prepare(folder, &TORCH, quiet)?),
        None => Some(Environment::prepare(&std::env::temp_dir().join("trace-lab-venv"), &TORCH, quiet)?),
    };
    let mut report = BTreeMap::new();
    let peak = ProductPeak::measure(5);
    let tiles = peak.tiles.map_or_else(String::new, |tiles| format!(", {:.0} on the tile unit", tiles / 1e9));
    let vectors = peak.vectors / 1e9;
    print(format_args!("matrix products: {vectors:.0} GFLOPS on the vector units{tiles}, {threads} threads\n"))?;
    report.insert("peak_gflops".to_owned(), json!(peak.vectors / 1e9));
    report.insert("tile_peak_gflops".to_owned(), json!(peak.tiles.map(|rate| rate / 1e9)));
    report.insert("threads".to_owned(), json!(threads));

    let work = tempfile::tempdir()?;
    for width in WIDTHS {
        let folder = work.path().join(width.to_string());
        std::fs::create_dir(&folder)?;
        let config = config(width);
        let weights = random_weights(&config, 1);
        config.save(&folder, &weights, &Vocabulary::ids(TYPES), ModelRecord::default())?;
        let server = match &environment {
            Some(environment) => {
                let (mut server, versions) = environment.start(threads)?;
                if width == WIDTHS[0] {
                    print(format_args!("reference: {versions}\n"))?;
                    report.insert("reference".to_owned(), versions);
                }
                server.ask(&json!({"do": "load", "folder": folder}))?;
                Some(server)
            }
            None => None,
        };
        let figures = throughput(args, &config, &folder, server, quiet)?;
        report.insert(format!("width_{width}"), figures);
    }
    let folder = work.path().join(WIDTHS[0].to_string());
    report.insert("discovery".to_owned(), discovery::compare(args, &folder, environment.as_ref(), peak, quiet)?);
    if let Some(path) = &args.json {
        trace_io::output::write_json(path, &report).map_err(Error::from)?;
    }
    Ok(())
}

/// 4 layers, 4 heads, feed-forward layers of 8/3 of the width to the next eight.
fn config(width: usize) -> NetworkConfig {
    NetworkConfig::Llama(LlamaConfig {
        vocab_size: TYPES,
        hidden_size: width,
        layers: 4,
        heads: 4,
        num_key_value_heads: 4,
        head_dim: width / 4,
        intermediate_size: (width * 8 / 3).next_multiple_of(8),
        rope_theta: 10_000.0,
        rms_norm_eps: 1e-5,
        tie_word_embeddings: false,
        trained_length: LENGTH,
    })
}

fn sequences(salt: u64) -> Vec<Vec<u32>> {
    arbitrary(SEQUENCES * (LENGTH + 1), TYPES, salt).chunks(LENGTH + 1).map(<[u32]>::to_vec).collect()
}

/// The better of two rates.
fn better(best: &mut f64, rate: f64) {
    *best = best.max(rate);
}

fn rate_of(answer: &Value) -> anyhow::Result<f64> {
    answer.get("tokens_per_second").and_then(Value::as_f64).context("no tokens_per_second in the answer")
}

fn throughput(
    args: &SpeedArgs,
    config: &NetworkConfig,
    folder: &Path,
    mut server: Option<Server>,
    quiet: bool,
) -> anyhow::Result<Value> {
    let network = open_network(folder)?;
    let batches: Vec<_> = (0..STEPS as u64).map(sequences).collect();
    let inputs: Vec<Vec<u32>> = sequences(99).into_iter().map(|window| window[..LENGTH].to_vec()).collect();
    let tokens = (STEPS * SEQUENCES * LENGTH) as f64;
    let (mut train, mut infer, mut reference_train, mut reference_infer) = (0.0, 0.0, 0.0, 0.0);
    let mut state = config.fresh_state(1, OptimizerKind::AdamW);
    config.steps(&mut state, &batches[..1], 1e-3)?;
    for round in 0..args.rounds {
        say(quiet, format_args!("round {} of {}", round + 1, args.rounds));
        let start = Instant::now();
        config.steps(&mut state, &batches, 1e-3)?;
        better(&mut train, tokens / start.elapsed().as_secs_f64());
        if let Some(server) = &mut server {
            let question = json!({"do": "train", "batch": SEQUENCES, "length": LENGTH, "steps": STEPS});
            better(&mut reference_train, rate_of(&server.ask(&question)?)?);
        }
        let start = Instant::now();
        for _ in 0..STEPS {
            std::hint::black_box(network.logits(&inputs));
        }
        better(&mut infer, tokens / start.elapsed().as_secs_f64());
        if let Some(server) = &mut server {
            let question = json!({"do": "infer", "batch": SEQUENCES, "length": LENGTH, "repeats": STEPS});
            better(&mut reference_infer, rate_of(&server.ask(&question)?)?);
        }
    }
    let line = |what: &str, rate: f64, reference: f64| {
        let beside = if reference > 0.0 {
            format!(", PyTorch {reference:.0}: {:.2}×", rate / reference)
        } else {
            String::new()
        };
        format!("  {what}: {rate:.0} tokens/s{beside}\n")
    };
    print(format_args!(
        "\nLLaMA, 4 layers, {} parameters, V = {TYPES}, batch {SEQUENCES} × {LENGTH}:\n{}{}",
        config.parameters(),
        line("training", train, reference_train),
        line("inference", infer, reference_infer)
    ))?;
    Ok(json!({
        "train_tokens_per_second": train, "reference_train_tokens_per_second": reference_train,
        "infer_tokens_per_second": infer, "reference_infer_tokens_per_second": reference_infer,
    }))
}
