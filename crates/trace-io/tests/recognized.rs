//! Files that are no event logs: the error says what they are and what can be read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use support::{gzip, read, refuse};
use trace_io::log::{BadRows, LogOptions};

const EXPECTED: &str =
    "expected an event log: CSV, TSV, Parquet, XES, JSON Lines or plain text, also compressed with gzip or zstd";

#[test]
fn binary_files() {
    let zip = |first: &[u8]| [b"PK\x03\x04\x14\0\0\0\0\0", first, b"\0\0"].concat();
    let mut tar = b"log.csv".to_vec();
    tar.resize(257, 0);
    tar.extend_from_slice(b"ustar\0");
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"SQLite format 3\0\x10\0".to_vec(), "is a SQLite database"),
        (zip(b"log.csv"), "is a zip archive"),
        (zip(b"[Content_Types].xml\0xl/workbook.xml"), "is an Excel workbook (.xlsx)"),
        (zip(b"[Content_Types].xml\0word/document.xml"), "is an Office document"),
        (zip(b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet"), "is an OpenDocument spreadsheet (.ods)"),
        (b"7z\xbc\xaf\x27\x1c\0\x04".to_vec(), "is a 7z archive"),
        (b"BZh91AY&SY\0\0".to_vec(), "is compressed with bzip2"),
        (b"\xfd7zXZ\0\0\x04".to_vec(), "is compressed with xz"),
        (b"%PDF-1.7\n".to_vec(), "is a PDF document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec(), "is an Excel workbook (.xls)"),
        (b"ARROW1\0\0\xff\xff".to_vec(), "is an Arrow file (Feather)"),
        (b"Obj\x01\x04\x16avro.schema".to_vec(), "is an Avro file"),
        (b"\x89HDF\r\n\x1a\n\0".to_vec(), "is an HDF5 file"),
        (tar, "is a tar archive"),
    ];
    for (bytes, expected) in cases {
        // Whatever the name says, and whatever is asked for.
        for name in ["log", "log.csv", "log.parquet", "log.xes", "log.jsonl", "log.csv.gz"] {
            for bad_rows in [BadRows::Refuse, BadRows::Skip] {
                let said = refuse(name, &bytes, &LogOptions { bad_rows, ..LogOptions::default() });
                assert!(said.starts_with(&format!("{name}: {expected}")) && said.ends_with(EXPECTED), "{said}");
            }
        }
        let said = refuse("log.csv.gz", gzip(&bytes), &LogOptions::default());
        assert!(said.contains(expected), "compressed: {said}");
    }
}

#[test]
fn object_centric_logs() {
    let cases = [
        (
            "log.xml",
            "<?xml version='1.0'?>\n<log>\n<object-types><object-type name='order'/></object-types></log>",
            "XML",
        ),
        ("log", "<log><global scope=\"log\"><list key=\"object-types\"/></global><events/></log>", "XML"),
        ("log.xmlocel", "<log xmlns:ocel=\"http://www.ocel-standard.org/\"><event-types/></log>", "XML"),
        ("log.xes", "<log><object-types/></log>", "XML"),
        ("log.jsonocel", "{\"ocel:global-log\": {\"ocel:version\": \"1.0\"}, \"ocel:events\": {}}", "JSON"),
        ("log.json", "{\n  \"objectTypes\" : [], \"events\": []}", "JSON"),
    ];
    for (name, text, language) in cases {
        let said = refuse(name, text, &LogOptions::default());
        let expected = format!("{name}: is an object-centric log (OCEL in {language})");
        assert!(said.starts_with(&expected) && said.contains(EXPECTED), "{said}");
    }
}

#[test]
fn json_that_is_not_in_lines() {
    let cases = [
        ("log.json", "[{\"id\": 1, \"events\": [1]}]"),
        ("log.json", "\u{feff}\n  [\n  {\"id\": 1, \"events\": [1]},\n  {\"id\": 2, \"events\": [1]}\n]\n"),
        ("log.jsonl", "{\n  \"id\": 1,\n  \"events\": [1]\n}\n"),
        ("log.jsonl", "{\"id\": 1, \"events\": [\n  1,\n  2]}\n{\"id\": 2, \"events\": [\n  1\n]}"),
        ("log.json", "{\"cases\": {\n  \"a\": [1, 2"),
        ("log", "[\n  {\"id\": 1, \"events\": [1]}\n]\n"),
        ("log", "{\n  \"id\": 1,\n  \"events\": [1]\n}\n"),
        ("log.json", "[]"),
    ];
    for (name, text) in cases {
        for bad_rows in [BadRows::Refuse, BadRows::Skip] {
            let said = refuse(name, text, &LogOptions { bad_rows, ..LogOptions::default() });
            let expected = r#"is one JSON document; expected JSON Lines: one object per line like {"id": "v1", "events": ["A", "B"]}"#;
            assert_eq!(said, format!("{name}: {expected}"), "{text}");
        }
    }
    let long = format!("{{\n\"cases\": [{}]}}", "\"a name\", ".repeat(20_000));
    assert!(refuse("log.json", long, &LogOptions::default()).contains("is one JSON document"));
    assert_eq!(read("log", "[INFO] [WARN]\n", &LogOptions::default()).lines(), ["1: [INFO] [WARN]"]);
    let said = refuse("log.jsonl", "{\"id\": 1, \"events\": [1\n", &LogOptions::default());
    assert!(said.contains("line 1: expected a sequence") && said.contains("the line is cut off"), "{said}");
}
