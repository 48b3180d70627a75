//! `trace simulate`: sequences whose causal truth is known.

use trace_causal::theory::redundancy;
use trace_causal::{Control, simulate_fleet, simulate_scm, simulate_workflow};

use crate::cli::{FleetArgs, ScmArgs, SimulateCommand, WorkflowArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::say;
use crate::progress::Terminal;

pub fn run(command: &SimulateCommand, quiet: bool) -> Result<(), Failure> {
    match command {
        SimulateCommand::Scm(args) => scm(args, quiet),
        SimulateCommand::Fleet(args) => fleet(args, quiet),
        SimulateCommand::Workflow(args) => workflow(args, quiet),
    }
}

fn scm(args: &ScmArgs, quiet: bool) -> Result<(), Failure> {
    let terminal = Terminal::new(quiet);
    let cancel = interrupt::watch()?;
    let control = Control::new().progress(&terminal).cancel(&cancel);
    let made = simulate_scm(&args.options(), &args.out, &control)?;
    say(
        quiet,
        format_args!(
            "{}: {} sequences of {} events, entropy {:.3} nats per event, redundancy {:.3}",
            args.out.display(),
            made.sequences,
            args.length,
            made.entropy,
            redundancy(made.entropy, made.types),
        ),
    );
    Ok(())
}

fn fleet(args: &FleetArgs, quiet: bool) -> Result<(), Failure> {
    let terminal = Terminal::new(quiet);
    let cancel = interrupt::watch()?;
    let control = Control::new().progress(&terminal).cancel(&cancel);
    let made = simulate_fleet(&args.options(), &args.out, &control)?;
    let truth = if made.edges > 0 { format!(", {} true edges", made.edges) } else { String::new() };
    say(
        quiet,
        format_args!(
            "{}: {} vehicles, {} events of {} types, {} designed pairs{truth}, entropy {:.3} nats per event",
            args.out.display(),
            made.sequences,
            made.events,
            made.types,
            made.designed_pairs,
            made.entropy,
        ),
    );
    Ok(())
}

fn workflow(args: &WorkflowArgs, quiet: bool) -> Result<(), Failure> {
    let terminal = Terminal::new(quiet);
    let cancel = interrupt::watch()?;
    let control = Control::new().progress(&terminal).cancel(&cancel);
    let made = simulate_workflow(&args.options(), &args.out, &control)?;
    let truth = if made.edges > 0 { format!(", {} true edges", made.edges) } else { String::new() };
    say(
        quiet,
        format_args!(
            "{}: {} cases, {} events of {} types, {} designed pairs{truth}, entropy {:.3} nats per event",
            args.out.display(),
            made.sequences,
            made.events,
            made.types,
            made.designed_pairs,
            made.entropy,
        ),
    );
    Ok(())
}
