//! Discovery against its slow reference, on small random models with nothing but a forward pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::ops::Range;

use proptest::prelude::*;
use trace_core::numerics::normalize;
use trace_core::{
    DensityModel, Discovery, Divergence, Error, EventId, EventSequence, History, Intervention, Knowledge, LagRule,
    Memory, ModelError, Particles, Position, Proposal, Threshold, TypeSet, Verdict, reference,
};

/// Scores every type by a hash of the last three events: no structure, full dependence, as sharp as asked for.
struct Hashed {
    size: usize,
    sharpness: f64,
    frequencies: Vec<f64>,
}

impl Hashed {
    fn new(size: usize, sharpness: f64) -> Self {
        let frequencies = (0..size).map(|event| (event % 4) as f64).collect();
        Self { size, sharpness, frequencies }
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 33)
}

impl DensityModel for Hashed {
    fn vocabulary_size(&self) -> usize {
        self.size
    }

    fn backbone(&self) -> &'static str {
        "hashed"
    }

    fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        for (q, row) in positions.zip(rows.chunks_exact_mut(self.size)) {
            for (event, value) in row.iter_mut().enumerate() {
                let mut sum = 0.0;
                for lag in 1..=3usize.min(q) {
                    let hash = mix(u64::from(events[q - lag].0) * 1000 + event as u64 * 10 + lag as u64);
                    sum += (hash % 1000) as f64 / 1000.0;
                }
                *value = sum * self.sharpness;
            }
            normalize(row);
        }
        Ok(())
    }

    fn frequencies(&self) -> Option<&[f64]> {
        Some(&self.frequencies)
    }
}

fn sequence(size: usize, length: usize, salt: u64) -> EventSequence {
    let events = (0..length).map(|i| EventId((mix(salt * 77 + i as u64) % size as u64) as u32)).collect();
    EventSequence::new(format!("s{salt}"), events)
}

#[derive(Clone, Copy, Debug)]
struct Choice {
    intervention: Intervention,
    proposal: Proposal,
    divergence: Divergence,
    history: History,
    particles: Particles,
    memory: Memory,
    context: usize,
}

fn choices() -> impl Strategy<Value = Choice> {
    (
        prop_oneof![Just(Intervention::Atomic), Just(Intervention::Staircase)],
        prop_oneof![Just(Proposal::Uniform), Just(Proposal::Unigram), Just(Proposal::Model)],
        prop_oneof![Just(Divergence::Event), Just(Divergence::Full)],
        prop_oneof![Just(History::Observed), Just(History::Sampled)],
        prop_oneof![Just(Particles::Auto), Just(Particles::All), (2usize..40).prop_map(Particles::Fixed)],
        prop_oneof![Just(Memory::All), (1usize..5).prop_map(Memory::Lags)],
        0usize..3,
    )
        .prop_map(|(intervention, proposal, divergence, history, particles, memory, context)| Choice {
            intervention,
            proposal,
            divergence,
            history,
            // What cannot be enumerated is drawn, and what has no context to sample is given one.
            particles: match (particles, intervention, history) {
                (Particles::All, Intervention::Staircase, _) | (Particles::All, _, History::Sampled) => {
                    Particles::Fixed(6)
                }
                _ => particles,
            },
            memory,
            context: if history == History::Sampled { context.max(1) } else { context },
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn equals_the_reference(choice in choices(), size in 2usize..40, length in 5usize..14, salt in 0u64..1000, sharpness in 0.1..60.0f64) {
        let model = Hashed::new(size.max(3), sharpness);
        let sequence = sequence(model.size, length, salt);
        let discovery = Discovery::new(&model)
            .intervention(choice.intervention)
            .proposal(choice.proposal)
            .divergence(choice.divergence)
            .history(choice.history)
            .particles(choice.particles)
            .memory(choice.memory)
            .context(choice.context)
            .threshold(0.05)
            .seed(salt);
        let found = discovery.run(&sequence).unwrap();
        let first = choice.context + usize::from(choice.history == History::Sampled);
        let mut expected = Vec::new();
        for cause in first..length - 1 {
            for effect in cause + 1..length.min(cause + 1 + choice.memory.within(length)) {
                expected.push((Position(cause as u32), Position(effect as u32)));
            }
        }
        let tested: Vec<_> = found.graph.pairs().iter().map(|pair| (pair.cause, pair.effect)).collect();
        prop_assert_eq!(tested, expected);
        for pair in found.graph.pairs() {
            let slow = reference::pair(&discovery, &sequence, pair.cause, pair.effect, pair.particles as usize).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
            prop_assert!(close(pair.strength, slow.strength), "{:?} {:?}", pair, slow);
            prop_assert!((pair.std_error - slow.std_error).abs() <= 1e-7 * (1.0 + slow.strength), "{:?} {:?}", pair, slow);
            prop_assert!(close(pair.log_ratio, slow.log_ratio), "{:?} {:?}", pair, slow);
            prop_assert!(close(pair.probability, slow.probability));
            prop_assert!(close(pair.probability_replaced, slow.probability_replaced));
            prop_assert_eq!(pair.particles, slow.particles);
        }
    }
}

#[test]
fn results_do_not_depend_on_threads_or_on_company() {
    let model = Hashed::new(300, 8.0);
    let discovery = Discovery::new(&model).memory(3).seed(5);
    let sequence = sequence(300, 40, 1);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| discovery.run(&sequence).unwrap())
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(5));
    assert_ne!(one, discovery.seed(6).run(&sequence).unwrap());
}

#[test]
fn the_staircase_equals_atomic_at_lag_one() {
    let model = Hashed::new(50, 6.0);
    let sequence = sequence(50, 12, 3);
    let run = |intervention| {
        Discovery::new(&model).intervention(intervention).particles(16).threshold(0.05).run(&sequence).unwrap().graph
    };
    let (atomic, staircase) = (run(Intervention::Atomic), run(Intervention::Staircase));
    let mut differs = 0;
    for (a, s) in atomic.pairs().iter().zip(staircase.pairs()) {
        if a.lag.0 == 1 {
            assert_eq!(a.strength, s.strength);
        } else {
            differs += usize::from(a.strength != s.strength);
        }
    }
    assert!(differs > 10);
}

#[test]
fn adaptive_rounds_spend_draws_where_it_is_close() {
    let model = Hashed::new(600, 10.0);
    let sequence = sequence(600, 60, 9);
    let auto = Discovery::new(&model).memory(3).proposal(Proposal::Uniform).run(&sequence).unwrap();
    let exact =
        Discovery::new(&model).memory(3).proposal(Proposal::Uniform).particles(Particles::All).run(&sequence).unwrap();
    let most = auto.graph.pairs().iter().map(|p| p.particles).max().unwrap();
    let least = auto.graph.pairs().iter().map(|p| p.particles).min().unwrap();
    assert!(least < most, "{least} {most}");
    assert!(auto.branch_positions < exact.branch_positions);
    let wrong = auto.graph.pairs().iter().zip(exact.graph.pairs()).filter(|(a, e)| a.kept != e.kept).count();
    assert!(wrong * 50 <= auto.graph.pairs().len(), "{wrong} of {}", auto.graph.pairs().len());
}

#[test]
fn draws_without_replacement_become_exact() {
    let model = Hashed::new(200, 10.0);
    let sequence = sequence(200, 10, 4);
    let base = Discovery::new(&model).memory(3).proposal(Proposal::Uniform);
    let exact = base.particles(Particles::All).run(&sequence).unwrap();
    // 199 of 200 draws without replacement leave almost no error; the same number with replacement would.
    let nearly = base.particles(199).run(&sequence).unwrap();
    for (a, b) in nearly.graph.pairs().iter().zip(exact.graph.pairs()) {
        assert!((a.strength - b.strength).abs() <= 20.0 * a.std_error + 1e-12);
        assert!(a.std_error * 10.0 < (b.strength + 0.01), "{} {}", a.std_error, b.strength);
        assert_eq!(b.std_error, 0.0);
    }
    // Asked for at least V draws, the types are enumerated.
    assert_eq!(base.particles(200).run(&sequence).unwrap().graph, exact.graph);
}

#[test]
fn bad_settings_are_named() {
    let model = Hashed::new(20, 1.0);
    let base = Discovery::new(&model);
    let name = |discovery: Discovery<'_>| match discovery.plan() {
        Err(Error::Setting { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(name(base.particles(0)), "particles");
    assert_eq!(name(base.particles(1)), "particles");
    assert_eq!(name(base.particles(usize::MAX)), "particles");
    assert_eq!(name(base.particles(Particles::All).intervention(Intervention::Staircase)), "particles");
    assert_eq!(name(base.particles(Particles::All).history(History::Sampled).context(2)), "particles");
    assert_eq!(name(base.memory(0)), "memory");
    assert_eq!(name(base.history(History::Sampled)), "history");
    assert_eq!(name(base.threshold(f64::NAN)), "threshold");
    assert_eq!(name(base.threshold(-0.1)), "threshold");
    assert_eq!(name(base.threshold(f64::INFINITY)), "threshold");
    assert_eq!(name(base.threshold(Threshold::Bound)), "threshold");
    assert_eq!(name(Discovery::new(&Hashed::new(1, 1.0))), "model");
}

#[test]
fn defaults_follow_the_model_and_the_intervention() {
    let model = Hashed::new(20, 1.0);
    let plan = Discovery::new(&model).plan().unwrap();
    assert_eq!((plan.proposal, plan.threshold, plan.memory), (Proposal::Unigram, 0.05, Memory::Lags(16)));
    let plan = Discovery::new(&model).intervention(Intervention::Staircase).plan().unwrap();
    assert!((plan.threshold - 1.72e-2 / 20.0).abs() < 1e-15);
}

#[test]
fn sequences_that_cannot_run_are_refused() {
    let model = Hashed::new(5, 1.0);
    let run = |events: &[u32], context| {
        let events = events.iter().copied().map(EventId).collect();
        Discovery::new(&model).context(context).run(&EventSequence::new("s", events))
    };
    assert!(matches!(run(&[], 0), Err(Error::TooShort { length: 0, needed: 2 })));
    assert!(matches!(run(&[1, 2, 3], 2), Err(Error::TooShort { length: 3, needed: 4 })));
    assert!(matches!(run(&[1, 2, 3], usize::MAX), Err(Error::TooShort { .. })));
    assert!(matches!(run(&[1, 5], 0), Err(Error::UnknownEvent { event: 5, position: 1, vocabulary: 5 })));
    assert!(run(&[1, 2], 0).is_ok());
}

/// A model that claims an impossible event.
struct Impossible;

impl DensityModel for Impossible {
    fn vocabulary_size(&self) -> usize {
        2
    }

    fn backbone(&self) -> &'static str {
        "impossible"
    }

    fn forward(&self, _: &[EventId], _: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        for row in rows.chunks_exact_mut(2) {
            row.copy_from_slice(&[0.0, f64::NEG_INFINITY]);
        }
        Ok(())
    }
}

#[test]
fn an_event_of_probability_zero_is_an_error_not_a_number() {
    let sequence = EventSequence::new("s", vec![EventId(0), EventId(1)]);
    let outcome = Discovery::new(&Impossible).run(&sequence);
    assert!(matches!(outcome, Err(Error::NotFinite { position: 1 })), "{outcome:?}");
}

/// Excluded pairs are left out and cost nothing; the others are what they are without knowledge, to the bit.
#[test]
fn knowledge_leaves_out_and_keeps_but_changes_no_number() {
    let model = Hashed::new(12, 1.0);
    let sequence = sequence(12, 24, 3);
    let rule = LagRule { causes: TypeSet::All, effects: TypeSet::from_iter([sequence.events[5]]), least: 1, most: 2 };
    let knowledge = Knowledge {
        only_effects: (0..6).map(EventId).collect(),
        forbidden: vec![(TypeSet::All, TypeSet::from_iter([EventId(7)]))],
        required: [(EventId(8), EventId(9)), (EventId(9), EventId(8)), (EventId(10), EventId(11))]
            .into_iter()
            .collect(),
        lags: vec![rule],
        ..Knowledge::default()
    };
    for (history, intervention) in [
        (History::Observed, Intervention::Atomic),
        (History::Observed, Intervention::Staircase),
        (History::Sampled, Intervention::Atomic),
    ] {
        let plain = Discovery::new(&model)
            .history(history)
            .context(1)
            .intervention(intervention)
            .proposal(Proposal::Uniform)
            .particles(6)
            .memory(4)
            .threshold(1e9);
        let without = plain.run(&sequence).unwrap();
        let with = plain.knowledge(&knowledge).run(&sequence).unwrap();
        let discovery = plain.knowledge(&knowledge);
        let mut expected = without.graph.pairs().to_vec();
        let verdict = |edge: &trace_core::Pair| discovery.verdict(&sequence, edge.cause, edge.effect);
        let excluded: Vec<_> =
            expected.iter().filter(|edge| verdict(edge) == Verdict::Excluded).map(|e| (e.cause, e.effect)).collect();
        expected.retain(|edge| verdict(edge) != Verdict::Excluded);
        for edge in &mut expected {
            edge.required = verdict(edge) == Verdict::Required;
            edge.kept = edge.required;
        }
        assert!(expected.iter().any(|edge| edge.kept) && excluded.len() > 20);
        assert_eq!(with.graph.pairs(), expected);
        assert_eq!(with.graph.excluded(), excluded);
        assert!(with.branch_positions < without.branch_positions * 2 / 3);
    }
}
