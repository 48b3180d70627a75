//! The synthetic process: fast scoring against the slow reference, calibration, and folder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use proptest::prelude::*;
use trace_core::numerics::entropy;
use trace_core::{
    DensityModel, Discovery, Divergence, EventId, EventSequence, History, Intervention, Memory, Particles,
    PlainReading, Proposal, Reading, reference,
};
use trace_models::Description;
use trace_models::ngram::{NgramSpec, train};
use trace_sim::{Process, ProcessSpec};

fn process(vocabulary: usize, memory: usize, redundancy: f64, seed: u64) -> Process {
    Process::draw(&ProcessSpec { vocabulary, memory, redundancy, decay: 0.7, seed }).unwrap()
}

fn scaled(vocabulary: usize, memory: usize, scale: Option<f64>, seed: u64) -> Process {
    let spec = ProcessSpec { vocabulary, memory, redundancy: 0.0, decay: 0.7, seed };
    match scale {
        None => Process::draw(&spec).unwrap(),
        Some(scale) => Process::draw_at_scale(&spec, scale).unwrap(),
    }
}

fn sequence(process: &Process, seed: u64, length: usize) -> EventSequence {
    EventSequence::new(format!("s{seed}"), process.simulate(seed, 0, 1, length).remove(0).events)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// At scale 40 most events are near-certain; without a scale the process is null.
    #[test]
    fn fast_equals_reference(
        vocabulary in 6usize..60,
        memory in 1usize..5,
        scale in prop_oneof![Just(None), (0.5..8.0f64).prop_map(Some), Just(Some(40.0))],
        seed in 0u64..1000,
        staircase in any::<bool>(),
        full in any::<bool>(),
        sampled in any::<bool>(),
        particles in prop_oneof![Just(Particles::Auto), (2usize..20).prop_map(Particles::Fixed)],
        lags in 1usize..7,
    ) {
        let process = scaled(vocabulary, memory, scale, seed);
        let sequence = sequence(&process, seed, 14);
        let discovery = Discovery::new(&process)
            .intervention(if staircase { Intervention::Staircase } else { Intervention::Atomic })
            .divergence(if full { Divergence::Full } else { Divergence::Event })
            .history(if sampled { History::Sampled } else { History::Observed })
            .context(if sampled { 2 } else { 0 })
            .particles(particles)
            .memory(lags)
            .threshold(0.05)
            .seed(seed);
        let found = discovery.run(&sequence).unwrap();
        for pair in found.graph.pairs().iter().filter(|pair| pair.particles > 0) {
            let slow = reference::pair(&discovery, &sequence, pair.cause, pair.effect, pair.particles as usize).unwrap();
            prop_assert!((pair.strength - slow.strength).abs() <= 1e-9 * (1.0 + slow.strength), "{:?} {:?}", pair, slow);
            prop_assert!((pair.log_ratio - slow.log_ratio).abs() <= 1e-9 * (1.0 + slow.log_ratio.abs()), "{:?} {:?}", pair, slow);
            prop_assert!((pair.probability - slow.probability).abs() <= 1e-9);
            prop_assert!((pair.probability_replaced - slow.probability_replaced).abs() <= 1e-9);
            if scale.is_none() {
                prop_assert_eq!(pair.strength, 0.0);
            }
        }
    }
}

#[test]
fn near_certain_events_do_occur_in_that_test() {
    let process = scaled(40, 3, Some(40.0), 3);
    let sequence = sequence(&process, 3, 64);
    let observed = process.read(&sequence.events).unwrap().observed().to_vec();
    let certain = observed.iter().filter(|score| score.log_not_p < -30.0).count();
    assert!(certain >= 5, "{certain} events with 1 − p < 1e-13");
    assert!(observed.iter().all(|score| score.log_not_p.is_finite()));
}

#[test]
fn a_reading_equals_the_plain_forward_pass() {
    let process = process(30, 3, 0.6, 5);
    let events = sequence(&process, 5, 20).events;
    let plain = PlainReading::new(&process, &events).unwrap();
    let fast = process.read(&events).unwrap();
    for (a, b) in plain.observed().iter().zip(fast.observed()) {
        assert!((a.log_p - b.log_p).abs() < 1e-12 && (a.log_not_p - b.log_not_p).abs() < 1e-12);
    }
}

#[test]
fn calibration_meets_its_target_on_fresh_sequences() {
    for (target, seed) in [(0.3, 1), (0.6, 2), (0.8, 3)] {
        let process = process(200, 4, target, seed);
        let fresh = process.simulate(99, 0, 200, 54);
        let mean = fresh.iter().map(|s| s.entropy).sum::<f64>() / (200.0 * 50.0);
        let redundancy = 1.0 - mean / 200f64.ln();
        assert!((redundancy - target).abs() < 0.02, "{redundancy} for {target}");
    }
}

#[test]
fn simulated_entropy_is_that_of_the_rows() {
    let process = process(50, 2, 0.5, 8);
    let simulated = process.simulate(4, 0, 1, 30).remove(0);
    let mut row = vec![0.0; 50];
    let mut sum = 0.0;
    for q in 0..30 {
        process.forward(&simulated.events, q..q + 1, &mut row).unwrap();
        assert!((row.iter().map(|v| v.exp()).sum::<f64>() - 1.0).abs() < 1e-12);
        sum += if q >= process.memory() { entropy(&row) } else { 0.0 };
    }
    assert!((sum - simulated.entropy).abs() < 1e-9);
}

#[test]
fn sequences_do_not_depend_on_how_many_are_drawn() {
    let process = process(50, 2, 0.5, 8);
    let all = process.simulate(4, 0, 6, 20);
    assert_eq!(process.simulate(4, 3, 2, 20), all[3..5]);
}

#[test]
fn the_null_process_is_uniform_and_causes_nothing() {
    let null = process(50, 4, 0.0, 1);
    let sequence = sequence(&null, 1, 40);
    for intervention in [Intervention::Atomic, Intervention::Staircase] {
        let found = Discovery::new(&null).intervention(intervention).threshold(0.0).run(&sequence).unwrap();
        assert_eq!(found.graph.edges().count(), 0);
        assert!(found.graph.pairs().len() > 100);
    }
}

#[test]
fn effects_beyond_the_memory_are_exactly_none() {
    let process = process(200, 2, 0.6, 2);
    let sequence = sequence(&process, 2, 20);
    let uniform = Discovery::new(&process).proposal(Proposal::Uniform);
    let found = uniform.memory(Memory::All).threshold(0.0).run(&sequence).unwrap();
    for pair in found.graph.pairs() {
        let direct = pair.lag.0 <= 2 && pair.effect.0 >= 2;
        assert_eq!(pair.strength > 0.0, direct, "{pair:?}");
    }
}

#[test]
fn a_folder_gives_the_same_process_back() {
    let folder = tempfile::tempdir().unwrap();
    for redundancy in [0.0, 0.6] {
        let mut process = process(40, 3, redundancy, 11);
        process.set_entropy(0.0, 0, 1);
        process.save(folder.path(), &serde_json::Map::new()).unwrap();
        let opened = trace_sim::open(Description::read(folder.path()).unwrap()).unwrap();
        let events: Vec<EventId> = (0..20).map(|i| EventId(i * 7 % 40)).collect();
        let rows = |model: &dyn DensityModel| {
            let mut rows = vec![0.0; 20 * 40];
            model.forward(&events, 0..20, &mut rows).unwrap();
            rows
        };
        assert_eq!(rows(&process), rows(&*opened.model));
        assert_eq!(opened.model.fitness().epsilon(), Some(0.0));
        assert_eq!(opened.parameters, process.parameters());
        assert_eq!(opened.model.reach(), Some(3));
    }
}

#[test]
fn specs_out_of_range_are_named() {
    let good = ProcessSpec { vocabulary: 20, memory: 2, redundancy: 0.5, decay: 1.0, seed: 0 };
    for (spec, name) in [
        (ProcessSpec { vocabulary: 1, ..good }, "vocabulary"),
        (ProcessSpec { vocabulary: usize::MAX, ..good }, "vocabulary"),
        (ProcessSpec { memory: 0, ..good }, "memory"),
        (ProcessSpec { redundancy: 1.0, ..good }, "redundancy"),
        (ProcessSpec { redundancy: -0.1, ..good }, "redundancy"),
        (ProcessSpec { redundancy: f64::NAN, ..good }, "redundancy"),
        (ProcessSpec { redundancy: 0.001, ..good }, "redundancy"),
        (ProcessSpec { decay: f64::INFINITY, ..good }, "decay"),
        (ProcessSpec { decay: -1.0, ..good }, "decay"),
    ] {
        let error = Process::draw(&spec).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name}: ")), "{error}");
    }
}

#[test]
fn the_model_proposal_draws_what_the_process_expects() {
    let process = process(40, 2, 0.8, 6);
    let sequence = sequence(&process, 6, 30);
    let strength = |proposal| {
        let found = Discovery::new(&process).proposal(proposal).particles(Particles::All).run(&sequence).unwrap();
        found.graph.pairs().iter().map(|pair| pair.strength).sum::<f64>()
    };
    // A replacement that the process expects changes less than a random event.
    assert!(strength(Proposal::Model) < strength(Proposal::Uniform));
}

/// A small version of the measurement in `research/diary.md`, with another seed.
#[test]
fn adaptive_particles_do_less_work_and_decide_better_than_128_draws() {
    let spec = ProcessSpec { vocabulary: 1000, memory: 6, redundancy: 0.6, decay: 1.0, seed: 31 };
    let process = Process::draw(&spec).unwrap();
    let (mut work, mut wrong, mut edges) = ([0; 2], [0; 2], 0);
    for (i, simulated) in process.simulate(31, 0, 4, 64).into_iter().enumerate() {
        let sequence = EventSequence::new(format!("s{i}"), simulated.events);
        let uniform = Discovery::new(&process).proposal(Proposal::Uniform);
        let exact = uniform.particles(Particles::All).run(&sequence).unwrap().graph;
        edges += exact.edges().count();
        for (which, particles) in [Particles::Auto, Particles::Fixed(128)].into_iter().enumerate() {
            let found = uniform.particles(particles).seed(1).run(&sequence).unwrap();
            work[which] += found.branch_positions;
            wrong[which] += exact.pairs().iter().zip(found.graph.pairs()).filter(|(a, b)| a.kept != b.kept).count();
        }
    }
    assert!(edges > 100, "{edges}");
    assert!(work[0] * 10 <= work[1] * 6, "{work:?}");
    // F1 ≥ 0.97 means at most about 6 % of the edges wrong, counting false and missed ones.
    assert!(wrong[0] * 100 <= edges * 6 && wrong[0] <= wrong[1], "{wrong:?} of {edges}");
}

#[test]
fn training_beats_frequencies_on_a_process_with_memory() {
    let process =
        Process::draw(&ProcessSpec { vocabulary: 20, memory: 1, redundancy: 0.5, decay: 1.0, seed: 3 }).unwrap();
    let sequences: Vec<EventSequence> = process
        .simulate(3, 0, 300, 40)
        .into_iter()
        .enumerate()
        .map(|(i, s)| EventSequence::new(i.to_string(), s.events))
        .collect();
    let trained = train(&sequences, 20, &NgramSpec::default()).unwrap();
    assert_eq!(trained.model.order(), 2, "{:?}", trained.losses);
    let fitness = trained.model.fitness();
    let (loss, unigram) = (fitness.held_out_loss.unwrap(), fitness.unigram_loss.unwrap());
    assert!(loss < unigram - 0.5, "{loss} {unigram}");
    assert_eq!(trained.losses.len(), 5);
    // A tenth, as the ids fall.
    let held_out = trained.held_out.len();
    assert!((20..45).contains(&held_out), "{held_out}");
    assert_eq!(trained.model.frequencies().unwrap().iter().sum::<f64>(), (300 - held_out) as f64 * 40.0);
}
