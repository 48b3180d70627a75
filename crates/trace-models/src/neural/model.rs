//! A network as a density model: reading a sequence once, scoring branches from it, and plain forward passes.
//!
//! Token `p` of a sequence of events `x` is the begin token followed by `x`, or `x` alone for a model without one;
//! the hidden row of a token predicts the event after it. For a cause `j`, `N` replacements and lags up to `m` the
//! branches are `N·m` rows; rows of several causes go through each layer as one matrix product, and the head turns
//! each into the score of the observed event without holding a row of logits ([`super::head`]).
//!
//! Cost: `L` rows for the reading and `N·m` for each cause; memory is the reading's ([`Architecture::cost`]), the
//! weights and one pass of rows for each thread.

use std::ops::Range;
use std::sync::Mutex;

use trace_core::numerics::divergence;
use trace_core::theory::Fitness;
use trace_core::{Branches, DensityModel, EntryMut, EventId, EventScore, Measure, ModelError, Reading, Scores};

use super::architecture::{Architecture, Past};
use super::head::{self, TileRoom};
use super::network::{NetworkConfig, with_kind};
use super::rows::Rows;
use super::saliency::{self, Effects};

/// Rows of a pass unless memory is short.
const PASS_ROWS: usize = 1024;
/// Rows of the observed sequence that are read at once.
const READ_ROWS: usize = 256;

/// A network with its weights.
pub(crate) struct NeuralModel<A: Architecture> {
    pub(crate) network: A,
    pub(crate) weights: Vec<f32>,
    pub(crate) facts: Facts,
    /// Buffers that passes leave for each other.
    pub(crate) spaces: Spaces<A>,
}

/// What a density model is besides its network.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) config: NetworkConfig,
    /// Event types; tokens from here on are special.
    pub(crate) types: usize,
    /// The token of each event in the folder's own counting.
    pub(crate) event_tokens: Vec<u32>,
    /// The begin token, where there is one.
    pub(crate) begin: Option<u32>,
    pub(crate) trained_length: Option<usize>,
    pub(crate) frequencies: Option<Vec<f64>>,
    pub(crate) fitness: Fitness,
    /// The most bytes that the model may use, where there is a limit.
    pub(crate) max_memory: Option<usize>,
}

/// A pool of buffers.
pub(crate) type Spaces<A> = Mutex<Vec<Space<A>>>;

/// Buffers of a pass.
pub(crate) struct Space<A: Architecture> {
    pub(super) tape: A::Tape,
    tiles: TileRoom,
    /// Hidden rows in the order of sequences, where they lie otherwise.
    pub(super) ordered: Vec<f32>,
}

impl<A: Architecture> Default for Space<A> {
    fn default() -> Self {
        Self { tape: A::Tape::default(), tiles: TileRoom::default(), ordered: Vec::new() }
    }
}

impl<A: Architecture> NeuralModel<A> {
    /// Tokens before the first event.
    fn shift(&self) -> usize {
        usize::from(self.facts.begin.is_some())
    }

    fn tokens(&self, events: &[EventId]) -> Vec<u32> {
        self.facts.begin.into_iter().chain(events.iter().map(|event| event.0)).collect()
    }

    /// The row that predicts the event at a position.
    fn row_before(&self, position: usize) -> Result<usize, ModelError> {
        let row = (position + self.shift()).checked_sub(1);
        row.ok_or_else(|| ModelError::new("the model does not predict the first event"))
    }

    fn head(&self) -> (&[f32], (usize, usize)) {
        (&self.weights[self.network.head()], (self.network.width(), self.facts.types))
    }

    /// Runs `body` with buffers from the pool, which it gives back.
    pub(super) fn with_space<T>(&self, body: impl FnOnce(&mut Space<A>) -> T) -> T {
        let mut space = self.spaces.lock().map_or_else(|_| None, |mut spaces| spaces.pop()).unwrap_or_default();
        let result = body(&mut space);
        if let Ok(mut spaces) = self.spaces.lock() {
            spaces.push(space);
        }
        result
    }

    /// Takes a sequence in and keeps a hidden row for each token but the last.
    fn take_in(&self, tokens: &[u32]) -> Result<(A::Memory, Vec<f32>), ModelError> {
        let count = tokens.len().saturating_sub(1);
        if let Some(most) = self.network.max_tokens().filter(|most| count > *most) {
            return Err(ModelError::new(format!("{count} tokens are to be read; the model reads at most {most}")));
        }
        self.check_memory(count)?;
        let mut memory = self.network.memory(count);
        let mut hidden = Vec::with_capacity(count * self.network.width());
        let mut tape = A::Tape::default();
        for from in (0..count).step_by(READ_ROWS) {
            let steps = READ_ROWS.min(count - from);
            let rows = Rows::new(&[(from, steps, 1)], A::ORDER, |_, _, step| tokens[from + step]);
            self.network.forward(&self.weights, &rows, Past::Growing(&mut memory), &mut tape);
            hidden.extend_from_slice(A::hidden(&tape));
        }
        Ok((memory, hidden))
    }

    /// Bytes of the weights and of what a sequence of this many tokens needs, with the smallest passes.
    fn least_memory(&self, tokens: usize) -> usize {
        let (memory, row) = self.network.cost(tokens);
        let hidden = tokens * self.network.width() * size_of::<f32>();
        size_of_val(self.weights.as_slice()) + rayon::current_num_threads() * (memory + hidden + READ_ROWS * row)
    }

    fn check_memory(&self, tokens: usize) -> Result<(), ModelError> {
        let needed = self.least_memory(tokens);
        match self.facts.max_memory.filter(|limit| needed > *limit) {
            Some(limit) => Err(ModelError::new(format!(
                "a sequence of {tokens} events needs at least {:.1} MB with this model and number of threads; {:.1} MB are \
                 allowed",
                needed as f64 / 1e6,
                limit as f64 / 1e6
            ))),
            None => Ok(()),
        }
    }

    /// Rows of a pass after a past of this many tokens.
    fn pass_rows(&self, tokens: usize) -> usize {
        let Some(limit) = self.facts.max_memory else { return PASS_ROWS };
        let (_, row) = self.network.cost(tokens);
        let left = limit.saturating_sub(self.least_memory(tokens)) / rayon::current_num_threads();
        READ_ROWS + (left / row).min(PASS_ROWS - READ_ROWS)
    }
}

impl<A: Architecture> DensityModel for NeuralModel<A> {
    fn vocabulary_size(&self) -> usize {
        self.facts.types
    }

    fn backbone(&self) -> &str {
        self.facts.config.backbone()
    }

    fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        if positions.is_empty() {
            return Ok(());
        }
        // One more token than is read: what stands there does not matter.
        let mut tokens = self.tokens(&events[..positions.end - 1]);
        tokens.push(0);
        let first = self.row_before(positions.start)?;
        let (_, hidden) = self.take_in(&tokens)?;
        let hidden = &hidden[first * self.network.width()..];
        let (table, shape) = self.head();
        head::distributions(hidden, table, shape, &mut TileRoom::default(), |row, values| {
            rows[row * shape.1..][..shape.1].copy_from_slice(values);
        });
        Ok(())
    }

    fn read<'a>(&'a self, events: &[EventId]) -> Result<Box<dyn Reading + 'a>, ModelError> {
        let tokens = self.tokens(events);
        let (memory, hidden) = self.take_in(&tokens)?;
        let first = 1 - self.shift();
        let mut observed = vec![EventScore { log_p: f64::NAN, log_not_p: f64::NAN }; events.len()];
        let targets: Vec<u32> = events.get(first..).unwrap_or_default().iter().map(|event| event.0).collect();
        let (table, shape) = self.head();
        head::score(&hidden, table, shape, &targets, &mut TileRoom::default(), |row, score| {
            observed[row + first] = score;
        });
        Ok(Box::new(NeuralReading { model: self, tokens, memory, hidden, observed }))
    }

    fn predicts_first(&self) -> bool {
        self.facts.begin.is_some()
    }

    fn max_length(&self) -> Option<usize> {
        // The last event of a sequence is predicted but never read.
        self.network.max_tokens().map(|tokens| tokens + 1 - self.shift())
    }

    fn trained_length(&self) -> Option<usize> {
        self.facts.trained_length
    }

    fn set_max_memory(&mut self, bytes: usize, longest: usize) -> Result<(), ModelError> {
        self.facts.max_memory = Some(bytes);
        self.check_memory(longest)
    }

    fn frequencies(&self) -> Option<&[f64]> {
        self.facts.frequencies.as_deref()
    }

    fn saliency(&self, events: &[EventId], positions: Range<usize>, out: &mut [f64]) -> Result<(), ModelError> {
        let tokens = self.tokens(&events[..positions.end]);
        let effects = Effects { tokens: &tokens, begin: self.shift(), types: self.facts.types, positions };
        with_kind!(
            &self.facts.config,
            network => {
                saliency::fill(&network, &self.weights, &effects, out);
                Ok(())
            },
            _network => Err(ModelError::without_gradients(self.backbone())),
            _encoder => Err(ModelError::without_gradients(self.backbone()))
        )
    }

    fn fitness(&self) -> Fitness {
        self.facts.fitness
    }
}

struct NeuralReading<'a, A: Architecture> {
    model: &'a NeuralModel<A>,
    tokens: Vec<u32>,
    memory: A::Memory,
    /// A row for each token but the last.
    hidden: Vec<f32>,
    observed: Vec<EventScore>,
}

/// Some branches of one entry of a batch.
#[derive(Clone, Copy, Debug)]
struct Piece {
    entry: usize,
    first: usize,
    count: usize,
}

impl<A: Architecture> Reading for NeuralReading<'_, A> {
    fn observed(&self) -> &[EventScore] {
        &self.observed
    }

    fn distribution(&self, position: usize, row: &mut [f64]) -> Result<(), ModelError> {
        self.distributions(position..position + 1, row)
    }

    fn score(&self, batch: &[Branches<'_>], scores: &mut Scores) -> Result<(), ModelError> {
        let measure = scores.measure();
        let mut entries: Vec<EntryMut<'_>> = scores.entries_mut().collect();
        let most = self.model.pass_rows(self.tokens.len().saturating_sub(1));
        let longest = batch.iter().map(Branches::horizon).max().unwrap_or(0);
        if self.model.facts.max_memory.is_some() && longest > most {
            return Err(ModelError::new(format!(
                "max-memory leaves room for branches of {most} events, not of {longest}; a smaller memory would do"
            )));
        }
        self.model.with_space(|space| {
            let mut pieces = Vec::new();
            let mut rows = 0;
            for (entry, branches) in batch.iter().enumerate() {
                // Divergences need the observed distributions of an entry; those of several would be too many at once.
                if measure == Measure::Divergence && !pieces.is_empty() {
                    self.pass(batch, &pieces, measure, &mut entries, space)?;
                    pieces.clear();
                    rows = 0;
                }
                let mut first = 0;
                while first < branches.count() {
                    // At least one branch, however long it is.
                    let fits = ((most - rows.min(most)) / branches.horizon()).max(usize::from(pieces.is_empty()));
                    let count = fits.min(branches.count() - first);
                    if count == 0 {
                        self.pass(batch, &pieces, measure, &mut entries, space)?;
                        pieces.clear();
                        rows = 0;
                        continue;
                    }
                    pieces.push(Piece { entry, first, count });
                    rows += count * branches.horizon();
                    first += count;
                }
            }
            if pieces.is_empty() { Ok(()) } else { self.pass(batch, &pieces, measure, &mut entries, space) }
        })
    }
}

impl<A: Architecture> NeuralReading<'_, A> {
    /// The observed log-distributions at these positions.
    fn distributions(&self, positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        let (table, shape) = self.model.head();
        let first = self.model.row_before(positions.start)?;
        let hidden = &self.hidden[first * shape.0..][..positions.len() * shape.0];
        head::distributions(hidden, table, shape, &mut TileRoom::default(), |row, values| {
            rows[row * shape.1..][..shape.1].copy_from_slice(values);
        });
        Ok(())
    }

    /// Takes pieces of a batch through the network and fills in their scores.
    fn pass(
        &self,
        batch: &[Branches<'_>],
        pieces: &[Piece],
        measure: Measure,
        entries: &mut [EntryMut<'_>],
        space: &mut Space<A>,
    ) -> Result<(), ModelError> {
        let shift = self.model.shift();
        let groups: Vec<_> = pieces
            .iter()
            .map(|piece| (batch[piece.entry].start() + shift, batch[piece.entry].horizon(), piece.count))
            .collect();
        let rows = Rows::new(&groups, A::ORDER, |group, branch, step| {
            let branches = &batch[pieces[group].entry];
            match branches.replacement(pieces[group].first + branch).get(step) {
                Some(event) => event.0,
                None => self.tokens[branches.start() + shift + step],
            }
        });
        let mut targets = vec![0; rows.len()];
        // Where each row's numbers go: an entry, and a place in it.
        let mut places = vec![(0, 0); rows.len()];
        rows.for_each(|group, branch, step, row| {
            let piece = pieces[group.index];
            let branches = &batch[piece.entry];
            targets[row] = self.tokens[branches.start() + shift + step + 1];
            places[row] = (piece.entry, (piece.first + branch) * branches.horizon() + step);
        });
        let model = self.model;
        model.network.forward(&model.weights, &rows, Past::Shared(&self.memory), &mut space.tape);
        let (table, shape) = model.head();
        let hidden = A::hidden(&space.tape);
        head::score(hidden, table, shape, &targets, &mut space.tiles, |row, score| {
            let (entry, at) = places[row];
            entries[entry].events[at] = score;
        });
        if measure == Measure::Event {
            return Ok(());
        }
        let mut originals = vec![Vec::new(); batch.len()];
        if measure == Measure::Divergence {
            for piece in pieces {
                let targets = batch[piece.entry].targets();
                originals[piece.entry].resize(targets.len() * shape.1, 0.0);
                self.distributions(targets, &mut originals[piece.entry])?;
            }
        }
        head::distributions(hidden, table, shape, &mut space.tiles, |row, values| {
            let (entry, at) = places[row];
            if measure == Measure::Divergence {
                let lag = at % batch[entry].horizon();
                entries[entry].divergences[at] = divergence(&originals[entry][lag * shape.1..][..shape.1], values);
            } else {
                entries[entry].distributions[at * shape.1..][..shape.1].copy_from_slice(values);
            }
        });
        Ok(())
    }
}
