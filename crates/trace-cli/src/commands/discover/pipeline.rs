//! Many sequences at once, written in order.
//!
//! Workers take sequences in log order, so that what is unfinished is never more than one sequence a worker; each
//! result is written as soon as all before it are. When a stop is asked for, no new sequence is begun and those under
//! way are finished.
//!
//! Workers are threads of their own and leave the computing to rayon's pool. As jobs of that pool, one could be taken
//! up by a thread that waits for part of another's sequence, which would then wait for the whole log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use trace_core::{Discovered, Knowledge, PopulationGraph, Vocabulary};
use trace_io::log::EventLog;
use trace_io::output::PartialFile;
use trace_io::result::{ResultLine, ResultModel, ResultOptions, ResultSettings};
use trace_lab::methods::Method;

use super::checkpoint;
use crate::interrupt;
use crate::progress::Progress;

/// How often the population so far is saved, for a run that is killed: soon at first, less often where saving takes
/// long.
const FIRST_CHECKPOINT: Duration = Duration::from_secs(1);
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);
const CHECKPOINT_SHARE: u32 = 20;
/// How many results may wait for one that is slow, before others wait with them.
const MOST_WAITING: usize = 4096;

/// What is to be done.
pub struct Job<'j> {
    pub method: Box<dyn Method + 'j>,
    pub knowledge: Option<&'j Knowledge>,
    pub log: &'j EventLog,
    pub settings: ResultSettings,
    pub model: ResultModel,
    pub vocabulary: &'j Vocabulary,
    pub options: ResultOptions,
    pub population: Option<&'j Path>,
}

impl Job<'_> {
    fn run(&self, index: usize) -> anyhow::Result<(String, Discovered)> {
        let sequence = &self.log.sequences[index];
        let found = self.method.run(sequence).with_context(|| {
            format!("{}: line {}: sequence {:?}", self.log.name, self.log.lines[index], sequence.id)
        })?;
        let mut line =
            ResultLine::new(sequence, &found.graph, &self.settings, &self.model, self.vocabulary, self.options);
        line.skipped.clone_from(&self.log.skipped[index]);
        Ok((serde_json::to_string(&line)?, found))
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
    next_checkpoint: Instant,
    pause: Duration,
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
        if Instant::now() >= self.next_checkpoint {
            let start = Instant::now();
            checkpoint::write(job, &self.state)?;
            self.pause = (self.pause * 2).min(CHECKPOINT_EVERY).max(start.elapsed() * CHECKPOINT_SHARE);
            self.next_checkpoint = Instant::now() + self.pause;
        }
        Ok(())
    }
}

/// What the workers share.
struct Shared<'j> {
    job: &'j Job<'j>,
    next: AtomicUsize,
    stop: AtomicBool,
    failure: Mutex<Option<anyhow::Error>>,
    writer: Mutex<Writer>,
    written: Condvar,
}

impl Shared<'_> {
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        interrupt::requested() || self.stop.load(Ordering::Relaxed)
    }

    /// Takes sequences until none is left or a stop is asked for.
    fn work(&self, progress: &Progress) -> anyhow::Result<()> {
        while !self.stopped() {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.job.log.sequences.len() {
                break;
            }
            let (line, found) = self.job.run(index)?;
            let mut writer = self.writer();
            writer.accept(self.job, index, line, found)?;
            self.written.notify_all();
            // The slow one is under way in another worker, so that this wait ends.
            while writer.waiting.len() > MOST_WAITING && !self.stopped() {
                let wait = self.written.wait_timeout(writer, Duration::from_millis(100));
                writer = wait.unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(writer);
            progress.add(1);
        }
        Ok(())
    }
}

/// Runs all sequences from where `state` stands.
pub fn run(job: &Job<'_>, file: PartialFile, state: State, progress: &Progress) -> Outcome {
    let shared = Shared {
        job,
        next: AtomicUsize::new(state.done),
        stop: AtomicBool::new(false),
        failure: Mutex::new(None),
        writer: Mutex::new(Writer {
            file,
            state,
            waiting: BTreeMap::new(),
            next_checkpoint: Instant::now() + FIRST_CHECKPOINT,
            pause: FIRST_CHECKPOINT,
        }),
        written: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 0..rayon::current_num_threads() {
            scope.spawn(|| {
                if let Err(error) = shared.work(progress) {
                    shared.stop.store(true, Ordering::Relaxed);
                    shared.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            });
        }
    });
    let Writer { file, state, .. } = shared.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
    let ended = match shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Ended::Failed(error),
        None if state.done == job.log.sequences.len() => Ended::Complete,
        None => Ended::Interrupted,
    };
    Outcome { state, file, ended }
}
