//! Cases that end: the end competes with the event types for probability.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::fmt::Write;

use trace_causal::{
    Backbone, Control, EventName, EventSequence, Explain, Log, LogOptions, Model, Order, Shaping, Train, TrainOptions,
    Unknown, Update,
};

/// Numbers in `[0, 1)` that look random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }
}

/// Cases of a hospital: after a release 59 % of them end, and in the others the patient returns.
fn hospital(cases: usize) -> String {
    let mut random = Random(11);
    let mut text = String::from("case,event\n");
    for case in 0..cases {
        let mut events = vec!["register", "triage"];
        for _ in 0..3 {
            events.push(TESTS[(3.0 * random.next()) as usize]);
        }
        if random.next() < 0.5 {
            events.push("admission");
        }
        events.push("release");
        if random.next() < 0.41 {
            events.push("return");
        }
        for event in events {
            writeln!(text, "{case},{event}").unwrap();
        }
    }
    text
}

fn log(text: &str, shaping: Shaping) -> (tempfile::TempDir, Log) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    std::fs::write(&path, text).unwrap();
    let log = Log::open_with(path, &LogOptions { shaping, ..LogOptions::default() }).unwrap();
    (folder, log)
}

/// Probabilities of all outcomes after these events.
fn after(model: &Model, names: &[&str]) -> Vec<f64> {
    let id = |name: &&str| model.vocabulary().id(&EventName::from(*name)).unwrap();
    let events: Vec<_> = names.iter().map(id).collect();
    let mut row = vec![0.0; model.density().row_size()];
    model.density().forward(&events, events.len()..events.len() + 1, &mut row).unwrap();
    row.into_iter().map(f64::exp).collect()
}

fn trainings() -> [(Backbone, Train<'static>); 3] {
    [
        (Backbone::Ngram, Train::new().backbone(Backbone::Ngram)),
        (Backbone::Gru, Train::new().backbone(Backbone::Gru).steps(150)),
        (Backbone::Llama, Train::new().backbone(Backbone::Llama).steps(150)),
    ]
}

const TESTS: [&str; 3] = ["blood test", "x-ray", "infusion"];

/// Every history up to a release.
fn released() -> Vec<Vec<&'static str>> {
    let one = |number: usize| {
        let tests = [number % 3, number / 3 % 3, number / 9 % 3].map(|test| TESTS[test]);
        let admission: &[&str] = if number >= 27 { &["admission"] } else { &[] };
        [&["register", "triage"][..], &tests, admission, &["release"]].concat()
    };
    (0..54).map(one).collect()
}

#[test]
fn the_end_takes_its_share_of_what_comes_next() {
    let text = hospital(2000);
    let (_keep, log) = log(&text, Shaping::default());
    assert_eq!(log.summary().unwrap().ended_cases, 2000);
    for (backbone, train) in trainings() {
        let model = train.run(&log).unwrap();
        let end = model.density().end().unwrap().index();
        let back = model.vocabulary().id(&"return".into()).unwrap().index();
        // A single history has some forty cases, whose chance a network learns; the mean over all histories has all.
        let histories = released();
        let (mut returns, mut ends) = (0.0, 0.0);
        for history in &histories {
            let row = after(&model, history);
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{backbone:?}: {row:?}");
            assert!((row[back] - 0.41).abs() < 0.25, "{backbone:?}: return {} after {history:?}", row[back]);
            returns += row[back] / histories.len() as f64;
            ends += row[end] / histories.len() as f64;
        }
        assert!((returns - 0.41).abs() < 0.05 && (ends - 0.59).abs() < 0.05, "{backbone:?}: {returns} {ends}");
        // Nothing ends before a release, and everything after a return.
        assert!(after(&model, &histories[0][..3])[end] < 0.02, "{backbone:?}");
        let last = [&histories[0][..], &["return"]].concat();
        assert!(after(&model, &last)[end] > 0.95, "{backbone:?}");
        // Held-out loss and that of frequencies are of the same targets, 7.91 a case with its end: their entropies are
        // (3 ln 3 + ln 2 + H(0.41)) / 7.91 = 0.590 and, of the frequencies 1 (seven times), 0.5 and 0.41 in 7.91, 2.158.
        let fitness = model.fitness();
        let (loss, unigram) = (fitness.held_out_loss.unwrap(), fitness.unigram_loss.unwrap());
        assert!((0.57..0.65).contains(&loss) && (unigram - 2.158).abs() < 0.03, "{backbone:?}: {loss} {unigram}");
        assert_eq!(model.density().frequencies().unwrap().len(), model.vocabulary().len());
    }
}

#[test]
fn open_cases_have_no_end() {
    let text = hospital(300);
    let (_keep, log) = log(&text, Shaping { open_cases: true, ..Shaping::default() });
    for (backbone, train) in trainings() {
        let model = train.run(&log).unwrap();
        assert!(!model.density().predicts_end() && !model.record().special_tokens.contains_key("end"), "{backbone:?}");
        let row = after(&model, &released()[0]);
        let back = model.vocabulary().id(&"return".into()).unwrap().index();
        assert!(row.len() == model.vocabulary().len() && row[back] > 0.8, "{backbone:?}: {}", row[back]);
    }
}

#[test]
fn an_explanation_says_how_probable_the_end_was() {
    let text = hospital(1000);
    let (_keep, log) = log(&text, Shaping::default());
    let options = TrainOptions { backbone: Backbone::Ngram, order: Some(Order::Fixed(2)), ..TrainOptions::default() };
    let model = Train::with_options(options).run(&log).unwrap();
    let case = text.lines().find_map(|line| line.strip_suffix(",return")).unwrap();
    let explained = Explain::new(&model).case(case).at("return").run(&log).unwrap();
    let prediction = explained.prediction;
    let end = prediction.end.unwrap();
    assert!((end - 0.59).abs() < 0.08 && (prediction.probability - 0.41).abs() < 0.08, "{prediction:?}");
    assert_eq!((prediction.rank, prediction.types), (1, 8), "the end is no type that could be more probable");
    let shown = format!("That the case would end there instead had a probability of {:.0} %.", 100.0 * end);
    assert!(explained.to_string().contains(&shown), "{explained}");
    let data = serde_json::to_value(&explained).unwrap();
    assert!((data["end_probability"].as_f64().unwrap() - end).abs() < 1e-12);
}

#[test]
fn every_kind_of_model_holds_out_the_same_sequences() {
    let text = hospital(200);
    let (_keep, log) = log(&text, Shaping::default());
    let trained: Vec<Vec<bool>> = [Backbone::Ngram, Backbone::Gru, Backbone::Mamba, Backbone::Lstm]
        .map(|backbone| {
            let train = Train::new().backbone(backbone).seed(3);
            let train = if backbone == Backbone::Ngram { train } else { train.steps(1) };
            let model = train.run(&log).unwrap();
            let cases = log.read_for(&model, Unknown::Refuse, &Control::new()).unwrap().sequences;
            let other = EventSequence { id: "a case of another log".to_owned(), ..cases[0].clone() };
            assert_eq!(model.trained_on(&other), Some(false), "{backbone:?}");
            // Another log that has a case of the same name.
            let other = EventSequence { events: cases[1].events[1..].to_vec(), ..cases[0].clone() };
            assert_eq!(model.trained_on(&other), Some(false), "{backbone:?}");
            cases.iter().map(|case| model.trained_on(case).unwrap()).collect()
        })
        .to_vec();
    let held_out = trained[0].iter().filter(|trained| !**trained).count();
    assert!((8..35).contains(&held_out), "{held_out}");
    assert!(trained.iter().all(|each| *each == trained[0]));
}

#[test]
fn a_process_that_goes_on_is_not_compared_with_cases_that_end() {
    let folder = tempfile::tempdir().unwrap();
    let process = folder.path().join("process");
    let options =
        trace_causal::ScmOptions { vocabulary: 8, memory: 2, sequences: 40, length: 20, ..Default::default() };
    trace_causal::simulate_scm(&options, &process, &Control::new()).unwrap();
    let events = std::fs::read_to_string(process.join("events.jsonl")).unwrap();
    assert!(events.lines().all(|line| line.contains("\"open\":true")), "simulated sequences are windows");
    let open = Log::open(process.join("events.jsonl")).unwrap();
    let train = || Train::new().backbone(Backbone::Ngram).process(&process);
    let model = train().run(&open).unwrap();
    assert!(model.fitness().epsilon().is_some() && !model.density().predicts_end());
    let any = EventSequence::new("s0", Vec::new());
    assert_eq!(Model::open(&process).unwrap().trained_on(&any), None, "a process is not trained");
    let ended = folder.path().join("ended.jsonl");
    std::fs::write(&ended, events.replace(",\"open\":true", "")).unwrap();
    let error = train().run(&Log::open(&ended).unwrap()).unwrap_err();
    assert!(error.to_string().contains("the process goes on where cases of this log end"), "{error}");
    assert_eq!(error.hints()[0].option.0, "open_cases");
}

#[test]
fn a_summary_of_what_was_read_counts_ends() {
    let (_keep, log) = log(&hospital(20), Shaping { max_length: Some(3), ..Shaping::default() });
    let ended = std::sync::Mutex::new(None);
    let listen = |update: &Update<'_>| {
        if let Update::Read(summary) = update {
            *ended.lock().unwrap() = Some((summary.ended_cases, summary.cases > 40));
        }
    };
    Train::new().backbone(Backbone::Ngram).progress(&listen).run(&log).unwrap();
    assert_eq!(*ended.lock().unwrap(), Some((20, true)));
}
