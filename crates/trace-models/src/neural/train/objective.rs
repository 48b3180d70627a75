//! Training objectives: the loss of a batch of windows, and its gradient.

use rand_chacha::ChaCha8Rng;

use super::super::architecture::{Past, Trainable};
use super::super::head::{Head, LossBuffers};
use super::super::layout::Layout;
use super::super::rows::Rows;

/// A run of tokens that the network reads at once.
pub(crate) type Window = Vec<u32>;

/// A network and what it has to predict.
pub(crate) trait Objective: Sync {
    /// A training example, made from a window.
    type Example: Clone + Send + Sync;
    /// Buffers of a pass, reused between calls.
    type Workspace: Default + Send + Sync;

    /// The tensors.
    fn layout(&self) -> &Layout;
    /// The token before every sequence, where there is one.
    fn begin(&self) -> Option<u32>;
    /// Makes windows into examples; random choices are drawn from `random`.
    fn examples(&self, windows: Vec<Window>, random: ChaCha8Rng) -> Vec<Self::Example>;
    /// The number of rows of an example.
    fn rows(example: &Self::Example) -> usize;
    /// The number of predictions of an example; at least one example of a batch has one.
    fn predictions(example: &Self::Example) -> usize;
    /// The sum of losses over all predictions, in nats.
    fn loss(&self, weights: &[f32], examples: &[Self::Example], workspace: &mut Self::Workspace) -> f64;
    /// The sum of losses; adds the gradient of `scale` times that sum to `gradient`.
    fn loss_and_gradient(
        &self,
        weights: &[f32],
        examples: &[Self::Example],
        scale: f32,
        workspace: &mut Self::Workspace,
        gradient: &mut [f32],
    ) -> f64;
}

/// Predicts the next event: each token of a window except the last is read, and each except the first is predicted. The
/// network's last token is the begin token.
pub(crate) struct NextEvent<'n, A>(pub(crate) &'n A);

impl<A: Trainable> NextEvent<'_, A> {
    fn head(&self) -> Head {
        Head { table: self.0.head(), bias: None }
    }

    /// The rows of windows, and each row's target.
    fn lay_out(windows: &[Window]) -> (Rows, Vec<u32>) {
        let groups: Vec<_> = windows.iter().map(|window| (0, Self::rows(window), 1)).collect();
        let rows = Rows::new(&groups, A::ORDER, |group, _, step| windows[group][step]);
        let mut targets = vec![0; rows.len()];
        rows.for_each(|group, _, step, row| targets[row] = windows[group.index][step + 1]);
        (rows, targets)
    }
}

impl<A: Trainable> Objective for NextEvent<'_, A> {
    type Example = Window;
    type Workspace = (A::Tape, LossBuffers);

    fn layout(&self) -> &Layout {
        self.0.layout()
    }

    fn begin(&self) -> Option<u32> {
        Some(self.0.vocab_size() as u32 - 1)
    }

    fn examples(&self, windows: Vec<Window>, _random: ChaCha8Rng) -> Vec<Window> {
        windows
    }

    fn rows(window: &Window) -> usize {
        window.len().saturating_sub(1)
    }

    fn predictions(window: &Window) -> usize {
        Self::rows(window)
    }

    fn loss(&self, weights: &[f32], windows: &[Window], (tape, workspace): &mut Self::Workspace) -> f64 {
        let (rows, targets) = Self::lay_out(windows);
        if rows.len() == 0 {
            return 0.0;
        }
        self.0.forward(weights, &rows, Past::Nothing, tape);
        self.head().loss(weights, A::hidden(tape), &targets, workspace)
    }

    fn loss_and_gradient(
        &self,
        weights: &[f32],
        windows: &[Window],
        scale: f32,
        (tape, workspace): &mut Self::Workspace,
        gradient: &mut [f32],
    ) -> f64 {
        let (rows, targets) = Self::lay_out(windows);
        if rows.len() == 0 {
            return 0.0;
        }
        self.0.forward(weights, &rows, Past::Training, tape);
        let (loss, d_hidden) =
            self.head().loss_and_gradient(weights, A::hidden(tape), &targets, scale, workspace, gradient);
        self.0.backward(weights, &rows, tape, d_hidden, gradient);
        loss
    }
}
