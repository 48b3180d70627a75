//! Event logs.
//!
//! A [`Log`] is a file (or standard input) that was looked at once, so that its format is known and it can be read
//! again and again. Each reading is a [`SequenceReader`]: JSON Lines, plain text and XES are read from the file every
//! time, one sequence at a time; CSV and Parquet, whose rows mix the cases, are grouped into an index when the log is
//! opened. [`Shaping`] is a stage after any of them. [`Sequences`] gives the events ids from a vocabulary and checks what
//! all formats share: ids that occur once, times that do not decrease, events that are known.
//!
//! A new format is one more file with one more reader, and an arm in [`Log::open`].

mod by_line;
mod columns;
mod csv;
mod families;
mod hints;
mod index;
mod jsonl;
mod names;
mod options;
mod parquet;
mod recognize;
mod report;
mod sequences;
mod shape;
pub(crate) mod source;
mod summary;
mod text;
mod time;
mod xes;

use std::io::Read;
use std::path::{Path, PathBuf};

use trace_core::{EventName, OptionName, Vocabulary};

pub use self::hints::OPTIONS;
pub use self::options::{BadRows, ColumnChoice, Format, LogOptions, Shaping, TimeUnit};
pub use self::report::{Report, Shaped, SkippedRows};
pub use self::sequences::{EventLog, Identified, Sequences, Unknown};
pub use self::source::Compression;
pub use self::summary::{Lengths, Steps, Summary};
pub use self::time::show_time;

use self::by_line::ByLine;
use self::columns::Columns;
use self::csv::dialect;
use self::index::Index;
use self::names::Names;
use self::shape::{Rare, ShapedReader};
use self::source::{MARK, Source};
use crate::Error;

/// What types are called that were too rare to keep apart.
pub const RARE: &str = "(rare)";

/// What joins a step and its outcome, where they are columns of their own.
pub const OUTCOME_SIGN: char = ':';

/// One sequence as a log has it.
#[derive(Clone, Debug, PartialEq)]
pub struct RawSequence {
    /// Its name.
    pub id: String,
    /// What happened, in order, as numbers that the reader has names for.
    pub events: Vec<u32>,
    /// When, where the log says so; as long as `events`.
    pub times: Option<Vec<f64>>,
    /// Whether the case ended after the last event.
    pub ended: bool,
    /// Where it starts in the file: a line, or a row of a file without lines.
    pub line: u64,
}

/// One reading of a log.
pub trait SequenceReader {
    /// The next sequence of the log.
    fn next_sequence(&mut self) -> Result<Option<RawSequence>, Error>;
    /// What to call the log in messages.
    fn name(&self) -> &str;
    /// The name of an event that a sequence had. Numbers are given out as names appear, so that they are the same in
    /// every reading.
    fn event_name(&self, number: u32) -> EventName;
    /// What was done so far.
    fn report(&self) -> Report;
}

/// A log that can be read again and again.
pub struct Log {
    name: String,
    path: PathBuf,
    options: LogOptions,
    format: Format,
    held: Held,
    rare: Option<Rare>,
}

/// What is kept of a log between readings.
enum Held {
    /// Nothing: it is read from its file.
    Nothing,
    /// All rows, by case.
    Index(Index),
    /// All sequences, where they can be read only once.
    Memory { sequences: Vec<RawSequence>, names: Names, report: Report },
}

impl Log {
    /// Opens a log; `-` is standard input. Says no more of its contents than the format needs to say at once: a log in
    /// rows is read whole.
    pub fn open(path: &Path, options: &LogOptions) -> Result<Self, Error> {
        let source = Source::open(path)?;
        let once = path == Path::new("-") || !path.metadata().is_ok_and(|metadata| metadata.is_file());
        Self::from_source(source, path, once, options)
    }

    /// Reads a log from any bytes; `name` stands for the path and gives the extension.
    pub fn from_reader(name: &str, reader: impl Read + Send + 'static, options: &LogOptions) -> Result<Self, Error> {
        let source = Source::new(name, Path::new(name), Box::new(reader), None)?;
        Self::from_source(source, Path::new(name), true, options)
    }

    fn from_source(source: Source, path: &Path, once: bool, options: &LogOptions) -> Result<Self, Error> {
        let named = options.format.or_else(|| source.format_by_name());
        let format = named.unwrap_or_else(|| sniff(&source.head, options));
        let foreign = match format {
            Format::Xes => recognize::object_centric_xml(&source.head),
            Format::JsonLines => recognize::json_document(&source.head, true),
            _ if named.is_none() => recognize::json_document(&source.head, false),
            _ => None,
        };
        if let Some(reason) = foreign {
            return Err(Error::file(&source.name, reason));
        }
        check_options(&source, format, options)?;
        if format != Format::Parquet {
            source.check_encoding()?;
        }
        let name = source.name.clone();
        let held = match format {
            Format::Csv | Format::Tsv => Held::Index(csv::read(source, format, options)?),
            Format::Parquet => Held::Index(parquet::read(source, options)?),
            Format::Xes | Format::JsonLines | Format::Text if !once => Held::Nothing,
            Format::Xes | Format::JsonLines | Format::Text => keep(stream(source, format, options)?)?,
        };
        let mut log = Self { name, path: path.to_owned(), options: options.clone(), format, held, rare: None };
        if let Some(min_count) = options.shaping.min_count {
            let rare = Rare::count(log.unshaped()?, min_count)?;
            log.rare = Some(rare);
        }
        Ok(log)
    }

    /// What to call it in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One reading, from the start.
    pub fn pass(&self) -> Result<Box<dyn SequenceReader + '_>, Error> {
        let reader = self.unshaped()?;
        if self.options.shaping == Shaping::default() {
            return Ok(reader);
        }
        Ok(Box::new(ShapedReader::new(reader, self.options.shaping, self.rare.clone())))
    }

    /// One reading in which rare types keep their names, for a vocabulary that knows which are rare.
    pub fn pass_unfolded(&self) -> Result<Box<dyn SequenceReader + '_>, Error> {
        let shaping = Shaping { min_count: None, ..self.options.shaping };
        Ok(Box::new(ShapedReader::new(self.unshaped()?, shaping, None)))
    }

    fn unshaped(&self) -> Result<Box<dyn SequenceReader + '_>, Error> {
        match &self.held {
            Held::Index(index) => Ok(Box::new(index.pass())),
            Held::Memory { sequences, names, report } => {
                Ok(Box::new(MemoryPass { name: &self.name, left: sequences.iter(), names, report }))
            }
            Held::Nothing => stream(Source::open(&self.path)?, self.format, &self.options).map(|stream| {
                let reader: Box<dyn SequenceReader> = match stream {
                    Stream::Xes(reader) => reader,
                    Stream::JsonLines(reader) => Box::new(reader),
                    Stream::Text(reader) => Box::new(reader),
                };
                reader
            }),
        }
    }

    /// Reads all of it and says what it holds.
    pub fn summarize(&self) -> Result<Summary, Error> {
        let mut vocabulary = Vocabulary::named();
        let mut sequences = Sequences::new(self.pass()?, Unknown::Add);
        while sequences.next(&mut vocabulary)?.is_some() {}
        let mut summary = sequences.summary();
        summary.check()?;
        summary.steps = self.families(&vocabulary)?.map(|families| Steps {
            steps: families.steps() as u64,
            steps_with_outcomes: families.steps_with_outcomes() as u64,
        });
        Ok(summary)
    }
}

/// A reader of a format that has its sequences one after the other.
enum Stream {
    Xes(Box<xes::Xes>),
    JsonLines(ByLine<jsonl::JsonLines>),
    Text(ByLine<text::PlainText>),
}

fn stream(source: Source, format: Format, options: &LogOptions) -> Result<Stream, Error> {
    Ok(match format {
        Format::Xes => Stream::Xes(Box::new(xes::Xes::new(source, options)?)),
        Format::JsonLines => Stream::JsonLines(ByLine::new(jsonl::JsonLines::new(options), format, source, options)),
        _ => Stream::Text(ByLine::new(text::PlainText, Format::Text, source, options)),
    })
}

/// Reads all sequences into memory.
fn keep(mut stream: Stream) -> Result<Held, Error> {
    let reader: &mut dyn SequenceReader = match &mut stream {
        Stream::Xes(reader) => &mut **reader,
        Stream::JsonLines(reader) => reader,
        Stream::Text(reader) => reader,
    };
    let mut sequences = Vec::new();
    while let Some(sequence) = reader.next_sequence()? {
        sequences.push(sequence);
    }
    let report = reader.report();
    let names = match stream {
        Stream::Xes(reader) => reader.into_names(),
        Stream::JsonLines(reader) => reader.into_names(),
        Stream::Text(reader) => reader.into_names(),
    };
    Ok(Held::Memory { sequences, names, report })
}

/// One reading of what is kept.
struct MemoryPass<'m> {
    name: &'m str,
    left: std::slice::Iter<'m, RawSequence>,
    names: &'m Names,
    report: &'m Report,
}

impl SequenceReader for MemoryPass<'_> {
    fn next_sequence(&mut self) -> Result<Option<RawSequence>, Error> {
        Ok(self.left.next().cloned())
    }

    fn name(&self) -> &str {
        self.name
    }

    fn event_name(&self, number: u32) -> EventName {
        self.names.name(number)
    }

    fn report(&self) -> Report {
        self.report.clone()
    }
}

/// The format by the first bytes, where the name says nothing.
fn sniff(head: &[u8], options: &LogOptions) -> Format {
    let text = head.strip_prefix(MARK).unwrap_or(head);
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        _ if head.starts_with(b"PAR1") => Format::Parquet,
        Some(b'{') => Format::JsonLines,
        Some(b'<') => Format::Xes,
        _ => {
            let delimiter = options.delimiter.unwrap_or_else(|| dialect::sniff(text));
            let names = dialect::header(text, delimiter).unwrap_or_default();
            let names: Vec<String> = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
            let told = options.delimiter.is_some() || options.no_header || options.columns.any();
            if told || (names.len() > 1 && Columns::look_usual(&names)) { Format::Csv } else { Format::Text }
        }
    }
}

/// An option that means nothing to the format is a mistake, and so is a value that means nothing.
fn check_options(source: &Source, format: Format, options: &LogOptions) -> Result<(), Error> {
    let rows = matches!(format, Format::Csv | Format::Tsv);
    let columns = rows || format == Format::Parquet;
    let attributes = columns || format == Format::Xes;
    let unfit: [(OptionName, bool); 10] = [
        (hints::DELIMITER, options.delimiter.is_some() && !rows),
        (hints::NO_HEADER, options.no_header && !rows),
        (hints::CASE_COLUMN, !options.columns.case.is_empty() && !attributes),
        (hints::EVENT_COLUMN, !options.columns.event.is_empty() && !attributes),
        (hints::TIME_COLUMN, !options.columns.time.is_empty() && !attributes),
        (hints::OUTCOME_COLUMN, options.columns.outcome.is_some() && !attributes),
        (hints::SINGLE_CASE, options.columns.single_case && !columns),
        (hints::NO_TIME, options.columns.no_time && format == Format::Text),
        (hints::TIME_FORMAT, options.time_format.is_some() && !attributes),
        (hints::TIME_UNIT, options.time_unit.is_some() && !columns && format != Format::JsonLines),
    ];
    if let Some((option, _)) = unfit.iter().find(|(_, unfit)| *unfit) {
        let reason = format!("means nothing to a log in {format}");
        return Err(Error::option(&source.name, *option, reason).hint(hints::OTHER_FORMAT));
    }
    let wrong = |option, reason: String| Err(Error::option(&source.name, option, reason));
    if let Some(byte) = options.delimiter.filter(|byte| !byte.is_ascii() || b"\"\n\r\0".contains(byte)) {
        return wrong(hints::DELIMITER, format!("is {:?}, which cannot separate fields", char::from(byte)));
    }
    match &options.family_separator {
        Some(separator) if separator.is_empty() => {
            return wrong(
                hints::FAMILY_SEPARATOR,
                "is empty; expected what stands between step and outcome".to_owned(),
            );
        }
        Some(_) if options.columns.outcome.is_some() => {
            let reason = format!("does not go with {}, which says what the outcomes are", hints::OUTCOME_COLUMN);
            return wrong(hints::FAMILY_SEPARATOR, reason);
        }
        _ => {}
    }
    if let Some(gap) = options.shaping.gap.filter(|gap| gap.is_nan() || *gap < 0.0) {
        return wrong(hints::GAP, format!("is {gap}; expected seconds, 0 or more"));
    }
    if options.shaping.max_length == Some(0) {
        return wrong(hints::MAX_LENGTH, "is 0; expected 1 or more".to_owned());
    }
    Ok(())
}

/// A name short enough for a message, on one line.
fn shorten(name: &str) -> String {
    let mut shown = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut short: String = shown.by_ref().take(60).collect();
    if shown.next().is_some() {
        short.pop();
        short.push('…');
    }
    short
}
