//! What can go wrong.

use std::error::Error as StdError;
use std::fmt;

/// Why discovery did not produce a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is out of its range or does not go with another one.
    #[error("{name}: {reason}")]
    Setting {
        /// The setting's name: the same in the builder, on the command line and in result files.
        name: &'static str,
        /// What is wrong with it and what would be right.
        reason: String,
    },
    /// The sequence has no pair of positions to test.
    #[error("a sequence of {length} events is too short: with these settings at least {needed} are needed")]
    TooShort {
        /// The length it has.
        length: usize,
        /// The length it would need.
        needed: usize,
    },
    /// The sequence is longer than the model can read.
    #[error("a sequence of {length} events is too long: the model reads at most {limit}")]
    TooLong {
        /// The length it has.
        length: usize,
        /// The longest the model reads.
        limit: usize,
    },
    /// An event id lies outside the model's vocabulary.
    #[error("event {event} at position {position} is not in the model's vocabulary of {vocabulary} types")]
    UnknownEvent {
        /// The id found.
        event: u32,
        /// Where.
        position: usize,
        /// The number of types the model knows.
        vocabulary: usize,
    },
    /// The model gave a probability that is zero or not a number, so that no strength can be computed from it.
    #[error("the model's probability of the event at position {position} is zero or not a number")]
    NotFinite {
        /// The effect's position.
        position: usize,
    },
    /// The model itself failed.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl Error {
    pub(crate) fn setting(name: &'static str, reason: impl Into<String>) -> Self {
        Self::Setting { name, reason: reason.into() }
    }
}

/// A failure inside a density model, in the model's own words.
#[derive(Debug)]
pub struct ModelError(Box<dyn StdError + Send + Sync>);

impl ModelError {
    /// Wraps any error, or a message.
    pub fn new(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the model failed: {}", self.0)
    }
}

impl StdError for ModelError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}
