//! The fleet: fast scoring against the slow reference, samples, folder, and truth.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::collections::BTreeSet;

use proptest::prelude::*;
use trace_core::numerics::entropy;
use trace_core::{
    DensityModel, Discovery, Divergence, EventId, EventSequence, History, Intervention, Memory, Particles,
    PlainReading, Reading, reference,
};
use trace_models::Description;
use trace_sim::fleet::{Design, Fault, FleetLog, FleetSpec, MAX_TYPES, MIN_TYPES};

fn design(types: usize) -> Design {
    Design::new(&FleetSpec { types, without: BTreeSet::new() }).unwrap()
}

fn log(length: usize, seed: u64) -> FleetLog {
    FleetLog { length, noise: 0.0, drop: 0.0, seed }
}

/// Mostly codes of one cascade, so that rules become active, overlap and become inactive.
fn cascade_events(design: &Design) -> impl Strategy<Value = Vec<EventId>> {
    let pairs = design.pairs.clone();
    proptest::collection::vec((0..20usize, any::<bool>(), 0..MIN_TYPES as u32), 8..14).prop_map(move |picks| {
        let pick = |(rule, effect, other): (usize, bool, u32)| {
            // The first rules are those of one cascade; sometimes any other event.
            pairs.get(rule).map_or(EventId(other), |(cause, result)| if effect { *result } else { *cause })
        };
        picks.into_iter().map(pick).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn fast_equals_reference(
        events in cascade_events(&design(MIN_TYPES)),
        seed in 0u64..1000,
        staircase in any::<bool>(),
        full in any::<bool>(),
        sampled in any::<bool>(),
        particles in prop_oneof![Just(Particles::Auto), Just(Particles::All), (2usize..20).prop_map(Particles::Fixed)],
        lags in 1usize..9,
    ) {
        prop_assume!(!(sampled && particles == Particles::All));
        let fleet = design(MIN_TYPES).fleet;
        let sequence = EventSequence::new(format!("s{seed}"), events);
        let discovery = Discovery::new(&fleet)
            .intervention(if staircase { Intervention::Staircase } else { Intervention::Atomic })
            .divergence(if full { Divergence::Full } else { Divergence::Event })
            .history(if sampled { History::Sampled } else { History::Observed })
            .context(if sampled { 2 } else { 0 })
            .particles(if staircase && particles == Particles::All { Particles::Fixed(16) } else { particles })
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
        }
    }

    #[test]
    fn a_reading_equals_the_plain_forward_pass(events in cascade_events(&design(MIN_TYPES))) {
        let fleet = design(MIN_TYPES).fleet;
        let plain = PlainReading::new(&fleet, &events).unwrap();
        let fast = fleet.read(&events).unwrap();
        for (a, b) in plain.observed().iter().zip(fast.observed()) {
            prop_assert!((a.log_p - b.log_p).abs() < 1e-9 && (a.log_not_p - b.log_not_p).abs() < 1e-9);
        }
    }
}

#[test]
fn rows_are_what_the_equation_says() {
    let Design { fleet, vocabulary, pairs } = design(MIN_TYPES);
    let id = |code: &str| {
        let all = (0..MIN_TYPES as u32).map(EventId);
        all.into_iter().find(|id| vocabulary.name(*id).to_string().starts_with(code)).unwrap()
    };
    let (battery, voltage, other) = (id("B1318"), id("P0562"), id("P0442"));
    assert!(pairs.contains(&(battery, voltage)));
    let probability = |events: &[EventId], of: EventId| {
        let mut row = vec![0.0; MIN_TYPES];
        fleet.forward(events, events.len()..events.len() + 1, &mut row).unwrap();
        assert!((row.iter().map(|v| v.exp()).sum::<f64>() - 1.0).abs() < 1e-12);
        row[of.index()].exp()
    };
    let share = fleet.background()[voltage.index()];
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-7, "{a} {b}");
    close(probability(&[], voltage), share);
    let with = |added: f64, others: f64| added + (1.0 - added - others) * share;
    close(probability(&[battery], voltage), with(0.48 * 0.9, 0.0));
    close(probability(&[battery, other], voltage), with(0.26 * 0.9, 0.0));
    // Two causes add up. An effect deactivates the rules before it, and has effects of its own.
    close(probability(&[battery, battery], voltage), with(0.74 * 0.9, 0.0));
    close(probability(&[battery, voltage], voltage), with(0.0, 0.48 * 0.95));
    close(probability(&[battery, voltage, battery], voltage), with(0.48 * 0.9, 0.26 * 0.95));
    // Beyond the memory nothing is left.
    close(probability(&[&[battery][..], &[other; 4]].concat(), voltage), share);
}

#[test]
fn simulated_shares_and_entropy_are_those_of_the_rows() {
    let mut fleet = design(MIN_TYPES).fleet;
    fleet.measure_entropy();
    let (mut expected, mut loss, mut sum, mut count) = (0.0, 0.0, 0.0, 0.0);
    let mut row = vec![0.0; MIN_TYPES];
    let target = fleet.background().iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
    let mut seen = 0.0;
    for vehicle in log(60, 5).vehicles(&fleet, 0, 300) {
        for (q, event) in vehicle.events.iter().enumerate() {
            fleet.forward(&vehicle.events, q..q + 1, &mut row).unwrap();
            expected += row[target].exp();
            seen += f64::from(event.index() == target);
            sum += entropy(&row);
            loss -= row[event.index()];
            count += 1.0;
        }
    }
    assert!((seen - expected).abs() < 4.0 * expected.sqrt(), "{seen} of the expected {expected}");
    assert!((loss / count - sum / count).abs() < 0.03, "loss {} entropy {}", loss / count, sum / count);
    let stated = fleet.fitness().entropy.unwrap();
    assert!((stated - sum / count).abs() < 0.03, "stated {stated}, measured {}", sum / count);
}

#[test]
fn vehicles_do_not_depend_on_how_many_are_drawn_and_differ_by_seed() {
    let fleet = design(300).fleet;
    let all = log(40, 4).vehicles(&fleet, 0, 8);
    assert_eq!(log(40, 4).vehicles(&fleet, 3, 2), all[3..5]);
    assert_ne!(log(40, 5).vehicles(&fleet, 0, 1)[0].events, all[0].events);
    let lengths: BTreeSet<usize> = all.iter().map(|vehicle| vehicle.events.len()).collect();
    assert!(lengths.len() > 4 && lengths.iter().all(|length| (10..=120).contains(length)), "{lengths:?}");
    for vehicle in &all {
        assert!(vehicle.times.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

#[test]
fn faults_are_as_frequent_as_asked_and_records_follow_them() {
    let fleet = design(300).fleet;
    let log = FleetLog { length: 60, noise: 0.1, drop: 0.2, seed: 3 };
    let (mut dropped, mut replaced, mut all, mut changed) = (0.0, 0.0, 0.0, 0.0);
    for (index, vehicle) in log.vehicles(&fleet, 0, 200).iter().enumerate() {
        let faults = log.faults(index, vehicle.events.len());
        let recorded = log.record(&fleet, index, vehicle, &faults);
        let kept: Vec<usize> = (0..faults.len()).filter(|i| faults[*i] != Some(Fault::Dropped)).collect();
        assert_eq!(recorded.times, kept.iter().map(|i| vehicle.times[*i]).collect::<Vec<_>>());
        for (event, i) in recorded.events.iter().zip(&kept) {
            assert!(*event == vehicle.events[*i] || faults[*i] == Some(Fault::Replaced));
            changed += f64::from(*event != vehicle.events[*i]);
        }
        all += faults.len() as f64;
        dropped += (faults.len() - kept.len()) as f64;
        replaced += faults.iter().filter(|fault| **fault == Some(Fault::Replaced)).count() as f64;
    }
    assert!((dropped / all - 0.2).abs() < 0.02 && (replaced / all - 0.08).abs() < 0.015, "{dropped} {replaced} {all}");
    assert!(changed > 0.95 * replaced);
    let nothing = FleetLog { drop: 0.999_999, ..log };
    assert_eq!(nothing.record(&fleet, 0, &log.vehicle(&fleet, 0), &nothing.faults(0, 60)).events.len(), 1);
}

#[test]
fn a_folder_gives_the_same_fleet_back() {
    let folder = tempfile::tempdir().unwrap();
    let Design { mut fleet, vocabulary, .. } = design(300);
    fleet.measure_entropy();
    fleet.save(folder.path(), &vocabulary, &serde_json::Map::new()).unwrap();
    let opened = trace_sim::open(Description::read(folder.path()).unwrap()).unwrap();
    let events = log(40, 1).vehicle(&fleet, 0).events;
    let rows = |model: &dyn DensityModel| {
        let mut rows = vec![0.0; events.len() * 300];
        model.forward(&events, 0..events.len(), &mut rows).unwrap();
        rows
    };
    assert_eq!(rows(&fleet), rows(&*opened.model));
    assert_eq!(opened.vocabulary, vocabulary);
    assert_eq!(opened.model.fitness(), fleet.fitness());
    assert_eq!((opened.parameters, opened.model.reach()), (fleet.parameters(), Some(4)));
}

#[test]
fn a_broken_folder_is_named() {
    let Design { fleet, vocabulary, .. } = design(300);
    for (tensor, bytes, said) in [
        ("rule.effects", 300u32.to_le_bytes(), "rule.effects: effect 300 of 300 types"),
        ("rule.offsets", 9u32.to_le_bytes(), "rule.offsets: expected ascending numbers"),
        ("rule.shares", (-1f32).to_le_bytes(), "rule.shares: expected numbers of 0 or more, found -1"),
        ("rule.shares", 5f32.to_le_bytes(), "rule.shares: expected shares that leave something to the background"),
        ("background", 0f32.to_le_bytes(), "background: expected shares above 0, found 0"),
        ("kernel", f32::NAN.to_le_bytes(), "kernel: NaN or infinity at element 0"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fleet.save(folder.path(), &vocabulary, &serde_json::Map::new()).unwrap();
        let path = folder.path().join("model.safetensors");
        let mut file = std::fs::read(&path).unwrap();
        let header = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
        let json: serde_json::Value = serde_json::from_slice(&file[8..8 + header]).unwrap();
        let start = 8 + header + json[tensor]["data_offsets"][0].as_u64().unwrap() as usize;
        file[start..start + 4].copy_from_slice(&bytes);
        std::fs::write(&path, file).unwrap();
        let complaint = trace_sim::open(Description::read(folder.path()).unwrap()).map(|_| ()).unwrap_err().to_string();
        assert!(complaint.contains(said), "{complaint}");
    }
}

/// Causes do not compete, so the true edges are the designed ones, except for an effect that occurs again by chance.
#[test]
fn the_truth_is_the_design() {
    let Design { fleet, pairs, .. } = design(300);
    let designed: BTreeSet<_> = pairs.into_iter().collect();
    let (mut promoted, mut by_design, mut displaced, mut chains) = (0, 0, 0, 0);
    for (index, vehicle) in log(60, 11).vehicles(&fleet, 0, 60).into_iter().enumerate() {
        let sequence = EventSequence::new(format!("v{index}"), vehicle.events);
        let truth = Discovery::new(&fleet).particles(Particles::All).memory(Memory::All).run(&sequence).unwrap().graph;
        let mut depth = vec![0; sequence.events.len()];
        for edge in truth.edges() {
            assert!(edge.lag.0 <= 4);
            if edge.log_ratio <= 0.0 {
                displaced += 1;
                continue;
            }
            promoted += 1;
            let (cause, effect) = (edge.cause.index(), edge.effect.index());
            by_design += usize::from(designed.contains(&(sequence.events[cause], sequence.events[effect])));
            depth[effect] = depth[effect].max(depth[cause] + 1);
        }
        chains += usize::from(depth.iter().any(|depth| *depth >= 3));
    }
    assert!(promoted > 500 && by_design == promoted, "{by_design} of {promoted} by design");
    assert!(displaced * 50 < promoted, "{displaced} displaced, {promoted} promoted");
    assert!(chains >= 20, "a chain of four events in {chains} of 60 vehicles");
}

#[test]
fn the_largest_fleet_is_quick() {
    let Design { fleet, pairs, .. } = design(MAX_TYPES);
    assert!(pairs.len() > 3000);
    let sequence = EventSequence::new("v", log(60, 1).vehicle(&fleet, 0).events);
    let found = Discovery::new(&fleet).run(&sequence).unwrap();
    assert!(found.graph.edges().count() > 0);
}
