//! Exporting: graphs for other tools, and figures.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trace_core::evidence::EvidenceRule;
use trace_io::export::{self, Drawing, Format, Kind};
use trace_io::output::{same_file, write_whole};
use trace_io::population::{Population, is_population};
use trace_io::result::{ResultLine, ResultReader};
use trace_report::figure;

use crate::Error;
use crate::evaluate::check_threshold;
use crate::merge::needs_all_pairs;

/// What graphs are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// One JSON object per graph and line.
    Json,
    /// One row per edge.
    Csv,
    /// Graphviz.
    Dot,
    /// XML for Gephi, yEd, NetworkX and others.
    Graphml,
    /// A figure of one graph, for papers.
    Svg,
    /// The same as pixels.
    Png,
}

/// Which graph of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GraphKind {
    /// Over positions.
    #[default]
    Sample,
    /// Over event types.
    Summary,
}

/// What is exported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportOptions {
    /// What it is written as.
    pub to: ExportFormat,
    /// Which graph of each result; a population file has one of its own.
    pub graph: Option<GraphKind>,
    /// Decide anew by this threshold, in nats; needs results with all pairs.
    pub threshold: Option<f64>,
    /// Decide over a population graph anew, with at most this share of false findings.
    pub fdr: Option<f64>,
    /// Decide over a population graph anew, for ratios above this one.
    pub least_ratio: Option<f64>,
    /// Only these sequences; all where there are none.
    pub cases: Vec<String>,
    /// Pixels for each unit of a PNG figure.
    pub scale: Option<f32>,
}

impl ExportOptions {
    /// With every default.
    pub const fn new(to: ExportFormat) -> Self {
        Self { to, graph: None, threshold: None, fdr: None, least_ratio: None, cases: Vec::new(), scale: None }
    }
}

/// Exports a result file or a population file, to a file or any writer.
pub fn export(results: &Path, options: &ExportOptions, out: Output<'_>) -> Result<(), Error> {
    check_threshold(options.threshold)?;
    if let Output::File(path) = &out
        && same_file(path, results)
    {
        return Err(Error::request(format!("{}: is read from, and would be written over", path.display())));
    }
    if options.scale.is_some() && options.to != ExportFormat::Png {
        return Err(Error::option("scale", "is for PNG figures"));
    }
    let graphs = graphs(results, options)?;
    let format = match options.to {
        ExportFormat::Json => Format::Json,
        ExportFormat::Csv => Format::Csv,
        ExportFormat::Dot => Format::Dot,
        ExportFormat::Graphml => Format::Graphml,
        ExportFormat::Svg | ExportFormat::Png => {
            let picture = picture(results, options, &graphs)?;
            return out.write(|out| out.write_all(&picture));
        }
    };
    let drawings = graphs.drawings();
    out.write(|out| export::write(graphs.kind(), drawings.into_iter(), format, out))
}

/// Where an export goes.
pub enum Output<'o> {
    /// A file, which is written all at once.
    File(PathBuf),
    /// Anything that can be written to.
    Writer(&'o mut dyn Write),
}

impl Output<'_> {
    fn write(self, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Error> {
        match self {
            Self::File(path) => write_whole(&path, fill)?,
            Self::Writer(out) => {
                fill(out).and_then(|()| out.flush()).map_err(trace_io::Error::io("standard output"))?;
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Writer(_) => f.write_str("Writer"),
        }
    }
}

/// What is exported.
enum Graphs {
    Population(Box<Population>),
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

/// A population graph by the rule that is asked for.
fn decided(file: Population, options: &ExportOptions, path: &Path) -> Result<Population, Error> {
    if options.fdr.is_none() && options.least_ratio.is_none() {
        return Ok(file);
    }
    if !file.has_evidence() {
        let reason = "holds no p-values, so that no error rate can be chosen: it has no sequence that the model was not \
                      trained on, or was merged from results";
        return Err(trace_io::Error::file(path, reason).into());
    }
    let now = file.decision.map_or((0.1, 1.2), |decision| (decision.fdr, decision.least_ratio));
    let rule = EvidenceRule {
        fdr: options.fdr.unwrap_or(now.0),
        least_ratio: options.least_ratio.unwrap_or(now.1),
        ..EvidenceRule::default()
    };
    check_rule(&rule)?;
    Ok(file.decided(&rule))
}

/// Checks the numbers of a rule.
pub(crate) fn check_rule(rule: &EvidenceRule) -> Result<(), Error> {
    if !(rule.fdr > 0.0 && rule.fdr < 1.0) {
        let reason = format!("{} is out of range; expected a share between 0 and 1", rule.fdr);
        return Err(Error::option("fdr", reason));
    }
    if !(rule.least_ratio >= 1.0 && rule.least_ratio.is_finite()) {
        let reason = format!("{} is out of range; expected a ratio of 1 or more", rule.least_ratio);
        return Err(Error::option("least_ratio", reason));
    }
    Ok(())
}

/// The one graph as a figure.
fn picture(results: &Path, options: &ExportOptions, graphs: &Graphs) -> Result<Vec<u8>, Error> {
    let one = |lines: &[ResultLine], draw: fn(&ResultLine) -> String| match lines {
        [line] => Ok(draw(line)),
        _ => {
            let (place, count) = (results.display(), lines.len());
            let reason = format!("a figure shows one graph, but {place} holds {count}");
            Err(Error::request(reason).hint("case", Some("ID"), "chooses a sequence"))
        }
    };
    let svg = match graphs {
        Graphs::Population(file) => figure::population(file),
        Graphs::Sample(lines) => one(lines, figure::timeline)?,
        Graphs::Summary(lines) => one(lines, figure::summary)?,
    };
    if options.to == ExportFormat::Svg {
        return Ok(svg.into_bytes());
    }
    let scale = options.scale.unwrap_or(2.0);
    if !(0.1..=20.0).contains(&scale) {
        return Err(Error::option("scale", format!("{scale} is out of range; expected 0.1 to 20")));
    }
    Ok(figure::png(&svg, scale)?)
}

fn graphs(results: &Path, options: &ExportOptions) -> Result<Graphs, Error> {
    if results != Path::new("-") && is_population(results)? {
        let alone = [
            ("case", !options.cases.is_empty(), "a population graph has no single sequences"),
            ("graph", options.graph.is_some(), "a population graph is one graph"),
            ("threshold", options.threshold.is_some(), "a population graph has its own rule"),
        ];
        if let Some((name, _, reason)) = alone.into_iter().find(|(_, given, _)| *given) {
            return Err(Error::option(name, reason));
        }
        let file = Population::read(results)?;
        return Ok(Graphs::Population(Box::new(decided(file, options, results)?)));
    }
    for (name, given) in [("fdr", options.fdr.is_some()), ("least_ratio", options.least_ratio.is_some())] {
        if given {
            return Err(Error::option(name, "decides over a population graph; single sequences have a threshold"));
        }
    }
    let mut reader = ResultReader::open(results)?;
    let mut wanted = options.cases.clone();
    let mut lines = Vec::new();
    while let Some((number, mut line)) = reader.next_result()? {
        if !options.cases.is_empty() && !options.cases.contains(&line.id) {
            continue;
        }
        wanted.retain(|id| *id != line.id);
        if let Some(threshold) = options.threshold
            && !line.move_threshold(threshold)
        {
            return Err(needs_all_pairs(&reader, number));
        }
        lines.push(line);
    }
    if let Some(id) = wanted.first() {
        return Err(Error::option("case", format!("{} has no sequence {id:?}", results.display())));
    }
    if lines.is_empty() {
        return Err(trace_io::Error::file(results, "holds no result").into());
    }
    Ok(match options.graph.unwrap_or_default() {
        GraphKind::Summary => Graphs::Summary(lines),
        GraphKind::Sample => Graphs::Sample(lines),
    })
}
