//! Neural backbones through the command: training, its interruption, and discovery with what was trained.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use support::{Workplace, json};

const TRAIN: &str = "train process/events.jsonl --width 32 --layers 2 --batch 8 -q --checkpoint-seconds 0";

fn workplace() -> Workplace {
    let at = Workplace::new();
    at.simulate("--vocabulary 60 --memory 2 --length 24 --sequences 400 --truth none");
    at
}

fn weights(at: &Workplace, model: &str) -> Vec<u8> {
    std::fs::read(at.path(model).join("model.safetensors")).unwrap()
}

#[test]
fn training_is_the_same_bits_on_any_number_of_threads() {
    let at = workplace();
    for backbone in ["llama", "mamba", "gru", "lstm"] {
        let one = format!("{backbone}-1");
        at.run(&format!("{TRAIN} --backbone {backbone} --steps 30 --threads 1 --out {one}"));
        at.run(&format!("{TRAIN} --backbone {backbone} --steps 30 --threads 3 --out {backbone}-3"));
        assert!(weights(&at, &one) == weights(&at, &format!("{backbone}-3")), "{backbone}");

        let results = |threads: usize| {
            let out = format!("{backbone}-{threads}.jsonl");
            at.run(&format!(
                "discover process/events.jsonl --model {one} --case s3 --case s7 --all-pairs --memory 4 \
                 --threads {threads} -q --out {out}"
            ));
            at.read(&out)
        };
        assert!(results(1) == results(2), "{backbone}");
    }
}

#[test]
fn the_rate_falls_as_it_is_told() {
    let at = workplace();
    for (model, flag) in [("usual", ""), ("line", "--schedule linear"), ("curve", "--schedule cosine")] {
        at.run(&format!("{TRAIN} --steps 20 {flag} --out {model}"));
    }
    assert!(weights(&at, "usual") == weights(&at, "line"));
    assert!(weights(&at, "usual") != weights(&at, "curve"));
    assert_eq!(json(&at.read("curve/trace.json"))["training"]["schedule"], "cosine");
}

#[test]
fn a_killed_run_continues_to_the_same_bits() {
    let at = workplace();
    for backbone in ["llama", "gru"] {
        let train = format!("{TRAIN} --backbone {backbone} --steps 300");
        at.run(&format!("{train} --out whole"));
        let mut kills = 0;
        loop {
            let resume = if kills > 0 { "--resume" } else { "" };
            let mut child = at.command(&format!("{train} {resume} --out model")).stderr(Stdio::null()).spawn().unwrap();
            let before = std::fs::read(at.path("model.partial/state.json")).unwrap_or_default();
            let since = Instant::now();
            // Until a further checkpoint is there; then any moment will do.
            while child.try_wait().unwrap().is_none()
                && std::fs::read(at.path("model.partial/state.json")).unwrap_or_default() == before
            {
                assert!(since.elapsed() < Duration::from_secs(60), "no checkpoint after a minute");
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(37 * (kills % 4)));
            if child.try_wait().unwrap().is_some() || kills > 6 {
                assert!(child.wait().unwrap().success());
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
        }
        assert!(kills > 1, "the run was over before it could be killed");
        assert!(weights(&at, "whole") == weights(&at, "model"), "{backbone}");
        assert!(!at.path("model.partial").exists());
    }
}

#[test]
fn control_c_keeps_a_checkpoint() {
    let at = workplace();
    let train = "train process/events.jsonl --width 32 --layers 2 --batch 8 --steps 100000 --out model";
    let child = at.command(train).stderr(Stdio::piped()).spawn().unwrap();
    let since = Instant::now();
    while !at.path("model.partial").exists() {
        assert!(since.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("steps are kept in model.partial; --resume continues"), "{said}");
    assert!(at.path("model.partial/state.json").exists() && !at.path("model").exists());
    let said =
        at.refuse("train process/events.jsonl --width 32 --layers 2 --batch 9 --steps 100000 --out model --resume");
    assert!(said.contains("is of a run with other settings (batch)"), "{said}");
}

#[test]
fn a_trained_network_beats_frequencies_and_finds_causes() {
    let at = workplace();
    at.run("train process/events.jsonl --process process --width 32 --layers 1 --steps 400 -q --out model");
    let info: serde_json::Value = serde_json::from_str(&at.run("model info model --json")).unwrap();
    let number = |name: &str| info[name].as_f64().unwrap();
    assert!(number("held_out_loss") < number("unigram_loss") - 0.5, "{info}");
    assert!(number("epsilon_hat") < 0.5 && number("epsilon_hat") > 0.0, "{info}");
    assert_eq!(info["backbone"], "llama");
    assert_eq!(info["vocabulary_size"], 60, "the begin token is not an event");
    at.run("discover process/events.jsonl --model model --case s1 --case s2 --memory 3 -q --out r.jsonl");
    let lines: Vec<serde_json::Value> = at.read("r.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(lines.iter().all(|line| !line["edges"].as_array().unwrap().is_empty()));
    assert_eq!(lines[0]["settings"]["proposal"], "plausible");
}

#[test]
fn memory_can_be_bounded() {
    let at = workplace();
    at.run(&format!("{TRAIN} --steps 20 --out model"));
    let discover = "discover process/events.jsonl --model model --case s1 --memory 4 --particles 50 --all-pairs -q";
    at.run(&format!("{discover} --out free.jsonl"));
    at.run(&format!("{discover} --ram-limit 20MB --out bound.jsonl"));
    let strengths = |name: &str| -> Vec<f64> {
        let line: serde_json::Value = serde_json::from_str(&at.read(name)).unwrap();
        line["edges"].as_array().unwrap().iter().map(|edge| edge["strength"].as_f64().unwrap()).collect()
    };
    for (a, b) in strengths("free.jsonl").iter().zip(strengths("bound.jsonl")) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
    let said = at.refuse(&format!("{discover} --ram-limit 1MB --out small.jsonl"));
    assert!(said.contains("--ram-limit") && said.contains("MB are allowed"), "{said}");
    let said = at.refuse(&format!("{discover} --ram-limit much --out small.jsonl"));
    assert!(said.contains("expected a size such as"), "{said}");
}

#[test]
fn a_checkpoint_without_names_takes_integer_ids() {
    let at = Workplace::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace-models/tests/golden");
    for name in ["llama-gqa", "gpt2", "mamba"] {
        at.write("log.jsonl", "{\"id\": \"a\", \"events\": [3, 22, 0, 7, 7, 1]}\n");
        let model = golden.join(name);
        at.run(&format!("discover log.jsonl --model {} --out r.jsonl --all-pairs -q", model.display()));
        let line: serde_json::Value = serde_json::from_str(&at.read("r.jsonl")).unwrap();
        assert_eq!(line["events"], serde_json::json!([3, 22, 0, 7, 7, 1]));
        assert_eq!(line["edges"].as_array().unwrap().len(), 10, "the first event is not predicted, and no cause");
        at.write("log.jsonl", "{\"id\": \"a\", \"events\": [3, 23, 0]}\n");
        let said = at.refuse(&format!("discover log.jsonl --model {} --out s.jsonl", model.display()));
        assert!(said.contains("23"), "{said}");
    }
    // Learned positions end; rotary ones go on, with a warning.
    let long = (0..40).map(|i| (i % 20).to_string()).collect::<Vec<_>>().join(", ");
    at.write("log.jsonl", format!("{{\"id\": \"a\", \"events\": [{long}]}}\n"));
    let said = at.refuse(&format!("discover log.jsonl --model {} --out s.jsonl", golden.join("gpt2").display()));
    assert!(said.contains("40 events; the model reads at most 33"), "{said}");
    let long = (0..80).map(|i| (i % 20).to_string()).collect::<Vec<_>>().join(", ");
    at.write("log.jsonl", format!("{{\"id\": \"a\", \"events\": [{long}]}}\n"));
    let words = format!("discover log.jsonl --model {} --memory 2 --out s.jsonl", golden.join("llama-gqa").display());
    let output = at.try_run(&words);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("trained on at most 64"), "{said}");
}

#[test]
fn devices_that_this_build_does_not_have() {
    let at = workplace();
    at.run(&format!("{TRAIN} --steps 5 --out model"));
    let said = at.refuse("discover process/events.jsonl --model model --out r.jsonl --device cuda");
    assert!(said.contains("--device: cuda: this build runs on CPUs alone") && said.contains("feature"), "{said}");
}

#[test]
fn heads_follow_the_width() {
    let at = workplace();
    for (flags, heads, head_width) in [
        ("--size tiny", 4, 16),
        ("--size tiny --width 48", 3, 16),
        ("--size tiny --width 30", 3, 10),
        ("--size tiny --heads 2", 2, 32),
        ("--size base --width 64", 4, 16),
        ("--size base --width 64 --head-width 8", 8, 8),
        ("--size base --width 64 --head-width 20", 4, 20),
    ] {
        let name = flags.replace([' ', '-'], "");
        at.run(&format!("train process/events.jsonl --layers 1 --steps 1 -q --out {name} {flags}"));
        let config = json(&at.read(&format!("{name}/config.json")));
        let width = config["hidden_size"].as_u64().unwrap();
        assert_eq!(width % heads, 0, "Transformers loads it: {flags}");
        assert_eq!(
            (&config["num_attention_heads"], &config["head_dim"]),
            (&heads.into(), &head_width.into()),
            "{flags}"
        );
    }
}

#[test]
fn flags_that_make_no_sense() {
    let at = workplace();
    let cases = [
        ("--backbone ngram --steps 5", "--steps: means nothing to the backbone ngram"),
        ("--order 3", "--order: means nothing to the backbone llama"),
        ("--backbone gru --heads 2", "--heads: means nothing to the backbone gru"),
        ("--width 30 --heads 10", "--heads: 10 gives each an odd part of the width 30"),
        ("--width 64 --heads 5 --head-width 16", "--heads: 5 does not divide the width 64"),
        ("--steps 0", "--steps: 0 is out of range"),
        ("--minutes -1", "--minutes: -1 is out of range"),
        ("--minutes 1 --steps 3", "cannot be used with"),
        ("--batch 0", "--batch: 0 is out of range"),
        ("--learning-rate nan", "--learning-rate: NaN is out of range"),
        ("--layers 0", "--layers: 0 is out of range"),
        ("--length 1", "--length: 1 is out of range"),
        ("--held-out 1", "not a share"),
        ("--backbone ngram --checkpoint-seconds 3", "--checkpoint-seconds: means nothing"),
        ("--backbone ngram --resume", "--resume: means nothing to the backbone ngram"),
        ("--process model-of-something", "model-of-something"),
    ];
    for (flags, expected) in cases {
        let said = at.refuse(&format!("train process/events.jsonl --out model {flags}"));
        assert!(said.contains(expected), "{flags}: {said}");
    }
    at.write("one.jsonl", "{\"id\": \"a\", \"events\": [\"x\", \"x\"]}\n");
    assert!(at.refuse("train one.jsonl --out model").contains("at least 2 are needed"));
    at.write("empty.jsonl", "");
    assert!(at.refuse("train empty.jsonl --out model").contains("holds no sequence"));
}
