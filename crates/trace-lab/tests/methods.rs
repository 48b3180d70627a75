//! `trace-lab` as a command: every rival method, the flags that mean nothing to one, and what makes no experiment.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use trace_causal::{
    Control, EvaluateOptions, Evaluated, Log, NetworkOptions, ReportOptions, ScmOptions, Train, TrainOptions, evaluate,
    report, simulate_scm,
};

/// A folder with a process, its log and truth, and models of it.
struct Workplace(tempfile::TempDir);

impl Workplace {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A process, a LLaMA and a BERT trained on it.
    fn with_models(steps: u64) -> Self {
        let at = Self::new();
        let options = ScmOptions { vocabulary: 40, memory: 2, length: 24, sequences: 200, ..ScmOptions::default() };
        simulate_scm(&options, &at.path("process"), &Control::new()).unwrap();
        let network = NetworkOptions {
            layers: Some(1),
            width: Some(32),
            heads: Some(2),
            batch: Some(16),
            steps: Some(steps),
            ..NetworkOptions::default()
        };
        let log = Log::open(at.path("process/events.jsonl")).unwrap();
        let train = Train::with_options(TrainOptions { network, ..TrainOptions::default() });
        train.to_folder(at.path("llama")).run(&log).unwrap();
        at.run(&format!("encoder process/events.jsonl --out bert --steps {} -q", steps / 4));
        at
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn try_run(&self, words: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trace-lab"));
        command.current_dir(self.0.path()).args(words.split_whitespace()).output().unwrap()
    }

    fn run(&self, words: &str) -> String {
        let output = self.try_run(words);
        assert!(output.status.success(), "trace-lab {words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the command, which must fail with code 2; returns what it said.
    fn refuse(&self, words: &str) -> String {
        let output = self.try_run(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "trace-lab {words}: {said}");
        assert!(output.stdout.is_empty() && !said.contains("panicked"), "trace-lab {words}: {said}");
        said
    }

    fn discover(&self, method: &str, options: &str) -> Vec<Value> {
        let model = if method == "attention" { "bert" } else { "llama" };
        let flags = format!("--model {model} --method {method} --memory 2 --all-pairs -q --out {method}.jsonl");
        self.run(&format!("discover process/events.jsonl {flags} {options}"));
        let text = std::fs::read_to_string(self.path(&format!("{method}.jsonl"))).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The mean of a figure of positions, by `trace evaluate`.
    fn score(&self, method: &str, figure: &str) -> f64 {
        let truth = self.path("process/truth.jsonl");
        let results = self.path(&format!("{method}.jsonl"));
        let Evaluated::Results(scored) = evaluate(&results, &truth, &EvaluateOptions::default()).unwrap() else {
            panic!("{} holds results", results.display());
        };
        scored.evaluation.positions.mean(figure).unwrap()
    }
}

const RIVALS: [&str; 7] = ["random", "frequency", "bigram", "attention", "saliency", "shapley", "granger"];

#[test]
fn every_rival_scores_the_same_pairs_and_can_be_evaluated() {
    let at = Workplace::with_models(400);
    let pairs = |line: &Value| -> Vec<(u64, u64)> {
        let edges = line["edges"].as_array().unwrap();
        edges.iter().map(|edge| (edge["cause"].as_u64().unwrap(), edge["effect"].as_u64().unwrap())).collect()
    };
    let mut all: Option<Vec<(u64, u64)>> = None;
    for method in RIVALS {
        let results = at.discover(method, "");
        let ids: Vec<String> = results.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids, (0..200).map(|index| format!("s{index}")).collect::<Vec<_>>(), "{method}");
        assert_eq!(results[0]["settings"]["method"], method);
        let own = pairs(&results[0]);
        assert!(all.get_or_insert_with(|| own.clone()) == &own, "{method}");
        assert!(at.score(method, "auroc") > 0.0, "{method}");
        let page = at.path(&format!("{method}.html"));
        let results = at.path(&format!("{method}.jsonl"));
        report(&results, None, ReportOptions::default(), &page).unwrap();
        // Only where something was replaced are there ratios to score pairs of types by.
        let scored = std::fs::read_to_string(page).unwrap().contains(r#""scored":true"#);
        assert_eq!(scored, method == "granger", "{method}");
    }
    // A method that looks at the model beats one that guesses, in ranking pairs.
    let guessed = at.score("random", "average_precision");
    for method in ["granger", "shapley"] {
        let ranked = at.score(method, "average_precision");
        assert!(ranked > guessed + 0.05, "{method}: {ranked} against {guessed}");
    }
}

#[test]
fn a_threshold_is_the_methods_own_or_the_one_given() {
    let at = Workplace::with_models(20);
    let threshold = |results: &[Value]| results[0]["settings"]["threshold"].as_f64().unwrap();
    assert_eq!(threshold(&at.discover("attention", "--case s3")), 0.02);
    let given = at.discover("saliency", "--threshold 0.125");
    assert_eq!(threshold(&given), 0.125);
    for edge in given.iter().flat_map(|line| line["edges"].as_array().unwrap()) {
        assert_eq!(edge["kept"].as_bool().unwrap(), edge["strength"].as_f64().unwrap() > 0.125);
    }
    let repeated = at.discover("shapley", "--particles 8 --threads 1 --case s7 --case s2");
    assert_eq!(repeated.iter().map(|line| line["id"].as_str().unwrap()).collect::<Vec<_>>(), ["s2", "s7"]);
    assert_eq!(repeated[0]["settings"]["particles"], 8);
    assert_eq!(repeated, at.discover("shapley", "--particles 8 --threads 3 --case s7 --case s2"));
}

#[test]
fn what_means_nothing_to_a_method_is_refused() {
    let at = Workplace::with_models(20);
    let discover = "discover process/events.jsonl --out results.jsonl";
    for (options, word) in [
        ("--model llama --method random --particles 8", "--particles: means nothing to --method random"),
        ("--model llama --method shapley --particles all", "--particles all"),
        ("--model llama --method saliency --seed 3", "--seed"),
        ("--model llama --method bigram --threshold scaling-law", "--threshold"),
        ("--model llama --method bigram --memory 0", "--memory"),
        ("--model llama --method frequency --case nobody", "--case"),
        ("--model llama --method trace", "--method"),
        ("--model llama --method attention", "trace-lab encoder"),
        ("--model bert --method granger", "--method attention"),
        ("--model process --method saliency", "no gradients"),
        ("--model nowhere --method random", "nowhere"),
        ("--model llama --method random --context 50", "long enough"),
    ] {
        let said = at.refuse(&format!("{discover} {options}"));
        assert!(said.contains(word), "{options}: {said}");
        assert!(!at.path("results.jsonl").exists());
    }
    let said = at.refuse("discover process/events.jsonl --out llama/x.jsonl --model llama --method random");
    assert!(said.contains("into the model"), "{said}");
    let said = at.refuse("encoder process/events.jsonl --out bert --steps 0");
    assert!(said.contains("--steps"), "{said}");
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
        let said = at.refuse(&format!("{options} --mini --out results"));
        assert!(said.contains(word), "{options}: {said}");
        assert!(!at.path("results").exists());
    }
}

#[test]
fn a_folder_that_cannot_hold_results_is_refused() {
    let at = Workplace::new();
    std::fs::write(at.path("file"), "").unwrap();
    assert_eq!(at.refuse("drops --mini --out file").matches("file").count(), 1);
    let table = at.run("particles --mini -q --out broken --events 20000");
    assert!(table.contains("N = 16") && table.contains("paper: saturates"), "{table}");
    let backbones = std::fs::read_dir(at.path("broken/backbones")).unwrap();
    let names: Vec<String> = backbones.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.len() == 1 && !names[0].contains(".jsonl"), "the log goes when the training is complete: {names:?}");
    let other = at.refuse("particles --quick -q --out broken");
    assert!(other.contains("another size"), "{other}");
    std::fs::write(at.path("broken/particles.rows.jsonl"), "{\"cell\": 3}\n").unwrap();
    let said = at.refuse("particles --mini -q --out broken --events 20000");
    assert!(said.contains("particles.rows.jsonl: line 1"), "{said}");
}
