//! A miniature of each experiment, checked for its direction.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use trace_lab::experiments::{ALL, find};
use trace_lab::{Error, Lab, Outcome, Report, Row, Scale, Size, write_page};

/// Says nothing, and stops after some questions.
struct Silent {
    questions: AtomicUsize,
}

impl Silent {
    const fn patient(questions: usize) -> Self {
        Self { questions: AtomicUsize::new(questions) }
    }
}

impl Report for Silent {
    fn say(&self, _line: &str) {}

    fn stop(&self) -> bool {
        self.questions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

fn run(folder: &Path, name: &str, reporter: &dyn Report) -> Result<Outcome, Error> {
    let lab = Lab::new(folder.to_owned(), Size::Mini, reporter);
    lab.run(find(name).unwrap())
}

fn rows(folder: &Path, name: &str) -> Vec<Row> {
    run(folder, name, &Silent::patient(usize::MAX)).unwrap().rows.rows().to_vec()
}

fn value(rows: &[Row], keys: &[(&str, &str)], figure: &str) -> f64 {
    let fits = |row: &&Row| keys.iter().all(|(name, value)| row.key(name) == Some(value));
    let row = rows.iter().find(fits).unwrap_or_else(|| panic!("no row with {keys:?}"));
    row.value(figure).unwrap_or_else(|| panic!("no {figure} at {keys:?}"))
}

/// One folder for all, as a user would have it: the experiments share their backbones.
#[test]
fn every_experiment_points_the_right_way() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();

    let table = rows(folder, "table1");
    let of = |method: &str, figure: &str| {
        value(&table, &[("truth", "event"), ("threshold", "its own"), ("method", method)], figure)
    };
    for rival in ["random", "frequency"] {
        assert!(of("trace", "f1") > of(rival, "f1") + 0.1, "{rival}");
    }
    assert!(of("trace", "late_found") > of("bigram", "late_found"));
    assert_eq!(of("the exact truth", "f1"), 1.0);
    let ten = value(&table, &[("truth", "event, 10 draws"), ("method", "the exact truth")], "positions_f1");
    assert!(ten < 1.0 && ten > 0.5, "ten draws are noisy, not random: {ten}");

    let epsilon = rows(folder, "epsilon");
    let scores: Vec<f64> = epsilon.iter().filter_map(|row| row.value("epsilon_hat")).collect();
    assert!(scores.len() == 8 && scores[0] > 1.5 * scores[scores.len() - 1], "{scores:?}");
    let recall = |row: Option<&Row>| row.and_then(|row| row.value("recall")).unwrap();
    assert!(recall(epsilon.last()) > recall(epsilon.first()), "recall grows with the events");

    let vocabulary = rows(folder, "vocabulary");
    assert_eq!(vocabulary.len(), 3);
    let (few, many) = (
        value(&vocabulary, &[("vocabulary", "10")], "epsilon_hat"),
        value(&vocabulary, &[("vocabulary", "40")], "epsilon_hat"),
    );
    assert!(few < many, "the same events teach less about more types: {few} and {many}");

    let length = rows(folder, "length");
    let work = |variant: &str, length_of: &str| {
        value(&length, &[("variant", variant), ("length", length_of)], "branch_positions")
    };
    assert!(work("full", "48") > 3.0 * work("full", "24"), "all pairs grow with the square");
    assert!(work("sparse", "48") < 3.0 * work("sparse", "24"), "those within memory do not");

    let particles = rows(folder, "particles");
    let at = |name: &str, figure: &str| value(&particles, &[("particles", name)], figure);
    assert!(at("N = 16", "branch_positions") > 3.0 * at("N = 4", "branch_positions"));

    let threshold = rows(folder, "threshold");
    let recalls = |threshold_of: &str| value(&threshold, &[("method", "trace"), ("threshold", threshold_of)], "recall");
    assert!(recalls("1.0e-3") > recalls("5.0e-1"), "a lower threshold finds more");

    let law = rows(folder, "scaling-law");
    let best = |method: &str| value(&law, &[("method", method), ("vocabulary", "20")], "best_threshold");
    assert!(best("staircase") < best("trace"), "the staircase sees a part of the effect");

    let noise = rows(folder, "noise");
    let of = |truth: &str, share: &str, figure: &str| value(&noise, &[("truth", truth), ("replaced", share)], figure);
    assert!(of("what happened", "0.4", "true_edges") < of("what happened", "0", "true_edges"), "noise destroys edges");
    let (happened, recorded) = (of("what happened", "0.4", "precision"), of("what was recorded", "0.4", "precision"));
    assert!(recorded > happened + 0.1, "what is found is true of the record: {recorded} and {happened}");

    let drops = rows(folder, "drops");
    let of = |share: &str, figure: &str| value(&drops, &[("missing", share)], figure);
    assert!(of("0.4", "precision") < of("0", "precision"), "missing events cost precision");
    assert!(of("0.4", "true_edges") < of("0", "true_edges"), "and leave fewer edges to find");

    let memory = rows(folder, "memory");
    assert_eq!(memory.iter().filter_map(|row| row.key("memory")).collect::<Vec<_>>(), ["1", "2", "4"]);
    assert!(memory.iter().all(|row| row.value("f1").is_some()));

    let backbones = rows(folder, "backbones");
    for name in ["llama", "mamba", "gru", "lstm"] {
        let score = value(&backbones, &[("backbone", name)], "epsilon_hat");
        assert!(score > 0.0 && score < 0.7, "{name} learned something: {score}");
    }
    assert!(value(&backbones, &[("backbone", "ngram")], "f1") > 0.3);

    let vehicle = rows(folder, "vehicle");
    assert_eq!(value(&vehicle, &[("backbone", "llama")], "types"), 300.0);
    assert!(value(&vehicle, &[("backbone", "ngram")], "precision") > 0.3);

    let page = std::fs::read_to_string(write_page(folder).unwrap()).unwrap();
    for experiment in ALL {
        assert!(page.contains(experiment.title) && page.contains(&format!("trace-lab {} --mini", experiment.name)));
        let figure = std::fs::read_to_string(folder.join(format!("{}.svg", experiment.name))).unwrap();
        assert!(figure.matches("<circle").count() > 1, "{} draws something", experiment.name);
        let csv = std::fs::read_to_string(folder.join(format!("{}.csv", experiment.name))).unwrap();
        assert!(csv.lines().count() > 1);
    }
    assert!(page.contains("Fitted exponents"));
}

#[test]
fn a_stopped_run_goes_on_and_ends_the_same() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let whole = rows(one.path(), "drops");
    let stopped = run(two.path(), "drops", &Silent::patient(12));
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    let here = machine(two.path(), "drops");
    set_machine(two.path(), "drops", "an abacus");
    let continued = rows(two.path(), "drops");
    assert_eq!(machine(two.path(), "drops"), format!("an abacus; {here}"), "both did a part of it");
    let figures = |rows: &[Row]| -> Vec<Vec<(String, f64)>> {
        let timeless = |row: &Row| row.values.iter().filter(|value| value.0 != "seconds").cloned().collect();
        rows.iter().map(timeless).collect()
    };
    assert_eq!(figures(&whole), figures(&continued));

    // Whoever asks for finished results again, on another machine perhaps, did not make them.
    set_machine(one.path(), "drops", "an abacus");
    rows(one.path(), "drops");
    assert_eq!(machine(one.path(), "drops"), "an abacus");
}

fn record(folder: &Path, name: &str) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap()).unwrap()
}

/// The machine on record.
fn machine(folder: &Path, name: &str) -> String {
    record(folder, name)["machine"].as_str().unwrap().to_owned()
}

fn set_machine(folder: &Path, name: &str, machine: &str) {
    let mut record = record(folder, name);
    record["machine"] = machine.into();
    std::fs::write(folder.join(format!("{name}.json")), record.to_string()).unwrap();
}

#[test]
fn results_of_another_size_are_not_mixed() {
    let folder = tempfile::tempdir().unwrap();
    rows(folder.path(), "particles");
    let reporter = Silent::patient(0);
    let lab = Lab::new(folder.path().to_owned(), Size::Quick, &reporter);
    let error = lab.run(find("particles").unwrap()).unwrap_err().to_string();
    assert!(error.contains("particles.json") && error.contains("another size"), "{error}");

    let usual = Size::Mini.scale();
    let others = [
        Scale { redundancy: 0.5, ..usual },
        Scale { many_sequences: usual.many_sequences + 1, ..usual },
        // Asked for, a number of events holds for all; the size's own may grow.
        Scale { most_events: 2 * usual.events, ..usual },
    ];
    for scale in others {
        let lab = Lab::new(folder.path().to_owned(), Size::Mini, &reporter).with_scale(scale);
        let error = lab.run(find("particles").unwrap()).unwrap_err().to_string();
        assert!(error.contains("another size"), "{error}");
    }
}

/// Some parts of an experiment can be run by themselves, with a number of events that holds for all of them, and others
/// later: the page says which there are.
#[test]
fn parts_of_an_experiment_are_run_alone() {
    let folder = tempfile::tempdir().unwrap();
    let reporter = Silent::patient(usize::MAX);
    let run = |only: &[&str]| {
        let scale = Size::Mini.scale().with_events(20_000);
        let lab = Lab::new(folder.path().to_owned(), Size::Mini, &reporter).with_scale(scale);
        let lab = lab.with_only(only.iter().map(|name| (*name).to_owned()).collect());
        let outcome = lab.run(find("vocabulary").unwrap()).unwrap();
        let rows = outcome.rows.rows();
        assert!(rows.iter().all(|row| row.value("events") == Some(20_000.0)));
        rows.iter().filter_map(|row| row.key("vocabulary")).map(str::to_owned).collect::<Vec<_>>()
    };
    let page = || std::fs::read_to_string(write_page(folder.path()).unwrap()).unwrap();
    assert_eq!(run(&["10", "40"]), ["10", "40"]);
    assert!(page().contains("`trace-lab vocabulary --mini --events 20000 --only 10 40 --seeds 1`"), "{}", page());
    assert_eq!(run(&[]), ["10", "40", "20"]);
    assert!(page().contains("`trace-lab vocabulary --mini --events 20000 --seeds 1`"), "{}", page());
}

/// Other numbers than the size's own reach the process and the training, and the page says how to ask for them.
#[test]
fn a_run_with_numbers_of_its_own_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let reporter = Silent::patient(usize::MAX);
    let scale = Scale { redundancy: 0.7, ..Size::Mini.scale() }.with_events(20_000);
    let lab = Lab::new(folder.path().to_owned(), Size::Mini, &reporter).with_scale(scale);
    let outcome = lab.run(find("drops").unwrap()).unwrap();
    assert!(outcome.rows.rows().iter().all(|row| row.value("events") == Some(20_000.0)));
    let page = std::fs::read_to_string(write_page(folder.path()).unwrap()).unwrap();
    assert!(page.contains("`trace-lab drops --mini --events 20000 --redundancy 0.7 --seeds 1`"), "{page}");
    let backbones = std::fs::read_dir(folder.path().join("backbones")).unwrap();
    assert!(backbones.flatten().all(|entry| entry.file_name().to_string_lossy().contains("-r0.7-")));
}

/// Rows of earlier versions still make a page: one row for a whole training, and a figure under its former name.
#[test]
fn rows_of_earlier_versions_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let row = r#"{"cell":"one training","seed":1,"rows":[{"keys":[["epsilon_hat","0.0512"],["step","40"]],"seed":1,"values":[["f1",0.5]]}]}"#;
    write("epsilon.rows.jsonl", &format!("{row}\n"));
    write("epsilon.json", r#"{"size": "quick", "machine": "an abacus", "flags": " --quick"}"#);
    let row = r#"{"cell":"llama","seed":1,"rows":[{"keys":[["backbone","llama"]],"seed":1,"values":[["seconds_a_sequence",0.25]]}]}"#;
    write("vehicle.rows.jsonl", &format!("{row}\n"));
    let page = std::fs::read_to_string(write_page(folder.path()).unwrap()).unwrap();
    assert!(page.contains("`trace-lab epsilon --quick --seeds 1` on an abacus"), "{page}");
    assert!(page.contains("| 0.0512 | 40 | 0.500 |") && page.contains("seconds per sequence"), "{page}");
    assert!(page.contains("0.250"), "{page}");
}
