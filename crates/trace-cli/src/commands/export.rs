//! `trace export`: graphs for other tools.

use std::io::Write;
use std::path::Path;

use trace_io::export::{self, Drawing, Format, Kind};
use trace_io::population::{PopulationFile, is_population};
use trace_io::result::ResultReader;
use trace_io::{Error, output};

use super::{check_threshold, keep_inputs};
use crate::cli::{ExportArgs, ExportFormat, GraphKind};
use crate::failure::Failure;

pub fn run(args: &ExportArgs) -> anyhow::Result<()> {
    check_threshold(args.threshold)?;
    if let Some(out) = &args.out {
        keep_inputs(out, [&args.results])?;
    }
    let (kind, drawings) = drawings(args)?;
    let format = match args.to {
        ExportFormat::Json => Format::Json,
        ExportFormat::Csv => Format::Csv,
        ExportFormat::Dot => Format::Dot,
        ExportFormat::Graphml => Format::Graphml,
    };
    match &args.out {
        Some(path) => output::write_whole(path, |out| export::write(kind, drawings.into_iter(), format, out))?,
        None => {
            let mut out = std::io::stdout().lock();
            export::write(kind, drawings.into_iter(), format, &mut out)?;
            out.flush()?;
        }
    }
    Ok(())
}

fn drawings(args: &ExportArgs) -> anyhow::Result<(Kind, Vec<Drawing>)> {
    if args.results != Path::new("-") && is_population(&args.results)? {
        if !args.cases.is_empty() {
            return Err(Failure::usage("--case: a population graph has no single sequences"));
        }
        if args.graph.is_some() || args.threshold.is_some() {
            return Err(Failure::usage("--graph and --threshold: a population graph has one graph and its own rule"));
        }
        return Ok((Kind::Population, vec![Drawing::population(&PopulationFile::read(&args.results)?)]));
    }
    let mut reader = ResultReader::open(&args.results)?;
    let mut wanted = args.cases.clone();
    let mut drawings = Vec::new();
    let kind = match args.graph {
        Some(GraphKind::Summary) => Kind::Summary,
        Some(GraphKind::Sample) | None => Kind::Sample,
    };
    while let Some((number, mut line)) = reader.next_result()? {
        if !args.cases.is_empty() && !args.cases.contains(&line.id) {
            continue;
        }
        wanted.retain(|id| *id != line.id);
        if let Some(threshold) = args.threshold {
            line.move_threshold(threshold).map_err(|reason| reader.complain(number, reason))?;
        }
        drawings.push(if kind == Kind::Summary { Drawing::summary(&line) } else { Drawing::sample(&line) });
    }
    if let Some(id) = wanted.first() {
        return Err(Failure::usage(format!("--case {id}: {} has no such sequence", args.results.display())));
    }
    if drawings.is_empty() {
        return Err(Error::file(&args.results, "holds no result").into());
    }
    Ok((kind, drawings))
}
