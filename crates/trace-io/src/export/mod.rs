//! Graphs for other tools.
//!
//! Every graph first becomes a [`Drawing`] – named nodes and edges with typed attributes – and each format is one
//! file that writes a drawing.

mod csv;
mod dot;
mod graphml;
mod json;

use std::collections::BTreeMap;
use std::io::{self, Write};

use trace_core::{EventName, Question};

use crate::population::Population;
use crate::result::ResultLine;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// Text.
    Text(String),
    /// A number.
    Number(f64),
    /// A whole number.
    Count(u64),
    /// Yes or no.
    Flag(bool),
    /// Not known.
    Unknown,
}

impl Attribute {
    /// A number that may not be known.
    fn known(number: Option<f64>) -> Self {
        number.map_or(Self::Unknown, Self::Number)
    }
}

fn word(question: Question) -> String {
    question.name().to_owned()
}

/// A node of a drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What to show.
    pub label: String,
    /// What else is known of it.
    pub attributes: Vec<(&'static str, Attribute)>,
}

/// An edge of a drawing, between node indices.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Index of the cause.
    pub from: usize,
    /// Index of the effect.
    pub to: usize,
    /// What is known of it, in the same order for all edges of a drawing.
    pub attributes: Vec<(&'static str, Attribute)>,
}

/// Which graph a drawing shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Positions of one sequence.
    Sample,
    /// Types of one sequence.
    Summary,
    /// Types of many sequences.
    Population,
}

impl Kind {
    /// The attributes of nodes.
    const fn node_attributes(self) -> &'static [&'static str] {
        match self {
            Self::Sample => &["position", "event"],
            Self::Summary | Self::Population => &["event"],
        }
    }

    /// The attributes of edges.
    const fn link_attributes(self) -> &'static [&'static str] {
        match self {
            Self::Sample => &[
                "lag",
                "strength",
                "std_error",
                "particles",
                "log_ratio",
                "probability",
                "probability_replaced",
                "tied",
                "question",
                "verdict",
                "overlap",
                "hidden_cause_ratio",
            ],
            Self::Summary => &["strength", "mean_strength", "count", "lags"],
            Self::Population => &[
                "score",
                "unsigned_score",
                "sequences",
                "opportunities",
                "kept_count",
                "mean_strength",
                "strength_spread",
                "mean_log_ratio",
                "log_ratio_spread",
                "lags",
                "question",
                "verdict",
                "ratio",
                "p_value",
                "q_value",
                "tied",
                "overlap",
                "hidden_cause_ratio",
                "hidden_cause_ratio_low",
            ],
        }
    }

    /// Values in the order of the attributes' names.
    fn link<const N: usize>(self, from: usize, to: usize, values: [Attribute; N]) -> Link {
        debug_assert_eq!(N, self.link_attributes().len());
        Link { from, to, attributes: self.link_attributes().iter().copied().zip(values).collect() }
    }
}

/// A graph to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// Which graph it is.
    pub kind: Kind,
    /// Name of the graph: a sequence's id, or `population`.
    pub name: String,
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// Its edges.
    pub links: Vec<Link>,
}

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per graph and line.
    Json,
    /// One row per edge.
    Csv,
    /// Graphviz.
    Dot,
    /// The XML that most graph tools read.
    Graphml,
}

/// Writes drawings of one kind one after another.
pub fn write(
    kind: Kind,
    drawings: impl Iterator<Item = Drawing>,
    format: Format,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Json => json::write(drawings, out),
        Format::Csv => csv::write(kind, drawings, out),
        Format::Dot => dot::write(drawings, out),
        Format::Graphml => graphml::write(drawings, out),
    }
}

impl Drawing {
    /// The sample graph of one result: positions and the edges that were kept.
    pub fn sample(line: &ResultLine) -> Self {
        let nodes = line
            .events
            .iter()
            .enumerate()
            .map(|(position, name)| Node {
                label: format!("{position}: {name}"),
                attributes: vec![
                    ("position", Attribute::Count(position as u64)),
                    ("event", Attribute::Text(name.to_string())),
                ],
            })
            .collect();
        let links = line
            .edges()
            .map(|edge| {
                let values = [
                    Attribute::Count(u64::from(edge.lag.0)),
                    Attribute::Number(edge.strength),
                    Attribute::Number(edge.std_error),
                    Attribute::Count(u64::from(edge.particles)),
                    Attribute::Number(edge.log_ratio),
                    Attribute::Number(edge.probability),
                    Attribute::Number(edge.probability_replaced),
                    Attribute::Flag(edge.tied),
                    Attribute::Text(word(edge.question)),
                    Attribute::Text(edge.verdict.name().to_owned()),
                    Attribute::known(edge.overlap),
                    Attribute::Number(edge.hidden_cause_ratio),
                ];
                Kind::Sample.link(edge.cause.index(), edge.effect.index(), values)
            })
            .collect();
        Self { kind: Kind::Sample, name: line.id.clone(), nodes, links }
    }

    /// The summary graph of one result: types and the edges between them.
    pub fn summary(line: &ResultLine) -> Self {
        let mut types = Types::default();
        let links = line
            .summary
            .iter()
            .map(|edge| {
                let values = [
                    Attribute::Number(edge.strength),
                    Attribute::Number(edge.mean_strength.unwrap_or(edge.strength)),
                    Attribute::Count(edge.count as u64),
                    Attribute::Text(joined(edge.lags.iter())),
                ];
                Kind::Summary.link(types.index(&edge.cause), types.index(&edge.effect), values)
            })
            .collect();
        Self { kind: Kind::Summary, name: line.id.clone(), nodes: types.nodes, links }
    }

    /// A population graph: types and the pairs that the rule keeps.
    pub fn population(file: &Population) -> Self {
        let mut types = Types::default();
        let links = file
            .edges()
            .map(|edge| {
                let values = [
                    Attribute::Number(edge.score),
                    Attribute::Number(edge.unsigned_score),
                    Attribute::Count(edge.sequences),
                    Attribute::Count(edge.opportunities),
                    Attribute::Count(edge.kept_count),
                    Attribute::Number(edge.mean_strength),
                    Attribute::Number(edge.strength_spread),
                    Attribute::Number(edge.mean_log_ratio),
                    Attribute::Number(edge.log_ratio_spread),
                    Attribute::Text(joined(edge.lags.keys())),
                    Attribute::Text(word(edge.question)),
                    Attribute::Text(edge.verdict.name().to_owned()),
                    Attribute::Number(edge.ratio),
                    Attribute::known(edge.p_value),
                    Attribute::known(edge.q_value),
                    Attribute::Number(edge.tied),
                    Attribute::known(edge.overlap),
                    Attribute::Number(edge.hidden_cause_ratio),
                    Attribute::Number(edge.hidden_cause_ratio_low),
                ];
                Kind::Population.link(types.index(&edge.cause), types.index(&edge.effect), values)
            })
            .collect();
        Self { kind: Kind::Population, name: "population".to_owned(), nodes: types.nodes, links }
    }
}

fn joined<T: ToString>(items: impl Iterator<Item = T>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(" ")
}

/// Types as nodes, in order of appearance.
#[derive(Default)]
struct Types {
    indices: BTreeMap<EventName, usize>,
    nodes: Vec<Node>,
}

impl Types {
    fn index(&mut self, name: &EventName) -> usize {
        *self.indices.entry(name.clone()).or_insert_with(|| {
            let label = name.to_string();
            self.nodes.push(Node { attributes: vec![("event", Attribute::Text(label.clone()))], label });
            self.nodes.len() - 1
        })
    }
}
