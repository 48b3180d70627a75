//! `trace-lab scale`: what one discovery costs with a large network.

use serde_json::json;
use trace_core::Particles;
use trace_kernels::peak::ProductPeak;
use trace_models::neural::NetworkConfig;
use trace_models::neural::llama::LlamaConfig;

use super::measure::{arbitrary, bytes, discover, random_weights};
use crate::cli::ScaleArgs;
use crate::failure::Failure;
use crate::output::{print, print_json, say};

pub fn run(args: &ScaleArgs, quiet: bool) -> anyhow::Result<()> {
    let config = config(args)?;
    let peak = ProductPeak::measure(3).vectors;
    say(quiet, format_args!("drawing a llama with {} parameters", config.parameters()));
    let mut network = config.with_weights(random_weights(&config, 1)).map_err(trace_lab::Error::from)?;
    if let Some(limit) = args.ram_limit {
        network.set_ram_limit(limit.0);
        network.check_ram(args.length).map_err(|error| Failure::usage(format!("--ram-limit: {error}")))?;
    }
    let events = arbitrary(args.length, args.vocabulary, 5);
    say(quiet, "discovering");
    let measured = discover(&*network, &events, Particles::Fixed(args.particles), Some(args.memory), args.context)?;
    let rate = measured.operations / measured.seconds;
    if args.json {
        let value = json!({
            "parameters": config.parameters(), "vocabulary": args.vocabulary, "length": args.length,
            "particles": args.particles, "memory": args.memory, "context": args.context,
            "threads": rayon::current_num_threads(),
            "seconds": measured.seconds, "peak_bytes": measured.peak_bytes, "rows": measured.rows,
            "share_of_peak": rate / peak,
        });
        print_json(&value)
    } else {
        print(format_args!(
            "{} parameters, V = {}, L = {}, {} particles, memory {}, {} threads: {:.1} s, peak memory {}, {} rows, \
             {:.0} GFLOPS ({:.0} % of the {:.0} that products on the vector units reach)\n",
            config.parameters(),
            args.vocabulary,
            args.length,
            args.particles,
            args.memory,
            rayon::current_num_threads(),
            measured.seconds,
            bytes(measured.peak_bytes),
            measured.rows,
            rate / 1e9,
            100.0 * rate / peak,
            peak / 1e9
        ))
    }
}

fn config(args: &ScaleArgs) -> anyhow::Result<NetworkConfig> {
    let in_range = (2..=1 << 20).contains(&args.vocabulary)
        && (1..=256).contains(&args.layers)
        && (2..=16_384).contains(&args.width)
        && (1..=1 << 16).contains(&args.feed_forward)
        && (3..=1 << 20).contains(&args.length)
        && args.context < args.length - 1;
    if !in_range || !(1..=args.width).contains(&args.heads) || !args.width.is_multiple_of(2 * args.heads) {
        return Err(Failure::usage("out of range: see --help; each head needs an even part of the width"));
    }
    Ok(NetworkConfig::Llama(LlamaConfig {
        vocab_size: args.vocabulary,
        hidden_size: args.width,
        layers: args.layers,
        heads: args.heads,
        num_key_value_heads: args.heads,
        head_dim: args.width / args.heads,
        intermediate_size: args.feed_forward,
        rope_theta: 10_000.0,
        rms_norm_eps: 1e-5,
        tie_word_embeddings: true,
        trained_length: args.length,
    }))
}
