//! The end of a case: one more outcome behind the event types, for every kind of model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use trace_core::{Branches, DensityModel, EventId, EventSequence, Measure, PlainReading, Reading, Scores, Vocabulary};
use trace_models::neural::shape::{Architecture, Shape};
use trace_models::neural::train::OptimizerKind;
use trace_models::ngram::{NgramSpec, train};
use trace_models::{ModelRecord, open};

const TYPES: usize = 5;
const END: EventId = EventId(TYPES as u32);

fn vocabulary() -> Vocabulary {
    let mut vocabulary = Vocabulary::named();
    for name in ["a", "b", "c", "d", "e"] {
        vocabulary.intern(&name.into());
    }
    vocabulary
}

/// A sequence that closes with the end.
fn closed() -> Vec<EventId> {
    [3, 0, 1, 4, 2, 2].map(EventId).into_iter().chain([END]).collect()
}

/// What every model with an end promises: normalized rows with the end behind the types, and readings that give the same
/// numbers as plain forward passes.
fn check(model: &dyn DensityModel) {
    let name = model.backbone();
    assert_eq!((model.vocabulary_size(), model.row_size(), model.end()), (TYPES, TYPES + 1, Some(END)), "{name}");
    let events = closed();
    let mut rows = vec![f64::NAN; events.len() * (TYPES + 1)];
    model.forward(&events, 0..events.len(), &mut rows).unwrap();
    let (fast, plain) = (model.read(&events).unwrap(), PlainReading::new(model, &events).unwrap());
    for (q, row) in rows.chunks_exact(TYPES + 1).enumerate() {
        assert!((row.iter().map(|p| p.exp()).sum::<f64>() - 1.0).abs() < 1e-9, "{name}: {row:?}");
        assert!((fast.observed()[q].log_p - row[events[q].index()]).abs() < 1e-5, "{name} at {q}");
        let mut again = vec![0.0; TYPES + 1];
        fast.distribution(q, &mut again).unwrap();
        assert!(again.iter().zip(row).all(|(a, b)| (a - b).abs() < 1e-5), "{name} at {q}");
    }
    // Replaced events in front of the end, which is the last target.
    let replacements = [1, 2, 0, 4].map(EventId);
    let batch = [Branches::new(4, 2, 1, &replacements)];
    let (mut found, mut expected) = (Scores::default(), Scores::default());
    for measure in [Measure::Distribution, Measure::Divergence] {
        found.lay_out(&batch, measure, model.row_size());
        expected.lay_out(&batch, measure, model.row_size());
        fast.score(&batch, &mut found).unwrap();
        plain.score(&batch, &mut expected).unwrap();
        for (branch, lag) in (0..4).flat_map(|branch| [(branch, 1), (branch, 2)]) {
            let (a, b) = (found.event(0, branch, lag), expected.event(0, branch, lag));
            assert!((a.log_p - b.log_p).abs() < 1e-5 && (a.log_not_p - b.log_not_p).abs() < 1e-5, "{name}");
            if measure == Measure::Divergence {
                let (a, b) = (found.divergence(0, branch, lag), expected.divergence(0, branch, lag));
                assert!((a - b).abs() < 1e-5, "{name}: {a} {b}");
            } else {
                let (a, b) = (found.distribution(0, branch, lag), expected.distribution(0, branch, lag));
                assert!(a.len() == TYPES + 1 && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5), "{name}");
            }
        }
    }
}

/// Writes a network whose tokens are the types, the end and the begin token.
fn network(architecture: Architecture, folder: &Path) -> Vec<f32> {
    let shape = Shape { layers: 1, hidden_size: 16, heads: 2, head_dim: 8, intermediate_size: 16 };
    let config = shape.network(architecture, TYPES + 1, 16);
    let mut state = config.fresh_state(3, OptimizerKind::AdamW);
    let window = [6].into_iter().chain(closed().iter().map(|event| event.0)).collect::<Vec<u32>>();
    config.steps(&mut state, &vec![vec![window, vec![6, 1, 0, 3]]; 8], 1e-2).unwrap();
    let mut record = ModelRecord { event_counts: Some(vec![3; TYPES]), ..ModelRecord::default() };
    record.special_tokens.extend([("begin".to_owned(), 6), ("end".to_owned(), 5)]);
    config.save(folder, &state.weights, &vocabulary(), record).unwrap();
    state.weights
}

#[test]
fn networks_predict_it() {
    for architecture in [Architecture::Llama, Architecture::Mamba, Architecture::Gru, Architecture::Lstm] {
        let folder = tempfile::tempdir().unwrap();
        network(architecture, folder.path());
        let opened = open(folder.path()).unwrap();
        assert_eq!(opened.vocabulary, vocabulary());
        assert_eq!(opened.model.frequencies(), Some(&[3.0; TYPES][..]), "frequencies are those of events");
        check(&*opened.model);
        let config = opened.config;
        assert_eq!(
            (&config["vocab_size"], &config["eos_token_id"]),
            (&json!(7), &json!(5)),
            "as Transformers reads it"
        );
    }
}

fn edit_json(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// Wherever the folder has its tokens, the end is the column behind the types.
#[test]
fn the_end_may_be_any_token() {
    let folder = tempfile::tempdir().unwrap();
    network(Architecture::Gru, folder.path());
    let usual = open(folder.path()).unwrap();
    let mut rows = vec![0.0; 7 * (TYPES + 1)];
    usual.model.forward(&closed(), 0..7, &mut rows).unwrap();
    // Another reading of the same weights: token 2 is the end, and token 5 the event `c`.
    edit_json(&folder.path().join("trace.json"), |record| record["special_tokens"]["end"] = json!(2));
    edit_json(&folder.path().join("vocab.json"), |names| {
        *names = json!({"a": 0, "b": 1, "d": 3, "e": 4, "c": 5});
    });
    let turned = open(folder.path()).unwrap();
    assert_eq!(turned.vocabulary.id(&"c".into()), Some(EventId(4)), "types are in the order of tokens");
    assert_ne!(turned.fingerprint, usual.fingerprint);
    let tokens_of = [0, 1, 3, 4, 5, 2]; // of each column
    let events = [3, 0, 1, 2].map(EventId); // the tokens 4, 0, 1, 3
    let tokens = [4, 0, 1, 3].map(EventId);
    let (mut found, mut expected) = (vec![0.0; 5 * (TYPES + 1)], vec![0.0; 5 * (TYPES + 1)]);
    turned.model.forward(&events, 0..5, &mut found).unwrap();
    usual.model.forward(&tokens, 0..5, &mut expected).unwrap();
    for (found, expected) in found.chunks_exact(TYPES + 1).zip(expected.chunks_exact(TYPES + 1)) {
        for (column, found) in found.iter().enumerate() {
            assert!((found - expected[tokens_of[column]]).abs() < 1e-6, "{column}");
        }
    }
}

#[test]
fn n_grams_predict_it() {
    let sequences: Vec<EventSequence> = (0..60)
        .map(|i| {
            let events = (0..3 + i % 4).map(|j| EventId((i * j + j) as u32 % TYPES as u32)).collect();
            EventSequence { ended: i % 3 > 0, ..EventSequence::new(i.to_string(), events) }
        })
        .collect();
    let spec = NgramSpec { order: Some(3), end: true, ..NgramSpec::default() };
    let trained = train(&sequences, TYPES, &spec).unwrap();
    check(&trained.model);
    let counts: f64 = trained.model.frequencies().unwrap().iter().sum();
    let kept = |index: &usize| trained.held_out.binary_search(index).is_err();
    let events: usize = (0..60).filter(kept).map(|index| sequences[index].events.len()).sum();
    assert_eq!((trained.model.frequencies().unwrap().len(), counts), (TYPES, events as f64));
    let folder = tempfile::tempdir().unwrap();
    trained.model.save(folder.path(), &vocabulary(), &serde_json::Map::new()).unwrap();
    let opened = open(folder.path()).unwrap();
    assert_eq!((&opened.vocabulary, opened.record.special_tokens["end"]), (&vocabulary(), 5));
    let (mut again, mut before) = (vec![0.0; TYPES + 1], vec![0.0; TYPES + 1]);
    opened.model.forward(&closed(), 3..4, &mut again).unwrap();
    trained.model.forward(&closed(), 3..4, &mut before).unwrap();
    assert_eq!(again, before);
    // Without one, as it was.
    let without = train(&sequences, TYPES, &NgramSpec { end: false, ..spec }).unwrap().model;
    assert_eq!((without.row_size(), without.end()), (TYPES, None));
}

#[test]
fn ends_that_are_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sequences = [EventSequence { ended: true, ..EventSequence::new("x", closed()[..6].to_vec()) }];
    let spec = NgramSpec { order: Some(2), end: true, ..NgramSpec::default() };
    let model = train(&sequences, TYPES, &spec).unwrap().model;
    model.save(folder.path(), &vocabulary(), &serde_json::Map::new()).unwrap();
    let path = folder.path().join("trace.json");
    for (tokens, expected) in [
        (json!({"end": 2}), "special_tokens: end is token 2, expected the last of 6"),
        (json!({"end": 6}), "special_tokens: end is token 6"),
        (json!({"begin": 5}), "special_tokens: an n-gram model has an end alone, found \"begin\""),
    ] {
        edit_json(&path, |record| record["special_tokens"] = tokens);
        let error = open(folder.path()).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
    edit_json(&path, |record| record["special_tokens"] = json!({"end": 5}));
    edit_json(&path, |record| record["event_counts"] = json!([1, 1, 1, 1, 1, 1]));
    assert!(open(folder.path()).err().unwrap().to_string().contains("event_counts: expected 5 numbers, found 6"));
}
