//! Many sequences at once, written in order.
//!
//! Workers take sequences in log order, so that what is unfinished is never more than one sequence a worker; each
//! result is written as soon as all before it are. When a stop is asked for, no new sequence is begun and those under
//! way are finished.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use trace_core::{Discovered, Discovery, EventSequence, PopulationGraph, SampleGraph, Vocabulary};
use trace_io::output::PartialFile;
use trace_io::result::{ResultLine, ResultModel, ResultOptions, ResultSettings};

use super::checkpoint;
use crate::interrupt;
use crate::progress::Progress;

/// How often the population so far is saved, for a run that is killed.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

/// What is to be done.
pub struct Job<'j> {
    pub discovery: Discovery<'j>,
    pub sequences: &'j [EventSequence],
    pub settings: ResultSettings,
    pub model: ResultModel,
    pub vocabulary: &'j Vocabulary,
    pub options: ResultOptions,
    pub population: Option<&'j Path>,
}

impl Job<'_> {
    fn line(&self, sequence: &EventSequence, graph: &SampleGraph) -> serde_json::Result<String> {
        let line = ResultLine::new(sequence, graph, &self.settings, &self.model, self.vocabulary, self.options);
        serde_json::to_string(&line)
    }
}

/// What has been done.
#[derive(Default)]
pub struct State {
    /// Sequences whose results are written.
    pub done: usize,
    pub edges: usize,
    pub branch_positions: u64,
    /// All pairs of those sequences, if a population graph was asked for.
    pub population: PopulationGraph,
}

/// How a run ended.
pub enum Ended {
    Complete,
    Interrupted,
    Failed(anyhow::Error),
}

/// The end of a run.
pub struct Outcome {
    pub state: State,
    pub file: PartialFile,
    pub ended: Ended,
}

/// Results in order: those that came early wait here.
struct Writer {
    file: PartialFile,
    state: State,
    waiting: BTreeMap<usize, (String, Discovered)>,
    saved: Instant,
}

impl Writer {
    fn accept(&mut self, job: &Job<'_>, index: usize, line: String, found: Discovered) -> anyhow::Result<()> {
        self.waiting.insert(index, (line, found));
        while let Some((line, found)) = self.waiting.remove(&self.state.done) {
            self.file.write_line(&line)?;
            self.state.done += 1;
            self.state.edges += found.graph.edges().count();
            self.state.branch_positions += found.branch_positions;
            if job.population.is_some() {
                self.state.population.add(&found.graph);
            }
        }
        if job.population.is_some() && self.saved.elapsed() >= CHECKPOINT_EVERY {
            checkpoint::write(job.population, &self.state)?;
            self.saved = Instant::now();
        }
        Ok(())
    }
}

/// Runs all sequences from where `state` stands.
pub fn run(job: &Job<'_>, file: PartialFile, state: State, progress: &Progress) -> Outcome {
    let next = AtomicUsize::new(state.done);
    let failed = AtomicBool::new(false);
    let failure: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let writer = Mutex::new(Writer { file, state, waiting: BTreeMap::new(), saved: Instant::now() });
    let work = || -> anyhow::Result<()> {
        while !interrupt::requested() && !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(sequence) = job.sequences.get(index) else { break };
            let found = job.discovery.run(sequence)?;
            let line = job.line(sequence, &found.graph)?;
            writer.lock().unwrap_or_else(PoisonError::into_inner).accept(job, index, line, found)?;
            progress.add(1);
        }
        Ok(())
    };
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads() {
            scope.spawn(|_| {
                if let Err(error) = work() {
                    failed.store(true, Ordering::Relaxed);
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            });
        }
    });
    let Writer { file, state, .. } = writer.into_inner().unwrap_or_else(PoisonError::into_inner);
    let ended = match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Ended::Failed(error),
        None if state.done == job.sequences.len() => Ended::Complete,
        None => Ended::Interrupted,
    };
    Outcome { state, file, ended }
}
