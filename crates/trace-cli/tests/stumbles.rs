//! What new users stumbled over, and must not again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use std::process::Stdio;

use support::{Workplace, json};

fn workplace() -> Workplace {
    let at = Workplace::new();
    at.write("log.txt", "A B C\nB A C C\nC A B\n".repeat(10));
    at.run("train --backbone ngram log.txt --out model --order 2 -q");
    at.run("train --backbone ngram log.txt --out other --order 1 -q");
    at.run("discover log.txt --model model --out r.jsonl --all-pairs --population p.json -q");
    at
}

/// Commands that print.
const PRINTING: [&str; 9] = [
    "log info log.txt",
    "log info log.txt --json",
    "model info model",
    "model info model --json",
    "explain log.txt --model model --case 1 --at 2",
    "explain log.txt --model model --case 1 --at 2 --json",
    "export r.jsonl --to csv",
    "export p.json --to json",
    "--help",
];

#[test]
#[cfg(unix)]
fn a_reader_that_has_seen_enough_is_no_error() {
    let at = workplace();
    for words in PRINTING {
        // The reader is gone before anything is written.
        let mut reader = std::process::Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
        let pipe = reader.stdin.take().unwrap();
        reader.wait().unwrap();
        let output = at.command(words).stdout(Stdio::from(pipe)).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !said.contains("error") && !said.contains("panicked"), "{words}: {said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_and_no_panic() {
    let at = workplace();
    for words in PRINTING {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = at.command(words).stdout(Stdio::from(full)).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert!(said.contains("No space left") && !said.contains("panicked"), "{words}: {said}");
    }
    // And standard error may be full or closed too.
    for words in ["discover log.txt --model model --out again.jsonl", "train --backbone ngram log.txt --out again"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert!(at.command(words).stderr(Stdio::from(full)).status().unwrap().success(), "{words}");
    }
}

#[test]
fn a_page_is_of_one_model_and_one_log() {
    let at = workplace();
    at.run("discover log.txt --model other --out o.jsonl --all-pairs --population o.json -q");
    assert!(
        at.refuse("report r.jsonl --population o.json --out x.html").contains("o.json: was made with another model")
    );
    at.write("elsewhere.txt", "A B\nB A\nA B A\n".repeat(10));
    at.run("discover elsewhere.txt --model model --out e.jsonl --all-pairs --population e.json -q");
    let said = at.refuse("report r.jsonl --population e.json --out x.html");
    assert!(said.contains("e.json: is of another log than the results"), "{said}");
    let renamed = at.read("o.jsonl").replace("\"id\":\"", "\"id\":\"other-");
    at.write("mixed.jsonl", at.read("r.jsonl") + &renamed);
    let said = at.refuse("report mixed.jsonl --out x.html");
    assert!(said.contains("mixed.jsonl: line 31: was made with another model than the lines before it"), "{said}");
    // A population of more sequences than the results is fine, as of results of one shard.
    let some: Vec<String> = at.read("r.jsonl").lines().take(5).map(|line| line.to_owned() + "\n").collect();
    at.write("some.jsonl", some.concat());
    at.run("report some.jsonl --population p.json --out x.html -q");
}

#[test]
#[cfg(unix)]
fn two_runs_do_not_write_one_population() {
    let at = Workplace::new();
    at.run("simulate scm --vocabulary 300 --memory 4 --length 120 --sequences 400 --truth none --out process -q");
    let slow = "discover process/events.jsonl --model process --memory 4 --particles 200 --population p.json -q";
    let mut first = at.command(&format!("{slow} --out a.jsonl")).spawn().unwrap();
    let lock = at.path("p.json.lock");
    for _ in 0..600 {
        if lock.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let second = at.try_run(&format!("{slow} --out b.jsonl"));
    first.kill().unwrap();
    first.wait().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains("p.json: another run is writing it"), "{said}");
}

#[test]
fn too_little_to_measure_a_fit_on_is_said() {
    let at = Workplace::new();
    at.write("four.txt", "A B\nB A\n");
    let said = |words: &str| String::from_utf8(at.try_run(words).stderr).unwrap();
    for backbone in ["ngram", "gru --steps 2"] {
        let few = said(&format!("train four.txt --backbone {backbone} --out model"));
        assert!(few.contains("warning: only 2 events of 1 sequences are held out"), "{few}");
    }
    at.write("one.txt", "A B C A B C A B ".repeat(20) + "\n");
    for backbone in ["ngram", "gru --steps 2"] {
        let one = said(&format!("train one.txt --backbone {backbone} --out model"));
        assert!(one.contains("the log is one sequence of 160 events") && one.contains("--max-length"), "{one}");
        let cut = said(&format!("train one.txt --max-length 20 --backbone {backbone} --out model"));
        assert!(!cut.contains("one sequence") && cut.contains("held-out loss"), "{cut}");
    }
}

#[test]
fn an_unknown_type_points_at_the_flag_that_helps() {
    let at = workplace();
    at.write("new.txt", "A B Z\n");
    let said = at.refuse("discover new.txt --model model --out x.jsonl");
    assert!(said.contains("--unknown skip"), "{said}");
    at.write("times.csv", "case,event,time\na,A,2024-05-01\na,B,?\na,C,NaT\n");
    let said = at.refuse("log info times.csv");
    assert!(said.contains("--bad-rows skip"), "{said}");
    at.write("log.db", "SQLite format 3\0and so on");
    assert!(at.refuse("log info log.db").contains("log.db: is a SQLite database; expected an event log"));
}

#[test]
fn explanations_have_dates_and_names_that_differ() {
    let at = Workplace::new();
    let long = |n: u32| format!("Sensor reading of the northern hall number {n} exceeded the limit that was set");
    let mut log = String::from("case,event,time\n");
    for case in 0..40 {
        for (step, n) in [1, 2, 3].into_iter().enumerate() {
            log += &format!("c{case},{},2024-05-31 17:3{step}:00\n", long(n));
        }
    }
    at.write("log.csv", log);
    at.run("train log.csv --backbone ngram --order 2 --out model -q");
    let told = at.run("explain log.csv --model model --case c3 --at 2 --threshold 0 -q");
    assert!(told.contains("2024-05-31") && !told.contains("1717"), "{told}");
    assert!(told.contains("number 3") && told.contains("number 2"), "{told}");
    let data = json(&at.run("explain log.csv --model model --case c3 --at 2 --threshold 0 --json -q"));
    assert!(data["time"].is_number());
}
