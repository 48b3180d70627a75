//! Discovery against its slow reference, on small random models with nothing but a forward pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::ops::Range;

use proptest::prelude::*;
use trace_core::evidence::{PairLists, PairScope, PlaceSums};
use trace_core::numerics::normalize;
use trace_core::{
    DensityModel, Discovery, Divergence, Error, EventId, EventSequence, Families, History, Intervention, Knowledge,
    LagRule, Memory, ModelError, Particles, Position, Prior, Proposal, Question, Threshold, TypeSet, Verdict,
    reference,
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
        prop_oneof![Just(Proposal::Uniform), Just(Proposal::Unigram), Just(Proposal::Model), Just(Proposal::Plausible)],
        prop_oneof![Just(Divergence::Event), Just(Divergence::Full)],
        prop_oneof![Just(History::Observed), Just(History::Sampled)],
        prop_oneof![Just(Particles::Auto), Just(Particles::All), (2usize..40).prop_map(Particles::Fixed)],
        prop_oneof![Just(Memory::All), (1usize..5).prop_map(Memory::Lags)],
        0usize..3,
    )
        .prop_map(|(intervention, proposal, divergence, history, particles, memory, context)| Choice {
            intervention,
            // What lies between is weighed only where it is as observed.
            proposal: match (proposal, intervention, history) {
                (Proposal::Plausible, Intervention::Staircase, _) | (Proposal::Plausible, _, History::Sampled) => {
                    Proposal::Model
                }
                _ => proposal,
            },
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
            if pair.particles == 0 {
                // Every draw was the effect's own type.
                prop_assert!(!pair.kept && pair.log_ratio == 0.0);
                continue;
            }
            let slow = reference::pair(&discovery, &sequence, pair.cause, pair.effect, pair.particles as usize).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
            prop_assert!(close(pair.strength, slow.strength), "{:?} {:?}", pair, slow);
            prop_assert!((pair.std_error - slow.std_error).abs() <= 1e-7 * (1.0 + slow.strength), "{:?} {:?}", pair, slow);
            prop_assert!(close(pair.log_ratio, slow.log_ratio), "{:?} {:?}", pair, slow);
            prop_assert!(close(pair.probability, slow.probability));
            prop_assert!(close(pair.probability_replaced, slow.probability_replaced));
            prop_assert_eq!(pair.particles, slow.particles);
            prop_assert_eq!(pair.verdict, slow.verdict, "{:?} {:?}", pair, slow);
            prop_assert_eq!(pair.overlap.is_some(), slow.overlap.is_some());
            if let (Some(fast), Some(slow)) = (pair.overlap, slow.overlap) {
                prop_assert!(close(fast, slow), "{} {}", fast, slow);
            }
            if let (Some(fast), Some(slow)) = (pair.effective_particles, slow.effective_particles) {
                prop_assert!(close(fast, slow), "{} {}", fast, slow);
            }
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
        Discovery::new(&model)
            .intervention(intervention)
            .proposal(Proposal::Uniform)
            .particles(50)
            .threshold(0.05)
            .run(&sequence)
            .unwrap()
            .graph
    };
    let (atomic, staircase) = (run(Intervention::Atomic), run(Intervention::Staircase));
    let mut differs = 0;
    for (a, s) in atomic.pairs().iter().zip(staircase.pairs()) {
        if a.lag.0 == 1 {
            // All types in one order and in another.
            assert!((a.strength - s.strength).abs() < 1e-12, "{a:?} {s:?}");
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
    // 198 of 199 other types leave almost no error; the same number with replacement would.
    let nearly = base.particles(198).run(&sequence).unwrap();
    for (a, b) in nearly.graph.pairs().iter().zip(exact.graph.pairs()) {
        assert!((a.strength - b.strength).abs() <= 20.0 * a.std_error + 1e-12);
        assert!(a.std_error < 0.01, "{} {}", a.std_error, b.strength);
        assert_eq!(b.std_error, 0.0);
    }
    let drawn = base.particles(199).run(&sequence).unwrap();
    for (a, b) in drawn.graph.pairs().iter().zip(exact.graph.pairs()) {
        assert!((a.strength - b.strength).abs() < 1e-12 && a.std_error == 0.0);
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
    assert_eq!((plan.proposal, plan.threshold, plan.memory), (Proposal::Plausible, 0.05, Memory::Lags(16)));
    let plan = Discovery::new(&model).intervention(Intervention::Staircase).plan().unwrap();
    assert!((plan.threshold - 1.72e-2 / 20.0).abs() < 1e-15);
    assert_eq!(plan.proposal, Proposal::Unigram, "what lies between is replaced too");
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
        3
    }

    fn backbone(&self) -> &'static str {
        "impossible"
    }

    fn forward(&self, _: &[EventId], _: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        for row in rows.chunks_exact_mut(3) {
            row.copy_from_slice(&[0.5f64.ln(), 0.5f64.ln(), f64::NEG_INFINITY]);
        }
        Ok(())
    }
}

#[test]
fn an_event_of_probability_zero_is_an_error_not_a_number() {
    let sequence = EventSequence::new("s", vec![EventId(0), EventId(2)]);
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
        let prior = |edge: &trace_core::Pair| discovery.prior(&sequence, edge.cause, edge.effect);
        let excluded: Vec<_> =
            expected.iter().filter(|edge| prior(edge) == Prior::Excluded).map(|e| (e.cause, e.effect)).collect();
        expected.retain(|edge| prior(edge) != Prior::Excluded);
        for edge in &mut expected {
            edge.required = prior(edge) == Prior::Required;
            edge.kept = edge.required;
        }
        assert!(expected.iter().any(|edge| edge.kept) && excluded.len() > 20);
        assert_eq!(with.graph.pairs(), expected);
        assert_eq!(with.graph.excluded(), excluded);
        assert!(with.branch_positions < without.branch_positions * 2 / 3);
    }
}

/// A model with an end of the case in its rows.
struct Ending(Hashed);

impl DensityModel for Ending {
    fn vocabulary_size(&self) -> usize {
        self.0.size - 1
    }

    fn backbone(&self) -> &'static str {
        "ending"
    }

    fn predicts_end(&self) -> bool {
        true
    }

    fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        self.0.forward(events, positions, rows)
    }
}

#[test]
fn the_end_is_an_effect_where_it_is_asked_for_and_never_a_cause() {
    let model = Ending(Hashed::new(9, 3.0));
    let mut sequence = sequence(8, 10, 5);
    let run = |sequence: &EventSequence, end| Discovery::new(&model).memory(3).end(end).run(sequence).unwrap().graph;
    let last = |graph: &trace_core::SampleGraph| graph.pairs().iter().map(|pair| pair.effect.0).max();
    assert_eq!(last(&run(&sequence, true)), Some(9), "the case goes on");
    sequence.ended = true;
    assert_eq!(last(&run(&sequence, false)), Some(9));
    let graph = run(&sequence, true);
    assert_eq!(last(&graph), Some(10));
    assert!(graph.pairs().iter().all(|pair| pair.cause.0 < 10));
    let discovery = Discovery::new(&model).memory(3).end(true);
    for pair in graph.pairs().iter().filter(|pair| pair.effect.0 == 10) {
        let slow = reference::pair(&discovery, &sequence, pair.cause, pair.effect, 8).unwrap();
        assert!((pair.strength - slow.strength).abs() < 1e-12 && (pair.log_ratio - slow.log_ratio).abs() < 1e-12);
    }
    let without = Hashed::new(9, 3.0);
    assert!(matches!(Discovery::new(&without).end(true).plan(), Err(Error::Setting { name: "end", .. })));
}

/// The sums of one pair of types by their definition, from plain forward passes.
fn evidence(model: &Hashed, sequence: &EventSequence, memory: usize, (u, v): (EventId, EventId)) -> PlaceSums {
    let size = model.size;
    let row = |events: &[EventId], position: usize| {
        let mut row = vec![0.0; size];
        model.forward(events, position..position + 1, &mut row).unwrap();
        row.iter().map(|value| value.exp()).collect::<Vec<f64>>()
    };
    let events = &sequence.events;
    let mut sums = PlaceSums::default();
    for j in 0..events.len() - 1 {
        for q in j + 1..events.len().min(j + memory + 1) {
            let (x, y) = (events[j], events[q]);
            if (x == v && u != v) || sequence.tied(Position(j as u32), Position(q as u32)) {
                continue;
            }
            let edited = |r: usize| {
                let mut edited = events.clone();
                edited[j] = EventId(r as u32);
                edited
            };
            let weight = |r: usize| {
                let between = (j + 1..q).map(|k| row(&edited(r), k)[events[k].index()]);
                row(events, j)[r] * between.product::<f64>()
            };
            let total: f64 = (0..size).map(weight).sum();
            let allowed = |r: usize| u == v || r != v.index();
            let kept: f64 = (0..size).filter(|r| allowed(*r)).map(|r| weight(r) / total).sum();
            let share = |r: usize| weight(r) / total / kept;
            let p: f64 = (0..size).filter(|r| allowed(*r)).map(|r| share(r) * row(&edited(r), q)[v.index()]).sum();
            let of = |holds: bool| if holds { 1.0 } else { 0.0 };
            let share = share(u.index());
            sums.residual += (of(x == u) - share) * (of(y == v) - p);
            sums.weight += share * (1.0 - share) * p;
            sums.variance += share * (1.0 - share) * p * (1.0 - p);
            if x == u && !events[j + 1..q].contains(&u) {
                sums.expected += p;
                sums.observed += of(y == v);
            }
        }
    }
    sums
}

#[test]
fn evidence_is_what_its_definition_says() {
    let model = Hashed::new(6, 2.0);
    let sequences: Vec<EventSequence> = (0..5)
        .map(|salt| {
            let mut sequence = sequence(6, 12, 40 + salt);
            sequence.times = Some((0..12).map(|i| f64::from(i / 2 * 2)).collect());
            sequence
        })
        .collect();
    let scope =
        PairScope { types: 6, memory: Memory::Lags(3), first_cause: 0, end: None, knowledge: None, families: None };
    // Every pair, so that rare ones are looked at too.
    let often: Vec<EventSequence> = sequences.iter().flat_map(|s| std::iter::repeat_n(s.clone(), 5)).collect();
    let list = PairLists::count(&often, scope, None);
    assert!(list.whether.len() > 25);
    for proposal in [Proposal::Uniform, Proposal::Plausible] {
        let discovery = Discovery::new(&model).memory(3).proposal(proposal).evidence(&list);
        for sequence in &sequences {
            let found = discovery.run(sequence).unwrap().evidence.unwrap().whether;
            for (index, fast) in found.pairs() {
                let pair = list.whether.pair(index);
                let slow = evidence(&model, sequence, 3, pair);
                for (a, b) in [
                    (fast.residual, slow.residual),
                    (fast.weight, slow.weight),
                    (fast.variance, slow.variance),
                    (fast.expected, slow.expected),
                    (fast.observed, slow.observed),
                ] {
                    assert!((a - b).abs() < 1e-9, "{pair:?} {fast:?} {slow:?}");
                }
            }
        }
    }
    // Drawn instead of enumerated: the same on average.
    let wide = Hashed::new(140, 2.0);
    let few: Vec<EventSequence> = vec![sequence(140, 300, 7); 5];
    let long = &few[0];
    let list = PairLists::count(&few, PairScope { types: 140, ..scope }, None);
    let drawn = Discovery::new(&wide).memory(3).evidence(&list).run(long).unwrap().evidence.unwrap().whether.pairs();
    let all = Discovery::new(&wide).memory(3).particles(Particles::All).evidence(&list);
    let all = all.run(long).unwrap().evidence.unwrap().whether.pairs();
    let sum = |pairs: &[(usize, PlaceSums)], of: fn(&PlaceSums) -> f64| pairs.iter().map(|(_, s)| of(s)).sum::<f64>();
    for of in [|s: &PlaceSums| s.residual, |s: &PlaceSums| s.expected] {
        let (a, b) = (sum(&drawn, of), sum(&all, of));
        assert!((a - b).abs() < 0.02 * b.abs().max(50.0), "{a} {b}");
    }
}

/// A test that may stop at any time is wrong as rarely as it says, and says how much it took.
#[test]
fn confidence_decides_as_surely_as_asked_for() {
    let model = Hashed::new(400, 10.0);
    let sequence = sequence(400, 40, 11);
    for proposal in [Proposal::Uniform, Proposal::Unigram, Proposal::Model] {
        let base = Discovery::new(&model).memory(3).proposal(proposal);
        let exact = base.particles(Particles::All).run(&sequence).unwrap();
        let sure = base.confidence(Some(0.99)).run(&sequence).unwrap();
        let wrong = sure.graph.pairs().iter().zip(exact.graph.pairs()).filter(|(a, b)| a.kept != b.kept).count();
        assert!(wrong * 50 <= sure.graph.pairs().len(), "{wrong} of {}", sure.graph.pairs().len());
        assert!(sure.graph.pairs().iter().all(|pair| pair.verdict != Verdict::Undecided));
        assert!(sure.branch_positions < exact.branch_positions, "{proposal:?}");
    }
    let name = |discovery: Discovery<'_>| match discovery.plan() {
        Err(Error::Setting { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    let base = Discovery::new(&model).confidence(Some(0.99));
    assert_eq!(base.plan().unwrap().proposal, Proposal::Unigram);
    assert_eq!(name(base.proposal(Proposal::Plausible)), "confidence");
    assert_eq!(name(base.divergence(Divergence::Full)), "confidence");
    assert_eq!(name(base.particles(64)), "confidence");
    assert_eq!(name(base.confidence(Some(1.0))), "confidence");
    // Few types are gone through one by one: nothing is left to chance, whatever the proposal.
    let few = Hashed::new(20, 1.0);
    assert!(Discovery::new(&few).proposal(Proposal::Plausible).confidence(Some(0.99)).plan().is_ok());
}

/// Two steps with two outcomes each and a step without: what stands where says how the next one turns out.
struct Steps;

impl DensityModel for Steps {
    fn vocabulary_size(&self) -> usize {
        5
    }

    fn backbone(&self) -> &'static str {
        "steps"
    }

    fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        for (q, row) in positions.zip(rows.chunks_exact_mut(5)) {
            // a:ok, a:bad, b:ok, b:bad, c
            let p: [f64; 5] = match q.checked_sub(1).map(|before| events[before].0) {
                Some(0) => [0.04, 0.01, 0.72, 0.18, 0.05],
                Some(1) => [0.04, 0.01, 0.09, 0.81, 0.05],
                _ => [0.40, 0.10, 0.15, 0.15, 0.20],
            };
            row.copy_from_slice(&p.map(f64::ln));
        }
        Ok(())
    }
}

#[test]
fn whether_and_how_by_hand() {
    let families = Families::of_separator(["a:ok", "a:bad", "b:ok", "b:bad", "c"], ":");
    let sequence = EventSequence::new("s", [0, 2].map(EventId).to_vec());
    let discovery = Discovery::new(&Steps).proposal(Proposal::Plausible).families(&families);
    let graph = discovery.run(&sequence).unwrap().graph;
    let [whether, how] = graph.pairs() else { panic!("{graph:?}") };
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} instead of {b}");
    // Whether b happens after a: 0.9. The only other step that could have stood there is c, after which b has 0.3.
    assert_eq!((whether.question, how.question), (Question::Whether, Question::How));
    near(whether.probability, 0.9);
    near(whether.probability_replaced, 0.3);
    near(whether.overlap.unwrap(), 0.2);
    // How b turns out: ok with 0.72 of 0.9 after a:ok, with 0.09 of 0.9 after a:bad.
    near(how.probability, 0.8);
    near(how.probability_replaced, 0.1);
    near(how.overlap.unwrap(), 0.1 / 0.5);
    assert_eq!(how.verdict, Verdict::Promotes);
    assert_eq!(discovery.question(Some(Question::How)).run(&sequence).unwrap().graph.pairs(), [*how]);
    assert_eq!(discovery.question(Some(Question::Whether)).run(&sequence).unwrap().graph.pairs(), [*whether]);
    // c has no other outcome: there is no how.
    let plain = EventSequence::new("s", [4, 2].map(EventId).to_vec());
    assert_eq!(discovery.run(&plain).unwrap().graph.pairs().len(), 1);
    let error = Discovery::new(&Steps).question(Some(Question::How)).plan();
    assert!(matches!(error, Err(Error::Setting { name: "question", .. })));
    // Evidence of one place: π(a:ok) = 0.8 among the outcomes of a, and b:ok is expected with 0.8·0.8 + 0.2·0.1.
    let often = vec![sequence.clone(); 5];
    let scope =
        PairScope { types: 5, memory: Memory::Lags(1), first_cause: 0, end: None, knowledge: None, families: None };
    let lists = PairLists::count(&often, scope, Some(&families));
    let evidence = discovery.evidence(&lists).run(&sequence).unwrap().evidence.unwrap();
    let sums = evidence.how.unwrap().pairs()[0].1;
    near(sums.residual, (1.0 - 0.8) * (1.0 - 0.66));
    near(sums.weight, 0.8 * 0.2 * 0.66);
    // Of steps: π(a) without b, 0.5 of 0.7, and b is expected with (0.5·0.9 + 0.2·0.3) / 0.7.
    let (share, p) = (0.5 / 0.7, (0.5 * 0.9 + 0.2 * 0.3) / 0.7);
    let sums = evidence.whether.pairs()[0].1;
    near(sums.residual, (1.0 - share) * (1.0 - p));
    near(sums.variance, share * (1.0 - share) * p * (1.0 - p));
}
