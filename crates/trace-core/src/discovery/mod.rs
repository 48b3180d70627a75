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

mod overlap;
mod posterior;
mod proposal;
pub mod reference;
mod rows;
mod sampled;
pub mod sequential;
mod settings;
mod statistics;

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

pub use overlap::LEAST_OVERLAP;
use posterior::{Observed, Outcomes, Posterior};
pub(crate) use proposal::model_table;
use proposal::{Amount, Draws, Replacements};
pub use proposal::{CumulativeTable, Proposal};
use rows::{Batch, Buffers, Cause, PairState, Span, TokenSlice, particles_per_batch};
use sequential::SequentialTest;
use settings::Schedule;
pub use settings::{
    DEFAULT_MEMORY, DEFAULT_SEED, DEFAULT_THRESHOLD, Divergence, History, Intervention, MOST_PARTICLES, Memory,
    Particles, Plan, Settings, Threshold, ThresholdRule,
};

use crate::evidence::{Evidence, PairLists, SequenceEvidence};
use crate::graph::{Pair, SampleGraph, Verdict};
use crate::random::Streams;
use crate::{
    DensityModel, Error, EventId, EventSequence, Families, Knowledge, Lag, Position, Prior, Question, Reading,
};

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
/// # assert_eq!(found.graph.edges().count(), 1);
/// # Ok::<(), trace_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Discovery<'m> {
    model: &'m dyn DensityModel,
    settings: Settings,
    knowledge: Option<&'m Knowledge>,
    evidence: Option<&'m PairLists>,
    families: Option<&'m Families>,
}

/// What discovery found in one sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Discovered {
    /// Every tested pair with its strength, and which of them are edges.
    pub graph: SampleGraph,
    /// How many branch positions the model scored: the work that was done.
    pub branch_positions: u64,
    /// What the sequence says of each listed pair of types, where evidence was asked for.
    pub evidence: Option<Evidence>,
}

impl<'m> Discovery<'m> {
    /// Discovery with the default settings.
    pub fn new(model: &'m dyn DensityModel) -> Self {
        Self::with_settings(model, Settings::default())
    }

    /// Discovery with these settings.
    pub const fn with_settings(model: &'m dyn DensityModel, settings: Settings) -> Self {
        Self { model, settings, knowledge: None, evidence: None, families: None }
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

    /// How sure the decision over a single pair must be: draws go on until it is.
    #[must_use]
    pub const fn confidence(mut self, confidence: Option<f64>) -> Self {
        self.settings.confidence = confidence;
        self
    }

    /// Whether the end of a case is an effect to be explained.
    #[must_use]
    pub const fn end(mut self, end: bool) -> Self {
        self.settings.end = end;
        self
    }

    /// Gather evidence on these pairs of types. It rests on the model's posterior whatever the proposal is.
    #[must_use]
    pub const fn evidence(mut self, pairs: &'m PairLists) -> Self {
        self.evidence = Some(pairs);
        self
    }

    /// Which event types are outcomes of the same step: two questions are then asked, whether a step happens and how it
    /// turns out.
    #[must_use]
    pub const fn families(mut self, families: &'m Families) -> Self {
        self.families = Some(families);
        self
    }

    /// Which of the two questions; both by default.
    #[must_use]
    pub const fn question(mut self, question: Option<Question>) -> Self {
        self.settings.question = question;
        self
    }

    /// The families, as far as the settings allow to ask about them.
    pub fn asked_families(&self) -> Option<&'m Families> {
        let Settings { intervention, history, divergence, .. } = self.settings;
        let plain = (Intervention::Atomic, History::Observed, Divergence::Event);
        self.families.filter(|families| families.any() && (intervention, history, divergence) == plain)
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

    /// The same with another model.
    #[must_use]
    pub const fn with_model(mut self, model: &'m dyn DensityModel) -> Self {
        self.model = model;
        self
    }

    /// What the run is asked to do.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings with every default filled in for this model.
    pub fn plan(&self) -> Result<Plan, Error> {
        if self.settings.question == Some(Question::How) && self.asked_families().is_none() {
            return Err(Error::setting(
                "question",
                "how needs event types that are outcomes of the same step, and goes with intervention atomic, history \
                 observed and divergence event",
            ));
        }
        self.settings.plan(self.model)
    }

    /// Finds the causal graph of one sequence.
    pub fn run(&self, sequence: &EventSequence) -> Result<Discovered, Error> {
        let plan = self.plan()?;
        check(&plan, self.model, sequence)?;
        if self.evidence.is_some() && !plan.enumerable() {
            return Err(Error::setting(
                "intervention",
                "evidence goes with intervention atomic and history observed only",
            ));
        }
        let events = sequence.with_end(self.model.end().filter(|_| plan.end));
        let run = Run { plan: &plan, discovery: self, sequence, events: &events };
        match plan.history {
            History::Observed => run.observed(),
            History::Sampled => sampled::run(&run),
        }
    }

    /// What is known beforehand of a pair of positions of a sequence.
    pub fn prior(&self, sequence: &EventSequence, cause: Position, effect: Position) -> Prior {
        let Some(knowledge) = self.knowledge else { return Prior::Open };
        // Nothing is known beforehand of the end, which is behind the last event.
        let event = |position: Position| sequence.events.get(position.index()).copied();
        let (Some(from), Some(to)) = (event(cause), event(effect)) else { return Prior::Open };
        knowledge.prior(from, to, Lag(effect.0 - cause.0))
    }
}

/// One sequence under way.
#[derive(Clone, Copy)]
struct Run<'r> {
    plan: &'r Plan,
    discovery: &'r Discovery<'r>,
    sequence: &'r EventSequence,
    /// Its events, and the end after them where it is an effect.
    events: &'r [EventId],
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

/// Replacements per cause that evidence rests on where types are not enumerated.
const EVIDENCE_DRAWS: usize = 64;

/// Causes that go through the model together, before their evidence is added up.
const GROUPS_AT_A_TIME: usize = 32;

impl Run<'_> {
    const fn model(&self) -> &dyn DensityModel {
        self.discovery.model
    }

    /// The candidate causes among these positions.
    fn causes(&self, positions: Range<usize>) -> Vec<Cause> {
        let cause = |position: usize| {
            let lags = self.plan.memory.within(self.events.len() - 1 - position);
            let at = |lag: usize| Position((position + lag) as u32);
            Cause::new(position, (1..=lags).map(|lag| self.discovery.prior(self.sequence, at(0), at(lag))).collect())
        };
        positions.map(cause).collect()
    }

    /// Random draws or all types, in enough numbers for the last round.
    fn draws(&self) -> Result<Draws, Error> {
        let amount = match self.plan.schedule(self.model().vocabulary_size()) {
            Schedule::Enumerate => Amount::Enumerate,
            Schedule::Rounds(totals) => Amount::Draw(totals.last().copied().unwrap_or(0)),
        };
        self.draws_of(amount, self.plan.proposal)
    }

    fn draws_of(&self, amount: Amount, proposal: Proposal) -> Result<Draws, Error> {
        let model = self.model();
        // What lies between cause and effect is replaced by any type in the staircase, the observed one too.
        let observed = self.plan.enumerable().then_some(&*self.sequence.events);
        let (streams, length) = (Streams::new(self.plan.seed, &self.sequence.id), self.sequence.events.len());
        let sizes = (model.vocabulary_size(), model.row_size());
        let draws = Draws::new(streams, length, sizes, amount, proposal, model.frequencies(), observed)?;
        Ok(draws.once(self.plan.confidence.is_some() && proposal == self.plan.proposal))
    }

    /// The number of alternatives of a pair that draws without replacement come from.
    fn population(&self, cause: usize, lag: usize) -> Option<usize> {
        self.plan.finite_population().then(|| {
            let (size, effect) = (self.model().vocabulary_size(), self.events[cause + lag]);
            size - 1 - usize::from(effect != self.events[cause] && effect.index() < size)
        })
    }

    fn enumerates(&self) -> bool {
        self.plan.schedule(self.model().vocabulary_size()) == Schedule::Enumerate
    }

    fn families(&self) -> Option<&Families> {
        self.discovery.asked_families()
    }

    /// Whether a question is asked.
    fn asks(&self, question: Question) -> bool {
        match question {
            Question::Whether => self.plan.question != Some(Question::How),
            Question::How => self.families().is_some() && self.plan.question != Some(Question::Whether),
        }
    }

    fn observed(&self) -> Result<Discovered, Error> {
        let (plan, model) = (self.plan, self.model());
        let length = self.events.len();
        let reading = model.read(self.events)?;
        let draws = self.draws()?;
        let evidence_draws = match self.discovery.evidence {
            Some(_) if !self.enumerates() => Some(self.draws_of(Amount::Draw(EVIDENCE_DRAWS), Proposal::Model)?),
            _ => None,
        };
        let together = model.causes_together().max(1);
        let starts: Vec<usize> = (plan.first_cause()..length - 1).step_by(together).collect();
        let mut found = Gathered::new(self.discovery.evidence);
        for starts in starts.chunks(GROUPS_AT_A_TIME) {
            let groups = starts
                .par_iter()
                .map(|start| {
                    let causes = self.causes(*start..(start + together).min(length - 1));
                    let group = Group { run: self, reading: &*reading, draws: &draws };
                    group.finish(causes, evidence_draws.as_ref())
                })
                .collect::<Result<Vec<_>, Error>>()?;
            for group in groups {
                found.add(group);
            }
        }
        Ok(found.discovered(self))
    }

    /// The finished estimate of one pair.
    fn estimate(
        &self,
        cause: &Cause,
        question: Question,
        lag: usize,
        (overlap, probability): Place,
    ) -> Result<Pair, Error> {
        let states = if question == Question::How { &cause.how } else { &cause.pairs };
        let statistics = &states[lag - 1].statistics;
        let effect = cause.position + lag;
        // The outcomes of a step are few: all of them are gone through.
        let enumerated = question == Question::How || self.enumerates();
        let std_error = if enumerated {
            0.0
        } else {
            statistics.std_error(self.population(cause.position, lag), self.plan.divergence == Divergence::Event)
        };
        let finite = statistics.strength.is_finite() && statistics.log_ratio().is_finite();
        if !(statistics.is_empty() || finite) {
            return Err(Error::NotFinite { position: effect });
        }
        let (from, to) = (Position(cause.position as u32), Position(effect as u32));
        let weighted = !enumerated && self.plan.proposal == Proposal::Plausible;
        // Where nothing else could be tried, there was no room; where nothing else was drawn, nothing is decided.
        let empty = statistics.is_empty();
        let pair = Pair {
            cause: from,
            effect: to,
            lag: Lag(lag as u32),
            question,
            strength: statistics.strength,
            std_error,
            particles: statistics.count as u32,
            log_ratio: if empty { 0.0 } else { statistics.log_ratio() },
            probability: if empty { probability } else { statistics.probability() },
            probability_replaced: if empty { probability } else { statistics.probability_replaced() },
            effective_particles: (weighted || (empty && !enumerated)).then(|| statistics.effective()),
            overlap: if empty && enumerated { Some(0.0) } else { overlap },
            verdict: Verdict::None,
            hidden_cause_ratio: 1.0,
            tied: self.sequence.tied(from, to),
            kept: false,
            required: cause.priors[lag - 1] == Prior::Required,
        };
        let pair = pair.decided(self.plan.threshold);
        Ok(match self.plan.confidence.filter(|_| !enumerated && pair.is_testable()) {
            Some(_) => pair.decided_by(states[lag - 1].test.as_ref().and_then(SequentialTest::decision)),
            None => pair,
        })
    }
}

/// How much room a place left for anything else, and the effect's probability as observed.
type Place = (Option<f64>, f64);

/// What some causes of a sequence came to.
struct Gathered {
    pairs: Vec<Pair>,
    excluded: Vec<(Position, Position)>,
    work: u64,
    evidence: Option<Evidence>,
}

impl Gathered {
    fn new(lists: Option<&PairLists>) -> Self {
        let evidence = lists.map(Evidence::new);
        Self { pairs: Vec::new(), excluded: Vec::new(), work: 0, evidence }
    }

    fn add(&mut self, other: Self) {
        self.pairs.extend(other.pairs);
        self.excluded.extend(other.excluded);
        self.work += other.work;
        if let (Some(mine), Some(theirs)) = (&mut self.evidence, &other.evidence) {
            mine.add(theirs);
        }
    }

    /// Adds a cause whose pairs are decided.
    fn add_cause(
        &mut self,
        run: &Run<'_>,
        cause: &Cause,
        place: impl Fn(Question, usize) -> Place,
    ) -> Result<(), Error> {
        for lag in 1..=cause.pairs.len() {
            if cause.excludes(lag) {
                self.excluded.push((Position(cause.position as u32), Position((cause.position + lag) as u32)));
                continue;
            }
            if run.asks(Question::Whether) {
                self.pairs.push(run.estimate(cause, Question::Whether, lag, place(Question::Whether, lag))?);
            }
            if !cause.how.is_empty() && run.has_outcomes(cause.position + lag) {
                self.pairs.push(run.estimate(cause, Question::How, lag, place(Question::How, lag))?);
            }
        }
        Ok(())
    }

    fn discovered(self, run: &Run<'_>) -> Discovered {
        let graph = SampleGraph::new(run.events.to_vec(), self.pairs, run.plan.threshold).with_excluded(self.excluded);
        Discovered { graph, branch_positions: self.work, evidence: self.evidence }
    }
}

/// Some causes of a sequence that was read, which go through the model together.
struct Group<'g> {
    run: &'g Run<'g>,
    reading: &'g dyn Reading,
    draws: &'g Draws,
}

impl Group<'_> {
    fn finish(&self, mut causes: Vec<Cause>, evidence_draws: Option<&Draws>) -> Result<Gathered, Error> {
        let run = self.run;
        let model = run.model();
        let mut found = Gathered::new(run.discovery.evidence);
        let predicted = |cause: &&mut Cause| run.plan.enumerable() && (cause.position > 0 || model.predicts_first());
        for cause in causes.iter_mut().filter(predicted) {
            let mut row = vec![0.0; model.row_size()];
            self.reading.distribution(cause.position, &mut row)?;
            row.truncate(model.vocabulary_size()); // the end is nothing that could have stood there
            cause.prediction = Some(row);
            if run.discovery.evidence.is_some() {
                let sizes = (model.vocabulary_size(), model.row_size());
                cause.posterior = Some(Posterior::new(cause.pairs.len(), sizes.0, sizes.1));
            }
        }
        if run.asks(Question::How) {
            found.work += self.outcomes(&mut causes)?;
        }
        // Where types are drawn, evidence has draws of its own.
        let shares = run.discovery.evidence.is_some() && evidence_draws.is_none();
        let apart: Vec<Option<Posterior>> =
            if shares { Vec::new() } else { causes.iter_mut().map(|cause| cause.posterior.take()).collect() };
        if run.asks(Question::Whether) {
            found.work += self.rounds(&mut causes, shares || run.families().is_some())?;
        }
        if let Some(draws) = evidence_draws {
            for (cause, posterior) in causes.iter_mut().zip(apart) {
                cause.posterior = posterior;
            }
            found.work += self.draw_evidence(&mut causes, draws)?;
        }
        let enumerated = run.enumerates();
        for cause in &mut causes {
            if let Some(sums) = found.evidence.as_mut().filter(|_| run.asks(Question::Whether)) {
                self.contribute(cause, &mut sums.whether)?;
            }
            if let Some(sums) = found.evidence.as_mut().and_then(|sums| sums.how.as_mut()) {
                self.contribute_outcomes(cause, sums)?;
            }
            let cause = &*cause;
            found.add_cause(run, cause, |question, lag| {
                let observed = self.reading.observed()[cause.position + lag].probability();
                let overlap = match question {
                    Question::Whether => cause.overlap(run.families(), run.events, self.reading, lag, enumerated),
                    Question::How => cause.overlap_of_outcomes(run.events, self.reading, lag),
                };
                (overlap, observed)
            })?;
        }
        Ok(found)
    }

    /// Takes the causes through their rounds.
    fn rounds(&self, causes: &mut [Cause], with_rows: bool) -> Result<u64, Error> {
        let (run, plan) = (self.run, self.run.plan);
        let model = run.model();
        let at = |position: usize| self.draws.at(position, |row| self.reading.distribution(position, row));
        let totals = match plan.schedule(model.vocabulary_size()) {
            Schedule::Rounds(totals) => totals,
            // How many types there are to enumerate may differ between positions: those without weight are left out.
            Schedule::Enumerate => vec![usize::MAX],
        };
        let log_frequencies = run.log_frequencies();
        let mut buffers = Buffers::default();
        let (mut work, mut from) = (0, 0);
        for total in totals {
            let open = causes.iter().filter(|cause| cause.open > 0);
            let most = open.map(|cause| Ok(at(cause.position)?.events.len())).collect::<Result<Vec<_>, Error>>()?;
            let total = total.min(most.into_iter().max().unwrap_or(0));
            while from < total {
                let spans: Vec<Span> = causes.iter().map(Cause::span).collect();
                let to = (from + particles_per_batch(plan, &spans, model.row_size(), with_rows)).min(total);
                let tokens = |position: usize| {
                    let of = at(position)?;
                    let most = of.events.len();
                    Ok(TokenSlice { of, from: from.min(most), to: to.min(most) })
                };
                let batch = Batch {
                    plan,
                    reading: self.reading,
                    types: model.vocabulary_size(),
                    row_size: model.row_size(),
                    tokens: &tokens,
                    with_rows,
                    log_frequencies: log_frequencies.as_deref(),
                    families: run.families().map(|families| (families, Question::Whether)),
                    events: run.events,
                };
                work += batch.score(&spans, &mut buffers, &mut |cause, lag, draw| {
                    causes[cause].take(plan, run.families(), run.events, lag, draw);
                })?;
                from = to;
            }
            if !run.close_decided(causes) {
                break;
            }
        }
        Ok(work)
    }

    /// Draws what evidence rests on: a fixed number of replacements by the model's own prediction.
    fn draw_evidence(&self, causes: &mut [Cause], draws: &Draws) -> Result<u64, Error> {
        let (run, model) = (self.run, self.run.model());
        let plan = Plan { proposal: Proposal::Model, ..*run.plan };
        let at = |position: usize| draws.at(position, |row| self.reading.distribution(position, row));
        let spans: Vec<Span> = causes.iter().map(Cause::whole).collect();
        let step = particles_per_batch(&plan, &spans, model.row_size(), true);
        let mut buffers = Buffers::default();
        let mut work = 0;
        for from in (0..EVIDENCE_DRAWS).step_by(step) {
            let tokens = |position: usize| {
                let of = at(position)?;
                let most = of.events.len();
                Ok(TokenSlice { of, from: from.min(most), to: (from + step).min(most) })
            };
            let batch = Batch {
                plan: &plan,
                reading: self.reading,
                types: model.vocabulary_size(),
                row_size: model.row_size(),
                tokens: &tokens,
                with_rows: true,
                log_frequencies: None,
                families: None,
                events: run.events,
            };
            work += batch.score(&spans, &mut buffers, &mut |cause, lag, draw| {
                let cause = &mut causes[cause];
                let own = run.events[cause.position];
                if let (Some(prediction), Some(posterior)) = (&cause.prediction, &mut cause.posterior) {
                    // Each draw stands for its share of all that is not the observed event.
                    let share =
                        (-prediction[own.index()].exp_m1()).max(f64::MIN_POSITIVE).ln() - (EVIDENCE_DRAWS as f64).ln();
                    posterior.add(run.families(), lag, draw.event, share + draw.between, draw.row);
                }
            })?;
        }
        Ok(work)
    }

    /// Adds what a cause says of every listed pair.
    fn contribute(&self, cause: &mut Cause, sums: &mut SequenceEvidence) -> Result<(), Error> {
        let run = self.run;
        let (Some(lists), Some(prediction), Some(posterior)) =
            (run.discovery.evidence, &cause.prediction, &mut cause.posterior)
        else {
            return Ok(());
        };
        let own = run.events[cause.position];
        let mut row = vec![0.0; run.model().row_size()];
        let mut between = 0.0;
        for lag in 1..=cause.pairs.len() {
            let effect = cause.position + lag;
            let at = |position: usize| Position(position as u32);
            if !run.sequence.tied(at(cause.position), at(effect)) {
                self.reading.distribution(effect, &mut row)?;
                posterior.add(run.families(), lag, own, prediction[own.index()] + between, &row);
                let step = |event| run.families().map_or(event, |families| families.representative(event));
                let nearest = run.events[cause.position + 1..effect].iter().all(|event| step(*event) != step(own));
                let observed = Observed { cause: step(own), effect: step(run.events[effect]), lag, nearest };
                posterior.contribute(observed, run.families(), &lists.whether, run.discovery.knowledge, sums);
            }
            between += self.reading.observed()[effect].log_p;
        }
        Ok(())
    }
}

/// The outcomes of steps: the question how.
impl Group<'_> {
    /// Tries the other outcomes of each cause's step.
    fn outcomes(&self, causes: &mut [Cause]) -> Result<u64, Error> {
        let (run, plan) = (self.run, self.run.plan);
        let Some(families) = run.families() else { return Ok(0) };
        let log_frequencies = run.log_frequencies();
        let mut spans = Vec::new();
        for cause in causes.iter_mut() {
            let asked = cause.prediction.is_some() && run.has_outcomes(cause.position);
            if asked {
                cause.how = vec![PairState::default(); cause.pairs.len()];
                if run.discovery.evidence.is_some() {
                    cause.outcomes = vec![Outcomes::default(); cause.pairs.len()];
                }
            }
            spans.push(if asked { cause.whole() } else { cause.nothing() });
        }
        let tokens = |position: usize| {
            let own = run.events[position];
            let events: Vec<EventId> = families.members(own).iter().copied().filter(|event| *event != own).collect();
            let to = events.len();
            Ok(TokenSlice { of: Arc::new(Replacements { events, log_weights: None }), from: 0, to })
        };
        let batch = Batch {
            plan,
            reading: self.reading,
            types: run.model().vocabulary_size(),
            row_size: run.model().row_size(),
            tokens: &tokens,
            with_rows: true,
            log_frequencies: log_frequencies.as_deref(),
            families: Some((families, Question::How)),
            events: run.events,
        };
        Ok(batch.score(&spans, &mut Buffers::default(), &mut |cause, lag, draw| {
            let cause = &mut causes[cause];
            if run.has_outcomes(cause.position + lag) {
                cause.take_outcome(plan, families, run.events[cause.position + lag], lag, draw);
            }
        })?)
    }

    /// Adds what the outcome of a cause says of those of its effects.
    fn contribute_outcomes(&self, cause: &mut Cause, sums: &mut SequenceEvidence) -> Result<(), Error> {
        let run = self.run;
        let (Some(families), Some(prediction)) = (run.families(), &cause.prediction) else { return Ok(()) };
        let Some(list) = run.discovery.evidence.and_then(|lists| lists.how.as_ref()) else { return Ok(()) };
        let own = run.events[cause.position];
        let mut row = vec![0.0; run.model().row_size()];
        let mut between = 0.0;
        for (lag, outcomes) in (1..).zip(&mut cause.outcomes) {
            let effect = cause.position + lag;
            let at = |position: usize| Position(position as u32);
            if run.has_outcomes(effect) && !run.sequence.tied(at(cause.position), at(effect)) {
                self.reading.distribution(effect, &mut row)?;
                outcomes.add(families, run.events[effect], own, prediction[own.index()] + between, &row);
                let nearest = !run.events[cause.position + 1..effect].contains(&own);
                let observed = Observed { cause: own, effect: run.events[effect], lag, nearest };
                outcomes.contribute(observed, families, list, sums);
            }
            between += self.reading.observed()[effect].log_p;
        }
        Ok(())
    }
}

impl Run<'_> {
    /// Whether the event at a position is one of several outcomes of its step.
    fn has_outcomes(&self, position: usize) -> bool {
        let event = self.events[position];
        event.index() < self.model().vocabulary_size()
            && self.families().is_some_and(|families| families.has_outcomes(event))
    }

    /// The logarithm of each type's share, where draws follow frequencies.
    fn log_frequencies(&self) -> Option<Vec<f64>> {
        let frequencies = self.model().frequencies().filter(|_| self.plan.proposal == Proposal::Unigram)?;
        let total: f64 = frequencies.iter().sum();
        Some(frequencies.iter().map(|weight| (weight / total).ln()).collect())
    }

    /// Lowers each cause's open lag to its largest undecided one; whether any is left.
    fn close_decided(&self, causes: &mut [Cause]) -> bool {
        for cause in causes.iter_mut() {
            let decided = |cause: &Cause, lag: usize| {
                let population = self.population(cause.position, lag);
                let PairState { statistics, test, .. } = &cause.pairs[lag - 1];
                let decided = match self.plan.confidence {
                    Some(_) => test.as_ref().is_some_and(|test| test.decision().is_some()),
                    None => statistics.is_decided(self.plan.threshold, population),
                };
                cause.excludes(lag) || decided
            };
            while cause.open > 0 && decided(cause, cause.open) {
                cause.open -= 1;
            }
        }
        causes.iter().any(|cause| cause.open > 0)
    }
}
