//! Masked prediction (Devlin et al., 2019): which event stood at a place, given both sides of it.
//!
//! Of each window 15 % of the places are asked about, at least one. There, 8 times of 10 the event is replaced by the
//! mask, once by an event drawn at random, and once it stays, so that no place can be ignored because nothing is hidden
//! there. The loss is the mean over the places that are asked about.

use rand::RngExt;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;

use super::super::bert::{Bert, Tape};
use super::super::head::LossRoom;
use super::super::layout::Layout;
use super::super::rows::Rows;
use super::objective::{Objective, Window};

/// Share of a window's places that are asked about.
const ASKED: f64 = 0.15;
/// Share of those that show the mask, and share that show it or an event drawn at random.
const MASKED: f64 = 0.8;
const CHANGED: f64 = 0.9;

/// What a masked model learns. The network's last token is the mask.
pub(crate) struct Masked<'n>(pub(crate) &'n Bert);

/// A window with some of its events hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MaskedWindow {
    tokens: Vec<u32>,
    /// Places that are asked about, and the event that stood at each.
    asked: Vec<(usize, u32)>,
}

impl MaskedWindow {
    /// Hides events of a window that is not empty; `mask` is the number of event types and the token after them.
    fn draw(window: Window, mask: u32, random: &mut ChaCha8Rng) -> Self {
        let mut tokens = window;
        let count = ((ASKED * tokens.len() as f64).round() as usize).clamp(1, tokens.len());
        let mut places = index::sample(random, tokens.len(), count).into_vec();
        places.sort_unstable();
        let hide = |place: usize| {
            let event = tokens[place];
            let lot: f64 = random.random();
            tokens[place] = if lot < MASKED {
                mask
            } else if lot < CHANGED {
                random.random_range(0..mask)
            } else {
                event
            };
            (place, event)
        };
        let asked = places.into_iter().map(hide).collect();
        Self { tokens, asked }
    }
}

impl Masked<'_> {
    /// The rows of examples, those that are asked about, and their targets.
    fn lay_out(examples: &[MaskedWindow]) -> (Rows, Vec<usize>, Vec<u32>) {
        let sequences: Vec<&[u32]> = examples.iter().map(|example| example.tokens.as_slice()).collect();
        let rows = Bert::rows(&sequences);
        let groups = rows.groups.iter().zip(examples);
        let (chosen, targets) = groups
            .flat_map(|(group, example)| example.asked.iter().map(|(place, event)| (group.row + place, *event)))
            .unzip();
        (rows, chosen, targets)
    }
}

impl Objective for Masked<'_> {
    type Example = MaskedWindow;
    type Space = (Tape, LossRoom);

    fn layout(&self) -> &Layout {
        self.0.layout()
    }

    fn begin(&self) -> Option<u32> {
        None
    }

    fn examples(&self, windows: Vec<Window>, mut random: ChaCha8Rng) -> Vec<MaskedWindow> {
        let mask = self.0.config.tokens as u32 - 1;
        windows.into_iter().map(|window| MaskedWindow::draw(window, mask, &mut random)).collect()
    }

    fn rows(example: &MaskedWindow) -> usize {
        example.tokens.len()
    }

    fn predictions(example: &MaskedWindow) -> usize {
        example.asked.len()
    }

    fn loss(&self, weights: &[f32], examples: &[MaskedWindow], (tape, space): &mut Self::Space) -> f64 {
        let (rows, chosen, targets) = Self::lay_out(examples);
        self.0.forward(weights, &rows, tape, false);
        self.0.ask(weights, chosen, tape);
        self.0.head().loss(weights, tape.hidden(self.0.width()), &targets, space)
    }

    fn loss_and_gradient(
        &self,
        weights: &[f32],
        examples: &[MaskedWindow],
        scale: f32,
        (tape, space): &mut Self::Space,
        gradient: &mut [f32],
    ) -> f64 {
        let (rows, chosen, targets) = Self::lay_out(examples);
        self.0.forward(weights, &rows, tape, true);
        self.0.ask(weights, chosen, tape);
        let hidden = tape.hidden(self.0.width());
        let (loss, d_hidden) = self.0.head().loss_and_gradient(weights, hidden, &targets, scale, space, gradient);
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
            assert_eq!(example.asked.len(), expected, "of {length}");
            assert!(example.asked.windows(2).all(|pair| pair[0].0 < pair[1].0), "a place is asked about twice");
            let mut shown = example.tokens.clone();
            for (place, event) in &example.asked {
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
