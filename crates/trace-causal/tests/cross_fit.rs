//! Cross-fits: two models in one folder, and the one that has not seen a sequence answers for it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Value, json};
use trace_causal::{Backbone, Cancel, Control, DensityModel, EventSequence, Log, Model, Note, Train, Unknown, Update};

const CASES: usize = 120;

struct Workplace {
    folder: tempfile::TempDir,
    log: Log,
}

impl Workplace {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.txt");
        let line = |i: usize| (0..6 + i % 3).map(|j| ["A", "B", "C", "D"][(i * j + i / 3) % 4]).collect::<Vec<_>>();
        fs::write(&path, (0..CASES).map(|i| line(i).join(" ") + "\n").collect::<String>()).unwrap();
        let log = Log::open(&path).unwrap();
        Self { folder, log }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn train(&self, backbone: Backbone, name: &str) -> Train<'static> {
        let train = Train::new().backbone(backbone).cross_fit(true).to_folder(self.path(name));
        if backbone == Backbone::Ngram { train } else { train.steps(12) }
    }
}

fn same(a: &dyn DensityModel, b: &dyn DensityModel) -> bool {
    std::ptr::addr_eq(a, b)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (place, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if place.is_dir() {
            copy(&place, &to.join(name));
        } else {
            fs::copy(&place, to.join(name)).unwrap();
        }
    }
}

#[test]
fn the_half_that_has_not_seen_a_sequence_answers_for_it() {
    let at = Workplace::new();
    for backbone in [Backbone::Ngram, Backbone::Gru] {
        let model = at.train(backbone, "model").run(&at.log).unwrap();
        assert!(model.is_cross_fit() && model.density().predicts_end());
        let halves = ["half-0", "half-1"].map(|half| Model::open(at.path("model").join(half)).unwrap());
        let mut routed = [0, 0];
        let cases = at.log.read_for(&model, Unknown::Refuse, &Control::new()).unwrap().sequences;
        assert_eq!(cases.len(), CASES);
        for case in &cases {
            assert_eq!(model.trained_on(case), Some(false));
            let first = same(model.density_for(case), model.density());
            routed[usize::from(!first)] += 1;
            let answers = &halves[usize::from(!first)];
            assert_eq!(answers.trained_on(case), Some(false), "{case:?} is asked of the half that was trained on it");
        }
        assert!(routed.iter().all(|count| *count > CASES / 4), "{routed:?}");
        let new = EventSequence::new("never seen", Vec::new());
        assert!(same(model.density_for(&new), model.density()));
        assert_eq!(halves[0].vocabulary(), halves[1].vocabulary());
        assert_ne!(halves[0].fingerprint(), halves[1].fingerprint());
        let info = model.info();
        let [first, second] = info.halves.unwrap();
        let used = [first, second].map(|half| half.trained_sequences + half.held_out_sequences);
        assert_eq!(used.iter().sum::<usize>(), CASES);
        assert_eq!(used[0], routed[1], "each sequence is asked of the other half");
        assert_eq!(info.parameters, first.parameters + second.parameters);
        let mean = f64::midpoint(first.held_out_loss.unwrap(), second.held_out_loss.unwrap());
        assert_eq!((info.held_out_loss, model.fitness().held_out_loss), (Some(mean), Some(mean)));
        assert!(!at.path("model.partial").exists());
        // A second run replaces the folder.
        let again = at.train(backbone, "model").run(&at.log).unwrap();
        assert_eq!(again.fingerprint(), model.fingerprint());
    }
}

#[test]
fn a_run_that_was_stopped_goes_on_with_the_half_that_is_left() {
    let at = Workplace::new();
    let whole = at.train(Backbone::Gru, "whole").run(&at.log).unwrap();
    // Stopped in the first half, and then in the second.
    for (halves, name) in [(0, "first"), (1, "second")] {
        let (cancel, done) = (Cancel::new(), Mutex::new(0));
        let listen = |update: &Update<'_>| match update {
            Update::Trained(_) => *done.lock().unwrap() += 1,
            Update::Step(step) if *done.lock().unwrap() == halves && step.step == 5 => cancel.cancel(),
            _ => {}
        };
        let error = at.train(Backbone::Gru, name).progress(&listen).cancel(&cancel).run(&at.log).unwrap_err();
        assert!(error.to_string().contains("5 steps are kept in"), "{error}");
        assert!(!at.path(name).exists() && at.path(&format!("{name}.partial")).exists());
        let notes = Mutex::new(Vec::new());
        let listen = |update: &Update<'_>| {
            if let Update::Note(note) = update {
                notes.lock().unwrap().push((*note).clone());
            }
        };
        let model = at.train(Backbone::Gru, name).resume(true).progress(&listen).run(&at.log).unwrap();
        assert_eq!(model.fingerprint(), whole.fingerprint(), "{name}");
        let notes = notes.into_inner().unwrap();
        assert!(notes.contains(&Note::ContinuingSteps(5)), "{notes:?}");
        let complete = Note::CompleteAlready(at.path(name).join("half-0"));
        assert_eq!(notes.contains(&complete), halves == 1, "{notes:?}");
        assert!(!at.path(&format!("{name}.partial")).exists());
    }
}

#[test]
fn a_finished_half_of_another_run_is_not_taken() {
    let at = Workplace::new();
    let stop = |name: &str| {
        let cancel = Cancel::new();
        let listen = |update: &Update<'_>| {
            if matches!(update, Update::Trained(_)) {
                cancel.cancel();
            }
        };
        at.train(Backbone::Gru, name).progress(&listen).cancel(&cancel).run(&at.log).unwrap_err();
    };
    stop("model");
    let error = at.train(Backbone::Gru, "model").seed(8).resume(true).run(&at.log).unwrap_err().to_string();
    assert!(error.contains("half-0: is of a run with other settings (options)"), "{error}");
    let single = Train::new().backbone(Backbone::Gru).steps(12).to_folder(at.path("single"));
    let cancel = Cancel::new();
    cancel.cancel();
    single.cancel(&cancel).run(&at.log).unwrap_err();
    let error = at.train(Backbone::Gru, "single").resume(true).run(&at.log).unwrap_err().to_string();
    assert!(error.contains("single.partial: is of a run with other settings (cross_fit)"), "{error}");
    // Starting over discards all of it.
    let model = at.train(Backbone::Gru, "model").seed(8).run(&at.log).unwrap();
    assert!(model.is_cross_fit() && !at.path("model.partial").exists());
}

#[test]
fn broken_folders_are_refused() {
    let at = Workplace::new();
    at.train(Backbone::Ngram, "good").run(&at.log).unwrap();
    let other = Log::open({
        fs::write(at.path("other.txt"), "X Y Z\nY X Z\n".repeat(20)).unwrap();
        at.path("other.txt")
    })
    .unwrap();
    Train::new().backbone(Backbone::Ngram).cross_fit(true).to_folder(at.path("other")).run(&other).unwrap();
    let open_cases = trace_causal::LogOptions {
        shaping: trace_causal::Shaping { open_cases: true, ..Default::default() },
        ..Default::default()
    };
    let endless = Log::open_with(at.path("log.txt"), &open_cases).unwrap();
    at.train(Backbone::Ngram, "endless").run(&endless).unwrap();
    let record = |name: &str, change: &dyn Fn(&mut Value)| {
        let path = at.path(name).join("trace.json");
        let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        fs::write(path, value.to_string()).unwrap();
    };
    let replace = |half: &str, by: &Path| {
        fs::remove_dir_all(at.path("bad").join(half)).unwrap();
        copy(by, &at.path("bad").join(half));
    };
    let cases: [(&str, &dyn Fn()); 8] = [
        ("half-1: not a model folder", &|| fs::remove_dir_all(at.path("bad/half-1")).unwrap()),
        ("half-1: is a cross-fit of two models", &|| replace("half-1", &at.path("good"))),
        ("its halves have different event types", &|| replace("half-1", &at.path("other/half-1"))),
        ("differ in whether they predict the end", &|| replace("half-1", &at.path("endless/half-1"))),
        ("its halves were trained on the same sequence", &|| replace("half-1", &at.path("good/half-0"))),
        ("half-0: does not say what it was trained on", &|| {
            fs::remove_file(at.path("bad/half-0/split.safetensors")).unwrap();
        }),
        ("trace.json: cross_fit: expected [\"half-0\", \"half-1\"]", &|| {
            record("bad", &|record| record["cross_fit"] = json!(["half-0", "../good/half-1"]));
        }),
        ("half-0/split.safetensors", &|| fs::write(at.path("bad/half-0/split.safetensors"), "no").unwrap()),
    ];
    for (expected, spoil) in cases {
        if at.path("bad").exists() {
            fs::remove_dir_all(at.path("bad")).unwrap();
        }
        copy(&at.path("good"), &at.path("bad"));
        spoil();
        let error = Model::open(at.path("bad")).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    // A folder with something of its own in a half is not replaced.
    fs::write(at.path("good/half-1/notes.txt"), "mine").unwrap();
    let error = at.train(Backbone::Ngram, "good").run(&at.log).unwrap_err().to_string();
    assert!(error.contains("half-1: holds notes.txt"), "{error}");
}

#[test]
fn a_log_that_has_no_two_halves_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("log.txt"), "A B A B\n").unwrap();
    let log = Log::open(folder.path().join("log.txt")).unwrap();
    for backbone in [Backbone::Ngram, Backbone::Gru] {
        let place = folder.path().join("model");
        let error = Train::new().backbone(backbone).cross_fit(true).to_folder(&place).run(&log).unwrap_err();
        assert!(error.to_string().starts_with("cross_fit: half "), "{error}");
    }
}
