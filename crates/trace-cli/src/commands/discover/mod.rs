//! `trace discover`: the causal graph of every sequence of a log.

mod checkpoint;
mod method;
mod pipeline;
mod resume;

use std::path::{Path, PathBuf};

use trace_core::{Discovery, EventSequence, Knowledge, Lag, Verdict};
use trace_io::log::{EventLog, Unknown};
use trace_io::output::{PartialFile, check_writable, partial_path, same_file};
use trace_io::population::PopulationFile;
use trace_io::result::{ResultModel, ResultOptions};

use self::pipeline::{Ended, Job, Outcome, State};
use self::resume::Found;
use super::log::{compare_shaping, read_log};
use super::{device, read_knowledge};
use crate::cli::{DiscoverArgs, UnknownEvents};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Progress, say};

pub fn run(args: &DiscoverArgs, quiet: bool) -> anyhow::Result<()> {
    let (out, population) = check_paths(args)?;
    method::check_flags(args)?;
    let mut source = method::open(args.kind.kind(), &args.model)?;
    let trained_length = source.model.model.trained_length();
    source.model = device::place(source.model, &args.model, &args.device)?;
    let plan = Discovery::with_settings(&*source.model.model, method::settings(args)).plan()?;
    let opened = &mut source.model;
    let unknown = match args.unknown {
        UnknownEvents::Error => Unknown::Refuse,
        UnknownEvents::Skip => Unknown::Skip,
    };
    let knowledge = read_knowledge(args.knowledge.as_deref(), &opened.vocabulary)?;
    let mut vocabulary = opened.vocabulary.clone();
    let mut log = read_log(&args.log, &mut vocabulary, unknown, quiet)?;
    compare_shaping(&args.log, &opened.record.training, quiet);
    let short = choose(&mut log, &args.cases, plan.shortest(), opened.model.max_length())?;

    let longest = log.sequences.iter().map(|sequence| sequence.events.len()).max().unwrap_or(0);
    if let Some(limit) = args.max_memory {
        let set = opened.model.set_max_memory(limit.0, longest);
        set.map_err(|error| Failure::usage(format!("--max-memory: {error}")))?;
    }

    let known = knowledge.as_ref().map(|(knowledge, _)| knowledge);
    let (method, mut settings) = method::build(args, &source, &plan, &log, known)?;
    settings.knowledge = knowledge.as_ref().map(|(_, hash)| hash.clone());
    let opened = &source.model;
    let job = Job {
        method,
        knowledge: known,
        log: &log,
        settings,
        model: ResultModel::new(&*opened.model, Some(opened.fingerprint.clone())),
        vocabulary: &vocabulary,
        options: ResultOptions { all_pairs: args.all_pairs, self_loops: args.self_loops },
        population: population.as_deref(),
    };
    if job.model.bound.is_some_and(|bound| bound.vacuous) {
        say(quiet, "note: the error bound of this model is vacuous (trace model info says more)");
    }
    if let Some(trained) = trained_length.filter(|trained| longest > *trained) {
        say(
            quiet,
            format_args!(
                "warning: sequences of up to {longest} events, but the model was trained on at most {trained}: its \
                 positions beyond that may mean little"
            ),
        );
    }
    let Some((file, state)) = begin(&job, &out, args.resume, quiet)? else { return Ok(()) };
    interrupt::watch()?;
    let progress = Progress::new("discovering", (log.sequences.len() - state.done) as u64, quiet);
    let outcome = pipeline::run(&job, file, state, &progress);
    let seconds = progress.finish().as_secs_f64();
    let state = finish(&job, outcome, &out)?;
    say(quiet, describe(&job, &state, &out, short, seconds));
    Ok(())
}

/// The places to write. Refuses to write over what is read, and to start what cannot be written in the end.
fn check_paths(args: &DiscoverArgs) -> anyhow::Result<(PathBuf, Option<PathBuf>)> {
    for output in std::iter::once(&args.out).chain(&args.population) {
        if same_file(output, &args.log.path) {
            return Err(Failure::usage(format!("{}: would be written over the log", output.display())));
        }
        if output.parent().is_some_and(|folder| same_file(folder, &args.model)) {
            return Err(Failure::usage(format!("{}: would be written into the model", output.display())));
        }
    }
    let out = check_writable(&args.out)?;
    let population = args.population.as_deref().map(check_writable).transpose()?;
    if let Some(population) = &population {
        let ours = [out.clone(), partial_path(&out)];
        let theirs = [population.clone(), partial_path(population)];
        if ours.iter().any(|a| theirs.iter().any(|b| same_file(a, b))) {
            return Err(Failure::usage("--population and --out: expected two different files"));
        }
    }
    Ok((out, population))
}

/// Leaves the sequences that were asked for and can be tested; returns how many are too short.
fn choose(log: &mut EventLog, cases: &[String], shortest: usize, longest: Option<usize>) -> anyhow::Result<usize> {
    for id in cases {
        if !log.sequences.iter().any(|sequence| sequence.id == *id) {
            return Err(Failure::usage(format!("--case {id}: {} has no such sequence", log.name)));
        }
    }
    log.retain(|sequence| cases.is_empty() || cases.contains(&sequence.id));
    let too_long = |limit: usize| log.sequences.iter().position(|sequence| sequence.events.len() > limit);
    if let Some((limit, index)) = longest.and_then(|limit| Some((limit, too_long(limit)?))) {
        let sequence = &log.sequences[index];
        let length = sequence.events.len();
        let reason = format!("sequence {:?} has {length} events; the model reads at most {limit}", sequence.id);
        return Err(trace_io::Error::Line { file: log.name.clone(), line: log.lines[index], reason }.into());
    }
    let before = log.sequences.len();
    let length = log.sequences.iter().map(|sequence| sequence.events.len()).max().unwrap_or(0);
    log.retain(|sequence| sequence.events.len() >= shortest);
    if log.sequences.is_empty() {
        let reason = format!(
            "no sequence is long enough to test: the longest has {length} events, at least {shortest} are needed"
        );
        return Err(trace_io::Error::file(&log.name, reason).into());
    }
    Ok(before - log.sequences.len())
}

/// Where the run starts: from nothing, or where an interrupted one stopped; `None` if that was the end.
fn begin(job: &Job<'_>, out: &Path, resume: bool, quiet: bool) -> anyhow::Result<Option<(PartialFile, State)>> {
    let found = if resume { resume::find(job, out)? } else { Found::Nothing };
    match found {
        Found::Complete => {
            say(quiet, format_args!("{}: complete already, nothing to continue", out.display()));
            return Ok(None);
        }
        Found::Partial(file, state, again) => {
            say(quiet, format_args!("continuing after {} finished sequences", state.done));
            if again > 0 {
                say(quiet, format_args!("{again} more are made again: the population was last saved before them"));
            }
            return Ok(Some((file, state)));
        }
        Found::Nothing if resume => say(quiet, "nothing to continue; starting from the beginning"),
        Found::Nothing if partial_path(out).exists() => {
            say(quiet, "starting over: partial results of an earlier run are discarded (--resume would continue it)");
        }
        Found::Nothing => {}
    }
    let file = PartialFile::create(out)?;
    let state = State::default();
    // From the first moment on, so that a population is known to belong to the partial results.
    checkpoint::write(job, &state)?;
    Ok(Some((file, state)))
}

/// Gives the files their names, or says what was kept.
fn finish(job: &Job<'_>, outcome: Outcome, out: &Path) -> anyhow::Result<State> {
    let state = outcome.state;
    let kept = || {
        format!(
            "{} of {} sequences are finished and kept in {}; --resume continues",
            state.done,
            job.log.sequences.len(),
            partial_path(out).display()
        )
    };
    match outcome.ended {
        Ended::Complete => {}
        Ended::Failed(error) if state.done == 0 => {
            outcome.file.discard()?;
            checkpoint::remove(job.population)?;
            return Err(error);
        }
        Ended::Failed(error) => {
            // The failure is what the user must hear of, not that the population could not be saved either.
            return Err(if checkpoint::write(job, &state).is_ok() { error.context(kept()) } else { error });
        }
        Ended::Interrupted => {
            checkpoint::write(job, &state)?;
            return Err(Failure::interrupted(kept()));
        }
    }
    if let Some(path) = job.population {
        let graph = state.population.rename(|id| job.vocabulary.name(*id));
        PopulationFile::new(&graph, &job.settings, &job.model).write(path)?;
    }
    outcome.file.finish()?;
    checkpoint::remove(job.population)?;
    Ok(state)
}

/// What was done, for people.
fn describe(job: &Job<'_>, state: &State, out: &Path, short: usize, seconds: f64) -> String {
    let mut text = format!(
        "{}: {} sequences, {} edges; {} branch positions scored in {seconds:.1} s",
        out.display(),
        state.done,
        state.edges,
        state.branch_positions
    );
    if short > 0 {
        text += &format!("; {short} sequences too short to test were skipped");
    }
    let skipped: usize = job.log.skipped.iter().map(Vec::len).sum();
    if skipped > 0 {
        text += &format!("; {skipped} events the model does not know were left out");
    }
    let open = |sequence: &EventSequence, (cause, effect): (u32, u32)| {
        let event = |position: u32| sequence.events[position as usize];
        let verdict = |known: &Knowledge| known.verdict(event(cause), event(effect), Lag(effect - cause));
        job.knowledge.map(verdict) != Some(Verdict::Excluded)
    };
    let count = |sequence: &EventSequence| {
        let pairs = job.settings.tested_pairs(sequence.events.len());
        let total = pairs.clone().count();
        (total, pairs.filter(|pair| open(sequence, *pair)).count())
    };
    let counts = job.log.sequences.iter().map(count);
    let (total, tested) = counts.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
    if tested < total {
        text += &format!("; {} of {total} pairs excluded by knowledge", total - tested);
    }
    if state.edges * 2 > tested {
        text += &format!(
            "\nnote: {:.0} % of the tested pairs are edges: in a log this regular almost every event depends on those \
             before it; the strongest say most, and a population graph ranks them",
            100.0 * state.edges as f64 / tested as f64
        );
    }
    text
}
