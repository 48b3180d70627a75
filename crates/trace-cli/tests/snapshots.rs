//! What people read, to the letter.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use support::Workplace;

/// A log small enough to see what must come out.
fn workplace() -> Workplace {
    let at = Workplace::new();
    let log = "A B C\nB A C C\nC A B\n".repeat(10);
    at.write("log.txt", log);
    at.run("train --backbone ngram log.txt --out model --order 2 -q");
    at.run("discover log.txt --model model --out r.jsonl --all-pairs --population p.json -q");
    at
}

#[test]
fn tables() {
    let at = workplace();
    let line = |i: u32| format!("{{\"id\": {i}, \"edges\": [{{\"cause\": 0, \"effect\": 1}}]}}");
    let truth = (1..=30).map(line).collect::<Vec<_>>().join("\n");
    at.write("truth.jsonl", truth);
    at.write("pairs.csv", "cause,effect\nA,B\nB,C\n");
    insta::assert_snapshot!("evaluate", at.run("evaluate r.jsonl --truth truth.jsonl"));
    insta::assert_snapshot!("evaluate_population", at.run("evaluate p.json --truth pairs.csv"));
    insta::assert_snapshot!("model_info", at.run("model info model"));
}

#[test]
fn exports() {
    let at = workplace();
    insta::assert_snapshot!("sample_dot", at.run("export r.jsonl --to dot --case 1"));
    insta::assert_snapshot!("summary_csv", at.run("export r.jsonl --to csv --graph summary --case 2"));
    insta::assert_snapshot!("population_csv", at.run("export p.json --to csv"));
}

#[test]
fn remarks_and_complaints() {
    let at = workplace();
    let said = |words: &str| String::from_utf8(at.try_run(words).stderr).unwrap();
    insta::assert_snapshot!("train", said("train --backbone ngram log.txt --out again --order 2"));
    insta::assert_snapshot!("no_such_model", said("discover log.txt --model nothing --out x.jsonl"));
    insta::assert_snapshot!("wrong_setting", said("discover log.txt --model model --out x.jsonl --history sampled"));
}

#[test]
fn help() {
    let at = Workplace::new();
    insta::assert_snapshot!("help", at.run("--help"));
    insta::assert_snapshot!("help_discover", at.run("discover -h"));
}
