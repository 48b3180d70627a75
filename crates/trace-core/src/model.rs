//! The seam between discovery and density models.
//!
//! Discovery asks one question, very often: *had the past been edited like this, how probable would the observed
//! event have been?* A model answers it in two steps. [`DensityModel::read`] takes the observed sequence in once
//! and keeps whatever makes edits cheap – a key-value cache, recurrent states, projected embeddings.
//! [`Reading::score`] then takes a batch of [`Branches`]: copies of the sequence that share the observed prefix up
//! to some position and differ from there on.
//!
//! # Implementing a model
//!
//! The least one can do is a plain forward pass, [`DensityModel::forward`]; everything else has a default that
//! works, slowly, from it ([`PlainReading`]). A model that wants speed overrides `read` and must then promise:
//!
//! * **Same numbers.** `score` gives what `forward` on the edited sequence gives, up to rounding.
//! * **Causal rows.** The row of position `q` depends on events before `q` only.
//! * **Finite scores.** Every `log p` and `log(1 − p)` is finite. `log(1 − p)` comes from the log-sum over the
//!   *other* types: near-certain events are common, and `1 − exp(log p)` has no digits left for them.
//! * **Order of work.** The numbers do not depend on the number of threads. `score` may be called from many threads
//!   at once; it may use rayon inside.
//! * **Events and the end only.** Begin, padding and unknown tokens are the model's own affair. A row ranges over the
//!   `V` event types and, where the model [predicts the end](DensityModel::predicts_end) of a case, has the end as one
//!   more column behind them; rows are normalized over their columns. The end is a target, never an input: a sequence
//!   that is read may close with [`DensityModel::end`], and nothing follows it.
//!
//! Cost to aim at: `read` once per sequence, then `branches × horizon` token-steps per entry of a batch, and memory
//! that does not hold `branches × horizon × V` numbers unless [`Measure::Distribution`] asks for them.

use std::ops::Range;

use crate::numerics::{EventScore, divergence};
use crate::theory::Fitness;
use crate::{EventId, ModelError};

/// Any autoregressive model `P_θ(X_t | x_{<t})` over a fixed vocabulary of event types.
pub trait DensityModel: Send + Sync {
    /// The number of event types `V`, special tokens not counted.
    fn vocabulary_size(&self) -> usize;

    /// The plain forward pass: the log-distribution over event types at each of `positions`.
    ///
    /// `rows` holds `positions.len()` rows of [`row_size`](Self::row_size) numbers; row `q` is
    /// `log P(X_q = · | events[..q])`. `events` reaches at least to `positions.end − 1`; what lies at or beyond a row's
    /// own position must not influence it. All ids are below `V`, but for an end in the last place.
    fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError>;

    /// The plain forward pass for several sequences of equal length at once: `rows` holds the rows of the first, then
    /// those of the second, and so on. Models that gain from batches, or that answer from another process, override it.
    fn forward_batch(
        &self,
        sequences: &[Vec<EventId>],
        positions: Range<usize>,
        rows: &mut [f64],
    ) -> Result<(), ModelError> {
        let each = positions.len() * self.row_size();
        for (events, rows) in sequences.iter().zip(rows.chunks_exact_mut(each)) {
            self.forward(events, positions.clone(), rows)?;
        }
        Ok(())
    }

    /// Takes one observed sequence in, so that many edits of it can be scored. All ids are below `V`, but for an
    /// [end](Self::end) in the last place.
    fn read<'a>(&'a self, events: &[EventId]) -> Result<Box<dyn Reading + 'a>, ModelError> {
        Ok(Box::new(PlainReading::new(self, events)?))
    }

    /// Short name of the architecture, such as `ngram`.
    fn backbone(&self) -> &str;

    /// Whether the first event of a sequence has a probability (models that start with a begin token).
    fn predicts_first(&self) -> bool {
        true
    }

    /// Whether "the case ends here" competes with the event types for probability.
    fn predicts_end(&self) -> bool {
        false
    }

    /// The end of a case as a target, where the model [predicts](Self::predicts_end) it: the id behind all types.
    fn end(&self) -> Option<EventId> {
        self.predicts_end().then(|| EventId(self.vocabulary_size() as u32))
    }

    /// Numbers per row of log-probabilities: one per event type, and one for the end where it is predicted.
    fn row_size(&self) -> usize {
        self.vocabulary_size() + usize::from(self.predicts_end())
    }

    /// The largest lag at which an event can matter to this model, if it has a limit.
    fn reach(&self) -> Option<usize> {
        None
    }

    /// The longest sequence the model reads, if it has a limit.
    fn max_length(&self) -> Option<usize> {
        None
    }

    /// The longest sequence the model was trained on, where that is known and it reads longer ones all the same.
    fn trained_length(&self) -> Option<usize> {
        None
    }

    /// Limits the RAM, in bytes, that the model uses for itself and for what it reads and scores. Models that always
    /// need little RAM can ignore the limit.
    fn set_ram_limit(&mut self, _bytes: usize) {}

    /// An error if sequences of `longest` events need more RAM than the limit.
    fn check_ram(&self, _longest: usize) -> Result<(), ModelError> {
        Ok(())
    }

    /// How many causes' branches the model wants in one call of [`Reading::score`]. More make larger matrix products,
    /// fewer make more calls that can run in parallel.
    fn causes_together(&self) -> usize {
        8
    }

    /// How often each type occurred in training, as weights that need not sum to 1; for the `unigram` proposal.
    fn frequencies(&self) -> Option<&[f64]> {
        None
    }

    /// How well the model predicts, as far as that is known.
    fn fitness(&self) -> Fitness {
        Fitness::default()
    }
}

/// One observed sequence as a model has read it.
pub trait Reading: Send + Sync {
    /// The score of each observed event given the observed past. The first is meaningless for a model that does
    /// not [predict it](DensityModel::predicts_first).
    fn observed(&self) -> &[EventScore];

    /// The log-distribution at `position` given the observed past; `row` holds
    /// [`row_size`](DensityModel::row_size) numbers.
    fn distribution(&self, position: usize, row: &mut [f64]) -> Result<(), ModelError>;

    /// Scores every branch of every entry of the batch.
    ///
    /// `scores` comes laid out for the batch ([`Scores::lay_out`]); the model fills it in.
    fn score(&self, batch: &[Branches<'_>], scores: &mut Scores) -> Result<(), ModelError>;
}

/// `N` edited continuations of the observed sequence that part from it at the same position.
///
/// Branch `n` equals the observed sequence except at positions `start .. start + width`, where it has
/// `replacements[n * width ..][.. width]`. To be scored are positions `start + 1 ..= start + horizon`, that is lags
/// `1 ..= horizon`, and always with the *observed* event of each position as the target.
#[derive(Clone, Copy, Debug)]
pub struct Branches<'a> {
    start: usize,
    horizon: usize,
    width: usize,
    replacements: &'a [EventId],
}

impl<'a> Branches<'a> {
    /// Branches that replace `width` events from `start` on.
    ///
    /// # Panics
    ///
    /// When `horizon` or `width` is 0 or `replacements` does not divide into rows of `width`.
    pub fn new(start: usize, horizon: usize, width: usize, replacements: &'a [EventId]) -> Self {
        assert!(horizon > 0 && width > 0, "branches need a horizon and a width");
        assert!(replacements.len().is_multiple_of(width), "replacements come in rows of {width}");
        Self { start, horizon, width, replacements }
    }

    /// The first replaced position.
    pub const fn start(&self) -> usize {
        self.start
    }

    /// The largest lag to score.
    pub const fn horizon(&self) -> usize {
        self.horizon
    }

    /// How many positions each branch replaces.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// The number of branches `N`.
    pub const fn count(&self) -> usize {
        self.replacements.len() / self.width
    }

    /// What branch `branch` has at positions `start .. start + width`.
    pub fn replacement(&self, branch: usize) -> &'a [EventId] {
        &self.replacements[branch * self.width..][..self.width]
    }

    /// The positions to score.
    pub const fn targets(&self) -> Range<usize> {
        self.start + 1..self.start + self.horizon + 1
    }

    /// The edited sequence of one branch, as far as the last scored position looks back at it.
    pub fn edited(&self, observed: &[EventId], branch: usize) -> Vec<EventId> {
        let mut sequence = observed[..self.start + self.horizon].to_vec();
        for (slot, event) in sequence[self.start..].iter_mut().zip(self.replacement(branch)) {
            *slot = *event;
        }
        sequence
    }
}

/// What to return for each branch and lag besides the score of the observed event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Nothing more.
    #[default]
    Event,
    /// The divergence `KL(observed ‖ branch)` of the whole next-event distributions.
    Divergence,
    /// The whole log-distribution: a row for each branch and lag.
    Distribution,
}

/// The answers to a batch of [`Branches`], laid out entry by entry, branch by branch, lag by lag.
#[derive(Debug, Default)]
pub struct Scores {
    measure: Measure,
    row_size: usize,
    shapes: Vec<(usize, usize)>, // (offset, horizon) of each entry
    events: Vec<EventScore>,
    divergences: Vec<f64>,
    distributions: Vec<f64>,
}

/// The part of [`Scores`] that belongs to one entry of a batch.
#[derive(Debug)]
pub struct EntryMut<'a> {
    /// `branches × horizon` scores of the observed event.
    pub events: &'a mut [EventScore],
    /// `branches × horizon` divergences; empty unless [`Measure::Divergence`] is asked for.
    pub divergences: &'a mut [f64],
    /// `branches × horizon` rows of log-probabilities; empty unless [`Measure::Distribution`] is asked for.
    pub distributions: &'a mut [f64],
}

impl Scores {
    /// Makes room for the answers to `batch`, reusing what was allocated before.
    pub fn lay_out(&mut self, batch: &[Branches<'_>], measure: Measure, row_size: usize) {
        self.measure = measure;
        self.row_size = row_size;
        self.shapes.clear();
        let mut total = 0;
        for branches in batch {
            self.shapes.push((total, branches.horizon()));
            total += branches.count() * branches.horizon();
        }
        self.shapes.push((total, 0));
        let nothing = EventScore { log_p: f64::NAN, log_not_p: f64::NAN };
        refill(&mut self.events, total, nothing);
        refill(&mut self.divergences, if measure == Measure::Divergence { total } else { 0 }, f64::NAN);
        let rows = if measure == Measure::Distribution { total * row_size } else { 0 };
        refill(&mut self.distributions, rows, f64::NAN);
    }

    /// What is asked for.
    pub const fn measure(&self) -> Measure {
        self.measure
    }

    /// Where the answers go, entry by entry; they do not overlap, so that entries can be filled together.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = EntryMut<'_>> {
        let size = self.row_size;
        let (mut events, mut divergences, mut distributions) =
            (self.events.as_mut_slice(), self.divergences.as_mut_slice(), self.distributions.as_mut_slice());
        self.shapes.windows(2).map(move |pair| {
            let count = pair[1].0 - pair[0].0;
            // Measures that were not asked for have no numbers to split off.
            EntryMut {
                events: events.split_off_mut(..count).unwrap_or_default(),
                divergences: divergences.split_off_mut(..count).unwrap_or_default(),
                distributions: distributions.split_off_mut(..count * size).unwrap_or_default(),
            }
        })
    }

    fn index(&self, entry: usize, branch: usize, lag: usize) -> usize {
        let (offset, horizon) = self.shapes[entry];
        debug_assert!(lag >= 1 && lag <= horizon);
        offset + branch * horizon + lag - 1
    }

    /// The score of the observed event `lag` events after the entry's start, in one branch.
    pub fn event(&self, entry: usize, branch: usize, lag: usize) -> EventScore {
        self.events[self.index(entry, branch, lag)]
    }

    /// The divergence there; only for [`Measure::Divergence`].
    pub fn divergence(&self, entry: usize, branch: usize, lag: usize) -> f64 {
        self.divergences[self.index(entry, branch, lag)]
    }

    /// The log-distribution there; only for [`Measure::Distribution`].
    pub fn distribution(&self, entry: usize, branch: usize, lag: usize) -> &[f64] {
        &self.distributions[self.index(entry, branch, lag) * self.row_size..][..self.row_size]
    }
}

fn refill<T: Clone>(buffer: &mut Vec<T>, length: usize, value: T) {
    buffer.clear();
    buffer.resize(length, value);
}

/// The default [`Reading`]: every branch is a forward pass of its own, in batches.
///
/// Correct for any model, and the yardstick for readings that are fast. Cost: a forward pass over `start + horizon`
/// events for each branch.
#[derive(Debug)]
pub struct PlainReading<'a, M: ?Sized> {
    model: &'a M,
    events: Vec<EventId>,
    observed: Vec<EventScore>,
}

/// How many numbers of distributions are held at a time (32 MiB).
const ROW_BUDGET: usize = 1 << 22;

impl<'a, M: DensityModel + ?Sized> PlainReading<'a, M> {
    /// Reads `events` with one forward pass.
    pub fn new(model: &'a M, events: &[EventId]) -> Result<Self, ModelError> {
        let mut observed = Vec::with_capacity(events.len());
        let first = usize::from(!model.predicts_first()).min(events.len());
        observed.extend((0..first).map(|_| EventScore { log_p: f64::NAN, log_not_p: f64::NAN }));
        for_each_row(model, events, first..events.len(), |position, row| {
            observed.push(EventScore::from_row(row, events[position].index()));
        })?;
        Ok(Self { model, events: events.to_vec(), observed })
    }
}

/// Runs the forward pass over `positions` in pieces of bounded memory.
fn for_each_row<M: DensityModel + ?Sized>(
    model: &M,
    events: &[EventId],
    positions: Range<usize>,
    mut visit: impl FnMut(usize, &[f64]),
) -> Result<(), ModelError> {
    let size = model.row_size();
    let step = (ROW_BUDGET / size).max(1);
    let mut rows = vec![0.0; step.min(positions.len()) * size];
    let mut from = positions.start;
    while from < positions.end {
        let to = (from + step).min(positions.end);
        let rows = &mut rows[..(to - from) * size];
        model.forward(events, from..to, rows)?;
        for (position, row) in (from..to).zip(rows.chunks_exact(size)) {
            visit(position, row);
        }
        from = to;
    }
    Ok(())
}

impl<M: DensityModel + ?Sized> Reading for PlainReading<'_, M> {
    fn observed(&self) -> &[EventScore] {
        &self.observed
    }

    fn distribution(&self, position: usize, row: &mut [f64]) -> Result<(), ModelError> {
        self.model.forward(&self.events, position..position + 1, row)
    }

    fn score(&self, batch: &[Branches<'_>], scores: &mut Scores) -> Result<(), ModelError> {
        let measure = scores.measure();
        for (branches, mut entry) in batch.iter().zip(scores.entries_mut()) {
            let mut originals = Vec::new();
            if measure == Measure::Divergence {
                for_each_row(self.model, &self.events, branches.targets(), |_, row| originals.extend_from_slice(row))?;
            }
            self.score_entry(branches, measure, &originals, &mut entry)?;
        }
        Ok(())
    }
}

impl<M: DensityModel + ?Sized> PlainReading<'_, M> {
    /// Scores the branches of one entry, as many at a time and as far as memory allows. `originals` are the observed
    /// rows of the entry's targets where divergences from them are asked for.
    fn score_entry(
        &self,
        branches: &Branches<'_>,
        measure: Measure,
        originals: &[f64],
        entry: &mut EntryMut<'_>,
    ) -> Result<(), ModelError> {
        let size = self.model.row_size();
        let targets = branches.targets();
        let span = (ROW_BUDGET / size).clamp(1, branches.horizon());
        let together = (ROW_BUDGET / (span * size)).clamp(1, branches.count().max(1));
        let mut rows = vec![0.0; together * span * size];
        for first in (0..branches.count()).step_by(together) {
            let count = together.min(branches.count() - first);
            let sequences: Vec<Vec<EventId>> =
                (first..first + count).map(|branch| branches.edited(&self.events, branch)).collect();
            for from in targets.clone().step_by(span) {
                let positions = from..(from + span).min(targets.end);
                let rows = &mut rows[..count * positions.len() * size];
                self.model.forward_batch(&sequences, positions.clone(), rows)?;
                let places = (first..).flat_map(|branch| positions.clone().map(move |position| (branch, position)));
                for ((branch, position), row) in places.zip(rows.chunks_exact(size)) {
                    let lag = position - branches.start();
                    let at = branch * branches.horizon() + lag - 1;
                    entry.events[at] = EventScore::from_row(row, self.events[position].index());
                    match measure {
                        Measure::Event => {}
                        Measure::Divergence => {
                            entry.divergences[at] = divergence(&originals[(lag - 1) * size..][..size], row);
                        }
                        Measure::Distribution => entry.distributions[at * size..][..size].copy_from_slice(row),
                    }
                }
            }
        }
        Ok(())
    }
}
