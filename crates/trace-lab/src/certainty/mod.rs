//! Whether the population graph errs as rarely as it says.
//!
//! For each kind of log, with and without anything designed in it, models that fit and models that do not find the
//! population graph of logs that they have not seen; what is kept at a nominal false-discovery rate is compared with the
//! process's own truth. How it is done was fixed before: research/protocol.md, "Certainty".

mod fit;
mod page;
mod score;
mod truth;
mod world;

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use rayon::prelude::*;
use serde_json::json;
use trace_core::evidence::{PairLists, PairScope};
use trace_core::{DensityModel, Discovery, EventSequence, PopulationGraph, Proposal};

use self::fit::{Fitted, GATE, Trained};
use self::world::{LogKind, Truth, World};
use crate::lab::Report;
use crate::rows::{Row, Rows};
use crate::{Error, Size};

/// The largest lag that is tested.
const MEMORY: usize = 6;
/// The ratio that kept pairs exceed.
const LEAST_RATIO: f64 = 1.2;
/// Sequences that are run at a time.
const TOGETHER: usize = 64;
/// The size at which proposals are compared.
const COMPARED_AT: usize = 500;

/// What is asked for.
pub struct Scope<'s> {
    /// The folder of results.
    pub folder: PathBuf,
    /// How much models are trained on.
    pub size: Size,
    /// The seeds.
    pub seeds: Range<u64>,
    /// Numbers of sequences: some of 50, 500 and 5000.
    pub sizes: Vec<usize>,
    /// The cells that are asked for, all where there are none: words of their names joined by `/`.
    pub only: Vec<String>,
    /// Whether all sums of each pair are written too.
    pub dump: bool,
    /// Who listens.
    pub reporter: &'s dyn Report,
}

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    log: LogKind,
    fitted: Fitted,
    size: usize,
}

impl Cell {
    fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for log in LogKind::all() {
            for fitted in Fitted::ALL {
                cells.extend(SIZES.map(|(size, _)| Self { log, fitted, size }));
            }
        }
        cells
    }

    fn name(&self) -> String {
        format!("{}/{}/{}", self.log.name(), self.fitted.name(), self.size)
    }

    /// Whether one of these words or some words joined by `/` describe it.
    fn is_in(&self, names: &[String]) -> bool {
        let name = self.name();
        let known: Vec<&str> = name.split('/').collect();
        names.is_empty() || names.iter().any(|asked| asked.split('/').all(|word| known.contains(&word)))
    }
}

/// Sizes of logs, and the numbers of their first sequences.
const SIZES: [(usize, usize); 3] = [(50, 0), (500, 100), (5000, 1000)];

/// What came out.
#[derive(Debug)]
pub struct Certainty {
    /// The table for people.
    pub table: Vec<Vec<String>>,
    /// Files that were written.
    pub files: Vec<PathBuf>,
}

/// A name of a cell that is not there, and the words that are.
pub fn unknown_name(only: &[String]) -> Option<(String, Vec<String>)> {
    let cells = Cell::all();
    let missing = only.iter().find(|name| !cells.iter().any(|cell| cell.is_in(&[(*name).clone()])))?;
    let mut words: Vec<String> = Vec::new();
    for cell in &cells {
        words
            .extend(cell.name().split('/').map(str::to_owned).filter(|word| !words.contains(word)).collect::<Vec<_>>());
    }
    Some((missing.clone(), words))
}

impl Scope<'_> {
    /// Runs what is not finished, and writes tables and figures of all that is.
    pub fn run(&self) -> Result<Certainty, Error> {
        fs::create_dir_all(&self.folder).map_err(Error::io(&self.folder))?;
        self.check_record()?;
        let mut rows = Rows::open(&self.folder.join("certainty.rows.jsonl"))?;
        let mut cells = Cell::all();
        cells.retain(|cell| self.sizes.contains(&cell.size) && cell.is_in(&self.only));
        for seed in self.seeds.clone() {
            let (mut stage, mut model): (Option<Stage>, Option<(Fitted, Trained, f64)>) = (None, None);
            for cell in &cells {
                if rows.has(&cell.name(), seed) {
                    continue;
                }
                self.check_stop()?;
                if stage.as_ref().is_none_or(|stage| stage.log != cell.log) {
                    (stage, model) = (Some(Stage::new(cell.log, seed)?), None);
                }
                let Some(stage) = &stage else { continue };
                if model.as_ref().is_none_or(|(fitted, ..)| *fitted != cell.fitted) {
                    let trained = Trained::new(self, &stage.world, cell.log, cell.fitted, seed)?;
                    let excess = trained.excess(&stage.world)?;
                    model = Some((cell.fitted, trained, excess));
                }
                let Some((_, trained, excess)) = &model else { continue };
                self.reporter.say(&format!("{}, seed {seed}", cell.name()));
                let new = self.measure(*cell, seed, stage, trained.density(&stage.world), *excess)?;
                rows.add(&cell.name(), seed, new)?;
            }
        }
        page::write(&self.folder, &rows)
    }

    /// Runs one cell.
    fn measure(
        &self,
        cell: Cell,
        seed: u64,
        stage: &Stage,
        model: &dyn DensityModel,
        excess: f64,
    ) -> Result<Vec<Row>, Error> {
        let first = SIZES.iter().find(|(size, _)| *size == cell.size).map_or(0, |(_, first)| *first);
        let mut sequences = stage.world.sequences(first..first + cell.size);
        let compared = cell.fitted == Fitted::Network && cell.size == COMPARED_AT;
        let mut proposals = vec![None];
        if compared {
            proposals.extend([Some(Proposal::Uniform), Some(Proposal::Plausible)]);
        }
        let mut rows = Vec::new();
        for proposal in proposals {
            let start = Instant::now();
            let mut discovery = Discovery::new(model).memory(MEMORY).seed(seed);
            if let Some(proposal) = proposal {
                discovery = discovery.proposal(proposal);
            }
            sequences.retain(|sequence| sequence.events.len() >= 2);
            let graph = self.discover(discovery, model, &sequences)?;
            let name = match proposal {
                None => "default",
                Some(Proposal::Plausible) => "plausible",
                Some(_) => "uniform",
            };
            let keys = [
                ("log", cell.log.name()),
                ("model", cell.fitted.name().to_owned()),
                ("size", cell.size.to_string()),
                ("proposal", name.to_owned()),
            ];
            let row = Row::new(seed, &keys)
                .with("excess_loss", excess)
                .with("fits", f64::from(u8::from(excess <= GATE)))
                .with("seconds", start.elapsed().as_secs_f64());
            if self.dump {
                let name = format!("{}-{name}-s{seed}.jsonl", cell.name().replace('/', "-"));
                score::dump(&self.folder.join("dump").join(name), &row, &graph, &stage.truth)?;
            }
            rows.push(score::figures(row, &graph, &stage.truth));
        }
        Ok(rows)
    }

    /// The population graph of a log, with evidence, as `trace discover` finds it.
    fn discover(
        &self,
        discovery: Discovery<'_>,
        model: &dyn DensityModel,
        sequences: &[EventSequence],
    ) -> Result<PopulationGraph, Error> {
        let plan = discovery.plan()?;
        let scope = PairScope {
            types: model.vocabulary_size(),
            memory: plan.memory,
            first_cause: plan.first_cause().max(usize::from(!model.predicts_first())),
            end: None,
            knowledge: None,
            families: None,
        };
        let list = PairLists::count(sequences, scope, None);
        let discovery = discovery.evidence(&list);
        let mut graph = PopulationGraph::default();
        for sequences in sequences.chunks(TOGETHER) {
            self.check_stop()?;
            let found = sequences.par_iter().map(|sequence| discovery.run(sequence));
            for found in found.collect::<Result<Vec<_>, trace_core::Error>>()? {
                graph.add(&found.graph, None);
                graph.add_evidence(&list, found.evidence.as_ref());
            }
        }
        Ok(graph)
    }

    fn check_stop(&self) -> Result<(), Error> {
        if self.reporter.stop() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Writes down what is about to be run, or refuses to mix it with something else.
    fn check_record(&self) -> Result<(), Error> {
        let path = self.folder.join("certainty.json");
        let record = json!({
            "experiment": "certainty",
            "size": self.size.name(),
            "version": env!("CARGO_PKG_VERSION"),
            "development": self.seeds.start >= FIRST_OF_DEVELOPMENT,
        });
        if let Ok(text) = fs::read_to_string(&path)
            && serde_json::from_str::<serde_json::Value>(&text).ok().as_ref() != Some(&record)
        {
            return Err(Error::Mixed { path });
        }
        let text = serde_json::to_string_pretty(&record).map_err(|error| Error::Output(error.to_string()))?;
        fs::write(&path, text + "\n").map_err(Error::io(&path))
    }
}

/// Seeds from here on are not reported.
pub const FIRST_OF_DEVELOPMENT: u64 = 1000;

/// A process with its truth.
struct Stage {
    log: LogKind,
    world: World,
    truth: Truth,
}

impl Stage {
    fn new(log: LogKind, seed: u64) -> Result<Self, Error> {
        let world = World::new(log, seed)?;
        let truth = world.truth()?;
        Ok(Self { log, world, truth })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_asked_for_by_some_of_their_words() {
        let chosen = |only: &str| Cell::all().iter().filter(|cell| cell.is_in(&[only.to_owned()])).count();
        assert_eq!((chosen("hospital/network/500"), chosen("hospital-null/50"), chosen("scm")), (1, 4, 12));
        assert_eq!(unknown_name(&["scm".to_owned()]), None);
        let (missing, words) = unknown_name(&["scm/gru".to_owned()]).unwrap();
        assert!(missing == "scm/gru" && words.contains(&"order-2".to_owned()));
    }
}
