//! Logs through the command: formats, flags, shaping, and what is said of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use std::io::Write;
use std::process::Stdio;

use support::{Workplace, json, lines};

/// Cases whose B always follows A, mixed, in a CSV with quoted names.
fn fleet(rare: bool) -> String {
    let mut text = String::from("vehicle;dtc;when\n");
    for step in 0..6 {
        for vehicle in 0..30 {
            let name = match (step + vehicle) % 3 {
                0 => "\"low; voltage\"",
                1 => "no, signal",
                _ if rare && vehicle % 10 == 0 => ["odd 1", "odd 2"][vehicle / 10 % 2],
                _ => "limp \"\"home\"\"",
            };
            let name = if name.starts_with("limp") { "\"limp \"\"home\"\"\"" } else { name };
            text += &format!("v{vehicle:03};{name};31.05.2024 {:02}:{:02}\n", 10 + step, vehicle);
        }
    }
    text
}

const FLAGS: &str = "--time-column when --time-format %d.%m.%Y_%H:%M";

#[test]
fn csv_from_file_to_results() {
    let at = Workplace::new();
    at.write("fleet.csv", fleet(false).replace("2024 ", "2024_"));
    let said = at.run(&format!("log info fleet.csv {FLAGS}"));
    assert!(said.contains("fields separated by ';'") && said.contains("case column              vehicle"), "{said}");
    assert!(said.contains("low; voltage") && said.contains("2024-05-31T10:00:00Z"), "{said}");
    let info = json(&at.run(&format!("log info fleet.csv --json {FLAGS}")));
    assert_eq!(
        (info["cases"].as_u64(), info["events"].as_u64(), info["event_types"].as_u64()),
        (Some(30), Some(180), Some(3))
    );
    assert_eq!(info["lengths"]["median"].as_f64(), Some(6.0));
    at.run(&format!("train --backbone ngram fleet.csv --out model -q {FLAGS}"));
    at.run(&format!("discover fleet.csv --model model --out r.jsonl -q {FLAGS}"));
    let results = lines(&at.read("r.jsonl"));
    assert_eq!((results.len(), results[0]["id"].as_str()), (30, Some("v000")));
    assert_eq!(results[0]["times"][1].as_f64().unwrap() - results[0]["times"][0].as_f64().unwrap(), 3600.0);
    assert!(results[0]["events"].as_array().unwrap().iter().any(|name| name == "limp \"home\""));
}

#[test]
fn folding_at_training_is_known_at_discovery() {
    let at = Workplace::new();
    at.write("fleet.csv", fleet(true).replace("2024 ", "2024_"));
    let output = at.try_run(&format!("train --backbone ngram fleet.csv --out model --min-count 20 {FLAGS}"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("2 rare types folded into one"), "{said}");
    // One case alone, in which every type is rare, is read as in training; so is a type that was never seen.
    at.write("one.csv", "vehicle,dtc\nx,odd 1\nx,\"no, signal\"\nx,never seen\n");
    for flags in ["", "--min-count 20"] {
        let output = at.try_run(&format!("discover one.csv --model model --out r.jsonl --all-pairs {flags}"));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.contains("2 types the model does not know taken as rare"), "{said}");
        assert_eq!(lines(&at.read("r.jsonl"))[0]["events"], json(r#"["(rare)", "no, signal", "(rare)"]"#));
    }
    at.run(&format!("train --backbone ngram fleet.csv --out bare -q {FLAGS}"));
    let said = at.refuse(&format!("discover fleet.csv --model bare --out x.jsonl --min-count 5 {FLAGS}"));
    assert!(said.contains("--min-count: the model was trained without it"), "{said}");
}

#[test]
fn a_log_shaped_in_another_way_is_remarked() {
    let at = Workplace::new();
    at.write("log.txt", "A A B C\nA B C C\n".repeat(10));
    at.run("train --backbone ngram log.txt --out model -q --collapse --min-count 2");
    let said = |words: &str| String::from_utf8(at.try_run(words).stderr).unwrap();
    let other = said("discover log.txt --model model --out r.jsonl");
    assert!(other.contains("trained on a log read with --collapse; this one is read with no such flags"), "{other}");
    assert!(!said("discover log.txt --model model --out r.jsonl --collapse").contains("note: the model was trained"));
}

#[test]
fn networks_train_on_shaped_logs() {
    let at = Workplace::new();
    at.write("fleet.csv", fleet(true).replace("2024 ", "2024_"));
    let shaping = "--min-count 20 --collapse --max-length 4 --gap 30m";
    let output = at.try_run(&format!("train fleet.csv --out model --steps 3 --width 8 --heads 2 {shaping} {FLAGS}"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("more pieces from splitting at gaps"), "{said}");
}

#[test]
fn standard_input_and_formats() {
    let at = Workplace::new();
    let run = |words: &str, text: &str| {
        let mut child =
            at.command(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        json(&String::from_utf8(output.stdout).unwrap())
    };
    let told = run("log info - --json", "session\tactivity\na\tb\n");
    assert_eq!((told["format"].as_str(), told["delimiter"].as_str()), (Some("csv"), Some("\t")));
    assert_eq!(run("log info - --json --min-count 2", "a b a\nb\n")["cases"].as_u64(), Some(2));
    assert_eq!(run("log info - --json --format text", "session,activity\n")["event_types"].as_u64(), Some(1));
    let single = "log info - --json --single-case --event-column what --gap 10";
    assert_eq!(run(single, "what,time\na,1\nb,2\nc,100\n")["cases"].as_u64(), Some(2));
}

#[test]
fn bad_rows_are_counted_before_any_work() {
    let at = Workplace::new();
    at.write(
        "bad.csv",
        "case,event,time\na,A,2024-02-28\na,B,2024-02-30\na,B,2024-03-01\nb,A,2024-03-01\nb,B,2024-03-02\n",
    );
    let said = at.refuse("train --backbone ngram bad.csv --out model");
    assert!(said.contains("bad.csv: line 3: column 3 (\"time\"): expected a time like"), "{said}");
    let output = at.try_run("train --backbone ngram bad.csv --out model --bad-rows skip");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("; 1 rows skipped (the first: line 3: column 3"), "{said}");
    let info = at.run("log info bad.csv --bad-rows skip");
    assert!(info.contains("skipped: line 3: column 3"), "{info}");
}

#[test]
fn steps_with_outcomes() {
    let at = Workplace::new();
    let mut rows = String::new();
    for case in 0..20 {
        rows += &format!("c{case},pay,{}\nc{case},a:b,\n", ["ok", "late"][case % 2]);
    }
    at.write("log.csv", format!("case,event,status\n{rows}"));
    let said = at.run("log info log.csv --outcome-column status");
    let rows: Vec<String> = said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for expected in ["outcome column status", "steps 2, 1 of them with several outcomes", "pay:late 10 25.0 %"] {
        assert!(rows.iter().any(|row| row == expected), "{expected}: {said}");
    }
    let info = json(&at.run("log info log.csv --outcome-column status --json"));
    assert_eq!((info["steps"].as_u64(), info["steps_with_outcomes"].as_u64()), (Some(2), Some(1)));
    assert_eq!(json(&at.run("log info log.csv --json")).get("steps"), None);
    at.run("train log.csv --backbone ngram --out model --outcome-column status");
    let record = json(&at.read("model/trace.json"));
    let families = record["training"]["families"].as_array().unwrap();
    assert!(families.contains(&serde_json::json!({"step": "pay", "outcome": "late"})), "{record}");
    assert!(families.contains(&serde_json::json!({"step": "a:b"})), "{record}");
    at.run("discover log.csv --model model --out results.jsonl --outcome-column status");
    at.write("log.txt", "pay/ok ship\npay/late ship\n");
    let said = at.run("log info log.txt --family-separator /");
    assert!(said.contains("2, 1 of them with several outcomes"), "{said}");
}

#[test]
fn flags_that_cannot_be() {
    let at = Workplace::new();
    at.write("log.csv", "case,event\na,b\n");
    for (words, expected) in [
        ("log info log.csv --gap soon", "expected a duration"),
        ("log info log.csv --gap -1", "expected a duration"),
        ("log info log.csv --max-length 0", "expected a whole number, 1 or more"),
        ("log info log.csv --min-count 0", "--min-count"),
        ("log info log.csv --delimiter ab", "expected one ASCII character, or tab"),
        ("log info log.csv --single-case --case-column case", "cannot be used with"),
        ("log info log.csv --gap 5m", "--gap: needs times, but sequence"),
        ("log info log.csv --event-column nope", "no such column"),
        (
            "log info log.csv --outcome-column nope",
            "--outcome-column: names \"nope\", but there is no such column (columns found: case, event)",
        ),
        ("log info log.csv --outcome-column event --family-separator :", "cannot be used with"),
        ("log info log.csv --format text --outcome-column event", "--outcome-column"),
        ("log info nowhere.csv", "nowhere.csv"),
    ] {
        let said = at.refuse(words);
        assert!(said.contains(expected), "{words}: {said}");
    }
}
