//! A network as a density model: it reads a sequence once, scores branches of it, and runs plain forward passes.
//!
//! The tokens of a sequence of events `x` are the begin token followed by `x`, or `x` alone for a model without a begin
//! token; the hidden row of a token predicts the event after it, or the end of the case. For a cause `j`, `N` replacements and lags up to `m`
//! the branches have `N·m` rows; rows of several causes go through each layer as one matrix product, and the head turns
//! each row into the score of the observed event without storing a row of logits ([`super::head`]).
//!
//! Cost: `L` rows for the reading and `N·m` rows per cause. Memory: the reading's cache ([`Network::cost`]), the
//! weights, and the rows of one pass per thread.

use std::ops::Range;
use std::sync::Mutex;

use trace_core::numerics::divergence;
use trace_core::theory::Fitness;
use trace_core::{Branches, DensityModel, EntryMut, EventId, EventScore, Measure, ModelError, Reading, Scores};

use super::architecture::{Network, Past};
use super::head::{self, TileBuffers};
use super::network::{NetworkConfig, with_kind};
use super::rows::Rows;
use super::saliency::{self, Effects, InputGradients};

/// Rows of a pass, unless RAM is limited.
const PASS_ROWS: usize = 1024;
/// Rows of the observed sequence that are read in one pass.
const READ_ROWS: usize = 256;

/// A network with its weights.
pub(crate) struct NeuralModel<A: Network> {
    pub(crate) network: A,
    pub(crate) weights: Vec<f32>,
    pub(crate) info: ModelInfo,
    /// Buffers that passes reuse.
    pub(crate) workspaces: Workspaces<A>,
}

/// What is known of a density model besides its network.
#[derive(Clone, Debug)]
pub(crate) struct ModelInfo {
    pub(crate) config: NetworkConfig,
    /// Number of event types; tokens from this number on are special.
    pub(crate) types: usize,
    /// Whether the token behind the event types is the end of a case, and is predicted.
    pub(crate) end: bool,
    /// The token of each event, as numbered in the folder.
    pub(crate) event_tokens: Vec<u32>,
    /// The begin token, where there is one.
    pub(crate) begin: Option<u32>,
    pub(crate) trained_length: Option<usize>,
    pub(crate) frequencies: Option<Vec<f64>>,
    pub(crate) fitness: Fitness,
    /// The number of bytes that the model may use, where there is a limit.
    pub(crate) ram_limit: Option<usize>,
}

/// A pool of buffers.
pub(crate) type Workspaces<A> = Mutex<Vec<Workspace<A>>>;

/// Buffers of a pass.
pub(crate) struct Workspace<A: Network> {
    pub(super) tape: A::Tape,
    tiles: TileBuffers,
    /// Hidden rows in the order of sequences, where the network has another order.
    pub(super) ordered: Vec<f32>,
}

impl<A: Network> Default for Workspace<A> {
    fn default() -> Self {
        Self { tape: A::Tape::default(), tiles: TileBuffers::default(), ordered: Vec::new() }
    }
}

impl<A: Network> NeuralModel<A> {
    /// Number of tokens before the first event.
    fn shift(&self) -> usize {
        usize::from(self.info.begin.is_some())
    }

    fn tokens(&self, events: &[EventId]) -> Vec<u32> {
        self.info.begin.into_iter().chain(events.iter().map(|event| event.0)).collect()
    }

    /// The row that predicts the event at a position.
    fn row_before(&self, position: usize) -> Result<usize, ModelError> {
        let row = (position + self.shift()).checked_sub(1);
        row.ok_or_else(|| ModelError::new("the model does not predict the first event"))
    }

    fn head(&self) -> (&[f32], (usize, usize)) {
        (&self.weights[self.network.head()], (self.network.hidden_size(), self.row_size()))
    }

    /// Runs `body` with buffers from the pool, and returns them to it.
    pub(super) fn with_workspace<T>(&self, body: impl FnOnce(&mut Workspace<A>) -> T) -> T {
        let mut workspace =
            self.workspaces.lock().map_or_else(|_| None, |mut workspaces| workspaces.pop()).unwrap_or_default();
        let result = body(&mut workspace);
        if let Ok(mut workspaces) = self.workspaces.lock() {
            workspaces.push(workspace);
        }
        result
    }

    /// Reads tokens into a cache and keeps one hidden row per token, except for the last token.
    fn read_tokens(&self, tokens: &[u32]) -> Result<(A::Cache, Vec<f32>), ModelError> {
        let count = tokens.len().saturating_sub(1);
        if let Some(most) = self.network.max_tokens().filter(|most| count > *most) {
            return Err(ModelError::new(format!("{count} tokens are to be read; the model reads at most {most}")));
        }
        self.ram_suffices(count)?;
        let mut cache = self.network.cache(count);
        let mut hidden = Vec::with_capacity(count * self.network.hidden_size());
        let mut tape = A::Tape::default();
        for from in (0..count).step_by(READ_ROWS) {
            let steps = READ_ROWS.min(count - from);
            let rows = Rows::new(&[(from, steps, 1)], A::ORDER, |_, _, step| tokens[from + step]);
            self.network.forward(&self.weights, &rows, Past::Growing(&mut cache), &mut tape);
            hidden.extend_from_slice(A::hidden(&tape));
        }
        Ok((cache, hidden))
    }

    /// Bytes of the weights, and of what a sequence of this many tokens needs with the smallest passes.
    fn least_ram(&self, tokens: usize) -> usize {
        let (cache, row) = self.network.cost(tokens);
        let hidden = tokens * self.network.hidden_size() * size_of::<f32>();
        size_of_val(self.weights.as_slice()) + rayon::current_num_threads() * (cache + hidden + READ_ROWS * row)
    }

    fn ram_suffices(&self, tokens: usize) -> Result<(), ModelError> {
        let needed = self.least_ram(tokens);
        match self.info.ram_limit.filter(|limit| needed > *limit) {
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
        let Some(limit) = self.info.ram_limit else { return PASS_ROWS };
        let (_, row) = self.network.cost(tokens);
        let left = limit.saturating_sub(self.least_ram(tokens)) / rayon::current_num_threads();
        READ_ROWS + (left / row).min(PASS_ROWS - READ_ROWS)
    }
}

impl<A: Network> DensityModel for NeuralModel<A> {
    fn vocabulary_size(&self) -> usize {
        self.info.types
    }

    fn backbone(&self) -> &str {
        self.info.config.backbone()
    }

    fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        if positions.is_empty() {
            return Ok(());
        }
        // One more token than is read; its value does not matter.
        let mut tokens = self.tokens(&events[..positions.end - 1]);
        tokens.push(0);
        let first = self.row_before(positions.start)?;
        let (_, hidden) = self.read_tokens(&tokens)?;
        let hidden = &hidden[first * self.network.hidden_size()..];
        let (table, shape) = self.head();
        head::distributions(hidden, table, shape, &mut TileBuffers::default(), |row, values| {
            rows[row * shape.1..][..shape.1].copy_from_slice(values);
        });
        Ok(())
    }

    fn read<'a>(&'a self, events: &[EventId]) -> Result<Box<dyn Reading + 'a>, ModelError> {
        let tokens = self.tokens(events);
        let (cache, hidden) = self.read_tokens(&tokens)?;
        let first = 1 - self.shift();
        let mut observed = vec![EventScore { log_p: f64::NAN, log_not_p: f64::NAN }; events.len()];
        let targets: Vec<u32> = events.get(first..).unwrap_or_default().iter().map(|event| event.0).collect();
        let (table, shape) = self.head();
        head::score(&hidden, table, shape, &targets, &mut TileBuffers::default(), |row, score| {
            observed[row + first] = score;
        });
        Ok(Box::new(NeuralReading { model: self, tokens, cache, hidden, observed }))
    }

    fn predicts_first(&self) -> bool {
        self.info.begin.is_some()
    }

    fn predicts_end(&self) -> bool {
        self.info.end
    }

    fn max_length(&self) -> Option<usize> {
        // The last event of a sequence is predicted but never read.
        self.network.max_tokens().map(|tokens| tokens + 1 - self.shift())
    }

    fn trained_length(&self) -> Option<usize> {
        self.info.trained_length
    }

    fn set_ram_limit(&mut self, bytes: usize) {
        self.info.ram_limit = Some(bytes);
    }

    fn check_ram(&self, longest: usize) -> Result<(), ModelError> {
        self.ram_suffices(longest)
    }

    fn frequencies(&self) -> Option<&[f64]> {
        self.info.frequencies.as_deref()
    }

    fn fitness(&self) -> Fitness {
        self.info.fitness
    }
}

impl<A: Network> NeuralModel<A> {
    fn no_gradients(&self) -> ModelError {
        ModelError::new(format!("{} has no gradients, and saliency needs them", self.backbone()))
    }
}

impl<A: Network> InputGradients for NeuralModel<A> {
    fn saliency(&self, events: &[EventId], positions: Range<usize>, out: &mut [f64]) -> Result<(), ModelError> {
        let tokens = self.tokens(&events[..positions.end]);
        let effects = Effects { tokens: &tokens, begin: self.shift(), outcomes: self.row_size(), positions };
        with_kind!(
            &self.info.config,
            network => {
                saliency::fill(&network, &self.weights, &effects, out);
                Ok(())
            },
            _network => Err(self.no_gradients()),
            _encoder => Err(self.no_gradients())
        )
    }
}

struct NeuralReading<'a, A: Network> {
    model: &'a NeuralModel<A>,
    tokens: Vec<u32>,
    cache: A::Cache,
    /// One row per token, except for the last token.
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

impl<A: Network> Reading for NeuralReading<'_, A> {
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
        if self.model.info.ram_limit.is_some() && longest > most {
            return Err(ModelError::new(format!(
                "the RAM limit leaves room for branches of {most} events, not of {longest}; a smaller memory would do"
            )));
        }
        self.model.with_workspace(|workspace| {
            let mut pieces = Vec::new();
            let mut rows = 0;
            for (entry, branches) in batch.iter().enumerate() {
                // Divergences need the observed distributions of an entry; those of several entries would need too much
                // memory.
                if measure == Measure::Divergence && !pieces.is_empty() {
                    self.pass(batch, &pieces, measure, &mut entries, workspace)?;
                    pieces.clear();
                    rows = 0;
                }
                let mut first = 0;
                while first < branches.count() {
                    // At least one branch, however long it is.
                    let fits = ((most - rows.min(most)) / branches.horizon()).max(usize::from(pieces.is_empty()));
                    let count = fits.min(branches.count() - first);
                    if count == 0 {
                        self.pass(batch, &pieces, measure, &mut entries, workspace)?;
                        pieces.clear();
                        rows = 0;
                        continue;
                    }
                    pieces.push(Piece { entry, first, count });
                    rows += count * branches.horizon();
                    first += count;
                }
            }
            if pieces.is_empty() { Ok(()) } else { self.pass(batch, &pieces, measure, &mut entries, workspace) }
        })
    }
}

impl<A: Network> NeuralReading<'_, A> {
    /// The observed log-distributions at these positions.
    fn distributions(&self, positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        let (table, shape) = self.model.head();
        let first = self.model.row_before(positions.start)?;
        let hidden = &self.hidden[first * shape.0..][..positions.len() * shape.0];
        head::distributions(hidden, table, shape, &mut TileBuffers::default(), |row, values| {
            rows[row * shape.1..][..shape.1].copy_from_slice(values);
        });
        Ok(())
    }

    /// Runs pieces of a batch through the network and fills in their scores.
    fn pass(
        &self,
        batch: &[Branches<'_>],
        pieces: &[Piece],
        measure: Measure,
        entries: &mut [EntryMut<'_>],
        workspace: &mut Workspace<A>,
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
        // The destination of each row's numbers: an entry, and an index in it.
        let mut places = vec![(0, 0); rows.len()];
        rows.for_each(|group, branch, step, row| {
            let piece = pieces[group.index];
            let branches = &batch[piece.entry];
            targets[row] = self.tokens[branches.start() + shift + step + 1];
            places[row] = (piece.entry, (piece.first + branch) * branches.horizon() + step);
        });
        let model = self.model;
        model.network.forward(&model.weights, &rows, Past::Shared(&self.cache), &mut workspace.tape);
        let (table, shape) = model.head();
        let hidden = A::hidden(&workspace.tape);
        head::score(hidden, table, shape, &targets, &mut workspace.tiles, |row, score| {
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
        head::distributions(hidden, table, shape, &mut workspace.tiles, |row, values| {
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
