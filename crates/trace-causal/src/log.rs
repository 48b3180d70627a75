//! Logs, as every recipe reads them.

use std::path::{Path, PathBuf};

use trace_core::{EventSequence, Families, Vocabulary};
use trace_io::log::{EventLog, LogOptions, RARE, Sequences, Shaping, Summary, Unknown};

use crate::progress::{Control, Note, Update};
use crate::{Error, Model};

/// An event log that can be read again and again.
///
/// ```no_run
/// use trace_causal::Log;
///
/// let log = Log::open("events.csv")?;
/// println!("{} sequences", log.summary()?.cases);
/// # Ok::<(), trace_causal::Error>(())
/// ```
pub struct Log {
    inner: trace_io::log::Log,
    options: LogOptions,
    path: PathBuf,
}

impl Log {
    /// Opens a log by its usual names and formats; `-` is standard input.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, &LogOptions::default())
    }

    /// Opens a log as the options say.
    pub fn open_with(path: impl AsRef<Path>, options: &LogOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        let inner = trace_io::log::Log::open(path, options)?;
        Ok(Self { inner, options: options.clone(), path: path.to_owned() })
    }

    /// What to call it in messages.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it is read.
    pub const fn options(&self) -> &LogOptions {
        &self.options
    }

    /// What it holds, what is read of it and what is dropped.
    pub fn summary(&self) -> Result<Summary, Error> {
        Ok(self.inner.summarize()?)
    }

    /// The steps of event types, where it was opened as a log whose events are steps with outcomes.
    pub fn families(&self, vocabulary: &Vocabulary) -> Result<Option<Families>, Error> {
        Ok(self.inner.families(vocabulary)?)
    }

    /// Its event types, by reading it once, or these where they are known; and what it holds.
    pub(crate) fn vocabulary(&self, known: Option<&Vocabulary>) -> Result<(Vocabulary, Summary), Error> {
        let (mut vocabulary, unknown) = start(known);
        let mut sequences = Sequences::new(self.inner.pass()?, unknown);
        while sequences.next(&mut vocabulary)?.is_some() {}
        let summary = sequences.summary();
        summary.check()?;
        Ok((vocabulary, summary))
    }

    /// One reading with a vocabulary that knows all of its types.
    pub(crate) fn sequences(&self) -> Result<Sequences<'_>, trace_io::Error> {
        Ok(Sequences::new(self.inner.pass()?, Unknown::Refuse))
    }

    /// All sequences and the types they have, or these where they are known.
    pub(crate) fn read_all(
        &self,
        known: Option<&Vocabulary>,
        control: &Control<'_>,
    ) -> Result<(EventLog, Vocabulary), Error> {
        let (mut vocabulary, unknown) = start(known);
        let (log, summary) = EventLog::read(&self.inner, &mut vocabulary, unknown)?;
        control.update(&Update::Read(&summary));
        Ok((log, vocabulary))
    }

    /// All sequences in the types of a model.
    pub fn read_for(&self, model: &Model, unknown: Unknown, control: &Control<'_>) -> Result<EventLog, Error> {
        let mut vocabulary = model.vocabulary().clone();
        let shaping = self.options.shaping;
        let pass = if shaping.min_count.is_some() {
            // What is rare was decided when the model was trained: counts of another log, or of one case, would differ.
            if !vocabulary.has_names() || vocabulary.id(&RARE.into()).is_none() {
                let reason = format!("the model was trained without it and has no type {RARE:?}; leave it out");
                return Err(Error::option("min_count", reason));
            }
            self.inner.pass_unfolded()?
        } else {
            self.inner.pass()?
        };
        let (log, summary) = EventLog::read_pass(pass, &mut vocabulary, unknown)?;
        control.update(&Update::Read(&summary));
        self.compare_shaping(model, control);
        Ok(log)
    }

    /// Says so when the log is shaped otherwise than the one the model was trained on.
    fn compare_shaping(&self, model: &Model, control: &Control<'_>) {
        // What is rare is known to the model, and so is whether cases end.
        let plain = |shaping: Shaping| Shaping { min_count: None, open_cases: false, ..shaping };
        if let Some(trained) = model.shaping().filter(|trained| plain(*trained) != plain(self.options.shaping)) {
            control.note(&Note::OtherShaping { trained, here: self.options.shaping });
        }
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("path", &self.path).field("options", &self.options).finish_non_exhaustive()
    }
}

/// A vocabulary to read a log with, and what to do with types that it does not have.
fn start(known: Option<&Vocabulary>) -> (Vocabulary, Unknown) {
    known.map_or_else(|| (Vocabulary::named(), Unknown::Add), |known| (known.clone(), Unknown::Refuse))
}

/// The sequence with this id, or the only one.
pub(crate) fn choose<'l>(log: &'l EventLog, case: Option<&str>) -> Result<&'l EventSequence, Error> {
    match (case, log.sequences.as_slice()) {
        (Some(id), sequences) => sequences
            .iter()
            .find(|sequence| sequence.id == id)
            .ok_or_else(|| Error::option("case", format!("{} has no sequence {id:?}", log.name))),
        (None, [only]) => Ok(only),
        (None, sequences) => {
            let (count, first) = (sequences.len(), &sequences[0].id);
            let reason = format!("{} has {count} sequences; expected the id of one, such as {first:?}", log.name);
            Err(Error::option("case", reason))
        }
    }
}
