//! Where records and fields of CSV begin and end.
//!
//! A field that begins with a quote ends at the next quote that is not doubled; delimiters and line ends between the
//! two are part of it. A quote anywhere else is an ordinary character, as is what follows a closing quote in its field.
//! A record ends at a line feed outside quotes. All this can be told from any record's start onwards, which is what
//! lets a file be cut into chunks of whole records that are read in parallel.

use memchr::{memchr, memchr_iter, memchr2, memrchr};

const QUOTE: u8 = b'"';

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// As it is; also quoted ones without anything to undo, whose quotes are outside the range.
    Plain,
    /// Quoted, with doubled quotes inside or text behind the closing one.
    Escaped,
}

/// A field's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    start: usize,
    end: usize,
    style: Style,
}

impl Field {
    /// What it says.
    pub(super) fn value<'v>(self, bytes: &'v [u8], scratch: &'v mut Vec<u8>) -> &'v [u8] {
        let raw = &bytes[self.start..self.end];
        if self.style == Style::Plain {
            return raw;
        }
        scratch.clear();
        self.append(bytes, scratch);
        scratch
    }

    /// Puts what it says behind other text.
    pub(super) fn append(self, bytes: &[u8], out: &mut Vec<u8>) {
        let raw = &bytes[self.start..self.end];
        if self.style == Style::Plain {
            out.extend_from_slice(raw);
            return;
        }
        let mut at = 1;
        while let Some(quote) = memchr(QUOTE, &raw[at..]) {
            out.extend_from_slice(&raw[at..at + quote]);
            at += quote + 1;
            if raw.get(at) == Some(&QUOTE) {
                out.push(QUOTE);
                at += 1;
            } else {
                break;
            }
        }
        out.extend_from_slice(&raw[at..]);
    }

    /// Its bytes, where they are what it says.
    pub(super) fn plain(self, bytes: &[u8]) -> Option<&[u8]> {
        (self.style == Style::Plain).then(|| &bytes[self.start..self.end])
    }
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Number of fields, also of those that were not wanted.
    pub(super) count: usize,
    /// Where the next record begins.
    pub(super) next: usize,
    /// Line feeds inside its quotes.
    pub(super) breaks: u64,
    /// Where a quote opens that nothing closes.
    pub(super) unclosed: Option<usize>,
    /// Whether there is nothing in it at all.
    pub(super) blank: bool,
}

/// Reads the record that begins at `at`, which must be inside `bytes`, and notes its first `wanted` fields.
pub(super) fn next_record(bytes: &[u8], at: usize, delimiter: u8, wanted: usize, fields: &mut Vec<Field>) -> Record {
    fields.clear();
    let mut record = Record { count: 0, next: bytes.len(), breaks: 0, unclosed: None, blank: false };
    let mut start = at;
    loop {
        let quoted = bytes.get(start) == Some(&QUOTE);
        let mut style = Style::Plain;
        let mut from = start;
        if quoted {
            match closing(bytes, start) {
                Some((close, doubled)) => {
                    record.breaks += memchr_iter(b'\n', &bytes[start..close]).count() as u64;
                    from = close + 1;
                    if doubled {
                        style = Style::Escaped;
                    }
                }
                None => {
                    record.breaks += memchr_iter(b'\n', &bytes[start..]).count() as u64;
                    record.unclosed = Some(start);
                    from = bytes.len();
                }
            }
        }
        let end = memchr2(delimiter, b'\n', &bytes[from..]).map_or(bytes.len(), |offset| from + offset);
        let last = bytes.get(end) != Some(&delimiter);
        let mut stop = end;
        if last && stop > from && bytes[stop - 1] == b'\r' {
            stop -= 1;
        }
        if record.count < wanted {
            fields.push(if !quoted {
                Field { start, end: stop, style: Style::Plain }
            } else if stop == from && style == Style::Plain && record.unclosed.is_none() {
                Field { start: start + 1, end: from - 1, style }
            } else {
                Field { start, end: stop, style: Style::Escaped }
            });
        }
        record.count += 1;
        if last {
            record.next = (end + 1).min(bytes.len());
            record.blank = record.count == 1 && stop == start;
            return record;
        }
        start = end + 1;
    }
}

/// The quote that closes the one at `open`, and whether there are doubled ones before it.
fn closing(bytes: &[u8], open: usize) -> Option<(usize, bool)> {
    let mut at = open + 1;
    let mut doubled = false;
    while let Some(offset) = memchr(QUOTE, &bytes[at.min(bytes.len())..]) {
        let quote = at + offset;
        if bytes.get(quote + 1) != Some(&QUOTE) {
            return Some((quote, doubled));
        }
        doubled = true;
        at = quote + 2;
    }
    None
}

/// How many of the bytes, which begin with a record, are whole records for certain.
pub(super) fn whole_records(bytes: &[u8], delimiter: u8) -> usize {
    let after = |from: usize, to: usize| memrchr(b'\n', &bytes[from..to]).map(|offset| from + offset + 1);
    let (mut at, mut whole) = (0, 0);
    while let Some(offset) = memchr(QUOTE, &bytes[at..]) {
        let quote = at + offset;
        whole = after(at, quote).unwrap_or(whole);
        let opens = quote == 0 || bytes[quote - 1] == delimiter || bytes[quote - 1] == b'\n';
        at = quote + 1;
        if opens {
            match closing(bytes, quote) {
                // At the very end one cannot know whether another quote doubles it.
                Some((close, _)) if close + 1 < bytes.len() => at = close + 1,
                _ => return whole,
            }
        }
    }
    after(at, bytes.len()).unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Vec<Vec<String>> {
        let (mut at, mut all, mut fields) = (0, Vec::new(), Vec::new());
        while at < text.len() {
            let record = next_record(text.as_bytes(), at, b',', usize::MAX, &mut fields);
            let mut scratch = Vec::new();
            let value = |field: &Field| String::from_utf8(field.value(text.as_bytes(), &mut scratch).to_vec()).unwrap();
            all.push(fields.iter().map(value).collect());
            at = record.next;
        }
        all
    }

    #[test]
    fn quotes_and_line_ends() {
        assert_eq!(parse("a,b\r\nc,\"d,\n\"\"e\"\"\"\r\n"), [["a", "b"], ["c", "d,\n\"e\""]]);
        assert_eq!(parse("\"a\"b,5\" pipe\n,\n"), [["ab", "5\" pipe"], ["", ""]]);
        assert_eq!(parse("\"\",\"\"\"\"\r"), [["", "\""]]);
        assert_eq!(parse("a\n\nb"), [["a"], [""], ["b"]]);
    }

    #[test]
    fn cuts_never_fall_inside_quotes() {
        assert_eq!(whole_records(b"a,b\nc,\"d\ne", b','), 4);
        assert_eq!(whole_records(b"a,b\nc,\"d\"", b','), 4);
        assert_eq!(whole_records(b"a,b\nc,\"d\"\n", b','), 10);
        assert_eq!(whole_records(b"5\" pipe\nx", b','), 8);
        assert_eq!(whole_records(b"\"a\n", b','), 0);
    }

    #[test]
    fn an_open_quote_is_told() {
        let mut fields = Vec::new();
        let record = next_record(b"a,\"b\nc", 0, b',', 9, &mut fields);
        assert_eq!((record.unclosed, record.breaks, record.next), (Some(2), 1, 6));
    }
}
