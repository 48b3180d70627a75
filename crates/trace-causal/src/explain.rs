//! Explanations: why one event of one sequence happened.

use std::fmt::{self, Display};
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use trace_core::{
    Chain, DensityModel, Discovery, EventName, EventSequence, Explanation, Pair, Position, Settings, Vocabulary,
};
use trace_io::log::{Unknown, show_time};
use trace_report::shorten::distinct;

use crate::knowledge::KnowledgeFile;
use crate::log::choose;
use crate::progress::{Control, Progress};
use crate::{Error, Log, Model};

/// Chains that the text shows unless asked otherwise.
pub const DEFAULT_CHAINS: usize = 5;
/// Letters of a name that the text shows.
const LONGEST_NAME: usize = 48;

/// Explains one event.
///
/// ```no_run
/// use trace_causal::{Explain, Log, Model};
///
/// let (log, model) = (Log::open("events.csv")?, Model::open("model")?);
/// println!("{}", Explain::new(&model).case("v1").at("P0300").run(&log)?);
/// # Ok::<(), trace_causal::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Explain<'e> {
    model: &'e Model,
    settings: Settings,
    knowledge: Option<PathBuf>,
    unknown: Unknown,
    case: Option<String>,
    at: String,
    control: Control<'e>,
}

impl<'e> Explain<'e> {
    /// With every default.
    pub fn new(model: &'e Model) -> Self {
        Self {
            model,
            settings: Settings::default(),
            knowledge: None,
            unknown: Unknown::Refuse,
            case: None,
            at: String::new(),
            control: Control::default(),
        }
    }

    /// The settings of the method.
    #[must_use]
    pub const fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// What is known beforehand: a TOML file.
    #[must_use]
    pub fn knowledge(mut self, file: Option<PathBuf>) -> Self {
        self.knowledge = file;
        self
    }

    /// What to do with events that the model does not know.
    #[must_use]
    pub const fn unknown(mut self, unknown: Unknown) -> Self {
        self.unknown = unknown;
        self
    }

    /// The sequence; may be left out where the log has only one.
    #[must_use]
    pub fn case(mut self, id: impl Into<String>) -> Self {
        self.case = Some(id.into());
        self
    }

    /// The event: its position, counted from 0, or its type, of which the last occurrence is meant. A type that looks
    /// like a number is written `type:12`.
    #[must_use]
    pub fn at(mut self, at: impl Into<String>) -> Self {
        self.at = at.into();
        self
    }

    /// Who listens.
    #[must_use]
    pub fn progress(mut self, progress: &'e dyn Progress) -> Self {
        self.control = self.control.progress(progress);
        self
    }

    /// Explains the event.
    pub fn run(&self, log: &Log) -> Result<Explained, Error> {
        let knowledge = self.knowledge.as_deref().map(|path| KnowledgeFile::read(path, self.model)).transpose()?;
        let events = log.read_for(self.model, self.unknown, &self.control)?;
        let sequence = choose(&events, self.case.as_deref())?;
        let (position, others) = find(&self.at, sequence, self.model.vocabulary())?;
        let density = self.model.density_for(&sequence.id);
        let families = self.model.families_for(log)?;
        let mut discovery = Discovery::with_settings(density, self.settings);
        if let Some(families) = &families {
            discovery = discovery.families(families);
        }
        if let Some(file) = &knowledge {
            discovery = discovery.knowledge(&file.knowledge);
        }
        let plan = discovery.plan()?;
        if position.index() <= plan.first_cause() {
            let reason =
                format!("{}: nothing before position {position} may be a cause; expected a later one", self.at);
            return Err(Error::option("at", reason));
        }
        let found = discovery.run(sequence)?;
        Ok(Explained {
            id: sequence.id.clone(),
            events: sequence.events.iter().map(|event| self.model.vocabulary().name(*event)).collect(),
            times: sequence.times.clone(),
            dated: events.dated,
            prediction: Prediction::new(density, sequence, position)?,
            explanation: Explanation::new(&found.graph, position),
            threshold: plan.threshold,
            others,
        })
    }
}

/// The position that is meant, and the other positions of its type where a type was named.
fn find(at: &str, sequence: &EventSequence, vocabulary: &Vocabulary) -> Result<(Position, Vec<Position>), Error> {
    let length = sequence.events.len();
    if let Ok(position) = at.parse::<u32>() {
        if position as usize >= length {
            let id = &sequence.id;
            let reason =
                format!("{at}: sequence {id:?} has {length} events, counted from 0; a type is written type:{at}");
            return Err(Error::option("at", reason));
        }
        return Ok((Position(position), Vec::new()));
    }
    let name: EventName = at.strip_prefix("type:").unwrap_or(at).into();
    let Some(event) = vocabulary.id(&name) else {
        return Err(Error::option("at", format!("{at}: the model knows no such type, and it is no position")));
    };
    let mut places: Vec<Position> =
        (0..).zip(&sequence.events).filter(|(_, found)| **found == event).map(|(at, _)| Position(at)).collect();
    match places.pop() {
        Some(last) => Ok((last, places)),
        None => Err(Error::option("at", format!("{at}: does not occur in sequence {:?}", sequence.id))),
    }
}

/// How well the model foresaw an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Its probability given the past.
    pub probability: f64,
    /// How many types were more probable, plus one.
    pub rank: usize,
    /// How many types there are.
    pub types: usize,
    /// The type's share of all events that the model was trained on.
    pub share: Option<f64>,
    /// The probability that the case ended before the event, where the model predicts ends.
    pub end: Option<f64>,
}

impl Prediction {
    fn new(model: &dyn DensityModel, sequence: &EventSequence, position: Position) -> Result<Self, Error> {
        let types = model.vocabulary_size();
        let mut row = vec![0.0; model.row_size()];
        let at = position.index();
        model.forward(&sequence.events[..at], at..at + 1, &mut row).map_err(trace_core::Error::from)?;
        let event = sequence.events[at];
        let own = row[event.index()];
        let share = model.frequencies().map(|weights| weights[event.index()] / weights.iter().sum::<f64>());
        Ok(Self {
            probability: own.exp(),
            rank: 1 + row[..types].iter().filter(|other| **other > own).count(),
            types,
            share: share.filter(|share| share.is_finite()),
            end: model.end().map(|end| row[end.index()].exp()),
        })
    }
}

/// Why one event happened. Displays as text for people, and serializes as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The sequence.
    pub id: String,
    /// Its events.
    pub events: Vec<EventName>,
    /// When they happened.
    pub times: Option<Vec<f64>>,
    /// Whether times are dates, as seconds since 1970.
    pub dated: bool,
    /// How well the model foresaw the event.
    pub prediction: Prediction,
    /// Causes and chains.
    pub explanation: Explanation,
    /// What a strength had to exceed, in nats.
    pub threshold: f64,
    /// Other positions of the same type, where a type was asked for.
    pub others: Vec<Position>,
}

impl Explained {
    /// The text with at most this many chains.
    pub fn text(&self, chains: usize) -> String {
        let Explanation { position, direct, despite, roots, .. } = &self.explanation;
        let names = self.names();
        let place = |position: Position| format!("{} at {position}", names[position.index()]);
        let mut text = format!("{} of {}", place(*position), self.id);
        if let Some(time) = self.time(*position) {
            text += &format!(", {time}");
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
            text += "\nDirect causes, strongest first (probability of the event with and without each):\n";
            text += &table(direct, &place);
        }
        if !despite.is_empty() {
            text += &format!("\nIt happened in spite of:\n{}", table(despite, &place));
        }
        if !roots.is_empty() {
            text += "\nChains back to the roots, each as strong as its weakest link:\n";
            for (number, chain) in (1..).zip(roots.iter().take(chains)) {
                let mut places: Vec<String> = chain.edges.iter().map(|edge| place(edge.cause)).collect();
                places.push(place(*position));
                text += &format!("{number}. {:.3}  {}\n", chain.strength, places.join(" → "));
            }
            if roots.len() > chains {
                text += &format!("and {} weaker ones\n", roots.len() - chains);
            }
        }
        text + "\nTo call these causes is to assume that causes come first, that none is missing from the log, that mechanisms\n\
                stay the same along the sequence, and that the model fits.\n"
    }

    /// Names short enough for a table, cut so that those which differ still do.
    fn names(&self) -> Vec<String> {
        distinct(&self.events.iter().map(ToString::to_string).collect::<Vec<_>>(), LONGEST_NAME)
    }

    /// When an event happened, as a date where the log has dates.
    fn time(&self, position: Position) -> Option<String> {
        let time = *self.times.as_ref()?.get(position.index())?;
        let date = if self.dated { show_time(time) } else { None };
        Some(date.unwrap_or_else(|| format!("time {time}")))
    }

    fn foreseen(&self) -> String {
        let Prediction { probability, rank, types, share, end } = self.prediction;
        let mut text =
            format!("The model gave it a probability of {}, rank {rank} of {types} types", percent(probability));
        if let Some(share) = share {
            text += &format!("; its share of all events is {}", percent(share));
            if probability < share {
                text += ".\nIt came as a surprise: the past made it less likely than usual";
            }
        }
        if let Some(end) = end {
            text += &format!(".\nThat the case would end there instead had a probability of {}", percent(end));
        }
        text + ".\n"
    }
}

impl Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(DEFAULT_CHAINS))
    }
}

/// One edge per line.
fn table(edges: &[Pair], place: &dyn Fn(Position) -> String) -> String {
    let row = |edge: &Pair| {
        let mut cells = vec![
            format!("  {}", place(edge.cause)),
            format!("{} before", edge.lag),
            format!("{:.3} ± {:.3} nats", edge.strength, edge.std_error),
            format!("{} → {}", percent(edge.probability), percent(edge.probability_replaced)),
        ];
        if edge.required {
            cells.push("required by knowledge".to_owned());
        }
        if edge.tied {
            cells.push("same time: the order is the file's".to_owned());
        }
        cells
    };
    crate::table::render(&edges.iter().map(row).collect::<Vec<_>>())
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

/// The version of explanations that this software writes.
const SCHEMA: &str = "trace.explanation/1";

impl Serialize for Explained {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Edge<'e> {
            #[serde(flatten)]
            pair: Pair,
            cause_type: &'e EventName,
            effect_type: &'e EventName,
            required: bool,
        }
        #[derive(Serialize)]
        struct Path<'e> {
            root: Option<Position>,
            root_type: Option<&'e EventName>,
            strength: f64,
            edges: Vec<Edge<'e>>,
        }
        #[derive(Serialize)]
        struct File<'e> {
            schema: &'static str,
            id: &'e str,
            position: Position,
            r#type: &'e EventName,
            time: Option<f64>,
            probability: f64,
            rank: usize,
            types: usize,
            share_of_events: Option<f64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            end_probability: Option<f64>,
            threshold: f64,
            direct: Vec<Edge<'e>>,
            despite: Vec<Edge<'e>>,
            chains: Vec<Path<'e>>,
            ancestors: &'e [Position],
        }
        let Explanation { position, direct, despite, roots, ancestors } = &self.explanation;
        let name = |position: Position| &self.events[position.index()];
        let edge = |pair: &Pair| Edge {
            pair: *pair,
            cause_type: name(pair.cause),
            effect_type: name(pair.effect),
            required: pair.required,
        };
        let edges = |pairs: &[Pair]| pairs.iter().map(edge).collect::<Vec<_>>();
        let path = |chain: &Chain| {
            let root = chain.root();
            Path { root, root_type: root.map(name), strength: chain.strength, edges: edges(&chain.edges) }
        };
        let file = File {
            schema: SCHEMA,
            id: &self.id,
            position: *position,
            r#type: name(*position),
            time: self.times.as_ref().and_then(|times| times.get(position.index()).copied()),
            probability: self.prediction.probability,
            rank: self.prediction.rank,
            types: self.prediction.types,
            share_of_events: self.prediction.share,
            end_probability: self.prediction.end,
            threshold: self.threshold,
            direct: edges(direct),
            despite: edges(despite),
            chains: roots.iter().map(path).collect(),
            ancestors,
        };
        file.serialize(serializer)
    }
}
