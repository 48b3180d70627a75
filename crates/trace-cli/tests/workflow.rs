//! Simulated workflows through the commands.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use std::collections::BTreeSet;

use serde_json::Value;
use support::{Workplace, json, lines};

#[test]
fn a_folder_holds_log_truth_and_model() {
    let at = Workplace::new();
    at.run("simulate workflow --preset services --sequences 40 --out flow -q --threads 1");
    at.run("simulate workflow --preset services --sequences 40 --out again -q --threads 3");
    for name in
        ["events.jsonl", "truth.jsonl", "truth-pairs.csv", "workflow.toml", "vocab.json", "trace.json", "config.json"]
    {
        assert!(at.read(&format!("flow/{name}")) == at.read(&format!("again/{name}")), "{name}");
    }
    let log = lines(&at.read("flow/events.jsonl"));
    assert_eq!((log.len(), &log[7]["id"]), (40, &"case-00007".into()));
    let truth = lines(&at.read("flow/truth.jsonl"));
    let edges: Vec<&Value> = truth.iter().flat_map(|line| line["edges"].as_array().unwrap()).collect();
    let words = |name: &str| edges.iter().map(|edge| edge[name].as_str().unwrap()).collect::<BTreeSet<_>>();
    assert_eq!(words("question"), BTreeSet::from(["how", "whether"]));
    assert_eq!(words("class"), BTreeSet::from(["designed", "order"]));
    let how = |edge: &&&Value| edge["question"] == "how";
    assert!(edges.iter().filter(how).all(|edge| edge["class"] == "designed"));
    let pairs = at.read("flow/truth-pairs.csv");
    assert!(pairs.starts_with("cause,effect,question,class,log_ratio\n"));
    // Every ordered pair of 30 types, for both questions.
    assert_eq!(pairs.lines().count(), 1 + 2 * 30 * 29);
    assert!(pairs.contains("\npricing:5xx,catalog:5xx,how,designed,"));
    let info = json(&at.run("model info flow --json"));
    assert_eq!(
        (&info["backbone"], &info["vocabulary_size"], &info["epsilon"]),
        (&"workflow".into(), &30.into(), &0.0.into())
    );
    // Replaced as a folder of this program's own; without truths of cases where none are asked for.
    at.run("simulate workflow --preset lab-tests --sequences 5 --no-truth --out again -q");
    assert!(!at.path("again/truth.jsonl").exists());
    assert!(!at.read("again/truth-pairs.csv").contains("designed"));
}

#[test]
fn results_are_scored_against_it() {
    let at = Workplace::new();
    at.run("simulate workflow --preset hospital --sequences 60 --out flow -q");
    at.run("discover flow/events.jsonl --model flow --out r.jsonl --population p.json -q");
    let scored = json(&at.run("evaluate p.json --truth flow/truth-pairs.csv --json"));
    assert!(scored["population"]["average_precision"].is_number(), "{scored}");
    let scored = json(&at.run("evaluate r.jsonl --truth flow/truth.jsonl --json"));
    // Much of a workflow's order is always so: it cannot be tested, and counts as missed.
    let (all, untestable) = (scored["true_edges"].as_u64().unwrap(), scored["true_edges_untestable"].as_u64().unwrap());
    assert!(scored["positions"]["recall"].as_f64().unwrap() > 0.0 && untestable < all, "{scored}");
    assert_eq!(scored["true_edges_outside_tested_pairs"], 0);
}

#[test]
fn a_workflow_of_ones_own() {
    let at = Workplace::new();
    let text = "name = \"own\"\nstart = \"a\"\n[outcomes]\nb = { x = 1, y = 1 }\n[blocks.a]\nsequence = [\"b\", \"c\"]\n\
                [[depends]]\ncause = \"b:x\"\neffect = \"d\"\nfactor = 2\nwithin = 1\n";
    std::fs::write(at.path("own.toml"), text).unwrap();
    let said = at.refuse("simulate workflow --spec own.toml --out flow");
    assert!(said.contains("own.toml") && said.contains("there is no step \"d\""), "{said}");
    std::fs::write(at.path("own.toml"), text.replace("\"d\"", "\"c\"")).unwrap();
    let said = at.run("simulate workflow --spec own.toml --null --sequences 3 --out flow");
    assert!(said.is_empty());
    assert_eq!(json(&at.read("flow/config.json"))["null"], true);
    for (flags, expected) in [
        ("--noise 0", "--noise: 0 is out of range"),
        ("--regularity 2", "--regularity: 2 is out of range"),
        ("--sequences 0", "--sequences: 0 is out of range"),
        ("--memory 0", "--memory: 0 is out of range"),
        ("--spec own.toml --preset hospital", "cannot be used with"),
        ("--spec missing.toml", "missing.toml"),
    ] {
        let said = at.refuse(&format!("simulate workflow --out other {flags}"));
        assert!(said.contains(expected), "{said}");
    }
}
