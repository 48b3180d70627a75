//! One thread's share of a CSV file: chunks in, numbers out.

use super::chunks::Chunk;
use super::dictionary::Dictionary;
use super::records::{Field, next_record};
use crate::log::columns::Columns;
use crate::log::index::SINGLE_CASE;
use crate::log::options::BadRows;
use crate::log::report::SHOWN_REASONS;
use crate::log::time::{TimeStyle, quoted};

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
    pub(super) fault: Option<(u64, String)>,
}

/// One thread's memory of names.
#[derive(Default)]
pub(super) struct Worker {
    cases: Dictionary,
    events: Dictionary,
    fields: Vec<Field>,
    scratch: Vec<u8>,
}

/// A cell that is not what it should be: which column, and why.
struct Fault(usize, String);

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
        // Rows of a case often stand together.
        let mut before: Option<(&[u8], u32)> = None;
        let width = plan.columns.width();
        while at < bytes.len() {
            let mut fields = std::mem::take(&mut self.fields);
            let record = next_record(bytes, at, plan.delimiter, width, &mut fields);
            if let Some(quote) = record.unclosed {
                let lines = memchr::memchr_iter(b'\n', &bytes[at..quote]).count() as u64;
                let column = quote - memchr::memrchr(b'\n', &bytes[..quote]).map_or(0, |end| end + 1) + 1;
                parsed.fault = Some((line + lines, format!("column {column}: a quote opens here that nothing closes")));
                self.fields = fields;
                return parsed;
            }
            if !record.blank {
                parsed.rows += 1;
                let outcome = if record.count == plan.header.len() {
                    self.row(plan, bytes, &fields, &mut before, line, &mut parsed)
                        .map_err(|Fault(column, reason)| cell(plan, column, &reason))
                } else {
                    Err(format!("{} fields, but the header has {}", record.count, plan.header.len()))
                };
                if let Err(reason) = outcome {
                    if plan.bad_rows == BadRows::Refuse {
                        parsed.fault = Some((line, reason));
                        self.fields = fields;
                        return parsed;
                    }
                    parsed.skipped += 1;
                    if parsed.reasons.len() < SHOWN_REASONS {
                        parsed.reasons.push((line, reason));
                    }
                }
            }
            self.fields = fields;
            line += record.breaks + 1;
            at = record.next;
        }
        parsed
    }

    /// Reads one row; adds nothing if any cell is at fault.
    fn row<'b>(
        &mut self,
        plan: &Plan,
        bytes: &'b [u8],
        fields: &[Field],
        before: &mut Option<(&'b [u8], u32)>,
        line: u64,
        parsed: &mut Parsed,
    ) -> Result<(), Fault> {
        let time = match &plan.style {
            Some(style) => {
                let text = joined(&plan.columns.time, fields, bytes, &mut self.scratch, b' ');
                let fault = |reason| Fault(plan.columns.time[0], reason);
                if text.trim_ascii().is_empty() {
                    return Err(fault("is empty; expected a time".to_owned()));
                }
                Some(style.parse(text).map_err(fault)?)
            }
            None => None,
        };
        // Both names are checked before either is noted.
        let text = joined(&plan.columns.event, fields, bytes, &mut self.scratch, b'+');
        let known = self.events.get(text);
        let new_event = match known {
            Some(_) => None,
            None => Some(name(text).map_err(|reason| Fault(plan.columns.event[0], reason))?),
        };
        let case = match plan.columns.case.as_slice() {
            [] => self.case(SINGLE_CASE.as_bytes(), line, parsed)?,
            [column] => {
                let plain = fields[*column].plain(bytes);
                match (*before, plain) {
                    (Some((text, number)), Some(plain)) if text == plain => number,
                    _ => {
                        let mut scratch = std::mem::take(&mut self.scratch);
                        let text = fields[*column].value(bytes, &mut scratch);
                        let number = self.case(text, line, parsed).map_err(|fault| Fault(*column, fault.1));
                        self.scratch = scratch;
                        let number = number?;
                        *before = plain.map(|text| (text, number));
                        number
                    }
                }
            }
            several => {
                let mut scratch = std::mem::take(&mut self.scratch);
                let text = joined(several, fields, bytes, &mut scratch, b'+');
                let number = self.case(text, line, parsed).map_err(|fault| Fault(several[0], fault.1));
                self.scratch = scratch;
                number?
            }
        };
        let event = match (known, new_event) {
            (Some(number), _) => number,
            (None, text) => {
                let text = text.unwrap_or_default();
                let number = self.events.add(text.as_bytes());
                parsed.new_events.push(text);
                number
            }
        };
        parsed.cases.push(case);
        parsed.events.push(event);
        parsed.times.extend(time);
        Ok(())
    }

    fn case(&mut self, text: &[u8], line: u64, parsed: &mut Parsed) -> Result<u32, Fault> {
        if let Some(number) = self.cases.get(text) {
            return Ok(number);
        }
        let text = name(text).map_err(|reason| Fault(0, reason))?;
        let number = self.cases.add(text.as_bytes());
        parsed.new_cases.push((text, line));
        Ok(number)
    }
}

/// The text of some columns.
fn joined<'v>(columns: &[usize], fields: &[Field], bytes: &'v [u8], scratch: &'v mut Vec<u8>, sign: u8) -> &'v [u8] {
    if let [column] = columns {
        return fields[*column].value(bytes, scratch);
    }
    scratch.clear();
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            scratch.push(sign);
        }
        let before = scratch.len();
        fields[*column].append(bytes, scratch);
        // A name of which a part is missing is no name.
        if scratch[before..].trim_ascii().is_empty() {
            scratch.clear();
            break;
        }
    }
    scratch
}

/// A name must be text.
fn name(text: &[u8]) -> Result<String, String> {
    if text.trim_ascii().is_empty() {
        return Err("is empty; expected a name".to_owned());
    }
    if let Some(at) = memchr::memchr(0, text) {
        return Err(format!("holds a NUL byte, at byte {}; expected text", at + 1));
    }
    String::from_utf8(text.to_vec()).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!(
            "not UTF-8 text from byte {} on (0x{:02x}) in {}; is the file in another encoding, such as Latin-1? \
             (iconv converts it)",
            at + 1,
            text.get(at).copied().unwrap_or_default(),
            quoted(text)
        )
    })
}

fn cell(plan: &Plan, column: usize, reason: &str) -> String {
    let name = plan.header.get(column).map_or("", String::as_str);
    format!("column {} ({:?}): {reason}", column + 1, crate::log::shorten(name))
}
