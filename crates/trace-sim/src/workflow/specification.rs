//! The text that a workflow is made from, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use crate::Error;

/// Longer texts are rejected.
const LONGEST_TEXT: usize = 1 << 18;
/// The most types of a workflow.
pub(super) const MOST_TYPES: usize = 500;
/// The range of weights, odds and factors.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;
/// The most rounds of a loop, and the longest window of a rule.
const MOST_ROUNDS: usize = 100;
const LONGEST_WINDOW: usize = 64;
/// The most late parts of a sequence.
const MOST_LATE: usize = 16;
/// A part that is no step: nothing happens.
pub(super) const NOTHING: &str = "nothing";
/// Parts a step from its outcome in the name of an event.
pub const SEPARATOR: char = ':';

/// A workflow as it is written down: blocks of steps, the outcomes of steps, and what changes the odds of what.
#[derive(Clone, Debug, PartialEq)]
pub struct Specification {
    text: String,
    pub(super) written: Written,
    pub(super) blocks: BTreeMap<String, Block>,
    /// Every step with the odds of its outcomes, which are none for a step that has no outcomes.
    pub(super) steps: BTreeMap<String, BTreeMap<String, f64>>,
}

/// The text as TOML has it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    name: String,
    #[serde(default)]
    about: String,
    pub(super) start: String,
    #[serde(default)]
    pub(super) tied: Vec<String>,
    #[serde(default)]
    outcomes: BTreeMap<String, BTreeMap<String, f64>>,
    blocks: BTreeMap<String, WrittenBlock>,
    #[serde(default)]
    pub(super) depends: Vec<Rule>,
}

/// One `[[depends]]`: the cause multiplies the odds of the effect.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// An event: a step without outcomes, or a step with one of its outcomes, such as `lab test:high`.
    pub cause: String,
    /// A step, whose weight is multiplied where it can happen; or an outcome of a step, whose odds are.
    pub effect: String,
    /// By what.
    pub factor: f64,
    /// For how many events: the rule holds while the latest event of the cause's step is the cause and lies at most so
    /// far back.
    pub within: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenBlock {
    sequence: Option<Vec<String>>,
    late: BTreeMap<String, f64>,
    choice: Option<BTreeMap<String, f64>>,
    parallel: Option<Vec<String>>,
    pick: Option<usize>,
    r#loop: Option<String>,
    again: Option<f64>,
    most: Option<usize>,
    once: Option<String>,
    chance: Option<f64>,
}

/// A block; parts are names of blocks or steps.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Block {
    /// One after the other; late parts run beside what follows them.
    Sequence { parts: Vec<String>, late: BTreeMap<String, f64> },
    /// One of them, by weight.
    Choice(BTreeMap<String, f64>),
    /// Beside each other, in any order; all of them, or as many as are picked.
    Parallel { parts: Vec<String>, pick: usize },
    /// Once, and again with a probability, up to so many times.
    Loop { part: String, again: f64, most: usize },
    /// At most once.
    Once { part: String, chance: f64 },
}

impl Specification {
    /// Reads a specification from its text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse(text).map_err(|reason| Error::spec("spec", reason))
    }

    /// Reads a specification from a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let size = std::fs::metadata(path).map_err(Error::io(path))?.len();
        if size > LONGEST_TEXT as u64 {
            return Err(Error::folder(path, too_long(size)));
        }
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        parse(&text).map_err(|reason| Error::folder(path, reason))
    }

    /// The text that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The workflow's name.
    pub fn name(&self) -> &str {
        &self.written.name
    }

    /// What it says of itself.
    pub fn about(&self) -> &str {
        &self.written.about
    }

    /// The designed dependencies.
    pub fn rules(&self) -> &[Rule] {
        &self.written.depends
    }
}

fn too_long(size: u64) -> String {
    format!("{size} bytes are too many for a workflow; expected at most {LONGEST_TEXT}")
}

fn parse(text: &str) -> Result<Specification, String> {
    if text.len() > LONGEST_TEXT {
        return Err(too_long(text.len() as u64));
    }
    let written: Written = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let mut blocks = BTreeMap::new();
    for (name, block) in &written.blocks {
        check_name("block", name)?;
        blocks.insert(name.clone(), block.check().map_err(|reason| format!("block {name:?}: {reason}"))?);
    }
    if !blocks.contains_key(&written.start) {
        return Err(format!("start: there is no block {:?}", written.start));
    }
    let steps = steps(&written, &blocks)?;
    let specification = Specification { text: text.to_owned(), written, blocks, steps };
    for rule in specification.rules() {
        specification
            .check_rule(rule)
            .map_err(|reason| format!("the rule from {:?} to {:?}: {reason}", rule.cause, rule.effect))?;
    }
    Ok(specification)
}

/// All steps: the parts of blocks that are not blocks.
fn steps(
    written: &Written,
    blocks: &BTreeMap<String, Block>,
) -> Result<BTreeMap<String, BTreeMap<String, f64>>, String> {
    let mut used: BTreeSet<&str> = BTreeSet::from([written.start.as_str()]);
    let mut steps = BTreeMap::new();
    for part in blocks.values().flat_map(Block::parts).filter(|part| *part != NOTHING) {
        used.insert(part);
        if !blocks.contains_key(part) {
            check_name("step", part)?;
            steps.insert(part.to_owned(), BTreeMap::new());
        }
    }
    if let Some(name) = blocks.keys().find(|name| !used.contains(name.as_str())) {
        return Err(format!("block {name:?} is part of no other block"));
    }
    for (step, odds) in &written.outcomes {
        let place = steps.get_mut(step).ok_or_else(|| format!("outcomes of {step:?}, which is a step of no block"))?;
        if odds.len() < 2 {
            return Err(format!("outcomes of {step:?}: expected at least 2"));
        }
        for (outcome, odds) in odds {
            check_name("outcome", outcome)?;
            check_weight(*odds).map_err(|reason| format!("outcome {outcome:?} of {step:?}: {reason}"))?;
        }
        place.clone_from(odds);
    }
    if let Some(step) = written.tied.iter().find(|step| !steps.contains_key(*step)) {
        return Err(format!("tied: {step:?} is a step of no block"));
    }
    let types: usize = steps.values().map(|outcomes| outcomes.len().max(1)).sum();
    if !(2..=MOST_TYPES).contains(&types) {
        return Err(format!("{types} event types; expected 2 to {MOST_TYPES}"));
    }
    Ok(steps)
}

/// Names go into files with one event per row and into `step:outcome`.
fn check_name(what: &str, name: &str) -> Result<(), String> {
    let plain = |c: char| !c.is_control() && !matches!(c, SEPARATOR | ',' | '"');
    if name.trim() != name || name.is_empty() || name.len() > 100 || !name.chars().all(plain) {
        return Err(format!("{what} {name:?}: expected a short name without colon, comma and quote"));
    }
    if name == NOTHING {
        return Err(format!("{what} {name:?}: the name is taken, for parts where nothing happens"));
    }
    Ok(())
}

fn check_weight(weight: f64) -> Result<(), String> {
    if WEIGHTS.contains(&weight) {
        return Ok(());
    }
    Err(format!("{weight} is out of range; expected a number from {} to {}", WEIGHTS.start(), WEIGHTS.end()))
}

fn check_probability(name: &str, value: Option<f64>) -> Result<f64, String> {
    match value {
        Some(value) if value > 0.0 && value < 1.0 => Ok(value),
        Some(value) => Err(format!("{name}: {value} is out of range; expected more than 0 and less than 1")),
        None => Err(format!("{name} is missing; expected a probability")),
    }
}

impl WrittenBlock {
    fn check(&self) -> Result<Block, String> {
        let kinds = [
            ("sequence", self.sequence.is_some()),
            ("choice", self.choice.is_some()),
            ("parallel", self.parallel.is_some()),
            ("loop", self.r#loop.is_some()),
            ("once", self.once.is_some()),
        ];
        let given: Vec<&str> = kinds.iter().filter(|kind| kind.1).map(|kind| kind.0).collect();
        let [kind] = given[..] else {
            return Err(format!("expected one of sequence, choice, parallel, loop and once, found {given:?}"));
        };
        let settings = [
            ("late", "sequence", !self.late.is_empty()),
            ("pick", "parallel", self.pick.is_some()),
            ("again", "loop", self.again.is_some()),
            ("most", "loop", self.most.is_some()),
            ("chance", "once", self.chance.is_some()),
        ];
        if let Some((name, of, _)) = settings.iter().find(|(_, of, given)| *given && *of != kind) {
            return Err(format!("{name} belongs to a {of}, not to a {kind}"));
        }
        let block = self.block()?;
        if block.parts().next().is_none() {
            return Err(format!("expected a {kind} of something"));
        }
        Ok(block)
    }

    fn block(&self) -> Result<Block, String> {
        if let Some(parts) = &self.sequence {
            if self.late.len() > MOST_LATE {
                return Err(format!("late: {} parts; expected at most {MOST_LATE}", self.late.len()));
            }
            for (part, delay) in &self.late {
                check_weight(*delay).map_err(|reason| format!("late {part:?}: {reason}"))?;
                if parts.iter().rposition(|other| other == part).is_none_or(|place| place + 1 == parts.len()) {
                    return Err(format!("late {part:?}: expected a part of the sequence that others follow"));
                }
            }
            return Ok(Block::Sequence { parts: parts.clone(), late: self.late.clone() });
        }
        if let Some(parts) = &self.choice {
            for (part, weight) in parts {
                check_weight(*weight).map_err(|reason| format!("{part:?}: {reason}"))?;
            }
            return Ok(Block::Choice(parts.clone()));
        }
        if let Some(parts) = &self.parallel {
            let pick = self.pick.unwrap_or(parts.len());
            if self.pick.is_some() && !(1..=parts.len()).contains(&pick) {
                return Err(format!("pick: {pick} is out of range; expected 1 to {}", parts.len()));
            }
            return Ok(Block::Parallel { parts: parts.clone(), pick });
        }
        if let Some(part) = &self.r#loop {
            let most = self.most.ok_or("most is missing; expected the largest number of rounds")?;
            if !(2..=MOST_ROUNDS).contains(&most) {
                return Err(format!("most: {most} is out of range; expected 2 to {MOST_ROUNDS}"));
            }
            return Ok(Block::Loop { part: part.clone(), again: check_probability("again", self.again)?, most });
        }
        let part = self.once.clone().unwrap_or_default();
        Ok(Block::Once { part, chance: check_probability("chance", self.chance)? })
    }
}

impl Block {
    /// The names of its parts.
    pub(super) fn parts(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Sequence { parts, .. } | Self::Parallel { parts, .. } => Box::new(parts.iter().map(String::as_str)),
            Self::Choice(parts) => Box::new(parts.keys().map(String::as_str)),
            Self::Loop { part, .. } | Self::Once { part, .. } => Box::new(std::iter::once(part.as_str())),
        }
    }
}

impl Specification {
    fn check_rule(&self, rule: &Rule) -> Result<(), String> {
        check_weight(rule.factor).map_err(|reason| format!("factor: {reason}"))?;
        if !(1..=LONGEST_WINDOW).contains(&rule.within) {
            return Err(format!("within: {} is out of range; expected 1 to {LONGEST_WINDOW} events", rule.within));
        }
        let (step, outcome) = split(&rule.cause);
        let outcomes = self.outcomes(step)?;
        if outcome.is_none() && !outcomes.is_empty() {
            let outcomes: Vec<&String> = outcomes.keys().collect();
            return Err(format!("the cause is a step; expected one of its outcomes {outcomes:?}"));
        }
        for name in [&rule.cause, &rule.effect] {
            let (step, outcome) = split(name);
            let outcomes = self.outcomes(step)?;
            if let Some(outcome) = outcome.filter(|outcome| !outcomes.contains_key(*outcome)) {
                return Err(format!("step {step:?} has no outcome {outcome:?}"));
            }
        }
        Ok(())
    }

    fn outcomes(&self, step: &str) -> Result<&BTreeMap<String, f64>, String> {
        self.steps.get(step).ok_or_else(|| format!("there is no step {step:?}"))
    }
}

/// The step and the outcome of a name.
pub(super) fn split(name: &str) -> (&str, Option<&str>) {
    name.split_once(SEPARATOR).map_or((name, None), |(step, outcome)| (step, Some(outcome)))
}
