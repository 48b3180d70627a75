//! Files that are no event logs, recognized by their first bytes, so that the error can say what they are.

use serde::de::IgnoredAny;

use super::source::MARK;

/// What can be read instead.
const EXPECTED: &str = "expected an event log: CSV, TSV, Parquet, XES, JSON Lines or plain text, also compressed with \
                        gzip or zstd";

/// First bytes that no log has. Where they are text, enough of them is compared that no plain text begins so.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"SQLite format 3\0", "a SQLite database"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\xfd7zXZ\0", "compressed with xz"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4"),
    (b"%PDF-", "a PDF document"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook (.xls) or another old Office document"),
    (b"ARROW1\0\0", "an Arrow file (Feather)"),
    (b"FEA1\0", "a Feather file"),
    (b"Obj\x01", "an Avro file"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
];

/// Why the bytes are no log in any format, if they are in a known binary one.
pub(super) fn binary(head: &[u8]) -> Option<String> {
    let known = SIGNATURES.iter().find(|(signature, _)| head.starts_with(signature)).map(|(_, what)| *what);
    let what = match known {
        Some("a zip archive") => zip(head),
        Some(what) => what,
        None if bzip2(head) => "compressed with bzip2",
        None if head.get(257..262) == Some(b"ustar") => "a tar archive",
        None => return None,
    };
    Some(format!("is {what}; {EXPECTED}"))
}

/// Office documents are zip archives whose first file tells them.
fn zip(head: &[u8]) -> &'static str {
    let has = |text: &[u8]| memchr::memmem::find(head, text).is_some();
    if has(b"application/vnd.oasis.opendocument.spreadsheet") {
        "an OpenDocument spreadsheet (.ods)"
    } else if has(b"xl/") {
        "an Excel workbook (.xlsx)"
    } else if has(b"[Content_Types].xml") {
        "an Office document"
    } else {
        "a zip archive"
    }
}

/// `BZh`, the size of blocks, and the mark of a block or of the end.
fn bzip2(head: &[u8]) -> bool {
    let marks: [&[u8]; 2] = [b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90"];
    matches!(head, [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] if marks.iter().any(|mark| rest.starts_with(mark)))
}

/// Why XML is no log in XES, if it is an object-centric log.
pub(super) fn object_centric_xml(head: &[u8]) -> Option<String> {
    let has = |part: &[u8], text: &[u8]| memchr::memmem::find(part, text).is_some();
    let root = &head[memchr::memmem::find(head, b"<log")?..];
    let tag = &root[..memchr::memchr(b'>', root).unwrap_or(root.len())];
    let before_traces = &root[..memchr::memmem::find(root, b"<trace").unwrap_or(root.len())];
    let declared = has(before_traces, b"<object-types") || has(before_traces, b"\"object-types\"");
    (declared || has(&tag.to_ascii_lowercase(), b"ocel")).then(|| object_centric("XML"))
}

/// Why JSON is no log in JSON Lines, if it is an object-centric log.
fn object_centric_json(text: &[u8]) -> Option<String> {
    (has_key(text, b"\"ocel:") || has_key(text, b"\"objectTypes\"")).then(|| object_centric("JSON"))
}

fn object_centric(language: &str) -> String {
    format!(
        "is an object-centric log (OCEL in {language}), in which an event may belong to many cases; {EXPECTED}. A tool \
         for such logs can flatten it to the objects of one type, one row per event"
    )
}

/// Whether JSON has a key that begins so.
fn has_key(text: &[u8], start: &[u8]) -> bool {
    memchr::memmem::find_iter(text, start).any(|at| {
        let rest = &text[at + 1..];
        let after = memchr::memchr(b'"', rest).map(|end| rest[end + 1..].trim_ascii_start());
        after.is_some_and(|after| after.starts_with(b":"))
    })
}

/// Why the text is not JSON Lines, if it is JSON of another kind: an object-centric log, an array, or an object on
/// several lines. `told` means that the file is known to be JSON.
pub(super) fn json_document(head: &[u8], told: bool) -> Option<String> {
    let text = head.strip_prefix(MARK).unwrap_or(head).trim_ascii_start();
    let array = match text {
        [b'[', rest @ ..] => told || rest.trim_ascii_start().starts_with(b"{"),
        _ => false,
    };
    if text.starts_with(b"{") {
        if let Some(reason) = object_centric_json(text) {
            return Some(reason);
        }
    } else if !array {
        return None;
    }
    (array || on_several_lines(text)).then(|| {
        r#"is one JSON document; expected JSON Lines: one object per line like {"id": "v1", "events": ["A", "B"]}"#
            .to_owned()
    })
}

/// Whether the first line breaks off inside a value that the next lines carry on.
fn on_several_lines(text: &[u8]) -> bool {
    let Some(end) = memchr::memchr(b'\n', text) else { return false };
    let (line, rest) = text.split_at(end);
    let cut_off = serde_json::from_slice::<IgnoredAny>(line).is_err_and(|error| error.is_eof());
    if !cut_off || rest.trim_ascii().is_empty() {
        return false;
    }
    match serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>().next() {
        Some(Ok(_)) => true,
        // What is looked at, or the file itself, ends before the value does.
        Some(Err(error)) => error.is_eof(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_not_taken_for_anything_else() {
        for text in ["BZh9 x", "ARROW1 ARROW2", "Obj 1", "PK 3", "FEA1 FEA2", "SQLite format 3 x", "7z x", "PDF-1"] {
            assert_eq!(binary(text.as_bytes()), None, "{text}");
        }
        assert_eq!(json_document(b"[INFO] started\n", false), None);
        assert_eq!(json_document(b"{\"events\": [\"objectTypes\", \"ocel:x\"]}\n", true), None);
        assert_eq!(json_document(b"{\"events\": [1\n", true), None, "one line, cut off");
        assert_eq!(json_document(b"{\"events\": [1\n{\"events\": [2]}\n{\"events\": [3]}\n", true), None);
        assert_eq!(object_centric_xml(b"<log><trace><string key=\"object-types\" value=\"a\"/></trace></log>"), None);
    }
}
