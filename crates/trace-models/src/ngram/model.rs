//! Probabilities from counts.

use std::ops::Range;

use rustc_hash::FxHashMap;
use trace_core::numerics::divergence;
use trace_core::theory::Fitness;
use trace_core::{Branches, DensityModel, EventId, EventScore, Measure, ModelError, Reading, Scores};

use super::NgramCounts;

/// An n-gram model.
#[derive(Clone, Debug)]
pub struct NgramModel {
    pub(super) counts: NgramCounts,
    pub(super) order: usize,
    contexts: Vec<Context>,
    /// The followers of all contexts with their discounted counts, ordered by context and event.
    followers: Vec<(u32, f64)>,
    pub(super) frequencies: Option<Vec<f64>>,
    pub(super) fitness: Fitness,
}

/// The statistics of one context.
#[derive(Clone, Debug, Default)]
struct Context {
    start: usize,
    end: usize,
    /// `S`: the sum of discounted counts.
    seen: f64,
    /// The follower with the largest count, and the discounted counts of all others: subtracting a dominant count from
    /// `S` would lose precision.
    top: usize,
    seen_but_top: f64,
    /// `G`: the sum of discounts.
    taken: f64,
}

/// Discounts for counts 1, 2, and 3 or more.
type Discounts = [f64; 3];
/// The discounts where counts of counts give no estimate; typical values of large corpora.
const USUAL_DISCOUNTS: Discounts = [0.6, 1.0, 1.4];

impl NgramModel {
    /// Smooths counts into a model of this order, at most that of the counts.
    pub fn new(mut counts: NgramCounts, order: usize) -> Self {
        let order = order.clamp(1, counts.order);
        counts.truncate(order);
        let depths = depths(&counts);
        let adjusted = adjusted_counts(&counts, &depths, order);
        let discounts = discounts(&adjusted, &depths, order);
        let mut contexts = vec![Context::default(); counts.nodes.len()];
        let mut followers = Vec::with_capacity(adjusted.len());
        for run in adjusted.chunk_by(|a, b| a.0 == b.0) {
            let node = run[0].0 as usize;
            let context = &mut contexts[node];
            context.start = followers.len();
            for (_, event, count) in run {
                let discount = discounts[depths[node]][(*count).min(3) as usize - 1];
                let left = *count as f64 - discount;
                followers.push((*event, left));
                context.seen += left;
                context.taken += discount;
            }
            context.end = followers.len();
            let own = &followers[context.start..context.end];
            context.top = (0..own.len()).fold(0, |best, i| if own[i].1 > own[best].1 { i } else { best });
            context.seen_but_top = (0..own.len()).filter(|i| *i != context.top).map(|i| own[i].1).sum();
        }
        Self { counts, order, contexts, followers, frequencies: None, fitness: Fitness::default() }
    }

    /// The number of events that a prediction uses, plus one.
    pub const fn order(&self) -> usize {
        self.order
    }

    /// The number of distinct n-grams.
    pub fn parameters(&self) -> usize {
        self.followers.len()
    }

    /// Stores what the training measured.
    pub(super) fn set_record(&mut self, frequencies: Option<Vec<f64>>, fitness: Fitness) {
        self.frequencies = frequencies;
        self.fitness = fitness;
    }

    /// Stores the entropy of the process that generated the held-out events, where that is known.
    pub const fn set_entropy(&mut self, entropy: f64) {
        self.fitness.entropy = Some(entropy);
    }

    /// Calls `visit` with the contexts at `position`, shortest first, as long as they were seen in training.
    fn walk(&self, position: usize, event_at: impl Fn(usize) -> EventId, mut visit: impl FnMut(&Context)) {
        let mut node = 0u32;
        visit(&self.contexts[0]);
        for lag in 1..self.order.min(position + 2) {
            let event = if lag > position { self.counts.begin() } else { event_at(position - lag).0 };
            match self.counts.children.get(&(node, event)) {
                Some(child) => node = *child,
                None => return,
            }
            visit(&self.contexts[node as usize]);
        }
    }

    /// The score of one event.
    fn score(&self, position: usize, event: EventId, event_at: impl Fn(usize) -> EventId) -> EventScore {
        let size = self.counts.size as f64;
        let (mut p, mut not_p) = (1.0 / size, (size - 1.0) / size);
        self.walk(position, event_at, |context| {
            let followers = &self.followers[context.start..context.end];
            let (own, others) = match followers.binary_search_by_key(&event.0, |f| f.0) {
                Ok(index) if index == context.top => (followers[index].1, context.seen_but_top),
                Ok(index) => (followers[index].1, context.seen - followers[index].1),
                Err(_) => (0.0, context.seen),
            };
            let total = context.seen + context.taken;
            if total > 0.0 {
                p = (own + context.taken * p) / total;
                not_p = (others + context.taken * not_p) / total;
            }
        });
        EventScore { log_p: p.ln(), log_not_p: not_p.ln() }
    }

    /// The log-distribution at a position.
    fn distribution(&self, position: usize, event_at: impl Fn(usize) -> EventId, row: &mut [f64]) {
        row.fill(1.0 / self.counts.size as f64);
        self.walk(position, event_at, |context| {
            let total = context.seen + context.taken;
            if total > 0.0 {
                for value in row.iter_mut() {
                    *value *= context.taken / total;
                }
                for (event, left) in &self.followers[context.start..context.end] {
                    row[*event as usize] += left / total;
                }
            }
        });
        for value in row {
            *value = value.ln();
        }
    }

    /// Mean loss in nats per target, and the number of targets, over sequences, which may close with the end.
    pub fn loss<'s>(&self, sequences: impl Iterator<Item = &'s [EventId]>) -> (f64, usize) {
        let (mut sum, mut count) = (0.0, 0usize);
        for events in sequences {
            for (position, event) in events.iter().enumerate() {
                sum -= self.score(position, *event, |i| events[i]).log_p;
            }
            count += events.len();
        }
        (sum / count.max(1) as f64, count)
    }
}

/// The length of each node's context.
fn depths(counts: &NgramCounts) -> Vec<usize> {
    let mut depths = vec![0; counts.nodes.len()];
    for (node, (parent, _)) in counts.nodes.iter().enumerate().skip(1) {
        depths[node] = depths[*parent as usize] + 1;
    }
    depths
}

/// `(context, event, count)` sorted by context and event, with raw counts where a context is longest or begins the
/// sequence, and numbers of distinct predecessors elsewhere.
fn adjusted_counts(counts: &NgramCounts, depths: &[usize], order: usize) -> Vec<(u32, u32, u64)> {
    let mut adjusted: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    for (&(node, event), &count) in &counts.followers {
        let depth = depths[node as usize];
        let (parent, added) = counts.nodes[node as usize];
        let begins = depth > 0 && added == counts.begin();
        if depth + 1 == order || (begins && depth + 1 < order) {
            adjusted.insert((node, event), count);
        }
        if depth > 0 && depth < order {
            *adjusted.entry((parent, event)).or_default() += 1;
        }
    }
    let mut list: Vec<_> = adjusted.into_iter().map(|((node, event), count)| (node, event, count)).collect();
    list.sort_unstable();
    list
}

/// Discounts for each context length, from how many n-grams of that length occur once, twice, three and four times.
fn discounts(adjusted: &[(u32, u32, u64)], depths: &[usize], order: usize) -> Vec<Discounts> {
    let mut occurrences = vec![[0u64; 4]; order];
    for (node, _, count) in adjusted {
        if (1..=4).contains(count) {
            occurrences[depths[*node as usize]][*count as usize - 1] += 1;
        }
    }
    occurrences
        .into_iter()
        .map(|n| {
            let n = n.map(|count| count as f64);
            let y = n[0] / (n[0] + 2.0 * n[1]);
            std::array::from_fn(|i| {
                let count = (i + 1) as f64;
                let discount = count - (count + 1.0) * y * n[i + 1] / n[i];
                // A discount must be positive and less than the count.
                if discount > 0.0 && discount < count { discount } else { USUAL_DISCOUNTS[i] }
            })
        })
        .collect()
}

impl DensityModel for NgramModel {
    fn vocabulary_size(&self) -> usize {
        self.counts.size - usize::from(self.counts.end)
    }

    fn predicts_end(&self) -> bool {
        self.counts.end
    }

    fn backbone(&self) -> &'static str {
        "ngram"
    }

    fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        for (position, row) in positions.zip(rows.chunks_exact_mut(self.counts.size)) {
            self.distribution(position, |i| events[i], row);
        }
        Ok(())
    }

    fn read<'a>(&'a self, events: &[EventId]) -> Result<Box<dyn Reading + 'a>, ModelError> {
        let observed = (0..events.len()).map(|q| self.score(q, events[q], |i| events[i])).collect();
        Ok(Box::new(NgramReading { model: self, events: events.to_vec(), observed }))
    }

    fn reach(&self) -> Option<usize> {
        Some(self.order - 1)
    }

    fn frequencies(&self) -> Option<&[f64]> {
        self.frequencies.as_deref()
    }

    fn fitness(&self) -> Fitness {
        self.fitness
    }
}

struct NgramReading<'a> {
    model: &'a NgramModel,
    events: Vec<EventId>,
    observed: Vec<EventScore>,
}

impl Reading for NgramReading<'_> {
    fn observed(&self) -> &[EventScore] {
        &self.observed
    }

    fn distribution(&self, position: usize, row: &mut [f64]) -> Result<(), ModelError> {
        self.model.distribution(position, |i| self.events[i], row);
        Ok(())
    }

    fn score(&self, batch: &[Branches<'_>], scores: &mut Scores) -> Result<(), ModelError> {
        let measure = scores.measure();
        let size = self.model.counts.size;
        let rows = if measure == Measure::Divergence { size } else { 0 };
        let (mut row, mut original) = (vec![0.0; rows], vec![0.0; rows]);
        for (branches, entry) in batch.iter().zip(scores.entries_mut()) {
            for lag in 1..=branches.horizon() {
                let position = branches.start() + lag;
                // Whether the prediction uses a replaced event.
                let touched = lag + 1 < branches.width() + self.model.order;
                if measure == Measure::Divergence && touched {
                    self.model.distribution(position, |i| self.events[i], &mut original);
                }
                for branch in 0..branches.count() {
                    let at = branch * branches.horizon() + lag - 1;
                    let replaced = branches.replacement(branch);
                    let event_at = |i: usize| match i.checked_sub(branches.start()) {
                        Some(offset) if offset < replaced.len() => replaced[offset],
                        _ => self.events[i],
                    };
                    entry.events[at] = if touched {
                        self.model.score(position, self.events[position], event_at)
                    } else {
                        self.observed[position]
                    };
                    match measure {
                        Measure::Event => {}
                        Measure::Divergence if touched => {
                            self.model.distribution(position, event_at, &mut row);
                            entry.divergences[at] = divergence(&original, &row);
                        }
                        Measure::Divergence => entry.divergences[at] = 0.0,
                        Measure::Distribution => {
                            let row = &mut entry.distributions[at * size..][..size];
                            self.model.distribution(position, event_at, row);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
