//! The fleet as a density model: a branch is scored by the rules of the events in its window.
//!
//! For one branch and one effect, the probability of the observed event and that of all others are sums of positive
//! terms, so that neither loses precision. Cost per branch and lag: the rules of the window, independent of `V`; a
//! whole distribution is computed only if it is requested.

use std::ops::Range;

use trace_core::theory::Fitness;
use trace_core::{Branches, DensityModel, EventId, EventScore, Measure, ModelError, Reading, Scores};

use super::Fleet;

impl DensityModel for Fleet {
    fn vocabulary_size(&self) -> usize {
        self.background.len()
    }

    fn backbone(&self) -> &'static str {
        "fleet"
    }

    fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        let mut effects = Vec::new();
        for (q, row) in positions.zip(rows.chunks_exact_mut(self.background.len())) {
            let added = self.active(q, |position| events[position], &mut effects);
            self.fill(&effects, added, row);
        }
        Ok(())
    }

    fn read<'a>(&'a self, events: &[EventId]) -> Result<Box<dyn Reading + 'a>, ModelError> {
        let observed = (0..events.len()).map(|q| self.score_event(q, |position| events[position], events[q])).collect();
        Ok(Box::new(FleetReading { fleet: self, events: events.to_vec(), observed }))
    }

    fn reach(&self) -> Option<usize> {
        Some(self.memory())
    }

    fn fitness(&self) -> Fitness {
        self.fitness
    }
}

impl Fleet {
    /// The score of one event at position `q`.
    fn score_event(&self, q: usize, event_at: impl Fn(usize) -> EventId, target: EventId) -> EventScore {
        let (mut event, mut others) = (0.0, 0.0);
        self.visit_active(q, event_at, |effect, added| {
            *(if effect == target { &mut event } else { &mut others }) += added;
        });
        let rest = 1.0 - (event + others);
        event += rest * self.background[target.index()];
        others += rest * self.others[target.index()];
        EventScore::from_log_weights(event.ln(), others.ln())
    }

    /// The log-distribution under active rules.
    fn fill(&self, effects: &[(EventId, f64)], added: f64, row: &mut [f64]) {
        let rest = 1.0 - added;
        for (value, share) in row.iter_mut().zip(&self.background) {
            *value = (rest * share).ln();
        }
        for (effect, added) in effects {
            row[effect.index()] = (rest * self.background[effect.index()] + added).ln();
        }
    }

    /// `KL(p ‖ q)` of the distributions for two sets of active rules. Types that are in neither set keep their shares
    /// of the background.
    fn divergence(&self, p: &Active, q: &Active) -> f64 {
        let (rest_p, rest_q) = (1.0 - p.added, 1.0 - q.added);
        let only_q = q.effects.iter().filter(|(effect, _)| p.added_to(*effect) == 0.0);
        let (mut touched, mut changed) = (0.0, 0.0);
        for effect in p.effects.iter().chain(only_q).map(|(effect, _)| *effect) {
            let share = self.background[effect.index()];
            let (in_p, in_q) = (p.added_to(effect) + rest_p * share, q.added_to(effect) + rest_q * share);
            changed += in_p * (in_p / in_q).ln();
            touched += share;
        }
        let divergence = changed + rest_p * (1.0 - touched) * (rest_p / rest_q).ln();
        // A negative value is rounding error; a NaN must stay.
        if divergence < 0.0 { 0.0 } else { divergence }
    }
}

/// The rules that are active at one position.
#[derive(Default)]
struct Active {
    effects: Vec<(EventId, f64)>,
    added: f64,
}

impl Active {
    fn added_to(&self, effect: EventId) -> f64 {
        self.effects.iter().find(|(other, _)| *other == effect).map_or(0.0, |(_, added)| *added)
    }
}

struct FleetReading<'a> {
    fleet: &'a Fleet,
    events: Vec<EventId>,
    observed: Vec<EventScore>,
}

impl Reading for FleetReading<'_> {
    fn observed(&self) -> &[EventScore] {
        &self.observed
    }

    fn distribution(&self, position: usize, row: &mut [f64]) -> Result<(), ModelError> {
        self.fleet.forward(&self.events, position..position + 1, row)
    }

    fn score(&self, batch: &[Branches<'_>], scores: &mut Scores) -> Result<(), ModelError> {
        let (fleet, measure) = (self.fleet, scores.measure());
        let size = fleet.background.len();
        let (mut original, mut edited) = (Active::default(), Active::default());
        for (branches, entry) in batch.iter().zip(scores.entries_mut()) {
            let replaced = branches.start()..branches.start() + branches.width();
            for lag in 1..=branches.horizon() {
                let q = branches.start() + lag;
                // From the last replaced position before the effect; beyond the memory nothing changes.
                let unchanged = q - replaced.end.min(q) >= fleet.memory();
                if measure == Measure::Divergence {
                    original.added = fleet.active(q, |position| self.events[position], &mut original.effects);
                }
                for branch in 0..branches.count() {
                    let events = branches.replacement(branch);
                    let event_at = |position: usize| {
                        if replaced.contains(&position) {
                            events[position - replaced.start]
                        } else {
                            self.events[position]
                        }
                    };
                    let at = branch * branches.horizon() + lag - 1;
                    entry.events[at] =
                        if unchanged { self.observed[q] } else { fleet.score_event(q, event_at, self.events[q]) };
                    if measure != Measure::Event {
                        edited.added = fleet.active(q, event_at, &mut edited.effects);
                    }
                    match measure {
                        Measure::Event => {}
                        Measure::Divergence => entry.divergences[at] = fleet.divergence(&original, &edited),
                        Measure::Distribution => {
                            fleet.fill(&edited.effects, edited.added, &mut entry.distributions[at * size..][..size]);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
