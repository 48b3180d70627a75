//! A fixed set of commands gives what an earlier version recorded, and what that version wrote still opens.
//!
//! `recorded/commands.txt` lists the commands, `recorded/expected` what they wrote. Text must be equal; of numbers the
//! last digits may depend on the processor. A result may hold more keys than it did, never fewer or other ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::Workplace;

/// Keys that were added since.
const NEW_KEYS: [&str; 4] = ["options", "open", "true_edges", "true_edges_untestable"];
/// Relative difference that processors may make.
const TOLERANCE: f64 = 1e-9;

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded")
}

/// Every file below a folder, by its path within it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { left.push(path) } else { found.push(path.strip_prefix(folder).unwrap().to_owned()) }
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    for name in files(from) {
        let place = to.join(&name);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::copy(from.join(&name), place).unwrap();
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1e-3)
}

/// What of `found` is not as it was.
fn difference(expected: &Value, found: &Value, place: &str) -> Option<String> {
    match (expected, found) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().find(|key| !old.contains_key(*key) && !NEW_KEYS.contains(&key.as_str()));
            if let Some(key) = added {
                return Some(format!("{place}: {key} is new"));
            }
            old.iter().find_map(|(key, value)| match new.get(key) {
                Some(found) => difference(value, found, &format!("{place}/{key}")),
                None => Some(format!("{place}: {key} is missing")),
            })
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            old.iter().zip(new).enumerate().find_map(|(i, (a, b))| difference(a, b, &format!("{place}[{i}]")))
        }
        (Value::Number(a), Value::Number(b)) if near(a.as_f64().unwrap(), b.as_f64().unwrap()) => None,
        (a, b) if a == b => None,
        (a, b) => Some(format!("{place}: {a} became {b}")),
    }
}

/// The numbers of a text, and the text without them.
fn split(text: &str) -> (Vec<f64>, String) {
    let is_part = |c: char| c.is_ascii_digit() || ".-+e".contains(c);
    let (mut numbers, mut rest) = (Vec::new(), String::new());
    for word in text.split_inclusive(|c: char| !is_part(c)) {
        let number = word.trim_end_matches(|c: char| !is_part(c));
        match number.parse::<f64>() {
            Ok(value) => {
                numbers.push(value);
                rest.push('#');
                rest.push_str(&word[number.len()..]);
            }
            Err(_) => rest.push_str(word),
        }
    }
    (numbers, rest)
}

fn compare(name: &Path, expected: &str, found: &str) {
    let parse = |text: &str| text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
    let whole = |text: &str| serde_json::from_str::<Value>(text).map(|value| vec![value]);
    if let Ok(old) = whole(expected).or_else(|_| parse(expected)) {
        let new = whole(found).or_else(|_| parse(found)).unwrap();
        let difference = difference(&Value::Array(old), &Value::Array(new), &name.display().to_string());
        assert_eq!(difference, None);
        return;
    }
    let ((old, old_text), (new, new_text)) = (split(expected), split(found));
    assert_eq!(old_text, new_text, "{}", name.display());
    assert!(old.iter().zip(&new).all(|(a, b)| near(*a, *b)), "{}: {old:?} became {new:?}", name.display());
}

#[test]
fn commands_give_what_was_recorded() {
    let at = Workplace::new();
    // What is evaluated is what the earlier version found.
    for name in files(&recorded().join("expected")).iter().filter(|name| name.components().count() == 1) {
        std::fs::copy(recorded().join("expected").join(name), at.path(&name.to_string_lossy())).unwrap();
    }
    let commands = std::fs::read_to_string(recorded().join("commands.txt")).unwrap();
    for (number, command) in (1..).zip(commands.lines()).filter(|(_, line)| !line.starts_with('#')) {
        match command.strip_prefix("> ") {
            Some(command) => at.write(&format!("stdout-{number}.txt"), at.run(&format!("{command} -q"))),
            None => _ = at.run(&format!("{command} -q")),
        }
        // Truths count alternatives as discovery does; what was found is scored against those of its time.
        if let Some((_, folder)) = command.strip_prefix("simulate ").and_then(|command| command.split_once("--out ")) {
            let truth = recorded().join("expected").join(folder).join("truth.jsonl");
            if truth.exists() {
                std::fs::copy(truth, at.path(folder).join("truth.jsonl")).unwrap();
            }
        }
        // Which sequences are held out goes by their ids now, so that a training counts others than it did. What follows
        // is asked of the recorded model, which must answer as it did.
        if let Some((_, model)) = command.strip_prefix("train ").and_then(|command| command.split_once("--out ")) {
            std::fs::remove_dir_all(at.path(model)).unwrap();
            copy(&recorded().join("expected").join(model), &at.path(model));
        }
    }
    let expected = recorded().join("expected");
    let names = files(&expected);
    assert!(names.len() > 30);
    // How a model was made is recorded in other words, and truths count alternatives as discovery does.
    let skipped =
        |name: &&PathBuf| !name.ends_with("trace.json") && !name.starts_with("gru") && !name.ends_with("truth.jsonl");
    for name in names.iter().filter(skipped) {
        let (old, new) = (std::fs::read(expected.join(name)).unwrap(), std::fs::read(at.path(&name.to_string_lossy())));
        let new = new.unwrap_or_else(|error| panic!("{}: {error}", name.display()));
        match (String::from_utf8(old), String::from_utf8(new)) {
            (Ok(old), Ok(new)) => compare(name, &old, &new),
            (Err(old), Err(new)) => assert!(old.as_bytes() == new.as_bytes(), "{}", name.display()),
            _ => panic!("{}: text became bytes, or bytes text", name.display()),
        }
    }
}

#[test]
fn what_an_earlier_version_wrote_still_opens() {
    let at = Workplace::new();
    copy(&recorded().join("expected"), &at.path(""));
    for model in ["process", "bigram", "ngram", "gru"] {
        assert!(at.run(&format!("model info {model}")).contains("event types"), "{model}");
    }
    at.run("discover process/events.jsonl --model gru --out again.jsonl -q");
    at.run("aggregate atomic.jsonl --out again.json -q");
    at.run("aggregate atomic.json --out copy.json -q");
    at.run("evaluate staircase.jsonl --truth process/truth.jsonl");
    at.run("evaluate atomic.jsonl --truth process/truth.jsonl --threshold 0.1");
    at.run("export uniform.json --to csv");
    at.run("report atomic.jsonl --population atomic.json --out page.html -q");
    at.run("report scaling.jsonl --out page.html -q");
}
