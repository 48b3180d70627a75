//! `trace simulate`: sequences whose causal truth is known.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use rayon::prelude::*;
use serde_json::{Map, json};
use trace_core::theory::redundancy;
use trace_core::{
    DEFAULT_THRESHOLD, DensityModel, Discovery, Divergence, EventSequence, MOST_PARTICLES, Particles, Proposal,
};
use trace_io::result::divergence_word;
use trace_io::truth::{TruthEdge, TruthLine};
use trace_models::{Process, ProcessSpec, Simulated, check_replaceable, write_folder};

use crate::cli::{ScmArgs, SimulateCommand, TruthKind};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Progress, say};

/// Largest vocabulary whose truth is exact unless asked otherwise.
const EXACT_TRUTH_UP_TO: usize = 2000;
/// Replacements of the paper's own protocol.
const PAPER_DRAWS: usize = 10;
/// Events in all, and in one sequence, that are taken for meant.
const MOST_EVENTS: usize = 10_000_000_000;
const LONGEST: usize = 10_000_000;
/// Events in memory at a time, in whole sequences.
const EVENTS_AT_A_TIME: usize = 1 << 16;

pub fn run(command: &SimulateCommand, quiet: bool) -> anyhow::Result<()> {
    let SimulateCommand::Scm(args) = command;
    scm(args, quiet)
}

/// How the truth of simulated sequences is measured.
#[derive(Clone, Copy, Debug)]
pub struct TruthSpec {
    pub divergence: Divergence,
    pub draws: Particles,
    pub seed: u64,
}

impl TruthSpec {
    /// The true edges of one sequence: every replacement of every event the process looks at, compared by the
    /// process itself.
    pub fn measure(&self, process: &Process, sequence: &EventSequence) -> Result<TruthLine, trace_core::Error> {
        // A name of its own keeps the truth's draws apart from those of a discovery with the same seed.
        let renamed = EventSequence::new(format!("truth of {}", sequence.id), sequence.events.clone());
        let found = Discovery::new(process)
            .proposal(Proposal::Uniform)
            .divergence(self.divergence)
            .particles(self.draws)
            .memory(process.memory())
            .threshold(DEFAULT_THRESHOLD)
            .seed(self.seed)
            .run(&renamed)?;
        let edges = found
            .graph
            .edges()
            .map(|edge| TruthEdge {
                cause: edge.cause.0,
                effect: edge.effect.0,
                strength: Some(edge.strength),
                kept: true,
            })
            .collect();
        Ok(TruthLine {
            id: sequence.id.clone(),
            divergence: Some(divergence_word(self.divergence).to_owned()),
            draws: Some(match self.draws {
                Particles::Fixed(count) => json!(count),
                _ => json!("all"),
            }),
            threshold: Some(DEFAULT_THRESHOLD),
            edges,
        })
    }
}

fn scm(args: &ScmArgs, quiet: bool) -> anyhow::Result<()> {
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
    if args.sequences == 0 || args.length == 0 {
        return Err(Failure::usage("--sequences and --length: expected at least 1"));
    }
    if args.length > LONGEST {
        return Err(Failure::usage(format!("--length: {} is out of range; expected at most {LONGEST}", args.length)));
    }
    if args.sequences.checked_mul(args.length).is_none_or(|events| events > MOST_EVENTS) {
        return Err(Failure::usage(format!(
            "--sequences {} of --length {}: expected at most {MOST_EVENTS} events in all",
            args.sequences, args.length
        )));
    }
    if let Some(Particles::Fixed(count)) = args.truth_draws
        && !(2..=MOST_PARTICLES).contains(&count)
    {
        return Err(Failure::usage(format!(
            "--truth-draws: {count} is out of range; expected all, or 2 to {MOST_PARTICLES}"
        )));
    }
    if args.truth != TruthKind::None && args.length < 2 {
        return Err(Failure::usage("--length 1 leaves no truth to measure; use --truth none or longer sequences"));
    }
    Ok(())
}

/// Writes everything into the folder and gives the process its entropy.
fn fill(folder: &Path, args: &ScmArgs, process: &mut Process, quiet: bool) -> anyhow::Result<()> {
    let divergence = match args.truth {
        TruthKind::Event => Some(Divergence::Event),
        TruthKind::Full => Some(Divergence::Full),
        TruthKind::None => None,
    };
    let exact = args.vocabulary <= EXACT_TRUTH_UP_TO;
    let draws = args.truth_draws.unwrap_or(if exact { Particles::All } else { Particles::Fixed(PAPER_DRAWS) });
    let truth = divergence.map(|divergence| TruthSpec { divergence, draws, seed: args.seed });

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
            let line = truth.measure(process, &sequence)?;
            progress.add(1);
            Ok(line)
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    Ok(lines)
}
