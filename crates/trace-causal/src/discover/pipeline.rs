//! Many sequences at once, kept in order.
//!
//! Workers take sequences in log order, so that what is unfinished is never more than one sequence per worker; each
//! result is kept as soon as all before it are. When a stop is asked for, no new sequence is begun and those under way
//! are finished.
//!
//! Workers are threads of their own and leave the computing to rayon's pool. As jobs of that pool, one could be taken
//! up by a thread that waits for part of another's sequence, which would then wait for the whole log.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trace_core::evidence::{EvidenceRule, PairLists};
use trace_core::{Discovered, Discovery, EventId, EventName, Families, PopulationGraph, Vocabulary};
use trace_io::log::EventLog;
use trace_io::output::PartialFile;
use trace_io::result::{ResultLine, ResultModel, ResultOptions, RunSettings};

use super::checkpoint;
use crate::progress::{Control, Task, Update};
use crate::{Error, Model};

/// How often the population so far is saved, for a run that is killed: soon at first, less often where saving takes
/// long.
const FIRST_CHECKPOINT: Duration = Duration::from_secs(1);
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);
const CHECKPOINT_SHARE: u32 = 20;
/// How many results may wait for one that is slow, before others wait with them.
const MOST_WAITING: usize = 4096;

/// What is to be done.
pub(super) struct Job<'j> {
    pub(super) discovery: Discovery<'j>,
    pub(super) log: &'j EventLog,
    pub(super) settings: RunSettings,
    pub(super) model: ResultModel,
    pub(super) vocabulary: &'j Vocabulary,
    pub(super) options: ResultOptions,
    /// The file of the population graph.
    pub(super) population: Option<&'j Path>,
    /// Whether pairs are merged at all.
    pub(super) merges: bool,
    /// The pairs that evidence is gathered for, where it is.
    pub(super) evidence: Option<&'j PairLists>,
    /// What decides in the population.
    pub(super) rule: EvidenceRule,
    /// The model, which may have another half for each sequence.
    pub(super) halves: &'j Model,
}

impl Job<'_> {
    /// The end of a case, where it is an effect.
    pub(super) fn end(&self) -> Option<EventId> {
        self.halves.density().end().filter(|_| self.settings.plan.end)
    }

    /// Which event types are outcomes of the same step, where that is asked about.
    pub(super) fn families(&self) -> Option<&Families> {
        self.discovery.asked_families()
    }

    fn run(&self, index: usize) -> Result<(ResultLine, Discovered), Error> {
        let sequence = &self.log.sequences[index];
        let mut discovery = self.discovery.with_model(self.halves.density_for(sequence));
        // What a model was trained on fits it better than anything else does.
        if let Some(list) = self.evidence.filter(|_| self.halves.trained_on(sequence) != Some(true)) {
            discovery = discovery.evidence(list);
        }
        let found = discovery.run(sequence).map_err(|error| Error::Sequence {
            log: self.log.name.clone(),
            line: self.log.lines[index],
            id: sequence.id.clone(),
            error,
        })?;
        let mut line =
            ResultLine::new(sequence, &found.graph, &self.settings, &self.model, self.vocabulary, self.options);
        line.skipped.clone_from(&self.log.skipped[index]);
        line.steps = self.families().map(|families| {
            let step = |event: &EventId| step_name(families, self.vocabulary, *event);
            found.graph.events().iter().map(step).collect()
        });
        Ok((line, found))
    }
}

/// What the step of a type is called; the end of a case is a step of its own.
pub(super) fn step_name(families: &Families, vocabulary: &Vocabulary, event: EventId) -> EventName {
    if event.index() < families.len() {
        families.step_name(families.step(event)).into()
    } else {
        vocabulary.name(event)
    }
}

/// What has been done.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Sequences whose results are kept.
    pub(super) done: usize,
    pub(super) edges: usize,
    pub(super) branch_positions: u64,
    /// All pairs of those sequences, if they are merged.
    pub(super) population: PopulationGraph,
}

/// Where results go.
#[derive(Debug)]
pub(super) enum Sink {
    /// A list.
    Memory(Vec<ResultLine>),
    /// A file that grows, and the lock of its population's checkpoint.
    File(PartialFile, Option<File>),
}

/// How a run ended.
pub(super) enum Ended {
    Complete,
    Cancelled,
    Failed(Error),
}

/// The end of a run.
pub(super) struct Outcome {
    pub(super) state: State,
    pub(super) sink: Sink,
    pub(super) ended: Ended,
}

/// Results in order: those that came early wait here.
struct Writer {
    sink: Sink,
    state: State,
    waiting: BTreeMap<usize, (Line, Discovered)>,
    next_checkpoint: Instant,
    pause: Duration,
}

/// A result as its sink takes it.
enum Line {
    Value(Box<ResultLine>),
    Text(String),
}

impl Writer {
    fn accept(&mut self, job: &Job<'_>, index: usize, line: Line, found: Discovered) -> Result<(), Error> {
        self.waiting.insert(index, (line, found));
        while let Some((line, found)) = self.waiting.remove(&self.state.done) {
            match (&mut self.sink, line) {
                (Sink::File(file, _), Line::Text(text)) => file.write_line(&text)?,
                (Sink::Memory(lines), Line::Value(line)) => lines.push(*line),
                // Lines are made for the sink.
                (Sink::File(..), Line::Value(_)) | (Sink::Memory(_), Line::Text(_)) => {}
            }
            self.state.done += 1;
            self.state.edges += found.graph.edges().count();
            self.state.branch_positions += found.branch_positions;
            if job.merges {
                self.state.population.add(&found.graph, job.families());
            }
            if let Some(list) = job.evidence {
                self.state.population.add_evidence(list, found.evidence.as_ref());
            }
        }
        if matches!(self.sink, Sink::File(..)) && Instant::now() >= self.next_checkpoint {
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
    control: &'j Control<'j>,
    to_text: bool,
    next: AtomicUsize,
    stop: AtomicBool,
    failure: Mutex<Option<Error>>,
    writer: Mutex<Writer>,
    written: Condvar,
}

impl Shared<'_> {
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        self.control.is_cancelled() || self.stop.load(Ordering::Relaxed)
    }

    /// Takes sequences until none is left or a stop is asked for.
    fn work(&self) -> Result<(), Error> {
        while !self.stopped() {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.job.log.sequences.len() {
                break;
            }
            let (line, found) = self.job.run(index)?;
            let line = if self.to_text {
                let text = serde_json::to_string(&line).map_err(|error| Error::request(error.to_string()))?;
                Line::Text(text)
            } else {
                Line::Value(Box::new(line))
            };
            let mut writer = self.writer();
            writer.accept(self.job, index, line, found)?;
            self.written.notify_all();
            // The slow one is under way in another worker, so that this wait ends.
            while writer.waiting.len() > MOST_WAITING && !self.stopped() {
                let wait = self.written.wait_timeout(writer, Duration::from_millis(100));
                writer = wait.unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(writer);
            self.control.update(&Update::Advanced { task: Task::Discover, sequences: 1 });
        }
        Ok(())
    }
}

/// Runs all sequences from where `state` stands.
pub(super) fn run(job: &Job<'_>, sink: Sink, state: State, control: &Control<'_>) -> Outcome {
    let shared = Shared {
        job,
        control,
        to_text: matches!(sink, Sink::File(..)),
        next: AtomicUsize::new(state.done),
        stop: AtomicBool::new(false),
        failure: Mutex::new(None),
        writer: Mutex::new(Writer {
            sink,
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
                if let Err(error) = shared.work() {
                    shared.stop.store(true, Ordering::Relaxed);
                    shared.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            });
        }
    });
    let Writer { sink, state, .. } = shared.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
    let ended = match shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Ended::Failed(error),
        None if state.done == job.log.sequences.len() => Ended::Complete,
        None => Ended::Cancelled,
    };
    Outcome { state, sink, ended }
}
