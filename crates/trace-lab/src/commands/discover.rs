//! `trace-lab discover`: a rival method on every sequence of a log.

mod method;
mod opened;

use rayon::prelude::*;
use trace_causal::{ErrorKind, ResultOptions};
use trace_io::log::{EventLog, Log, LogOptions, Unknown};
use trace_io::output::{check_writable, same_file, write_whole};
use trace_io::result::{ResultLine, RunSettings};
use trace_lab::Error;
use trace_lab::methods::Method;

use self::method::Rival;
use self::opened::Opened;
use crate::cli::DiscoverArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::say;

pub fn run(args: &DiscoverArgs, quiet: bool) -> anyhow::Result<()> {
    method::check_flags(args)?;
    check_paths(args)?;
    let opened = Opened::open(args)?;
    let mut log = read(args, &opened)?;
    // Neighbors are counted, and types too, in all of the log.
    let Rival { method, plan } = method::build(args, &opened, &log)?;
    let short = choose(&mut log, args, &opened, plan.shortest())?;
    let settings = RunSettings { method: Some(method.name().name().to_owned()), ..RunSettings::new(plan) };
    interrupt::watch()?;
    let lines = results(args, &opened, &log, &*method, &settings).map_err(|error| match error.kind() {
        ErrorKind::Cancelled => Failure::interrupted("nothing was written"),
        _ => error.into(),
    })?;
    write_whole(&args.out, |out| lines.iter().try_for_each(|line| writeln!(out, "{line}"))).map_err(Error::from)?;
    let mut text = format!("{}: {} sequences by {}", args.out.display(), lines.len(), method.name().name());
    if short > 0 {
        text += &format!("; {short} sequences too short to score were skipped");
    }
    say(quiet, text);
    Ok(())
}

/// Refuses to write over what is read, or what cannot be written in the end.
fn check_paths(args: &DiscoverArgs) -> anyhow::Result<()> {
    let out = args.out.display();
    if same_file(&args.out, &args.log) {
        return Err(Failure::usage(format!("{out}: would be written over the log")));
    }
    let model = args.model.canonicalize().ok();
    if model.is_some() && args.out.parent().and_then(|folder| folder.canonicalize().ok()) == model {
        return Err(Failure::usage(format!("{out}: would be written into the model")));
    }
    check_writable(&args.out).map_err(Error::from)?;
    Ok(())
}

fn read(args: &DiscoverArgs, opened: &Opened) -> Result<EventLog, Error> {
    let log = Log::open(&args.log, &LogOptions::default())?;
    let (events, summary) = EventLog::read(&log, &mut opened.vocabulary().clone(), Unknown::Refuse)?;
    summary.check()?;
    Ok(events)
}

/// Leaves the sequences that were asked for and are long enough; returns how many are too short.
fn choose(log: &mut EventLog, args: &DiscoverArgs, opened: &Opened, shortest: usize) -> anyhow::Result<usize> {
    for id in &args.cases {
        if !log.sequences.iter().any(|sequence| sequence.id == *id) {
            return Err(Failure::usage(format!("--case: {} has no sequence {id:?}", log.name)));
        }
    }
    log.retain(|sequence| args.cases.is_empty() || args.cases.contains(&sequence.id));
    let limit = opened.max_length().unwrap_or(usize::MAX);
    if let Some(long) = log.sequences.iter().find(|sequence| sequence.events.len() > limit) {
        let (name, id, length) = (&log.name, &long.id, long.events.len());
        let reason = format!("{name}: sequence {id:?} has {length} events; the model reads at most {limit}");
        return Err(Failure::usage(reason));
    }
    let before = log.sequences.len();
    log.retain(|sequence| sequence.events.len() >= shortest);
    if log.sequences.is_empty() {
        let reason =
            format!("{}: no sequence is long enough to score: at least {shortest} events are needed", log.name);
        return Err(Failure::usage(reason));
    }
    Ok(before - log.sequences.len())
}

/// The result lines, in the order of the log.
fn results(
    args: &DiscoverArgs,
    opened: &Opened,
    log: &EventLog,
    method: &dyn Method,
    settings: &RunSettings,
) -> Result<Vec<String>, Error> {
    let (model, vocabulary) = (opened.for_results(), opened.vocabulary());
    let options = ResultOptions { all_pairs: args.all_pairs, self_loops: false };
    let line = |index: usize| {
        if interrupt::requested() {
            return Err(Error::Interrupted);
        }
        let sequence = &log.sequences[index];
        let found = method.run(sequence).map_err(|error| trace_causal::Error::Sequence {
            log: log.name.clone(),
            line: log.lines[index],
            id: sequence.id.clone(),
            error,
        })?;
        let line = ResultLine::new(sequence, &found.graph, settings, &model, vocabulary, options);
        serde_json::to_string(&line).map_err(|error| Error::Output(error.to_string()))
    };
    (0..log.sequences.len()).into_par_iter().map(line).collect()
}
