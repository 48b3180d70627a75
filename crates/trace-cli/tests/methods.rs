//! `trace discover --method`: every method through the command, and the flags that mean nothing to one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use serde_json::Value;
use support::{Workplace, json, lines};

/// A process, a LLaMA and a BERT trained on it.
fn workplace(steps: usize) -> Workplace {
    let at = Workplace::new();
    at.simulate("--vocabulary 40 --memory 2 --length 24 --sequences 200");
    let train = format!("train process/events.jsonl --width 32 --layers 1 --heads 2 --batch 16 --steps {steps} -q");
    at.run(&format!("{train} --out llama"));
    at.run(&format!("{train} --backbone bert --out bert"));
    at
}

const METHODS: [&str; 9] =
    ["random", "frequency", "bigram", "attention", "saliency", "shapley", "granger", "staircase", "trace"];

fn discover(at: &Workplace, method: &str, options: &str) -> Vec<Value> {
    let model = if method == "attention" { "bert" } else { "llama" };
    at.run(&format!(
        "discover process/events.jsonl --model {model} --method {method} --memory 2 --all-pairs -q --out {method}.jsonl {options}"
    ));
    lines(&at.read(&format!("{method}.jsonl")))
}

#[test]
fn every_method_scores_the_same_pairs_and_can_be_evaluated() {
    let at = workplace(400);
    let pairs = |line: &Value| -> Vec<(u64, u64)> {
        let edges = line["edges"].as_array().unwrap();
        edges.iter().map(|edge| (edge["cause"].as_u64().unwrap(), edge["effect"].as_u64().unwrap())).collect()
    };
    let mut all: Option<Vec<(u64, u64)>> = None;
    for method in METHODS {
        let results = discover(&at, method, "");
        assert_eq!(results.len(), 200, "{method}");
        let settings = &results[0]["settings"];
        match method {
            "trace" => assert_eq!((settings.get("method"), &settings["intervention"]), (None, &"atomic".into())),
            "staircase" => assert_eq!((settings.get("method"), &settings["intervention"]), (None, &"staircase".into())),
            rival => assert_eq!(settings["method"], rival),
        }
        let own = pairs(&results[0]);
        assert!(all.get_or_insert_with(|| own.clone()) == &own, "{method}");
        let scores = json(&at.run(&format!("evaluate {method}.jsonl --truth process/truth.jsonl --json")));
        assert!(scores["positions"]["auroc"].as_f64().unwrap() > 0.0, "{method}");
        let report = format!("report {method}.jsonl --out {method}.html -q");
        at.run(&report);
        // Only where something was replaced are there ratios to score pairs of types by.
        let scored = at.read(&format!("{method}.html")).contains(r#""scored":true"#);
        assert_eq!(scored, ["trace", "staircase", "granger"].contains(&method), "{method}");
    }
    // A method that looks at the model beats one that guesses, in ranking pairs.
    let ranked = |method: &str| {
        let scores = json(&at.run(&format!("evaluate {method}.jsonl --truth process/truth.jsonl --json")));
        scores["positions"]["average_precision"].as_f64().unwrap()
    };
    let guessed = ranked("random");
    for method in ["trace", "granger", "shapley", "staircase"] {
        assert!(ranked(method) > guessed + 0.05, "{method}: {} against {guessed}", ranked(method));
    }
}

#[test]
fn a_threshold_is_the_methods_own_or_the_one_given() {
    let at = workplace(20);
    let threshold = |results: &[Value]| results[0]["settings"]["threshold"].as_f64().unwrap();
    assert_eq!(threshold(&discover(&at, "attention", "")), 0.02);
    let given = discover(&at, "saliency", "--threshold 0.125");
    assert_eq!(threshold(&given), 0.125);
    for edge in given.iter().flat_map(|line| line["edges"].as_array().unwrap()) {
        assert_eq!(edge["kept"].as_bool().unwrap(), edge["strength"].as_f64().unwrap() > 0.125);
    }
    let repeated = discover(&at, "shapley", "--particles 8 --threads 1");
    assert_eq!(repeated[0]["settings"]["particles"], 8);
    assert_eq!(repeated, discover(&at, "shapley", "--particles 8 --threads 3"));
}

#[test]
fn what_means_nothing_to_a_method_is_refused() {
    let at = workplace(20);
    at.write("known.toml", "");
    let discover = "discover process/events.jsonl --out results.jsonl";
    for (options, word) in [
        ("--model llama --method saliency --population population.json", "--population"),
        ("--model llama --method shapley --knowledge known.toml", "--knowledge"),
        ("--model llama --method random --particles 8", "--particles"),
        ("--model llama --method saliency --divergence full", "--divergence full"),
        ("--model llama --method bigram --threshold scaling-law", "--threshold"),
        ("--model llama --method attention", "--backbone bert"),
        ("--model bert", "--method attention"),
        ("--model process --method saliency", "no gradients"),
    ] {
        let said = at.refuse(&format!("{discover} {options}"));
        assert!(said.contains(word), "{options}: {said}");
    }
}

#[test]
fn numbers_that_make_no_experiment() {
    let at = Workplace::new();
    for (options, word) in [
        ("drops --seeds 0", "--seeds: expected at least 1"),
        ("drops --events 5", "--events: expected at least 10000"),
        ("drops --redundancy 1.5", "--redundancy: expected a number between 0 and 1"),
        ("drops --redundancy nan", "--redundancy: expected a number between 0 and 1"),
        ("vehicle --events 50000", "name an experiment on it, not `vehicle`"),
        ("all --redundancy 0.5", "name an experiment on it, not `all`"),
        ("drops --only 0 7", "--only: expected some of `0`, `0.4`, found `7`"),
        ("all --only 0", "--only is of one experiment: name it, not `all`"),
    ] {
        let said = at.refuse(&format!("bench {options} --mini --out results"));
        assert!(said.contains(word), "{options}: {said}");
    }
}

#[test]
fn a_folder_that_cannot_hold_results_is_refused() {
    let at = Workplace::new();
    at.write("file", "");
    assert_eq!(at.refuse("bench drops --mini --out file").matches("file").count(), 1);
    std::fs::create_dir(at.path("broken")).unwrap();
    at.run("bench particles --mini -q --out broken");
    let other = at.refuse("bench particles --quick -q --out broken");
    assert!(other.contains("another size"), "{other}");
    at.write("broken/particles.rows.jsonl", "{\"cell\": 3}\n");
    let said = at.refuse("bench particles --mini -q --out broken");
    assert!(said.contains("particles.rows.jsonl: line 1"), "{said}");
}
