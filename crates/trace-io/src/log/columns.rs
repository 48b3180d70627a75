//! Which column is the case, which the event, which the time.

use trace_core::{Hint, OptionName};

use super::hints::{CASE_COLUMN, DELIMITER, EVENT_COLUMN, OUTCOME_COLUMN, SINGLE_CASE, TIME_COLUMN, WITHOUT_TIMES};
use super::options::ColumnChoice;
use crate::Error;

/// Names of case columns, the surest first. Compared in lower case, without spaces and punctuation.
const CASE: &[&str] = &[
    "caseconceptname",
    "caseid",
    "case",
    "casenumber",
    "caseref",
    "traceid",
    "sessionid",
    "session",
    "sequenceid",
    "sequence",
    "blockid",
    "vehicleid",
    "vehicle",
    "vin",
    "patientid",
    "patient",
    "hadmid",
    "subjectid",
    "subject",
    "deviceid",
    "device",
    "machineid",
    "machine",
    "unitid",
    "unit",
    "entityid",
    "entity",
    "customerid",
    "customer",
    "userid",
    "user",
    "accountid",
    "orderid",
    "ticketid",
    "incidentid",
    "host",
    "hostname",
    "id",
];
/// Names of event columns.
const EVENT: &[&str] = &[
    "conceptname",
    "event",
    "activity",
    "eventtype",
    "eventname",
    "eventcode",
    "activityname",
    "activitycode",
    "action",
    "task",
    "alarm",
    "alarmid",
    "alarmname",
    "alarmtype",
    "alarmcode",
    "dtc",
    "troublecode",
    "faultcode",
    "code",
    "eventtemplate",
    "template",
    "eventid",
    "type",
    "label",
    "name",
];
/// Names of time columns.
const TIME: &[&str] = &[
    "timetimestamp",
    "timestamp",
    "eventtime",
    "eventtimestamp",
    "time",
    "datetime",
    "starttimestamp",
    "starttime",
    "completetimestamp",
    "completetime",
    "endtimestamp",
    "endtime",
    "ts",
    "date",
    "createdat",
    "charttime",
];

/// The columns a log is read by, as numbers from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    /// None: all rows are one case.
    pub(super) case: Vec<usize>,
    pub(super) event: Vec<usize>,
    /// None: no times.
    pub(super) time: Vec<usize>,
    /// None: events have no outcomes.
    pub(super) outcome: Option<usize>,
}

impl Columns {
    /// Finds them among the names of a header; `line` is its line, where the file has lines.
    pub(super) fn find(file: &str, line: Option<u64>, header: &[String], choice: &ColumnChoice) -> Result<Self, Error> {
        let finder = Finder { file, line, header };
        let outcome = choice.outcome.as_deref().map(|name| finder.one(Role::Outcome, name)).transpose()?;
        let mut taken: Vec<usize> = outcome.into_iter().collect();
        let case = if choice.single_case { Vec::new() } else { finder.role(Role::Case, &choice.case, &taken)? };
        taken.extend(&case);
        let event = finder.role(Role::Event, &choice.event, &taken)?;
        if let Some(column) = outcome.filter(|column| event.contains(column)) {
            let reason = format!("names {:?}, which is the event's column already", super::shorten(&header[column]));
            return Err(Error::option(file, OUTCOME_COLUMN, reason));
        }
        taken.extend(&event);
        let time = match (choice.no_time, choice.time.is_empty()) {
            (true, _) => Vec::new(),
            (false, false) => finder.named(Role::Time, &choice.time)?,
            (false, true) => finder.usual(Role::Time, &taken)?.into_iter().collect(),
        };
        Ok(Self { case, event, time, outcome })
    }

    /// Whether the header is that of a log, by the usual names.
    pub(super) fn look_usual(header: &[String]) -> bool {
        let has = |names: &[&str]| header.iter().any(|name| names.contains(&normal(name).as_str()));
        has(CASE) && has(EVENT)
    }

    /// One past the last column that is needed.
    pub(super) fn width(&self) -> usize {
        self.all().max().map_or(0, |last| last + 1)
    }

    /// All that are needed.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.case.iter().chain(&self.event).chain(&self.time).chain(&self.outcome).copied()
    }
}

/// What a column can mean.
#[derive(Clone, Copy)]
enum Role {
    Case,
    Event,
    Time,
    Outcome,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Case => "case",
            Self::Event => "event",
            Self::Time => "time",
            Self::Outcome => "outcome",
        }
    }

    const fn usual_names(self) -> &'static [&'static str] {
        match self {
            Self::Case => CASE,
            Self::Event => EVENT,
            Self::Time => TIME,
            Self::Outcome => &[],
        }
    }

    /// The option that names the column.
    const fn option(self) -> OptionName {
        match self {
            Self::Case => CASE_COLUMN,
            Self::Event => EVENT_COLUMN,
            Self::Time => TIME_COLUMN,
            Self::Outcome => OUTCOME_COLUMN,
        }
    }

    /// What helps where no guess can be made.
    fn hints(self) -> Vec<Hint> {
        let named = Hint::new(self.option(), "names it");
        match self {
            Self::Case => vec![named, Hint::new(SINGLE_CASE, "reads all rows as one case")],
            Self::Event | Self::Outcome => vec![named],
            Self::Time => vec![named, WITHOUT_TIMES],
        }
    }
}

struct Finder<'f> {
    file: &'f str,
    line: Option<u64>,
    header: &'f [String],
}

impl Finder<'_> {
    /// The named columns, or the surest usual one; there must be one.
    fn role(&self, role: Role, named: &[String], taken: &[usize]) -> Result<Vec<usize>, Error> {
        if !named.is_empty() {
            return self.named(role, named);
        }
        match self.usual(role, taken)? {
            Some(column) => Ok(vec![column]),
            None => Err(self.no_guess(role, &format!("no column looks like the {}", role.name()))),
        }
    }

    fn named(&self, role: Role, named: &[String]) -> Result<Vec<usize>, Error> {
        named.iter().map(|name| self.one(role, name)).collect()
    }

    /// The column of a name: to the letter, or else in any case and without spaces around it.
    fn one(&self, role: Role, name: &str) -> Result<usize, Error> {
        let exact: Vec<usize> = self.positions(|found| found == name);
        let alike = || self.positions(|found| found.trim().to_lowercase() == name.trim().to_lowercase());
        let found = if exact.is_empty() { alike() } else { exact };
        let why = match found.as_slice() {
            [column] => return Ok(*column),
            [] => "there is no such column".to_owned(),
            [first, second, ..] => format!("columns {} and {} are both called so", first + 1, second + 1),
        };
        let reason = format!("names {:?}, but {why} ({})", super::shorten(name), self.columns());
        Err(Error::option(self.file, role.option(), reason))
    }

    fn usual(&self, role: Role, taken: &[usize]) -> Result<Option<usize>, Error> {
        for name in role.usual_names() {
            let found: Vec<usize> = self.positions(|found| normal(found) == *name);
            let free: Vec<usize> = found.into_iter().filter(|column| !taken.contains(column)).collect();
            match free.as_slice() {
                [] => {}
                [column] => return Ok(Some(*column)),
                [first, second, ..] => {
                    let reason = format!("columns {} and {} may both be the {}", first + 1, second + 1, role.name());
                    return Err(self.no_guess(role, &reason));
                }
            }
        }
        Ok(None)
    }

    fn positions(&self, is: impl Fn(&str) -> bool) -> Vec<usize> {
        (0..self.header.len()).filter(|column| is(&self.header[*column])).collect()
    }

    fn no_guess(&self, role: Role, reason: &str) -> Error {
        let reason = format!("{reason} ({})", self.columns());
        let error = match self.line {
            Some(line) => Error::line(self.file, line, reason),
            None => Error::file(self.file, reason),
        };
        let error = error.with_hints(role.hints());
        // Only text has a delimiter, and a single column may be a wrong one.
        let one = self.line.is_some() && self.header.len() == 1;
        if one { error.hint(Hint::new(DELIMITER, "says what separates the columns")) } else { error }
    }

    /// The names that were found.
    fn columns(&self) -> String {
        let shown: Vec<String> = self.header.iter().take(60).map(|name| super::shorten(name)).collect();
        let more = if self.header.len() > 60 { ", …" } else { "" };
        format!("columns found: {}{more}", shown.join(", "))
    }
}

/// Lower case, letters and digits only.
fn normal(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(header: &[&str], choice: &ColumnChoice) -> Result<Columns, String> {
        let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
        Columns::find("log.csv", Some(1), &header, choice).map_err(|error| error.to_string())
    }

    fn columns(case: usize, event: usize, time: Option<usize>) -> Columns {
        Columns { case: vec![case], event: vec![event], time: time.into_iter().collect(), outcome: None }
    }

    #[test]
    fn usual_names() {
        let none = ColumnChoice::default();
        assert_eq!(find(&["Case ID", "Activity", "Complete Timestamp"], &none), Ok(columns(0, 1, Some(2))));
        assert_eq!(find(&["concept:name", "case:concept:name"], &none), Ok(columns(1, 0, None)));
        assert_eq!(
            find(&["alarm_id", "device_id", "start_timestamp", "end_timestamp"], &none),
            Ok(columns(1, 0, Some(2)))
        );
        let single = ColumnChoice { single_case: true, ..none.clone() };
        let found = find(&["LineId", "Timestamp", "EventId", "EventTemplate"], &single).unwrap();
        assert_eq!((found.case.len(), found.event[0], found.time[0]), (0, 3, 1));
        let no_time = ColumnChoice { no_time: true, ..none };
        assert_eq!(find(&["id", "event", "time"], &no_time), Ok(columns(0, 1, None)));
    }

    #[test]
    fn guesses_that_cannot_be_made() {
        let none = ColumnChoice::default();
        let said = find(&["patient", "handling", "when"], &none).unwrap_err();
        assert!(
            said.contains("the option event_column names it") && said.contains("patient, handling, when"),
            "{said}"
        );
        let said = find(&["case", "event", "Event"], &none).unwrap_err();
        assert!(said.contains("columns 2 and 3 may both be the event"), "{said}");
        let said = find(&["case;event"], &none).unwrap_err();
        assert!(said.ends_with("the option delimiter says what separates the columns"), "{said}");
        let said = find(&["a", "b"], &none).unwrap_err();
        assert!(said.contains("the option single_case reads all rows as one case"), "{said}");
    }

    #[test]
    fn named_columns() {
        let choice = |name: &str| ColumnChoice { event: vec![name.to_owned()], ..ColumnChoice::default() };
        assert_eq!(find(&["case", "X", "x"], &choice("x")), Ok(columns(0, 2, None)));
        assert_eq!(find(&["case", " Handling"], &choice("handling")), Ok(columns(0, 1, None)));
        let said = find(&["case", "X", "x"], &choice("y")).unwrap_err();
        assert!(
            said.contains("the option event_column names \"y\", but there is no such column (columns found:"),
            "{said}"
        );
        let outcome = |name: &str| ColumnChoice { outcome: Some(name.to_owned()), ..ColumnChoice::default() };
        let found = find(&["case", "type", "event", "time"], &outcome("type")).unwrap();
        assert_eq!((found.event[0], found.outcome, found.width()), (2, Some(1), 4));
        assert_eq!(find(&["case", "name", "type"], &outcome("type")).unwrap().event, [1], "it is taken");
        let said = find(&["case", "event"], &outcome("status")).unwrap_err();
        assert!(said.contains("the option outcome_column names \"status\", but there is no such column"), "{said}");
        let both = ColumnChoice { event: vec!["x".to_owned()], ..outcome("x") };
        let said = find(&["case", "x"], &both).unwrap_err();
        assert!(said.contains("outcome_column names \"x\", which is the event's column already"), "{said}");
        assert!(find(&["case", "x", "x"], &choice("x")).unwrap_err().contains("columns 2 and 3 are both called so"));
    }
}
