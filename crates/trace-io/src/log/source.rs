//! The bytes of a log: a file or standard input, unpacked where it is compressed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use serde::Serialize;

use super::options::Format;
use super::recognize;
use crate::Error;

/// Bytes that decide about compression, encoding and format.
pub(crate) const LOOK: usize = 1 << 16;

/// How the bytes were packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
}

impl Compression {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "Zstandard",
        }
    }
}

/// An opened log, before anything of it was taken.
pub(crate) struct Source {
    /// What to call it in messages.
    pub(crate) name: String,
    /// The extension before those of compression.
    pub(crate) extension: String,
    pub(crate) compression: Option<Compression>,
    /// The file itself, where it is one that can be read at any place and is not compressed.
    pub(crate) file: Option<File>,
    /// The first bytes, unpacked.
    pub(crate) head: Vec<u8>,
    /// All bytes, unpacked, from the first on.
    pub(crate) reader: Box<dyn Read + Send>,
}

impl Source {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        if path == Path::new("-") {
            return Self::new("standard input", path, Box::new(io::stdin()), None);
        }
        let file = File::open(path).map_err(Error::io(path))?;
        let metadata = file.metadata().map_err(Error::io(path))?;
        if metadata.is_dir() {
            return Err(Error::file(path, "is a folder; expected a file"));
        }
        let again = if metadata.is_file() { file.try_clone().ok() } else { None };
        Self::new(&path.display().to_string(), path, Box::new(file), again)
    }

    /// From any bytes; the path gives the extensions.
    pub(crate) fn new(
        name: &str,
        path: &Path,
        mut reader: Box<dyn Read + Send>,
        file: Option<File>,
    ) -> Result<Self, Error> {
        let refuse_binary = |bytes: &[u8]| recognize::binary(bytes).map_or(Ok(()), |what| Err(Error::file(name, what)));
        let packed = take_head(&mut reader).map_err(Error::io(name))?;
        refuse_binary(&packed)?;
        let compression = match packed.get(..4) {
            Some([0x1f, 0x8b, ..]) => Some(Compression::Gzip),
            Some([0x28, 0xb5, 0x2f, 0xfd]) => Some(Compression::Zstd),
            _ => None,
        };
        let extension = extension(path);
        if let (None, Some(expected @ ("gz" | "zst"))) = (compression, last_extension(path).as_deref()) {
            let reason = format!("is called .{expected} but does not begin like such a file; expected compressed data");
            return Err(Error::file(name, reason));
        }
        let all = io::Cursor::new(packed.clone()).chain(reader);
        let (head, reader): (Vec<u8>, Box<dyn Read + Send>) = match compression {
            None => (packed, Box::new(all)),
            Some(compression) => {
                let buffered = BufReader::with_capacity(LOOK, all);
                let mut unpacked: Box<dyn Read + Send> = match compression {
                    Compression::Gzip => Box::new(MultiGzDecoder::new(buffered)),
                    Compression::Zstd => {
                        Box::new(zstd::stream::read::Decoder::with_buffer(buffered).map_err(Error::io(name))?)
                    }
                };
                let head = take_head(&mut unpacked).map_err(|error| broken(name, Some(compression), error))?;
                refuse_binary(&head)?;
                (head.clone(), Box::new(io::Cursor::new(head).chain(unpacked)))
            }
        };
        let file = file.filter(|_| compression.is_none());
        Ok(Self { name: name.to_owned(), extension, compression, file, head, reader })
    }

    /// Refuses text in encodings that are not read; for formats that are text.
    pub(crate) fn check_encoding(&self) -> Result<(), Error> {
        let what = match self.head.as_slice() {
            [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => "UTF-32",
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16",
            // Text of European languages without a mark: every other byte is zero.
            [a, 0, b, 0, ..] if *a != 0 && *b != 0 => "UTF-16 without a byte-order mark",
            [0, a, 0, b, ..] if *a != 0 && *b != 0 => "UTF-16 without a byte-order mark",
            _ => return Ok(()),
        };
        let reason = format!("line 1: column 1: is {what}; expected UTF-8 (iconv -f UTF-16 -t UTF-8 converts it)");
        Err(Error::file(&self.name, reason))
    }

    /// What the extension says, or `None`.
    pub(crate) fn format_by_name(&self) -> Option<Format> {
        Some(match self.extension.as_str() {
            "csv" => Format::Csv,
            "tsv" | "tab" => Format::Tsv,
            "parquet" | "pq" => Format::Parquet,
            "xes" => Format::Xes,
            "jsonl" | "ndjson" | "json" => Format::JsonLines,
            "txt" => Format::Text,
            _ => return None,
        })
    }

    /// The text with the byte-order mark taken off, as a buffered reader.
    pub(crate) fn into_text(mut self) -> Result<Box<dyn BufRead + Send>, Error> {
        if self.head.starts_with(MARK) {
            self.reader.read_exact(&mut [0; MARK.len()]).map_err(Error::io(&self.name))?;
        }
        Ok(Box::new(BufReader::with_capacity(1 << 16, self.reader)))
    }

    /// The file from its start, where there is one.
    pub(crate) fn take_file(&mut self) -> Result<Option<File>, Error> {
        match self.file.take() {
            Some(mut file) => {
                file.rewind().map_err(Error::io(&self.name))?;
                Ok(Some(file))
            }
            None => Ok(None),
        }
    }
}

/// UTF-8's byte-order mark.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// What a failed read means: damaged data where it is compressed, else what the system says.
pub(crate) fn broken(name: &str, compression: Option<Compression>, error: io::Error) -> Error {
    match compression {
        Some(compression) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Error::file(name, format!("the {} data is cut off", compression.name()))
        }
        Some(compression) => Error::file(name, format!("the {} data is damaged: {error}", compression.name())),
        None => Error::Io { file: name.to_owned(), error },
    }
}

fn take_head(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.take(LOOK as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn last_extension(path: &Path) -> Option<String> {
    path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase)
}

/// The extension that names the format: the last one, or the one before `.gz` or `.zst`.
fn extension(path: &Path) -> String {
    match last_extension(path).as_deref() {
        Some("gz" | "zst") => path.file_stem().and_then(|stem| last_extension(Path::new(stem))).unwrap_or_default(),
        other => other.unwrap_or_default().to_owned(),
    }
}
