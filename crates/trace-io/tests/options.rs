//! Options and summaries as data.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use serde_json::{Value, json};
use support::{gzip, read};
use trace_io::log::{BadRows, ColumnChoice, Format, LogOptions, OPTIONS, Shaping, TimeUnit, Unknown};

fn every_option() -> LogOptions {
    LogOptions {
        format: Some(Format::JsonLines),
        delimiter: Some(b';'),
        no_header: true,
        columns: ColumnChoice {
            case: vec!["a".into(), "b".into()],
            event: vec!["c".into()],
            time: vec!["d".into()],
            outcome: Some("e".into()),
            single_case: true,
            no_time: true,
        },
        family_separator: Some("/".into()),
        time_format: Some("%Y".into()),
        time_unit: Some(TimeUnit::Nanoseconds),
        bad_rows: BadRows::Skip,
        shaping: Shaping { gap: Some(1.5), min_count: Some(2), collapse: true, max_length: Some(3), open_cases: true },
    }
}

#[test]
fn options_there_and_back() {
    let data = json!({
        "format": "jsonl", "delimiter": ";", "no_header": true,
        "case_column": ["a", "b"], "event_column": ["c"], "time_column": ["d"], "outcome_column": "e",
        "single_case": true, "no_time": true, "family_separator": "/", "time_format": "%Y", "time_unit": "ns", "bad_rows": "skip",
        "gap": 1.5, "min_count": 2, "collapse": true, "max_length": 3, "open_cases": true,
    });
    assert_eq!(serde_json::to_value(every_option()).unwrap(), data);
    assert_eq!(serde_json::from_value::<LogOptions>(data).unwrap(), every_option());
    assert_eq!(serde_json::from_str::<LogOptions>("{}").unwrap(), LogOptions::default());
    let again = serde_json::to_value(LogOptions::default()).unwrap();
    assert_eq!(serde_json::from_value::<LogOptions>(again).unwrap(), LogOptions::default());
    assert!(serde_json::from_str::<LogOptions>(r#"{"delimiter": "é"}"#).is_err());
}

#[test]
fn words_are_those_of_every_door() {
    let word = |value: Result<Value, _>| value.unwrap().as_str().unwrap().to_owned();
    let formats = [Format::Csv, Format::Tsv, Format::Parquet, Format::Xes, Format::JsonLines, Format::Text];
    assert_eq!(
        formats.map(|format| word(serde_json::to_value(format))),
        ["csv", "tsv", "parquet", "xes", "jsonl", "text"]
    );
    let units = [TimeUnit::Seconds, TimeUnit::Milliseconds, TimeUnit::Microseconds, TimeUnit::Nanoseconds];
    assert_eq!(units.map(|unit| word(serde_json::to_value(unit))), ["s", "ms", "us", "ns"]);
    assert_eq!([BadRows::Refuse, BadRows::Skip].map(|rows| word(serde_json::to_value(rows))), ["error", "skip"]);
    let unknown = [Unknown::Add, Unknown::Refuse, Unknown::Skip];
    assert_eq!(unknown.map(|unknown| word(serde_json::to_value(unknown))), ["add", "error", "skip"]);
}

/// A hint names an option as the data does.
#[test]
fn every_option_that_a_hint_names_is_a_key() {
    let data = serde_json::to_value(every_option()).unwrap();
    for option in OPTIONS {
        assert!(data.get(option.0).is_some() || option.0 == "unknown", "{option}");
    }
}

#[test]
fn shaping_without_anything_is_empty() {
    assert_eq!(serde_json::to_value(Shaping::default()).unwrap(), json!({}));
    assert_eq!(serde_json::from_value::<Shaping>(json!({})).unwrap(), Shaping::default());
    let some = Shaping { collapse: true, ..Shaping::default() };
    assert_eq!(serde_json::to_value(some).unwrap(), json!({"collapse": true}));
}

#[test]
fn a_summary_as_data() {
    let text = b"case,event,time\na,x,2024-01-01\na,x,\nb,y,2024-01-02\nb,x,2024-01-02\n";
    let options = LogOptions { bad_rows: BadRows::Skip, ..LogOptions::default() };
    let summary = read("log.csv.gz", gzip(text), &options).summary;
    assert_eq!(
        serde_json::to_value(&summary).unwrap(),
        json!({
            "log": "log.csv.gz", "format": "csv", "compression": "gzip", "delimiter": ",",
            "case_columns": ["case"], "event_columns": ["event"], "time_columns": ["time"], "dated": true,
            "rows": 4, "skipped_rows": 1,
            "skipped_reasons": ["line 3: column 3 (\"time\"): is empty; expected a time"], "sorted_cases": 0,
            "folded_types": 0, "folded_events": 0, "collapsed_events": 0, "gap_pieces": 0, "length_pieces": 0,
            "cases": 2, "ended_cases": 2, "events": 3, "event_types": 2,
            "lengths": {"min": 1, "median": 1.5, "mean": 1.5, "max": 2},
            "timed_cases": 2, "ties": 1, "time_span": [1_704_067_200.0, 1_704_153_600.0],
            "dates": ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"],
            "most_frequent": [{"event": "x", "count": 2}, {"event": "y", "count": 1}], "taken_as_rare": [0, 0],
        })
    );
}
