//! Two population graphs compared, as JSON and as CSV.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use trace_core::{Change, CompareRule, Comparison, Difference, EventName, PairComparison};

use crate::name::Name;
use crate::population::PopulationFile;
use crate::{Error, output};

/// The version of comparisons that this software writes.
pub const COMPARISON_SCHEMA: &str = "trace.comparison/1";

/// A comparison with what it is of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonFile {
    /// The version of this object.
    pub schema: &'static str,
    /// The first cohort.
    pub a: Cohort,
    /// The second cohort.
    pub b: Cohort,
    /// Whether the same model read both.
    pub same_model: bool,
    /// How differences were corrected for their number.
    pub correction: &'static str,
    /// Expected share of false findings, at most.
    pub level: f64,
    /// Log ratios that differ by no more than this count as equal.
    pub margin: f64,
    /// How many differences were tested.
    pub tested: usize,
    /// Every pair that is an edge of at least one of the graphs, changed ones first.
    pub pairs: Vec<ComparedPair>,
}

/// One of the two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cohort {
    /// Its file.
    pub file: String,
    /// How many sequences were merged.
    pub sequences: u64,
    /// Whether the file says how pairs are spread over sequences; without, intervals are wider than need be.
    pub by_sequence: bool,
}

impl Cohort {
    fn new(path: &Path, population: &PopulationFile) -> Self {
        Self {
            file: path.display().to_string(),
            sequences: population.sequences,
            by_sequence: population.edges.iter().all(|edge| edge.by_sequence.is_some()),
        }
    }
}

/// One type pair in both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedPair {
    /// The causing type.
    pub cause: Name,
    /// The caused type.
    pub effect: Name,
    /// What became of the edge from the first graph to the second.
    pub change: &'static str,
    /// Whether it is an edge of the first graph.
    pub kept_a: bool,
    /// Whether it is an edge of the second.
    pub kept_b: bool,
    /// Opportunities in the first.
    pub opportunities_a: u64,
    /// Opportunities in the second.
    pub opportunities_b: u64,
    /// Mean signed log ratio over opportunities; null where one graph has too few.
    pub log_ratio: Option<ComparedValue>,
    /// Share of opportunities that were kept; null likewise.
    pub kept_share: Option<ComparedValue>,
    /// Edges a sequence; null where there are too few edges.
    pub edges_per_sequence: Option<ComparedValue>,
    /// Opportunities a sequence: how often the effect follows the cause; null where a graph has fewer than two sequences.
    pub opportunities_per_sequence: Option<ComparedValue>,
}

/// One quantity in both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ComparedValue {
    /// In the first.
    pub a: f64,
    /// In the second.
    pub b: f64,
    /// `b − a`.
    pub difference: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Probability of a difference this large by chance; of log ratios and edges, or of as large a difference of
    /// opportunities in the same direction, whichever is larger.
    pub p: f64,
    /// The same corrected for the number of differences tested.
    pub q: f64,
}

impl ComparedValue {
    fn new(value: &Difference) -> Self {
        let Difference { a, b, low, high, p, q } = *value;
        Self { a, b, difference: value.difference(), low, high, p, q }
    }
}

impl ComparedPair {
    fn new(pair: &PairComparison<EventName>) -> Self {
        Self {
            cause: Name(pair.types.0.clone()),
            effect: Name(pair.types.1.clone()),
            change: change_word(pair.change),
            kept_a: pair.kept.0,
            kept_b: pair.kept.1,
            opportunities_a: pair.opportunities.0,
            opportunities_b: pair.opportunities.1,
            log_ratio: pair.log_ratio.as_ref().map(ComparedValue::new),
            kept_share: pair.kept_share.as_ref().map(ComparedValue::new),
            edges_per_sequence: pair.edges.as_ref().map(ComparedValue::new),
            opportunities_per_sequence: pair.follows.as_ref().map(ComparedValue::new),
        }
    }
}

/// What a change is called in files.
pub const fn change_word(change: Change) -> &'static str {
    match change {
        Change::Appears => "appears",
        Change::Vanishes => "vanishes",
        Change::Strengthens => "strengthens",
        Change::Weakens => "weakens",
        Change::MoreOften => "more often",
        Change::LessOften => "less often",
        Change::Same => "same",
        Change::Unknown => "unknown",
    }
}

impl ComparisonFile {
    /// Compares two population files; `rule` says by what.
    pub fn new(a: (&Path, &PopulationFile), b: (&Path, &PopulationFile), rule: &CompareRule) -> Self {
        let comparison = Comparison::new(&a.1.graph(), &b.1.graph(), rule);
        Self {
            schema: COMPARISON_SCHEMA,
            a: Cohort::new(a.0, a.1),
            b: Cohort::new(b.0, b.1),
            same_model: a.1.model == b.1.model,
            correction: "benjamini-hochberg",
            level: rule.level,
            margin: rule.margin,
            tested: comparison.log_ratios + comparison.frequencies,
            pairs: comparison.pairs.iter().map(ComparedPair::new).collect(),
        }
    }

    /// Writes all pairs as CSV, all at once.
    pub fn write_csv(&self, path: &Path) -> Result<(), Error> {
        output::write_whole(path, |out| self.rows(out))
    }

    fn rows(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        let mut header: Vec<String> =
            ["cause", "effect", "change", "kept_a", "kept_b", "opportunities_a", "opportunities_b"]
                .map(str::to_owned)
                .to_vec();
        for quantity in ["log_ratio", "kept_share", "edges_per_sequence", "opportunities_per_sequence"] {
            header.extend(["a", "b", "difference", "low", "high", "p", "q"].map(|part| format!("{quantity}_{part}")));
        }
        writer.write_record(&header)?;
        for pair in &self.pairs {
            let mut row = vec![
                pair.cause.0.to_string(),
                pair.effect.0.to_string(),
                pair.change.to_owned(),
                pair.kept_a.to_string(),
                pair.kept_b.to_string(),
                pair.opportunities_a.to_string(),
                pair.opportunities_b.to_string(),
            ];
            let frequencies = [pair.edges_per_sequence, pair.opportunities_per_sequence];
            for value in [pair.log_ratio, pair.kept_share].into_iter().chain(frequencies) {
                let cells = value.map(|v| [v.a, v.b, v.difference, v.low, v.high, v.p, v.q].map(|x| x.to_string()));
                row.extend(cells.unwrap_or_default());
            }
            writer.write_record(&row)?;
        }
        writer.flush()
    }
}
