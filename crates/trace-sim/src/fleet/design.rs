//! Computes the parameters of the process from codes and cascades.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use trace_core::{EventId, EventName, Vocabulary};

use super::cascades::{CASCADES, WEAR};
use super::codes::CODES;
use super::process::Rules;
use super::{Fleet, KERNEL, components};
use crate::Error;

/// The minimum number of event types of a fleet: the hand-written ones.
pub const MIN_TYPES: usize = CODES.len();
/// The maximum number of event types: that of the application in the paper.
pub const MAX_TYPES: usize = 29_100;

/// Share of the background that starts a hand-written cascade.
const ROOTS: f64 = 0.12;
/// Share of the background that starts a wear cascade.
const WEAR_ROOTS: f64 = 0.03;
/// Background of an event type that has causes, relative to that of an average type.
const CONSEQUENCE: f64 = 0.5;
/// Inequality of the types without causes and effects: the weight of rank `i` is `1 / (i + SKEW)`.
const SKEW: f64 = 20.0;

/// The options of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetSpec {
    /// Number of event types.
    pub types: usize,
    /// The names of the [`CASCADES`] to leave out. Their events still occur, but have no effects.
    pub without: BTreeSet<String>,
}

/// A fleet with the names of its events and the cause–effect pairs that were designed.
#[derive(Clone, Debug)]
pub struct Design {
    /// The process.
    pub fleet: Fleet,
    /// Its event types.
    pub vocabulary: Vocabulary,
    /// The cause and effect of every rule.
    pub pairs: Vec<(EventId, EventId)>,
}

impl Design {
    /// Designs a fleet.
    pub fn new(spec: &FleetSpec) -> Result<Self, Error> {
        if !(MIN_TYPES..=MAX_TYPES).contains(&spec.types) {
            let found = spec.types;
            return Err(Error::spec("types", format!("{found} is out of range; expected {MIN_TYPES} to {MAX_TYPES}")));
        }
        if let Some(name) = spec.without.iter().find(|name| CASCADES.iter().all(|cascade| cascade.name != **name)) {
            let known: Vec<&str> = CASCADES.iter().map(|cascade| cascade.name).collect();
            return Err(Error::spec(
                "without",
                format!("no cascade is called {name:?}; expected {}", known.join(", ")),
            ));
        }
        let vocabulary = vocabulary(spec.types);
        // The background is that of the complete design, so that a cohort without a cascade differs only in that
        // cascade.
        let whole = rules(spec.types, &BTreeSet::new());
        let background = background(spec.types, &whole);
        let rules = rules(spec.types, &spec.without);
        let pairs = rules.iter().map(|(cause, effect, _)| (EventId(*cause as u32), EventId(*effect as u32))).collect();
        let fleet = Fleet::new(background, KERNEL.to_vec(), Rules::new(spec.types, &rules))
            .map_err(|fault| Error::spec("types", format!("{}: {}", fault.tensor, fault.reason)))?;
        Ok(Self { fleet, vocabulary, pairs })
    }
}

fn vocabulary(types: usize) -> Vocabulary {
    let mut vocabulary = Vocabulary::named();
    let written = CODES.iter().map(|(code, words)| format!("{code} {words}"));
    for name in written.chain((0..types - CODES.len()).map(components::name)) {
        vocabulary.intern(&EventName::Text(name.into()));
    }
    vocabulary
}

/// Cause, effect and share of every rule, by cause and effect.
fn rules(types: usize, without: &BTreeSet<String>) -> Vec<(usize, usize, f32)> {
    let index: FxHashMap<&str, usize> = CODES.iter().enumerate().map(|(id, (code, _))| (*code, id)).collect();
    let included = CASCADES.iter().filter(|cascade| !without.contains(cascade.name));
    let mut rules: Vec<_> = included
        .flat_map(|cascade| cascade.rules)
        .filter_map(|(cause, effect, share)| Some((*index.get(cause)?, *index.get(effect)?, *share)))
        .collect();
    if !without.contains(WEAR) {
        let first = CODES.len();
        rules.extend(
            components::wear(types - first).map(|(cause, effect, share)| (first + cause, first + effect, share)),
        );
    }
    rules.sort_by_key(|(cause, effect, _)| (*cause, *effect));
    rules
}

/// The share of each type among events that are not caused by a rule.
fn background(types: usize, rules: &[(usize, usize, f32)]) -> Vec<f32> {
    let causes: BTreeSet<usize> = rules.iter().map(|rule| rule.0).collect();
    let effects: BTreeSet<usize> = rules.iter().map(|rule| rule.1).collect();
    let roots: Vec<usize> = causes.difference(&effects).copied().collect();
    let wear_roots = roots.iter().filter(|root| **root >= CODES.len()).count();
    let mut share = vec![0.0; types];
    for root in &roots {
        share[*root] = if *root < CODES.len() {
            ROOTS / (roots.len() - wear_roots) as f64
        } else {
            WEAR_ROOTS / wear_roots as f64
        };
    }
    for effect in &effects {
        share[*effect] = CONSEQUENCE / types as f64;
    }
    let others: Vec<usize> = (0..types).filter(|id| share[*id] == 0.0).collect();
    // The ranks of the other types are independent of their order in the vocabulary.
    let mut ranked: Vec<(u64, usize)> = others.iter().map(|id| (scrambled(*id as u64), *id)).collect();
    ranked.sort_unstable();
    let weight = |rank: usize| 1.0 / (rank as f64 + SKEW);
    let total: f64 = (0..ranked.len()).map(weight).sum();
    let rest = 1.0 - share.iter().sum::<f64>();
    for (rank, (_, id)) in ranked.iter().enumerate() {
        share[*id] = rest * weight(rank) / total;
    }
    share.into_iter().map(|share| share as f32).collect()
}

/// A fixed shuffle: the finalizer of `SplitMix64`.
fn scrambled(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_a_cascade_exists_and_no_name_occurs_twice() {
        let codes: BTreeSet<&str> = CODES.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes.len(), CODES.len());
        for cascade in CASCADES {
            for (cause, effect, share) in cascade.rules {
                assert!(codes.contains(cause) && codes.contains(effect), "{}: {cause} → {effect}", cascade.name);
                assert!(*share > 0.0 && cause != effect);
            }
        }
        let names = vocabulary(MAX_TYPES);
        assert_eq!(names.len(), MAX_TYPES);
        for id in 0..MAX_TYPES {
            let name = names.name(EventId(id as u32)).to_string();
            assert!(!name.contains([',', '"', '\n', '\\']) && name.is_ascii(), "{name:?} would need quoting");
        }
    }

    #[test]
    fn no_pair_is_designed_twice_and_cascades_end() {
        for types in [MIN_TYPES, 300, 1003] {
            let rules = rules(types, &BTreeSet::new());
            let pairs: BTreeSet<(usize, usize)> = rules.iter().map(|rule| (rule.0, rule.1)).collect();
            assert_eq!(pairs.len(), rules.len());
            // A cascade with a cycle would never end.
            let mut alive: BTreeSet<usize> = rules.iter().map(|rule| rule.0).collect();
            loop {
                let last: Vec<usize> = alive
                    .iter()
                    .copied()
                    .filter(|cause| rules.iter().all(|rule| rule.0 != *cause || !alive.contains(&rule.1)))
                    .collect();
                if last.is_empty() {
                    break;
                }
                alive.retain(|cause| !last.contains(cause));
            }
            assert!(alive.is_empty(), "{alive:?} cause each other in a circle");
        }
    }

    #[test]
    fn leaving_a_cascade_out_changes_its_rules_and_nothing_else() {
        let whole = Design::new(&FleetSpec { types: 300, without: BTreeSet::new() }).unwrap();
        let without = Design::new(&FleetSpec { types: 300, without: ["battery".to_owned()].into() }).unwrap();
        assert_eq!(whole.vocabulary, without.vocabulary);
        assert_eq!(whole.fleet.background(), without.fleet.background());
        let gone: Vec<_> = whole.pairs.iter().filter(|pair| !without.pairs.contains(pair)).collect();
        assert_eq!(gone.len(), CASCADES[0].rules.len());
        assert!(without.pairs.iter().all(|pair| whole.pairs.contains(pair)));
    }

    #[test]
    fn specs_out_of_range_are_named() {
        for (types, without, name) in [(5, "", "types"), (MAX_TYPES + 1, "", "types"), (300, "Battery", "without")] {
            let without = [without].into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect();
            let error = Design::new(&FleetSpec { types, without }).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}: ")), "{error}");
        }
    }
}
