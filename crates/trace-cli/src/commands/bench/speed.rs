//! `trace bench speed`: the same weights, data and threads, here and in PyTorch with the reference package.
//!
//! Rounds alternate between the two sides, so that what disturbs the machine disturbs both; the best round of each
//! side counts. Peak memory is that of a process that does nothing else.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use trace_core::numerics::{EventScore, bernoulli_divergence};
use trace_core::{Particles, Vocabulary};
use trace_models::measure::ProductPeak;
use trace_models::neural::llama::LlamaConfig;
use trace_models::neural::train::OptimiserKind;
use trace_models::neural::{NetworkConfig, open_network};
use trace_models::{ModelRecord, tile_unit};

use super::reference::{Environment, Server, TORCH};
use super::{Measured, arbitrary, bytes, discover, random_weights};
use crate::cli::SpeedArgs;
use crate::failure::Failure;
use crate::progress::say;

/// The setting of the comparison.
const TYPES: usize = 1000;
const SEQUENCES: usize = 64;
const LENGTH: usize = 64;
const PARTICLES: usize = 128;
const MEMORY: usize = 6;
const WIDTHS: [usize; 2] = [128, 256];
/// Steps of training and repeats of inference in a round.
const STEPS: usize = 6;

pub fn run(args: &SpeedArgs, quiet: bool) -> anyhow::Result<()> {
    if let Some(job) = &args.job {
        return child(job);
    }
    if args.rounds == 0 {
        return Err(Failure::usage("--rounds: expected at least 1"));
    }
    let threads = rayon::current_num_threads();
    let environment = match &args.venv {
        _ if args.no_reference => None,
        Some(folder) => Some(Environment::prepare(folder, &TORCH, quiet)?),
        None => Some(Environment::prepare(&std::env::temp_dir().join("trace-bench-venv"), &TORCH, quiet)?),
    };
    let mut report = BTreeMap::new();
    let peak = ProductPeak::measure(5);
    print!("matrix products: {:.0} GFLOPS on the vector units", peak.vectors / 1e9);
    if let Some(tiles) = peak.tiles {
        print!(", {:.0} on the tile unit", tiles / 1e9);
    }
    println!(", {threads} threads");
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
                    println!("reference: {versions}");
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
    report.insert("discovery".to_owned(), discovery(args, &folder, environment.as_ref(), peak, quiet)?);
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report)? + "\n";
        trace_io::output::write_whole(path, |out| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}

/// 4 layers, 4 heads, feed-forward layers of 8/3 of the width to the next eight.
fn config(width: usize) -> NetworkConfig {
    NetworkConfig::Llama(LlamaConfig {
        tokens: TYPES,
        width,
        layers: 4,
        heads: 4,
        key_heads: 4,
        head_width: width / 4,
        feed_forward: (width * 8 / 3).next_multiple_of(8),
        rope_theta: 10_000.0,
        norm_epsilon: 1e-5,
        tied: false,
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
    folder: &std::path::Path,
    mut server: Option<Server>,
    quiet: bool,
) -> anyhow::Result<Value> {
    let network = open_network(folder)?;
    let batches: Vec<_> = (0..STEPS as u64).map(sequences).collect();
    let inputs: Vec<Vec<u32>> = sequences(99).into_iter().map(|window| window[..LENGTH].to_vec()).collect();
    let tokens = (STEPS * SEQUENCES * LENGTH) as f64;
    let (mut train, mut infer, mut their_train, mut their_infer) = (0.0, 0.0, 0.0, 0.0);
    let mut state = config.fresh_state(1, OptimiserKind::AdamW);
    config.steps(&mut state, &batches[..1], 1e-3)?;
    for round in 0..args.rounds {
        say(quiet, format_args!("round {} of {}", round + 1, args.rounds));
        let start = Instant::now();
        config.steps(&mut state, &batches, 1e-3)?;
        better(&mut train, tokens / start.elapsed().as_secs_f64());
        if let Some(server) = &mut server {
            let question = json!({"do": "train", "batch": SEQUENCES, "length": LENGTH, "steps": STEPS});
            better(&mut their_train, rate_of(&server.ask(&question)?)?);
        }
        let start = Instant::now();
        for _ in 0..STEPS {
            std::hint::black_box(network.logits(&inputs));
        }
        better(&mut infer, tokens / start.elapsed().as_secs_f64());
        if let Some(server) = &mut server {
            let question = json!({"do": "infer", "batch": SEQUENCES, "length": LENGTH, "repeats": STEPS});
            better(&mut their_infer, rate_of(&server.ask(&question)?)?);
        }
    }
    println!("\nLLaMA, 4 layers, {} parameters, V = {TYPES}, batch {SEQUENCES} × {LENGTH}:", config.parameters());
    let line = |what: &str, ours: f64, theirs: f64| {
        if theirs > 0.0 {
            println!("  {what}: {ours:.0} tokens/s, PyTorch {theirs:.0}: {:.2}×", ours / theirs);
        } else {
            println!("  {what}: {ours:.0} tokens/s");
        }
    };
    line("training", train, their_train);
    line("inference", infer, their_infer);
    Ok(json!({
        "train_tokens_per_second": train, "reference_train_tokens_per_second": their_train,
        "infer_tokens_per_second": infer, "reference_infer_tokens_per_second": their_infer,
    }))
}

/// Discovery in a process of its own, as `--job` describes it.
fn child(job: &str) -> anyhow::Result<()> {
    let job: Value = serde_json::from_str(job).context("--job")?;
    let folder = job.get("folder").and_then(Value::as_str).context("--job: folder")?;
    let events: Vec<u32> = serde_json::from_value(job.get("events").cloned().unwrap_or_default()).context("--job")?;
    let particles = match job.get("particles").and_then(Value::as_u64) {
        Some(0) => Particles::All,
        Some(count) => Particles::Fixed(count as usize),
        None => Particles::Auto,
    };
    let memory = job.get("memory").and_then(Value::as_u64).map(|memory| memory as usize);
    let network = open_network(std::path::Path::new(folder))?;
    println!("{}", serde_json::to_string(&discover(&*network, &events, particles, memory, 0)?)?);
    Ok(())
}

fn ask_child(folder: &std::path::Path, events: &[u32], particles: &Value, memory: &Value) -> anyhow::Result<Measured> {
    let job = json!({"folder": folder, "events": events, "particles": particles, "memory": memory});
    let threads = rayon::current_num_threads().to_string();
    let output = Command::new(std::env::current_exe()?)
        .args(["bench", "speed", "--threads", &threads, "--job", &job.to_string()])
        .args((!tile_unit()).then_some("--no-tile-unit"))
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        bail!("the measuring process failed with {}", output.status);
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The faster of two measurements.
fn faster(best: &mut Option<Measured>, new: Measured) {
    if best.as_ref().is_none_or(|best| new.seconds < best.seconds) {
        *best = Some(new);
    }
}

fn discovery(
    args: &SpeedArgs,
    folder: &std::path::Path,
    environment: Option<&Environment>,
    mut peak: ProductPeak,
    quiet: bool,
) -> anyhow::Result<Value> {
    let events = arbitrary(LENGTH, TYPES, 5);
    let settings = [
        ("fixed", json!(PARTICLES), json!(MEMORY)),
        ("auto", Value::Null, json!(MEMORY)),
        ("memory all", json!(PARTICLES), Value::Null),
    ];
    let mut ours: Vec<Option<Measured>> = settings.iter().map(|_| None).collect();
    let mut theirs: Vec<Value> = Vec::new();
    for round in 0..args.rounds {
        say(quiet, format_args!("discovery, round {} of {}", round + 1, args.rounds));
        for ((_, particles, memory), best) in settings.iter().zip(&mut ours) {
            faster(best, ask_child(folder, &events, particles, memory)?);
            // The machine's own best moment may come late.
            peak = peak.max(ProductPeak::measure(2));
        }
        if let Some(environment) = environment {
            let (mut server, _) = environment.start(rayon::current_num_threads())?;
            server.ask(&json!({"do": "load", "folder": folder}))?;
            let question = json!({"do": "discover", "events": events, "particles": PARTICLES, "seed": round});
            theirs.push(server.ask(&question)?);
        }
    }
    let number = |answer: &Value, name: &str| answer.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let their_seconds = theirs.iter().map(|answer| number(answer, "seconds")).fold(f64::INFINITY, f64::min);
    let their_bytes = theirs.iter().map(|answer| number(answer, "peak_bytes")).fold(f64::INFINITY, f64::min);
    println!("\ndiscovery, L = {LENGTH}, V = {TYPES}, width {}:", WIDTHS[0]);
    if !theirs.is_empty() {
        println!(
            "  seq2cause, atomic, {PARTICLES} particles, all lags: {their_seconds:.2} s, {}",
            bytes(Some(their_bytes as u64))
        );
    }
    let mut report = serde_json::Map::new();
    for ((name, ..), measured) in settings.iter().zip(&ours) {
        let Some(measured) = measured else { continue };
        let rate = measured.operations / measured.seconds;
        let (share, share_of_tiles) = (rate / peak.vectors, peak.tiles.map(|tiles| rate / tiles));
        let what = match *name {
            "auto" => format!("auto particles, memory {MEMORY}"),
            "fixed" => format!("{PARTICLES} particles, memory {MEMORY}"),
            _ => format!("{PARTICLES} particles, memory all"),
        };
        print!("  trace, {what}: {:.3} s, {}", measured.seconds, bytes(measured.peak_bytes));
        print!(", {:.0} % of the vector units' matrix-product peak", 100.0 * share);
        if let Some(share) = share_of_tiles {
            print!(", {:.0} % of the tile unit's", 100.0 * share);
        }
        if their_seconds.is_finite() {
            let memory = measured.peak_bytes.map_or(f64::NAN, |peak| their_bytes / peak as f64);
            print!("; {:.0}× faster, {memory:.0}× less memory", their_seconds / measured.seconds);
        }
        println!();
        report.insert(
            (*name).replace(' ', "_"),
            json!({"seconds": measured.seconds, "peak_bytes": measured.peak_bytes, "rows": measured.rows,
                "share_of_peak": share, "share_of_tile_peak": share_of_tiles}),
        );
    }
    if !theirs.is_empty() {
        report.insert("reference".to_owned(), json!({"seconds": their_seconds, "peak_bytes": their_bytes}));
    }
    if theirs.len() > 1 {
        say(quiet, "comparing numbers: every replacement here, two seeds there");
        let exact = ask_child(folder, &events, &json!(0), &Value::Null)?;
        report.insert("formula".to_owned(), compare(&exact, &theirs[0], &theirs[1])?);
    }
    Ok(Value::Object(report))
}

/// The reference's own formula on our probabilities, exact over all replacements, against its numbers with two seeds:
/// where both compute the same thing, its distance from ours is its own sampling error, and two of its runs are √2
/// times as far from each other.
fn compare(exact: &Measured, one: &Value, two: &Value) -> anyhow::Result<Value> {
    let cells = |answer: &Value| -> anyhow::Result<BTreeMap<(u32, u32), f64>> {
        let list: Vec<(u32, u32, Option<f64>)> =
            serde_json::from_value(answer.get("matrix").cloned().unwrap_or_default())?;
        Ok(list.into_iter().filter_map(|(cause, effect, value)| Some(((cause, effect), value?))).collect())
    };
    let (one, two) = (cells(one)?, cells(two)?);
    let score = |p: f64| EventScore { log_p: p.ln(), log_not_p: (-p).ln_1p() };
    let (mut from_ours, mut from_each_other, mut size, mut count) = (0.0, 0.0, 0.0, 0usize);
    for (cause, effect, probability, replaced) in &exact.pairs {
        let (Some(a), Some(b)) = (one.get(&(*cause, *effect)), two.get(&(*cause, *effect))) else { continue };
        let ours = bernoulli_divergence(score(*probability), score(*replaced));
        from_ours += (a - ours).powi(2) + (b - ours).powi(2);
        from_each_other += (a - b).powi(2);
        size += ours * ours;
        count += 1;
    }
    let root = |sum: f64, terms: usize| (sum / terms.max(1) as f64).sqrt();
    let (ours, theirs, size) = (root(from_ours, 2 * count), root(from_each_other, 2 * count), root(size, count));
    println!(
        "  its formula on our probabilities: {count} pairs of size {size:.2e}; it is {ours:.2e} from ours, and \
         {theirs:.2e} from itself with another seed (both root mean squares, of one run): {:.2}",
        ours / theirs
    );
    Ok(json!({"pairs": count, "size": size, "distance": ours, "own_error": theirs}))
}
