//! Lines of text with their numbers, and JSON on them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::Error;
use crate::log::source::{Compression, Source, broken};

/// A line longer than this is not a line of a text file.
const LONGEST_LINE: u64 = 512 << 20;

/// The lines of a file that are not blank, as UTF-8 without line ends and without a byte-order mark.
pub(crate) struct Lines {
    pub(crate) file: String,
    reader: Box<dyn BufRead + Send>,
    number: u64,
    compression: Option<Compression>,
}

impl Lines {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        if path == Path::new("-") {
            return Ok(Self::new("standard input", std::io::stdin()));
        }
        let file = File::open(path).map_err(Error::io(path))?;
        if file.metadata().map_err(Error::io(path))?.is_dir() {
            return Err(Error::file(path, "is a folder; expected a file"));
        }
        Ok(Self::new(&path.display().to_string(), file))
    }

    pub(crate) fn new(file: &str, reader: impl Read + Send + 'static) -> Self {
        Self {
            file: file.to_owned(),
            reader: Box::new(BufReader::with_capacity(1 << 16, reader)),
            number: 0,
            compression: None,
        }
    }

    /// The lines of a log that was opened already.
    pub(crate) fn from_source(source: Source) -> Self {
        Self { compression: source.compression, ..Self::new(&source.name, source.reader) }
    }

    /// The next line and its number.
    pub(crate) fn next_line(&mut self) -> Result<Option<(u64, String)>, Error> {
        loop {
            let mut bytes = Vec::new();
            let read = (&mut self.reader).take(LONGEST_LINE).read_until(b'\n', &mut bytes);
            let read = read.map_err(|error| broken(&self.file, self.compression, error))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if read as u64 == LONGEST_LINE {
                let reason = format!("is longer than {} MB; expected text in lines", LONGEST_LINE >> 20);
                return Err(Error::file(&self.file, format!("line {}: {reason}", self.number)));
            }
            let mut text = String::from_utf8(bytes).map_err(|error| {
                let column = error.utf8_error().valid_up_to() + 1;
                Error::line(&self.file, self.number, format!("not UTF-8 text from byte {column} on"))
            })?;
            if self.number == 1 && text.starts_with('\u{feff}') {
                text.remove(0);
            }
            text.truncate(text.trim_end_matches(['\n', '\r']).len());
            if !text.trim().is_empty() {
                return Ok(Some((self.number, text)));
            }
        }
    }

    /// The next line as JSON, which must be a `what`.
    pub(crate) fn next_json<T: DeserializeOwned>(&mut self, what: &str) -> Result<Option<(u64, T)>, Error> {
        let Some((number, text)) = self.next_line()? else { return Ok(None) };
        match serde_json::from_str(&text) {
            Ok(value) => Ok(Some((number, value))),
            Err(error) => {
                let cut = if error.is_eof() { "; the line is cut off" } else { "" };
                let found = not_finite(&text, &error).unwrap_or_else(|| plain(&error));
                Err(Error::line(&self.file, number, format!("expected {what} as JSON: {found}{cut}")))
            }
        }
    }
}

/// What a JSON error says, with the column but without the line, which is always 1 here.
fn plain(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}

/// Some programs write numbers that JSON does not have; the parser only says that a value is missing there.
fn not_finite(text: &str, error: &serde_json::Error) -> Option<String> {
    // The parser may have gone past a sign or the first letter.
    let from = error.column().saturating_sub(2);
    let (at, rest) = (from..from + 2)
        .filter_map(|at| Some((at, text.get(at..)?)))
        .find(|(_, rest)| ["NaN", "nan", "Infinity", "inf"].iter().any(|word| rest.starts_with(word)))?;
    let what = if rest.starts_with(['N', 'n']) { "NaN is not a number" } else { "an infinite number is not finite" };
    Some(format!("{what} at column {}", at + 1))
}
