//! Discovery: the causal graph of every sequence of a log, and of all of them together.

mod checkpoint;
mod found;
mod pipeline;
mod resume;

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use trace_core::evidence::{EvidenceRule, PairLists, PairScope};
use trace_core::random::{Purpose, Streams};
use trace_core::{
    Discovery, Divergence, EventSequence, Families, History, Intervention, Knowledge, Memory, Particles, Plan,
    Proposal, Question, Settings, Threshold,
};
use trace_io::log::{EventLog, Unknown};
use trace_io::output::{PartialFile, check_writable, partial_path, same_file};
use trace_io::population::Population;
use trace_io::result::{ResultOptions, RunSettings};

pub use self::found::{Found, Results};
use self::pipeline::{Ended, Job, Outcome, Sink, State};
use self::resume::Resumed;
use crate::error::Kept;
use crate::export::check_rule;
use crate::knowledge::KnowledgeFile;
use crate::progress::{Cancel, Control, Note, Progress, Task, Update};
use crate::{Error, Log, Model};

/// What a discovery is asked to do besides the settings of the method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiscoverOptions {
    /// The settings of the method.
    #[serde(flatten)]
    pub settings: Settings,
    /// What of a result is kept.
    #[serde(flatten)]
    pub result: ResultOptions,
    /// Only these sequences; all where there are none.
    pub cases: Vec<String>,
    /// What to do with events that the model does not know.
    pub unknown: Unknown,
    /// What decides which pairs of the population graph are kept.
    #[serde(flatten)]
    pub decision: EvidenceRule,
    /// Only this many sequences, chosen at random: a first look at a large log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    /// Only this part of the sequences, for runs on many machines whose populations are merged afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
}

/// One of several parts of a log: every `of`-th sequence, from the `number`-th on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which part, counted from 1.
    pub number: usize,
    /// Of how many.
    pub of: usize,
}

impl Shard {
    fn take(self, log: &mut EventLog) -> Result<(), Error> {
        let Self { number, of } = self;
        if number == 0 || number > of {
            return Err(Error::option("shard", format!("{number}/{of} is no part; expected 1/{of} to {of}/{of}")));
        }
        let mut index = 0;
        log.retain(|_| {
            index += 1;
            (index - 1) % of == number - 1
        });
        if log.sequences.is_empty() {
            return Err(Error::option("shard", format!("{number}/{of} is empty: the log has fewer sequences to test")));
        }
        Ok(())
    }
}

/// Leaves this many sequences, chosen by their ids and the seed alone.
fn take_sample(log: &mut EventLog, count: usize, seed: u64) -> Result<(), Error> {
    if count == 0 {
        return Err(Error::option("sample", "0 leaves nothing to test; expected 1 or more"));
    }
    let draw = |id: &str| Streams::new(seed, id).number(Purpose::Sample);
    let mut draws: Vec<u64> = log.sequences.iter().map(|sequence| draw(&sequence.id)).collect();
    draws.sort_unstable();
    if let Some(first_left_out) = draws.get(count).copied() {
        log.retain(|sequence| draw(&sequence.id) < first_left_out);
    }
    Ok(())
}

/// Finds what caused what in every sequence of a log.
///
/// ```no_run
/// use trace_causal::{Discover, Log, Model};
///
/// let (log, model) = (Log::open("events.csv")?, Model::open("model")?);
/// let found = Discover::new(&model).memory(8).to_file("results.jsonl").run(&log)?;
/// println!("{} edges", found.edges());
/// # Ok::<(), trace_causal::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Discover<'d> {
    model: &'d Model,
    options: DiscoverOptions,
    knowledge: Option<PathBuf>,
    out: Option<PathBuf>,
    population: Option<PathBuf>,
    resume: bool,
    control: Control<'d>,
}

impl<'d> Discover<'d> {
    /// With every default.
    pub fn new(model: &'d Model) -> Self {
        Self::with_options(model, DiscoverOptions::default())
    }

    /// With these options.
    pub fn with_options(model: &'d Model, options: DiscoverOptions) -> Self {
        let control = Control::default();
        Self { model, options, knowledge: None, out: None, population: None, resume: false, control }
    }

    /// Which positions are replaced.
    #[must_use]
    pub const fn intervention(mut self, intervention: Intervention) -> Self {
        self.options.settings.intervention = intervention;
        self
    }

    /// What replacements are drawn from.
    #[must_use]
    pub const fn proposal(mut self, proposal: Proposal) -> Self {
        self.options.settings.proposal = Some(proposal);
        self
    }

    /// What is compared.
    #[must_use]
    pub const fn divergence(mut self, divergence: Divergence) -> Self {
        self.options.settings.divergence = divergence;
        self
    }

    /// What comes before the candidates.
    #[must_use]
    pub const fn history(mut self, history: History) -> Self {
        self.options.settings.history = history;
        self
    }

    /// How many replacements are tried: a number, [`Particles::Auto`] or [`Particles::All`].
    #[must_use]
    pub fn particles(mut self, particles: impl Into<Particles>) -> Self {
        self.options.settings.particles = particles.into();
        self
    }

    /// The largest lag tested: a number or [`Memory::All`].
    #[must_use]
    pub fn memory(mut self, memory: impl Into<Memory>) -> Self {
        self.options.settings.memory = Some(memory.into());
        self
    }

    /// The length of the prefix that is neither cause nor effect.
    #[must_use]
    pub const fn context(mut self, context: usize) -> Self {
        self.options.settings.context = context;
        self
    }

    /// What a strength must exceed: a number of nats or a rule.
    #[must_use]
    pub fn threshold(mut self, threshold: impl Into<Threshold>) -> Self {
        self.options.settings.threshold = Some(threshold.into());
        self
    }

    /// How sure the decision over a single pair must be: draws go on until it is.
    #[must_use]
    pub const fn confidence(mut self, confidence: Option<f64>) -> Self {
        self.options.settings.confidence = confidence;
        self
    }

    /// Whether the end of a case is an effect to be explained.
    #[must_use]
    pub const fn end(mut self, end: bool) -> Self {
        self.options.settings.end = end;
        self
    }

    /// The expected share of kept pairs of the population graph that are false, at most.
    #[must_use]
    pub const fn fdr(mut self, fdr: f64) -> Self {
        self.options.decision.fdr = fdr;
        self
    }

    /// The ratio that kept pairs of the population graph must exceed.
    #[must_use]
    pub const fn least_ratio(mut self, ratio: f64) -> Self {
        self.options.decision.least_ratio = ratio;
        self
    }

    /// Only this many sequences, chosen at random.
    #[must_use]
    pub const fn sample(mut self, sequences: usize) -> Self {
        self.options.sample = Some(sequences);
        self
    }

    /// Only one part of the sequences.
    #[must_use]
    pub const fn shard(mut self, number: usize, of: usize) -> Self {
        self.options.shard = Some(Shard { number, of });
        self
    }

    /// What is asked where event types are outcomes of steps: whether a step happens, or how it turns out; both by
    /// default.
    #[must_use]
    pub const fn question(mut self, question: Option<Question>) -> Self {
        self.options.settings.question = question;
        self
    }

    /// The seed of all random draws.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.options.settings.seed = seed;
        self
    }

    /// Keep every tested pair in the results, so that a threshold can be moved later.
    #[must_use]
    pub const fn all_pairs(mut self, all_pairs: bool) -> Self {
        self.options.result.all_pairs = all_pairs;
        self
    }

    /// What is known beforehand about which types can cause which: a TOML file.
    #[must_use]
    pub fn knowledge(mut self, file: impl Into<PathBuf>) -> Self {
        self.knowledge = Some(file.into());
        self
    }

    /// Write results here, sequence after sequence, instead of keeping them in memory.
    #[must_use]
    pub fn to_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.out = Some(file.into());
        self
    }

    /// Write the population graph here.
    #[must_use]
    pub fn population_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.population = Some(file.into());
        self
    }

    /// Go on where an unfinished run to the same file stopped.
    #[must_use]
    pub const fn resume(mut self, resume: bool) -> Self {
        self.resume = resume;
        self
    }

    /// Who listens.
    #[must_use]
    pub fn progress(mut self, progress: &'d dyn Progress) -> Self {
        self.control = self.control.progress(progress);
        self
    }

    /// How the run is asked to stop. Results in a file are kept for [`resume`](Self::resume).
    #[must_use]
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.control = self.control.cancel(cancel);
        self
    }

    /// Finds the graphs of a log.
    pub fn run(&self, log: &Log) -> Result<Found, Error> {
        let (out, population) = self.check_paths(log)?;
        let density = self.model.density();
        let families = self.model.families_for(log)?;
        let mut discovery = Discovery::with_settings(density, self.options.settings);
        if let Some(families) = &families {
            discovery = discovery.families(families);
        }
        let plan = discovery.plan()?;
        let knowledge = self.knowledge.as_deref().map(|path| KnowledgeFile::read(path, self.model)).transpose()?;
        let mut events = log.read_for(self.model, self.options.unknown, &self.control)?;
        check_rule(&self.options.decision)?;
        let short = choose(&mut events, &self.options.cases, &plan, density.max_length())?;
        if let Some(count) = self.options.sample {
            take_sample(&mut events, count, plan.seed)?;
        }
        let longest = events.sequences.iter().map(|sequence| sequence.events.len()).max().unwrap_or(0);
        density.check_ram(longest).map_err(|error| Error::option("ram_limit", error.to_string()))?;
        let known = knowledge.as_ref().map(|file| &file.knowledge);
        // In memory the population is always there.
        let merges = population.is_some() || out.is_none();
        let list = self.pair_lists(&events, &plan, known, discovery.asked_families()).filter(|_| merges);
        if let Some(shard) = self.options.shard {
            // After the pairs were counted: all shards gather evidence for the same ones.
            shard.take(&mut events)?;
        }
        let job = Job {
            discovery: known.map_or(discovery, |known| discovery.knowledge(known)),
            log: &events,
            settings: RunSettings {
                knowledge: knowledge.as_ref().map(|file| file.hash.clone()),
                shaping: log.options().shaping,
                ..RunSettings::new(plan)
            },
            model: self.model.for_results(),
            vocabulary: self.model.vocabulary(),
            options: self.options.result,
            population: population.as_deref(),
            merges,
            evidence: list.as_ref(),
            rule: self.options.decision,
            halves: self.model,
        };
        self.warn(&job, longest);
        let Some((sink, state)) = self.start(&job, out.as_deref())? else {
            return Found::complete(&job, out.as_deref(), short);
        };
        let start = Instant::now();
        let left = (events.sequences.len() - state.done) as u64;
        self.control.update(&Update::Started { task: Task::Discover, sequences: left });
        let outcome = pipeline::run(&job, sink, state, &self.control);
        self.control.update(&Update::Ended { task: Task::Discover });
        let (state, sink) = finish(&job, outcome, out.as_deref())?;
        Ok(Found::new(&job, &state, sink, out.as_deref(), short, start.elapsed()))
    }

    /// The type pairs to gather evidence for, where the settings allow it and any sequence is new to the model.
    fn pair_lists(
        &self,
        events: &EventLog,
        plan: &Plan,
        knowledge: Option<&Knowledge>,
        families: Option<&Families>,
    ) -> Option<PairLists> {
        let density = self.model.density();
        let possible = plan.intervention == Intervention::Atomic && plan.history == History::Observed;
        let unseen = |sequence: &EventSequence| self.model.trained_on(sequence) != Some(true);
        if !possible || !events.sequences.iter().any(unseen) {
            return None;
        }
        let scope = PairScope {
            types: density.vocabulary_size(),
            memory: plan.memory,
            first_cause: plan.first_cause().max(usize::from(!density.predicts_first())),
            end: density.end().filter(|_| plan.end),
            knowledge,
            families: None,
        };
        Some(PairLists::count(&events.sequences, scope, families))
    }

    /// The places to write. Refuses to write over what is read, and to start what cannot be written in the end.
    fn check_paths(&self, log: &Log) -> Result<(Option<PathBuf>, Option<PathBuf>), Error> {
        for output in self.out.iter().chain(&self.population) {
            if same_file(output, log.path()) {
                return Err(Error::request(format!("{}: would be written over the log", output.display())));
            }
        }
        let out = self.out.as_deref().map(check_writable).transpose()?;
        let population = self.population.as_deref().map(check_writable).transpose()?;
        if let (Some(out), Some(population)) = (&out, &population) {
            let results = [out.clone(), partial_path(out)];
            let merged = [population.clone(), partial_path(population)];
            if results.iter().any(|a| merged.iter().any(|b| same_file(a, b))) {
                return Err(Error::option("population", "expected another file than that of the results"));
            }
        }
        Ok((out, population))
    }

    fn warn(&self, job: &Job<'_>, longest: usize) {
        if job.model.bound.is_some_and(|bound| bound.vacuous) {
            self.control.note(&Note::VacuousBound);
        }
        if let Some(trained) = self.model.density().trained_length().filter(|trained| longest > *trained) {
            self.control.note(&Note::BeyondTrainedLength { longest, trained });
        }
    }

    /// Where the run starts: from nothing, or where an unfinished one stopped; `None` if that was the end.
    fn start(&self, job: &Job<'_>, out: Option<&Path>) -> Result<Option<(Sink, State)>, Error> {
        let Some(out) = out else { return Ok(Some((Sink::Memory(Vec::new()), State::default()))) };
        let found = if self.resume { resume::find(job, out)? } else { Resumed::Nothing };
        match found {
            Resumed::Complete => {
                self.control.note(&Note::CompleteAlready(out.to_owned()));
                return Ok(None);
            }
            Resumed::Partial(file, state, again) => {
                self.control.note(&Note::ContinuingSequences { done: state.done, again });
                let lock = checkpoint::lock(job)?;
                return Ok(Some((Sink::File(file, lock), state)));
            }
            Resumed::Nothing if self.resume => self.control.note(&Note::NothingToContinue),
            Resumed::Nothing if partial_path(out).exists() => self.control.note(&Note::StartingOver),
            Resumed::Nothing => {}
        }
        let lock = checkpoint::lock(job)?;
        let file = PartialFile::create(out)?;
        let state = State::default();
        // From the first moment on, so that a population is known to belong to the partial results.
        checkpoint::write(job, &state)?;
        Ok(Some((Sink::File(file, lock), state)))
    }
}

/// Leaves the sequences that were asked for and can be tested; returns how many are too short.
fn choose(log: &mut EventLog, cases: &[String], plan: &Plan, longest: Option<usize>) -> Result<usize, Error> {
    for id in cases {
        if !log.sequences.iter().any(|sequence| sequence.id == *id) {
            return Err(Error::option("case", format!("{} has no sequence {id:?}", log.name)));
        }
    }
    log.retain(|sequence| cases.is_empty() || cases.contains(&sequence.id));
    let too_long = |limit: usize| log.sequences.iter().position(|sequence| sequence.events.len() > limit);
    if let Some((limit, index)) = longest.and_then(|limit| Some((limit, too_long(limit)?))) {
        let sequence = &log.sequences[index];
        let length = sequence.events.len();
        let reason = format!("sequence {:?} has {length} events; the model reads at most {limit}", sequence.id);
        return Err(trace_io::Error::at_line(&log.name, log.lines[index], reason).into());
    }
    let before = log.sequences.len();
    let length = log.sequences.iter().map(|sequence| sequence.events.len()).max().unwrap_or(0);
    let shortest = plan.shortest();
    log.retain(|sequence| sequence.events.len() >= shortest);
    if log.sequences.is_empty() {
        let reason = format!(
            "no sequence is long enough to test: the longest has {length} events, at least {shortest} are needed"
        );
        return Err(trace_io::Error::file(&log.name, reason).into());
    }
    Ok(before - log.sequences.len())
}

/// Gives the files their names, or says what was kept.
fn finish(job: &Job<'_>, outcome: Outcome, out: Option<&Path>) -> Result<(State, Option<Sink>), Error> {
    let Outcome { state, sink, ended } = outcome;
    let kept = || match out {
        Some(out) => {
            let (done, total) = (state.done, job.log.sequences.len());
            Kept::Sequences { done, total, place: partial_path(out) }
        }
        None => Kept::Nothing,
    };
    match (ended, sink) {
        (Ended::Complete, Sink::Memory(lines)) => {
            write_population(job, &state)?;
            Ok((state, Some(Sink::Memory(lines))))
        }
        (Ended::Complete, Sink::File(file, lock)) => {
            write_population(job, &state)?;
            file.finish()?;
            checkpoint::remove(job.population)?;
            drop(lock);
            Ok((state, None))
        }
        (Ended::Failed(error), Sink::File(file, _)) if state.done == 0 => {
            file.discard()?;
            checkpoint::remove(job.population)?;
            Err(error)
        }
        // The failure is what the user must hear of, not that the population could not be saved either.
        (Ended::Failed(error), Sink::File(..)) if checkpoint::write(job, &state).is_ok() => {
            Err(Error::Unfinished { kept: kept(), error: Box::new(error) })
        }
        (Ended::Failed(error), _) => Err(error),
        (Ended::Cancelled, Sink::Memory(_)) => Err(Error::Cancelled(Kept::Nothing)),
        (Ended::Cancelled, Sink::File(..)) => {
            checkpoint::write(job, &state)?;
            Err(Error::Cancelled(kept()))
        }
    }
}

fn write_population(job: &Job<'_>, state: &State) -> Result<(), Error> {
    if let Some(path) = job.population {
        state.population(job).write(path)?;
    }
    Ok(())
}

impl State {
    /// The population so far, by names.
    fn population(&self, job: &Job<'_>) -> Population {
        let graph = self.population.rename(|id, question| match (job.families(), question) {
            (Some(families), Question::Whether) => pipeline::step_name(families, job.vocabulary, *id),
            _ => job.vocabulary.name(*id),
        });
        Population::new(&graph, &job.settings, &job.model, &job.rule)
    }
}
