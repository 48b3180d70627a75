//! What errors say would help, and that it does help.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use support::{error, hinted, parquet, read};
use trace_io::Error;
use trace_io::log::{BadRows, ColumnChoice, LogOptions, OPTIONS, Shaping};

fn plain() -> LogOptions {
    LogOptions::default()
}

fn skip() -> LogOptions {
    LogOptions { bad_rows: BadRows::Skip, ..LogOptions::default() }
}

fn without_times() -> LogOptions {
    LogOptions { columns: ColumnChoice { no_time: true, ..ColumnChoice::default() }, ..LogOptions::default() }
}

/// A missing time in each row-wise format is called missing, and both ways out that are hinted at work.
#[test]
fn times_that_are_missing() {
    let says = [
        ("", "is empty; expected a time"),
        ("?", "\"?\" stands for no time"),
        ("NaT", "\"NaT\" stands for no time"),
        ("null", "\"null\" stands for no time"),
        ("n/a", "\"n/a\" stands for no time"),
        ("NaN", "time NaN is not a number"),
        ("nan", "time NaN is not a number"),
        ("inf", "time inf is not finite"),
        ("-Infinity", "time -inf is not finite"),
    ];
    for (missing, expected) in says {
        for known in ["1", "2024-05-31T17:30:00Z"] {
            // Whichever comes first, the other times decide how times are written.
            for rows in [[missing, known], [known, missing]] {
                let [first, second] = rows;
                let text = format!("case,event,time\na,x,{first}\na,y,{second}\n");
                check(&error("log.csv", &text, &plain()), expected, missing);
                assert_eq!(read("log.csv", &text, &skip()).log.events(), 1, "{text}");
                assert_eq!(read("log.csv", &text, &without_times()).log.events(), 2, "{text}");
                let column = |values: [&str; 2]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
                let file = parquet(vec![
                    ("case", column(["a", "a"])),
                    ("event", column(["x", "y"])),
                    ("time", column([first, second])),
                ]);
                check(&error("log.parquet", &file, &plain()), expected, missing);
                assert_eq!(read("log.parquet", &file, &skip()).log.events(), 1, "{text}");
            }
        }
        // Where no row has a time, every row says so.
        let text = format!("case,event,time\na,x,{missing}\n");
        check(&error("log.csv", &text, &plain()), expected, missing);
        assert_eq!(read("log.csv", &text, &without_times()).log.events(), 1, "{text}");
    }
}

fn check(error: &Error, expected: &str, missing: &str) {
    let (said, hints) = (error.to_string(), hinted(error));
    assert!(said.contains(expected) && !said.contains("too large"), "{missing:?}: {said}");
    assert!(hints.contains(&"bad_rows=skip".to_owned()), "{missing:?}: {said}");
    let word = expected.contains("stands for");
    assert_eq!(hints.contains(&"time_format".to_owned()), word, "{missing:?}: {said}");
}

#[test]
fn parquet_numbers_that_are_no_times() {
    let case: ArrayRef = Arc::new(StringArray::from(vec!["a", "a"]));
    let file = |time: ArrayRef| parquet(vec![("case", case.clone()), ("event", case.clone()), ("time", time)]);
    let real = |number: f64| file(Arc::new(Float64Array::from(vec![1.0, number])));
    let said = error("log.parquet", real(f64::NAN), &plain());
    assert!(
        said.message().ends_with("row 2: column 3 (\"time\"): time NaN is not a number; expected a time"),
        "{said}"
    );
    assert_eq!(hinted(&said), ["no_time", "bad_rows=skip"]);
    let said = error("log.parquet", real(f64::INFINITY), &plain());
    assert!(said.message().contains("time inf is not finite"), "{said}");
    let said = error("log.parquet", file(Arc::new(Int64Array::from(vec![0, 1_700_000_000_123_456_789]))), &plain());
    assert!(said.message().contains("too large to be exact"), "{said}");
    assert_eq!(hinted(&said), ["time_unit=ns", "bad_rows=skip"]);
}

#[test]
fn json_lines() {
    let said = error("log.jsonl", r#"{"id": "v1", "events": ["A", "B"], "times": [1, NaN]}"#, &plain());
    assert!(said.message().ends_with("as JSON: NaN is not a number at column 49"), "{said}");
    assert_eq!(hinted(&said), ["bad_rows=skip"]);
    let said = error("log.jsonl", r#"{"id": "v1", "events": ["A", "B"], "times": [1, -Infinity]}"#, &plain());
    assert!(said.message().contains("an infinite number is not finite at column"), "{said}");
    let said = error("log.jsonl", r#"{"id": "v1", "events": ["A", "B"], "times": [1, null]}"#, &plain());
    assert!(said.message().ends_with("time at position 1 of sequence \"v1\" is null; expected a number"), "{said}");
    assert_eq!(hinted(&said), ["no_time", "bad_rows=skip"]);
    let said = error("log.jsonl", r#"{"events": ["A", "B"], "times": [2, 1]}"#, &plain());
    assert_eq!(hinted(&said), ["no_time", "bad_rows=skip"]);
    let said = error("log.jsonl", r#"{"events": ["A"], "times": [1700000000123456789]}"#, &plain());
    assert_eq!(hinted(&said), ["time_unit=ns", "bad_rows=skip"]);
}

#[test]
fn xes() {
    let event = |attributes: &str| format!("<log><trace>\n<event>{attributes}</event></trace></log>");
    let named = "<string key='concept:name' value='A'/>";
    let said = error("log.xes", event("<string key='activity' value='A'/>"), &plain());
    assert_eq!(said.message(), "log.xes: line 2: an event without concept:name");
    assert_eq!(hinted(&said), ["event_column", "bad_rows=skip"]);
    let said = error("log.xes", event(&format!("{named}<date key='time:timestamp' value='?'/>")), &plain());
    assert_eq!(said.message(), "log.xes: line 2: time:timestamp: \"?\" stands for no time; expected a time");
    assert_eq!(hinted(&said), ["time_format", "no_time", "bad_rows=skip"]);
    let columns = ColumnChoice { case: vec!["vin".into()], ..ColumnChoice::default() };
    let said = error("log.xes", event(named), &LogOptions { columns, ..plain() });
    assert_eq!(
        (said.message().as_str(), hinted(&said)),
        ("log.xes: line 1: a trace without vin", vec!["case_column".into()])
    );
}

#[test]
fn rows_that_cannot_be_read() {
    let said = error("log.csv", "case,event\na,b\nb\n", &plain());
    assert_eq!(
        said.to_string(),
        "log.csv: line 3: 1 fields, but the header has 2; the option bad_rows = skip leaves such rows out and counts them"
    );
    let said = error("log.csv", "case,event\na,\"b\n", &plain());
    assert!(said.hints().is_empty(), "what follows an open quote cannot be skipped: {said}");
    let said = error("log.csv", "case,event,time\na,b,soon\n", &plain());
    assert_eq!(hinted(&said), ["time_format", "no_time"], "skipping would leave nothing");
    let said = error("log.csv", "\n\nwho;event\na;b\n", &plain());
    assert_eq!(said.message(), "log.csv: line 3: no column looks like the case (columns found: who, event)");
    assert_eq!(hinted(&said), ["case_column", "single_case"]);
}

#[test]
fn options_at_fault_are_told_apart() {
    let columns = ColumnChoice { time: vec!["when".into()], ..ColumnChoice::default() };
    let said = error("log.csv", "case,event,time\na,b,1\n", &LogOptions { columns, ..plain() });
    let Error::Option { option, reason, .. } = &said else { panic!("{said}") };
    assert_eq!(option.0, "time_column");
    assert_eq!(reason, "names \"when\", but there is no such column (columns found: case, event, time)");
    let gap = LogOptions { shaping: Shaping { gap: Some(1.0), ..Shaping::default() }, ..plain() };
    let said = error("log.csv", "case,event\na,b\n", &gap);
    assert!(matches!(said, Error::Option { .. }), "{said}");
    assert_eq!(
        said.to_string(),
        "log.csv: the option gap needs times, but sequence \"a\" (line 2) has none; the option time_column names them"
    );
    assert!(error("log.txt", "a b\n", &gap).hints().is_empty(), "plain text has no columns to name");
    assert!(said.hints().iter().all(|hint| OPTIONS.contains(&hint.option)));
}

/// Doors write options in their own way; the libraries only name them.
#[test]
fn no_library_text_has_a_flag_in_it() {
    let ours = ["src/error.rs", "src/lines.rs", "src/log", "../trace-core/src"];
    let mut folders: Vec<std::path::PathBuf> =
        ours.iter().map(|path| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).collect();
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            folders.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        for (number, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let flag = code.split("--").skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
            assert!(!flag, "{}:{}: {line}", path.display(), number + 1);
        }
    }
}
