//! The blocks of a workflow as a tree that is played like a board game: a state says how far each block is, and an event
//! that can happen next moves it.
//!
//! The state is a function of the events so far, so that probabilities are too. Each node passes on a mass: what its next
//! event is, and with which mass it ends without one.
//!
//! ```text
//! sequence   the first part that is not over; its mass of ending goes to the next part
//! choice     masses by weight; once one of its parts has had an event, that part alone
//! parallel   all end silently with Π e_i; the rest of the mass goes to parts i by w_i (1 − e_i)
//! loop       the mass of ending goes to a new round with probability `again`, up to the last round
//! ```
//!
//! Cost of a row: the number of nodes, times the depth of parallel blocks.

use super::specification::{Block, NOTHING, Specification};

/// The most nodes, the deepest nesting, and the longest case without noise.
const MOST_NODES: usize = 4096;
const DEEPEST: usize = 64;
const LONGEST_CASE: usize = 1000;
/// The exponent of weights where choices are as regular as can be.
const MOST_REGULAR: f64 = 99.0;

/// The tree, in preorder: the nodes of a block follow it.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// The state in which nothing has happened.
    fresh: State,
}

/// How far each node is; 0 is fresh.
pub(super) type State = Vec<u16>;

#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    /// One past the last node below.
    end: usize,
}

#[derive(Clone, Debug)]
enum Kind {
    Nothing,
    /// State 1: happened.
    Step(usize),
    /// State: the part that is running.
    Sequence(Vec<usize>),
    /// State: one more than the part that was chosen.
    Choice(Vec<(usize, f64)>),
    Parallel {
        parts: Vec<(usize, f64)>,
        pick: usize,
    },
    /// State: the number of rounds begun.
    Loop {
        part: usize,
        again: f64,
        most: u16,
    },
}

/// Makes the tree.
struct Builder<'s> {
    specification: &'s Specification,
    steps: Vec<&'s str>,
    exponent: f64,
    nodes: Vec<Node>,
    /// The blocks around the present one.
    around: Vec<&'s str>,
}

impl Tree {
    /// The tree of a specification; errors are reasons.
    pub(super) fn new(specification: &Specification, regularity: f64) -> Result<Self, String> {
        let mut builder = Builder {
            specification,
            steps: specification.steps.keys().map(String::as_str).collect(),
            exponent: (regularity / (1.0 - regularity)).min(MOST_REGULAR),
            nodes: Vec::new(),
            around: Vec::new(),
        };
        builder.part(&specification.written.start)?;
        let nodes = builder.nodes;
        let tree = Self { fresh: vec![0; nodes.len()], nodes };
        if tree.silent(0, &tree.fresh) > 0.0 {
            return Err("a case could end before anything happens; expected a step that is not optional".to_owned());
        }
        if let Some(node) = tree.optional_pick() {
            return Err(format!("pick: part {node} of a parallel block is optional; expected parts that happen"));
        }
        let longest = tree.longest(0);
        if longest > LONGEST_CASE {
            return Err(format!("a case could have {longest} events; expected at most {LONGEST_CASE}"));
        }
        Ok(tree)
    }

    pub(super) fn fresh(&self) -> State {
        self.fresh.clone()
    }

    /// Adds the mass of each step that can come next; returns the mass of the end.
    pub(super) fn offer(&self, state: &[u16], masses: &mut [f64]) -> f64 {
        self.offer_node(0, state, 1.0, masses)
    }

    /// Moves the state by a step; one that cannot come next leaves it as it is. Where it could come from two places, the
    /// first is moved.
    pub(super) fn advance(&self, state: &mut [u16], step: usize) {
        self.advance_node(0, state, step);
    }

    fn offer_node(&self, at: usize, state: &[u16], mass: f64, masses: &mut [f64]) -> f64 {
        match &self.nodes[at].kind {
            Kind::Nothing => mass,
            Kind::Step(_) if state[at] > 0 => mass,
            Kind::Step(step) => {
                masses[*step] += mass;
                0.0
            }
            Kind::Sequence(parts) => {
                let mut rest = mass;
                for part in &parts[usize::from(state[at])..] {
                    rest = self.offer_node(*part, state, rest, masses);
                    if rest == 0.0 {
                        break;
                    }
                }
                rest
            }
            Kind::Choice(parts) => match state[at].checked_sub(1) {
                Some(chosen) => self.offer_node(parts[usize::from(chosen)].0, state, mass, masses),
                None => parts.iter().map(|(part, share)| self.offer_node(*part, state, mass * share, masses)).sum(),
            },
            Kind::Parallel { parts, pick } => {
                let (mut silent, mut total) = (1.0, 0.0);
                for (part, weight) in self.open(parts, *pick, state) {
                    let ends = self.silent(part, state);
                    silent *= ends;
                    total += weight * (1.0 - ends);
                }
                if total > 0.0 {
                    let each = mass * (1.0 - silent) / total;
                    for (part, weight) in self.open(parts, *pick, state) {
                        self.offer_node(part, state, each * weight, masses);
                    }
                }
                mass * silent
            }
            Kind::Loop { part, again, most } => {
                let rest = self.offer_node(*part, state, mass, masses);
                if !(1..*most).contains(&state[at]) || rest == 0.0 {
                    return rest;
                }
                rest * (1.0 - again) + self.offer_node(*part, &self.fresh, rest * again, masses)
            }
        }
    }

    /// The probability that a node ends without another event.
    fn silent(&self, at: usize, state: &[u16]) -> f64 {
        match &self.nodes[at].kind {
            Kind::Nothing => 1.0,
            Kind::Step(_) => f64::from(state[at].min(1)),
            Kind::Sequence(parts) => {
                parts[usize::from(state[at])..].iter().map(|part| self.silent(*part, state)).product()
            }
            Kind::Choice(parts) => match state[at].checked_sub(1) {
                Some(chosen) => self.silent(parts[usize::from(chosen)].0, state),
                None => parts.iter().map(|(part, share)| share * self.silent(*part, state)).sum(),
            },
            Kind::Parallel { parts, pick } => {
                self.open(parts, *pick, state).map(|(part, _)| self.silent(part, state)).product()
            }
            Kind::Loop { part, again, most } => {
                let rest = self.silent(*part, state);
                if !(1..*most).contains(&state[at]) || rest == 0.0 {
                    return rest;
                }
                rest * (1.0 - again + again * self.silent(*part, &self.fresh))
            }
        }
    }

    /// The parts of a parallel block that may have another event, as far as the number of picked ones goes.
    fn open<'t>(
        &'t self,
        parts: &'t [(usize, f64)],
        pick: usize,
        state: &'t [u16],
    ) -> impl Iterator<Item = (usize, f64)> + 't {
        let begun = |part: usize| state[part..self.nodes[part].end].iter().any(|value| *value > 0);
        let all = pick == parts.len() || parts.iter().filter(|(part, _)| begun(*part)).count() < pick;
        parts.iter().copied().filter(move |(part, _)| all || begun(*part))
    }

    fn advance_node(&self, at: usize, state: &mut [u16], step: usize) -> bool {
        match &self.nodes[at].kind {
            Kind::Nothing => false,
            Kind::Step(own) => {
                let moves = *own == step && state[at] == 0;
                state[at] |= u16::from(moves);
                moves
            }
            Kind::Sequence(parts) => {
                for (place, part) in parts.iter().enumerate().skip(usize::from(state[at])) {
                    if self.advance_node(*part, state, step) {
                        state[at] = place as u16;
                        return true;
                    }
                    if self.silent(*part, state) == 0.0 {
                        return false;
                    }
                }
                false
            }
            Kind::Choice(parts) => match state[at].checked_sub(1) {
                Some(chosen) => self.advance_node(parts[usize::from(chosen)].0, state, step),
                None => match parts.iter().position(|(part, _)| self.advance_node(*part, state, step)) {
                    Some(chosen) => {
                        state[at] = chosen as u16 + 1;
                        true
                    }
                    None => false,
                },
            },
            Kind::Parallel { parts, pick } => {
                let open: Vec<usize> = self.open(parts, *pick, state).map(|(part, _)| part).collect();
                open.into_iter().any(|part| self.advance_node(part, state, step))
            }
            Kind::Loop { part, most, .. } => {
                if self.advance_node(*part, state, step) {
                    state[at] = state[at].max(1);
                    return true;
                }
                if !(1..*most).contains(&state[at]) || self.silent(*part, state) == 0.0 {
                    return false;
                }
                let below = *part..self.nodes[*part].end;
                let before = state[below.clone()].to_vec();
                state[below.clone()].fill(0);
                let moves = self.advance_node(*part, state, step);
                if moves {
                    state[at] += 1;
                } else {
                    state[below].copy_from_slice(&before);
                }
                moves
            }
        }
    }

    /// The largest number of events of a node.
    fn longest(&self, at: usize) -> usize {
        match &self.nodes[at].kind {
            Kind::Nothing => 0,
            Kind::Step(_) => 1,
            Kind::Sequence(parts) => parts.iter().fold(0, |sum, part| sum.saturating_add(self.longest(*part))),
            Kind::Choice(parts) => parts.iter().map(|(part, _)| self.longest(*part)).max().unwrap_or(0),
            Kind::Parallel { parts, .. } => {
                parts.iter().fold(0, |sum, (part, _)| sum.saturating_add(self.longest(*part)))
            }
            Kind::Loop { part, most, .. } => self.longest(*part).saturating_mul(usize::from(*most)),
        }
    }

    /// A part that may not happen, of a block that picks some of its parts.
    fn optional_pick(&self) -> Option<usize> {
        self.nodes.iter().find_map(|node| match &node.kind {
            Kind::Parallel { parts, pick } if *pick < parts.len() => {
                parts.iter().position(|(part, _)| self.silent(*part, &self.fresh) > 0.0).map(|place| place + 1)
            }
            _ => None,
        })
    }
}

impl<'s> Builder<'s> {
    /// Adds a node that is filled in later.
    fn add(&mut self) -> Result<usize, String> {
        if self.nodes.len() >= MOST_NODES {
            return Err(format!("the blocks hold more than {MOST_NODES} parts, counted as often as they are used"));
        }
        self.nodes.push(Node { kind: Kind::Nothing, end: 0 });
        Ok(self.nodes.len() - 1)
    }

    fn finish(&mut self, at: usize, kind: Kind) -> usize {
        self.nodes[at] = Node { kind, end: self.nodes.len() };
        at
    }

    /// Adds a block or step by name.
    fn part(&mut self, name: &'s str) -> Result<usize, String> {
        let Some((name, block)) = self.specification.blocks.get_key_value(name) else {
            let at = self.add()?;
            let step = self.steps.binary_search(&name).ok();
            return Ok(
                self.finish(at, if name == NOTHING { Kind::Nothing } else { step.map_or(Kind::Nothing, Kind::Step) })
            );
        };
        if self.around.contains(&name.as_str()) {
            return Err(format!("block {name:?} is part of itself"));
        }
        if self.around.len() >= DEEPEST {
            return Err(format!("blocks are nested more than {DEEPEST} deep"));
        }
        self.around.push(name);
        let at = self.block(block)?;
        self.around.pop();
        Ok(at)
    }

    fn block(&mut self, block: &'s Block) -> Result<usize, String> {
        let at = match block {
            Block::Sequence { parts, late } => return self.sequence(parts, late),
            _ => self.add()?,
        };
        let kind = match block {
            Block::Sequence { .. } => Kind::Nothing,
            Block::Choice(parts) => {
                let shares = self.shares(parts.values().copied());
                let nodes = parts.keys().map(|part| self.part(part)).collect::<Result<Vec<_>, _>>()?;
                Kind::Choice(nodes.into_iter().zip(shares).collect())
            }
            Block::Parallel { parts, pick } => {
                // Regular processes prefer the order in which the parts are listed.
                let slope = (self.exponent - 1.0).clamp(0.0, 10.0);
                let weights = (0..parts.len()).map(|place| (-slope * place as f64).exp());
                let nodes = parts.iter().map(|part| self.part(part)).collect::<Result<Vec<_>, _>>()?;
                Kind::Parallel { parts: nodes.into_iter().zip(weights).collect(), pick: *pick }
            }
            Block::Loop { part, again, most } => {
                let again = self.shares([*again, 1.0 - again].into_iter())[0];
                Kind::Loop { part: self.part(part)?, again, most: *most as u16 }
            }
            Block::Once { part, chance } => {
                let shares = self.shares([*chance, 1.0 - chance].into_iter());
                Kind::Choice(vec![(self.part(part)?, shares[0]), (self.part(NOTHING)?, shares[1])])
            }
        };
        Ok(self.finish(at, kind))
    }

    /// A late part runs beside all that follows it: others come before it as often as its delay says, on average.
    fn sequence(
        &mut self,
        parts: &'s [String],
        late: &std::collections::BTreeMap<String, f64>,
    ) -> Result<usize, String> {
        let at = self.add()?;
        let mut nodes = Vec::new();
        for (place, part) in parts.iter().enumerate() {
            let rest = &parts[place + 1..];
            if let Some(delay) = late.get(part).filter(|_| !rest.is_empty()) {
                let both = self.add()?;
                let parts = vec![(self.part(part)?, 1.0 / delay), (self.sequence(rest, late)?, 1.0)];
                nodes.push(self.finish(both, Kind::Parallel { parts, pick: 2 }));
                break;
            }
            nodes.push(self.part(part)?);
        }
        Ok(self.finish(at, Kind::Sequence(nodes)))
    }

    /// Weights as shares that sum to 1, as regular as asked.
    fn shares(&self, weights: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
        let largest = weights.clone().fold(0.0, f64::max);
        let weights: Vec<f64> = weights.map(|weight| (weight / largest).powf(self.exponent)).collect();
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    }
}
