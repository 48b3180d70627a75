//! What a run is asked to do ([`Settings`]) and what that means for one model ([`Plan`]).

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::proposal::{Proposal, unigram_weights};
use crate::theory::{ErrorBound, scaling_law_threshold};
use crate::{DensityModel, Error, Position, Question};

/// Which positions are replaced in the two branches that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Intervention {
    /// Only the cause is replaced and everything between cause and effect stays as observed: the controlled direct
    /// effect, on the same scale as the truth of a simulated process.
    #[default]
    #[serde(alias = "none")] // in results of methods that replace nothing
    Atomic,
    /// The paper's construction: everything after the cause is replaced in both branches, and the cause itself in
    /// one. Loses what needs the positions in between.
    Staircase,
}

/// What is compared between the two branches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Divergence {
    /// Whether the observed event happens: Bernoulli divergence, replaced branch first.
    #[default]
    #[serde(alias = "none")] // in results of methods that compare no distributions
    Event,
    /// The whole next-event distribution: divergence of the replaced branch from the observed one.
    Full,
}

/// What the model is told of the events before all candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum History {
    /// What was observed.
    #[default]
    Observed,
    /// For each particle, the first `context` events after the first one are resampled from the model.
    Sampled,
}

/// How many replacements are tried for each candidate cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Particles {
    /// 16, 32, … 512, until every pair of the cause is decided.
    #[default]
    Auto,
    /// Every type once, with its proposal weight: no Monte-Carlo error.
    All,
    /// This many.
    Fixed(usize),
}

impl Serialize for Particles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::All => serializer.serialize_str("all"),
            Self::Fixed(count) => serializer.serialize_u64(*count as u64),
        }
    }
}

impl<'de> Deserialize<'de> for Particles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrWord {
            expected: "auto, all or a whole number",
            number: |number| whole(number).map(Self::Fixed),
            word: |word| match word {
                "auto" => Some(Self::Auto),
                "all" => Some(Self::All),
                _ => None,
            },
        })
    }
}

impl From<usize> for Particles {
    fn from(count: usize) -> Self {
        Self::Fixed(count)
    }
}

/// The largest lag tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Every earlier event is a candidate (the paper's full variant); cost grows with the square of the length.
    All,
    /// Lags up to this one (the sparse variant); cost grows with the length.
    Lags(usize),
}

impl Memory {
    /// The number of lags to test before a sequence's end that is `rest` events away.
    pub fn within(self, rest: usize) -> usize {
        match self {
            Self::All => rest,
            Self::Lags(lags) => lags.min(rest),
        }
    }
}

impl Serialize for Memory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::Lags(lags) => serializer.serialize_u64(*lags as u64),
        }
    }
}

impl<'de> Deserialize<'de> for Memory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrWord {
            expected: "all or a whole number",
            number: |number| whole(number).map(Self::Lags),
            word: |word| (word == "all").then_some(Self::All),
        })
    }
}

impl From<usize> for Memory {
    fn from(lags: usize) -> Self {
        Self::Lags(lags)
    }
}

/// Where the threshold comes from that an edge's strength must exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A strength in nats: the effect size one cares about.
    Fixed(f64),
    /// `1.72e-2 / V`, the paper's fit for the staircase.
    ScalingLaw,
    /// The noise floor `τ_ε` that the model's excess loss allows; needs a known entropy.
    Bound,
}

impl Threshold {
    /// Which rule it is, without its number.
    pub const fn rule(self) -> ThresholdRule {
        match self {
            Self::Fixed(_) => ThresholdRule::Fixed,
            Self::ScalingLaw => ThresholdRule::ScalingLaw,
            Self::Bound => ThresholdRule::Bound,
        }
    }
}

impl Serialize for Threshold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(nats) => serializer.serialize_f64(*nats),
            rule => rule.rule().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrWord {
            expected: "a number of nats, scaling-law or bound",
            number: |number| Some(Self::Fixed(number)),
            word: |word| match word {
                "scaling-law" => Some(Self::ScalingLaw),
                "bound" => Some(Self::Bound),
                _ => None,
            },
        })
    }
}

/// Where a threshold came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdRule {
    /// It was given in nats.
    #[default]
    Fixed,
    /// See [`Threshold::ScalingLaw`].
    ScalingLaw,
    /// See [`Threshold::Bound`].
    Bound,
}

/// A value that is a number or one of a few words.
struct NumberOrWord<T> {
    expected: &'static str,
    number: fn(f64) -> Option<T>,
    word: fn(&str) -> Option<T>,
}

/// A whole number that was read as a float; sizes are far below 2^52.
fn whole(number: f64) -> Option<usize> {
    (number >= 0.0 && number.fract() == 0.0).then_some(number as usize)
}

impl<T> Visitor<'_> for NumberOrWord<T> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        (self.number)(number as f64).ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(number), &self.expected))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        (self.number)(number).ok_or_else(|| E::invalid_value(de::Unexpected::Float(number), &self.expected))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<T, E> {
        (self.word)(word).ok_or_else(|| E::invalid_value(de::Unexpected::Str(word), &self.expected))
    }
}

impl From<f64> for Threshold {
    fn from(nats: f64) -> Self {
        Self::Fixed(nats)
    }
}

/// The default threshold for the atomic intervention, in nats.
pub const DEFAULT_THRESHOLD: f64 = 0.05;
/// The lags tested by default with a model that has no reach of its own.
pub const DEFAULT_MEMORY: usize = 16;
/// Adaptive rounds: the running number of particles after each.
const ROUNDS: [usize; 6] = [16, 32, 64, 128, 256, 512];
/// `auto` enumerates vocabularies up to this size instead.
const ENUMERATED_BY_AUTO: usize = 128;
/// The most draws that can be asked for: more are a slip of the pen, not an experiment.
pub const MOST_PARTICLES: usize = 100_000;

/// What a run is asked to do. What is `None` follows the model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// See [`Intervention`].
    pub intervention: Intervention,
    /// See [`Proposal`]; by default `plausible`, and `unigram` or `uniform` where that does not go with other settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Proposal>,
    /// See [`Divergence`].
    pub divergence: Divergence,
    /// See [`History`].
    pub history: History,
    /// See [`Particles`].
    pub particles: Particles,
    /// See [`Memory`]; by default the model's reach, or 16 where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Length of the prefix whose events are neither causes nor effects.
    pub context: usize,
    /// See [`Threshold`]; by default 0.05 nats, and the scaling law for the staircase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
    /// How sure the decision over a single pair must be, such as 0.99: draws go on until it is, whenever that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// What is asked where event types have families; both questions by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Whether the end of a case is an effect to be explained, as far as cases have ended.
    #[serde(skip_serializing_if = "is_false")]
    pub end: bool,
    /// Seed of all random draws.
    pub seed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// The seed where none is given, in every part of this software.
pub const DEFAULT_SEED: u64 = 7;

impl Default for Settings {
    fn default() -> Self {
        Self {
            intervention: Intervention::default(),
            proposal: None,
            divergence: Divergence::default(),
            history: History::default(),
            particles: Particles::default(),
            memory: None,
            context: 0,
            threshold: None,
            confidence: None,
            question: None,
            end: false,
            seed: DEFAULT_SEED,
        }
    }
}

/// Settings checked against a model, with every default filled in: what a result records.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// See [`Intervention`].
    pub intervention: Intervention,
    /// See [`Proposal`].
    #[serde(deserialize_with = "proposal_or_none")]
    pub proposal: Proposal,
    /// See [`Divergence`].
    pub divergence: Divergence,
    /// See [`History`].
    pub history: History,
    /// See [`Particles`], as asked for.
    pub particles: Particles,
    /// See [`Memory`].
    pub memory: Memory,
    /// Length of the prefix whose events are neither causes nor effects.
    pub context: usize,
    /// The threshold in nats.
    pub threshold: f64,
    /// Where it came from.
    #[serde(default)]
    pub threshold_rule: ThresholdRule,
    /// How sure decisions over single pairs are, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// What was asked, where it was one of the two questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Whether the end of a case is an effect.
    #[serde(default, skip_serializing_if = "is_false")]
    pub end: bool,
    /// Seed of all random draws.
    pub seed: u64,
}

/// Results of methods that replace nothing say `none`.
fn proposal_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Proposal, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Found {
        Known(Proposal),
        None(NoProposal),
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum NoProposal {
        None,
    }
    Ok(match Found::deserialize(deserializer)? {
        Found::Known(proposal) => proposal,
        Found::None(NoProposal::None) => Proposal::Uniform,
    })
}

/// How replacements are gone through.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Schedule {
    /// All types, weighted.
    Enumerate,
    /// Draws, up to each of these totals in turn.
    Rounds(Vec<usize>),
}

impl Settings {
    /// Checks the settings against a model and fills in what depends on it.
    pub fn plan(&self, model: &dyn DensityModel) -> Result<Plan, Error> {
        let size = model.vocabulary_size();
        if size < 2 {
            return Err(Error::setting(
                "model",
                format!("a vocabulary of {size} types leaves nothing to replace an event by; at least 2 are needed"),
            ));
        }
        let threshold_rule = self.threshold.unwrap_or(match self.intervention {
            Intervention::Atomic => Threshold::Fixed(DEFAULT_THRESHOLD),
            Intervention::Staircase => Threshold::ScalingLaw,
        });
        let memory = self.memory.unwrap_or_else(|| Memory::Lags(model.reach().unwrap_or(DEFAULT_MEMORY).max(1)));
        if memory == Memory::Lags(0) {
            return Err(Error::setting("memory", "0 lags leave nothing to test; expected at least 1, or all"));
        }
        if self.history == History::Sampled && self.context == 0 {
            return Err(Error::setting("history", "sampled needs a context to sample; set context to at least 1"));
        }
        if self.end && !model.predicts_end() {
            return Err(Error::setting(
                "end",
                "this model does not predict the end of a case; train one on cases that have ended",
            ));
        }
        let proposal = self.proposal(model)?;
        // What could have stood at an event that the model does not predict, nobody knows: it is no cause.
        let unpredicted = usize::from(proposal == Proposal::Plausible && !model.predicts_first());
        let plan = Plan {
            intervention: self.intervention,
            proposal,
            divergence: self.divergence,
            history: self.history,
            particles: self.particles,
            memory,
            context: self.context.max(unpredicted),
            threshold: threshold(threshold_rule, model)?,
            threshold_rule: threshold_rule.rule(),
            confidence: self.confidence,
            question: self.question,
            end: self.end,
            seed: self.seed,
        };
        if proposal == Proposal::Plausible && !plan.enumerable() {
            return Err(Error::setting(
                "proposal",
                "plausible goes with intervention atomic and history observed only: it weighs what lies between",
            ));
        }
        plan.check_particles()?;
        plan.check_confidence(size)?;
        Ok(plan)
    }

    fn proposal(&self, model: &dyn DensityModel) -> Result<Proposal, Error> {
        let unigram = || unigram_weights(model.frequencies(), model.vocabulary_size()).map(|_| Proposal::Unigram);
        let only_cause = self.intervention == Intervention::Atomic && self.history == History::Observed;
        match self.proposal {
            // Weights that are known only after a type was scored fit no test that may stop at any time.
            None if only_cause && (self.confidence.is_none() || model.vocabulary_size() <= ENUMERATED_BY_AUTO) => {
                Ok(Proposal::Plausible)
            }
            None if model.frequencies().is_none() => Ok(Proposal::Uniform),
            None | Some(Proposal::Unigram) => unigram(),
            Some(Proposal::Model) if !model.predicts_first() && self.context == 0 => Err(Error::setting(
                "proposal",
                "model needs a prediction at every cause, and this model has none for the first event; set context to at least 1",
            )),
            Some(proposal) => Ok(proposal),
        }
    }
}

fn threshold(rule: Threshold, model: &dyn DensityModel) -> Result<f64, Error> {
    match rule {
        Threshold::Fixed(nats) if nats.is_finite() && nats >= 0.0 => Ok(nats),
        Threshold::Fixed(nats) => Err(Error::setting("threshold", format!("{nats} is not a strength; expected a number of nats, 0 or more"))),
        Threshold::ScalingLaw => Ok(scaling_law_threshold(model.vocabulary_size())),
        Threshold::Bound => model.fitness().epsilon().map(|epsilon| ErrorBound::new(epsilon).noise_floor).ok_or_else(|| {
            Error::setting("threshold", "bound needs the entropy of the process that made the events, which is known only for simulated ones; give a number of nats instead")
        }),
    }
}

impl Plan {
    /// Whether only the cause varies, so that its replacements can be listed.
    pub(crate) fn enumerable(&self) -> bool {
        self.intervention == Intervention::Atomic && self.history == History::Observed
    }

    /// Whether the draws of a cause are all that varies and come without replacement, so that what is not drawn yet is
    /// a known part of all types.
    pub(super) fn finite_population(&self) -> bool {
        self.enumerable() && self.proposal == Proposal::Uniform
    }

    fn check_particles(&self) -> Result<(), Error> {
        match self.particles {
            Particles::All if !self.enumerable() => Err(Error::setting(
                "particles",
                "all goes with intervention atomic and history observed only: otherwise several positions vary at once",
            )),
            Particles::Fixed(count) if !(2..=MOST_PARTICLES).contains(&count) => Err(Error::setting(
                "particles",
                format!(
                    "{count} is out of range; expected auto, all, or a number from 2 (a standard error needs two) to {MOST_PARTICLES}"
                ),
            )),
            _ => Ok(()),
        }
    }

    fn check_confidence(&self, size: usize) -> Result<(), Error> {
        let Some(confidence) = self.confidence else { return Ok(()) };
        let wrong = |reason: &str| Err(Error::setting("confidence", reason));
        if !(confidence > 0.5 && confidence < 1.0) {
            let reason = format!("{confidence} is out of range; expected more than 0.5 and less than 1, such as 0.99");
            return Err(Error::setting("confidence", reason));
        }
        if !self.enumerable() || self.divergence == Divergence::Full {
            return wrong("goes with intervention atomic, history observed and divergence event only");
        }
        if self.particles != Particles::Auto {
            return wrong("takes as many draws as it needs; leave particles at auto");
        }
        if self.threshold == 0.0 {
            return wrong("needs a threshold above 0: every strength exceeds 0");
        }
        if self.proposal == Proposal::Plausible && self.schedule(size) != Schedule::Enumerate {
            return wrong(
                "goes with proposal uniform, unigram or model: plausible weights are known only after the draw",
            );
        }
        Ok(())
    }

    /// How the replacements of a vocabulary of this size are gone through.
    pub(super) fn schedule(&self, size: usize) -> Schedule {
        let all = match self.particles {
            Particles::All => true,
            Particles::Fixed(count) => size <= count,
            Particles::Auto => size <= ENUMERATED_BY_AUTO,
        };
        match self.particles {
            _ if all && self.enumerable() => Schedule::Enumerate,
            Particles::Fixed(count) => Schedule::Rounds(vec![count]),
            // Twice as many each time, until all types but the event itself were tried.
            _ if self.confidence.is_some() => {
                let mut rounds: Vec<usize> = std::iter::successors(Some(16), |total| Some(total * 2))
                    .take_while(|total| *total < size - 1)
                    .collect();
                rounds.push(size - 1);
                Schedule::Rounds(rounds)
            }
            Particles::Auto | Particles::All if self.finite_population() => {
                // The event itself is not drawn.
                let mut rounds: Vec<usize> = ROUNDS.iter().map(|total| *total.min(&(size - 1))).collect();
                rounds.dedup();
                Schedule::Rounds(rounds)
            }
            Particles::Auto | Particles::All => Schedule::Rounds(ROUNDS.to_vec()),
        }
    }

    /// The pairs of positions, cause and effect, that a run tests in a sequence of `length` events, as far as prior
    /// knowledge does not exclude them.
    pub fn tested_pairs(&self, length: usize) -> impl Iterator<Item = (Position, Position)> + Clone + use<> {
        let memory = self.memory;
        (self.first_cause()..length).flat_map(move |cause| {
            let lags = memory.within(length - 1 - cause);
            (1..=lags).map(move |lag| (Position(cause as u32), Position((cause + lag) as u32)))
        })
    }

    /// The first position that may be a cause. Events before it are context; with a sampled history the event
    /// after the context is resampled too.
    pub fn first_cause(&self) -> usize {
        self.context.saturating_add(usize::from(self.history == History::Sampled))
    }

    /// The length a sequence needs for one pair to test.
    pub fn shortest(&self) -> usize {
        self.first_cause().saturating_add(2)
    }
}
