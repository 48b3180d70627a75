//! `trace aggregate`, `trace export` and `trace report`.

use trace_causal::{Control, EvidenceRule, ExportOptions, Output, ReportOptions};

use crate::cli::{AggregateArgs, ExportArgs, GraphFlag, ReportArgs};
use crate::failure::Failure;
use crate::output::say;
use crate::progress::Terminal;

pub fn aggregate(args: &AggregateArgs, quiet: bool) -> Result<(), Failure> {
    if args.files.iter().any(|file| trace_io::output::same_file(&args.out, file)) {
        return Err(Failure::usage(format!("{}: is read from, and would be written over", args.out.display())));
    }
    trace_io::output::check_writable(&args.out)?;
    let terminal = Terminal::new(quiet);
    let rule = EvidenceRule { fdr: args.fdr, least_ratio: args.least_ratio, ..EvidenceRule::default() };
    let population = trace_causal::merge(&args.files, &rule, &Control::new().progress(&terminal))?;
    population.write(&args.out)?;
    say(
        quiet,
        format_args!(
            "{}: {} sequences, {} type pairs, {} kept",
            args.out.display(),
            population.sequences,
            population.pairs.len(),
            population.edges().count()
        ),
    );
    Ok(())
}

pub fn export(args: &ExportArgs) -> Result<(), Failure> {
    let options = ExportOptions {
        graph: args.graph.map(GraphFlag::kind),
        threshold: args.threshold,
        fdr: args.fdr,
        least_ratio: args.least_ratio,
        cases: args.cases.clone(),
        scale: args.scale,
        ..ExportOptions::new(args.to.format())
    };
    match &args.out {
        Some(path) => trace_causal::export(&args.results, &options, Output::File(path.clone()))?,
        None => trace_causal::export(&args.results, &options, Output::Writer(&mut std::io::stdout().lock()))?,
    }
    Ok(())
}

pub fn report(args: &ReportArgs, quiet: bool) -> Result<(), Failure> {
    let options =
        ReportOptions { title: args.title.clone(), max_sequences: args.max_sequences, cases: args.cases.clone() };
    let total = trace_causal::report(&args.results, args.population.as_deref(), options, &args.out)?;
    let left_out = match total.left_out {
        0 => String::new(),
        left_out if args.cases.is_empty() => {
            format!("; {left_out} more are merged but not shown (--case or --max-sequences chooses)")
        }
        left_out => format!("; {left_out} others are merged but not shown"),
    };
    let shown = total.sequences - total.left_out;
    let size = std::fs::metadata(&args.out).map_or(0, |about| about.len()) as f64 / 1e6;
    say(quiet, format_args!("{}: {shown} sequences{left_out}; {size:.1} MB; opens in any browser", args.out.display()));
    Ok(())
}
