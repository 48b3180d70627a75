//! The type pairs that evidence is gathered for, fixed before any sequence is run.
//!
//! A pair is listed when its cause stands at a tested lag before its effect, not at the same time, in at least
//! [`LEAST_SEQUENCES`] sequences; of more than [`MOST_PAIRS`] such pairs, those in most sequences. What is not listed
//! enters the family of tests with `p = 1`. All shards of a log count the whole log, so that their sums are of the same
//! pairs; the fingerprint says so.
//!
//! Cost: one look at every pair of positions. Causes are gone through in parts, so that no more than [`PART`] pairs of
//! positions are counted at a time.

use std::hash::Hasher;

use rustc_hash::FxHashMap;
use twox_hash::XxHash3_64;

use crate::{EventId, EventSequence, Families, Knowledge, Lag, Memory, Position, Prior, Question};

/// Sequences in which a pair must occur to be tested at all.
pub const LEAST_SEQUENCES: u64 = 5;
/// The most pairs that evidence is gathered for.
pub const MOST_PAIRS: usize = 1 << 21;
/// Pairs of positions that are counted at a time.
const PART: usize = 1 << 25;

/// Type pairs, by cause and then effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairList {
    /// Where the effects of each cause start.
    offsets: Vec<usize>,
    effects: Vec<EventId>,
    /// How many further pairs occurred, in too few sequences or beyond the most.
    unlisted: u64,
    fingerprint: u64,
}

/// Which pairs of positions count.
#[derive(Clone, Copy, Debug)]
pub struct PairScope<'s> {
    /// The number of event types.
    pub types: usize,
    /// The largest lag.
    pub memory: Memory,
    /// The first position that may be a cause.
    pub first_cause: usize,
    /// The end of a case, where it counts as an effect.
    pub end: Option<EventId>,
    /// What is known beforehand.
    pub knowledge: Option<&'s Knowledge>,
    /// The families of event types, and the question: pairs of steps by their first types, or of outcomes.
    pub families: Option<(&'s Families, Question)>,
}

impl PairScope<'_> {
    /// What stands for a pair of types, where the question can be asked of it.
    fn pair(&self, cause: EventId, effect: EventId) -> Option<(EventId, EventId)> {
        match self.families {
            None => Some((cause, effect)),
            Some((families, Question::Whether)) => {
                Some((families.representative(cause), families.representative(effect)))
            }
            Some((families, Question::How)) => {
                let is_type = effect.index() < self.types;
                let asked = is_type && families.has_outcomes(cause) && families.has_outcomes(effect);
                asked.then_some((cause, effect))
            }
        }
    }
}

impl PairList {
    /// The pairs of a log.
    pub fn count(sequences: &[EventSequence], scope: PairScope<'_>) -> Self {
        let longest = sequences.iter().map(|sequence| sequence.events.len()).max().unwrap_or(0);
        let events: usize = sequences.iter().map(|sequence| sequence.events.len()).sum();
        let parts = (events.saturating_mul(scope.memory.within(longest)) / PART + 1) as u32;
        let mut listed: Vec<(u64, EventId, EventId)> = Vec::new();
        let mut unlisted = 0;
        for part in 0..parts {
            // Sequences with the pair, and the last of them.
            let mut counts: FxHashMap<(EventId, EventId), (u64, usize)> = FxHashMap::default();
            for (number, sequence) in sequences.iter().enumerate() {
                for_each_pair(
                    sequence,
                    scope,
                    |cause| cause.0 % parts == part,
                    |types| {
                        let count = counts.entry(types).or_insert((0, usize::MAX));
                        if count.1 != number {
                            *count = (count.0 + 1, number);
                        }
                    },
                );
            }
            unlisted += counts.len() as u64;
            let enough = counts.into_iter().filter(|(_, (count, _))| *count >= LEAST_SEQUENCES);
            listed.extend(enough.map(|((cause, effect), (count, _))| (count, cause, effect)));
        }
        unlisted -= listed.len().min(MOST_PAIRS) as u64;
        if listed.len() > MOST_PAIRS {
            listed.sort_unstable_by_key(|(count, cause, effect)| (u64::MAX - count, *cause, *effect));
            listed.truncate(MOST_PAIRS);
        }
        Self::new(scope.types, listed.into_iter().map(|(_, cause, effect)| (cause, effect)).collect(), unlisted)
    }

    fn new(types: usize, mut pairs: Vec<(EventId, EventId)>, unlisted: u64) -> Self {
        pairs.sort_unstable();
        let mut offsets = vec![0; types + 1];
        let mut hasher = XxHash3_64::with_seed(types as u64);
        for (cause, effect) in &pairs {
            offsets[cause.index() + 1] += 1;
            hasher.write_u32(cause.0);
            hasher.write_u32(effect.0);
        }
        for cause in 0..types {
            offsets[cause + 1] += offsets[cause];
        }
        let effects = pairs.into_iter().map(|(_, effect)| effect).collect();
        Self { offsets, effects, unlisted, fingerprint: hasher.finish() }
    }

    /// The effects of a cause, and the number of the first of these pairs.
    pub fn effects_of(&self, cause: EventId) -> (usize, &[EventId]) {
        let first = self.offsets[cause.index()];
        (first, &self.effects[first..self.offsets[cause.index() + 1]])
    }

    /// Every pair in order of its number.
    pub fn pairs(&self) -> impl Iterator<Item = (EventId, EventId)> + '_ {
        let causes =
            self.offsets.windows(2).zip(0..).flat_map(|(range, cause)| (range[0]..range[1]).map(move |_| cause));
        causes.map(EventId).zip(self.effects.iter().copied())
    }

    /// A pair by its number.
    pub fn pair(&self, number: usize) -> (EventId, EventId) {
        let cause = self.offsets.partition_point(|offset| *offset <= number) - 1;
        (EventId(cause as u32), self.effects[number])
    }

    /// How many pairs are listed.
    pub const fn len(&self) -> usize {
        self.effects.len()
    }

    /// Whether none is.
    pub const fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// How many pairs occurred but are not listed.
    pub const fn unlisted(&self) -> u64 {
        self.unlisted
    }

    /// A hash of all pairs: sums can be merged where it is the same.
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// Visits the types of every pair of positions in scope whose cause is wanted.
fn for_each_pair(
    sequence: &EventSequence,
    scope: PairScope<'_>,
    wanted: impl Fn(EventId) -> bool,
    mut visit: impl FnMut((EventId, EventId)),
) {
    let events = sequence.with_end(scope.end);
    for (position, cause) in events.iter().enumerate().skip(scope.first_cause) {
        if cause.index() >= scope.types || !wanted(*cause) {
            continue;
        }
        for lag in 1..=scope.memory.within(events.len() - 1 - position) {
            let effect = events[position + lag];
            let tied = sequence.tied(Position(position as u32), Position((position + lag) as u32));
            let excluded =
                || scope.knowledge.is_some_and(|known| known.prior(*cause, effect, Lag(lag as u32)) == Prior::Excluded);
            if !tied && !excluded() {
                scope.pair(*cause, effect).into_iter().for_each(&mut visit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(memory: usize) -> PairScope<'static> {
        PairScope { types: 4, memory: Memory::Lags(memory), first_cause: 0, end: None, knowledge: None, families: None }
    }

    #[test]
    fn pairs_of_enough_sequences_are_listed_by_cause_and_effect() {
        let sequence = |n: usize, events: [u32; 3]| EventSequence::new(n.to_string(), events.map(EventId).to_vec());
        let mut sequences: Vec<EventSequence> = (0..5).map(|n| sequence(n, [2, 0, 1])).collect();
        sequences.push(sequence(9, [3, 3, 3]));
        let list = PairList::count(&sequences, scope(1));
        assert_eq!(list.pairs().collect::<Vec<_>>(), [(0, 1), (2, 0)].map(|(a, b)| (EventId(a), EventId(b))));
        assert!(list.pairs().enumerate().all(|(number, pair)| list.pair(number) == pair));
        assert_eq!(list.effects_of(EventId(2)), (1, &[EventId(0)][..]));
        assert_eq!((list.effects_of(EventId(1)).1.len(), list.unlisted()), (0, 1));
        assert_eq!(PairList::count(&sequences, scope(2)).len(), 3);
        assert_ne!(PairList::count(&sequences, scope(2)).fingerprint(), list.fingerprint());
        // What happens at the same time does not count.
        for sequence in &mut sequences {
            sequence.times = Some(vec![1.0, 1.0, 2.0]);
        }
        assert_eq!(PairList::count(&sequences, scope(1)).pairs().collect::<Vec<_>>(), [(EventId(0), EventId(1))]);
    }
}
