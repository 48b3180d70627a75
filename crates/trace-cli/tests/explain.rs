//! `trace explain` and prior knowledge.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use serde_json::Value;
use support::{Workplace, json, lines};

/// A log in which A is mostly followed by B and B by C, among other things, and an n-gram of it. What always came would
/// leave no room for anything else.
fn chain_of_three() -> Workplace {
    let at = Workplace::new();
    let mut log = String::new();
    for n in 0..400_u32 {
        let noise = |salt: u64| {
            let mixed = (u64::from(n) * 3 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("N{}", (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 60)
        };
        let a = n % 4 != 0;
        let b = a && n / 4 % 4 != 1;
        let or_noise = |name: &str, holds: bool, salt: u64| if holds { name.to_owned() } else { noise(salt) };
        let chain = [or_noise("A", a, 4), or_noise("B", b, 5), or_noise("C, \"the third\"", b, 6)];
        let events: Vec<String> = chain.into_iter().chain([noise(1), noise(2), noise(3)]).collect();
        log +=
            &format!("{}\n", serde_json::json!({"id": format!("s{n}"), "events": events, "times": [1, 1, 2, 3, 4, 5]}));
    }
    at.write("log.jsonl", &log);
    at.run("train log.jsonl --backbone ngram --order 2 --out model -q");
    at
}

#[test]
fn an_event_is_explained_back_to_its_root() {
    let at = chain_of_three();
    let told = json(&at.run("explain log.jsonl --model model --case s3 --at 2 --json"));
    assert_eq!((&told["position"], &told["type"]), (&2.into(), &"C, \"the third\"".into()));
    assert!(told["probability"].as_f64().unwrap() > 0.9, "{told}");
    let chain = &told["chains"][0];
    let path: Vec<&Value> = chain["edges"].as_array().unwrap().iter().map(|edge| &edge["cause_type"]).collect();
    assert_eq!(path, ["A", "B"]);
    assert_eq!(told["direct"][0]["cause_type"], "B");
    assert_eq!(told["schema"], "trace.explanation/2");
    // The numbers are those of discovery.
    at.run("discover log.jsonl --model model --case s3 --out r.jsonl -q");
    let result = &lines(&at.read("r.jsonl"))[0];
    let edge = result["edges"].as_array().unwrap().iter().find(|edge| edge["effect"] == 2).unwrap();
    assert_eq!(edge["strength"], told["direct"][0]["strength"]);

    let text = at.run("explain log.jsonl --model model --case s3 --at B");
    assert!(text.starts_with("B at 1 of s3, time 1\n"), "{text}");
    assert!(text.contains("A at 0") && text.contains("same time"), "{text}");
    // What starts a sequence at random has no cause.
    let text = at.run("explain log.jsonl --model model --case s3 --at 5 --threshold 0.5");
    assert!(text.contains("Nothing explains it"), "{text}");
}

#[test]
fn what_cannot_be_explained_is_refused_by_name() {
    let at = chain_of_three();
    for (flags, expected) in [
        ("--at 3", "--case: log.jsonl has 400 sequences; expected the id of one"),
        ("--case s9999 --at 3", "--case: log.jsonl has no sequence \"s9999\""),
        ("--case s3 --at 6", "--at: 6: sequence \"s3\" has 6 events, counted from 0"),
        ("--case s3 --at 0", "--at: 0: nothing before position 0 may be a cause"),
        ("--case s3 --at X", "--at: X: the model knows no such type"),
        ("--case s3 --at type:X", "--at: type:X: the model knows no such type"),
        ("--case s3 --at 3 --knowledge none.toml", "none.toml: "),
    ] {
        let message = at.refuse(&format!("explain log.jsonl --model model {flags}"));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn knowledge_is_obeyed_marked_and_part_of_the_settings() {
    let at = chain_of_three();
    at.write(
        "known.toml",
        "only_effects = [\"N*\"]\n[[forbidden]]\ncause = \"A\"\neffect = \"B\"\n[[required]]\ncause = \"B\"\neffect = \"N1\"\n",
    );
    at.run("discover log.jsonl --model model --memory 4 --out r.jsonl -q --all-pairs --knowledge known.toml");
    let results = lines(&at.read("r.jsonl"));
    let mut required = 0;
    for line in &results {
        let name = |position: &Value| line["events"][position.as_u64().unwrap() as usize].as_str().unwrap();
        let edges = line["edges"].as_array().unwrap();
        assert_eq!(edges.len() + line["excluded"].as_array().unwrap().len(), 4 + 4 + 3 + 2 + 1);
        for edge in edges {
            let (cause, effect) = (name(&edge["cause"]), name(&edge["effect"]));
            assert!(!cause.starts_with('N') && (cause, effect) != ("A", "B"));
            assert_eq!(edge["knowledge"] == "required", (cause, effect) == ("B", "N1"));
            assert!(edge["knowledge"] != "required" || edge["kept"] == true);
            required += u32::from(edge["knowledge"] == "required");
        }
        for pair in line["excluded"].as_array().unwrap() {
            let (cause, effect) = (name(&pair[0]), name(&pair[1]));
            assert!(cause.starts_with('N') || (cause, effect) == ("A", "B"));
        }
    }
    assert!(required > 10);
    // Required edges outlast any threshold, also one that is moved later.
    at.run("export r.jsonl --to csv --threshold 1000 --out e.csv");
    assert_eq!(at.read("e.csv").lines().count() as u32, 1 + required);
    at.run("aggregate r.jsonl --out p.json -q");
    // The rules are part of what makes results comparable.
    at.run("discover log.jsonl --model model --memory 4 --out plain.jsonl -q --all-pairs");
    let message = at.refuse("aggregate r.jsonl plain.jsonl --out p2.json");
    assert!(message.contains("knowledge"), "{message}");
    let told = json(&at.run("explain log.jsonl --model model --case s3 --at B --knowledge known.toml --json"));
    assert_eq!(told["direct"], Value::Array(Vec::new()));
}
