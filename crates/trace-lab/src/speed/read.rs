//! `trace-lab read`: how fast CSV becomes an index, beside Polars' CSV reader on the same file.
//!
//! Rounds alternate between the two sides, so that what disturbs the machine disturbs both; the best round of each
//! side counts. TRACE reads the rows, parses the times, numbers cases and events, brings the rows of each case
//! together and sorts them by time.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use trace_io::log::{Log, LogOptions};
use trace_lab::Error;

use super::measure::{arbitrary, bytes, peak_bytes};
use super::reference::{Environment, POLARS};
use crate::cli::ReadArgs;
use crate::failure::Failure;
use crate::output::{print, say};

const VEHICLES: usize = 50_000;
const TYPES: usize = 400;
/// What Polars is asked for, and what to call it.
const QUESTIONS: [(&str, &str); 3] = [
    ("read", "Polars, reading text"),
    ("dates", "Polars, reading text and times"),
    ("group", "Polars, reading text and times, sorting by case and time"),
];

pub fn run(args: &ReadArgs, quiet: bool) -> anyhow::Result<()> {
    if args.rounds == 0 || !(1..=1_000_000_000).contains(&args.rows) {
        return Err(Failure::usage("--rounds and --rows: expected at least 1, and at most a billion rows"));
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("rows.csv");
    say(quiet, format_args!("writing {} rows", args.rows));
    write_rows(&path, args.rows)?;
    let megabytes = path.metadata()?.len() as f64 / 1e6;
    let threads = rayon::current_num_threads();
    print(format_args!("{} rows, {megabytes:.0} MB, {threads} threads\n", args.rows))?;

    let mut server = None;
    if !args.no_reference {
        let place = args.venv.clone().unwrap_or_else(|| std::env::temp_dir().join("trace-lab-read-venv"));
        let (started, versions) = Environment::prepare(&place, &POLARS, quiet)?.start(threads)?;
        print(format_args!("reference: {versions}\n"))?;
        server = Some(started);
    }
    let mut best = f64::INFINITY;
    let mut others = [f64::INFINITY; QUESTIONS.len()];
    let mut other_peak = None;
    for round in 1..=args.rounds {
        let start = Instant::now();
        let log = Log::open(&path, &LogOptions::default()).map_err(Error::from)?;
        best = best.min(start.elapsed().as_secs_f64());
        drop(log);
        if let Some(server) = &mut server {
            for (other, (question, _)) in others.iter_mut().zip(QUESTIONS) {
                let answer = server.ask(&json!({"do": question, "path": path}))?;
                if answer.get("rows").and_then(Value::as_u64) != Some(args.rows as u64) {
                    bail!("the reference read {answer}");
                }
                *other = other.min(answer.get("seconds").and_then(Value::as_f64).context("no seconds in the answer")?);
                other_peak = answer.get("peak_bytes").and_then(Value::as_u64);
            }
        }
        say(quiet, format_args!("round {round}: best so far {best:.2} s"));
    }
    let rate = |seconds: f64| {
        format!("{:.1} million rows/s, {:.0} MB/s", args.rows as f64 / seconds / 1e6, megabytes / seconds)
    };
    print(format_args!("trace: {best:.2} s, {}; peak memory {}\n", rate(best), bytes(peak_bytes())))?;
    let mut report =
        BTreeMap::from([("rows", json!(args.rows)), ("megabytes", json!(megabytes)), ("threads", json!(threads))]);
    report.insert("seconds", json!(best));
    report.insert("peak_bytes", json!(peak_bytes()));
    if server.is_some() {
        for (seconds, (question, what)) in others.iter().zip(QUESTIONS) {
            let ratio = seconds / best;
            print(format_args!("{what}: {seconds:.2} s, {}; trace is {ratio:.2} times as fast\n", rate(*seconds)))?;
            report.insert(question, json!({"seconds": seconds, "ratio": ratio}));
        }
        print(format_args!("peak memory of Polars: {}\n", bytes(other_peak)))?;
    }
    if let Some(path) = &args.json {
        trace_io::output::write_json(path, &report).map_err(Error::from)?;
    }
    Ok(())
}

/// Rows of many vehicles as a fleet reports them: in the order of time, cases mixed.
fn write_rows(path: &Path, rows: usize) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    writeln!(out, "case,event,time")?;
    let (mut from, mut salt) = (0, 1);
    while from < rows {
        let count = (rows - from).min(1 << 16);
        let (vehicles, types) = (arbitrary(count, VEHICLES, salt), arbitrary(count, TYPES, salt + 1));
        for (index, (vehicle, kind)) in vehicles.into_iter().zip(types).enumerate() {
            let second = from + index;
            let (day, hour, minute) = (second / 86_400, second / 3600 % 24, second / 60 % 60);
            let (month, day) = (day / 28 % 12 + 1, day % 28 + 1);
            let second = second % 60;
            writeln!(out, "v{vehicle:06},P{kind:04},2024-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")?;
        }
        from += count;
        salt += 2;
    }
    out.flush()?;
    Ok(())
}
