//! Discovery beside the reference package, each in a process that does nothing else, so that its peak memory can be told.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use trace_core::Particles;
use trace_core::numerics::{EventScore, bernoulli_divergence};
use trace_kernels::matmul::tile_unit;
use trace_kernels::peak::ProductPeak;
use trace_models::neural::open_network;

use super::measure::{Measured, arbitrary, bytes, discover};
use super::reference::Environment;
use super::{LENGTH, TYPES, WIDTHS};
use crate::cli::SpeedArgs;
use crate::output::{print, say};

const PARTICLES: usize = 128;
const MEMORY: usize = 6;

/// Discovery in a process of its own, as `--job` describes it.
pub fn child(job: &str) -> anyhow::Result<()> {
    let job: Value = serde_json::from_str(job).context("--job")?;
    let folder = job.get("folder").and_then(Value::as_str).context("--job: folder")?;
    let events: Vec<u32> = serde_json::from_value(job.get("events").cloned().unwrap_or_default()).context("--job")?;
    let particles = match job.get("particles").and_then(Value::as_u64) {
        Some(0) => Particles::All,
        Some(count) => Particles::Fixed(count as usize),
        None => Particles::Auto,
    };
    let memory = job.get("memory").and_then(Value::as_u64).map(|memory| memory as usize);
    let network = open_network(Path::new(folder))?;
    let measured = discover(&*network, &events, particles, memory, 0)?;
    print(serde_json::to_string(&measured)? + "\n")
}

fn ask_child(folder: &Path, events: &[u32], particles: &Value, memory: &Value) -> anyhow::Result<Measured> {
    let job = json!({"folder": folder, "events": events, "particles": particles, "memory": memory});
    let threads = rayon::current_num_threads().to_string();
    let output = Command::new(std::env::current_exe()?)
        .args(["speed", "--threads", &threads, "--job", &job.to_string()])
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

/// Discovery with several settings, and with the reference package.
pub fn compare(
    args: &SpeedArgs,
    folder: &Path,
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
    let mut best: Vec<Option<Measured>> = settings.iter().map(|_| None).collect();
    let mut references: Vec<Value> = Vec::new();
    for round in 0..args.rounds {
        say(quiet, format_args!("discovery, round {} of {}", round + 1, args.rounds));
        for ((_, particles, memory), fastest) in settings.iter().zip(&mut best) {
            faster(fastest, ask_child(folder, &events, particles, memory)?);
            // The machine's own best moment may come late.
            peak = peak.max(ProductPeak::measure(2));
        }
        if let Some(environment) = environment {
            let (mut server, _) = environment.start(rayon::current_num_threads())?;
            server.ask(&json!({"do": "load", "folder": folder}))?;
            let question = json!({"do": "discover", "events": events, "particles": PARTICLES, "seed": round});
            references.push(server.ask(&question)?);
        }
    }
    let number = |answer: &Value, name: &str| answer.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let reference_seconds = references.iter().map(|answer| number(answer, "seconds")).fold(f64::INFINITY, f64::min);
    let reference_bytes = references.iter().map(|answer| number(answer, "peak_bytes")).fold(f64::INFINITY, f64::min);
    let mut text = format!("\ndiscovery, L = {LENGTH}, V = {TYPES}, width {}:\n", WIDTHS[0]);
    if !references.is_empty() {
        text += &format!(
            "  seq2cause, atomic, {PARTICLES} particles, all lags: {reference_seconds:.2} s, {}\n",
            bytes(Some(reference_bytes as u64))
        );
    }
    let mut report = Map::new();
    for ((name, ..), measured) in settings.iter().zip(&best) {
        let Some(measured) = measured else { continue };
        let rate = measured.operations / measured.seconds;
        let (share, share_of_tiles) = (rate / peak.vectors, peak.tiles.map(|tiles| rate / tiles));
        let what = match *name {
            "auto" => format!("auto particles, memory {MEMORY}"),
            "fixed" => format!("{PARTICLES} particles, memory {MEMORY}"),
            _ => format!("{PARTICLES} particles, memory all"),
        };
        text += &format!("  trace, {what}: {:.3} s, {}", measured.seconds, bytes(measured.peak_bytes));
        text += &format!(", {:.0} % of the vector units' matrix-product peak", 100.0 * share);
        if let Some(share) = share_of_tiles {
            text += &format!(", {:.0} % of the tile unit's", 100.0 * share);
        }
        if reference_seconds.is_finite() {
            let memory = measured.peak_bytes.map_or(f64::NAN, |peak| reference_bytes / peak as f64);
            text += &format!("; {:.0}× faster, {memory:.0}× less memory", reference_seconds / measured.seconds);
        }
        text.push('\n');
        report.insert(
            (*name).replace(' ', "_"),
            json!({"seconds": measured.seconds, "peak_bytes": measured.peak_bytes, "rows": measured.rows,
                "share_of_peak": share, "share_of_tile_peak": share_of_tiles}),
        );
    }
    print(text)?;
    if !references.is_empty() {
        report.insert("reference".to_owned(), json!({"seconds": reference_seconds, "peak_bytes": reference_bytes}));
    }
    if references.len() > 1 {
        say(quiet, "comparing numbers: every replacement here, two seeds there");
        let exact = ask_child(folder, &events, &json!(0), &Value::Null)?;
        report.insert("formula".to_owned(), compare_formula(&exact, &references[0], &references[1])?);
    }
    Ok(Value::Object(report))
}

/// The reference's formula on the probabilities found here, exact over all replacements, against its numbers with two
/// seeds: where both compute the same thing, its distance from the exact ones is its own sampling error, and two of its
/// runs are √2 times as far from each other.
fn compare_formula(exact: &Measured, one: &Value, two: &Value) -> anyhow::Result<Value> {
    let cells = |answer: &Value| -> anyhow::Result<BTreeMap<(u32, u32), f64>> {
        let list: Vec<(u32, u32, Option<f64>)> =
            serde_json::from_value(answer.get("matrix").cloned().unwrap_or_default())?;
        Ok(list.into_iter().filter_map(|(cause, effect, value)| Some(((cause, effect), value?))).collect())
    };
    let (one, two) = (cells(one)?, cells(two)?);
    let score = |p: f64| EventScore { log_p: p.ln(), log_not_p: (-p).ln_1p() };
    let (mut from_exact, mut from_each_other, mut size, mut count) = (0.0, 0.0, 0.0, 0usize);
    for (cause, effect, probability, replaced) in &exact.pairs {
        let (Some(a), Some(b)) = (one.get(&(*cause, *effect)), two.get(&(*cause, *effect))) else { continue };
        let exact = bernoulli_divergence(score(*probability), score(*replaced));
        from_exact += (a - exact).powi(2) + (b - exact).powi(2);
        from_each_other += (a - b).powi(2);
        size += exact * exact;
        count += 1;
    }
    let root = |sum: f64, terms: usize| (sum / terms.max(1) as f64).sqrt();
    let (distance, own, size) = (root(from_exact, 2 * count), root(from_each_other, 2 * count), root(size, count));
    print(format_args!(
        "  its formula on exact probabilities: {count} pairs of size {size:.2e}; it is {distance:.2e} from them, and \
         {own:.2e} from itself with another seed (both root mean squares, of one run): {:.2}\n",
        distance / own
    ))?;
    Ok(json!({"pairs": count, "size": size, "distance": distance, "own_error": own}))
}
