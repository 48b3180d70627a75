//! Runs that are stopped: every finished sequence is kept, and a resumed run ends as if nothing had happened.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::Workplace;

const DISCOVER: &str = "discover process/events.jsonl --model process --population p.json --particles 128";

fn workplace() -> Workplace {
    let at = Workplace::new();
    at.simulate("--vocabulary 400 --memory 4 --length 48 --sequences 60 --truth none");
    at
}

fn start(at: &Workplace, words: &str) -> Child {
    at.command(words).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the partial file has some lines.
fn wait_for_lines(at: &Workplace, name: &str, count: usize) {
    let since = Instant::now();
    while std::fs::read_to_string(at.path(name)).map_or(0, |text| text.lines().count()) < count {
        assert!(since.elapsed() < Duration::from_secs(60), "no results after a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn control_c_keeps_finished_sequences_and_resume_continues() {
    let at = workplace();
    at.run(&format!("{DISCOVER} --out whole.jsonl -q"));
    let (whole, population) = (at.read("whole.jsonl"), at.read("p.json"));
    std::fs::remove_file(at.path("p.json")).unwrap();

    at.write("r.jsonl", "an older result");
    let child = start(&at, &format!("{DISCOVER} --out r.jsonl"));
    wait_for_lines(&at, "r.jsonl.partial", 3);
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    let kept = at.read("r.jsonl.partial");
    let count = kept.lines().count();
    assert!(count < 60, "the run was over before it could be interrupted");
    assert!(said.contains(&format!("{count} of 60 sequences are finished and kept in r.jsonl.partial")), "{said}");
    assert!(whole.starts_with(&kept), "what was kept is not a prefix of the whole");
    assert_eq!(at.read("r.jsonl"), "an older result", "replaced only at the end");
    assert!(!at.path("p.json").exists());

    let output = at.try_run(&format!("{DISCOVER} --out r.jsonl --resume"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && said.contains(&format!("continuing after {count} finished sequences")),
        "{said}"
    );
    assert!(at.read("r.jsonl") == whole);
    assert!(at.read("p.json") == population);
    assert!(at.files().iter().all(|name| !name.contains("partial")), "{:?}", at.files());
}

#[test]
fn a_killed_run_can_be_resumed_too() {
    let at = workplace();
    at.run("discover process/events.jsonl --model process --out whole.jsonl -q");
    let mut child = start(&at, "discover process/events.jsonl --model process --out r.jsonl");
    wait_for_lines(&at, "r.jsonl.partial", 3);
    signal(&child, "-KILL");
    child.wait().unwrap();
    // As if the kill had come in the middle of a line.
    let kept = at.read("r.jsonl.partial");
    let count = kept.lines().count();
    let cut = kept.trim_end().len() - 25;
    at.write("r.jsonl.partial", &kept[..cut]);
    let output = at.try_run("discover process/events.jsonl --model process --out r.jsonl --resume");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&format!("continuing after {} finished sequences", count - 1)), "{said}");
    assert!(at.read("r.jsonl") == at.read("whole.jsonl"));
}

#[test]
fn results_appear_in_order_and_early_with_many_threads() {
    let at = workplace();
    let mut child =
        start(&at, "discover process/events.jsonl --model process --out r.jsonl --particles 128 --threads 6");
    wait_for_lines(&at, "r.jsonl.partial", 1);
    // With six workers no more than six sequences are under way, so that lines cannot lag far behind.
    assert!(child.try_wait().unwrap().is_none(), "the first result came only at the end");
    assert!(child.wait().unwrap().success());
    let ids: Vec<String> =
        support::lines(&at.read("r.jsonl")).iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, (0..60).map(|i| format!("s{i}")).collect::<Vec<_>>());
}

#[test]
fn a_population_is_never_pieced_together_from_other_runs() {
    let at = workplace();
    at.write("few.jsonl", at.read("process/events.jsonl").lines().take(4).collect::<Vec<_>>().join("\n"));
    let run = |options: &str| format!("discover few.jsonl --model process --out r.jsonl --particles 16 {options}");
    at.run(&run("--population p.json -q"));
    let (done, population) = (at.read("r.jsonl"), at.read("p.json"));
    let two = done.lines().take(2).collect::<Vec<_>>().join("\n") + "\n";

    // Interrupted without a population: it cannot be had by resuming.
    at.write("r.jsonl.partial", &two);
    let said = at.refuse(&run("--population p.json --resume"));
    assert!(said.contains("holds 2 finished sequences, but no population of them was saved"), "{said}");
    assert_eq!(at.read("r.jsonl.partial"), two);

    // A checkpoint of other settings is refused, and removed by starting over.
    let child =
        start(&at, "discover process/events.jsonl --model process --out q.jsonl --population p.json --particles 128");
    wait_for_lines(&at, "q.jsonl.partial", 2);
    signal(&child, "-INT");
    child.wait_with_output().unwrap();
    assert!(at.path("p.json.partial").exists());
    let said = at.refuse(&run("--population p.json --resume"));
    assert!(said.contains("p.json.partial: is of a run with other settings, another model or another log"), "{said}");
    at.run(&run("--population p.json -q"));
    assert!(at.read("p.json") == population && !at.path("p.json.partial").exists());

    // With all pairs the results themselves hold what the population needs.
    at.run(&run("--population p.json --all-pairs -q"));
    let (all, population) = (at.read("r.jsonl"), at.read("p.json"));
    at.write("r.jsonl.partial", all.lines().take(3).collect::<Vec<_>>().join("\n") + "\n");
    at.run(&run("--population p.json --all-pairs -q --resume"));
    assert!(at.read("r.jsonl") == all && at.read("p.json") == population);
}

#[test]
fn a_killed_run_with_a_population_can_be_resumed() {
    let at = workplace();
    at.run(&format!("{DISCOVER} --out whole.jsonl -q"));
    let (whole, population) = (at.read("whole.jsonl"), at.read("p.json"));
    std::fs::remove_file(at.path("p.json")).unwrap();
    let mut child = start(&at, &format!("{DISCOVER} --out r.jsonl"));
    wait_for_lines(&at, "r.jsonl.partial", 4);
    // A second run must not write into the same file.
    let said = at.try_run("discover process/events.jsonl --model process --out r.jsonl");
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8(said.stderr).unwrap().contains("r.jsonl.partial: another run is writing it"));
    signal(&child, "-KILL");
    child.wait().unwrap();
    at.run(&format!("{DISCOVER} --out r.jsonl --resume -q"));
    assert!(at.read("r.jsonl") == whole && at.read("p.json") == population);
    // Now there is nothing left to do.
    let output = at.try_run(&format!("{DISCOVER} --out r.jsonl --resume"));
    assert!(String::from_utf8(output.stderr).unwrap().contains("r.jsonl: complete already, nothing to continue"));
    assert!(at.read("r.jsonl") == whole);
    // Unless the population there is of something else.
    at.write("p.json", population.replace("\"sequences\": 60", "\"sequences\": 59"));
    at.run(&format!("{DISCOVER} --out r.jsonl --resume -q"));
    assert!(at.read("r.jsonl") == whole && at.read("p.json") == population);
}

#[test]
fn a_run_is_not_continued_as_another() {
    let at = workplace();
    let log = at.read("process/events.jsonl");
    at.write("few.jsonl", log.lines().take(4).collect::<Vec<_>>().join("\n"));
    at.run("discover few.jsonl --model process --out r.jsonl -q --particles 16");
    let done = at.read("r.jsonl");
    let two = done.lines().take(2).collect::<Vec<_>>().join("\n") + "\n";
    let partial = |text: &str| at.write("r.jsonl.partial", text);
    let resume = "discover few.jsonl --out r.jsonl --resume --particles 16";
    at.run(
        "simulate scm --quiet --out other --vocabulary 400 --memory 4 --length 48 --sequences 1 --truth none --seed 8",
    );
    partial(&two);
    for (change, expected) in [
        ("--threshold 0.2", "cannot be continued with other settings: threshold is 0.05 instead of 0.2"),
        ("--seed 8", "seed is 7 instead of 8"),
        ("--all-pairs", "one run is with the option all_pairs and the other without"),
        ("--model other", "cannot be continued with another model"),
        ("--case s1", "holds more results than the log has sequences"),
    ] {
        let model = if change.contains("--model") { "" } else { "--model process" };
        let said = at.refuse(&format!("{resume} {model} {change}"));
        assert!(said.contains(expected), "{said}");
        assert_eq!(at.read("r.jsonl.partial"), two, "kept for the right command");
    }
    let mut swapped: Vec<&str> = log.lines().take(4).collect();
    swapped.swap(0, 1);
    at.write("few.jsonl", swapped.join("\n"));
    let resume = &format!("{resume} --model process");
    assert!(
        at.refuse(resume).contains("line 1: is the result of another sequence (\"s0\") than the log has there (\"s1\"")
    );
    at.write("few.jsonl", log.lines().take(4).collect::<Vec<_>>().join("\n"));
    at.run(&format!("{resume} -q"));
    assert!(at.read("r.jsonl") == done);
    // Without --resume a new run starts over.
    partial("rubbish");
    at.run("discover few.jsonl --model process --out r.jsonl -q --particles 16");
    assert!(at.read("r.jsonl") == done && !at.path("r.jsonl.partial").exists());
}

#[test]
fn an_interrupted_simulation_leaves_nothing() {
    let at = Workplace::new();
    let child = start(&at, "simulate scm --vocabulary 800 --sequences 400 --out process");
    // Calibration comes first and has nothing to lose; then a hidden folder is filled.
    let since = Instant::now();
    while !at.files().iter().any(|name| at.path(name).join("new/events.jsonl").exists()) {
        assert!(since.elapsed() < Duration::from_secs(60), "nothing was begun");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(at.files(), Vec::<String>::new());
}
