//! Networks as density models.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use candle_core::Tensor;
use support::{architectures, numbers, weights};
use trace_candle::{CandleModel, Tokens};
use trace_core::numerics::log_sum_exp;
use trace_core::{DensityModel, Discovery, EventId, EventSequence};

const EVENTS: usize = 5; // of 7 tokens

fn models(begin: Option<u32>) -> Vec<CandleModel> {
    let tokens = Tokens { events: EVENTS, begin, end: false };
    architectures()
        .iter()
        .map(|architecture| CandleModel::new(architecture, &weights(architecture), tokens).unwrap())
        .collect()
}

fn events(ids: &[u32]) -> Vec<EventId> {
    ids.iter().copied().map(EventId).collect()
}

#[test]
fn rows_are_normalized_logits_of_the_events() {
    for (model, architecture) in models(Some(5)).iter().zip(architectures()) {
        let mut rows = vec![f64::NAN; 6 * EVENTS];
        model.forward(&events(&[0, 3, 1, 4, 2]), 0..6, &mut rows).unwrap();
        let network = architecture.network(&weights(&architecture)).unwrap();
        let tokens = Tensor::new(&[[5u32, 0, 3, 1, 4, 2]], &candle_core::Device::Cpu).unwrap();
        let logits = numbers(&network.logits(&tokens).unwrap());
        for (row, logits) in rows.chunks(EVENTS).zip(logits.chunks(7)) {
            assert!(log_sum_exp(row.iter().copied()).abs() < 1e-12);
            for (a, b) in row.iter().zip(logits) {
                assert!(((a - row[0]) - (b - logits[0])).abs() < 1e-5);
            }
        }
        assert_eq!((model.backbone(), model.vocabulary_size()), (architecture.name(), EVENTS));
        assert!(model.predicts_first());
    }
}

#[test]
fn the_end_is_one_more_column() {
    let tokens = Tokens { events: EVENTS, begin: Some(6), end: true };
    for (architecture, without) in architectures().iter().zip(models(Some(6))) {
        let model = CandleModel::new(architecture, &weights(architecture), tokens).unwrap();
        assert_eq!((model.row_size(), model.vocabulary_size(), model.end()), (EVENTS + 1, EVENTS, Some(EventId(5))));
        // The end closes the sequence as a target, and is not read.
        let closed = events(&[0, 3, 1, 5]);
        let (mut rows, mut plain) = (vec![f64::NAN; 4 * (EVENTS + 1)], vec![f64::NAN; 4 * EVENTS]);
        model.forward(&closed, 0..4, &mut rows).unwrap();
        without.forward(&closed[..3], 0..4, &mut plain).unwrap();
        let observed = model.read(&closed).unwrap().observed().to_vec();
        for (q, (row, plain)) in rows.chunks(EVENTS + 1).zip(plain.chunks(EVENTS)).enumerate() {
            assert!(log_sum_exp(row.iter().copied()).abs() < 1e-12);
            assert!((observed[q].log_p - row[closed[q].index()]).abs() < 1e-5);
            // Given that the case goes on, events are as probable as without an end.
            let goes_on = log_sum_exp(row[..EVENTS].iter().copied());
            assert!(row[EVENTS] < 0.0 && goes_on < 0.0);
            for (a, b) in row.iter().zip(plain) {
                assert!((a - goes_on - b).abs() < 1e-5);
            }
        }
    }
    let [architecture, ..] = architectures();
    let seven = Tokens { events: 7, begin: None, end: true };
    let error = CandleModel::new(&architecture, &weights(&architecture), seven).err().unwrap().to_string();
    assert!(error.contains("7 and an end do not go with a network of 7 tokens"), "{error}");
}

#[test]
fn positions_and_batches_agree_with_one_pass() {
    for begin in [None, Some(6)] {
        let first = usize::from(begin.is_none());
        for model in models(begin) {
            let sequences: Vec<Vec<EventId>> =
                (0..9).map(|s| (0..8).map(|t| EventId((s * t + s + t * t) % 5)).collect()).collect();
            let mut whole = vec![f64::NAN; 9 * (8 - first) * EVENTS];
            model.forward_batch(&sequences, first..8, &mut whole).unwrap();
            for (events, whole) in sequences.iter().zip(whole.chunks((8 - first) * EVENTS)) {
                for from in first..8 {
                    // No more than the events that a row may depend on.
                    let mut row = vec![f64::NAN; EVENTS];
                    model.forward(&events[..from], from..from + 1, &mut row).unwrap();
                    for (a, b) in row.iter().zip(&whole[(from - first) * EVENTS..]) {
                        assert!((a - b).abs() < 1e-5, "{}: {a} {b}", model.backbone());
                    }
                }
            }
            model.forward_batch(&[], 1..3, &mut []).unwrap();
            model.forward(&sequences[0], 3..3, &mut []).unwrap();
        }
    }
}

#[test]
fn without_a_begin_token_the_first_event_has_no_row() {
    for model in models(None) {
        assert!(!model.predicts_first());
        let mut row = vec![0.0; EVENTS];
        assert!(model.forward(&events(&[1, 2]), 0..1, &mut row).unwrap_err().to_string().contains("begin token"));
        assert!(model.read(&events(&[1, 2, 3])).unwrap().observed()[1].log_p < 0.0);
    }
}

#[test]
fn only_learned_positions_limit_the_length() {
    for begin in [None, Some(5)] {
        for model in models(begin) {
            let Some(limit) = model.max_length() else {
                assert_ne!(model.backbone(), "gpt2");
                continue;
            };
            let longest = vec![EventId(1); limit];
            let mut row = vec![0.0; EVENTS];
            model.forward(&longest, limit - 1..limit, &mut row).unwrap();
            assert!(model.forward(&longest, limit..limit + 1, &mut row).is_err());
        }
    }
}

#[test]
fn tokens_must_be_the_networks() {
    let [architecture, ..] = architectures();
    let refused = |events, begin| {
        CandleModel::new(&architecture, &weights(&architecture), Tokens { events, begin, end: false })
            .err()
            .unwrap()
            .to_string()
    };
    assert!(refused(0, None).starts_with("events: "));
    assert!(refused(8, None).starts_with("events: "));
    assert!(refused(5, Some(7)).starts_with("begin: "));
    let model = models(None).swap_remove(0);
    assert_eq!(model.frequencies(), None);
    let model = model.with_frequencies(vec![1.0; EVENTS]).unwrap();
    assert_eq!(model.frequencies(), Some(&[1.0; EVENTS][..]));
    assert!(model.with_frequencies(vec![1.0]).is_err());
}

#[test]
fn discovery_runs_on_them() {
    for model in models(Some(5)) {
        let sequence = EventSequence::new("s", events(&[0, 1, 2, 3, 4, 0, 1]));
        Discovery::new(&model).run(&sequence).unwrap();
    }
}
