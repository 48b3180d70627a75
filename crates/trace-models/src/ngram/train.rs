//! Trains an n-gram model and measures its held-out loss.

use std::borrow::Cow;

use trace_core::theory::Fitness;
use trace_core::{EventId, EventSequence};

use super::{NgramCounts, NgramModel};
use crate::Error;
use crate::split::HoldOut;

/// The largest order that is tried where no order is given.
const LARGEST_AUTO_ORDER: usize = 5;
/// Larger orders would memorize sequences.
const LARGEST_ORDER: usize = 64;

/// The options of an n-gram model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NgramSpec {
    /// The number of events that a prediction uses, plus one; `None` for the order with the lowest held-out loss.
    pub order: Option<usize>,
    /// Share of sequences to hold out, from 0 to less than 1.
    pub held_out: f64,
    /// Seed of the split.
    pub seed: u64,
    /// Whether the end of each case that ended is predicted too.
    pub end: bool,
}

impl Default for NgramSpec {
    fn default() -> Self {
        Self { order: None, held_out: 0.1, seed: 0, end: false }
    }
}

/// A trained model and what training measured.
#[derive(Clone, Debug)]
pub struct TrainedNgram {
    /// The model, trained on the sequences that were not held out.
    pub model: NgramModel,
    /// Indices of the held-out sequences.
    pub held_out: Vec<usize>,
    /// Held-out loss of each order that was tried, in nats per event.
    pub losses: Vec<(usize, f64)>,
}

/// What is to be predicted of a sequence: its events, and the end of its case where it is a target and the case ended. A
/// case without events has nothing to predict.
pub(crate) fn targets_of(sequence: &EventSequence, end: Option<EventId>) -> Cow<'_, [EventId]> {
    match end.filter(|_| sequence.ended && !sequence.events.is_empty()) {
        Some(end) => Cow::Owned([sequence.events.as_slice(), &[end]].concat()),
        None => Cow::Borrowed(&sequence.events),
    }
}

/// Trains on sequences over `size` types.
pub fn train(sequences: &[EventSequence], size: usize, spec: &NgramSpec) -> Result<TrainedNgram, Error> {
    if let Some(order) = spec.order.filter(|order| !(1..=LARGEST_ORDER).contains(order)) {
        return Err(Error::spec("order", format!("{order} is out of range; expected auto, or 1 to {LARGEST_ORDER}")));
    }
    let mut hold_out = HoldOut::new(spec.held_out, spec.seed)?;
    if size < 2 {
        return Err(Error::spec("events", format!("only {size} type; at least 2 are needed to learn anything")));
    }
    for sequence in sequences {
        hold_out.add(&sequence.id, sequence.events.len());
    }
    let (held_out, train): (Vec<usize>, Vec<usize>) =
        (0..sequences.len()).partition(|index| hold_out.holds_out(&sequences[*index].id));
    let longest = spec.order.unwrap_or(LARGEST_AUTO_ORDER);
    let mut counts = if spec.end { NgramCounts::with_end(size, longest) } else { NgramCounts::new(size, longest) };
    let mut frequencies = vec![0.0; size];
    let targets = |index: usize| targets_of(&sequences[index], spec.end.then_some(EventId(size as u32)));
    for index in train {
        counts.add(&targets(index));
        for event in &sequences[index].events {
            frequencies[event.index()] += 1.0;
        }
    }
    let held_out_targets: Vec<Cow<'_, [EventId]>> = held_out.iter().map(|index| targets(*index)).collect();
    let loss = |model: &NgramModel| {
        let (loss, targets) = model.loss(held_out_targets.iter().map(AsRef::as_ref));
        (targets > 0).then_some(loss)
    };
    let unigram_loss = loss(&NgramModel::new(counts.clone(), 1));
    let candidates = spec.order.map_or(1..=LARGEST_AUTO_ORDER, |order| order..=order);
    let mut losses = Vec::new();
    for order in candidates {
        if let Some(loss) = loss(&NgramModel::new(counts.clone(), order)) {
            losses.push((order, loss));
        }
    }
    let best = losses.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
    // Without held-out sequences, orders cannot be compared; two events of context are a cautious choice.
    let order = best.map_or(spec.order.unwrap_or(3), |best| best.0);
    let mut model = NgramModel::new(counts, order);
    let fitness = Fitness { held_out_loss: best.map(|best| best.1), unigram_loss, entropy: None };
    model.set_record(Some(frequencies), fitness);
    Ok(TrainedNgram { model, held_out, losses })
}
