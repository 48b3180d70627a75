//! A stream of CSV as chunks of whole records.

use std::io::Read;

use memchr::memchr_iter;

use super::records::whole_records;
use crate::Error;
use crate::log::source::{Compression, broken};

/// A record longer than this is not a record but a quote that was never closed, or not CSV at all.
const LONGEST_RECORD: usize = 64 << 20;

/// Whole records.
pub(super) struct Chunk {
    pub(super) bytes: Vec<u8>,
    /// The line that they begin at.
    pub(super) line: u64,
    /// Whether nothing follows.
    pub(super) last: bool,
}

/// Cuts a stream after whole records.
pub(super) struct Chunks {
    pub(super) name: String,
    pub(super) compression: Option<Compression>,
    pub(super) reader: Box<dyn Read + Send>,
    pub(super) delimiter: u8,
    /// Bytes to aim for.
    pub(super) size: usize,
    /// The beginning of a record that was not whole.
    pub(super) rest: Vec<u8>,
    pub(super) line: u64,
    pub(super) done: bool,
}

impl Chunks {
    /// The next chunk.
    pub(super) fn next(&mut self) -> Result<Option<Chunk>, Error> {
        if self.done {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(self.size + self.rest.len());
        bytes.append(&mut self.rest);
        let mut goal = self.size.max(2 * bytes.len());
        loop {
            let want = goal - bytes.len();
            let read = (&mut self.reader).take(want as u64).read_to_end(&mut bytes);
            let read = read.map_err(|error| broken(&self.name, self.compression, error))?;
            if read < want {
                self.done = true;
                return Ok(Some(self.cut(bytes, true)));
            }
            let whole = whole_records(&bytes, self.delimiter);
            if whole > 0 {
                self.rest = bytes.split_off(whole);
                return Ok(Some(self.cut(bytes, false)));
            }
            if bytes.len() > LONGEST_RECORD {
                let reason = format!(
                    "a record of more than {} MB begins here; expected shorter ones (is a quote never closed?)",
                    LONGEST_RECORD >> 20
                );
                return Err(Error::line(&self.name, self.line, reason));
            }
            goal = 2 * bytes.len();
        }
    }

    fn cut(&mut self, bytes: Vec<u8>, last: bool) -> Chunk {
        let line = self.line;
        self.line += memchr_iter(b'\n', &bytes).count() as u64;
        Chunk { bytes, line, last }
    }
}
