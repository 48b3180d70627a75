//! A look at part of a corpus, before anything is trained on it.

use super::corpus::{Corpus, Survey};
use crate::Error;

/// Longer sequences are cut, so that both halves have some of each.
const PIECE: usize = 256;

/// The first events that are trained on, as places of the most frequent types: pieces of sequences, in two halves by turns.
pub(super) struct Sample {
    pub(super) halves: [Vec<Vec<u16>>; 2],
    /// The type at each place, the most frequent first.
    pub(super) types: Vec<usize>,
}

impl Sample {
    /// Stands for a type that is not looked at.
    pub(super) const OTHER: u16 = u16::MAX;

    /// Of at most so many types, fewer than [`Self::OTHER`], and events.
    pub(super) fn read(corpus: &dyn Corpus, survey: &Survey, types: usize, events: usize) -> Result<Self, Error> {
        let types = frequent(&survey.counts, types);
        let mut places = vec![Self::OTHER; survey.counts.len()];
        for (place, event) in types.iter().enumerate() {
            places[*event] = place as u16;
        }
        let mut halves = [Vec::new(), Vec::new()];
        let (mut read, mut pieces) = (0, 0);
        for (index, sequence) in corpus.pass()?.enumerate() {
            let sequence = sequence?;
            if survey.is_held_out(index) {
                continue;
            }
            let sequence = &sequence[..sequence.len().min(events - read)];
            for piece in sequence.chunks(PIECE) {
                halves[pieces % 2].push(piece.iter().map(|event| places[event.index()]).collect());
                pieces += 1;
            }
            read += sequence.len();
            if read == events {
                break;
            }
        }
        Ok(Self { halves, types })
    }
}

/// The most frequent types.
fn frequent(counts: &[u64], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|event| std::cmp::Reverse(counts[*event]));
    order.truncate(most);
    order
}
