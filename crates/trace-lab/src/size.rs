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
    /// Events that its backbone is trained on; no other backbone of a synthetic process is trained on fewer.
    pub events: usize,
    /// The most that one is trained on, where there is more to learn.
    pub most_events: usize,
    /// Events for each pair of types that there is to learn, within these bounds.
    pub events_per_pair: usize,
    /// Events for each lag that there is to learn, among few types, within these bounds.
    pub events_per_lag: usize,
    /// Event types where it is not their number that an experiment asks about.
    pub few_types: usize,
    /// Events of a sequence.
    pub length: usize,
    /// How far the process looks back.
    pub memory: usize,
    /// Sequences that are reported, and as many to choose thresholds by.
    pub sequences: usize,
    /// Sequences that are reported of few types: some of these run in circles and have an edge or two, so that the mean
    /// of ten says little.
    pub many_sequences: usize,
    /// Processes, each with a backbone of its own, that a mean and spread are taken over.
    pub seeds: u64,
    /// Replacements tried for each cause.
    pub particles: usize,
    /// How much of what happens next is settled by what happened, from 0 to 1, in every synthetic process.
    pub redundancy: f64,
}

impl Scale {
    /// The same, with just this many events to train every backbone of a synthetic process on.
    #[must_use]
    pub const fn with_events(self, events: usize) -> Self {
        Self { events, most_events: events, ..self }
    }

    /// Events to train on for a vocabulary: what must be learned grows with its square.
    pub(crate) fn events_for_types(&self, types: usize) -> usize {
        (self.events_per_pair * types * types).min(self.most_events).max(self.events)
    }

    /// Events to train on for a memory of few types.
    pub(crate) fn events_for_lags(&self, lags: usize) -> usize {
        (self.events_per_lag * lags).min(self.most_events).max(self.events)
    }
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
        let (vocabulary, few_types) = match self {
            Self::Mini => (20, 20),
            Self::Quick => (250, 100),
            Self::Standard => (1000, 100),
            Self::Full => (1000, 1000),
        };
        let (events, most_events) = match self {
            Self::Mini => (150_000, 150_000),
            Self::Quick => (1_000_000, 1_000_000),
            Self::Standard => (2_500_000, 20_000_000),
            Self::Full => (24_000_000, 24_000_000),
        };
        let (sequences, many_sequences, seeds) = match self {
            Self::Mini => (4, 4, 1),
            Self::Quick => (10, 10, 1),
            Self::Standard => (10, 100, 2),
            Self::Full => (10, 100, 10),
        };
        let (length, memory, particles) = match self {
            Self::Mini => (24, 3, 16),
            _ => (64, 6, 128),
        };
        Scale {
            vocabulary,
            events,
            most_events,
            events_per_pair: 5,
            events_per_lag: 1_000_000,
            few_types,
            length,
            memory,
            sequences,
            many_sequences,
            seeds,
            particles,
            redundancy: 0.6,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_to_learn_is_learned_from_more_events_unless_a_number_was_asked_for() {
        let scale = Size::Standard.scale();
        let types = [200, 500, 1000, 2000, 8000].map(|types| scale.events_for_types(types));
        assert_eq!(types, [2_500_000, 2_500_000, 5_000_000, 20_000_000, 20_000_000]);
        assert_eq!(
            [2, 6, 20, 48].map(|lags| scale.events_for_lags(lags)),
            [2_500_000, 6_000_000, 20_000_000, 20_000_000]
        );
        // Also where it is the size's own.
        for asked in [40_000, scale.events, 30_000_000] {
            let scale = scale.with_events(asked);
            assert_eq!((scale.events_for_types(2000), scale.events_for_lags(2)), (asked, asked));
        }
    }
}
