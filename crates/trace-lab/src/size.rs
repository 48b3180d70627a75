//! How large the experiments are.

/// The size of every experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Seconds: for tests, which check directions.
    Mini,
    /// All experiments in some twenty minutes on two cores.
    Quick,
    /// What two cores finish in some hours.
    Standard,
    /// The paper's.
    Full,
}

/// The numbers behind a size.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Event types of the process that most experiments share.
    pub vocabulary: usize,
    /// Events that its backbone is trained on.
    pub events: usize,
    /// Events of a sequence.
    pub length: usize,
    /// How far the process looks back.
    pub memory: usize,
    /// Sequences that are reported, and as many to choose thresholds by.
    pub sequences: usize,
    /// Processes, each with a backbone of its own, that a mean and spread are taken over.
    pub seeds: u64,
    /// Replacements tried for each cause.
    pub particles: usize,
    /// How much of what happens next is settled by what happened, from 0 to 1, in every synthetic process.
    pub redundancy: f64,
}

impl Size {
    /// A size by its name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Mini, Self::Quick, Self::Standard, Self::Full].into_iter().find(|size| size.name() == name)
    }

    /// Its name on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mini => "mini",
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }

    /// Its numbers.
    pub const fn scale(self) -> Scale {
        let (vocabulary, events, sequences, seeds) = match self {
            Self::Mini => (20, 150_000, 4, 1),
            Self::Quick => (250, 1_000_000, 10, 1),
            Self::Standard => (1000, 2_500_000, 10, 2),
            Self::Full => (1000, 24_000_000, 10, 10),
        };
        let (length, memory, particles) = match self {
            Self::Mini => (24, 3, 16),
            _ => (64, 6, 128),
        };
        Scale { vocabulary, events, length, memory, sequences, seeds, particles, redundancy: 0.6 }
    }

    /// One of four values, by size.
    pub(crate) fn pick<T>(self, mini: T, quick: T, standard: T, full: T) -> T {
        match self {
            Self::Mini => mini,
            Self::Quick => quick,
            Self::Standard => standard,
            Self::Full => full,
        }
    }
}
