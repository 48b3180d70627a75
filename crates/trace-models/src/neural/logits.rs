//! Plain forward passes: the logits of whole sequences.
//!
//! Sequences go through the network some [`ROWS`] tokens at a time, in parallel, and each pass leaves its logits where the
//! head's product puts them: `rows × V` numbers are written once and not copied. Passes share their buffers with those
//! of discovery. What a pass computes depends on the sequences alone, not on the number of threads.

use std::ops::Range;

use rayon::prelude::*;

use super::architecture::{Architecture, Past, room};
use super::head;
use super::model::NeuralModel;
use super::rows::{Order, Rows};

/// Tokens of a pass.
const ROWS: usize = 512;

/// Logits over all tokens after each token of some sequences.
#[derive(Clone, Debug, PartialEq)]
pub struct Logits {
    /// Of the sequences of a pass, one after the other.
    passes: Vec<Vec<f32>>,
    /// The pass of each sequence, and its numbers there.
    places: Vec<(usize, Range<usize>)>,
}

impl Logits {
    /// Those of each sequence in turn: `V` numbers for each of its tokens.
    pub fn sequences(&self) -> impl Iterator<Item = &[f32]> {
        self.places.iter().map(|(pass, place)| &self.passes[*pass][place.clone()])
    }
}

impl<A: Architecture> NeuralModel<A> {
    /// The logits of sequences of tokens.
    pub(crate) fn logits_of(&self, sequences: &[Vec<u32>]) -> Logits {
        let tokens = self.network.tokens();
        let longest = sequences.iter().map(Vec::len).max().unwrap_or(1).max(1);
        let each = (ROWS / longest).max(1);
        let mut places = Vec::with_capacity(sequences.len());
        for (pass, part) in sequences.chunks(each).enumerate() {
            let mut from = 0;
            for sequence in part {
                places.push((pass, from..from + sequence.len() * tokens));
                from += sequence.len() * tokens;
            }
        }
        Logits { passes: sequences.par_chunks(each).map(|part| self.pass_of(part)).collect(), places }
    }

    /// One pass: all logits of some sequences, one sequence after the other.
    fn pass_of(&self, sequences: &[Vec<u32>]) -> Vec<f32> {
        let (tokens, width) = (self.network.tokens(), self.network.width());
        let groups: Vec<_> = sequences.iter().map(|sequence| (0, sequence.len(), 1)).collect();
        let rows = Rows::new(&groups, A::ORDER, |group, _, step| sequences[group][step]);
        let mut logits = vec![0.0; rows.len() * tokens];
        let head = &self.weights[self.network.head()];
        self.with_space(|space| {
            self.network.forward(&self.weights, &rows, Past::Nothing, &mut space.tape);
            let hidden = A::hidden(&space.tape);
            let hidden = match A::ORDER {
                Order::Branches => hidden,
                // Rows that lie step after step are brought together by sequence first: there are far fewer numbers in them
                // than in their logits.
                Order::Steps => {
                    let firsts: Vec<usize> = sequences
                        .iter()
                        .scan(0, |first, sequence| Some(std::mem::replace(first, *first + sequence.len())))
                        .collect();
                    let ordered = room(&mut space.ordered, hidden.len());
                    rows.for_each(|group, _, step, row| {
                        let to = (firsts[group.index] + step) * width;
                        ordered[to..to + width].copy_from_slice(&hidden[row * width..][..width]);
                    });
                    ordered
                }
            };
            head::logits(hidden, head, (width, tokens), &mut logits);
        });
        logits
    }
}
