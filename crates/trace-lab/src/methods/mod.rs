//! Ways to tell which event caused which, behind one trait.
//!
//! TRACE is one of them; the others are what it is compared with. All score the same pairs of positions of
//! the same sequence, and those that need a model use the same frozen one.

mod attention;
mod bigram;
mod frequency;
mod granger;
mod random;
mod saliency;
mod shapley;
mod trace;

pub use attention::{Attends, Attention};
pub use bigram::{Bigram, BigramCounts};
pub use frequency::Frequency;
pub use granger::Granger;
pub use random::Random;
pub use saliency::Saliency;
pub use shapley::{Absent, Shapley};

use trace_core::random::Streams;
use trace_core::{
    Discovered, Error, EventScore, EventSequence, Lag, Memory, Pair, Position, Question, SampleGraph, Verdict,
};

/// A way to score every candidate edge of a sequence.
pub trait Method: Send + Sync {
    /// Which one it is.
    fn name(&self) -> MethodName;

    /// What a score must exceed.
    fn threshold(&self) -> f64;

    /// Scores every pair; those above the threshold are edges.
    fn run(&self, sequence: &EventSequence) -> Result<Discovered, Error>;
}

/// The methods by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MethodName {
    /// Every pair is an edge with the same small probability.
    Random,
    /// The most frequent types cause everything.
    Frequency,
    /// How often a type directly follows another.
    Bigram,
    /// Attention weights of an encoder trained by masking.
    Attention,
    /// Input × gradient.
    Saliency,
    /// Shapley values, by sampled permutations.
    Shapley,
    /// The difference between the effect's probabilities with the cause and without.
    Granger,
    /// The paper's own construction, which also replaces what lies between cause and effect.
    Staircase,
    /// TRACE: one event replaced, everything else as observed.
    Trace,
}

impl MethodName {
    /// All methods, the simplest first.
    pub const ALL: [Self; 9] = [
        Self::Random,
        Self::Frequency,
        Self::Bigram,
        Self::Attention,
        Self::Saliency,
        Self::Shapley,
        Self::Granger,
        Self::Staircase,
        Self::Trace,
    ];

    /// The name on the command line and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Frequency => "frequency",
            Self::Bigram => "bigram",
            Self::Attention => "attention",
            Self::Saliency => "saliency",
            Self::Shapley => "shapley",
            Self::Granger => "granger",
            Self::Staircase => "staircase",
            Self::Trace => "trace",
        }
    }
}

/// Which pairs are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The largest lag.
    pub memory: Memory,
    /// Events at the start that are neither causes nor effects.
    pub context: usize,
}

impl Span {
    /// The number of lags before an effect.
    fn lags(&self, effect: usize) -> usize {
        self.memory.within(effect.saturating_sub(self.context))
    }

    /// The effects of a sequence of this length.
    fn effects(&self, length: usize) -> std::ops::Range<usize> {
        (self.context + 1).min(length)..length
    }

    fn check(&self, sequence: &EventSequence) -> Result<(), Error> {
        let (length, needed) = (sequence.events.len(), self.context.saturating_add(2));
        if length < needed { Err(Error::TooShort { length, needed }) } else { Ok(()) }
    }
}

/// Scores of every pair, as a list of lags (1, 2, …) for each effect, made into a graph.
///
/// `observed` are the probabilities of the events as they happened, where the method knows them. These methods compare
/// nothing with what might have happened instead, so that an edge's ratio of probabilities is 1.
fn graph(
    sequence: &EventSequence,
    span: Span,
    threshold: f64,
    observed: Option<&[EventScore]>,
    scores: &[Vec<f64>],
) -> Result<SampleGraph, Error> {
    let mut pairs = Vec::new();
    for (effect, scores) in span.effects(sequence.events.len()).zip(scores) {
        let probability = observed.map_or(0.0, |observed| observed[effect].log_p.exp());
        for (lag, strength) in (1..).zip(scores) {
            if !strength.is_finite() {
                return Err(Error::NotFinite { position: effect });
            }
            let (cause, effect) = (Position((effect - lag) as u32), Position(effect as u32));
            let pair = Pair {
                cause,
                effect,
                lag: Lag(lag as u32),
                question: Question::Whether,
                strength: *strength,
                std_error: 0.0,
                particles: 0,
                log_ratio: 0.0,
                probability,
                probability_replaced: probability,
                effective_particles: None,
                overlap: None,
                verdict: Verdict::None,
                hidden_cause_ratio: 1.0,
                tied: sequence.tied(cause, effect),
                kept: false,
                required: false,
            };
            pairs.push(pair.decided(threshold));
        }
    }
    pairs.sort_by_key(|pair| (pair.cause, pair.effect));
    Ok(SampleGraph::new(sequence.events.clone(), pairs, threshold))
}

/// The random streams of methods that guess or sample orders: other ones than those of a simulation with the same seed.
fn guesses(seed: u64, id: &str) -> Streams {
    Streams::new(seed, &format!("guess {id}"))
}

/// A graph that took no branches to make.
fn without_branches(graph: SampleGraph) -> Discovered {
    Discovered { graph, branch_positions: 0, evidence: None }
}
