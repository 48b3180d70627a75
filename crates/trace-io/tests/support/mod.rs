//! Logs from bytes.
#![allow(dead_code)] // each test file uses its part

use std::io::{Cursor, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use trace_core::{Hint, Vocabulary};
use trace_io::Error;
use trace_io::log::{EventLog, Log, LogOptions, Summary, Unknown};

/// A log, and all it says.
pub struct Read {
    pub log: EventLog,
    pub summary: Summary,
    vocabulary: Vocabulary,
}

impl Read {
    /// Every sequence as `id: A B C`.
    pub fn lines(&self) -> Vec<String> {
        let names = |events: &[trace_core::EventId]| {
            events.iter().map(|event| self.vocabulary.name(*event).to_string()).collect::<Vec<_>>().join(" ")
        };
        self.log.sequences.iter().map(|sequence| format!("{}: {}", sequence.id, names(&sequence.events))).collect()
    }

    pub fn times(&self, index: usize) -> &[f64] {
        self.log.sequences[index].times.as_deref().unwrap()
    }
}

pub fn try_read(name: &str, bytes: &[u8], options: &LogOptions) -> Result<Read, Error> {
    let log = Log::from_reader(name, Cursor::new(bytes.to_vec()), options)?;
    let mut vocabulary = Vocabulary::named();
    let (log, summary) = EventLog::read(&log, &mut vocabulary, Unknown::Add)?;
    Ok(Read { log, summary, vocabulary })
}

pub fn read(name: &str, bytes: impl AsRef<[u8]>, options: &LogOptions) -> Read {
    try_read(name, bytes.as_ref(), options).unwrap_or_else(|error| panic!("{error}"))
}

/// What is said of a log that is refused.
pub fn refuse(name: &str, bytes: impl AsRef<[u8]>, options: &LogOptions) -> String {
    error(name, bytes, options).to_string()
}

/// Why a log is refused.
pub fn error(name: &str, bytes: impl AsRef<[u8]>, options: &LogOptions) -> Error {
    match try_read(name, bytes.as_ref(), options) {
        Err(error) => error,
        Ok(read) => panic!("{name} was read: {:?}", read.lines()),
    }
}

/// The options that an error hints at, as `name` or `name=value`.
pub fn hinted(error: &Error) -> Vec<String> {
    let text = |hint: &Hint| match &hint.value {
        Some(value) => format!("{}={value}", hint.option),
        None => hint.option.to_string(),
    };
    error.hints().iter().map(text).collect()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

pub fn parquet(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)));
    let batch = batch.unwrap();
    let mut out = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut out, Arc::clone(&batch.schema()), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    out
}
