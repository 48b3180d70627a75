//! The paper's experiments.

use trace_causal::table;
use trace_lab::experiments::{ALL, Experiment, ProcessKind, find};
use trace_lab::{Error, Lab, Scale, Size, write_page};

use super::Listener;
use crate::cli::ExperimentArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{print, say};

/// Fewer events than this are no training.
const LEAST_EVENTS: usize = 10_000;

pub fn run(name: &str, args: &ExperimentArgs, quiet: bool) -> anyhow::Result<()> {
    let size = match args {
        ExperimentArgs { mini: true, .. } => Size::Mini,
        ExperimentArgs { quick: true, .. } => Size::Quick,
        ExperimentArgs { full: true, .. } => Size::Full,
        _ => Size::Standard,
    };
    let experiments: Vec<&Experiment> = if name == "all" { ALL.to_vec() } else { find(name).into_iter().collect() };
    let fleet = experiments.iter().any(|experiment| experiment.process == ProcessKind::Fleet);
    if fleet && (args.events.is_some() || args.redundancy.is_some()) {
        let reason = "--events and --redundancy are of the synthetic process: name an experiment on it";
        return Err(Failure::usage(format!("{reason}, not `{name}`")));
    }
    check_names(name, &experiments, size, &args.only)?;
    let scale = scale(args, size)?;
    interrupt::watch()?;
    let listener = Listener::new(quiet);
    let lab = Lab::new(args.out.clone(), size, &listener).with_scale(scale).with_only(args.only.clone());
    for experiment in experiments {
        let outcome = lab.run(experiment).map_err(|error| match error {
            Error::Interrupted => Failure::interrupted(format!(
                "what is finished is kept in {}; the same command goes on",
                args.out.display()
            )),
            error => error.into(),
        })?;
        let mut text = format!("{}\n\n{}", experiment.title, table::render(&outcome.table));
        if let Some(note) = experiment.note.and_then(|note| note(&outcome.rows)) {
            text += &format!("{note}\n");
        }
        let files: Vec<String> = outcome.files.iter().map(|file| file.display().to_string()).collect();
        print(format_args!("{text}\npaper: {}\nwritten: {}\n\n", experiment.paper, files.join(", ")))?;
    }
    let page = write_page(&args.out)?;
    say(quiet, format_args!("{}: {:.0} s in all", page.display(), listener.seconds()));
    Ok(())
}

/// The parts that are asked for must be there.
fn check_names(name: &str, experiments: &[&Experiment], size: Size, only: &[String]) -> anyhow::Result<()> {
    if only.is_empty() {
        return Ok(());
    }
    let [experiment] = experiments else {
        return Err(Failure::usage(format!("--only is of one experiment: name it, not `{name}`")));
    };
    let known: Vec<String> = (experiment.cells)(size).into_iter().map(|cell| cell.name).collect();
    match only.iter().find(|asked| !known.contains(asked)) {
        Some(asked) => {
            let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            Err(Failure::usage(format!("--only: expected some of {}, found `{asked}`", known.join(", "))))
        }
        None => Ok(()),
    }
}

/// The numbers of a size, and what was asked for instead of them.
fn scale(args: &ExperimentArgs, size: Size) -> anyhow::Result<Scale> {
    let mut scale = size.scale();
    if let Some(seeds) = args.seeds {
        if seeds == 0 {
            return Err(Failure::usage("--seeds: expected at least 1"));
        }
        scale.seeds = seeds;
    }
    if let Some(events) = args.events {
        if events < LEAST_EVENTS {
            return Err(Failure::usage(format!("--events: expected at least {LEAST_EVENTS}")));
        }
        scale = scale.with_events(events);
    }
    if let Some(redundancy) = args.redundancy {
        if !(redundancy > 0.0 && redundancy < 1.0) {
            return Err(Failure::usage("--redundancy: expected a number between 0 and 1"));
        }
        scale.redundancy = redundancy;
    }
    Ok(scale)
}
