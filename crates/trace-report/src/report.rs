//! The report: results in, one page out.

use std::io::{self, Write};

use serde::Serialize;
use trace_io::population::Population;
use trace_io::result::{ResultLine, ResultModel, RunSettings};

use crate::html;
use crate::names::Names;
use crate::population::{Merged, PagePopulation};
use crate::sequence::PageSequence;

/// Sequences that a page holds when nobody says how many.
pub const DEFAULT_SEQUENCES: usize = 200;
/// Pairs that these may have together: about 40 bytes of page each.
const DEFAULT_PAIRS: usize = 400_000;

/// What to put into a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportOptions {
    /// The headline.
    pub title: Option<String>,
    /// Sequences to hold at most, in the order they come [default: 200, fewer where they have very many pairs].
    pub max_sequences: Option<usize>,
    /// Only these sequences; the population is that of all.
    pub cases: Vec<String>,
}

/// A page in the making.
#[derive(Debug, Default)]
pub struct Report {
    options: ReportOptions,
    names: Names,
    settings: Vec<RunSettings>,
    models: Vec<ResultModel>,
    sequences: Vec<PageSequence>,
    pairs: usize,
    total: Total,
    /// Sum of the Monte-Carlo standard errors of all edges.
    errors: f64,
    merged: Merged,
    population: Option<PagePopulation>,
}

/// Counts over all results, in the page or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Total {
    /// Results.
    pub sequences: usize,
    /// Their events.
    pub events: usize,
    /// Their edges.
    pub edges: usize,
    /// Results that are only counted and merged, because the page would grow too large.
    pub left_out: usize,
}

/// What the page's script reads.
#[derive(Serialize)]
struct PageData<'d> {
    title: &'d str,
    software: &'static str,
    names: &'d [String],
    settings: &'d [RunSettings],
    models: &'d [ResultModel],
    total: Total,
    /// Mean Monte-Carlo standard error of the edges of all results; nothing where there are none.
    monte_carlo: Option<f64>,
    sequences: &'d [PageSequence],
    population: Option<&'d PagePopulation>,
}

impl Report {
    /// An empty report.
    pub fn new(options: ReportOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Adds a result.
    pub fn add(&mut self, line: &ResultLine) {
        self.total.sequences += 1;
        self.total.events += line.events.len();
        for edge in line.edges() {
            self.total.edges += 1;
            self.errors += edge.std_error;
        }
        if self.population.is_none() {
            self.merged.add(line);
        }
        if self.holds(line) {
            let settings = index_of(&mut self.settings, &line.settings);
            let model = index_of(&mut self.models, &line.model);
            self.pairs += line.pairs.len();
            self.sequences.push(PageSequence::new(line, settings, model, &mut self.names));
        } else {
            self.total.left_out += 1;
        }
    }

    /// Whether a result gets a place in the page.
    fn holds(&self, line: &ResultLine) -> bool {
        if !self.options.cases.is_empty() {
            return self.options.cases.contains(&line.id);
        }
        match self.options.max_sequences {
            Some(most) => self.sequences.len() < most,
            None => {
                let fits = self.pairs + line.pairs.len() <= DEFAULT_PAIRS || self.sequences.is_empty();
                self.sequences.len() < DEFAULT_SEQUENCES && fits
            }
        }
    }

    /// Takes the population graph from a file instead of merging results; to be called before any is added.
    pub fn population(&mut self, file: &Population) {
        self.population = Some(PagePopulation::from_file(file, &mut self.names));
        index_of(&mut self.settings, &file.settings);
        index_of(&mut self.models, &file.model);
    }

    /// The counts so far.
    pub const fn total(&self) -> Total {
        self.total
    }

    /// Writes the page.
    pub fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let Self { options, mut names, settings, models, sequences, total, errors, merged, population, .. } = self;
        let population = population.or_else(|| merged.finish(&mut names));
        let title = options.title.as_deref().unwrap_or("What caused what");
        let data = PageData {
            title,
            software: concat!("trace ", env!("CARGO_PKG_VERSION")),
            names: names.texts(),
            settings: &settings,
            models: &models,
            total,
            monte_carlo: (total.edges > 0).then(|| errors / total.edges as f64),
            sequences: &sequences,
            population: population.as_ref(),
        };
        html::write(title, &serde_json::to_string(&data)?, out)
    }
}

/// The place of a value among those seen, which it joins if it is new.
fn index_of<T: PartialEq + Clone>(seen: &mut Vec<T>, value: &T) -> usize {
    seen.iter().position(|known| known == value).unwrap_or_else(|| {
        seen.push(value.clone());
        seen.len() - 1
    })
}
