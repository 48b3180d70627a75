//! A log as a corpus: read again for every epoch, so that it need not fit in memory where its format allows that.

use trace_core::Vocabulary;
use trace_models::Error;
use trace_models::neural::train::{Corpus, SequencePass};

use super::Part;
use crate::Log;

/// A log whose event types are known, or the half of its sequences that a part of a cross-fit is trained on.
pub(super) struct LogCorpus<'l> {
    pub(super) log: &'l Log,
    pub(super) vocabulary: &'l Vocabulary,
    pub(super) part: &'l Part,
}

impl Corpus for LogCorpus<'_> {
    fn pass(&self) -> Result<SequencePass<'_>, Error> {
        let fault = |error: trace_io::Error| Error::Corpus(Box::new(error));
        let mut sequences = self.log.sequences().map_err(fault)?;
        let mut vocabulary = self.vocabulary.clone();
        let all = std::iter::from_fn(move || {
            let next = sequences.next(&mut vocabulary).map_err(fault).transpose()?;
            Some(next.map(|found| found.sequence))
        });
        Ok(Box::new(all.filter(|sequence| sequence.as_ref().map_or(true, |sequence| self.part.has(&sequence.id)))))
    }
}
