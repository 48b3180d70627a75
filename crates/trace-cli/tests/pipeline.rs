//! The commands together, on simulated data.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use support::{Workplace, json, lines};

fn figure(text: &str, path: &[&str]) -> f64 {
    let value = path.iter().fold(json(text), |value, key| value[key].clone());
    value.as_f64().unwrap_or_else(|| panic!("{path:?} is {value}"))
}

#[test]
fn the_oracle_finds_the_truth_and_the_staircase_fails_at_longer_lags() {
    let at = Workplace::new();
    at.simulate("--vocabulary 300 --memory 4 --length 40 --sequences 12 --seed 5");
    let evaluate = |options: &str| {
        at.run(&format!("discover process/events.jsonl --model process --out r.jsonl --all-pairs -q {options}"));
        at.run("evaluate r.jsonl --truth process/truth.jsonl --json")
    };
    let auto = evaluate("--proposal uniform");
    assert!(figure(&auto, &["positions", "f1"]) > 0.97, "{auto}");
    assert!(figure(&auto, &["summary", "f1"]) > 0.97, "{auto}");
    assert!(figure(&auto, &["positions", "average_precision"]) > 0.95, "{auto}");
    assert!(figure(&auto, &["positions", "f1_std"]) >= 0.0);
    assert_eq!(json(&auto)["true_edges_outside_tested_pairs"], 0);

    let fixed = evaluate("--particles 128 --proposal uniform");
    let staircase = evaluate("--particles 128 --proposal uniform --intervention staircase --threshold 0.05");
    let lag = |text: &str, lag: &str| figure(text, &["positions", "by_lag", lag, "recall"]);
    // Other draws of the same: the staircase may draw the event itself.
    assert!((lag(&fixed, "1") - lag(&staircase, "1")).abs() < 0.03);
    assert!(lag(&staircase, "2") < lag(&fixed, "2") - 0.2, "{staircase}");
    assert!(figure(&staircase, &["positions", "f1"]) < figure(&fixed, &["positions", "f1"]) - 0.05);

    // Every replacement tried with the same intervention as the truth is the truth, which counts the event itself and the
    // effect's own type among three hundred replacements.
    let all = evaluate("--particles all --proposal uniform");
    assert!(figure(&all, &["positions", "f1"]) > 0.99, "{all}");
}

#[test]
fn the_null_process_has_no_edge() {
    let at = Workplace::new();
    at.simulate("--vocabulary 500 --length 40 --sequences 5 --redundancy 0");
    at.run("discover process/events.jsonl --model process --out r.jsonl -q");
    for line in lines(&at.read("r.jsonl")) {
        assert_eq!(line["edges"].as_array().unwrap().len(), 0);
    }
    for line in lines(&at.read("process/truth.jsonl")) {
        assert_eq!(line["edges"].as_array().unwrap().len(), 0);
    }
    // With the bound as threshold, which is 0 for a perfect model, too.
    at.run("discover process/events.jsonl --model process --out r.jsonl -q --threshold bound");
    assert!(lines(&at.read("r.jsonl")).iter().all(|line| line["edges"].as_array().unwrap().is_empty()));
}

#[test]
fn results_are_the_same_bytes_for_any_number_of_threads() {
    let at = Workplace::new();
    at.simulate("--vocabulary 300 --memory 3 --length 30 --sequences 9 --truth none");
    for options in ["", "--intervention staircase", "--history sampled --context 3 --particles 32", "--divergence full"]
    {
        let run = |threads: usize| {
            at.run(&format!(
                "discover process/events.jsonl --model process --out r.jsonl --population p.json --all-pairs -q \
                 --threads {threads} {options}"
            ));
            (at.read("r.jsonl"), at.read("p.json"))
        };
        let one = run(1);
        assert!(one == run(2) && one == run(5), "{options}");
    }
}

#[test]
fn a_sequence_has_the_same_result_alone() {
    let at = Workplace::new();
    at.simulate("--vocabulary 300 --memory 3 --length 30 --sequences 5 --truth none");
    at.run("discover process/events.jsonl --model process --out all.jsonl -q");
    at.run("discover process/events.jsonl --model process --out one.jsonl -q --case s3");
    assert_eq!(at.read("all.jsonl").lines().nth(3), at.read("one.jsonl").lines().next());
    assert_eq!(at.read("one.jsonl").lines().count(), 1);
}

#[test]
fn results_have_the_documented_shape() {
    let at = Workplace::new();
    at.write(
        "log.jsonl",
        "{\"id\": \"v1\", \"events\": [\"A\", \"B\", \"A\", \"B\", \"C\"], \"times\": [0, 1, 1, 2, 2.5]}\n\
         {\"id\": 2, \"events\": [\"A\", \"B\", \"A\", \"B\"]}\n\n{\"id\": \"short\", \"events\": [\"A\"]}\n",
    );
    at.run("train --backbone ngram log.jsonl --out model --order 2 -q");
    at.run("discover log.jsonl --model model --out r.jsonl --threshold 0.0001 --seed 3 --all-pairs -q");
    let results = lines(&at.read("r.jsonl"));
    assert_eq!(results.len(), 2);
    let first = &results[0];
    assert_eq!(first["schema"], "trace.result/2");
    assert_eq!(first["id"], "v1");
    assert_eq!(results[1]["id"], "2");
    let settings = serde_json::json!({
        "intervention": "atomic", "proposal": "plausible", "divergence": "event", "history": "observed",
        "particles": "auto", "memory": 1, "context": 0, "threshold": 0.0001, "threshold_rule": "fixed", "seed": 3
    });
    assert_eq!(first["settings"], settings);
    assert_eq!(first["events"], serde_json::json!(["A", "B", "A", "B", "C"]));
    assert_eq!(first["times"], serde_json::json!([0.0, 1.0, 1.0, 2.0, 2.5]));
    assert_eq!(first["model"]["backbone"], "ngram");
    assert!(first["model"]["held_out_loss"].is_f64() && first["model"]["epsilon_hat"].is_null());
    let edges = first["edges"].as_array().unwrap();
    assert_eq!(edges.len(), 4);
    for key in [
        "strength",
        "std_error",
        "particles",
        "log_ratio",
        "probability",
        "probability_replaced",
        "overlap",
        "hidden_cause_ratio",
    ] {
        assert!(edges[0][key].is_number(), "{key}");
    }
    assert_eq!((&edges[0]["cause"], &edges[0]["effect"], &edges[0]["lag"]), (&0.into(), &1.into(), &1.into()));
    assert_eq!(
        edges.iter().map(|edge| edge["tied"].as_bool().unwrap()).collect::<Vec<_>>(),
        [false, true, false, false]
    );
    for edge in edges {
        assert_eq!(edge["kept"], edge["verdict"] == "promotes" || edge["verdict"] == "inhibits", "{edge}");
    }
    assert_eq!(first["options"], serde_json::json!({"all_pairs": true, "self_loops": false}));
    let kept = edges.iter().filter(|edge| edge["kept"] == true).count() as u64;
    let summary = first["summary"].as_array().unwrap();
    assert_eq!(summary.iter().map(|edge| edge["count"].as_u64().unwrap()).sum::<u64>(), kept);

    // With a threshold that nothing passes, --all-pairs keeps the pairs and marks them.
    at.run("discover log.jsonl --model model --out r.jsonl --threshold 9 --all-pairs -q");
    let results = lines(&at.read("r.jsonl"));
    assert_eq!(results[0]["edges"].as_array().unwrap().len(), 4);
    assert!(results[0]["edges"].as_array().unwrap().iter().all(|edge| edge["kept"] == false));
    assert_eq!(results[0]["summary"], serde_json::json!([]));
}

#[test]
fn populations_by_either_way_agree() {
    let at = Workplace::new();
    at.simulate("--vocabulary 150 --memory 2 --length 30 --sequences 8 --redundancy 0.8 --truth none");
    at.run("discover process/events.jsonl --model process --out r.jsonl --population direct.json --all-pairs -q");
    at.run("aggregate r.jsonl --out merged.json -q");
    let log = at.read("process/events.jsonl");
    let (head, tail) = log.split_at(log.match_indices('\n').nth(2).unwrap().0 + 1);
    at.write("head.jsonl", head);
    at.write("tail.jsonl", tail);
    at.run("discover head.jsonl --model process --out a.jsonl --population a.json -q");
    at.run("discover tail.jsonl --model process --out b.jsonl --all-pairs -q");
    at.run("aggregate b.jsonl a.json --out parts.json -q");
    let direct = json(&at.read("direct.json"));
    assert_eq!(direct["schema"], "trace.population/2");
    assert_eq!(direct["sequences"], 8);
    let pairs = direct["edges"].as_array().unwrap();
    assert!(pairs.len() > 200);
    let places: u64 = pairs.iter().map(|pair| pair["places"].as_u64().unwrap()).sum();
    assert_eq!(places, 8 * (29 + 28), "every tested pair is a place");
    for name in ["merged.json", "parts.json"] {
        let other = json(&at.read(name));
        assert_eq!(other["sequences"], 8);
        assert_eq!(other["edges"].as_array().unwrap().len(), pairs.len());
        for pair in pairs {
            let same = other["edges"]
                .as_array()
                .unwrap()
                .iter()
                .find(|edge| edge["cause"] == pair["cause"] && edge["effect"] == pair["effect"])
                .unwrap();
            for key in
                ["mean_strength", "strength_spread", "mean_log_ratio", "log_ratio_spread", "score", "unsigned_score"]
            {
                let (a, b) = (pair[key].as_f64().unwrap(), same[key].as_f64().unwrap());
                assert!((a - b).abs() < 1e-9, "{name} {key}: {a} {b}");
            }
            for key in ["sequences", "places", "opportunities", "kept_count", "lags"] {
                assert_eq!(pair[key], same[key], "{name} {key}");
            }
        }
    }
    let kept: u64 = pairs.iter().map(|pair| pair["kept_count"].as_u64().unwrap()).sum();
    let edges: usize = lines(&at.read("a.jsonl")).iter().map(|line| line["edges"].as_array().unwrap().len()).sum();
    assert!(edges > 0 && kept > edges as u64);
}

#[test]
fn a_population_is_scored_against_type_pairs() {
    let at = Workplace::new();
    let text: String = (0..40).map(|i| if i % 2 == 0 { "A B C D\n" } else { "N Q D C\n" }).collect();
    at.write("log.txt", text);
    at.run("train --backbone ngram log.txt --out model --order 2 -q");
    at.run("discover log.txt --model model --out r.jsonl --population p.json -q");
    at.write("truth.csv", "cause,effect\nA,B\nX,Y\n");
    let scores = json(&at.run("evaluate p.json --truth truth.csv --json"));
    assert_eq!(scores["population"]["recall"], 1.0);
    assert_eq!(scores["true_edges_outside_tested_pairs"], 1);
    assert!(scores["population"]["average_precision"].is_number());
    assert!(at.run("evaluate p.json --truth truth.csv").contains("1 true pairs never had an opportunity"));
}

#[test]
fn the_fit_is_compared_with_the_process() {
    let at = Workplace::new();
    at.simulate("--vocabulary 30 --memory 1 --length 40 --sequences 200 --redundancy 0.5 --truth none");
    at.run("train --backbone ngram process/events.jsonl --out model --process process -q");
    let info = json(&at.run("model info model --json"));
    let epsilon = info["epsilon_hat"].as_f64().unwrap();
    assert!(epsilon > 0.0 && epsilon < 0.3, "{info}");
    assert_eq!(info["vacuous"], true);
    assert_eq!(info["reach"], 1);
    let bound = info["noise_floor"].as_f64().unwrap();
    assert!((info["identifiability_margin"].as_f64().unwrap() - 2.0 * bound).abs() < 1e-12);
    assert!(at.run("model info model").contains("vacuous"));
    let process = json(&at.run("model info process --json"));
    assert!((process["redundancy"].as_f64().unwrap() - 0.5).abs() < 0.03, "{process}");
    assert_eq!(process["epsilon"], 0.0);
    // And results carry it.
    at.run("discover process/events.jsonl --model model --out r.jsonl -q --case s0");
    assert_eq!(lines(&at.read("r.jsonl"))[0]["model"]["bound"]["noise_floor"], info["noise_floor"]);
}

#[test]
fn unknown_events_can_be_left_out() {
    let at = Workplace::new();
    at.write("log.txt", "A B C A B C\nB C A B C A\n");
    at.run("train --backbone ngram log.txt --out model -q");
    at.write("new.txt", "A X B C Y A\n");
    assert!(
        at.refuse("discover new.txt --model model --out r.jsonl")
            .contains("new.txt: line 1: event \"X\" at position 1")
    );
    let output = at.try_run("discover new.txt --model model --out r.jsonl --unknown skip");
    assert!(output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("2 events the model does not know were left out"));
    let result = &lines(&at.read("r.jsonl"))[0];
    assert_eq!(result["events"], serde_json::json!(["A", "B", "C", "A"]));
    assert_eq!(result["skipped"], serde_json::json!([1, 4]));
    // A truth counts positions as the log does: 2 → 3 is B → C, which is 1 → 2 in the result.
    at.write("truth.jsonl", r#"{"id": 1, "edges": [{"cause": 2, "effect": 3}, {"cause": 3, "effect": 4}]}"#);
    at.run("discover new.txt --model model --out r.jsonl --unknown skip -q --memory 1 --all-pairs --threshold 0");
    let scores = json(&at.run("evaluate r.jsonl --truth truth.jsonl --json"));
    assert_eq!((&scores["positions"]["recall"], &scores["true_edges_outside_tested_pairs"]), (&1.0.into(), &1.into()));
}

#[test]
fn standard_input_is_a_log_too() {
    let at = Workplace::new();
    at.write("log.txt", "A B C A B C\nB C A B C A\n");
    let run = |words: &str, file: &str| {
        let input = std::fs::File::open(at.path(file)).unwrap();
        let output = at.command(words).stdin(input).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run("train --backbone ngram - --out model -q", "log.txt");
    run("discover - --model model --out r.jsonl -q", "log.txt");
    at.run("discover log.txt --model model --out s.jsonl -q");
    assert_eq!(at.read("r.jsonl"), at.read("s.jsonl"));
}

#[test]
fn a_threshold_can_be_moved_later() {
    let at = Workplace::new();
    at.simulate("--vocabulary 200 --memory 2 --length 20 --sequences 4");
    let discover =
        |options: &str| at.run(&format!("discover process/events.jsonl --model process -q --particles 64 {options}"));
    discover("--out low.jsonl --all-pairs");
    discover("--out high.jsonl --all-pairs --threshold 0.5");
    for command in ["export --to csv", "export --to csv --graph summary", "evaluate --truth process/truth.jsonl"] {
        let (verb, options) = command.split_once(' ').unwrap();
        let moved = at.run(&format!("{verb} low.jsonl {options} --threshold 0.5"));
        let mut lines = moved.lines().collect::<Vec<_>>();
        let made = at.run(&format!("{verb} high.jsonl {options}"));
        let mut expected = made.lines().collect::<Vec<_>>();
        lines.sort_unstable(); // summaries may list types in another order
        expected.sort_unstable();
        assert_eq!(lines, expected);
        assert_ne!(moved, at.run(&format!("{verb} low.jsonl {options}")));
    }
}

/// A pipe can be read only once, so that looking what is in it would lose its beginning.
#[test]
#[cfg(unix)]
fn results_can_come_through_a_pipe() {
    let at = Workplace::new();
    at.simulate("--vocabulary 150 --memory 2 --length 30 --sequences 6");
    at.run("discover process/events.jsonl --model process --out r.jsonl --all-pairs -q");
    let results = at.read("r.jsonl");
    assert!(results.len() > 100_000, "longer than what a look would take");
    for input in ["-", "/dev/stdin"] {
        for (piped, plain) in [
            (format!("evaluate {input} --truth process/truth.jsonl"), "evaluate r.jsonl --truth process/truth.jsonl"),
            (format!("export {input} --to csv"), "export r.jsonl --to csv"),
        ] {
            let mut child = at
                .command(&piped)
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), results.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{piped}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), at.run(plain), "{piped}");
        }
    }
}

#[test]
fn truths_name_how_they_were_measured() {
    let at = Workplace::new();
    at.simulate("--vocabulary 50 --memory 2 --length 12 --sequences 2 --truth full --truth-draws 10");
    let truth = lines(&at.read("process/truth.jsonl"));
    assert_eq!((&truth[0]["divergence"], &truth[0]["draws"]), (&"full".into(), &10.into()));
    at.run("discover process/events.jsonl --model process --out r.jsonl -q --divergence full");
    let table = at.run("evaluate r.jsonl --truth process/truth.jsonl");
    assert!(table.contains("truth: full, draws 10, above 0.05 nats"), "{table}");
    at.simulate("--vocabulary 50 --memory 2 --length 12 --sequences 2 --truth none");
    assert!(!at.path("process/truth.jsonl").exists());
}

#[test]
fn true_edges_outside_the_tested_pairs_are_counted() {
    let at = Workplace::new();
    at.simulate("--vocabulary 60 --memory 3 --length 20 --sequences 3 --redundancy 0.7");
    at.run("discover process/events.jsonl --model process --out r.jsonl -q --memory 1 --context 5");
    let scores = json(&at.run("evaluate r.jsonl --truth process/truth.jsonl --json"));
    assert!(scores["true_edges_outside_tested_pairs"].as_u64().unwrap() > 0);
    assert_eq!(scores["positions"]["recall"], 1.0);
    assert!(scores["positions"]["auroc"].is_null(), "only kept edges are in the file");
    assert_eq!(scores["positions"]["by_lag"].as_object().unwrap().len(), 1);
}

#[test]
fn the_demo_tells_its_story_and_keeps_what_it_made() {
    let at = Workplace::new();
    let story = at.run("demo --out kept --vehicles 6000 -q");
    assert!(story.contains("positions") && story.contains("Chains back to the roots"), "{story}");
    assert!(at.read("kept/report.html").contains("A simulated vehicle fleet"));
    // The commands that it shows make the same again.
    at.run("discover kept/asked/events.jsonl --model kept/model --memory 6 --all-pairs --out r.jsonl -q");
    assert!(at.read("r.jsonl") == at.read("kept/results.jsonl"));
    // It replaces its own folder, and nobody else's.
    let again = at.run("demo --out kept --vehicles 100 -q");
    assert_ne!(story, again);
    std::fs::create_dir(at.path("mine")).unwrap();
    at.write("mine/thesis.txt", "precious");
    assert!(at.refuse("demo --out mine").contains("expected a new or empty folder"));
    assert_eq!(at.read("mine/thesis.txt"), "precious");
}

/// Every example of every `--help`, run as it stands, each command's in a folder of its own.
#[test]
fn the_examples_in_the_help_work() {
    for command in [
        "simulate scm",
        "simulate fleet",
        "train",
        "discover",
        "explain",
        "report",
        "aggregate",
        "compare",
        "evaluate",
        "export",
        "model info",
    ] {
        let at = Workplace::new();
        let help = at.run(&format!("{command} --help"));
        let example = help.split("Example:\n").nth(1).unwrap_or_else(|| panic!("{command} has no example"));
        let mut count = 0;
        for line in example.lines().map(str::trim).filter(|line| !line.is_empty()) {
            at.run(&format!("{} -q", line.strip_prefix("trace ").unwrap_or_else(|| panic!("{line}"))));
            count += 1;
        }
        assert!(count > 0);
    }
}
