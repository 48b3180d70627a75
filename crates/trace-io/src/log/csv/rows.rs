//! One thread's share of a CSV file: chunks in, numbers out.

use std::borrow::Cow;

use super::chunks::Chunk;
use super::dictionary::Dictionary;
use super::records::{Field, next_record};
use crate::log::columns::Columns;
use crate::log::hints::{Fault, SKIP_ROWS};
use crate::log::index::SINGLE_CASE;
use crate::log::options::BadRows;
use crate::log::report::SHOWN_REASONS;
use crate::log::time::{TimeStyle, empty_time, quoted};

/// What stands between step and outcome until both are told apart: no name has it.
pub(super) const JOINT: char = '\0';

/// How every row of a file is to be read.
pub(super) struct Plan {
    pub(super) delimiter: u8,
    pub(super) header: Vec<String>,
    pub(super) columns: Columns,
    /// There where the columns have a time.
    pub(super) style: Option<TimeStyle>,
    pub(super) bad_rows: BadRows,
}

/// What a chunk holds. Cases and events are numbered as the worker that read it first met them.
#[derive(Default)]
pub(super) struct Parsed {
    pub(super) cases: Vec<u32>,
    pub(super) events: Vec<u32>,
    pub(super) times: Vec<f64>,
    /// Cases that the worker had not met before, and their lines.
    pub(super) new_cases: Vec<(String, u64)>,
    pub(super) new_events: Vec<String>,
    pub(super) rows: u64,
    /// Rows left out, and why the first of them were.
    pub(super) skipped: u64,
    pub(super) reasons: Vec<(u64, String)>,
    /// Why the file is refused.
    pub(super) fault: Option<(u64, Fault)>,
}

/// Rows that are looked up together. Look-ups in a large table mostly wait for memory; a row of them waits once.
const TOGETHER: usize = 64;

/// One thread's memory of names.
#[derive(Default)]
pub(super) struct Worker {
    cases: Dictionary,
    events: Dictionary,
    fields: Vec<Field>,
    scratch: Vec<u8>,
}

/// A row whose fields were found, but whose names are not known yet.
struct Pending<'b> {
    line: u64,
    case: Cow<'b, [u8]>,
    event: Cow<'b, [u8]>,
    time: Option<f64>,
    /// Why it is a bad row.
    fault: Option<Fault>,
}

impl Worker {
    /// Reads a chunk from byte `from` on, which is on `line`.
    pub(super) fn parse(&mut self, plan: &Plan, chunk: &Chunk, from: usize, line: u64) -> Parsed {
        let bytes = chunk.bytes.as_slice();
        let mut parsed = Parsed::default();
        let rows = bytes.len().saturating_sub(from) / 24;
        parsed.cases.reserve(rows);
        parsed.events.reserve(rows);
        if plan.style.is_some() {
            parsed.times.reserve(rows);
        }
        let (mut at, mut line) = (from, line);
        let width = plan.columns.width();
        let mut fields = std::mem::take(&mut self.fields);
        let mut pending = Vec::with_capacity(TOGETHER);
        while at < bytes.len() {
            let record = next_record(bytes, at, plan.delimiter, width, &mut fields);
            if let Some(quote) = record.unclosed {
                self.note(plan, &mut pending, &mut parsed);
                let lines = memchr::memchr_iter(b'\n', &bytes[at..quote]).count() as u64;
                let column = quote - memchr::memrchr(b'\n', &bytes[..quote]).map_or(0, |end| end + 1) + 1;
                let reason = format!("column {column}: a quote opens here that nothing closes");
                parsed.fault.get_or_insert((line + lines, Fault::new(reason)));
                break;
            }
            if !record.blank {
                parsed.rows += 1;
                pending.push(self.row(plan, bytes, &fields, record.count, line));
                if pending.len() == TOGETHER {
                    self.note(plan, &mut pending, &mut parsed);
                    if parsed.fault.is_some() {
                        break;
                    }
                }
            }
            line += record.breaks + 1;
            at = record.next;
        }
        self.note(plan, &mut pending, &mut parsed);
        self.fields = fields;
        parsed
    }

    /// Finds the cells of a row and reads its time.
    fn row<'b>(&mut self, plan: &Plan, bytes: &'b [u8], fields: &[Field], count: usize, line: u64) -> Pending<'b> {
        let nothing = Cow::Borrowed(&[][..]);
        let mut row = Pending { line, case: nothing.clone(), event: nothing, time: None, fault: None };
        if count != plan.header.len() {
            row.fault = Some(Fault::new(format!("{count} fields, but the header has {}", plan.header.len())));
            return row;
        }
        row.case = match plan.columns.case.as_slice() {
            [] => Cow::Borrowed(SINGLE_CASE.as_bytes()),
            columns => joined(columns, fields, bytes, b'+'),
        };
        row.event = joined(&plan.columns.event, fields, bytes, b'+');
        if let Some(column) = plan.columns.outcome {
            match with_outcome(plan, &row.event, fields[column].value(bytes, &mut self.scratch), column) {
                Ok(event) => row.event = Cow::Owned(event),
                Err(fault) => row.fault = Some(fault),
            }
        }
        if let Some(style) = &plan.style {
            let text = match plan.columns.time.as_slice() {
                [column] => fields[*column].value(bytes, &mut self.scratch),
                columns => {
                    self.scratch = joined(columns, fields, bytes, b' ').into_owned();
                    &self.scratch
                }
            };
            let time = match text.trim_ascii() {
                [] => Err(empty_time()),
                text => style.parse(text),
            };
            match time {
                Ok(time) => row.time = Some(time),
                Err(fault) => row.fault = row.fault.or_else(|| Some(in_cell(plan, plan.columns.time[0], fault))),
            }
        }
        row
    }

    /// Gives pending rows their numbers, in order.
    fn note(&mut self, plan: &Plan, pending: &mut Vec<Pending<'_>>, parsed: &mut Parsed) {
        std::hint::black_box(pending.iter().fold(0, |seen, row| seen ^ self.cases.touch(&row.case)));
        for row in pending.drain(..) {
            if parsed.fault.is_some() {
                continue;
            }
            let line = row.line;
            if let Err(fault) = self.name(plan, row, parsed) {
                if plan.bad_rows == BadRows::Refuse {
                    parsed.fault = Some((line, fault.hint(SKIP_ROWS)));
                    continue;
                }
                parsed.skipped += 1;
                if parsed.reasons.len() < SHOWN_REASONS {
                    parsed.reasons.push((line, fault.reason));
                }
            }
        }
    }

    /// Adds a row, unless anything is wrong with it.
    fn name(&mut self, plan: &Plan, row: Pending<'_>, parsed: &mut Parsed) -> Result<(), Fault> {
        if let Some(fault) = row.fault {
            return Err(fault);
        }
        // Both names are checked before either is noted.
        let event = self.events.get(&row.event);
        let case = self.cases.get(&row.case);
        let check = |columns: &[usize], number: Option<u32>, text: &[u8]| match number {
            Some(_) => Ok(String::new()),
            None => name(text).map_err(|fault| in_cell(plan, columns.first().copied().unwrap_or(0), fault)),
        };
        let new_event = match plan.columns.outcome {
            Some(outcome) => step_name(plan, event, &row.event, outcome)?,
            None => check(&plan.columns.event, event, &row.event)?,
        };
        let new_case = check(&plan.columns.case, case, &row.case)?;
        let event = event.unwrap_or_else(|| {
            parsed.new_events.push(new_event);
            self.events.add(&row.event)
        });
        let case = case.unwrap_or_else(|| {
            parsed.new_cases.push((new_case, row.line));
            self.cases.add(&row.case)
        });
        parsed.cases.push(case);
        parsed.events.push(event);
        parsed.times.extend(row.time);
        Ok(())
    }
}

/// The text of some columns.
fn joined<'b>(columns: &[usize], fields: &[Field], bytes: &'b [u8], sign: u8) -> Cow<'b, [u8]> {
    if let [column] = columns
        && let Some(plain) = fields[*column].plain(bytes)
    {
        return Cow::Borrowed(plain);
    }
    let mut text = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            text.push(sign);
        }
        let before = text.len();
        fields[*column].append(bytes, &mut text);
        // A name of which a part is missing is no name.
        if text[before..].trim_ascii().is_empty() {
            return Cow::Borrowed(&[]);
        }
    }
    Cow::Owned(text)
}

/// A step and its outcome, with the joint between them also where the outcome is blank.
fn with_outcome(plan: &Plan, step: &[u8], outcome: &[u8], column: usize) -> Result<Vec<u8>, Fault> {
    let event = plan.columns.event.first().copied().unwrap_or(0);
    for (text, column) in [(step, event), (outcome, column)] {
        if let Some(at) = memchr::memchr(JOINT as u8, text) {
            return Err(in_cell(plan, column, holds_nul(at)));
        }
    }
    let outcome = if outcome.trim_ascii().is_empty() { &[] } else { outcome };
    Ok([step, &[JOINT as u8], outcome].concat())
}

/// The text of a new step with its outcome, which may be missing.
fn step_name(plan: &Plan, known: Option<u32>, text: &[u8], outcome: usize) -> Result<String, Fault> {
    if known.is_some() {
        return Ok(String::new());
    }
    let (step, after) = text.split_at(memchr::memchr(JOINT as u8, text).unwrap_or(text.len()));
    let event = plan.columns.event.first().copied().unwrap_or(0);
    let mut whole = name(step).map_err(|fault| in_cell(plan, event, fault))?;
    whole.push(JOINT);
    match after.get(1..) {
        None | Some([]) => {}
        Some(after) => whole += &name(after).map_err(|fault| in_cell(plan, outcome, fault))?,
    }
    Ok(whole)
}

fn holds_nul(at: usize) -> Fault {
    Fault::new(format!("holds a NUL byte, at byte {}; expected text", at + 1))
}

/// A name must be text.
fn name(text: &[u8]) -> Result<String, Fault> {
    if text.trim_ascii().is_empty() {
        return Err(Fault::new("is empty; expected a name"));
    }
    if let Some(at) = memchr::memchr(0, text) {
        return Err(holds_nul(at));
    }
    String::from_utf8(text.to_vec()).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Fault::new(format!(
            "not UTF-8 text from byte {} on (0x{:02x}) in {}; is the file in another encoding, such as Latin-1? \
             (iconv converts it)",
            at + 1,
            text.get(at).copied().unwrap_or_default(),
            quoted(text)
        ))
    })
}

/// Says which column a fault is in.
pub(super) fn in_cell(plan: &Plan, column: usize, fault: Fault) -> Fault {
    let name = plan.header.get(column).map_or("", String::as_str);
    fault.at(format_args!("column {} ({:?})", column + 1, crate::log::shorten(name)))
}
