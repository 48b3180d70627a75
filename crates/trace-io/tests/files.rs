//! Result, population and partial files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use serde_json::json;
use trace_core::evidence::EvidenceRule;
use trace_core::{EventName, Lag, PopulationGraph};
use trace_io::output::{PartialFile, complete_lines, partial_path, write_json};
use trace_io::population::{Population, add_result, is_population};
use trace_io::result::{ResultLine, ResultOptions, ResultReader, RunSettings};

fn settings(memory: &serde_json::Value, context: u64, history: &str) -> RunSettings {
    serde_json::from_value(json!({
        "intervention": "atomic", "proposal": "uniform", "divergence": "event", "history": history,
        "particles": 16, "memory": memory, "context": context, "threshold": 0.05, "seed": 7
    }))
    .unwrap()
}

#[test]
fn tested_pairs_follow_memory_context_and_history() {
    let pairs = |memory, context, history: &str, length| {
        let pairs = settings(&memory, context, history).plan.tested_pairs(length);
        pairs.map(|(cause, effect)| (cause.0, effect.0)).collect::<Vec<_>>()
    };
    assert_eq!(pairs(json!("all"), 0, "observed", 3), [(0, 1), (0, 2), (1, 2)]);
    assert_eq!(pairs(json!(1), 0, "observed", 4), [(0, 1), (1, 2), (2, 3)]);
    assert_eq!(pairs(json!(1), 2, "observed", 4), [(2, 3)]);
    assert_eq!(pairs(json!(9), 1, "sampled", 4), [(2, 3)]);
    assert_eq!(pairs(json!("all"), u64::MAX, "sampled", 4), []);
    assert_eq!(pairs(json!("all"), 0, "observed", 0), []);
}

fn line() -> ResultLine {
    let edge = |cause: u32, effect: u32, strength: f64, kept: bool| {
        json!({"cause": cause, "effect": effect, "lag": effect - cause, "strength": strength, "std_error": 0.0,
               "particles": 16, "log_ratio": strength, "probability": 0.6, "probability_replaced": 0.2, "kept": kept})
    };
    serde_json::from_value(json!({
        "schema": "trace.result/2", "id": "a", "settings": settings(&json!("all"), 0, "observed"),
        "model": {"backbone": "ngram", "held_out_loss": 1.0, "unigram_loss": 2.0, "epsilon_hat": null},
        "events": ["A", 3, "A"],
        "edges": [edge(0, 1, 0.5, true), edge(0, 2, 0.01, false), edge(1, 2, 0.2, true)],
        "summary": [],
    }))
    .unwrap()
}

#[test]
fn a_result_survives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    std::fs::write(&path, serde_json::to_string(&line()).unwrap() + "\n").unwrap();
    let mut reader = ResultReader::open(&path).unwrap();
    assert_eq!(reader.next_result().unwrap().unwrap(), (1, line()));
    assert!(reader.next_result().unwrap().is_none());
    assert!(line().has_all_pairs());
    // Recorded, what a line holds is not guessed.
    let kept_only = ResultLine { options: Some(ResultOptions::default()), ..line() };
    assert!(!kept_only.has_all_pairs());
    let mut fewer = line();
    fewer.pairs.remove(1);
    assert!(!fewer.has_all_pairs());
}

/// Results of rival methods that replace nothing, as earlier versions wrote them.
#[test]
fn settings_of_methods_that_replace_nothing_are_read() {
    let rival: RunSettings = serde_json::from_value(json!({
        "method": "saliency", "intervention": "none", "proposal": "none", "divergence": "none", "history": "observed",
        "particles": 0, "memory": 6, "context": 0, "threshold": 0.13, "threshold_rule": "fixed", "seed": 7
    }))
    .unwrap();
    assert!(!rival.gives_ratios() && settings(&json!(6), 0, "observed").gives_ratios());
    assert_eq!(rival.difference(&rival.clone()), "");
    let other = settings(&json!(5), 0, "observed").difference(&settings(&json!(6), 0, "observed"));
    assert_eq!(other, "memory is 5 instead of 6");
}

#[test]
fn a_population_survives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.json");
    let mut graph = PopulationGraph::<EventName>::default();
    for strength in [0.5, 0.25, 0.125] {
        let mut line = line();
        line.pairs[0].strength = strength;
        add_result(&mut graph, &line);
    }
    let file = Population::new(&graph, &line().settings, &line().model, &EvidenceRule::default());
    file.write(&path).unwrap();
    assert!(is_population(&path).unwrap());
    let again = Population::read(&path).unwrap();
    assert_eq!(again, file);
    let edge = again.pairs.iter().find(|pair| pair.cause == "A".into() && pair.effect == EventName::Number(3)).unwrap();
    assert_eq!((edge.sequences, edge.opportunities, edge.kept_count, edge.lags[&Lag(1)]), (3, 3, 3, 3));
    assert!((edge.mean_strength - 0.875 / 3.0).abs() < 1e-12);
    for (types, record) in &again.graph().pairs {
        let original = &graph.pairs[types];
        assert_eq!(
            (record.sequences, record.kept_count, &record.lags),
            (original.sequences, original.kept_count, &original.lags)
        );
        assert!((record.strength.spread() - original.strength.spread()).abs() < 1e-12);
    }
    assert_eq!(again.strongest(1).to_string().lines().count(), again.edges().count().min(1));
    assert!(again.pairs.is_sorted_by(|a, b| (a.kept, a.score) >= (b.kept, b.score)));
}

#[test]
fn partial_files_keep_complete_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let mut file = PartialFile::create(&path).unwrap();
    file.write_line("one").unwrap();
    file.write_line("two").unwrap();
    drop(file);
    let partial = partial_path(&path);
    std::fs::write(&partial, std::fs::read_to_string(&partial).unwrap() + "thr").unwrap();
    let lines = complete_lines(&partial).unwrap();
    assert_eq!(lines, [("one".to_owned(), 4), ("two".to_owned(), 8)]);
    let mut file = PartialFile::continue_at(&path, lines[0].1).unwrap();
    file.write_line("2").unwrap();
    file.finish().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n2\n");
    assert!(!partial.exists());
    PartialFile::create(&path).unwrap().discard().unwrap();
    assert!(!partial.exists() && path.exists());
}

#[test]
fn whole_files_replace_their_older_self_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    write_json(&path, &json!([1])).unwrap();
    write_json(&path, &json!([2])).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "[\n  2\n]\n");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(write_json(&folder.path().join("no/such/x.json"), &json!([])).is_err());
}
