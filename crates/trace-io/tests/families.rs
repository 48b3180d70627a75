//! Steps with outcomes: by a column of their own, or by a separator in names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, StringArray};
use support::{parquet, read, refuse};
use trace_core::{EventId, Families, Vocabulary};
use trace_io::log::{BadRows, ColumnChoice, EventLog, Log, LogOptions, Shaping, Unknown};

fn plain() -> LogOptions {
    LogOptions::default()
}

fn outcomes(column: &str) -> LogOptions {
    LogOptions { columns: ColumnChoice { outcome: Some(column.into()), ..ColumnChoice::default() }, ..plain() }
}

fn separated(separator: &str) -> LogOptions {
    LogOptions { family_separator: Some(separator.into()), ..plain() }
}

/// The name of a type, its step and its outcome.
type Parts = (String, String, Option<String>);

/// A log's families over its own types, with the names of each type's step and of its outcome.
fn families(log: &Log) -> Option<Vec<Parts>> {
    let mut vocabulary = Vocabulary::named();
    EventLog::read(log, &mut vocabulary, Unknown::Add).unwrap();
    let families: Families = log.families(&vocabulary).unwrap()?;
    assert_eq!(families.len(), vocabulary.len());
    let parts = |id: u32| {
        let id = EventId(id);
        let step = families.step_name(families.step(id)).to_owned();
        (vocabulary.name(id).to_string(), step, families.outcome(id).map(str::to_owned))
    };
    Some((0..vocabulary.len() as u32).map(parts).collect())
}

fn of_bytes(name: &str, bytes: impl AsRef<[u8]>, options: &LogOptions) -> Option<Vec<Parts>> {
    families(&Log::from_reader(name, Cursor::new(bytes.as_ref().to_vec()), options).unwrap())
}

fn expected(types: &[(&str, &str, Option<&str>)]) -> Vec<Parts> {
    let owned = |(name, step, outcome): &(&str, &str, Option<&str>)| {
        ((*name).to_owned(), (*step).to_owned(), outcome.map(str::to_owned))
    };
    types.iter().map(owned).collect()
}

const TEXT: &str =
    "case,event,status\na,pay,ok\na,\"db:read\",\"5 \"\"x\"\"\"\nb,pay,\nb,db:read, \nb,pay,failed\na,x:y,z:w\n";

#[test]
fn a_column_of_outcomes_in_rows() {
    let options = outcomes("status");
    let log = read("log.csv", TEXT, &options);
    assert_eq!(log.lines(), ["a: pay:ok db:read:5 \"x\" x:y:z:w", "b: pay db:read pay:failed"]);
    assert_eq!(log.summary.report.outcome_column.as_deref(), Some("status"));
    let types = expected(&[
        ("pay:ok", "pay", Some("ok")),
        ("db:read:5 \"x\"", "db:read", Some("5 \"x\"")),
        ("x:y:z:w", "x:y", Some("z:w")),
        ("pay", "pay", None),
        ("db:read", "db:read", None),
        ("pay:failed", "pay", Some("failed")),
    ]);
    assert_eq!(of_bytes("log.csv", TEXT, &options).as_ref(), Some(&types));
    assert_eq!(of_bytes("log.tsv", TEXT.replace(',', "\t"), &options), Some(types));
    assert_eq!(of_bytes("log.csv", TEXT, &plain()), None);
    let log = Log::from_reader("log.csv", Cursor::new(TEXT.as_bytes().to_vec()), &options).unwrap();
    let steps = log.summarize().unwrap().steps.unwrap();
    assert_eq!((steps.steps, steps.steps_with_outcomes), (3, 2));
}

#[test]
fn a_column_of_outcomes_in_parquet() {
    let texts = |values: Vec<Option<&str>>| -> ArrayRef { Arc::new(StringArray::from(values)) };
    let case = texts(vec![Some("a"); 3]);
    let event = texts(vec![Some("pay"), Some("a:b"), Some("pay")]);
    let status = texts(vec![Some("ok"), None, Some("late")]);
    let file = parquet(vec![("case", case.clone()), ("event", event.clone()), ("status", status)]);
    let types = expected(&[("pay:ok", "pay", Some("ok")), ("a:b", "a:b", None), ("pay:late", "pay", Some("late"))]);
    assert_eq!(of_bytes("log.parquet", file, &outcomes("Status")), Some(types));
    // Codes with missing ones among them are fractions in many tools.
    let code: ArrayRef = Arc::new(Float64Array::from(vec![200.0, f64::NAN, 503.0]));
    let file = parquet(vec![("case", case), ("event", event), ("code", code)]);
    assert_eq!(read("log.parquet", &file, &outcomes("code")).lines(), ["a: pay:200 a:b pay:503"]);
    let said = refuse("log.parquet", file, &outcomes("status"));
    assert!(said.contains("outcome_column names \"status\", but there is no such column"), "{said}");
}

#[test]
fn an_attribute_of_outcomes_in_xes() {
    let event = |name: &str, state: &str| {
        let state = if state.is_empty() {
            String::new()
        } else {
            format!("<string key=\"lifecycle:transition\" value=\"{state}\"/>")
        };
        format!("<event><string key=\"concept:name\" value=\"{name}\"/>{state}</event>")
    };
    let text =
        format!("<log><trace>{}{}{}</trace></log>", event("A", "start"), event("A", "complete"), event("B:C", ""));
    let options = outcomes("lifecycle:transition");
    let types =
        expected(&[("A:start", "A", Some("start")), ("A:complete", "A", Some("complete")), ("B:C", "B:C", None)]);
    assert_eq!(of_bytes("log.xes", &text, &options).as_ref(), Some(&types), "from a pipe");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.xes");
    std::fs::write(&path, &text).unwrap();
    assert_eq!(families(&Log::open(&path, &options).unwrap()), Some(types), "from a file that is read again and again");
    let said = refuse("log.xes", &text, &outcomes("lifecycle"));
    assert!(said.contains("outcome_column names \"lifecycle\", but no event has such an attribute"), "{said}");
}

#[test]
fn one_name_means_one_step_and_one_outcome() {
    for rows in ["a,x:y,\na,x,y\n", "a,x,y\na,x:y,\n", "a,x:y,z\na,x,y:z\n"] {
        let said = refuse("log.csv", format!("case,event,status\n{rows}"), &outcomes("status"));
        assert!(said.contains("are both called \"x:y"), "{said}");
    }
    // The same names without a column are no contradiction.
    assert_eq!(read("log.csv", "case,event\na,x:y\na,x:y\n", &separated(":")).lines(), ["a: x:y x:y"]);
}

#[test]
fn a_separator_in_names() {
    let types = expected(&[
        ("db/read/ok", "db/read", Some("ok")),
        ("pay", "pay", None),
        ("db/read/5xx", "db/read", Some("5xx")),
    ]);
    assert_eq!(of_bytes("log.txt", "db/read/ok pay db/read/5xx\n", &separated("/")).as_ref(), Some(&types));
    let lines = r#"{"events": ["db/read/ok", "pay", "db/read/5xx"]}"#;
    assert_eq!(of_bytes("log.jsonl", lines, &separated("/")), Some(types));
    let log = Log::from_reader("log.jsonl", Cursor::new(lines.as_bytes()), &separated("/")).unwrap();
    assert_eq!(log.summarize().unwrap().steps.unwrap().steps_with_outcomes, 1);
    // Over the types of a model that knows more.
    let mut model = Vocabulary::named();
    for name in ["pay/late", "pay", "(rare)"] {
        model.intern(&name.into());
    }
    assert_eq!(log.families(&model).unwrap().unwrap().members(EventId(0)), [EventId(0), EventId(1)]);
}

#[test]
fn types_that_the_log_lacks_or_folds() {
    let options = LogOptions { shaping: Shaping { min_count: Some(2), ..Shaping::default() }, ..outcomes("status") };
    let text = "case,event,status\na,pay,ok\na,pay,ok\na,pay,failed\na,ship,ok\n";
    let types = expected(&[("pay:ok", "pay", Some("ok")), ("(rare)", "(rare)", None)]);
    assert_eq!(of_bytes("log.csv", text, &options), Some(types));
    let log = Log::from_reader("log.csv", Cursor::new(text.as_bytes()), &outcomes("status")).unwrap();
    let mut model = Vocabulary::named();
    for name in ["pay:failed", "bill:ok", "pay:ok"] {
        model.intern(&name.into());
    }
    let families = log.families(&model).unwrap().unwrap();
    assert_eq!(families.members(EventId(2)), [EventId(0), EventId(2)]);
    assert_eq!(families.step_name(families.step(EventId(1))), "bill:ok", "the log does not say where it splits");
}

#[test]
fn options_that_contradict_each_other_or_mean_nothing() {
    let both = LogOptions { family_separator: Some(":".into()), ..outcomes("status") };
    let said = refuse("log.csv", TEXT, &both);
    assert!(said.contains("the option family_separator does not go with outcome_column"), "{said}");
    let said = refuse("log.csv", TEXT, &separated(""));
    assert!(said.contains("the option family_separator is empty"), "{said}");
    let said = refuse("log.txt", "a b", &outcomes("status"));
    assert!(said.contains("the option outcome_column means nothing to a log in plain text"), "{said}");
    let said = refuse("log.csv", TEXT, &outcomes("event"));
    assert!(said.contains("no column looks like the event"), "{said}");
}

#[test]
fn outcomes_that_are_no_text_are_bad_rows() {
    let text = b"case,event,status\na,pay,ok\na,pay,\xff\na,pay,x\0y\na,p\0y,ok\na,,ok\na,pay,late\n";
    let options = LogOptions { bad_rows: BadRows::Skip, ..outcomes("status") };
    let log = read("log.csv", text, &options);
    assert_eq!(log.lines(), ["a: pay:ok pay:late"]);
    let reasons = log.summary.report.skipped.reasons;
    let columns = ["column 3 (\"status\")", "column 3 (\"status\")", "column 2 (\"event\")", "column 2 (\"event\")"];
    assert_eq!(reasons.len(), columns.len());
    for (reason, column) in reasons.iter().zip(columns) {
        assert!(reason.contains(column), "{reason}");
    }
}
