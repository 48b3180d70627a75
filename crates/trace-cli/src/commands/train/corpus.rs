//! A log as a corpus: read again for every epoch, so that it need not fit in memory where its format allows that.

use trace_core::Vocabulary;
use trace_io::log::{Log, Sequences, Summary, Unknown};
use trace_models::Error;
use trace_models::neural::train::{Corpus, SequencePass};

use crate::cli::LogArgs;
use crate::commands::log::open_log;

/// A log that was looked through once, so that its event types are known and its faults are found.
pub struct LogCorpus {
    pub name: String,
    pub vocabulary: Vocabulary,
    pub summary: Summary,
    log: Log,
}

impl LogCorpus {
    pub fn open(args: &LogArgs) -> anyhow::Result<Self> {
        let log = open_log(args)?;
        let mut vocabulary = Vocabulary::named();
        let mut sequences = Sequences::new(log.pass()?, Unknown::Add);
        while sequences.next(&mut vocabulary)?.is_some() {}
        let summary = sequences.summary();
        drop(sequences);
        summary.check()?;
        Ok(Self { name: log.name().to_owned(), vocabulary, summary, log })
    }
}

impl Corpus for LogCorpus {
    fn pass(&self) -> Result<SequencePass<'_>, Error> {
        let fault = |error: trace_io::Error| Error::Corpus(Box::new(error));
        let mut sequences = Sequences::new(self.log.pass().map_err(fault)?, Unknown::Refuse);
        let mut vocabulary = self.vocabulary.clone();
        Ok(Box::new(std::iter::from_fn(move || {
            let next = sequences.next(&mut vocabulary).map_err(fault).transpose()?;
            Some(next.map(|found| found.sequence.events))
        })))
    }
}
