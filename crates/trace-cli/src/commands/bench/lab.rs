//! The paper's experiments, in the laboratory.

use std::time::Instant;

use trace_lab::experiments::{ALL, Experiment, Ground, find};
use trace_lab::{Error, Lab, Report, Scale, Size, write_page};

use super::peak_bytes;
use crate::cli::LabArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::say;
use crate::table;

/// Fewer events than this are no training.
const LEAST_EVENTS: usize = 10_000;

pub fn run(name: &str, args: &LabArgs, quiet: bool) -> anyhow::Result<()> {
    let size = match args {
        LabArgs { mini: true, .. } => Size::Mini,
        LabArgs { quick: true, .. } => Size::Quick,
        LabArgs { full: true, .. } => Size::Full,
        _ => Size::Standard,
    };
    let experiments: Vec<&Experiment> = if name == "all" { ALL.to_vec() } else { find(name).into_iter().collect() };
    let fleet = experiments.iter().any(|experiment| experiment.ground == Ground::Fleet);
    if fleet && (args.events.is_some() || args.redundancy.is_some()) {
        let reason = "--events and --redundancy are of the synthetic process: name an experiment on it";
        return Err(Failure::usage(format!("{reason}, not `{name}`")));
    }
    check_names(name, &experiments, size, &args.only)?;
    let scale = scale(args, size)?;
    interrupt::watch()?;
    let listener = Listener { quiet, start: Instant::now() };
    let lab = Lab::new(args.out.clone(), size, &listener).with_scale(scale).with_only(args.only.clone());
    for experiment in experiments {
        let outcome = lab.run(experiment).map_err(|error| match error {
            Error::Interrupted => Failure::interrupted(format!(
                "what is finished is kept in {}; the same command goes on",
                args.out.display()
            )),
            error => error.into(),
        })?;
        println!("{}\n", experiment.title);
        print!("{}", table::render(&outcome.table));
        if let Some(note) = experiment.note.and_then(|note| note(&outcome.rows)) {
            println!("{note}");
        }
        let files: Vec<String> = outcome.files.iter().map(|file| file.display().to_string()).collect();
        println!("\npaper: {}\nwritten: {}\n", experiment.paper, files.join(", "));
    }
    let page = write_page(&args.out)?;
    say(quiet, format_args!("{}: {:.0} s in all", page.display(), listener.start.elapsed().as_secs_f64()));
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
            Err(Failure::usage(format!("--only: expected some of {}, found `{asked}`", quoted(&known).join(", "))))
        }
        None => Ok(()),
    }
}

fn quoted(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("`{name}`")).collect()
}

/// The numbers of a size, and what was asked for instead of them.
fn scale(args: &LabArgs, size: Size) -> anyhow::Result<Scale> {
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

/// Tells progress on standard error, and when to stop.
struct Listener {
    quiet: bool,
    start: Instant,
}

impl Report for Listener {
    fn say(&self, line: &str) {
        say(self.quiet, format_args!("[{:>5.0} s] {line}", self.start.elapsed().as_secs_f64()));
    }

    fn stop(&self) -> bool {
        interrupt::requested()
    }

    fn peak_of(&self, work: &mut dyn FnMut()) -> Option<u64> {
        // Linux starts counting anew when asked; elsewhere nothing is known.
        let reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
        work();
        peak_bytes().filter(|_| reset)
    }
}
