//! What is known beforehand about which types can cause which.
//!
//! Knowledge only ever speaks of types and lags, so one set of rules serves every sequence. An excluded pair is not
//! tested at all, which saves its cost; a required pair is measured like any other and kept whatever its strength.
//! Cost: one pass over the rules for each pair of positions.

use rustc_hash::FxHashSet;

use crate::{EventId, Lag};

/// What knowledge says of a pair before it is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prior {
    /// Nothing: the strength decides.
    #[default]
    Open,
    /// It cannot be an edge and is not tested.
    Excluded,
    /// It is an edge, however strong.
    Required,
}

/// A set of event types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeSet {
    /// Every type.
    All,
    /// These.
    Of(FxHashSet<EventId>),
}

impl TypeSet {
    /// Whether a type belongs to the set.
    pub fn has(&self, event: EventId) -> bool {
        match self {
            Self::All => true,
            Self::Of(events) => events.contains(&event),
        }
    }
}

impl Default for TypeSet {
    fn default() -> Self {
        Self::Of(FxHashSet::default())
    }
}

impl FromIterator<EventId> for TypeSet {
    fn from_iter<I: IntoIterator<Item = EventId>>(events: I) -> Self {
        Self::Of(events.into_iter().collect())
    }
}

/// The lags at which causes of one set may act on effects of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LagRule {
    /// The causes it speaks of.
    pub causes: TypeSet,
    /// The effects it speaks of.
    pub effects: TypeSet,
    /// The smallest lag allowed.
    pub least: u32,
    /// The largest lag allowed.
    pub most: u32,
}

/// Prior knowledge over event types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Knowledge {
    /// Pairs of types of which the first never causes the second.
    pub forbidden: Vec<(TypeSet, TypeSet)>,
    /// Pairs of types of which the first is known to cause the second.
    pub required: FxHashSet<(EventId, EventId)>,
    /// Pairs of types that act at some lags only; a pair under several such rules must obey them all.
    pub lags: Vec<LagRule>,
    /// Types that nothing causes.
    pub only_causes: TypeSet,
    /// Types that cause nothing.
    pub only_effects: TypeSet,
    /// Sets of types in causal order: what stands in a later tier never causes what stands in an earlier one.
    pub tiers: Vec<TypeSet>,
}

impl Knowledge {
    /// What is known of an edge between two types at a lag.
    pub fn prior(&self, cause: EventId, effect: EventId, lag: Lag) -> Prior {
        if self.excludes(cause, effect, lag) {
            Prior::Excluded
        } else if self.required.contains(&(cause, effect)) {
            Prior::Required
        } else {
            Prior::Open
        }
    }

    fn excludes(&self, cause: EventId, effect: EventId, lag: Lag) -> bool {
        let tier = |event| self.tiers.iter().position(|tier| tier.has(event));
        self.only_effects.has(cause)
            || self.only_causes.has(effect)
            || self.forbidden.iter().any(|(causes, effects)| causes.has(cause) && effects.has(effect))
            || self.lags.iter().any(|rule| {
                rule.causes.has(cause) && rule.effects.has(effect) && !(rule.least..=rule.most).contains(&lag.0)
            })
            || matches!((tier(cause), tier(effect)), (Some(later), Some(earlier)) if later > earlier)
    }

    /// A required pair that other rules exclude at every lag, if there is one.
    pub fn contradiction(&self) -> Option<(EventId, EventId)> {
        let ends = self.lags.iter().map(|rule| rule.least).chain([1]);
        let lags: Vec<u32> = ends.collect();
        let mut pairs: Vec<_> = self.required.iter().copied().collect();
        pairs.sort_unstable();
        // Where any lag is allowed at all, the start of some allowed range is.
        pairs.into_iter().find(|(cause, effect)| lags.iter().all(|lag| self.excludes(*cause, *effect, Lag(*lag))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: EventId = EventId(0);
    const B: EventId = EventId(1);
    const C: EventId = EventId(2);

    fn set(events: &[EventId]) -> TypeSet {
        events.iter().copied().collect()
    }

    #[test]
    fn every_kind_of_rule_excludes_what_it_names_and_nothing_else() {
        let empty = Knowledge::default();
        assert_eq!(empty.prior(A, B, Lag(1)), Prior::Open);

        let forbidden = Knowledge { forbidden: vec![(set(&[A]), TypeSet::All)], ..Knowledge::default() };
        assert_eq!(forbidden.prior(A, C, Lag(3)), Prior::Excluded);
        assert_eq!(forbidden.prior(B, C, Lag(3)), Prior::Open);

        let roles = Knowledge { only_causes: set(&[A]), only_effects: set(&[C]), ..Knowledge::default() };
        assert_eq!(roles.prior(A, C, Lag(1)), Prior::Open);
        assert_eq!(roles.prior(B, A, Lag(1)), Prior::Excluded);
        assert_eq!(roles.prior(C, B, Lag(1)), Prior::Excluded);

        let tiers = Knowledge { tiers: vec![set(&[A]), set(&[B])], ..Knowledge::default() };
        assert_eq!(tiers.prior(A, B, Lag(1)), Prior::Open);
        assert_eq!(tiers.prior(B, A, Lag(1)), Prior::Excluded);
        assert_eq!(tiers.prior(B, B, Lag(1)), Prior::Open);
        assert_eq!(tiers.prior(C, A, Lag(1)), Prior::Open);

        let rule = LagRule { causes: set(&[A]), effects: set(&[B]), least: 2, most: 3 };
        let lags = Knowledge { lags: vec![rule], ..Knowledge::default() };
        let priors = [1, 2, 3, 4].map(|lag| lags.prior(A, B, Lag(lag)));
        assert_eq!(priors, [Prior::Excluded, Prior::Open, Prior::Open, Prior::Excluded]);
        assert_eq!(lags.prior(B, A, Lag(1)), Prior::Open);
    }

    #[test]
    fn required_pairs_may_be_limited_but_not_excluded() {
        let required = FxHashSet::from_iter([(A, B)]);
        let rule = |least, most| LagRule { causes: set(&[A]), effects: TypeSet::All, least, most };
        let limited = Knowledge { required: required.clone(), lags: vec![rule(2, 3)], ..Knowledge::default() };
        assert_eq!(limited.prior(A, B, Lag(1)), Prior::Excluded);
        assert_eq!(limited.prior(A, B, Lag(2)), Prior::Required);
        assert_eq!(limited.contradiction(), None);
        let apart = Knowledge { lags: vec![rule(2, 3), rule(5, 6)], ..limited.clone() };
        assert_eq!(apart.contradiction(), Some((A, B)));
        let excluded = Knowledge { only_causes: set(&[B]), ..limited };
        assert_eq!(excluded.contradiction(), Some((A, B)));
    }
}
