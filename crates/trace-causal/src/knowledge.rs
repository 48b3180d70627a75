//! Prior knowledge from its file.

use std::path::Path;

use trace_core::Knowledge;

use crate::{Error, Model};

/// What is known beforehand, and a hash of it for results.
#[derive(Clone, Debug)]
pub(crate) struct KnowledgeFile {
    pub(crate) knowledge: Knowledge,
    pub(crate) hash: String,
}

impl KnowledgeFile {
    /// Reads a file in the types of a model.
    pub(crate) fn read(path: &Path, model: &Model) -> Result<Self, Error> {
        let (knowledge, hash) = trace_io::knowledge::read(path, model.vocabulary())?;
        Ok(Self { knowledge, hash })
    }
}
