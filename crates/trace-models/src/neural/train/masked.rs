//! Masked language modeling (Devlin et al., 2019): predicts the event at a position from both sides of it.
//!
//! In each window 15 % of the positions are predicted, at least one. Of these, 80 % show the mask, 10 % a random event
//! and 10 % the original event, so that the network cannot ignore positions without a mask. The loss is the mean over
//! the predicted positions.

use rand::RngExt;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;

use super::super::bert::{Bert, Tape};
use super::super::head::LossBuffers;
use super::super::layout::Layout;
use super::super::rows::Rows;
use super::objective::{Objective, Window};

/// Share of a window's positions that are predicted.
const MLM_PROBABILITY: f64 = 0.15;
/// Share of those that show the mask, and share that show the mask or a random event.
const MASK_SHARE: f64 = 0.8;
const MASK_OR_RANDOM_SHARE: f64 = 0.9;

/// The objective of a masked model. The network's last token is the mask.
pub(crate) struct Masked<'n>(pub(crate) &'n Bert);

/// A window with some of its events masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MaskedWindow {
    tokens: Vec<u32>,
    /// The predicted positions, and the original event at each.
    predicted: Vec<(usize, u32)>,
}

impl MaskedWindow {
    /// Masks events of a window that is not empty; `mask` is the number of event types and the token after them.
    fn draw(window: Window, mask: u32, random: &mut ChaCha8Rng) -> Self {
        let mut tokens = window;
        let count = ((MLM_PROBABILITY * tokens.len() as f64).round() as usize).clamp(1, tokens.len());
        let mut places = index::sample(random, tokens.len(), count).into_vec();
        places.sort_unstable();
        let hide = |place: usize| {
            let event = tokens[place];
            let draw: f64 = random.random();
            tokens[place] = if draw < MASK_SHARE {
                mask
            } else if draw < MASK_OR_RANDOM_SHARE {
                random.random_range(0..mask)
            } else {
                event
            };
            (place, event)
        };
        let predicted = places.into_iter().map(hide).collect();
        Self { tokens, predicted }
    }
}

impl Masked<'_> {
    /// The rows of examples, the predicted rows, and their targets.
    fn lay_out(examples: &[MaskedWindow]) -> (Rows, Vec<usize>, Vec<u32>) {
        let sequences: Vec<&[u32]> = examples.iter().map(|example| example.tokens.as_slice()).collect();
        let rows = Bert::rows(&sequences);
        let groups = rows.groups.iter().zip(examples);
        let (selected, targets) = groups
            .flat_map(|(group, example)| example.predicted.iter().map(|(place, event)| (group.row + place, *event)))
            .unzip();
        (rows, selected, targets)
    }
}

impl Objective for Masked<'_> {
    type Example = MaskedWindow;
    type Workspace = (Tape, LossBuffers);

    fn layout(&self) -> &Layout {
        self.0.layout()
    }

    fn begin(&self) -> Option<u32> {
        None
    }

    fn examples(&self, windows: Vec<Window>, mut random: ChaCha8Rng) -> Vec<MaskedWindow> {
        let mask = self.0.config.vocab_size as u32 - 1;
        windows.into_iter().map(|window| MaskedWindow::draw(window, mask, &mut random)).collect()
    }

    fn rows(example: &MaskedWindow) -> usize {
        example.tokens.len()
    }

    fn predictions(example: &MaskedWindow) -> usize {
        example.predicted.len()
    }

    fn loss(&self, weights: &[f32], examples: &[MaskedWindow], (tape, workspace): &mut Self::Workspace) -> f64 {
        let (rows, selected, targets) = Self::lay_out(examples);
        self.0.forward(weights, &rows, tape, false);
        self.0.transform_rows(weights, selected, tape);
        self.0.head().loss(weights, tape.hidden(self.0.hidden_size()), &targets, workspace)
    }

    fn loss_and_gradient(
        &self,
        weights: &[f32],
        examples: &[MaskedWindow],
        scale: f32,
        (tape, workspace): &mut Self::Workspace,
        gradient: &mut [f32],
    ) -> f64 {
        let (rows, selected, targets) = Self::lay_out(examples);
        self.0.forward(weights, &rows, tape, true);
        self.0.transform_rows(weights, selected, tape);
        let hidden = tape.hidden(self.0.hidden_size());
        let (loss, d_hidden) = self.0.head().loss_and_gradient(weights, hidden, &targets, scale, workspace, gradient);
        self.0.backward(weights, &rows, tape, d_hidden, gradient);
        loss
    }
}

#[cfg(test)]
mod tests {
    use trace_core::random::{Purpose, Streams};

    use super::*;

    #[test]
    fn a_share_of_places_is_asked_about_and_most_of_them_are_hidden() {
        const MASK: u32 = 1000;
        let mut random = Streams::new(3, "test").stream(Purpose::Mask, 0, 0);
        let (mut masked, mut changed, mut kept) = (0.0, 0.0, 0.0);
        for length in [1, 2, 3, 40, 200, 2000, 20_000] {
            let window: Window = (0..length).map(|i| i % MASK).collect();
            let example = MaskedWindow::draw(window.clone(), MASK, &mut random);
            let expected = (f64::from(length) * 0.15).round().max(1.0) as usize;
            assert_eq!(example.predicted.len(), expected, "of {length}");
            assert!(example.predicted.windows(2).all(|pair| pair[0].0 < pair[1].0), "a place is asked about twice");
            let mut shown = example.tokens.clone();
            for (place, event) in &example.predicted {
                assert_eq!(*event, window[*place]);
                match shown[*place] {
                    MASK => masked += 1.0,
                    token if token == *event => kept += 1.0,
                    _ => changed += 1.0,
                }
                shown[*place] = *event;
            }
            assert_eq!(shown, window, "a place that is not asked about has changed");
        }
        let all = masked + changed + kept;
        let shares: [f64; 3] = [masked / all, changed / all, kept / all];
        for (share, expected) in shares.into_iter().zip([0.8, 0.1, 0.1]) {
            assert!((share - expected).abs() < 0.02, "{shares:?}");
        }
    }
}
