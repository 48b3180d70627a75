//! The parameters of the process, and the rules that are active for the next event.

use trace_core::theory::Fitness;
use trace_core::{CumulativeTable, EventId};

/// The process: a density model, a simulator and the truth.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The shares of the background as stored, so that a fleet read from its folder is the same.
    pub(super) shares: Vec<f32>,
    /// `b`: the shares, summing to 1.
    pub(super) background: Vec<f64>,
    /// For each type, the sum of the background of all other types.
    pub(super) others: Vec<f64>,
    /// `Σ b ln b`, for entropies.
    pub(super) background_sum: f64,
    pub(super) table: CumulativeTable,
    pub(super) kernel: Vec<f64>,
    pub(super) rules: Rules,
    pub(super) fitness: Fitness,
}

/// The largest probability that rules may have together; the rest goes to the background, so that every event is
/// possible.
const MOST_DECIDED: f64 = 0.999;

/// The rules of each type, as sparse rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rules {
    /// The start of each type's rules, and the end of the last.
    pub(super) offsets: Vec<u64>,
    pub(super) effects: Vec<u32>,
    pub(super) shares: Vec<f32>,
}

/// Why parameters are invalid: the tensor, and what is wrong with it.
pub(super) struct InvalidTensor {
    pub(super) tensor: &'static str,
    pub(super) reason: String,
}

impl Rules {
    /// From a list that is sorted by cause.
    pub(super) fn new(size: usize, list: &[(usize, usize, f32)]) -> Self {
        let mut rules = Self { offsets: vec![0], ..Self::default() };
        let mut rest = list.iter().peekable();
        for cause in 0..size {
            while let Some((_, effect, share)) = rest.next_if(|rule| rule.0 == cause) {
                rules.effects.push(*effect as u32);
                rules.shares.push(*share);
            }
            rules.offsets.push(rules.effects.len() as u64);
        }
        rules
    }

    /// The effects and shares of a type.
    fn of(&self, cause: EventId) -> impl Iterator<Item = (EventId, f64)> {
        let range = self.offsets[cause.index()] as usize..self.offsets[cause.index() + 1] as usize;
        let effects = self.effects[range.clone()].iter().map(|effect| EventId(*effect));
        effects.zip(self.shares[range].iter().map(|share| f64::from(*share)))
    }

    /// The largest sum of a type's shares.
    fn largest(&self) -> f64 {
        let sum = |cause: usize| self.of(EventId(cause as u32)).map(|(_, share)| share).sum::<f64>();
        (0..self.offsets.len() - 1).map(sum).fold(0.0, f64::max)
    }
}

impl Fleet {
    /// A process from its parameters; the effects of rules must be in the vocabulary.
    pub(super) fn new(shares: Vec<f32>, kernel: Vec<f32>, rules: Rules) -> Result<Self, InvalidTensor> {
        let fault = |tensor, reason: &str| InvalidTensor { tensor, reason: reason.to_owned() };
        if let Some(share) = shares.iter().find(|share| !(**share > 0.0 && share.is_finite())) {
            return Err(fault("background", &format!("expected shares above 0, found {share}")));
        }
        for (tensor, values) in [("kernel", &kernel), ("rule.shares", &rules.shares)] {
            if let Some(value) = values.iter().find(|value| !(**value >= 0.0 && value.is_finite())) {
                return Err(fault(tensor, &format!("expected numbers of 0 or more, found {value}")));
            }
        }
        let decided = kernel.iter().map(|value| f64::from(*value)).sum::<f64>() * rules.largest();
        if decided > MOST_DECIDED {
            let reason = format!("expected shares that leave something to the background, found {decided} decided");
            return Err(fault("rule.shares", &reason));
        }
        let total: f64 = shares.iter().map(|share| f64::from(*share)).sum();
        let background: Vec<f64> = shares.iter().map(|share| f64::from(*share) / total).collect();
        let table = CumulativeTable::new(background.iter().copied());
        let table = table.ok_or_else(|| fault("background", "expected shares that sum to something"))?;
        Ok(Self {
            others: sums_of_others(&background),
            background_sum: background.iter().map(|share| share * share.ln()).sum(),
            shares,
            background,
            table,
            kernel: kernel.into_iter().map(f64::from).collect(),
            rules,
            fitness: Fitness::default(),
        })
    }

    /// The share of each type among events that are not caused by a rule.
    pub fn background(&self) -> &[f64] {
        &self.background
    }

    /// How far back the process looks, `h`.
    pub const fn memory(&self) -> usize {
        self.kernel.len()
    }

    /// Number of parameters.
    pub const fn parameters(&self) -> usize {
        self.background.len() + self.kernel.len() + self.rules.effects.len()
    }

    /// Visits the effect of every rule that is active at position `q`, with the probability that it adds. The same
    /// effect may come several times.
    pub(super) fn visit_active(
        &self,
        q: usize,
        event_at: impl Fn(usize) -> EventId,
        mut visit: impl FnMut(EventId, f64),
    ) {
        for (position, decides) in (0..q).rev().zip(&self.kernel) {
            for (effect, share) in self.rules.of(event_at(position)) {
                if (position + 1..q).all(|between| event_at(between) != effect) {
                    visit(effect, decides * share);
                }
            }
        }
    }

    /// `A`: the effects of active rules at position `q`, each once, with their added probabilities. Returns the sum.
    pub(super) fn active(
        &self,
        q: usize,
        event_at: impl Fn(usize) -> EventId,
        effects: &mut Vec<(EventId, f64)>,
    ) -> f64 {
        effects.clear();
        let mut total = 0.0;
        self.visit_active(q, event_at, |effect, weight| {
            total += weight;
            match effects.iter_mut().find(|(other, _)| *other == effect) {
                Some((_, sum)) => *sum += weight,
                None => effects.push((effect, weight)),
            }
        });
        total
    }

    /// The entropy in nats of an event for these active rules; only their effects differ from a scaled background.
    pub(super) fn entropy(&self, effects: &[(EventId, f64)], added: f64) -> f64 {
        let rest = 1.0 - added;
        let term = |probability: f64| probability * probability.ln();
        let changed: f64 = effects
            .iter()
            .map(|(effect, added)| {
                let share = rest * self.background[effect.index()];
                term(share + added) - term(share)
            })
            .sum();
        -(term(rest) + rest * self.background_sum + changed)
    }
}

/// For each value, the sum of all others, without the rounding error of a subtraction.
fn sums_of_others(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; values.len()];
    let mut before = 0.0;
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum = before;
        before += value;
    }
    let mut after = 0.0;
    for (sum, value) in sums.iter_mut().zip(values).rev() {
        *sum += after;
        after += value;
    }
    sums
}
