//! A log as a corpus: read from its file again for every epoch.

use std::path::{Path, PathBuf};

use trace_core::{EventId, Vocabulary};
use trace_io::log::{self, Sequences, Unknown};
use trace_models::Error;
use trace_models::neural::train::{Corpus, SequencePass};

/// A log that was looked through once, so that its event types are known and its faults are found.
pub struct LogCorpus {
    pub name: String,
    pub vocabulary: Vocabulary,
    pub sequences: usize,
    pub events: usize,
    source: Source,
}

enum Source {
    File(PathBuf),
    /// What comes through a pipe comes once.
    Memory(Vec<Vec<EventId>>),
}

impl LogCorpus {
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let once = path == Path::new("-") || !path.metadata().is_ok_and(|metadata| metadata.is_file());
        let mut vocabulary = Vocabulary::named();
        let mut log = Sequences::new(log::open(path)?, Unknown::Add);
        let name = log.name().to_owned();
        let (mut count, mut events, mut kept) = (0, 0, Vec::new());
        while let Some(found) = log.next(&mut vocabulary)? {
            count += 1;
            events += found.sequence.events.len();
            if once {
                kept.push(found.sequence.events);
            }
        }
        if count == 0 {
            return Err(trace_io::Error::file(&name, "holds no sequence; expected at least one").into());
        }
        let source = if once { Source::Memory(kept) } else { Source::File(path.to_owned()) };
        Ok(Self { name, vocabulary, sequences: count, events, source })
    }
}

impl Corpus for LogCorpus {
    fn pass(&self) -> Result<SequencePass<'_>, Error> {
        let path = match &self.source {
            Source::Memory(sequences) => return sequences.pass(),
            Source::File(path) => path,
        };
        let fault = |error: trace_io::Error| Error::Corpus(Box::new(error));
        let mut log = Sequences::new(log::open(path).map_err(fault)?, Unknown::Refuse);
        let mut vocabulary = self.vocabulary.clone();
        Ok(Box::new(std::iter::from_fn(move || {
            let next = log.next(&mut vocabulary).map_err(fault).transpose()?;
            Some(next.map(|found| found.sequence.events))
        })))
    }
}
