//! Steps with outcomes, from a log over a model folder to another log.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::path::{Path, PathBuf};

use trace_causal::{Backbone, ColumnChoice, EventId, Families, Log, LogOptions, Model, Train};

fn by_column() -> LogOptions {
    LogOptions {
        columns: ColumnChoice { outcome: Some("status".into()), ..ColumnChoice::default() },
        ..LogOptions::default()
    }
}

fn by_separator() -> LogOptions {
    LogOptions { family_separator: Some(":".into()), ..LogOptions::default() }
}

/// Two requests in many, whose operations have a colon in their names.
fn rows() -> String {
    let mut text = String::from("case,event,status\n");
    for case in 0..40 {
        let status = if case % 4 == 0 { "5xx" } else { "ok" };
        text += &format!("c{case},db:read,{status}\nc{case},pay,{status}\nc{case},log:out,\n");
    }
    text
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn train(log: &Log, backbone: Backbone, folder: &Path) -> Model {
    let run = Train::new().backbone(backbone).to_folder(folder);
    let run = if backbone == Backbone::Ngram { run } else { run.steps(2) };
    run.run(log).unwrap()
}

fn step(model: &Model, families: &Families, name: &str) -> String {
    let id = model.vocabulary().id(&name.into()).unwrap();
    families.step_name(families.step(id)).to_owned()
}

#[test]
fn a_model_remembers_the_steps_of_its_log() {
    let at = tempfile::tempdir().unwrap();
    let log = Log::open_with(write(at.path(), "log.csv", &rows()), &by_column()).unwrap();
    for backbone in [Backbone::Ngram, Backbone::Gru] {
        let folder = at.path().join(format!("{backbone:?}"));
        train(&log, backbone, &folder);
        let model = Model::open(&folder).unwrap();
        let families = model.families().unwrap();
        assert_eq!((families.len(), families.steps(), families.steps_with_outcomes()), (5, 3, 2));
        assert_eq!(step(&model, families, "db:read:5xx"), "db:read");
        assert_eq!(step(&model, families, "log:out"), "log:out", "no outcome, whatever its name looks like");
        // Another log is asked about the same steps, however it is opened.
        let lines = write(at.path(), "other.txt", "pay:ok log:out\n");
        for options in [LogOptions::default(), by_separator()] {
            let other = Log::open_with(&lines, &options).unwrap();
            assert_eq!(model.families_for(&other).unwrap().as_ref(), Some(families));
        }
    }
}

#[test]
fn a_model_without_steps_takes_those_of_the_log() {
    let at = tempfile::tempdir().unwrap();
    let path = write(at.path(), "log.txt", &"db:ok pay:ok\ndb:5xx pay:5xx\n".repeat(20));
    let plain = Log::open(&path).unwrap();
    let model = train(&plain, Backbone::Ngram, &at.path().join("model"));
    assert_eq!(model.families(), None);
    assert_eq!(model.families_for(&plain).unwrap(), None);
    let split = Log::open_with(write(at.path(), "one.txt", "db:ok\n"), &by_separator()).unwrap();
    let families = model.families_for(&split).unwrap().unwrap();
    assert_eq!(families.members(EventId(1)), [EventId(1), EventId(3)], "types that this log lacks as well");
    let trained = train(&Log::open_with(&path, &by_separator()).unwrap(), Backbone::Ngram, &at.path().join("split"));
    assert_eq!(trained.families(), Some(&families));
}

#[test]
fn steps_that_are_not_those_of_the_model_are_refused() {
    let at = tempfile::tempdir().unwrap();
    let path = write(at.path(), "log.txt", &"db:ok pay:ok\ndb:5xx pay:5xx\n".repeat(20));
    let folder = at.path().join("model");
    train(&Log::open_with(&path, &by_separator()).unwrap(), Backbone::Ngram, &folder);
    let place = folder.join("trace.json");
    let record: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&place).unwrap()).unwrap();
    for (families, expected) in [
        (serde_json::json!([{"step": "db"}]), "expected one step for each of the 4 event types, found 1"),
        (serde_json::json!({"db": 1}), "families: invalid type"),
    ] {
        let mut record = record.clone();
        record["training"]["families"] = families;
        std::fs::write(&place, record.to_string()).unwrap();
        let said = Model::open(&folder).unwrap_err().to_string();
        assert!(said.contains("trace.json") && said.contains(expected), "{said}");
    }
}
