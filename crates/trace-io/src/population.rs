//! Population files: one JSON object with every type pair that had an opportunity.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use trace_core::numerics::Moments;
use trace_core::{EventName, Lag, PairRecord, PopulationGraph, PopulationRule, SequenceSums};

use crate::name::Name;
use crate::result::{ResultLine, ResultModel, ResultSettings};
use crate::{Error, output};

/// The version of population files that this software writes.
pub const POPULATION_SCHEMA: &str = "trace.population/1";

/// A population graph with what made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PopulationFile {
    /// The version of this file.
    pub schema: String,
    /// How many sequences were merged.
    pub sequences: u64,
    /// What made them.
    pub settings: ResultSettings,
    /// The model that made them.
    pub model: ResultModel,
    /// Every type pair that had an opportunity, best score first.
    pub edges: Vec<PopulationEdge>,
}

/// One type pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PopulationEdge {
    /// The causing type.
    pub cause: Name,
    /// The caused type.
    pub effect: Name,
    /// Sequences with an opportunity.
    pub sequences: u64,
    /// Times the cause stood at a tested lag before the effect.
    pub opportunities: u64,
    /// How many of them were kept as edges.
    pub kept_count: u64,
    /// Mean strength over opportunities.
    pub mean_strength: f64,
    /// Its spread.
    pub strength_spread: f64,
    /// Mean signed log ratio over opportunities.
    pub mean_log_ratio: f64,
    /// Its spread.
    pub log_ratio_spread: f64,
    /// Signed lower-bound score: ranks and decides.
    pub score: f64,
    /// The same bound on the strength.
    pub unsigned_score: f64,
    /// Whether the pair is an edge of the population graph.
    pub kept: bool,
    /// How many kept edges have each lag.
    pub lags: BTreeMap<u32, u64>,
    /// How all that is spread over sequences; absent in files of earlier versions and in what was merged from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_sequence: Option<SequenceProducts>,
}

/// Sums over sequences of products of what each holds of one type pair: `n` opportunities, of which `k` were kept, with
/// log ratios that sum to `S`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SequenceProducts {
    /// `Σ n²`
    pub opportunities_squared: f64,
    /// `Σ S²`
    pub log_ratio_squared: f64,
    /// `Σ S n`
    pub log_ratio_opportunities: f64,
    /// `Σ k²`
    pub kept_squared: f64,
    /// `Σ k n`
    pub kept_opportunities: f64,
}

impl SequenceProducts {
    /// The sums as a file holds them.
    pub const fn new(sums: &SequenceSums) -> Self {
        Self {
            opportunities_squared: sums.opportunities_squared,
            log_ratio_squared: sums.log_ratio_squared,
            log_ratio_opportunities: sums.log_ratio_opportunities,
            kept_squared: sums.kept_squared,
            kept_opportunities: sums.kept_opportunities,
        }
    }

    /// The sums over that many sequences.
    pub const fn sums(&self, sequences: u64) -> SequenceSums {
        SequenceSums {
            sequences,
            opportunities_squared: self.opportunities_squared,
            log_ratio_squared: self.log_ratio_squared,
            log_ratio_opportunities: self.log_ratio_opportunities,
            kept_squared: self.kept_squared,
            kept_opportunities: self.kept_opportunities,
        }
    }

    fn is_possible(&self) -> bool {
        let squares = [self.opportunities_squared, self.log_ratio_squared, self.kept_squared, self.kept_opportunities];
        squares.iter().all(|sum| sum.is_finite() && *sum >= 0.0) && self.log_ratio_opportunities.is_finite()
    }
}

impl PopulationFile {
    /// The file of a graph over names.
    pub fn new(graph: &PopulationGraph<EventName>, settings: &ResultSettings, model: &ResultModel) -> Self {
        let rule = PopulationRule::default();
        let mut edges: Vec<PopulationEdge> = graph
            .pairs
            .iter()
            .map(|((cause, effect), record)| PopulationEdge {
                cause: Name(cause.clone()),
                effect: Name(effect.clone()),
                sequences: record.sequences,
                opportunities: record.opportunities(),
                kept_count: record.kept_count,
                mean_strength: record.strength.mean,
                strength_spread: record.strength.spread(),
                mean_log_ratio: record.log_ratio.mean,
                log_ratio_spread: record.log_ratio.spread(),
                score: rule.score(record),
                unsigned_score: rule.unsigned_score(record),
                kept: rule.keeps(record),
                lags: record.lags.iter().map(|(lag, count)| (lag.0, *count)).collect(),
                by_sequence: record.sequence_sums().map(SequenceProducts::new),
            })
            .collect();
        edges.sort_by(|a, b| b.score.total_cmp(&a.score)); // stable: ties stay in order of names
        Self {
            schema: POPULATION_SCHEMA.to_owned(),
            sequences: graph.sequences,
            settings: settings.clone(),
            model: model.clone(),
            edges,
        }
    }

    /// The graph that the file holds.
    pub fn graph(&self) -> PopulationGraph<EventName> {
        let mut graph = PopulationGraph { sequences: self.sequences, pairs: BTreeMap::new() };
        for edge in &self.edges {
            let record = PairRecord {
                sequences: edge.sequences,
                kept_count: edge.kept_count,
                strength: Moments::from_spread(edge.opportunities, edge.mean_strength, edge.strength_spread),
                log_ratio: Moments::from_spread(edge.opportunities, edge.mean_log_ratio, edge.log_ratio_spread),
                lags: edge.lags.iter().map(|(lag, count)| (Lag(*lag), *count)).collect(),
                by_sequence: edge.by_sequence.map(|sums| sums.sums(edge.sequences)).unwrap_or_default(),
            };
            graph.pairs.insert((edge.cause.0.clone(), edge.effect.0.clone()), record);
        }
        graph
    }

    /// Reads a population file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read(path).map_err(Error::io(path))?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &[u8]) -> Result<Self, Error> {
        let file: Self = serde_json::from_slice(text).map_err(|error| {
            let cut = if error.is_eof() { "; the file is cut off" } else { "" };
            Error::file(path, format!("expected a population graph as JSON: {error}{cut}"))
        })?;
        if file.schema != POPULATION_SCHEMA {
            return Err(Error::file(path, format!("expected schema {POPULATION_SCHEMA:?}, found {:?}", file.schema)));
        }
        for edge in &file.edges {
            let numbers = [edge.mean_strength, edge.strength_spread, edge.mean_log_ratio, edge.log_ratio_spread];
            if edge.opportunities == 0 || numbers.iter().any(|number| !number.is_finite()) {
                return Err(Error::file(path, format!("edge {} → {} has no opportunity", edge.cause.0, edge.effect.0)));
            }
            if edge.by_sequence.is_some_and(|sums| !sums.is_possible()) {
                let reason = format!("by_sequence of {} → {} holds impossible sums", edge.cause.0, edge.effect.0);
                return Err(Error::file(path, reason));
            }
        }
        Ok(file)
    }

    /// Writes the file, all at once.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        output::write_json(path, self)
    }
}

/// Whether a file is a population graph rather than results, by its schema.
pub fn is_population(path: &Path) -> Result<bool, Error> {
    use std::io::Read;
    // What is looked at in a pipe is gone from it; pipes are taken to hold results.
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        return Ok(false);
    }
    let file = std::fs::File::open(path).map_err(Error::io(path))?;
    let mut start = Vec::new();
    file.take(4096).read_to_end(&mut start).map_err(Error::io(path))?;
    let text = String::from_utf8_lossy(&start);
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).take(200).collect();
    Ok(compact.contains(r#""schema":"trace.population/"#))
}

/// Adds one result, which must hold all its tested pairs, to a graph; `type_at` says which type stands at a position.
pub fn add_result<K: Ord + Clone>(graph: &mut PopulationGraph<K>, line: &ResultLine, type_at: impl Fn(usize) -> K) {
    graph.add_sequence(line.edges.iter().map(|edge| {
        let types = (type_at(edge.cause as usize), type_at(edge.effect as usize));
        (types, edge.strength, edge.log_ratio, Lag(edge.lag), edge.is_kept())
    }));
}
