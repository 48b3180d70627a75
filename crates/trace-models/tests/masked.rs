//! Training a masked model: it learns, and the same run gives the same bits however it was split up.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use trace_core::{EventId, Vocabulary};
use trace_models::neural::NetworkConfig;
use trace_models::neural::bert::BertConfig;
use trace_models::neural::train::{
    CorpusStatistics, LearningRates, Limit, OptimizerKind, Schedule, TrainEnd, TrainObserver, TrainProgress, TrainSpec,
    TrainState, Trained,
};
use trace_models::{Error, ModelRecord, open_encoder, write_folder};

const TYPES: usize = 12;

/// Sequences of different lengths, each with its own increment: an event follows from its neighbors.
fn corpus() -> Vec<Vec<EventId>> {
    let event = |i: usize, j: usize| EventId(((i * 5 + j * (1 + i % 3)) % TYPES) as u32);
    (0..240).map(|i| (0..6 + i % 31).map(|j| event(i, j)).collect()).collect()
}

fn network() -> NetworkConfig {
    NetworkConfig::Bert(BertConfig {
        vocab_size: TYPES + 1,
        hidden_size: 32,
        layers: 2,
        heads: 2,
        intermediate_size: 64,
        positions: 24,
        token_types: 1,
        layer_norm_eps: 1e-12,
    })
}

fn spec(steps: u64) -> TrainSpec {
    TrainSpec {
        optimizer: OptimizerKind::AdamW,
        learning_rate: 0.003,
        schedule: Schedule::Cosine,
        learning_rates: LearningRates::UNIFORM,
        weight_decay: 0.1,
        batch: 32,
        length: 24,
        limit: Limit::Steps(steps),
        seed: 7,
        checkpoint_seconds: 1e5,
    }
}

/// Stops after `stop_at` steps, and keeps the checkpoint.
#[derive(Default)]
struct Observer {
    stop_at: Option<u64>,
    kept: Option<TrainState>,
}

impl TrainObserver for Observer {
    fn progress(&mut self, progress: &TrainProgress) -> bool {
        self.stop_at != Some(progress.step)
    }

    fn checkpoint(&mut self, state: &TrainState) -> Result<(), Error> {
        self.kept = Some(state.clone());
        Ok(())
    }
}

fn train(spec: &TrainSpec, state: Option<TrainState>, observer: &mut Observer) -> Trained {
    let (corpus, network) = (corpus(), network());
    let statistics = CorpusStatistics::new(&corpus, TYPES, 0.1, spec.seed).unwrap();
    let state = state.unwrap_or_else(|| network.fresh_state(spec.seed, spec.optimizer));
    network.train(&corpus, &statistics, spec, state, observer).unwrap()
}

#[test]
fn the_loss_falls_far_below_that_of_frequencies() {
    let trained = train(&spec(400), None, &mut Observer::default());
    let loss = trained.held_out_loss.unwrap();
    assert!(loss < 1.3, "{loss} where a guess would have {}", (TYPES as f64).ln());

    let place = tempfile::tempdir().unwrap();
    let (folder, network) = (place.path().join("model"), network());
    let mut record = ModelRecord { held_out_loss: Some(loss), ..ModelRecord::default() };
    record.special_tokens.insert(network.last_token().to_owned(), TYPES as u32);
    let save = |folder: &std::path::Path| network.save(folder, &trained.state.best, &Vocabulary::ids(TYPES), record);
    write_folder(&folder, save).unwrap();
    let opened = open_encoder(&folder).unwrap();
    assert_eq!((opened.vocabulary.len(), opened.record.held_out_loss), (TYPES, Some(loss)));
    assert_eq!(NetworkConfig::Bert(opened.encoder.config().clone()), network);
    assert_eq!(opened.fingerprint, open_encoder(&folder).unwrap().fingerprint);
    // A masked event in the middle follows from both sides.
    let logits = opened.encoder.logits(&[1, 2, 3, TYPES as u32, 5, 6, 7]).unwrap();
    let row = &logits[3 * (TYPES + 1)..][..=TYPES];
    assert!((0..=TYPES).all(|other| other == 4 || row[other] < row[4]), "{row:?}");
    let attention = opened.encoder.attention(&corpus()[20][..20]).unwrap();
    assert_eq!(attention.len(), 20 * 20);
    for row in attention.chunks(20) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5 && row.iter().all(|weight| *weight >= 0.0));
    }
}

#[test]
fn a_run_is_the_same_bits_on_any_number_of_threads_and_after_an_interruption() {
    let spec = TrainSpec { batch: 64, ..spec(40) };
    let threads = |count: usize| rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap();
    let whole = threads(1).install(|| train(&spec, None, &mut Observer::default()));
    assert_eq!(whole.end, TrainEnd::Complete);
    let (again, state) = threads(3).install(|| {
        let mut observer = Observer { stop_at: Some(17), ..Observer::default() };
        let first = train(&spec, None, &mut observer);
        assert_eq!((first.end, first.state.step), (TrainEnd::Interrupted, 17));
        (train(&spec, observer.kept, &mut Observer::default()), first.state)
    });
    assert!(whole.state.weights == again.state.weights);
    assert_eq!(whole.held_out_loss.map(f64::to_bits), again.held_out_loss.map(f64::to_bits));
    assert!(state.weights != again.state.weights);
    // Another seed masks other positions.
    let other =
        train(&TrainSpec { seed: 8, ..spec }, Some(network().fresh_state(7, spec.optimizer)), &mut Observer::default());
    assert!(other.state.weights != whole.state.weights);
}

#[test]
fn windows_longer_than_the_learned_positions_are_refused() {
    let (corpus, network) = (corpus(), network());
    let statistics = CorpusStatistics::new(&corpus, TYPES, 0.1, 1).unwrap();
    let spec = TrainSpec { length: 25, ..spec(1) };
    let state = network.fresh_state(1, spec.optimizer);
    let error = network.train(&corpus, &statistics, &spec, state, &mut Observer::default()).unwrap_err();
    assert_eq!(error.to_string(), "length: 25 is more than 24 learned positions");
    let error = network.with_weights(vec![0.0; network.parameters()]).map(drop).unwrap_err();
    assert!(error.to_string().contains("a masked model predicts no next event"), "{error}");
}
