//! `trace discover`: the causal graph of every sequence of a log.

mod checkpoint;
mod pipeline;
mod resume;

use std::path::Path;

use trace_core::{Discovery, EventSequence};
use trace_io::log::{EventLog, Unknown};
use trace_io::output::{PartialFile, check_writable, partial_path};
use trace_io::population::PopulationFile;
use trace_io::result::{ResultModel, ResultOptions, ResultSettings};

use self::pipeline::{Ended, Job, Outcome, State};
use super::read_log;
use crate::cli::{DiscoverArgs, UnknownEvents};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Progress, say};

pub fn run(args: &DiscoverArgs, quiet: bool) -> anyhow::Result<()> {
    check_paths(args)?;
    let opened = trace_models::open(&args.model)?;
    let discovery = Discovery::with_settings(&*opened.model, args.method.settings());
    let plan = discovery.plan()?;
    let unknown = match args.unknown {
        UnknownEvents::Error => Unknown::Refuse,
        UnknownEvents::Skip => Unknown::Skip,
    };
    let mut vocabulary = opened.vocabulary.clone();
    let mut log = read_log(&args.log, &mut vocabulary, unknown)?;
    let skipped = choose(&mut log, args, plan.shortest(), opened.model.max_length())?;

    let job = Job {
        discovery,
        sequences: &log.sequences,
        log: &log.name,
        lines: &log.lines,
        settings: ResultSettings::new(&plan),
        model: ResultModel::new(&*opened.model, Some(opened.fingerprint.clone())),
        vocabulary: &vocabulary,
        options: ResultOptions { all_pairs: args.all_pairs, self_loops: args.self_loops },
        population: args.population.as_deref(),
    };
    if job.model.bound.is_some_and(|bound| bound.vacuous) {
        say(quiet, "note: the error bound of this model is vacuous (trace model info says more)");
    }
    let start = if args.resume { resume::find(&job, &args.out)? } else { None };
    let (file, state) = match start {
        Some(found) => {
            say(quiet, format_args!("continuing after {} finished sequences", found.1.done));
            found
        }
        None => {
            if partial_path(&args.out).exists() {
                say(
                    quiet,
                    "starting over: the partial results of an earlier run are discarded (--resume would continue it)",
                );
            }
            checkpoint::remove(job.population)?;
            (PartialFile::create(&args.out)?, State::default())
        }
    };
    interrupt::watch()?;
    let progress = Progress::new("discovering", (log.sequences.len() - state.done) as u64, quiet);
    let outcome = pipeline::run(&job, file, state, &progress);
    let elapsed = progress.finish();
    finish(args, &job, outcome, &log, skipped, elapsed.as_secs_f64(), quiet)
}

/// Gives the files their names, or says what was kept.
fn finish(
    args: &DiscoverArgs,
    job: &Job<'_>,
    outcome: Outcome,
    log: &EventLog,
    skipped: usize,
    seconds: f64,
    quiet: bool,
) -> anyhow::Result<()> {
    let state = outcome.state;
    match outcome.ended {
        Ended::Complete => {}
        Ended::Failed(error) if state.done == 0 => {
            outcome.file.discard()?;
            checkpoint::remove(job.population)?;
            return Err(error);
        }
        Ended::Failed(error) => {
            // The failure is what the user must hear of, not that the population could not be saved either.
            let saved = checkpoint::write(job, &state).is_ok();
            let kept = kept(args, &state, log);
            return Err(if saved { error.context(kept) } else { error });
        }
        Ended::Interrupted => {
            checkpoint::write(job, &state)?;
            return Err(Failure::interrupted(kept(args, &state, log)));
        }
    }
    if let Some(path) = job.population {
        let graph = state.population.rename(|id| job.vocabulary.name(*id));
        PopulationFile::new(&graph, &job.settings, &job.model).write(path)?;
    }
    outcome.file.finish()?;
    checkpoint::remove(job.population)?;

    let mut text = format!(
        "{}: {} sequences, {} edges; {} branch positions scored in {seconds:.1} s",
        args.out.display(),
        state.done,
        state.edges,
        state.branch_positions
    );
    if skipped > 0 {
        text += &format!("; {skipped} sequences too short to test were skipped");
    }
    if log.skipped_events > 0 {
        text += &format!("; {} events the model does not know were left out", log.skipped_events);
    }
    say(quiet, text);
    Ok(())
}

/// What an unfinished run leaves.
fn kept(args: &DiscoverArgs, state: &State, log: &EventLog) -> String {
    format!(
        "{} of {} sequences are finished and kept in {}; --resume continues",
        state.done,
        log.sequences.len(),
        partial_path(&args.out).display()
    )
}

/// Refuses to write over what is read, and to start what cannot be written in the end.
fn check_paths(args: &DiscoverArgs) -> anyhow::Result<()> {
    let same = |a: &Path, b: &Path| a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
    let outputs = std::iter::once(&args.out).chain(&args.population);
    for output in outputs {
        if same(output, &args.log) {
            return Err(Failure::usage(format!("{}: would be written over the log", output.display())));
        }
        check_writable(output)?;
    }
    if args.population.as_ref().is_some_and(|population| same(population, &args.out)) {
        return Err(Failure::usage("--population and --out: expected two different files"));
    }
    Ok(())
}

/// Leaves the sequences that were asked for and can be tested; returns how many are too short.
fn choose(log: &mut EventLog, args: &DiscoverArgs, shortest: usize, longest: Option<usize>) -> anyhow::Result<usize> {
    let EventLog { name, sequences, lines, .. } = log;
    for id in &args.cases {
        if !sequences.iter().any(|sequence| sequence.id == *id) {
            return Err(Failure::usage(format!("--case {id}: {name} has no such sequence")));
        }
    }
    if !args.cases.is_empty() {
        let wanted: Vec<bool> = sequences.iter().map(|sequence| args.cases.contains(&sequence.id)).collect();
        retain_by(sequences, lines, &wanted);
    }
    if let Some(limit) = longest
        && let Some((sequence, line)) =
            sequences.iter().zip(&*lines).find(|(sequence, _)| sequence.events.len() > limit)
    {
        return Err(trace_io::Error::Line {
            file: name.clone(),
            line: *line,
            reason: format!(
                "sequence {:?} has {} events; the model reads at most {limit}",
                sequence.id,
                sequence.events.len()
            ),
        }
        .into());
    }
    let before = sequences.len();
    let long_enough: Vec<bool> = sequences.iter().map(|sequence| sequence.events.len() >= shortest).collect();
    let longest_found = sequences.iter().map(|sequence| sequence.events.len()).max().unwrap_or(0);
    retain_by(sequences, lines, &long_enough);
    if sequences.is_empty() {
        return Err(trace_io::Error::file(
            name,
            format!("no sequence is long enough to test: the longest has {longest_found} events, at least {shortest} are needed"),
        )
        .into());
    }
    Ok(before - sequences.len())
}

fn retain_by(sequences: &mut Vec<EventSequence>, lines: &mut Vec<u64>, keep: &[bool]) {
    let mut flags = keep.iter();
    sequences.retain(|_| *flags.next().unwrap_or(&true));
    let mut flags = keep.iter();
    lines.retain(|_| *flags.next().unwrap_or(&true));
}
