//! `trace explain`: why one event of one sequence happened.

use std::io::Write;

use serde_json::{Value, json};
use trace_core::{
    Chain, DensityModel, Discovery, Edge, EventId, EventName, EventSequence, Explanation, Position, Vocabulary,
};
use trace_io::Name;
use trace_io::log::{EventLog, Unknown};

use super::log::read_log;
use super::read_knowledge;
use crate::cli::{ExplainArgs, UnknownEvents};
use crate::failure::Failure;
use crate::table;

pub fn run(args: &ExplainArgs, quiet: bool) -> anyhow::Result<()> {
    let opened = trace_models::open(&args.model)?;
    let mut vocabulary = opened.vocabulary.clone();
    let knowledge = read_knowledge(args.knowledge.as_deref(), &vocabulary)?;
    let unknown = match args.unknown {
        UnknownEvents::Error => Unknown::Refuse,
        UnknownEvents::Skip => Unknown::Skip,
    };
    let log = read_log(&args.log, &mut vocabulary, unknown, quiet)?;
    let sequence = choose(&log, args.case.as_deref())?;
    let (position, others) = find(&args.at, sequence, &vocabulary)?;
    let mut discovery = Discovery::with_settings(&*opened.model, args.method.settings());
    if let Some((knowledge, _)) = &knowledge {
        discovery = discovery.knowledge(knowledge);
    }
    let plan = discovery.plan()?;
    if position.index() <= plan.first_cause() {
        return Err(Failure::usage(format!(
            "--at {}: nothing before position {position} may be a cause; expected a later one",
            args.at
        )));
    }
    let found = discovery.run(sequence)?;
    let told = Told {
        sequence,
        vocabulary: &vocabulary,
        prediction: Prediction::new(&*opened.model, sequence, position)?,
        explanation: Explanation::new(&found.graph, position),
        threshold: plan.threshold,
        others,
        chains: args.chains,
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&told.as_json())?)?;
    } else {
        write!(out, "{}", told.as_text())?;
    }
    Ok(())
}

/// The sequence that is meant.
fn choose<'l>(log: &'l EventLog, case: Option<&str>) -> anyhow::Result<&'l EventSequence> {
    match (case, log.sequences.as_slice()) {
        (Some(id), sequences) => sequences
            .iter()
            .find(|sequence| sequence.id == id)
            .ok_or_else(|| Failure::usage(format!("--case {id}: {} has no such sequence", log.name))),
        (None, [only]) => Ok(only),
        (None, sequences) => Err(Failure::usage(format!(
            "--case: {} has {} sequences; expected the id of one, such as {:?}",
            log.name,
            sequences.len(),
            sequences[0].id
        ))),
    }
}

/// The position that is meant, and the other positions of its type where a type was named.
fn find(at: &str, sequence: &EventSequence, vocabulary: &Vocabulary) -> anyhow::Result<(Position, Vec<Position>)> {
    let length = sequence.events.len();
    if let Ok(position) = at.parse::<u32>() {
        if position as usize >= length {
            return Err(Failure::usage(format!(
                "--at {at}: sequence {:?} has {length} events, counted from 0; a type is written type:{at}",
                sequence.id
            )));
        }
        return Ok((Position(position), Vec::new()));
    }
    let name: EventName = at.strip_prefix("type:").unwrap_or(at).into();
    let Some(event) = vocabulary.id(&name) else {
        return Err(Failure::usage(format!("--at {at}: the model knows no such type, and it is no position")));
    };
    let mut places: Vec<Position> =
        (0..).zip(&sequence.events).filter(|(_, found)| **found == event).map(|(at, _)| Position(at)).collect();
    match places.pop() {
        Some(last) => Ok((last, places)),
        None => Err(Failure::usage(format!("--at {at}: does not occur in sequence {:?}", sequence.id))),
    }
}

/// How well the model foresaw the event.
struct Prediction {
    probability: f64,
    /// How many types were more probable, plus one.
    rank: usize,
    types: usize,
    /// The type's share of all events the model was trained on.
    share: Option<f64>,
}

impl Prediction {
    fn new(model: &dyn DensityModel, sequence: &EventSequence, position: Position) -> anyhow::Result<Self> {
        let types = model.vocabulary_size();
        let mut row = vec![0.0; types];
        let at = position.index();
        model.forward(&sequence.events[..at], at..at + 1, &mut row)?;
        let event = sequence.events[at];
        let own = row[event.index()];
        let share = model.frequencies().map(|weights| weights[event.index()] / weights.iter().sum::<f64>());
        Ok(Self {
            probability: own.exp(),
            rank: 1 + row.iter().filter(|other| **other > own).count(),
            types,
            share: share.filter(|share| share.is_finite()),
        })
    }
}

/// An explanation and what it takes to tell it.
struct Told<'t> {
    sequence: &'t EventSequence,
    vocabulary: &'t Vocabulary,
    prediction: Prediction,
    explanation: Explanation,
    threshold: f64,
    others: Vec<Position>,
    chains: usize,
}

impl Told<'_> {
    fn name(&self, position: Position) -> EventName {
        self.vocabulary.name(self.event(position))
    }

    fn event(&self, position: Position) -> EventId {
        self.sequence.events[position.index()]
    }

    /// An event for people: its type and where it stands.
    fn place(&self, position: Position) -> String {
        let name = self.name(position).to_string();
        let short: String =
            if name.chars().count() <= 48 { name } else { name.chars().take(47).chain(['…']).collect() };
        format!("{short} at {position}")
    }

    fn as_text(&self) -> String {
        let Explanation { position, direct, despite, roots, .. } = &self.explanation;
        let mut text = format!("{} of {}", self.place(*position), self.sequence.id);
        if let Some(times) = &self.sequence.times {
            text += &format!(", time {}", times[position.index()]);
        }
        text.push('\n');
        if !self.others.is_empty() {
            let places: Vec<String> = self.others.iter().map(ToString::to_string).collect();
            text += &format!("(the last of its type; also at {})\n", places.join(", "));
        }
        text += &self.foreseen();
        if direct.is_empty() {
            text += &format!(
                "\nNothing explains it: no earlier event within reach made it more likely by more than {} nats.\n",
                self.threshold
            );
        } else {
            text += &format!(
                "\nDirect causes, strongest first (probability of the event with and without each):\n{}",
                self.table(direct)
            );
        }
        if !despite.is_empty() {
            text += &format!("\nIt happened in spite of:\n{}", self.table(despite));
        }
        if !roots.is_empty() {
            text += "\nChains back to the roots, each as strong as its weakest link:\n";
            for (number, chain) in (1..).zip(roots.iter().take(self.chains)) {
                text += &format!("{number}. {:.3}  {}\n", chain.strength, self.path(chain));
            }
            if roots.len() > self.chains {
                text += &format!("and {} weaker ones (--chains shows more)\n", roots.len() - self.chains);
            }
        }
        text + "\nTo call these causes is to assume that causes come first, that none is missing from the log, that mechanisms\n\
                stay the same along the sequence, and that the model fits.\n"
    }

    fn foreseen(&self) -> String {
        let Prediction { probability, rank, types, share } = self.prediction;
        let mut text =
            format!("The model gave it a probability of {}, rank {rank} of {types} types", percent(probability));
        if let Some(share) = share {
            text += &format!("; its share of all events is {}", percent(share));
            if probability < share {
                text += ".\nIt came as a surprise: the past made it less likely than usual";
            }
        }
        text + ".\n"
    }

    fn table(&self, edges: &[Edge]) -> String {
        let row = |edge: &Edge| {
            let mut cells = vec![
                format!("  {}", self.place(edge.cause)),
                format!("{} before", edge.lag()),
                format!("{:.3} ± {:.3} nats", edge.strength, edge.std_error),
                format!("{} → {}", percent(edge.probability), percent(edge.probability_replaced)),
            ];
            if edge.required {
                cells.push("required by knowledge".to_owned());
            }
            if self.sequence.tied(edge.cause, edge.effect) {
                cells.push("same time: the order is the file's".to_owned());
            }
            cells
        };
        table::render(&edges.iter().map(row).collect::<Vec<_>>())
    }

    fn path(&self, chain: &Chain) -> String {
        let mut places: Vec<String> = chain.edges.iter().map(|edge| self.place(edge.cause)).collect();
        places.push(self.place(self.explanation.position));
        places.join(" → ")
    }

    fn as_json(&self) -> Value {
        let name = |position: Position| Name(self.name(position));
        let edge = |edge: &Edge| {
            json!({
                "cause": edge.cause.0, "cause_type": name(edge.cause),
                "effect": edge.effect.0, "effect_type": name(edge.effect), "lag": edge.lag().0,
                "strength": edge.strength, "std_error": edge.std_error, "particles": edge.particles,
                "log_ratio": edge.log_ratio, "probability": edge.probability,
                "probability_replaced": edge.probability_replaced,
                "tied": self.sequence.tied(edge.cause, edge.effect), "required": edge.required,
            })
        };
        let edges = |list: &[Edge]| list.iter().map(edge).collect::<Vec<_>>();
        let Explanation { position, direct, despite, roots, ancestors } = &self.explanation;
        let chain = |chain: &Chain| {
            json!({
                "root": chain.root().map(|root| root.0), "root_type": chain.root().map(name),
                "strength": chain.strength, "edges": edges(&chain.edges),
            })
        };
        json!({
            "schema": "trace.explanation/1",
            "id": self.sequence.id,
            "position": position.0,
            "type": name(*position),
            "time": self.sequence.times.as_ref().map(|times| times[position.index()]),
            "probability": self.prediction.probability,
            "rank": self.prediction.rank,
            "types": self.prediction.types,
            "share_of_events": self.prediction.share,
            "threshold": self.threshold,
            "direct": edges(direct),
            "despite": edges(despite),
            "chains": roots.iter().map(chain).collect::<Vec<_>>(),
            "ancestors": ancestors.iter().map(|at| at.0).collect::<Vec<_>>(),
        })
    }
}

/// A probability for people.
fn percent(probability: f64) -> String {
    let percent = 100.0 * probability;
    match percent {
        p if p >= 99.995 && probability < 1.0 => "more than 99.99 %".to_owned(),
        p if p >= 99.0 => format!("{p:.2} %"),
        p if p >= 10.0 => format!("{p:.0} %"),
        p if p >= 0.1 => format!("{p:.1} %"),
        p if p >= 0.01 => format!("{p:.2} %"),
        0.0 => "0 %".to_owned(),
        _ => "less than 0.01 %".to_owned(),
    }
}
