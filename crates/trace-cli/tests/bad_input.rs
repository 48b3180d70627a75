//! Everything a user can get wrong: code 2, a message that names the place, nothing left behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use support::Workplace;

/// A folder with a small model and a good log.
fn workplace() -> Workplace {
    let at = Workplace::new();
    at.write("good.jsonl", "{\"id\": \"a\", \"events\": [\"A\", \"B\", \"C\", \"A\", \"B\"]}\n{\"id\": \"b\", \"events\": [\"B\", \"C\", \"A\"]}\n");
    at.run("train --backbone ngram good.jsonl --out model -q");
    at
}

#[test]
fn logs() {
    let at = workplace();
    let cases: [(&str, &[u8], &str); 20] = [
        ("empty.jsonl", b"", "empty.jsonl: holds no sequence"),
        ("blank.txt", b"\n  \n\r\n", "blank.txt: holds no sequence"),
        (
            "twice.jsonl",
            b"{\"id\":\"a\",\"events\":[\"A\",\"B\"]}\n\n{\"id\":\"a\",\"events\":[\"B\",\"A\"]}\n",
            "twice.jsonl: line 3: id \"a\" occurs twice; it stands on line 1 already",
        ),
        (
            "unknown.jsonl",
            b"{\"id\":\"a\",\"events\":[\"A\",\"Z\"]}",
            "unknown.jsonl: line 1: event \"Z\" at position 1 of sequence \"a\" is not among the 3 types",
        ),
        (
            "short.txt",
            b"A\nB\n",
            "short.txt: no sequence is long enough to test: the longest has 1 events, at least 2 are needed",
        ),
        (
            "cut.jsonl",
            b"{\"id\":\"a\",\"events\":[\"A\",\"B\"]}\n{\"id\":\"b\",\"eve",
            "cut.jsonl: line 2: expected a sequence",
        ),
        ("array.jsonl", b"[1,2]\n", "array.jsonl: is one JSON document; expected JSON Lines"),
        ("number.jsonl", b"{\"id\":\"a\",\"events\":[1.5]}\n", "a whole number, 0 or more"),
        ("negative.jsonl", b"{\"id\":\"a\",\"events\":[-1]}\n", "a whole number, 0 or more"),
        ("null.jsonl", b"{\"id\":\"a\",\"events\":[null]}\n", "text or a whole number"),
        ("missing.jsonl", b"{\"id\":\"a\"}\n", "missing field `events`"),
        (
            "times.jsonl",
            b"{\"id\":\"a\",\"events\":[\"A\",\"B\"],\"times\":[1]}\n",
            "times.jsonl: line 1: 1 times for 2 events",
        ),
        (
            "order.jsonl",
            b"{\"id\":\"a\",\"events\":[\"A\",\"B\"],\"times\":[2,1]}\n",
            "must not decrease, but position 1 has 1 after 2",
        ),
        ("nan.jsonl", b"{\"id\":\"a\",\"events\":[\"A\",\"B\"],\"times\":[1,NaN]}\n", "nan.jsonl: line 1"),
        ("bytes.txt", b"A B\nA \xff B\n", "bytes.txt: line 2: not UTF-8 text from byte 3 on"),
        ("zeros.txt", &[0; 64], "zeros.txt: line 1: event"),
        ("table.csv", b"case,event\na,A\na\n", "table.csv: line 3: 1 fields, but the header has 2"),
        ("deep.jsonl", &[b'['; 5000], "deep.jsonl: is one JSON document"),
        (
            "nanoseconds.jsonl",
            b"{\"id\":\"a\",\"events\":[\"A\",\"B\"],\"times\":[1,1700000000123456789]}\n",
            "is too large to be exact",
        ),
        ("huge.jsonl", b"{\"id\":\"a\",\"events\":[\"A\",\"B\"],\"times\":[1,1e999]}\n", "huge.jsonl: line 1"),
    ];
    for (name, text, expected) in cases {
        at.write(name, text);
        let said = at.refuse(&format!("discover {name} --model model --out r.jsonl --population p.json"));
        assert!(said.contains(expected), "{name}: {said}");
    }
    for name in ["empty.jsonl", "twice.jsonl", "cut.jsonl", "bytes.txt"] {
        assert!(at.refuse(&format!("train --backbone ngram {name} --out other")).contains(name));
    }
    assert!(at.refuse("discover nowhere.jsonl --model model --out r.jsonl").contains("nowhere.jsonl"));
    assert!(at.refuse("discover model --model model --out r.jsonl").contains("is a folder; expected a file"));
    at.write("one.txt", "A A A\n");
    assert!(at.refuse("train --backbone ngram one.txt --out other").contains("one.txt: events: only 1 type"));
}

#[test]
fn options() {
    let at = workplace();
    let discover = [
        ("--particles 0", "--particles: 0 is out of range"),
        ("--particles 1", "particles: 1 is out of range"),
        ("--particles -5", "--particles"),
        ("--particles 99999999999999999999", "--particles"),
        ("--particles 4000000000", "particles: 4000000000 is out of range"),
        ("--particles many", "expected auto, all or a whole number"),
        ("--particles all --intervention staircase", "particles: all goes with intervention atomic"),
        ("--memory 0", "memory: 0 lags leave nothing to test"),
        ("--memory -1", "--memory"),
        ("--memory NaN", "expected all or a whole number"),
        ("--threshold NaN", "threshold: NaN is not a strength"),
        ("--threshold -0.5", "threshold: -0.5 is not a strength"),
        ("--threshold inf", "threshold: inf is not a strength"),
        ("--threshold low", "expected a number of nats, scaling-law or bound"),
        ("--threshold bound", "threshold: bound needs the entropy"),
        ("--context 99999999", "no sequence is long enough"),
        ("--context 18446744073709551615", "no sequence is long enough"),
        ("--context -2", "--context"),
        ("--history sampled", "--history: sampled needs a context"),
        ("--threads 0", "--threads: 0 is out of range"),
        ("--threads 99999999", "--threads: 99999999 is out of range"),
        ("--seed -1", "--seed"),
        ("--proposal gaussian", "--proposal"),
        ("--case nobody", "--case: good.jsonl has no sequence \"nobody\""),
        ("--population r.jsonl", "--population: expected another file than that of the results"),
        ("--population model", "model: is a folder"),
        ("--population r.jsonl.partial", "--population: expected another file than that of the results"),
        ("--population model/p.json", "would be written into the model"),
        ("--out -", "standard output cannot be replaced"),
        ("--out /dev/full", "is not an ordinary file"),
        ("--frobnicate", "--frobnicate"),
    ];
    for (options, expected) in discover {
        let out = if options.contains("--out") { "" } else { "--out r.jsonl" };
        let said = at.refuse(&format!("discover good.jsonl --model model {out} {options}"));
        assert!(said.contains(expected), "{options}: {said}");
    }
    assert!(at.refuse("discover good.jsonl --model model --out good.jsonl").contains("would be written over the log"));
    assert!(at.refuse("discover good.jsonl --model model --out no/such/folder/r.jsonl").contains("no/such/folder"));
    assert!(at.refuse("discover good.jsonl --model model").contains("--out"));
    let said = at.refuse("discover good.jsonl --model model --out r.jsonl --population no/such/p.json");
    assert!(said.contains("no/such/p.json"), "{said}");

    let simulate = [
        ("--vocabulary 1", "vocabulary: 1 is out of range"),
        ("--vocabulary 99999999999", "vocabulary: 99999999999 is out of range"),
        ("--memory 0", "memory: 0 is out of range"),
        ("--redundancy 1.5", "redundancy: 1.5 is out of range"),
        ("--redundancy -0.5", "redundancy: -0.5 is out of range"),
        ("--redundancy NaN", "redundancy: NaN is out of range"),
        ("--redundancy 0.001 --vocabulary 50", "redundancy: 0.001 is out of reach"),
        ("--decay -1", "decay: -1 is out of range"),
        ("--decay inf", "decay: inf is out of range"),
        ("--length 0", "expected at least 1"),
        ("--sequences 0", "expected at least 1"),
        ("--sequences 99999999999999 --length 1000", "expected at most"),
        ("--sequences 1 --length 9000000000", "--length: 9000000000 is out of range"),
        ("--truth-draws 0", "--truth-draws: 0 is out of range"),
        ("--truth-draws few", "expected all or a whole number"),
        ("--truth maybe", "--truth"),
    ];
    for (options, expected) in simulate {
        let said = at.refuse(&format!("simulate scm --out process {options}"));
        assert!(said.contains(expected), "{options}: {said}");
    }
    for (options, expected) in [
        ("--order 0", "order: 0 is out of range"),
        ("--order 1000", "order: 1000 is out of range"),
        ("--held-out 1.5", "held-out: 1.5 is not a share"),
        ("--held-out NaN", "held-out: NaN is not a share"),
        ("--held-out -1", "held-out: -1 is not a share"),
        ("--process nowhere", "nowhere"),
        ("--backbone lstm", "--backbone"),
    ] {
        let said = at.refuse(&format!("train --backbone ngram good.jsonl --out other {options}"));
        assert!(said.contains(expected), "{options}: {said}");
    }
}

#[test]
fn folders_that_are_not_ours_are_left_alone() {
    let at = workplace();
    std::fs::create_dir(at.path("photos")).unwrap();
    at.write("photos/cat.jpg", "meow");
    for command in ["train --backbone ngram good.jsonl --out photos", "simulate scm --out photos"] {
        assert!(at.refuse(command).contains("photos: holds cat.jpg, which is not part of a model"));
    }
    assert!(at.refuse("demo --out photos").contains("expected a new or empty folder"));
    assert!(at.refuse("train --backbone ngram good.jsonl --out good.jsonl").contains("is a file"));
    // Nor is a model folder with something else in it, or with the log itself.
    at.simulate("--vocabulary 60 --memory 1 --length 8 --sequences 2 --redundancy 0.4 --truth none");
    at.write("process/results.jsonl", "hours of work");
    assert!(at.refuse("simulate scm --out process").contains("holds results.jsonl"));
    std::fs::remove_file(at.path("process/results.jsonl")).unwrap();
    assert!(at.refuse("train --backbone ngram process/events.jsonl --out process").contains("process: holds the log"));
    // A model folder may be replaced.
    at.run("train --backbone ngram good.jsonl --out model -q --order 1");
    assert!(at.run("model info model").contains("ngram"));
}

#[test]
#[cfg(unix)]
fn links_are_followed_and_stay_links() {
    let at = workplace();
    std::fs::create_dir(at.path("store")).unwrap();
    for name in ["r.jsonl", "p.json", "x.csv"] {
        at.write(&format!("store/{name}"), "old");
        std::os::unix::fs::symlink(at.path(&format!("store/{name}")), at.path(name)).unwrap();
    }
    at.run("discover good.jsonl --model model --out r.jsonl --population p.json -q");
    at.run("export r.jsonl --to csv --out x.csv");
    for name in ["r.jsonl", "p.json", "x.csv"] {
        assert!(at.path(name).is_symlink() && at.read(&format!("store/{name}")) != "old");
    }
    std::os::unix::fs::symlink(at.path("model"), at.path("link")).unwrap();
    at.run("train --backbone ngram good.jsonl --out link -q --order 1");
    assert!(at.path("link").is_symlink() && at.run("model info model").contains("largest lag it can see     0"));
    std::os::unix::fs::symlink(at.path("nowhere"), at.path("dangling")).unwrap();
    assert!(at.refuse("discover good.jsonl --model model --out dangling").contains("a link to nowhere"));
    // A folder by a roundabout name is replaced all the same, and the one we are in is not.
    at.run("train --backbone ngram good.jsonl --out model/../model -q --order 2");
    assert!(at.run("model info model").contains("largest lag it can see     1"));
    assert!(at.refuse("train --backbone ngram good.jsonl --out .").contains("is the folder you are in"));
}

#[test]
fn results_and_truths() {
    let at = workplace();
    at.run("discover good.jsonl --model model --out r.jsonl --all-pairs --population p.json -q");
    at.run("discover good.jsonl --model model --out kept.jsonl -q");
    at.run("discover good.jsonl --model model --out other.jsonl --all-pairs --threshold 0.1 -q");
    let results = at.read("r.jsonl");
    at.write("cut.jsonl", &results[..results.len() - 40]);
    at.write("empty.jsonl", "");
    at.write("twice.jsonl", results.clone() + &results);
    at.write("old.jsonl", results.replace("trace.result/2", "trace.result/0"));
    at.write("wild.jsonl", results.replacen("\"effect\":1,", "\"effect\":77,", 1));
    at.write("cut.json", &at.read("p.json")[..300]);
    at.write("old.json", at.read("p.json").replace("trace.population/2", "trace.population/0"));
    for (files, expected) in [
        ("cut.jsonl", "cut.jsonl: line 2: expected a result as JSON"),
        ("r.jsonl cut.jsonl", "cut.jsonl: line 2: expected a result as JSON"),
        ("empty.jsonl", "empty.jsonl: holds no result"),
        ("twice.jsonl", "twice.jsonl: line 3: id \"a\" occurs twice"),
        ("old.jsonl", "old.jsonl: line 1: expected schema \"trace.result/2\", found \"trace.result/0\""),
        ("wild.jsonl", "wild.jsonl: line 1: edge 0 → 77"),
        ("kept.jsonl", "kept.jsonl: line 1: holds only the edges that were kept"),
        (
            "r.jsonl other.jsonl",
            "other.jsonl: line 1: made with other settings than r.jsonl: line 1, so the two cannot be merged: threshold is 0.1 instead of 0.05",
        ),
        ("p.json other.jsonl", "threshold is 0.1 instead of 0.05"),
        ("cut.json", "cut.json: expected a population graph as JSON"),
        ("old.json", "old.json: expected schema"),
        ("good.jsonl", "good.jsonl: line 1: expected a result as JSON: missing field `schema`"),
        ("nowhere.jsonl", "nowhere.jsonl"),
        ("r.jsonl ./r.jsonl", "./r.jsonl: given twice"),
        ("r.jsonl --out ./r.jsonl", "./r.jsonl: is read from, and would be written over"),
        ("r.jsonl --out /dev/full", "is not an ordinary file"),
    ] {
        let out = if files.contains("--out") { "" } else { "--out out.json" };
        let said = at.refuse(&format!("aggregate {files} {out}"));
        assert!(said.contains(expected), "{files}: {said}");
    }
    assert!(at.refuse("aggregate --out out.json").contains("FILE"));

    at.write("truth.jsonl", "{\"id\":\"a\",\"edges\":[{\"cause\":0,\"effect\":1}]}\n");
    at.write("backwards.jsonl", "{\"id\":\"a\",\"edges\":[{\"cause\":1,\"effect\":0}]}\n");
    at.write("far.jsonl", "{\"id\":\"a\",\"edges\":[{\"cause\":0,\"effect\":50}]}\n{\"id\":\"b\",\"edges\":[]}\n");
    at.write("near.jsonl", "{\"id\":\"a\",\"edges\":[]}\n{\"id\":\"b\",\"edges\":[]}\n");
    at.write("pairs.csv", "from,to\nA,B\n");
    for (arguments, expected) in [
        ("r.jsonl --truth truth.jsonl", "r.jsonl: line 2: no truth for sequence \"b\" in truth.jsonl"),
        ("r.jsonl --truth backwards.jsonl", "backwards.jsonl: line 1: the cause at 1 does not come before"),
        ("r.jsonl --truth far.jsonl", "has an effect at 50 of 5 events"),
        ("r.jsonl --truth empty.jsonl", "empty.jsonl: holds no truth"),
        ("cut.jsonl --truth near.jsonl", "cut.jsonl: line 2: expected a result as JSON"),
        ("p.json --truth truth.jsonl", "expected a .csv file"),
        ("p.json --truth pairs.csv", "expected a header with cause and effect"),
    ] {
        let said = at.refuse(&format!("evaluate {arguments}"));
        assert!(said.contains(expected), "{arguments}: {said}");
    }
    for (arguments, expected) in [
        ("cut.jsonl --to csv --out x.csv", "cut.jsonl: line 2"),
        ("r.jsonl --to csv --case z", "--case: r.jsonl has no sequence \"z\""),
        ("p.json --to csv --case a", "a population graph has no single sequences"),
        ("p.json --to csv --graph sample", "--graph: a population graph is one graph"),
        ("r.jsonl --to csv --out r.jsonl", "is read from, and would be written over"),
        ("kept.jsonl --to csv --threshold 0.1", "kept.jsonl: line 1: holds only the edges that were kept"),
        ("r.jsonl --to csv --threshold NaN", "--threshold: NaN is not a strength"),
        ("r.jsonl --to pdf", "--to"),
    ] {
        let said = at.refuse(&format!("export {arguments}"));
        assert!(said.contains(expected), "{arguments}: {said}");
    }
}

#[test]
fn models() {
    let at = workplace();
    assert!(at.refuse("discover good.jsonl --model nowhere --out r.jsonl").contains("nowhere: not a model folder"));
    assert!(at.refuse("model info good.jsonl").contains("not a model folder"));
    at.write("model/config.json", "{\"model_type\": \"mystery\"}");
    assert!(at.refuse("model info model").contains("found \"mystery\""));
    at.simulate("--vocabulary 60 --memory 1 --length 8 --sequences 2 --redundancy 0.4 --truth none");
    let path = at.path("process/model.safetensors");
    let mut weights = std::fs::read(&path).unwrap();
    let header = u64::from_le_bytes(weights[..8].try_into().unwrap()) as usize;
    let tensors: serde_json::Value = serde_json::from_slice(&weights[8..8 + header]).unwrap();
    let start = 8 + header + tensors["bias"]["data_offsets"][0].as_u64().unwrap() as usize;
    weights[start..start + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&path, weights).unwrap();
    let said = at.refuse("discover process/events.jsonl --model process --out r.jsonl");
    assert!(said.contains("model.safetensors: tensor bias: NaN or infinity at element 0"), "{said}");
}
