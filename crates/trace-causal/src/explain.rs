//! Explanations: why one event of one sequence happened.

mod json;
mod text;

use std::path::PathBuf;

use trace_core::theory::Fitness;
use trace_core::{
    DensityModel, Discovery, EventId, EventName, EventSequence, Explanation, Position, Settings, Vocabulary,
};
use trace_io::log::Unknown;

use crate::knowledge::KnowledgeFile;
use crate::log::choose;
use crate::progress::{Control, Progress};
use crate::{Error, Log, Model};

/// Chains that the text shows unless asked otherwise.
pub const DEFAULT_CHAINS: usize = 5;

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
    at_end: bool,
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
            at_end: false,
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

    /// Explain the end of the case instead of an event.
    #[must_use]
    pub const fn at_end(mut self, at_end: bool) -> Self {
        self.at_end = at_end;
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
        let density = self.model.density_for(sequence);
        let (position, others) = if self.at_end {
            if !sequence.ended {
                return Err(Error::option("at_end", format!("case {:?} has not ended", sequence.id)));
            }
            (Position(sequence.events.len() as u32), Vec::new())
        } else {
            find(&self.at, sequence, self.model.vocabulary())?
        };
        let families = self.model.families_for(log)?;
        let settings = Settings { end: self.settings.end || self.at_end, ..self.settings };
        let mut discovery = Discovery::with_settings(density, settings);
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
        let events_shown = found.graph.events();
        // The end comes right after the last event.
        let times = sequence.times.as_ref().map(|times| {
            let last = times.last().copied().unwrap_or(0.0);
            times.iter().copied().chain(std::iter::repeat(last)).take(events_shown.len()).collect()
        });
        Ok(Explained {
            id: sequence.id.clone(),
            events: events_shown.iter().map(|event| self.model.vocabulary().name(*event)).collect(),
            times,
            dated: events.dated,
            prediction: Prediction::new(density, events_shown, position)?,
            explanation: Explanation::new(&found.graph, position),
            fitness: density.fitness(),
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
    fn new(model: &dyn DensityModel, events: &[EventId], position: Position) -> Result<Self, Error> {
        let types = model.vocabulary_size();
        let mut row = vec![0.0; model.row_size()];
        let at = position.index();
        model.forward(&events[..at], at..at + 1, &mut row).map_err(trace_core::Error::from)?;
        let event = events[at];
        let own = row[event.index()];
        // The end is no type, and has no share of the events.
        let share =
            model.frequencies().and_then(|weights| Some(weights.get(event.index())? / weights.iter().sum::<f64>()));
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
    /// How well the model fits.
    pub fitness: Fitness,
    /// What a strength had to exceed, in nats.
    pub threshold: f64,
    /// Other positions of the same type, where a type was asked for.
    pub others: Vec<Position>,
}
