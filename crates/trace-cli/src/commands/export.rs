//! `trace export`: graphs for other tools, and figures.

use std::io::Write;
use std::path::Path;

use trace_io::export::{self, Drawing, Format, Kind};
use trace_io::population::{PopulationFile, is_population};
use trace_io::result::{ResultLine, ResultReader};
use trace_io::{Error, output};
use trace_report::figure;

use super::{check_threshold, keep_inputs};
use crate::cli::{ExportArgs, ExportFormat, GraphKind};
use crate::failure::Failure;

pub fn run(args: &ExportArgs) -> anyhow::Result<()> {
    check_threshold(args.threshold)?;
    if let Some(out) = &args.out {
        keep_inputs(out, [&args.results])?;
    }
    let graphs = graphs(args)?;
    let format = match args.to {
        ExportFormat::Json => Format::Json,
        ExportFormat::Csv => Format::Csv,
        ExportFormat::Dot => Format::Dot,
        ExportFormat::Graphml => Format::Graphml,
        ExportFormat::Svg | ExportFormat::Png => {
            let picture = picture(args, &graphs)?;
            return written(args, |out| out.write_all(&picture));
        }
    };
    if args.scale.is_some() {
        return Err(Failure::usage("--scale: is for --to png"));
    }
    let kind = graphs.kind();
    let drawings = graphs.drawings();
    written(args, |out| export::write(kind, drawings.into_iter(), format, out))
}

/// Writes to the file, all at once, or to standard output.
fn written(args: &ExportArgs, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> anyhow::Result<()> {
    match &args.out {
        Some(path) => output::write_whole(path, fill)?,
        None => {
            let mut out = std::io::stdout().lock();
            fill(&mut out)?;
            out.flush()?;
        }
    }
    Ok(())
}

/// What is exported.
enum Graphs {
    Population(Box<PopulationFile>),
    Sample(Vec<ResultLine>),
    Summary(Vec<ResultLine>),
}

impl Graphs {
    const fn kind(&self) -> Kind {
        match self {
            Self::Population(_) => Kind::Population,
            Self::Sample(_) => Kind::Sample,
            Self::Summary(_) => Kind::Summary,
        }
    }

    fn drawings(&self) -> Vec<Drawing> {
        match self {
            Self::Population(file) => vec![Drawing::population(file)],
            Self::Sample(lines) => lines.iter().map(Drawing::sample).collect(),
            Self::Summary(lines) => lines.iter().map(Drawing::summary).collect(),
        }
    }
}

/// The one graph as a figure.
fn picture(args: &ExportArgs, graphs: &Graphs) -> anyhow::Result<Vec<u8>> {
    let one = |lines: &[ResultLine], draw: fn(&ResultLine) -> String| match lines {
        [line] => Ok(draw(line)),
        _ => Err(Failure::usage(format!(
            "--to svg and png draw one graph, but {} holds {}; choose a sequence with --case",
            args.results.display(),
            lines.len()
        ))),
    };
    let svg = match graphs {
        Graphs::Population(file) => figure::population(file),
        Graphs::Sample(lines) => one(lines, figure::timeline)?,
        Graphs::Summary(lines) => one(lines, figure::summary)?,
    };
    if args.to == ExportFormat::Svg {
        if args.scale.is_some() {
            return Err(Failure::usage("--scale: is for --to png"));
        }
        return Ok(svg.into_bytes());
    }
    let scale = args.scale.unwrap_or(2.0);
    if !(0.1..=20.0).contains(&scale) {
        return Err(Failure::usage(format!("--scale: {scale} is out of range; expected 0.1 to 20")));
    }
    figure::png(&svg, scale).map_err(|error| match error {
        figure::Error::Size { .. } => Failure::usage(error.to_string()),
        error => error.into(),
    })
}

fn graphs(args: &ExportArgs) -> anyhow::Result<Graphs> {
    if args.results != Path::new("-") && is_population(&args.results)? {
        if !args.cases.is_empty() {
            return Err(Failure::usage("--case: a population graph has no single sequences"));
        }
        if args.graph.is_some() || args.threshold.is_some() {
            return Err(Failure::usage("--graph and --threshold: a population graph has one graph and its own rule"));
        }
        return Ok(Graphs::Population(Box::new(PopulationFile::read(&args.results)?)));
    }
    let mut reader = ResultReader::open(&args.results)?;
    let mut wanted = args.cases.clone();
    let mut lines = Vec::new();
    while let Some((number, mut line)) = reader.next_result()? {
        if !args.cases.is_empty() && !args.cases.contains(&line.id) {
            continue;
        }
        wanted.retain(|id| *id != line.id);
        if let Some(threshold) = args.threshold {
            line.move_threshold(threshold).map_err(|reason| reader.complain(number, reason))?;
        }
        lines.push(line);
    }
    if let Some(id) = wanted.first() {
        return Err(Failure::usage(format!("--case {id}: {} has no such sequence", args.results.display())));
    }
    if lines.is_empty() {
        return Err(Error::file(&args.results, "holds no result").into());
    }
    Ok(match args.graph {
        Some(GraphKind::Summary) => Graphs::Summary(lines),
        Some(GraphKind::Sample) | None => Graphs::Sample(lines),
    })
}
