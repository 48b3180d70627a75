//! `trace bench scale`: what one discovery costs with a large network.

use serde_json::json;
use trace_core::Particles;
use trace_models::measure::ProductPeak;
use trace_models::neural::NetworkConfig;
use trace_models::neural::llama::LlamaConfig;

use super::{arbitrary, bytes, discover, random_weights};
use crate::cli::ScaleArgs;
use crate::failure::Failure;
use crate::progress::say;

pub fn run(args: &ScaleArgs, quiet: bool) -> anyhow::Result<()> {
    let config = config(args)?;
    let peak = ProductPeak::measure(3).vectors;
    say(quiet, format_args!("drawing a llama with {} parameters", config.parameters()));
    let mut network = config.with_weights(random_weights(&config, 1))?;
    if let Some(limit) = args.max_memory {
        network.set_max_memory(limit.0, args.length)?;
    }
    let events = arbitrary(args.length, args.vocabulary, 5);
    say(quiet, "discovering");
    let measured = discover(&*network, &events, Particles::Fixed(args.particles), Some(args.memory), args.context)?;
    let rate = measured.operations / measured.seconds;
    if args.json {
        let value = json!({
            "parameters": config.parameters(), "vocabulary": args.vocabulary, "length": args.length,
            "particles": args.particles, "memory": args.memory, "context": args.context, "threads": rayon::current_num_threads(),
            "seconds": measured.seconds, "peak_bytes": measured.peak_bytes, "rows": measured.rows,
            "share_of_peak": rate / peak,
        });
        println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        println!(
            "{} parameters, V = {}, L = {}, {} particles, memory {}, {} threads: {:.1} s, peak memory {}, {} rows, \
             {:.0} GFLOPS ({:.0} % of the {:.0} that products on the vector units reach)",
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
        );
    }
    Ok(())
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
        tokens: args.vocabulary,
        width: args.width,
        layers: args.layers,
        heads: args.heads,
        key_heads: args.heads,
        head_width: args.width / args.heads,
        feed_forward: args.feed_forward,
        rope_theta: 10_000.0,
        norm_epsilon: 1e-5,
        tied: true,
        trained_length: args.length,
    }))
}
