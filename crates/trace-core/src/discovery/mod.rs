//! Discovery: the causal graph of one sequence.
//!
//! For each candidate edge `j → q` with lag `k = q − j ≤ m`, and with `p_r` the probability of the observed event
//! at `q` when `x_j` is replaced by the draw `r`:
//!
//! ```text
//! strength(j → q) = mean over N draws r of  d_B(p_r ‖ p)        kept when  strength > τ
//! ```
//!
//! Cost: the model reads the sequence once and then scores `N · m` branch positions for each of `L` causes. Causes
//! go through the model in groups, groups run in parallel on the current rayon pool, and every draw has a stream of
//! its own, so that the result is the same bits for any number of threads.

mod proposal;
pub mod reference;
mod rows;
mod sampled;
pub mod sequential;
mod settings;
mod statistics;

use std::ops::Range;

use rayon::prelude::*;

pub(crate) use proposal::model_table;
use proposal::{Amount, Draws};
pub use proposal::{CumulativeTable, Proposal};
use rows::{Batch, Buffers, Cause, Span, TokenSlice, particles_per_batch};
use settings::Schedule;
pub use settings::{
    DEFAULT_MEMORY, DEFAULT_SEED, DEFAULT_THRESHOLD, Divergence, History, Intervention, MOST_PARTICLES, Memory,
    Particles, Plan, Settings, Threshold, ThresholdRule,
};

use crate::graph::{Pair, SampleGraph};
use crate::random::Streams;
use crate::{DensityModel, Error, EventSequence, Knowledge, Lag, Position, Reading, Verdict};

/// Finds what caused what in one sequence, with one model.
///
/// ```
/// # use trace_core::{Discovery, DensityModel, EventId, EventSequence, ModelError};
/// # struct Coin;
/// # impl DensityModel for Coin {
/// #     fn vocabulary_size(&self) -> usize { 2 }
/// #     fn backbone(&self) -> &str { "coin" }
/// #     fn forward(&self, events: &[EventId], positions: std::ops::Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
/// #         for (q, row) in positions.zip(rows.chunks_exact_mut(2)) {
/// #             let p: f64 = if q > 0 && events[q - 1].0 == 1 { 0.9 } else { 0.2 };
/// #             row.copy_from_slice(&[(1.0 - p).ln(), p.ln()]);
/// #         }
/// #         Ok(())
/// #     }
/// # }
/// # let model = Coin;
/// let sequence = EventSequence::new("v1", [0, 1, 1, 0].map(EventId).to_vec());
/// let found = Discovery::new(&model).particles(128).memory(6).seed(7).run(&sequence)?;
/// for edge in found.graph.edges() {
///     println!("{} → {}: {:.3} nats", edge.cause, edge.effect, edge.strength);
/// }
/// # assert!(found.graph.edges().all(|edge| edge.lag.0 == 1));
/// # assert_eq!(found.graph.edges().count(), 3);
/// # Ok::<(), trace_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Discovery<'m> {
    model: &'m dyn DensityModel,
    settings: Settings,
    knowledge: Option<&'m Knowledge>,
}

/// What discovery found in one sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Discovered {
    /// Every tested pair with its strength, and which of them are edges.
    pub graph: SampleGraph,
    /// How many branch positions the model scored: the work that was done.
    pub branch_positions: u64,
}

impl<'m> Discovery<'m> {
    /// Discovery with the default settings.
    pub fn new(model: &'m dyn DensityModel) -> Self {
        Self::with_settings(model, Settings::default())
    }

    /// Discovery with these settings.
    pub const fn with_settings(model: &'m dyn DensityModel, settings: Settings) -> Self {
        Self { model, settings, knowledge: None }
    }

    /// Which positions are replaced.
    #[must_use]
    pub const fn intervention(mut self, intervention: Intervention) -> Self {
        self.settings.intervention = intervention;
        self
    }

    /// What replacements are drawn from.
    #[must_use]
    pub const fn proposal(mut self, proposal: Proposal) -> Self {
        self.settings.proposal = Some(proposal);
        self
    }

    /// What is compared.
    #[must_use]
    pub const fn divergence(mut self, divergence: Divergence) -> Self {
        self.settings.divergence = divergence;
        self
    }

    /// What comes before the candidates.
    #[must_use]
    pub const fn history(mut self, history: History) -> Self {
        self.settings.history = history;
        self
    }

    /// How many replacements are tried: a number, [`Particles::Auto`] or [`Particles::All`].
    #[must_use]
    pub fn particles(mut self, particles: impl Into<Particles>) -> Self {
        self.settings.particles = particles.into();
        self
    }

    /// The largest lag tested: a number or [`Memory::All`].
    #[must_use]
    pub fn memory(mut self, memory: impl Into<Memory>) -> Self {
        self.settings.memory = Some(memory.into());
        self
    }

    /// The length of the prefix that is neither cause nor effect.
    #[must_use]
    pub const fn context(mut self, context: usize) -> Self {
        self.settings.context = context;
        self
    }

    /// What a strength must exceed: a number of nats or a rule.
    #[must_use]
    pub fn threshold(mut self, threshold: impl Into<Threshold>) -> Self {
        self.settings.threshold = Some(threshold.into());
        self
    }

    /// The seed of all random draws.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// What is known beforehand: excluded pairs are not tested, required ones kept.
    #[must_use]
    pub const fn knowledge(mut self, knowledge: &'m Knowledge) -> Self {
        self.knowledge = Some(knowledge);
        self
    }

    /// What the run is asked to do.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings with every default filled in for this model.
    pub fn plan(&self) -> Result<Plan, Error> {
        self.settings.plan(self.model)
    }

    /// Finds the causal graph of one sequence.
    pub fn run(&self, sequence: &EventSequence) -> Result<Discovered, Error> {
        let plan = self.plan()?;
        check(&plan, self.model, sequence)?;
        let (causes, branch_positions) = match plan.history {
            History::Observed => run_observed(&plan, self, sequence)?,
            History::Sampled => sampled::run(&plan, self, sequence)?,
        };
        let size = self.model.vocabulary_size();
        let (mut pairs, mut excluded) = (Vec::new(), Vec::new());
        for cause in &causes {
            for lag in 1..=cause.pairs.len() {
                if cause.excludes(lag) {
                    excluded.push((Position(cause.position as u32), Position((cause.position + lag) as u32)));
                } else {
                    pairs.push(estimate(&plan, size, sequence, cause, lag)?);
                }
            }
        }
        let graph = SampleGraph::new(sequence.events.clone(), pairs, plan.threshold).with_excluded(excluded);
        Ok(Discovered { graph, branch_positions })
    }

    /// What is known beforehand of a pair of positions of a sequence.
    pub fn verdict(&self, sequence: &EventSequence, cause: Position, effect: Position) -> Verdict {
        let Some(knowledge) = self.knowledge else { return Verdict::Open };
        let event = |position: Position| sequence.events[position.index()];
        knowledge.verdict(event(cause), event(effect), Lag(effect.0 - cause.0))
    }

    /// The candidate causes among these positions.
    fn causes(&self, plan: &Plan, sequence: &EventSequence, positions: Range<usize>) -> Vec<Cause> {
        let cause = |position: usize| {
            let lags = plan.memory.within(sequence.events.len() - 1 - position);
            let at = |lag: usize| Position((position + lag) as u32);
            Cause::new(position, (1..=lags).map(|lag| self.verdict(sequence, at(0), at(lag))).collect())
        };
        positions.map(cause).collect()
    }
}

/// Whether the sequence can be run at all.
fn check(plan: &Plan, model: &dyn DensityModel, sequence: &EventSequence) -> Result<(), Error> {
    let length = sequence.events.len();
    if length < plan.shortest() {
        return Err(Error::TooShort { length, needed: plan.shortest() });
    }
    if let Some(limit) = model.max_length().filter(|limit| length > *limit) {
        return Err(Error::TooLong { length, limit });
    }
    let vocabulary = model.vocabulary_size();
    match sequence.events.iter().position(|event| event.index() >= vocabulary) {
        Some(position) => Err(Error::UnknownEvent { event: sequence.events[position].0, position, vocabulary }),
        None => Ok(()),
    }
}

/// Random draws or all types, in enough numbers for the last round.
fn draws(plan: &Plan, model: &dyn DensityModel, sequence: &EventSequence) -> Result<Draws, Error> {
    let amount = match plan.schedule(model.vocabulary_size()) {
        Schedule::Enumerate => Amount::Enumerate,
        Schedule::Rounds(totals) => Amount::Draw(totals.last().copied().unwrap_or(0)),
    };
    Draws::new(
        Streams::new(plan.seed, &sequence.id),
        sequence.events.len(),
        model.vocabulary_size(),
        amount,
        plan.proposal,
        model.frequencies(),
    )
}

/// The number of types that draws without replacement come from.
fn population(plan: &Plan, size: usize) -> Option<usize> {
    plan.finite_population().then_some(size)
}

fn run_observed(plan: &Plan, discovery: &Discovery<'_>, sequence: &EventSequence) -> Result<(Vec<Cause>, u64), Error> {
    let model = discovery.model;
    let length = sequence.events.len();
    let reading = model.read(&sequence.events)?;
    let draws = draws(plan, model, sequence)?;
    let together = model.causes_together().max(1);
    let starts: Vec<usize> = (plan.first_cause()..length - 1).step_by(together).collect();
    let groups = starts
        .into_par_iter()
        .map(|start| {
            let mut group = discovery.causes(plan, sequence, start..(start + together).min(length - 1));
            let work = run_group(plan, model.vocabulary_size(), &*reading, &draws, &mut group)?;
            Ok((group, work))
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let work = groups.iter().map(|(_, work)| work).sum();
    Ok((groups.into_iter().flat_map(|(group, _)| group).collect(), work))
}

/// Takes a group of causes through its rounds.
fn run_group(
    plan: &Plan,
    size: usize,
    reading: &dyn Reading,
    draws: &Draws,
    causes: &mut [Cause],
) -> Result<u64, Error> {
    let at = |position: usize| draws.at(position, |row| reading.distribution(position, row));
    let totals = match plan.schedule(size) {
        Schedule::Rounds(totals) => totals,
        // How many types there are to enumerate may differ between positions: those without weight are left out.
        Schedule::Enumerate => vec![usize::MAX],
    };
    let mut buffers = Buffers::default();
    let mut work = 0;
    let mut from = 0;
    for total in totals {
        let open = causes.iter().filter(|cause| cause.open > 0);
        let most = open.map(|cause| Ok(at(cause.position)?.events.len())).collect::<Result<Vec<_>, Error>>()?;
        let total = total.min(most.into_iter().max().unwrap_or(0));
        while from < total {
            let spans: Vec<Span> = causes.iter().map(Cause::span).collect();
            let to = (from + particles_per_batch(plan, &spans, size)).min(total);
            let tokens = |position: usize| {
                let of = at(position)?;
                let most = of.events.len();
                Ok(TokenSlice { of, from: from.min(most), to: to.min(most) })
            };
            let batch = Batch { plan, reading, vocabulary_size: size, tokens: &tokens };
            work += batch.score(&spans, &mut buffers, &mut |cause, lag, sample, weight| {
                causes[cause].pairs[lag - 1].push(sample, weight);
            })?;
            from = to;
        }
        if !close_decided(plan, size, causes) {
            break;
        }
    }
    Ok(work)
}

/// Lowers each cause's open lag to its largest undecided one; whether any is left.
fn close_decided(plan: &Plan, size: usize, causes: &mut [Cause]) -> bool {
    let population = population(plan, size);
    for cause in causes.iter_mut() {
        let decided = |cause: &Cause, lag: usize| {
            cause.excludes(lag) || cause.pairs[lag - 1].is_decided(plan.threshold, population)
        };
        while cause.open > 0 && decided(cause, cause.open) {
            cause.open -= 1;
        }
    }
    causes.iter().any(|cause| cause.open > 0)
}

/// The finished estimate of one pair.
fn estimate(plan: &Plan, size: usize, sequence: &EventSequence, cause: &Cause, lag: usize) -> Result<Pair, Error> {
    let pair = &cause.pairs[lag - 1];
    let effect = cause.position + lag;
    let std_error = match plan.schedule(size) {
        Schedule::Enumerate => 0.0,
        Schedule::Rounds(_) => pair.std_error(population(plan, size)),
    };
    if pair.count == 0 || !(pair.strength.is_finite() && pair.log_ratio().is_finite()) {
        return Err(Error::NotFinite { position: effect });
    }
    let required = cause.verdicts[lag - 1] == Verdict::Required;
    let (from, to) = (Position(cause.position as u32), Position(effect as u32));
    Ok(Pair {
        cause: from,
        effect: to,
        lag: Lag(lag as u32),
        strength: pair.strength,
        std_error,
        particles: pair.count as u32,
        log_ratio: pair.log_ratio(),
        probability: pair.probability,
        probability_replaced: pair.probability_replaced,
        tied: sequence.tied(from, to),
        kept: required || pair.strength > plan.threshold,
        required,
    })
}
