//! Event logs: what is read, and what never panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::path::PathBuf;

use proptest::prelude::*;
use trace_core::{EventName, Vocabulary};
use trace_io::log::{EventLog, Log, LogOptions, Unknown};

fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn read(name: &str, bytes: &[u8]) -> Result<(EventLog, Vocabulary), trace_io::Error> {
    let (_folder, path) = file(name, bytes);
    let mut vocabulary = Vocabulary::named();
    let log = Log::open(&path, &LogOptions::default())?;
    let (log, _) = EventLog::read(&log, &mut vocabulary, Unknown::Add)?;
    Ok((log, vocabulary))
}

fn names(log: &EventLog, vocabulary: &Vocabulary, index: usize) -> Vec<String> {
    log.sequences[index].events.iter().map(|event| vocabulary.name(*event).to_string()).collect()
}

#[test]
fn plain_text_with_windows_ends_a_mark_and_blank_lines() {
    let (log, vocabulary) = read("log.txt", "\u{feff}5 22 5\r\n\r\n  11\t9 \r\n".as_bytes()).unwrap();
    assert_eq!(log.sequences.len(), 2);
    assert_eq!(names(&log, &vocabulary, 0), ["5", "22", "5"]);
    assert_eq!(names(&log, &vocabulary, 1), ["11", "9"]);
    assert_eq!((log.sequences[0].id.as_str(), log.sequences[1].id.as_str()), ("1", "3"));
    assert_eq!(log.lines, [1, 3]);
    assert_eq!(log.events(), 5);
}

#[test]
fn json_lines_with_numbers_and_without_ids() {
    let text = "{\"events\": [1, \"1\", 2], \"times\": [0, 0.5, 0.5], \"other\": {}}\n{\"id\": 7, \"events\": []}";
    let (log, vocabulary) = read("log.jsonl", text.as_bytes()).unwrap();
    assert_eq!(names(&log, &vocabulary, 0), ["1", "1", "2"]);
    assert_eq!(vocabulary.len(), 2, "a number is its decimal text");
    assert_eq!(log.sequences[0].times, Some(vec![0.0, 0.5, 0.5]));
    assert_eq!((log.sequences[0].id.as_str(), log.sequences[1].id.as_str()), ("1", "7"));
}

#[test]
fn files_without_an_extension_are_told_by_their_first_byte() {
    assert_eq!(read("log", b"\n {\"events\": [\"A\"]}").unwrap().0.sequences[0].events.len(), 1);
    assert_eq!(read("log", b"A B C\n").unwrap().0.sequences[0].events.len(), 3);
}

#[test]
fn bare_ids_are_checked_against_the_size() {
    let (_folder, path) = file("log.txt", b"0 1 2\n0 3\n");
    let mut vocabulary = Vocabulary::ids(3);
    let text = Log::open(&path, &LogOptions::default()).unwrap();
    let error = EventLog::read(&text, &mut vocabulary, Unknown::Refuse).unwrap_err().to_string();
    assert!(error.contains("line 2: event \"3\" at position 1"), "{error}");
    assert!(error.ends_with("; the option unknown = skip leaves such events out"), "{error}");
    let (log, _) = EventLog::read(&text, &mut vocabulary, Unknown::Skip).unwrap();
    assert_eq!((log.skipped[1].as_slice(), log.sequences[1].events.len()), (&[1][..], 1));
    assert_eq!(vocabulary.name(log.sequences[0].events[2]), EventName::Number(2));
}

#[test]
fn skipped_events_take_their_times_along() {
    let (_folder, path) = file("log.jsonl", br#"{"id": "a", "events": [0, 9, 1], "times": [1, 2, 3]}"#);
    let log = Log::open(&path, &LogOptions::default()).unwrap();
    let (log, _) = EventLog::read(&log, &mut Vocabulary::ids(2), Unknown::Skip).unwrap();
    assert_eq!(log.sequences[0].times, Some(vec![1.0, 3.0]));
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read("log.txt", &bytes);
        let _ = read("log.jsonl", &bytes);
        let _ = read("log", &bytes);
    }

    #[test]
    fn no_json_makes_a_reader_panic(text in "[\\[\\]{}\",:0-9a-z\\\\ \n.eE-]{0,200}") {
        let _ = read("log.jsonl", text.as_bytes());
    }
}
