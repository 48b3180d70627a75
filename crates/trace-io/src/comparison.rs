//! Two population graphs compared, as JSON and as CSV.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use trace_core::{CompareRule, Comparison, EventName, PairComparison};

use crate::population::Population;
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
    pub pairs: Vec<PairComparison<EventName>>,
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
    fn new(path: &Path, population: &Population) -> Self {
        Self {
            file: path.display().to_string(),
            sequences: population.sequences,
            by_sequence: population.pairs.iter().all(|pair| pair.by_sequence.is_some()),
        }
    }
}

impl ComparisonFile {
    /// Compares two population files; `rule` says by what.
    pub fn new(a: (&Path, &Population), b: (&Path, &Population), rule: &CompareRule) -> Self {
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
            pairs: comparison.pairs,
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
                pair.cause.to_string(),
                pair.effect.to_string(),
                pair.change.to_string(),
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
