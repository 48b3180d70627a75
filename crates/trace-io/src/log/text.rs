//! Plain text: one sequence per line, events separated by white space; a sequence is called by its line number.

use super::RawSequence;
use super::by_line::{Form, intern};
use super::names::Names;
use crate::Error;
use crate::lines::Lines;

pub(super) struct PlainText;

impl Form for PlainText {
    fn read(&self, lines: &mut Lines, names: &mut Names) -> Result<Option<RawSequence>, Error> {
        let Some((line, text)) = lines.next_line()? else { return Ok(None) };
        let events =
            text.split_whitespace().map(|name| intern(names, name, &lines.file, line)).collect::<Result<_, Error>>()?;
        Ok(Some(RawSequence { id: line.to_string(), events, times: None, ended: true, line }))
    }
}
