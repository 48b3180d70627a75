//! XES, the XML of process mining: `<log>` of `<trace>`s of `<event>`s, each with attributes by key.
//!
//! A trace at a time is in memory. What XML can do to a reader is refused: document types with declarations (entities
//! that expand without end), deep nesting, tags of many megabytes.

use std::io::{self, BufRead, Read};

use memchr::{memchr_iter, memrchr};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use trace_core::{EventName, Hint};

use super::hints::{CASE_COLUMN, EVENT_COLUMN, Fault, OUTCOME_COLUMN, SKIP_ROWS, TIME_COLUMN, WITHOUT_TIMES};
use super::index::sort;
use super::names::{Names, Refused};
use super::options::{BadRows, Format, LogOptions};
use super::report::Report;
use super::source::{Compression, Source, broken};
use super::time::TimeStyle;
use super::{RawSequence, SequenceReader, shorten};
use crate::Error;

/// Elements inside elements. XES nests attributes, but hardly ever more than two or three.
const DEEPEST: usize = 64;
/// Bytes of one tag or text.
const LONGEST_TAG: usize = 16 << 20;

pub(super) struct Xes {
    name: String,
    compression: Option<Compression>,
    reader: Reader<Place>,
    keys: Keys,
    style: TimeStyle,
    bad_rows: BadRows,
    names: Names,
    report: Report,
    depth: usize,
    traces: u64,
    trace: Option<Trace>,
    event: Option<Element>,
    /// Whether any event had an outcome.
    outcomes: bool,
    done: bool,
}

/// The attributes to look for.
struct Keys {
    case: Vec<String>,
    case_named: bool,
    event: Vec<String>,
    time: Option<String>,
    outcome: Option<String>,
}

/// Attributes found so far.
struct Element {
    line: u64,
    names: Vec<Option<String>>,
    time: Option<String>,
    outcome: Option<String>,
}

struct Trace {
    element: Element,
    events: Vec<u32>,
    times: Vec<f64>,
}

impl Element {
    fn new(line: u64, keys: usize) -> Self {
        Self { line, names: vec![None; keys], time: None, outcome: None }
    }

    /// The wanted values joined, if all are there.
    fn name(&self) -> Option<String> {
        let parts: Option<Vec<&str>> = self.names.iter().map(Option::as_deref).collect();
        parts.map(|parts| parts.join("+")).filter(|name| !name.trim().is_empty())
    }
}

impl Xes {
    pub(super) fn new(source: Source, options: &LogOptions) -> Result<Self, Error> {
        let choice = &options.columns;
        let or = |named: &[String], usual: &str| if named.is_empty() { vec![usual.to_owned()] } else { named.to_vec() };
        if choice.time.len() > 1 {
            let reason = format!("names {} attributes; expected one of a log in XES", choice.time.len());
            return Err(Error::option(&source.name, TIME_COLUMN, reason));
        }
        let keys = Keys {
            case: or(&choice.case, "concept:name"),
            case_named: !choice.case.is_empty(),
            event: or(&choice.event, "concept:name"),
            time: or(&choice.time, "time:timestamp").into_iter().next().filter(|_| !choice.no_time),
            outcome: choice.outcome.clone(),
        };
        let mut report = Report::new(Format::Xes, source.compression);
        report.case_columns.clone_from(&keys.case);
        report.event_columns.clone_from(&keys.event);
        report.time_columns.extend(keys.time.clone());
        report.outcome_column.clone_from(&keys.outcome);
        report.dated = keys.time.is_some();
        let (name, compression) = (source.name.clone(), source.compression);
        let place = Place { inner: source.into_text()?, line: 1, column: 1, taken: 0 };
        Ok(Self {
            name,
            compression,
            reader: Reader::from_reader(place),
            keys,
            style: options.time_format.clone().map_or(TimeStyle::Date, TimeStyle::Format),
            bad_rows: options.bad_rows,
            names: Names::default(),
            report,
            depth: 0,
            traces: 0,
            trace: None,
            event: None,
            outcomes: false,
            done: false,
        })
    }

    pub(super) fn into_names(self) -> Names {
        self.names
    }

    /// An error at the reader's place.
    fn fault(&self, reason: impl std::fmt::Display) -> Error {
        let place = self.reader.get_ref();
        Error::line(&self.name, place.line, format!("column {}: {reason}", place.column))
    }

    fn xml_fault(&self, error: quick_xml::Error) -> Error {
        match error {
            quick_xml::Error::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => self.fault(error),
            quick_xml::Error::Io(error) => {
                let error = io::Error::new(error.kind(), error.to_string());
                broken(&self.name, self.compression, error)
            }
            error => self.fault(format!("expected XES: {error}")),
        }
    }

    fn open(&mut self, element: &BytesStart<'_>, line: u64) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.fault(format!("elements are nested more than {DEEPEST} deep; expected a flat log")));
        }
        let tag = element.local_name();
        let tag = tag.as_ref();
        match self.depth {
            1 if tag != "log" => {
                let found = shorten(tag);
                return Err(self.fault(format!("expected <log>, found <{found}>; is it a log in XES?")));
            }
            2 if tag == "trace" => {
                let element = Element::new(line, self.keys.case.len());
                self.trace = Some(Trace { element, events: Vec::new(), times: Vec::new() });
            }
            3 if tag == "event" && self.trace.is_some() => self.event = Some(Element::new(line, self.keys.event.len())),
            3 if self.trace.is_some() => self.attribute(element)?,
            4 if self.event.is_some() => self.attribute(element)?,
            _ => {}
        }
        Ok(())
    }

    /// Notes an attribute of the trace or event that is open.
    fn attribute(&mut self, element: &BytesStart<'_>) -> Result<(), Error> {
        let (mut key, mut value) = (None, None);
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|error| self.fault(format!("expected XES: {error}")))?;
            let wanted = match attribute.key.local_name().as_ref() {
                "key" => &mut key,
                "value" => &mut value,
                _ => continue,
            };
            let text = attribute.normalized_value(XmlVersion::Implicit1_0);
            let text = text.map_err(|error| self.fault(format!("expected XES: {error}")))?;
            *wanted = Some(text.into_owned());
        }
        let (Some(key), Some(value)) = (key, value) else { return Ok(()) };
        let in_event = self.event.is_some();
        let wanted = if in_event { &self.keys.event } else { &self.keys.case };
        let is_outcome = in_event && self.keys.outcome.as_ref() == Some(&key);
        let is_time = in_event && self.keys.time.as_ref() == Some(&key);
        let places: Vec<usize> = (0..wanted.len()).filter(|index| wanted[*index] == key).collect();
        let target = match (&mut self.event, &mut self.trace) {
            (Some(event), _) => event,
            (None, Some(trace)) => &mut trace.element,
            (None, None) => return Ok(()),
        };
        for place in places {
            target.names[place] = Some(value.clone());
        }
        if is_outcome {
            target.outcome = Some(value.clone());
        }
        if is_time {
            target.time = Some(value);
        }
        Ok(())
    }

    fn close(&mut self) -> Result<Option<RawSequence>, Error> {
        self.depth = self.depth.saturating_sub(1);
        match self.depth {
            2 => {
                if let Some(event) = self.event.take() {
                    self.report.rows += 1;
                    if let Err(fault) = self.add(&event) {
                        if self.bad_rows == BadRows::Refuse {
                            return Err(fault.hint(SKIP_ROWS).on_line(&self.name, event.line));
                        }
                        self.report.skipped.count += 1;
                        self.report.skipped.note(format!("line {}: {}", event.line, fault.reason));
                    }
                }
                Ok(None)
            }
            1 => self.trace.take().map(|trace| self.finish(trace)).transpose(),
            _ => Ok(None),
        }
    }

    /// Adds an event to its trace.
    fn add(&mut self, event: &Element) -> Result<(), Fault> {
        let nameless = || {
            let fault = Fault::new(format!("an event without {}", self.keys.event.join(" and ")));
            fault.hint(Hint::new(EVENT_COLUMN, "names another attribute"))
        };
        let name = event.name().ok_or_else(nameless)?;
        let Some(trace) = &mut self.trace else { return Ok(()) };
        let time = match &event.time {
            Some(text) => {
                let key = self.keys.time.as_deref().unwrap_or_default();
                Some(self.style.parse(text.as_bytes()).map_err(|fault| fault.at(key))?)
            }
            None => None,
        };
        if time.is_some() != (trace.times.len() == trace.events.len()) && !trace.events.is_empty() {
            let (this, before) = if time.is_some() { ("a", "has none") } else { ("no", "has one") };
            let reason = format!("an event with {this} time, but the one before it in its trace {before}");
            return Err(Fault::new(reason).hint(WITHOUT_TIMES));
        }
        let outcome = event.outcome.as_deref().filter(|outcome| !outcome.trim().is_empty());
        self.outcomes |= event.outcome.is_some();
        let number = if self.keys.outcome.is_some() {
            self.names.intern_step(&name, outcome)
        } else {
            self.names.intern(&name).ok_or(Refused::TooMany)
        };
        let number = number.map_err(|refused| match refused {
            Refused::TooMany => Fault::new("more than 4 billion event types"),
            Refused::Ambiguous(reason) => Fault::new(reason),
        })?;
        trace.events.push(number);
        trace.times.extend(time);
        Ok(())
    }

    fn finish(&mut self, mut trace: Trace) -> Result<RawSequence, Error> {
        self.traces += 1;
        let id = match trace.element.name() {
            Some(id) => id,
            None if self.keys.case_named => {
                let reason = format!("a trace without {}", self.keys.case.join(" and "));
                let error = Error::line(&self.name, trace.element.line, reason);
                return Err(error.hint(Hint::new(CASE_COLUMN, "names another attribute")));
            }
            None => self.traces.to_string(),
        };
        let timed = !trace.events.is_empty() && trace.times.len() == trace.events.len();
        if timed && !trace.times.is_sorted() {
            self.report.sorted_cases += 1;
            sort(&mut trace.times, &mut trace.events);
        }
        let times = timed.then_some(trace.times);
        Ok(RawSequence { id, events: trace.events, times, ended: true, line: trace.element.line })
    }

    /// Reads on to the end of the next trace.
    fn advance(&mut self, buffer: &mut Vec<u8>) -> Result<Option<RawSequence>, Error> {
        loop {
            buffer.clear();
            let line = self.reader.get_ref().line;
            self.reader.get_mut().taken = 0;
            let event = match self.reader.read_event_into(buffer) {
                Ok(event) => event,
                Err(error) => return Err(self.xml_fault(error)),
            };
            let closed = match event {
                Event::Start(element) => {
                    self.open(&element, line)?;
                    None
                }
                Event::Empty(element) => {
                    self.open(&element, line)?;
                    self.close()?
                }
                Event::End(_) => self.close()?,
                Event::DocType(text) if text.contains('[') => {
                    return Err(
                        self.fault("a document type with declarations of its own is refused; expected plain XES")
                    );
                }
                Event::Decl(declaration) => {
                    let encoding = declaration.encoding().and_then(Result::ok);
                    match encoding.filter(|name| !["utf-8", "utf8", "us-ascii"].contains(&name.to_lowercase().as_str()))
                    {
                        Some(name) => {
                            let reason =
                                format!("the encoding is {:?}; expected UTF-8 (iconv converts it)", shorten(&name));
                            return Err(self.fault(reason));
                        }
                        None => None,
                    }
                }
                Event::Eof if self.depth > 0 || self.traces == 0 && self.report.rows == 0 && self.empty() => {
                    return Err(self.fault("the file is cut off; expected </log>"));
                }
                Event::Eof => {
                    if let Some(key) = self.keys.outcome.as_ref().filter(|_| !self.outcomes && self.report.rows > 0) {
                        let reason = format!("names {:?}, but no event has such an attribute", shorten(key));
                        return Err(Error::option(&self.name, OUTCOME_COLUMN, reason));
                    }
                    self.done = true;
                    return Ok(None);
                }
                _ => None,
            };
            if closed.is_some() {
                return Ok(closed);
            }
        }
    }

    /// Whether nothing but white space was read.
    fn empty(&self) -> bool {
        self.reader.buffer_position() == 0
    }
}

impl SequenceReader for Xes {
    fn next_sequence(&mut self) -> Result<Option<RawSequence>, Error> {
        if self.done {
            return Ok(None);
        }
        let mut buffer = Vec::new();
        let outcome = self.advance(&mut buffer);
        self.done |= outcome.is_err();
        outcome
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn event_name(&self, number: u32) -> EventName {
        self.names.name(number)
    }

    fn report(&self) -> Report {
        self.report.clone()
    }
}

/// A reader that knows its line and column, and how much was taken of it.
struct Place {
    inner: Box<dyn BufRead + Send>,
    line: u64,
    column: u64,
    /// Bytes since it was last set to zero.
    taken: usize,
}

impl Read for Place {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(buffer.len());
        buffer[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Place {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken > LONGEST_TAG {
            let reason = format!("a tag or text of more than {} MB; expected a log", LONGEST_TAG >> 20);
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, reason));
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        if let Ok(buffer) = self.inner.fill_buf() {
            let bytes = &buffer[..count.min(buffer.len())];
            self.line += memchr_iter(b'\n', bytes).count() as u64;
            self.column = match memrchr(b'\n', bytes) {
                Some(at) => (bytes.len() - at) as u64,
                None => self.column + bytes.len() as u64,
            };
        }
        self.taken += count;
        self.inner.consume(count);
    }
}
