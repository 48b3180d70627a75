//! `trace report`: one page to look at.

use std::path::Path;

use trace_io::population::{PopulationFile, is_population};
use trace_io::result::ResultReader;
use trace_io::{Error, output};
use trace_report::{Report, ReportOptions};

use super::keep_inputs;
use crate::cli::ReportArgs;
use crate::failure::Failure;

pub fn run(args: &ReportArgs, quiet: bool) -> anyhow::Result<()> {
    keep_inputs(&args.out, [&args.results].into_iter().chain(&args.population))?;
    if args.max_sequences == Some(0) {
        return Err(Failure::usage("--max-sequences: 0 leaves nothing to show; expected 1 or more"));
    }
    if args.results != Path::new("-") && is_population(&args.results)? {
        return Err(Failure::usage(format!(
            "{}: is a population graph; expected results, with the population graph as --population",
            args.results.display()
        )));
    }
    output::check_writable(&args.out)?;
    let mut report = Report::new(ReportOptions {
        title: args.title.clone(),
        max_sequences: args.max_sequences,
        cases: args.cases.clone(),
    });
    if let Some(path) = &args.population {
        report.population(&PopulationFile::read(path)?);
    }
    let mut reader = ResultReader::open(&args.results)?;
    let mut wanted = args.cases.clone();
    while let Some((_, line)) = reader.next_result()? {
        wanted.retain(|id| *id != line.id);
        report.add(&line);
    }
    if let Some(id) = wanted.first() {
        return Err(Failure::usage(format!("--case {id}: {} has no such sequence", args.results.display())));
    }
    let total = report.total();
    if total.sequences == 0 {
        return Err(Error::file(&args.results, "holds no result").into());
    }
    output::write_whole(&args.out, |out| report.write(out))?;
    if !quiet {
        let bytes = std::fs::metadata(&args.out).map_or(0, |about| about.len());
        let left_out = match total.left_out {
            0 => String::new(),
            left_out if args.cases.is_empty() => {
                format!("; {left_out} more are merged but not shown (--case or --max-sequences chooses)")
            }
            left_out => format!("; {left_out} others are merged but not shown"),
        };
        let shown = total.sequences - total.left_out;
        let size = bytes as f64 / 1e6;
        eprintln!("{}: {shown} sequences{left_out}; {size:.1} MB; opens in any browser", args.out.display());
    }
    Ok(())
}
