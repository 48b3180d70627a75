//! `trace simulate scm`: the paper's synthetic process.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use rayon::prelude::*;
use serde_json::{Map, json};
use trace_core::theory::redundancy;
use trace_core::{DensityModel, EventSequence};
use trace_io::truth::TruthLine;
use trace_lab::truth::TruthSpec;
use trace_models::{Process, ProcessSpec, Simulated, check_replaceable, write_folder};

use super::truth::{self, check_draws};
use super::{EVENTS_AT_A_TIME, check_size};
use crate::cli::{ScmArgs, TruthKind};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Progress, say};

pub fn run(args: &ScmArgs, quiet: bool) -> anyhow::Result<()> {
    check(args)?;
    check_replaceable(&args.out)?;
    let spec = ProcessSpec {
        vocabulary: args.vocabulary,
        memory: args.memory,
        redundancy: args.redundancy,
        decay: args.decay,
        seed: args.seed,
    };
    say(quiet, format_args!("drawing a process of {} types and calibrating it", args.vocabulary));
    let mut process = Process::draw(&spec)?;
    interrupt::watch()?;
    write_folder(&args.out, |folder| fill(folder, args, &mut process, quiet))?;
    let size = process.vocabulary_size();
    let entropy = process.fitness().entropy.unwrap_or_default();
    say(
        quiet,
        format_args!(
            "{}: {} sequences of {} events, entropy {entropy:.3} nats an event, redundancy {:.3}",
            args.out.display(),
            args.sequences,
            args.length,
            redundancy(entropy, size),
        ),
    );
    Ok(())
}

fn check(args: &ScmArgs) -> anyhow::Result<()> {
    check_size(args.sequences, args.length)?;
    check_draws(args.truth_draws)?;
    if args.truth != TruthKind::None && args.length < 2 {
        return Err(Failure::usage("--length 1 leaves no truth to measure; use --truth none or longer sequences"));
    }
    Ok(())
}

/// Writes everything into the folder and gives the process its entropy.
fn fill(folder: &Path, args: &ScmArgs, process: &mut Process, quiet: bool) -> anyhow::Result<()> {
    let truth = truth::spec(args.truth, args.truth_draws, args.vocabulary, args.seed);
    let create = |name: &str| -> Result<BufWriter<File>, trace_io::Error> {
        let path = folder.join(name);
        File::create(&path).map(BufWriter::new).map_err(trace_io::Error::io(path))
    };
    let mut events_file = create("events.jsonl")?;
    let mut truth_file = truth.map(|_| create("truth.jsonl")).transpose()?;
    let progress = Progress::new("simulating", args.sequences as u64, quiet);
    let mut entropy = 0.0;
    let together = (EVENTS_AT_A_TIME / args.length).max(1);
    for first in (0..args.sequences).step_by(together) {
        if interrupt::requested() {
            progress.finish();
            return Err(Failure::interrupted("nothing was written"));
        }
        let count = together.min(args.sequences - first);
        let simulated = process.simulate(args.seed, first, count, args.length);
        for (index, sequence) in (first..).zip(&simulated) {
            entropy += sequence.entropy;
            let ids: Vec<u32> = sequence.events.iter().map(|event| event.0).collect();
            writeln!(events_file, "{}", json!({"id": format!("s{index}"), "events": ids}))?;
        }
        if let (Some(truth), Some(file)) = (&truth, &mut truth_file) {
            for line in truths(truth, process, &simulated, first, &progress)? {
                writeln!(file, "{}", serde_json::to_string(&line)?)?;
            }
        } else {
            progress.add(count as u64);
        }
    }
    events_file.flush()?;
    if let Some(file) = &mut truth_file {
        file.flush()?;
    }
    progress.finish();

    let dependent = args.sequences * args.length.saturating_sub(args.memory);
    process.set_entropy(entropy, dependent, args.seed);
    let mut record = Map::new();
    record.insert("command".to_owned(), json!("simulate scm"));
    record.insert("sequences".to_owned(), json!(args.sequences));
    record.insert("length".to_owned(), json!(args.length));
    record.insert("target_redundancy".to_owned(), json!(args.redundancy));
    record.insert("seed".to_owned(), json!(args.seed));
    process.save(folder, &record)?;
    Ok(())
}

fn truths(
    truth: &TruthSpec,
    process: &Process,
    simulated: &[Simulated],
    first: usize,
    progress: &Progress,
) -> anyhow::Result<Vec<TruthLine>> {
    let lines = simulated
        .par_iter()
        .enumerate()
        .map(|(offset, sequence)| {
            if interrupt::requested() {
                return Err(Failure::interrupted("nothing was written"));
            }
            let sequence = EventSequence::new(format!("s{}", first + offset), sequence.events.clone());
            let line = truth::line(truth, process, &sequence)?;
            progress.add(1);
            Ok(line)
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    Ok(lines)
}
