//! The n-gram model: Kneser–Ney by hand, its numerics, its training and its folder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use proptest::prelude::*;
use trace_core::{DensityModel, Discovery, Divergence, EventId, EventSequence, Intervention, Vocabulary, reference};
use trace_models::ngram::{NgramCounts, NgramSpec, train};
use trace_models::{NgramModel, open};

fn ids(events: &[u32]) -> Vec<EventId> {
    events.iter().copied().map(EventId).collect()
}

fn model(size: usize, order: usize, sequences: &[Vec<EventId>]) -> NgramModel {
    let mut counts = NgramCounts::new(size, order);
    for sequence in sequences {
        counts.add(sequence);
    }
    NgramModel::new(counts, order)
}

fn row(model: &NgramModel, events: &[EventId], q: usize) -> Vec<f64> {
    let mut row = vec![0.0; model.vocabulary_size()];
    model.forward(events, q..q + 1, &mut row).unwrap();
    row
}

#[test]
fn a_bigram_by_hand() {
    // A B A C: bigrams ^A, AB, BA, AC, each once; continuation counts A 2 (after ^ and B), B 1, C 1.
    let model = model(3, 2, &[ids(&[0, 1, 0, 2])]);
    // Too few counts of counts for estimates of 2 and 3; counts of 1 have n1, n2 = (4, 0) at length 1: Y = 1,
    // D1 = 1 − 2·0/4 = 1 leaves nothing and is replaced by the usual 0.6. At length 0: n1 = 2, n2 = 1: Y = 1/2,
    // D1 = 1 − 2·(1/2)·(1/2) = 1/2, D2 = 2 − 3·(1/2)·0/1 = 2, replaced by the usual 1.
    let lower = |left: f64| (left + 2.0 / 3.0) / 4.0; // discounts take 0.5 + 0.5 + 1
    let unigram = [lower(1.0), lower(0.5), lower(0.5)];
    assert!((unigram.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    // After A: B and C once each, discounted to 0.4; 1.2 goes to the shorter context.
    let expected = [0.6 * unigram[0], 0.2 + 0.6 * unigram[1], 0.2 + 0.6 * unigram[2]];
    for (found, expected) in row(&model, &ids(&[0]), 1).iter().zip(expected) {
        assert!((found.exp() - expected).abs() < 1e-12, "{} {expected}", found.exp());
    }
    // After C, which was never followed: the shorter context alone.
    for (found, expected) in row(&model, &ids(&[2]), 1).iter().zip(unigram) {
        assert!((found.exp() - expected).abs() < 1e-12);
    }
}

fn sequences() -> impl Strategy<Value = Vec<Vec<EventId>>> {
    proptest::collection::vec(proptest::collection::vec((0u32..6).prop_map(EventId), 0..25), 1..6)
}

proptest! {
    #[test]
    fn rows_are_distributions_and_scores_agree_with_them(sequences in sequences(), order in 1usize..5) {
        let model = model(6, order, &sequences);
        for events in &sequences {
            let reading = model.read(events).unwrap();
            for (q, score) in reading.observed().iter().enumerate() {
                let row = row(&model, events, q);
                prop_assert!((row.iter().map(|v| v.exp()).sum::<f64>() - 1.0).abs() < 1e-12);
                prop_assert!(row.iter().all(|v| v.is_finite()));
                prop_assert!((score.log_p - row[events[q].index()]).abs() < 1e-12);
                prop_assert!((score.log_p.exp() + score.log_not_p.exp() - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn fast_equals_reference(sequences in sequences(), order in 1usize..5, staircase in any::<bool>(), full in any::<bool>()) {
        let model = model(6, order, &sequences);
        let Some(events) = sequences.iter().find(|events| events.len() >= 4) else { return Ok(()) };
        let sequence = EventSequence::new("s", events[..events.len().min(10)].to_vec());
        let discovery = Discovery::new(&model)
            .intervention(if staircase { Intervention::Staircase } else { Intervention::Atomic })
            .divergence(if full { Divergence::Full } else { Divergence::Event })
            .particles(5)
            .memory(5)
            .threshold(0.05);
        // Where nothing else could be drawn, there is nothing to compare.
        for pair in discovery.run(&sequence).unwrap().graph.pairs().iter().filter(|pair| pair.particles > 0) {
            let slow = reference::pair(&discovery, &sequence, pair.cause, pair.effect, pair.particles as usize).unwrap();
            prop_assert!((pair.strength - slow.strength).abs() <= 1e-9 * (1.0 + slow.strength), "{:?} {:?}", pair, slow);
            prop_assert!((pair.log_ratio - slow.log_ratio).abs() <= 1e-9, "{:?} {:?}", pair, slow);
        }
    }
}

#[test]
fn a_certain_follower_keeps_its_complement() {
    // B follows A in all of 200,000 cases but two: p(B|A) is within 1e-4 of 1 and its complement must not be lost.
    let mut events: Vec<EventId> = (0..400_000).map(|i| EventId(i % 2)).collect();
    (events[1001], events[2001]) = (EventId(2), EventId(3));
    let model = model(5, 2, std::slice::from_ref(&events));
    let score = model.read(&events[..4]).unwrap().observed()[1];
    let complement: f64 =
        row(&model, &events, 1).iter().enumerate().filter(|(v, _)| *v != 1).map(|(_, p)| p.exp()).sum();
    assert!(complement < 1e-4);
    assert!((score.log_not_p - complement.ln()).abs() < 1e-10, "{} {}", score.log_not_p, complement.ln());
}

#[test]
fn bad_specs_are_named() {
    let sequences = [EventSequence::new("a", ids(&[0, 1]))];
    let error = |size, spec: NgramSpec| train(&sequences, size, &spec).unwrap_err().to_string();
    assert!(error(2, NgramSpec { order: Some(0), ..NgramSpec::default() }).starts_with("order: 0"));
    assert!(error(2, NgramSpec { held_out: f64::NAN, ..NgramSpec::default() }).starts_with("held-out: NaN"));
    assert!(error(2, NgramSpec { held_out: 1.0, ..NgramSpec::default() }).starts_with("held-out: 1"));
    assert!(error(1, NgramSpec::default()).contains("events: only 1 type"));
}

#[test]
fn a_folder_gives_the_same_model_back() {
    let folder = tempfile::tempdir().unwrap();
    let events = ids(&[0, 1, 2, 0, 1, 2, 2, 1, 0, 0, 1]);
    let trained = train(
        &[EventSequence::new("a", events.clone()), EventSequence::new("b", ids(&[0, 1, 2]))],
        3,
        &NgramSpec { order: Some(3), ..NgramSpec::default() },
    )
    .unwrap();
    let mut vocabulary = Vocabulary::named();
    for name in ["A", "B \"quoted\"", "</C>"] {
        vocabulary.intern(&name.into());
    }
    trained.model.save(folder.path(), &vocabulary, &serde_json::Map::new()).unwrap();
    let opened = open(folder.path()).unwrap();
    assert_eq!(opened.vocabulary, vocabulary);
    assert_eq!(opened.model.frequencies(), trained.model.frequencies());
    assert_eq!(opened.model.fitness(), trained.model.fitness());
    for q in 0..events.len() {
        let mut again = vec![0.0; 3];
        opened.model.forward(&events, q..q + 1, &mut again).unwrap();
        assert_eq!(again, row(&trained.model, &events, q));
    }
}
