//! `trace-lab certainty`: whether the population graph errs as rarely as it says.

use trace_causal::table;
use trace_lab::certainty::{FIRST_OF_DEVELOPMENT, Scope, unknown_name};
use trace_lab::{Error, Size};

use super::Listener;
use crate::cli::CertaintyArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{print, say};

pub fn run(args: &CertaintyArgs, quiet: bool) -> anyhow::Result<()> {
    let size = match args {
        CertaintyArgs { mini: true, .. } => Size::Mini,
        CertaintyArgs { quick: true, .. } => Size::Quick,
        _ => Size::Standard,
    };
    let usual: &[usize] = match size {
        Size::Mini => &[50],
        Size::Quick => &[50, 500],
        _ => &[50, 500, 5000],
    };
    let seeds = args.seeds.unwrap_or(match size {
        Size::Mini => 1,
        Size::Quick => 2,
        _ => 20,
    });
    if seeds == 0 || args.first_seed == 0 {
        return Err(Failure::usage("--seeds and --first-seed: expected at least 1"));
    }
    let end = args.first_seed.saturating_add(seeds);
    if args.first_seed < FIRST_OF_DEVELOPMENT && end > FIRST_OF_DEVELOPMENT {
        let reason = format!("--seeds: {end} seeds reach those of development, {FIRST_OF_DEVELOPMENT} and up");
        return Err(Failure::usage(reason));
    }
    if let Some((missing, words)) = unknown_name(&args.only) {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        return Err(Failure::usage(format!("--only: expected some of {}, found `{missing}`", words.join(", "))));
    }
    let sizes: Vec<usize> = args.sizes.iter().filter_map(|size| size.parse().ok()).collect();
    interrupt::watch()?;
    let listener = Listener::new(quiet);
    let scope = Scope {
        folder: args.out.clone(),
        size,
        seeds: args.first_seed..end,
        sizes: if sizes.is_empty() { usual.to_vec() } else { sizes },
        only: args.only.clone(),
        dump: args.dump,
        reporter: &listener,
    };
    let outcome = scope.run().map_err(|error| match error {
        Error::Interrupted => Failure::interrupted(format!(
            "what is finished is kept in {}; the same command goes on",
            args.out.display()
        )),
        error => error.into(),
    })?;
    let files: Vec<String> = outcome.files.iter().map(|file| file.display().to_string()).collect();
    print(format_args!("{}\nwritten: {}\n", table::render(&outcome.table), files.join(", ")))?;
    say(quiet, format_args!("{:.0} s in all", listener.seconds()));
    Ok(())
}
