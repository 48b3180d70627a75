//! What a run tells while it goes on, and how it is asked to stop.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use trace_io::log::{Shaping, Summary};
use trace_models::neural::train::TrainProgress;

use crate::train::{TrainPlan, TrainReport};

/// Who listens while a run goes on. Any `Fn(&Update)` does.
pub trait Progress: Sync {
    /// Something happened. Called from the thread that works, so it should return soon.
    fn update(&self, update: &Update<'_>);
}

impl<F: Fn(&Update<'_>) + Sync> Progress for F {
    fn update(&self, update: &Update<'_>) {
        self(update);
    }
}

/// Something that happened in a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Update<'u> {
    /// A log was read.
    Read(&'u Summary),
    /// Sequences are about to be worked on.
    Started {
        /// What is done to them.
        task: Task,
        /// How many there are.
        sequences: u64,
    },
    /// Some more sequences are finished.
    Advanced {
        /// What was done to them.
        task: Task,
        /// How many are new.
        sequences: u64,
    },
    /// No more sequences follow.
    Ended {
        /// What was done to them.
        task: Task,
    },
    /// A training is about to begin.
    Training(&'u TrainPlan),
    /// A step of a training.
    Step(&'u TrainProgress),
    /// A training has ended.
    Trained(&'u TrainReport),
    /// Something to know that is no error.
    Note(&'u Note),
}

/// What is done to sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Task {
    /// They are simulated.
    Simulate,
    /// Their graphs are discovered.
    Discover,
}

/// Something to know that is no error.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// A run goes on after this many sequences.
    ContinuingSequences {
        /// Finished ones.
        done: usize,
        /// Finished ones that are made again, because the population was last saved before them.
        again: usize,
    },
    /// A training goes on after this many steps.
    ContinuingSteps(u64),
    /// A run was asked to go on, but there is nothing to go on from.
    NothingToContinue,
    /// All of what was asked for is there already.
    CompleteAlready(PathBuf),
    /// What an unfinished run left is discarded.
    StartingOver,
    /// The log is shaped otherwise than the one that the model was trained on.
    OtherShaping {
        /// How that one was.
        trained: Shaping,
        /// How this one is.
        here: Shaping,
    },
    /// The error bound of the model promises nothing.
    VacuousBound,
    /// Sequences are longer than those that the model was trained on.
    BeyondTrainedLength {
        /// The longest here.
        longest: usize,
        /// The longest that it was trained on.
        trained: usize,
    },
    /// Few events or sequences were held out, so that the measured fit means little.
    FewHeldOut {
        /// Held-out sequences.
        sequences: usize,
        /// Their events.
        events: usize,
    },
    /// Nothing was held out, because the log is one sequence.
    OneSequence {
        /// Its events.
        events: usize,
    },
    /// Sequences occur in several files with the same id and events, and count each time.
    RepeatedSequences(u64),
    /// The process was drawn and is being calibrated.
    Calibrating {
        /// Its event types.
        vocabulary: usize,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ContinuingSequences { done, again } => {
                write!(f, "continuing after {done} finished sequences")?;
                if *again > 0 {
                    write!(f, "; {again} more are made again: the population was last saved before them")?;
                }
                Ok(())
            }
            Self::ContinuingSteps(steps) => write!(f, "continuing after {steps} steps"),
            Self::NothingToContinue => f.write_str("nothing to continue; starting from the beginning"),
            Self::CompleteAlready(path) => write!(f, "{}: complete already, nothing to continue", path.display()),
            Self::StartingOver => f.write_str("starting over: what an unfinished run left is discarded"),
            Self::OtherShaping { .. } => {
                f.write_str("note: the model was trained on a log that was shaped otherwise than this one")
            }
            Self::VacuousBound => f.write_str("note: the error bound of this model is vacuous"),
            Self::BeyondTrainedLength { longest, trained } => write!(
                f,
                "warning: sequences of up to {longest} events, but the model was trained on at most {trained}: its \
                 predictions beyond that may mean little"
            ),
            Self::FewHeldOut { sequences, events } => write!(
                f,
                "warning: only {events} events of {sequences} sequences are held out, so the measured fit says little"
            ),
            Self::OneSequence { events } => write!(
                f,
                "warning: the log is one sequence of {events} events, so nothing is held out and the fit stays unknown"
            ),
            Self::RepeatedSequences(count) => write!(
                f,
                "warning: {count} sequences occur in several files with the same id and events, and count each time"
            ),
            Self::Calibrating { vocabulary } => {
                write!(f, "drawing a process of {vocabulary} types and calibrating it")
            }
        }
    }
}

/// Asks runs to stop at the next good place. Clones ask the same runs.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Nothing is cancelled yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether a stop was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A listener and a cancellation handle, as every run has them.
#[derive(Clone, Default)]
pub struct Control<'c> {
    progress: Option<&'c dyn Progress>,
    cancel: Cancel,
}

impl<'c> Control<'c> {
    /// Nobody listens, and nobody will cancel.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a listener.
    #[must_use]
    pub const fn progress(mut self, progress: &'c dyn Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// With a cancellation handle.
    #[must_use]
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    pub(crate) fn update(&self, update: &Update<'_>) {
        if let Some(progress) = self.progress {
            progress.update(update);
        }
    }

    pub(crate) fn note(&self, note: &Note) {
        self.update(&Update::Note(note));
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

impl fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}
