//! The paper's experiments, in the laboratory.

use std::time::Instant;

use trace_lab::experiments::{ALL, Experiment, find};
use trace_lab::{Error, Lab, Report, Size, write_page};

use super::peak_bytes;
use crate::cli::LabArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::say;
use crate::table;

pub fn run(name: &str, args: &LabArgs, quiet: bool) -> anyhow::Result<()> {
    let size = match args {
        LabArgs { mini: true, .. } => Size::Mini,
        LabArgs { quick: true, .. } => Size::Quick,
        LabArgs { full: true, .. } => Size::Full,
        _ => Size::Standard,
    };
    if args.seeds == Some(0) {
        return Err(Failure::usage("--seeds: expected at least 1"));
    }
    let experiments: Vec<&Experiment> = if name == "all" { ALL.to_vec() } else { find(name).into_iter().collect() };
    interrupt::watch()?;
    let listener = Listener { quiet, start: Instant::now() };
    let lab = Lab::new(args.out.clone(), size, &listener).seeds(args.seeds);
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
    let page = write_page(&args.out, size)?;
    say(quiet, format_args!("{}: {:.0} s in all", page.display(), listener.start.elapsed().as_secs_f64()));
    Ok(())
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
        let before = peak_bytes();
        work();
        Some(peak_bytes()?.saturating_sub(before?)).filter(|_| reset)
    }
}
