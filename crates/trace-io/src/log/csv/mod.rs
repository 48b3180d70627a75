//! Long CSV and TSV: one row per event.
//!
//! The file is cut into chunks of whole records; workers turn chunks into numbers, each with its own memory of names;
//! chunks are then put together in file order, where a worker's numbers are translated into those of the log. So names
//! are numbered as they appear in the file, whatever the number of threads, and no name is looked up twice.
//! Memory: a few chunks, the names, and 16 bytes per event.

mod chunks;
pub(super) mod dialect;
mod dictionary;
mod records;
mod rows;

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use self::chunks::{Chunk, Chunks};
use self::records::{next_record, whole_records};
use self::rows::{JOINT, Parsed, Plan, Worker};
use super::columns::Columns;
use super::index::{Index, Rows};
use super::options::{Format, LogOptions};
use super::report::Report;
use super::source::{LOOK, MARK, Source};
use super::time::{TimeStyle, no_time, unreadable};
use crate::Error;

/// Bytes that a worker takes at once.
const CHUNK: usize = 1 << 20;

/// Reads a whole file.
pub(super) fn read(source: Source, format: Format, options: &LogOptions) -> Result<Index, Error> {
    read_chunks(source, format, options, CHUNK, rayon::current_num_threads())
}

fn read_chunks(
    mut source: Source,
    format: Format,
    options: &LogOptions,
    size: usize,
    threads: usize,
) -> Result<Index, Error> {
    let name = source.name.clone();
    let head = source.head.strip_prefix(MARK).unwrap_or(&source.head);
    let delimiter = match (options.delimiter, format) {
        (Some(delimiter), _) => delimiter,
        (None, Format::Tsv) => b'\t',
        _ => dialect::sniff(head),
    };
    // Whole records of it; not of the first chunk, so that the size of chunks cannot matter.
    let sample = if source.head.len() < LOOK { head.to_vec() } else { head[..whole_records(head, delimiter)].to_vec() };
    if head.len() < source.head.len() {
        source.reader.read_exact(&mut [0; MARK.len()]).map_err(Error::io(&name))?;
    }
    let mut report = Report::new(format, source.compression);
    report.delimiter = Some(char::from(delimiter));
    let (compression, reader) = (source.compression, source.reader);
    let mut chunks =
        Chunks { name: name.clone(), compression, reader, delimiter, size, rest: Vec::new(), line: 1, done: false };
    let first = chunks.next()?.unwrap_or(Chunk { bytes: Vec::new(), line: 1, last: true });
    let (plan, from, line) = plan(&name, &first.bytes, &sample, delimiter, options)?;
    report.set_columns(&plan.header, &plan.columns);
    report.dated = plan.style.as_ref().is_some_and(TimeStyle::dated);
    let merger = Merger::new(name, report, plan.style.is_some());
    if threads <= 1 || first.last {
        serial(&plan, chunks, &first, from, line, merger)
    } else {
        parallel(&plan, chunks, first, from, line, merger, threads)
    }
}

/// Reads the header and looks at the first times; returns where the rows begin, in bytes and lines.
fn plan(
    name: &str,
    bytes: &[u8],
    sample: &[u8],
    delimiter: u8,
    options: &LogOptions,
) -> Result<(Plan, usize, u64), Error> {
    let (mut at, mut line, mut fields, mut scratch) = (0, 1, Vec::new(), Vec::new());
    let header_record = loop {
        if at >= bytes.len() {
            return Err(Error::file(name, "holds no sequence; expected a header and at least one row"));
        }
        let record = next_record(bytes, at, delimiter, usize::MAX, &mut fields);
        if !record.blank {
            break record;
        }
        (at, line) = (record.next, line + record.breaks + 1);
    };
    if let Some(open) = header_record.unclosed {
        let reason = format!("column {}: a quote opens here that nothing closes", open - at + 1);
        return Err(Error::line(name, line, reason));
    }
    let mut header = Vec::with_capacity(fields.len());
    for (column, field) in fields.iter().enumerate() {
        let text = field.value(bytes, &mut scratch);
        if options.no_header {
            header.push((column + 1).to_string());
            continue;
        }
        let text = std::str::from_utf8(text).map_err(|error| {
            let byte = error.valid_up_to() + 1;
            Error::line(name, line, format!("column {}: not UTF-8 text from byte {byte} on", column + 1))
        })?;
        if text.contains(['\0', '\r']) {
            let what =
                if text.contains('\0') { "a NUL byte" } else { "a carriage return (do lines end with CR alone?)" };
            return Err(Error::line(name, line, format!("column {}: holds {what}; expected a name", column + 1)));
        }
        header.push(text.to_owned());
    }
    let columns = Columns::find(name, Some(line), &header, &options.columns)?;
    if !options.no_header {
        (at, line) = (header_record.next, line + header_record.breaks + 1);
    }
    let mut plan = Plan { delimiter, header, columns, style: None, bad_rows: options.bad_rows };
    if !plan.columns.time.is_empty() {
        plan.style = Some(style(name, &plan, sample, at, line, options)?);
    }
    Ok((plan, at, line))
}

/// How times are written: as in the first row that has one that can be read.
fn style(
    name: &str,
    plan: &Plan,
    bytes: &[u8],
    mut at: usize,
    mut line: u64,
    options: &LogOptions,
) -> Result<TimeStyle, Error> {
    let (mut fields, mut refused) = (Vec::new(), None);
    while at < bytes.len() {
        let record = next_record(bytes, at, plan.delimiter, plan.columns.width(), &mut fields);
        if record.count == plan.header.len() && record.unclosed.is_none() {
            let mut text = Vec::new();
            for (index, column) in plan.columns.time.iter().enumerate() {
                if index > 0 {
                    text.push(b' ');
                }
                fields[*column].append(bytes, &mut text);
            }
            // What stands for a missing time says nothing about the others.
            if no_time(&text).is_none() {
                if let Some(style) = TimeStyle::of(&text, options) {
                    return Ok(style);
                }
                refused.get_or_insert((line, unreadable(&text)));
            }
        }
        (at, line) = (record.next, line + record.breaks + 1);
    }
    match refused {
        Some((line, fault)) => Err(rows::in_cell(plan, plan.columns.time[0], fault).on_line(name, line)),
        // None of the rows has a time; each will say so.
        None => Ok(match (&options.time_format, options.time_unit) {
            (Some(format), _) => TimeStyle::Format(format.clone()),
            (None, Some(unit)) => TimeStyle::Number(Some(unit)),
            (None, None) => TimeStyle::Date,
        }),
    }
}

/// Everything on one thread.
fn serial(
    plan: &Plan,
    mut chunks: Chunks,
    first: &Chunk,
    from: usize,
    line: u64,
    mut merger: Merger,
) -> Result<Index, Error> {
    let mut worker = Worker::default();
    merger.add(0, worker.parse(plan, first, from, line))?;
    while let Some(chunk) = chunks.next()? {
        merger.add(0, worker.parse(plan, &chunk, 0, chunk.line))?;
    }
    Ok(merger.finish())
}

/// One thread cuts chunks, several read them, this one puts them together.
fn parallel(
    plan: &Plan,
    mut chunks: Chunks,
    first: Chunk,
    from: usize,
    line: u64,
    mut merger: Merger,
    threads: usize,
) -> Result<Index, Error> {
    type Numbered = (u64, Result<Chunk, Error>);
    let (give, take) = sync_channel::<Numbered>(threads);
    let (deliver, receive) = sync_channel::<(u64, usize, Result<Parsed, Error>)>(2 * threads);
    // Held by the workers alone, so that the cutter stops when they are gone.
    let take: Arc<Mutex<Receiver<Numbered>>> = Arc::new(Mutex::new(take));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut next = Ok(Some(first));
            for number in 0.. {
                let (item, over) = match next {
                    Ok(None) => return,
                    Ok(Some(chunk)) => (Ok(chunk), false),
                    Err(error) => (Err(error), true),
                };
                if give.send((number, item)).is_err() || over {
                    return;
                }
                next = chunks.next();
            }
        });
        for index in 0..threads {
            let (take, deliver) = (Arc::clone(&take), deliver.clone());
            scope.spawn(move || {
                let mut worker = Worker::default();
                loop {
                    let taken = take.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((number, chunk)) = taken else { return };
                    let parsed = chunk.map(|chunk| {
                        let (from, line) = if number == 0 { (from, line) } else { (0, chunk.line) };
                        worker.parse(plan, &chunk, from, line)
                    });
                    if deliver.send((number, index, parsed)).is_err() {
                        return;
                    }
                }
            });
        }
        drop((take, deliver));
        let (mut waiting, mut due) = (BTreeMap::new(), 0);
        for (number, worker, parsed) in receive {
            waiting.insert(number, (worker, parsed));
            while let Some((worker, parsed)) = waiting.remove(&due) {
                merger.add(worker, parsed?)?;
                due += 1;
            }
        }
        Ok(merger.finish())
    })
}

/// Puts chunks together, in file order.
struct Merger {
    name: String,
    rows: Rows,
    report: Report,
    /// The log's number of each worker's cases and events.
    cases: Vec<Vec<u32>>,
    events: Vec<Vec<u32>>,
}

impl Merger {
    fn new(name: String, report: Report, timed: bool) -> Self {
        Self { rows: Rows::new(&name, timed), name, report, cases: Vec::new(), events: Vec::new() }
    }

    fn add(&mut self, worker: usize, parsed: Parsed) -> Result<(), Error> {
        if self.cases.len() <= worker {
            self.cases.resize_with(worker + 1, Vec::new);
            self.events.resize_with(worker + 1, Vec::new);
        }
        let (cases, events) = (&mut self.cases[worker], &mut self.events[worker]);
        for (name, line) in parsed.new_cases {
            cases.push(self.rows.case(&name, line)?);
        }
        for name in parsed.new_events {
            events.push(match name.split_once(JOINT) {
                Some((step, outcome)) => self.rows.step(step, outcome)?,
                None => self.rows.event(&name)?,
            });
        }
        self.rows.extend(
            parsed.cases.iter().map(|case| cases[*case as usize]),
            parsed.events.iter().map(|event| events[*event as usize]),
            &parsed.times,
        );
        self.report.rows += parsed.rows;
        for (line, reason) in parsed.reasons {
            self.report.skipped.note(format!("line {line}: {reason}"));
        }
        self.report.skipped.count += parsed.skipped;
        match parsed.fault {
            Some((line, fault)) => Err(fault.on_line(&self.name, line)),
            None => Ok(()),
        }
    }

    fn finish(self) -> Index {
        self.rows.group(self.report)
    }
}

#[cfg(test)]
mod tests;
