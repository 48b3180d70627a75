//! Sequences to train on. They are read again for every epoch, so that a corpus need not fit in memory.

use std::hash::Hasher;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use trace_core::random::{Purpose, Streams};
use trace_core::{EventId, EventSequence};
use twox_hash::XxHash3_64;

use super::objective::Window;
use crate::Error;
use crate::ngram::{NgramCounts, NgramModel, targets_of};
use crate::split::{HoldOut, Split};

/// Sequences that can be read repeatedly, with the same result each time.
pub trait Corpus: Sync {
    /// One pass over all sequences, in order.
    fn pass(&self) -> Result<SequencePass<'_>, Error>;
}

/// One pass over a corpus.
pub type SequencePass<'c> = Box<dyn Iterator<Item = Result<EventSequence, Error>> + 'c>;

impl Corpus for Vec<EventSequence> {
    fn pass(&self) -> Result<SequencePass<'_>, Error> {
        Ok(Box::new(self.iter().map(|sequence| Ok(sequence.clone()))))
    }
}

/// Open sequences that are called `s0`, `s1` and so on.
impl Corpus for Vec<Vec<EventId>> {
    fn pass(&self) -> Result<SequencePass<'_>, Error> {
        let named = |(index, events): (usize, &Vec<EventId>)| EventSequence::new(format!("s{index}"), events.clone());
        Ok(Box::new(self.iter().enumerate().map(move |sequence| Ok(named(sequence)))))
    }
}

/// Training events that the n-gram baseline is fitted to, and its largest order.
const BASELINE_EVENTS: usize = 500_000;
const BASELINE_ORDER: usize = 3;

/// Counts, baselines and the held-out split of a corpus.
#[derive(Clone, Debug)]
pub struct CorpusStatistics {
    /// Number of sequences.
    pub sequences: usize,
    /// Number of events in all sequences.
    pub events: usize,
    /// Number of targets in all sequences: events, and ends of cases where these are predicted.
    pub targets: usize,
    /// The number of targets of the longest sequence.
    pub longest: usize,
    /// How often each type occurs in the training sequences.
    pub counts: Vec<u64>,
    /// The end of a case as a target, where it is predicted: the id behind all types.
    pub end: Option<EventId>,
    /// Targets of held-out sequences, which are not trained on.
    pub held_out: Vec<Vec<EventId>>,
    /// Which sequences are trained on and which are held out.
    pub split: Split,
    /// Held-out loss of the frequencies of events (and ends), if any sequence is held out.
    pub unigram_loss: Option<f64>,
    /// Order and held-out loss of the best n-gram model.
    pub ngram_loss: Option<(usize, f64)>,
    /// A hash of all sequences in order.
    pub fingerprint: u64,
    hold_out: HoldOut,
}

impl CorpusStatistics {
    /// Reads every sequence twice: first to count, then to hold out this share of them. The end of a case is no target.
    pub fn new(corpus: &dyn Corpus, vocabulary_size: usize, share: f64, seed: u64) -> Result<Self, Error> {
        Self::with_end(corpus, vocabulary_size, false, share, seed)
    }

    /// The same where the end of each case that ended is a target too, if `end` says so.
    pub fn with_end(
        corpus: &dyn Corpus,
        vocabulary_size: usize,
        end: bool,
        share: f64,
        seed: u64,
    ) -> Result<Self, Error> {
        let mut hold_out = HoldOut::new(share, seed)?;
        if vocabulary_size < 2 {
            let reason = format!("only {vocabulary_size} type; at least 2 are needed to learn anything");
            return Err(Error::spec("events", reason));
        }
        let end = end.then_some(EventId(vocabulary_size as u32));
        let (mut sequences, mut events, mut targets, mut longest) = (0, 0, 0, 0);
        let mut hasher = XxHash3_64::new();
        for sequence in corpus.pass()? {
            let sequence = sequence?;
            hold_out.add(&sequence.id, sequence.events.len());
            sequences += 1;
            events += sequence.events.len();
            hasher.write(sequence.id.as_bytes());
            let sequence = targets_of(&sequence, end);
            hasher.write_usize(sequence.len());
            for event in sequence.iter() {
                hasher.write_u32(event.0);
            }
            targets += sequence.len();
            longest = longest.max(sequence.len());
        }
        let mut statistics = Self {
            sequences,
            events,
            targets,
            longest,
            counts: vec![0; vocabulary_size],
            end,
            held_out: Vec::new(),
            split: Split::default(),
            unigram_loss: None,
            ngram_loss: None,
            fingerprint: hasher.finish(),
            hold_out,
        };
        let baseline = statistics.count(corpus)?;
        statistics.measure_baselines(&baseline);
        Ok(statistics)
    }

    /// The second reading: splits the corpus and counts what is trained on.
    fn count(&mut self, corpus: &dyn Corpus) -> Result<NgramCounts, Error> {
        let mut baseline = NgramCounts::new(self.outcomes(), BASELINE_ORDER);
        let mut counted = 0;
        let mut split = Split::default();
        for sequence in corpus.pass()? {
            let sequence = sequence?;
            let held_out = self.is_held_out(&sequence.id);
            split.push(&sequence, held_out);
            if held_out {
                self.held_out.push(targets_of(&sequence, self.end).into_owned());
                continue;
            }
            for event in &sequence.events {
                self.counts[event.index()] += 1;
            }
            if counted < BASELINE_EVENTS {
                counted += sequence.events.len();
                baseline.add(&targets_of(&sequence, self.end));
            }
        }
        self.split = split.sorted();
        Ok(baseline)
    }

    /// The number of things that can come next: every type, and the end where it is predicted.
    pub const fn outcomes(&self) -> usize {
        self.counts.len() + self.end.is_some() as usize
    }

    /// Whether the sequence with this id is held out.
    pub(super) fn is_held_out(&self, id: &str) -> bool {
        self.hold_out.holds_out(id)
    }

    fn measure_baselines(&mut self, counts: &NgramCounts) {
        let held_out = || self.held_out.iter().map(Vec::as_slice);
        let mut losses = Vec::new();
        for order in 1..=BASELINE_ORDER {
            let (loss, events) = NgramModel::new(counts.clone(), order).loss(held_out());
            if events > 0 {
                losses.push((order, loss));
            }
        }
        self.unigram_loss = losses.first().map(|(_, loss)| *loss);
        self.ngram_loss = losses.into_iter().skip(1).min_by(|a, b| a.1.total_cmp(&b.1));
    }

    /// The number of held-out events, without ends.
    pub fn held_out_events(&self) -> usize {
        self.events - self.training_events()
    }

    /// The number of events to train on.
    pub fn training_events(&self) -> usize {
        self.counts.iter().sum::<u64>() as usize
    }
}

/// Cuts a sequence into windows of at most `length` events. With a begin token, the first window starts with that token
/// and each later window with the last event of the window before, so that every event has a token before it. Without
/// one, windows contain only their events. `first` is the length of the first window.
pub(crate) fn windows(events: &[EventId], begin: Option<u32>, length: usize, first: usize) -> Vec<Window> {
    let tokens: Vec<u32> = begin.into_iter().chain(events.iter().map(|event| event.0)).collect();
    let before = usize::from(begin.is_some());
    let mut list = Vec::new();
    let (mut from, mut size) = (0, first.clamp(1, length));
    while from + before < tokens.len() {
        let to = (from + before + size).min(tokens.len());
        list.push(tokens[from..to].to_vec());
        (from, size) = (to - before, length);
    }
    list
}

/// Size of the shuffle buffer in events; a smaller corpus is shuffled as a whole.
const SHUFFLE_EVENTS: usize = 1 << 24;

/// Batches of windows, epoch after epoch, in an order that depends only on the seed.
pub(crate) struct Batches<'c> {
    corpus: &'c dyn Corpus,
    statistics: &'c CorpusStatistics,
    shape: BatchShape,
    seed: u64,
    epoch: u32,
    pass: Option<SequencePass<'c>>,
    random: ChaCha8Rng,
    waiting: Vec<Window>,
    events: usize,
}

/// How batches are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchShape {
    pub(crate) begin: Option<u32>,
    pub(crate) windows: usize,
    pub(crate) length: usize,
}

impl<'c> Batches<'c> {
    pub(crate) fn new(corpus: &'c dyn Corpus, statistics: &'c CorpusStatistics, shape: BatchShape, seed: u64) -> Self {
        let random = Streams::new(seed, "order").stream(Purpose::Shuffle, 0, 0);
        Self { corpus, statistics, shape, seed, epoch: 0, pass: None, random, waiting: Vec::new(), events: 0 }
    }

    /// The number of epochs that have begun.
    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    pub(crate) fn next(&mut self) -> Result<Vec<Window>, Error> {
        let mut batch = Vec::with_capacity(self.shape.windows);
        while batch.len() < self.shape.windows {
            self.fill()?;
            let at = self.random.random_range(0..self.waiting.len());
            let window = self.waiting.swap_remove(at);
            self.events -= window.len();
            batch.push(window);
        }
        Ok(batch)
    }

    /// Reads until the shuffle buffer is full, and starts the next epoch when one ends.
    fn fill(&mut self) -> Result<(), Error> {
        let mut empty_epochs = 0;
        while self.events < SHUFFLE_EVENTS {
            let Some(pass) = &mut self.pass else {
                if !self.waiting.is_empty() {
                    return Ok(()); // all windows of an epoch come before those of the next
                }
                if empty_epochs > 1 {
                    return Err(Error::spec("events", "there is nothing to train on"));
                }
                empty_epochs += 1;
                self.epoch += 1;
                self.random = Streams::new(self.seed, "order").stream(Purpose::Shuffle, self.epoch, 0);
                self.pass = Some(self.corpus.pass()?);
                continue;
            };
            match pass.next().transpose()? {
                None => self.pass = None,
                Some(sequence) if self.statistics.is_held_out(&sequence.id) => {}
                Some(sequence) => {
                    let sequence = targets_of(&sequence, self.statistics.end);
                    // Long sequences are cut at other positions in each epoch.
                    let whole = sequence.len() <= self.shape.length;
                    let first = if whole { self.shape.length } else { self.random.random_range(1..=self.shape.length) };
                    for window in windows(&sequence, self.shape.begin, self.shape.length, first) {
                        self.events += window.len();
                        self.waiting.push(window);
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(count: usize) -> Vec<Vec<EventId>> {
        (0..count).map(|i| (0..3 + i % 5).map(|j| EventId(((i + j) % 7) as u32)).collect()).collect()
    }

    #[test]
    fn windows_predict_every_event_once() {
        let events: Vec<EventId> = (0..11).map(EventId).collect();
        for first in 1..5 {
            let cut = windows(&events, Some(99), 4, first);
            let predicted: Vec<u32> = cut.iter().flat_map(|window| window[1..].to_vec()).collect();
            assert_eq!(predicted, (0..11).collect::<Vec<_>>());
            assert_eq!((cut[0][0], cut[0].len()), (99, first + 1));
            assert!(cut.iter().all(|window| window.len() <= 5));
            assert!(cut.windows(2).all(|pair| pair[0].last() == pair[1].first()));
            let bare = windows(&events, None, 4, first);
            assert_eq!(bare.concat(), (0..11).collect::<Vec<_>>());
            assert!(bare[0].len() == first && bare.iter().all(|window| (1..=4).contains(&window.len())));
        }
    }

    #[test]
    fn an_epoch_has_every_training_sequence_once() {
        let corpus = corpus(40);
        let statistics = CorpusStatistics::new(&corpus, 7, 0.2, 5).unwrap();
        assert!(!statistics.held_out.is_empty() && statistics.held_out.len() < 20);
        let kept = statistics.sequences - statistics.held_out.len();
        let shape = BatchShape { begin: Some(7), windows: 1, length: 64 };
        let mut batches = Batches::new(&corpus, &statistics, shape, 5);
        let mut epochs = Vec::new();
        for _ in 0..2 {
            let drawn: Vec<Window> = (0..kept).flat_map(|_| batches.next().unwrap()).collect();
            epochs.push(drawn);
        }
        assert_eq!(batches.epoch(), 2);
        assert_ne!(epochs[0], epochs[1], "epochs are in the same order");
        for epoch in &mut epochs {
            epoch.sort();
        }
        assert_eq!(epochs[0], epochs[1]);
        let held: usize = statistics.held_out.iter().map(Vec::len).sum();
        assert_eq!(statistics.training_events() + held, statistics.events);
        let mut again = Batches::new(&corpus, &statistics, BatchShape { windows: 3, ..shape }, 5);
        let mut same = Batches::new(&corpus, &statistics, BatchShape { windows: 3, ..shape }, 5);
        for _ in 0..50 {
            assert_eq!(again.next().unwrap(), same.next().unwrap());
        }
    }

    #[test]
    fn ends_are_targets_of_cases_that_ended() {
        let mut corpus: Vec<EventSequence> =
            corpus(40).into_iter().enumerate().map(|(i, events)| EventSequence::new(i.to_string(), events)).collect();
        let open = CorpusStatistics::with_end(&corpus, 7, true, 0.2, 5).unwrap();
        for sequence in corpus.iter_mut().step_by(2) {
            sequence.ended = true;
        }
        corpus.push(EventSequence { ended: true, ..EventSequence::new("nothing", Vec::new()) });
        let without = CorpusStatistics::new(&corpus, 7, 0.2, 5).unwrap();
        let with = CorpusStatistics::with_end(&corpus, 7, true, 0.2, 5).unwrap();
        assert_eq!((with.events, with.targets, without.targets), (open.events, open.events + 20, open.events));
        assert_eq!((with.longest, without.longest, with.outcomes()), (8, 7, 8));
        assert_eq!((&with.counts, &with.split), (&without.counts, &without.split));
        assert!(with.fingerprint != open.fingerprint && with.fingerprint != without.fingerprint);
        assert_eq!(with.held_out.len(), without.held_out.len());
        let shape = BatchShape { begin: Some(8), windows: 1, length: 64 };
        let mut batches = Batches::new(&corpus, &with, shape, 5);
        let kept = with.sequences - 1 - with.held_out.len();
        let drawn: Vec<Window> = (0..kept).flat_map(|_| batches.next().unwrap()).collect();
        let held_out = with.held_out.iter().filter(|targets| targets.last() == Some(&EventId(7))).count();
        assert_eq!(drawn.iter().filter(|window| window.last() == Some(&7)).count() + held_out, 20);
        assert!(drawn.iter().all(|window| window[0] == 8 && !window[..window.len() - 1].contains(&7)));
    }
}
