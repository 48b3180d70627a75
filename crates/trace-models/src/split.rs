//! Which sequences a model is trained on, and which are held out.
//!
//! Whether a sequence is held out, and to which half of a cross-fit it belongs, is decided by its id and the seed alone:
//! the same for every kind of model, whatever the order of the log. Of a sequence that was used, a hash of its id and its
//! first events is kept: 8 bytes per sequence, so that a million sequences take 8 MB. The events tell cases of another log
//! apart that happen to have the same ids, such as line numbers; a case that has gone on since begins as it did.

use std::path::Path;

use trace_core::{EventId, EventSequence};
use twox_hash::XxHash3_64;

use crate::Error;
use crate::tensors::{self, AnyTensor, Tensor, TensorFile};

/// The file of a model folder that says what the model was trained on.
pub const SPLIT: &str = "split.safetensors";
const TRAINED: &str = "trained";
const HELD_OUT: &str = "held_out";

/// This many held-out events determine a loss to a few thousandths of a nat; more would only cost time.
const MAX_HELD_OUT_EVENTS: usize = 1 << 18;
/// Makes the draws of halves independent of those of held-out sequences.
const HALVES: u64 = 0x9e37_79b9_7f4a_7c15;

/// Events at the start of a sequence that tell it from another one with the same id.
const TELLING_EVENTS: usize = 8;

/// What a sequence is remembered by.
fn key(id: &str, events: &[EventId]) -> u64 {
    let start = events.iter().take(TELLING_EVENTS).flat_map(|event| event.0.to_le_bytes());
    let bytes: Vec<u8> = id.bytes().chain([0xff]).chain(start).collect();
    XxHash3_64::oneshot(&bytes)
}

/// The half of a cross-fit that a sequence belongs to: 0 or 1.
pub fn half_of(id: &str, seed: u64) -> usize {
    (XxHash3_64::oneshot_with_seed(seed ^ HALVES, id.as_bytes()) >> 63) as usize
}

/// A random number for each sequence, which decides whether it is held out.
fn draw(id: &str, seed: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, id.as_bytes())
}

/// Decides which sequences of a corpus are held out. Every sequence is added first.
#[derive(Clone, Copy, Debug)]
pub struct HoldOut {
    share: f64,
    seed: u64,
    usable: usize,
    events: usize,
    least: u64,
    most: u64,
}

impl HoldOut {
    /// Holds out this share of sequences; an error if it is none.
    pub fn new(share: f64, seed: u64) -> Result<Self, Error> {
        if !(0.0..1.0).contains(&share) {
            return Err(Error::spec("held-out", format!("{share} is not a share; expected 0 to less than 1")));
        }
        Ok(Self { share, seed, usable: 0, events: 0, least: u64::MAX, most: 0 })
    }

    /// Adds a sequence of this many events.
    pub fn add(&mut self, id: &str, events: usize) {
        if events > 0 {
            let draw = draw(id, self.seed);
            (self.least, self.most) = (self.least.min(draw), self.most.max(draw));
            self.usable += 1;
            self.events += events;
        }
    }

    /// Whether a sequence is held out. If the share is positive and at least two sequences have events, at least one is
    /// held out, and at least one is left to train on. Large corpora hold out less: no more than some 260,000 events.
    pub fn holds_out(&self, id: &str) -> bool {
        let share = self.share.min(MAX_HELD_OUT_EVENTS as f64 / self.events.max(1) as f64);
        let cutoff = ((share * u64::MAX as f64) as u64).max(self.least).min(self.most.saturating_sub(1));
        share > 0.0 && self.usable > 1 && draw(id, self.seed) <= cutoff
    }
}

/// The sequences that a model was trained on, and those that were held out, as hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    trained: Vec<u64>,
    held_out: Vec<u64>,
}

impl Split {
    /// From sequences, and whether each is held out.
    pub fn new<'i>(sequences: impl IntoIterator<Item = (&'i EventSequence, bool)>) -> Self {
        let mut split = Self::default();
        for (sequence, held_out) in sequences {
            split.push(sequence, held_out);
        }
        split.sorted()
    }

    /// Adds a sequence; [`sorted`](Self::sorted) follows when all are there.
    pub(crate) fn push(&mut self, sequence: &EventSequence, held_out: bool) {
        let list = if held_out { &mut self.held_out } else { &mut self.trained };
        list.push(key(&sequence.id, &sequence.events));
    }

    pub(crate) fn sorted(mut self) -> Self {
        self.trained.sort_unstable();
        self.held_out.sort_unstable();
        self
    }

    /// The number of sequences that the model was trained on.
    pub const fn trained(&self) -> usize {
        self.trained.len()
    }

    /// The number of sequences that were held out.
    pub const fn held_out(&self) -> usize {
        self.held_out.len()
    }

    /// Whether the model was trained on this sequence.
    pub fn has_trained_on(&self, sequence: &EventSequence) -> bool {
        self.trained.binary_search(&key(&sequence.id, &sequence.events)).is_ok()
    }

    /// Whether this sequence took part in the training: it was trained on, or it was held out, and so decided when to
    /// stop.
    pub fn has_seen(&self, sequence: &EventSequence) -> bool {
        let key = key(&sequence.id, &sequence.events);
        self.trained.binary_search(&key).is_ok() || self.held_out.binary_search(&key).is_ok()
    }

    /// Whether two models were trained on the same sequence.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (few, many) = if self.trained.len() < other.trained.len() { (self, other) } else { (other, self) };
        few.trained.iter().any(|hash| many.trained.binary_search(hash).is_ok())
    }

    /// All that decides about sequences, as bytes to hash.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = [u8; 8]> {
        let length = (self.trained.len() as u64).to_le_bytes();
        std::iter::once(length).chain(self.trained.iter().chain(&self.held_out).map(|hash| hash.to_le_bytes()))
    }

    /// Writes the file into a model folder.
    pub fn save(&self, folder: &Path) -> Result<(), Error> {
        let list = |values| AnyTensor::U64(Tensor { shape: vec![<[u64]>::len(values)], values });
        tensors::write(&folder.join(SPLIT), &[(TRAINED, list(&self.trained)), (HELD_OUT, list(&self.held_out))])
    }

    /// Reads the file of a model folder, if it has one.
    pub(crate) fn open(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(SPLIT);
        if !path.exists() {
            return Ok(None);
        }
        let mut file = TensorFile::open(&path)?;
        let mut read = |name: &str| {
            let length = file.length(name)?;
            let list: Vec<u64> = file.read(name, &[length])?;
            if list.is_sorted() { Ok(list) } else { Err(file.fault(name, "expected hashes in ascending order")) }
        };
        Ok(Some(Self { trained: read(TRAINED)?, held_out: read(HELD_OUT)? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_out(ids: &[String], share: f64, seed: u64) -> Vec<&String> {
        let mut hold_out = HoldOut::new(share, seed).expect("a share");
        for id in ids {
            hold_out.add(id, 3);
        }
        ids.iter().filter(|id| hold_out.holds_out(id)).collect()
    }

    #[test]
    fn ids_and_the_seed_alone_decide() {
        let ids: Vec<String> = (0..4000).map(|i| format!("case {i}")).collect();
        let found = held_out(&ids, 0.1, 7);
        assert!((350..450).contains(&found.len()), "{}", found.len());
        let mut turned = ids.clone();
        turned.reverse();
        let mut again = held_out(&turned, 0.1, 7);
        again.reverse();
        assert_eq!(found, again, "the order of the log matters");
        assert_ne!(found, held_out(&ids, 0.1, 8));
        let halves: Vec<usize> = ids.iter().map(|id| half_of(id, 7)).collect();
        let second = halves.iter().sum::<usize>();
        assert!((1850..2150).contains(&second), "{second}");
        let both = found.iter().filter(|id| half_of(id, 7) == 1).count();
        assert!((140..260).contains(&both), "halves and held-out sequences go together: {both} of {}", found.len());
    }

    #[test]
    fn small_corpora_keep_something_on_either_side() {
        for count in 2..6 {
            let ids: Vec<String> = (0..count).map(|i| i.to_string()).collect();
            for share in [0.01, 0.5, 0.99] {
                let found = held_out(&ids, share, 1).len();
                assert!(found > 0 && found < count, "{count} {share}: {found}");
            }
            assert!(held_out(&ids, 0.0, 1).is_empty());
        }
        assert!(held_out(&["only".to_owned()], 0.5, 1).is_empty());
        assert!(HoldOut::new(1.0, 1).is_err() && HoldOut::new(f64::NAN, 1).is_err());
    }

    #[test]
    fn a_split_there_and_back() {
        let sequence = |id: &str, length: u32| EventSequence::new(id, (0..length).map(EventId).collect());
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|id| sequence(id, 9));
        let split = Split::new([(&a, false), (&b, true), (&c, false)]);
        assert!(split.has_trained_on(&a) && !split.has_trained_on(&b) && !split.has_trained_on(&d));
        assert!(split.has_seen(&b) && !split.has_seen(&d));
        // The case has gone on since; and another log has a case of the same name.
        assert!(split.has_trained_on(&sequence("a", 12)) && !split.has_trained_on(&sequence("a", 3)));
        assert_eq!((split.trained(), split.held_out()), (2, 1));
        assert!(split.overlaps(&Split::new([(&c, false)])) && !split.overlaps(&Split::new([(&b, false)])));
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Split::open(folder.path()).expect("nothing there"), None);
        split.save(folder.path()).expect("a file");
        assert_eq!(Split::open(folder.path()).expect("a file"), Some(split));
    }

    #[test]
    fn hashes_out_of_order_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        Split { trained: vec![2, 1], held_out: vec![] }.save(folder.path()).expect("a file");
        let error = Split::open(folder.path()).expect_err("out of order").to_string();
        assert!(error.ends_with("tensor trained: expected hashes in ascending order"), "{error}");
    }
}
