//! The simulated fleet through the commands, and two cohorts of it compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use support::{Workplace, json, lines};

/// The events of every vehicle of a log.
fn events(at: &Workplace, folder: &str) -> BTreeMap<String, Vec<String>> {
    let names = |line: &Value| serde_json::from_value(line["events"].clone()).unwrap();
    let log = lines(&at.read(&format!("{folder}/events.jsonl")));
    log.iter().map(|line| (line["id"].as_str().unwrap().to_owned(), names(line))).collect()
}

fn pairs(at: &Workplace, folder: &str) -> BTreeSet<(String, String)> {
    let text = at.read(&format!("{folder}/graph.csv"));
    let split = |line: &str| line.split_once(',').map(|(cause, effect)| (cause.to_owned(), effect.to_owned()));
    assert!(text.starts_with("cause,effect\n"));
    text.lines().skip(1).map(|line| split(line).unwrap()).collect()
}

#[test]
fn the_fleet_is_its_own_oracle() {
    let at = Workplace::new();
    at.run("simulate fleet --sequences 60 --out fleet -q");
    at.run("discover fleet/events.jsonl --model fleet --out all.jsonl --particles all -q");
    let all = json(&at.run("evaluate all.jsonl --truth fleet/truth.jsonl --json"));
    assert_eq!((&all["positions"]["f1"], &all["true_edges_outside_tested_pairs"]), (&1.0.into(), &0.into()));
    at.run("discover fleet/events.jsonl --model fleet --out r.jsonl --population p.json -q");
    let auto = json(&at.run("evaluate r.jsonl --truth fleet/truth.jsonl --json"));
    assert!(auto["positions"]["f1"].as_f64().unwrap() > 0.98, "{auto}");
    let population = json(&at.run("evaluate p.json --truth fleet/graph.csv --json"));
    assert!(population["population"]["average_precision"].as_f64().unwrap() > 0.95, "{population}");
    let info = json(&at.run("model info fleet --json"));
    assert_eq!((&info["backbone"], &info["reach"], &info["epsilon"]), (&"fleet".into(), &4.into(), &0.0.into()));
}

#[test]
fn files_are_what_they_are_said_to_be_and_do_not_depend_on_threads() {
    let at = Workplace::new();
    at.run("simulate fleet --types 200 --sequences 30 --length 40 --out fleet -q --threads 1");
    at.run("simulate fleet --types 200 --sequences 30 --length 40 --out again -q --threads 5");
    for name in ["events.jsonl", "truth.jsonl", "graph.csv", "vocab.json", "trace.json", "config.json"] {
        assert!(at.read(&format!("fleet/{name}")) == at.read(&format!("again/{name}")), "{name}");
    }
    let vocabulary = json(&at.read("fleet/vocab.json"));
    assert_eq!(vocabulary.as_object().unwrap().len(), 200);
    assert!(vocabulary["P0562 system voltage low"].is_number());
    for (cause, effect) in pairs(&at, "fleet") {
        assert!(vocabulary[&cause].is_number() && vocabulary[&effect].is_number(), "{cause} → {effect}");
    }
    let log = lines(&at.read("fleet/events.jsonl"));
    assert_eq!(log[7]["id"], "vehicle-00007");
    for line in &log {
        let times: Vec<f64> = serde_json::from_value(line["times"].clone()).unwrap();
        assert_eq!(times.len(), line["events"].as_array().unwrap().len());
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
    }
    // The same log as long CSV; the folder is replaced as one of ours.
    at.run("simulate fleet --types 200 --sequences 30 --length 40 --format csv --truth none --out again -q");
    assert!(!at.path("again/events.jsonl").exists() && !at.path("again/truth.jsonl").exists());
    let csv = at.read("again/events.csv");
    let mut rows = csv.lines();
    assert_eq!(rows.next(), Some("case_id,time,event"));
    for line in &log {
        let (events, times) = (line["events"].as_array().unwrap(), line["times"].as_array().unwrap());
        for (event, time) in events.iter().zip(times) {
            let row: Vec<&str> = rows.next().unwrap().split(',').collect();
            assert_eq!((row[0], row[2]), (line["id"].as_str().unwrap(), event.as_str().unwrap()));
            assert_eq!(row[1].parse::<f64>().unwrap(), time.as_f64().unwrap());
        }
    }
    assert_eq!(rows.next(), None);
}

/// With noise and drops the truth still points at events that happened, and is part of the clean truth.
#[test]
fn the_truth_of_a_faulty_log_is_of_the_events_that_remain() {
    let at = Workplace::new();
    at.run("simulate fleet --sequences 40 --out clean -q");
    at.run("simulate fleet --sequences 40 --noise 0.1 --drop 0.2 --out faulty -q");
    let (clean, faulty) = (events(&at, "clean"), events(&at, "faulty"));
    let count = |log: &BTreeMap<String, Vec<String>>| log.values().map(Vec::len).sum::<usize>() as f64;
    assert!((count(&faulty) / count(&clean) - 0.8).abs() < 0.03);
    let truth =
        |folder: &str, log: &BTreeMap<String, Vec<String>>| -> BTreeMap<String, Vec<(String, String, String)>> {
            let edges = |line: &Value| {
                let events = &log[line["id"].as_str().unwrap()];
                let name = |edge: &Value, end: &str| events[edge[end].as_u64().unwrap() as usize].clone();
                let all = line["edges"].as_array().unwrap();
                all.iter().map(|e| (name(e, "cause"), name(e, "effect"), e["strength"].to_string())).collect()
            };
            let all = lines(&at.read(&format!("{folder}/truth.jsonl")));
            all.iter().map(|line| (line["id"].as_str().unwrap().to_owned(), edges(line))).collect()
        };
    let (whole, part) = (truth("clean", &clean), truth("faulty", &faulty));
    for (id, edges) in &part {
        let mut left = whole[id].clone();
        for edge in edges {
            // The same two events with the same strength.
            let place = left.iter().position(|other| other == edge);
            left.remove(place.unwrap_or_else(|| panic!("{id}: {edge:?} is not an edge of the clean log")));
        }
    }
    let edges = |truth: &BTreeMap<String, Vec<(String, String, String)>>| truth.values().map(Vec::len).sum::<usize>();
    let share = edges(&part) as f64 / edges(&whole) as f64;
    // Both ends must remain, and as they were: 0.72² of the edges.
    assert!((share - 0.72 * 0.72).abs() < 0.06, "{share}");
}

#[test]
fn options_out_of_range_are_refused() {
    let at = Workplace::new();
    for (options, said) in [
        ("--types 5", "types: 5 is out of range"),
        ("--types 29101", "types: 29101 is out of range"),
        ("--without Battery", "without: no cascade is called \"Battery\"; expected battery, cooling"),
        ("--noise 1", "noise: 1 is out of range"),
        ("--noise -0.1", "noise: -0.1 is out of range"),
        ("--drop NaN", "drop: NaN is out of range"),
        ("--length 1", "length: 1 is out of range"),
        ("--sequences 0", "--sequences: 0 is out of range; expected at least 1"),
        ("--truth-draws 1", "--truth-draws: 1 is out of range"),
    ] {
        let complaint = at.refuse(&format!("simulate fleet --out fleet {options}"));
        assert!(complaint.contains(said), "{options}: {complaint}");
    }
    at.write("notes.txt", "mine");
    assert!(at.refuse("simulate fleet --out .").contains("is the folder you are in"));
}

/// Two samples of one fleet do not differ; a fleet without a cascade lacks its edges and no others.
#[test]
fn cohorts_are_compared() {
    let at = Workplace::new();
    let cohort = |name: &str, options: &str, model: &str| {
        at.run(&format!("simulate fleet --sequences 250 --truth none --out {name} -q {options}"));
        at.run(&format!(
            "discover {name}/events.jsonl --model {model} --out {name}.jsonl --population {name}.json -q --seed 3"
        ));
    };
    cohort("a", "--seed 1", "a");
    cohort("b", "--seed 2", "b");
    cohort("c", "--seed 3 --without fuel", "c");
    let compare = |other: &str| json(&at.run(&format!("compare a.json {other} --json")));
    let changed = |comparison: &Value| -> BTreeMap<(String, String), String> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let all = comparison["pairs"].as_array().unwrap().iter();
        let change = |pair: &Value| ((text(&pair["cause"]), text(&pair["effect"])), text(&pair["change"]));
        all.map(change).filter(|(_, change)| !["same", "unknown"].contains(&change.as_str())).collect()
    };

    let same = compare("b.json");
    assert_eq!((&same["same_model"], &same["margin"]), (&true.into(), &0.0.into()));
    assert!(same["tested"].as_u64().unwrap() > 150);
    assert_eq!(changed(&same), BTreeMap::new());

    let gone: BTreeMap<_, _> =
        pairs(&at, "a").difference(&pairs(&at, "c")).map(|pair| (pair.clone(), "vanishes".to_owned())).collect();
    assert_eq!(gone.len(), 7);
    assert_eq!(changed(&compare("c.json")), gone);
    // The other way round they appear.
    let back = changed(&json(&at.run("compare c.json a.json --json")));
    assert!(back.keys().eq(gone.keys()) && back.values().all(|change| change == "appears"), "{back:?}");
    // With the model of the whole fleet, too: where the mechanism is gone, its edges are not found.
    cohort("d", "--seed 3 --without fuel", "a");
    let by_one = changed(&compare("d.json"));
    assert!(gone.keys().all(|pair| ["vanishes", "less often"].contains(&by_one[pair].as_str())), "{by_one:?}");

    let text = at.run("compare a.json c.json --out c.csv");
    assert!(text.contains("7 vanish in B") && text.contains("two models read the cohorts"), "{text}");
    assert_eq!(at.read("c.csv").lines().filter(|line| line.contains(",vanishes,")).count(), 7);
    // A population without sums over sequences is compared too, with wider intervals.
    let mut old = json(&at.read("b.json"));
    for edge in old["edges"].as_array_mut().unwrap() {
        assert!(edge.as_object_mut().unwrap().remove("by_sequence").is_some());
    }
    at.write("old.json", old.to_string());
    assert!(at.run("compare a.json old.json").contains("old.json does not say how pairs are spread"));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let at = Workplace::new();
    at.run("simulate fleet --sequences 8 --truth none --out fleet -q");
    let discover = |name: &str, options: &str| {
        at.run(&format!(
            "discover fleet/events.jsonl --model fleet --out r.jsonl --population {name} --particles 16 -q {options}"
        ));
    };
    discover("a.json", "");
    discover("b.json", "--memory 2");
    discover("c.json", "--seed 8");
    for (words, said) in [
        (
            "compare a.json b.json",
            "b.json: made with other settings than a.json, so the two cannot be compared: memory is 2",
        ),
        ("compare a.json a.json", "a.json: given twice"),
        ("compare a.json c.json --level 0", "--level: 0 is out of range"),
        ("compare a.json c.json --margin -1", "--margin: -1 is out of range"),
        ("compare a.json c.json --out c.json", "c.json: is read from, and would be written over"),
        ("compare a.json nothing.json", "nothing.json"),
        ("compare a.json r.jsonl", "r.jsonl: expected a population graph"),
    ] {
        let complaint = at.refuse(words);
        assert!(complaint.contains(said), "{words}: {complaint}");
    }
    at.run("compare a.json c.json");
}
