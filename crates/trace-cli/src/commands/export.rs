//! `trace export`: graphs for other tools.

use std::io::Write;
use std::path::Path;

use trace_io::export::{self, Drawing, Format};
use trace_io::population::{PopulationFile, is_population};
use trace_io::result::ResultReader;
use trace_io::{Error, output};

use crate::cli::{ExportArgs, ExportFormat, GraphKind};
use crate::failure::Failure;

pub fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let drawings = drawings(args)?;
    let format = match args.to {
        ExportFormat::Json => Format::Json,
        ExportFormat::Csv => Format::Csv,
        ExportFormat::Dot => Format::Dot,
        ExportFormat::Graphml => Format::Graphml,
    };
    match &args.out {
        Some(path) => output::write_whole(path, |out| export::write(drawings.into_iter(), format, out))?,
        None => {
            let mut out = std::io::stdout().lock();
            export::write(drawings.into_iter(), format, &mut out)?;
            out.flush()?;
        }
    }
    Ok(())
}

fn drawings(args: &ExportArgs) -> anyhow::Result<Vec<Drawing>> {
    if args.results != Path::new("-") && is_population(&args.results)? {
        if !args.cases.is_empty() {
            return Err(Failure::usage("--case: a population graph has no single sequences"));
        }
        return Ok(vec![Drawing::population(&PopulationFile::read(&args.results)?)]);
    }
    let mut reader = ResultReader::open(&args.results)?;
    let mut wanted = args.cases.clone();
    let mut drawings = Vec::new();
    while let Some((_, line)) = reader.next_result()? {
        if !args.cases.is_empty() && !args.cases.contains(&line.id) {
            continue;
        }
        wanted.retain(|id| *id != line.id);
        drawings.push(match args.graph {
            GraphKind::Sample => Drawing::sample(&line),
            GraphKind::Summary => Drawing::summary(&line),
        });
    }
    if let Some(id) = wanted.first() {
        return Err(Failure::usage(format!("--case {id}: {} has no such sequence", args.results.display())));
    }
    if drawings.is_empty() {
        return Err(Error::file(&args.results, "holds no result").into());
    }
    Ok(drawings)
}
