//! Population files: one JSON object with every type pair that had an opportunity.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use trace_core::{EventName, PopulationGraph, PopulationPair, PopulationRule};

use crate::result::{ResultLine, ResultModel, RunSettings};
use crate::{Error, output};

/// The version of population files that this software writes.
pub const POPULATION_SCHEMA: &str = "trace.population/1";

/// A population graph with what made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// The version of this file.
    pub schema: String,
    /// How many sequences were merged.
    pub sequences: u64,
    /// What made them.
    pub settings: RunSettings,
    /// The model that made them.
    pub model: ResultModel,
    /// Every type pair that had an opportunity, best score first.
    #[serde(rename = "edges")]
    pub pairs: Vec<PopulationPair<EventName>>,
}

impl Population {
    /// A graph over names, decided by the default rule.
    pub fn new(graph: &PopulationGraph<EventName>, settings: &RunSettings, model: &ResultModel) -> Self {
        Self {
            schema: POPULATION_SCHEMA.to_owned(),
            sequences: graph.sequences,
            settings: settings.clone(),
            model: model.clone(),
            pairs: graph.decided(&PopulationRule::default()),
        }
    }

    /// The graph.
    pub fn graph(&self) -> PopulationGraph<EventName> {
        let record = |pair: &PopulationPair<EventName>| ((pair.cause.clone(), pair.effect.clone()), pair.record());
        PopulationGraph { sequences: self.sequences, pairs: self.pairs.iter().map(record).collect() }
    }

    /// The pairs that are edges, best score first.
    pub fn edges(&self) -> impl Iterator<Item = &PopulationPair<EventName>> {
        self.pairs.iter().filter(|pair| pair.kept)
    }

    /// The strongest edges, best score first, as a table for people.
    pub fn strongest(&self, most: usize) -> Strongest<'_> {
        Strongest { pairs: self.edges().take(most).collect() }
    }

    /// Reads a population file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read(path).map_err(Error::io(path))?;
        let population: Self = serde_json::from_slice(&text).map_err(|error| {
            let cut = if error.is_eof() { "; the file is cut off" } else { "" };
            Error::file(path, format!("expected a population graph as JSON: {error}{cut}"))
        })?;
        let Self { schema, pairs, .. } = &population;
        if schema != POPULATION_SCHEMA {
            return Err(Error::file(path, format!("expected schema {POPULATION_SCHEMA:?}, found {schema:?}")));
        }
        if let Some(pair) = pairs.iter().find(|pair| !pair.is_possible()) {
            let reason = format!("edge {} → {} has no opportunity, or impossible sums", pair.cause, pair.effect);
            return Err(Error::file(path, reason));
        }
        Ok(population)
    }

    /// Writes the file, all at once.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        output::write_json(path, self)
    }
}

/// Edges of a population, one per line.
#[derive(Clone, Debug)]
pub struct Strongest<'p> {
    /// The edges.
    pub pairs: Vec<&'p PopulationPair<EventName>>,
}

impl fmt::Display for Strongest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pair in &self.pairs {
            let PopulationPair { cause, effect, score, mean_log_ratio, sequences, .. } = pair;
            writeln!(
                f,
                "{score:6.2}  {cause} → {effect}  ({:.1} times as likely, {sequences} sequences)",
                mean_log_ratio.exp()
            )?;
        }
        Ok(())
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
    graph.add_sequence(line.pairs.iter().map(|pair| {
        let types = (type_at(pair.cause.index()), type_at(pair.effect.index()));
        (types, pair.strength, pair.log_ratio, pair.lag, pair.kept)
    }));
}
