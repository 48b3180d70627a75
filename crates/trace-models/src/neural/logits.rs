//! Plain forward passes: the logits of whole sequences.
//!
//! Sequences go through the network in parallel passes of about [`ROWS`] tokens, and the logits stay where the product
//! of the head writes them: `rows × V` numbers are written once and not copied. Passes share their buffers with those
//! of discovery. The result depends on the sequences only, not on the number of threads.

use std::ops::Range;

use rayon::prelude::*;

use super::architecture::{Network, Past, resize};
use super::head;
use super::model::NeuralModel;
use super::rows::{Order, Rows};

/// Tokens of a pass.
const ROWS: usize = 512;

/// Logits over all tokens after each token of some sequences.
#[derive(Clone, Debug, PartialEq)]
pub struct Logits {
    /// For each pass, the logits of its sequences, one after the other.
    passes: Vec<Vec<f32>>,
    /// For each sequence its pass, and its range in there.
    places: Vec<(usize, Range<usize>)>,
}

impl Logits {
    /// The logits of each sequence in order: `V` numbers per token.
    pub fn sequences(&self) -> impl Iterator<Item = &[f32]> {
        self.places.iter().map(|(pass, place)| &self.passes[*pass][place.clone()])
    }
}

impl<A: Network> NeuralModel<A> {
    /// The logits of sequences of tokens.
    pub(crate) fn logits_of(&self, sequences: &[Vec<u32>]) -> Logits {
        let tokens = self.network.vocab_size();
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
        let (tokens, width) = (self.network.vocab_size(), self.network.hidden_size());
        let groups: Vec<_> = sequences.iter().map(|sequence| (0, sequence.len(), 1)).collect();
        let rows = Rows::new(&groups, A::ORDER, |group, _, step| sequences[group][step]);
        let mut logits = vec![0.0; rows.len() * tokens];
        let head = &self.weights[self.network.head()];
        self.with_workspace(|workspace| {
            self.network.forward(&self.weights, &rows, Past::Nothing, &mut workspace.tape);
            let hidden = A::hidden(&workspace.tape);
            let hidden = match A::ORDER {
                Order::Branches => hidden,
                // Rows in step order are first reordered by sequence: they hold far fewer numbers than their logits.
                Order::Steps => {
                    let firsts: Vec<usize> = sequences
                        .iter()
                        .scan(0, |first, sequence| Some(std::mem::replace(first, *first + sequence.len())))
                        .collect();
                    let ordered = resize(&mut workspace.ordered, hidden.len());
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
