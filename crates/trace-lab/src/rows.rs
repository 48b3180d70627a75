//! Rows of results: those of each cell and seed, as they were measured.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trace_core::numerics::Moments;

use crate::Error;

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was measured: names and values, such as `method: saliency`.
    pub keys: Vec<(String, String)>,
    /// The seed of the process.
    pub seed: u64,
    /// The figures, by name.
    pub values: Vec<(String, f64)>,
}

impl Row {
    /// A row without figures yet.
    pub fn new(seed: u64, keys: &[(&str, String)]) -> Self {
        let keys = keys.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Self { keys, seed, values: Vec::new() }
    }

    /// The same row with figures that an early version called otherwise under their present names.
    fn renamed(mut self) -> Self {
        for (name, _) in &mut self.values {
            if name == "seconds_a_sequence" {
                "seconds_per_sequence".clone_into(name);
            }
        }
        self
    }

    /// The same row with one more figure.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.values.push((name.to_owned(), value));
        self
    }

    /// The same row with more figures.
    #[must_use]
    pub fn with_all(mut self, values: Vec<(String, f64)>) -> Self {
        self.values.extend(values);
        self
    }

    /// A figure by name.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|value| value.0 == name).map(|value| value.1)
    }

    /// A key by name.
    pub fn key(&self, name: &str) -> Option<&str> {
        self.keys.iter().find(|key| key.0 == name).map(|key| key.1.as_str())
    }
}

/// Rows of the same keys and different seeds.
#[derive(Clone, Debug)]
pub struct Group<'r> {
    rows: Vec<&'r Row>,
}

impl Group<'_> {
    /// A key by name.
    pub fn key(&self, name: &str) -> Option<&str> {
        self.rows.first().and_then(|row| row.key(name))
    }

    /// Mean and spread of a figure over the seeds that have it.
    pub fn moments(&self, name: &str) -> Option<Moments> {
        let mut moments = Moments::default();
        self.rows.iter().filter_map(|row| row.value(name)).for_each(|value| moments.push(value));
        (moments.count > 0).then_some(moments)
    }
}

/// All rows of an experiment so far, and the file that keeps them.
#[derive(Debug)]
pub struct Rows {
    path: PathBuf,
    /// Bytes of the file that are whole lines, where a cut one follows them.
    cut: Option<u64>,
    done: BTreeSet<(String, u64)>,
    list: Vec<Row>,
}

/// A finished cell, as a line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    cell: String,
    seed: u64,
    rows: Vec<Row>,
}

impl Rows {
    /// Reads what an earlier run finished. A last line that was cut short does not count; the next cell is written over
    /// it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut rows = Self { path: path.to_owned(), cut: None, done: BTreeSet::new(), list: Vec::new() };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(rows),
            Err(error) => return Err(Error::io(path)(error)),
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        rows.cut = (whole.len() < text.len()).then_some(whole.len() as u64);
        for (index, line) in whole.lines().enumerate() {
            let line: Line = serde_json::from_str(line).map_err(|error| Error::Rows {
                path: path.to_owned(),
                line: index + 1,
                reason: error.to_string(),
            })?;
            rows.done.insert((line.cell, line.seed));
            rows.list.extend(line.rows.into_iter().map(Row::renamed));
        }
        Ok(rows)
    }

    /// Whether a cell is finished.
    pub fn has(&self, cell: &str, seed: u64) -> bool {
        self.done.contains(&(cell.to_owned(), seed))
    }

    /// Adds a finished cell, here and in the file.
    pub fn add(&mut self, cell: &str, seed: u64, rows: Vec<Row>) -> Result<(), Error> {
        let line = Line { cell: cell.to_owned(), seed, rows };
        let mut text = serde_json::to_string(&line).map_err(|error| Error::Output(error.to_string()))?;
        text.push('\n');
        let write = || {
            let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            if let Some(whole) = self.cut {
                file.set_len(whole)?;
            }
            file.write_all(text.as_bytes())?;
            file.sync_data()
        };
        write().map_err(Error::io(&self.path))?;
        self.cut = None;
        self.done.insert((line.cell, seed));
        self.list.extend(line.rows);
        Ok(())
    }

    /// All rows.
    pub fn rows(&self) -> &[Row] {
        &self.list
    }

    /// Rows of equal keys together; those that share the first key lie together, then those that share the second:
    /// numbers by size, words in the order of their first row.
    pub fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        let mut values: Vec<&(String, String)> = Vec::new();
        for row in &self.list {
            values.extend(row.keys.iter().filter(|key| !values.contains(key)).collect::<Vec<_>>());
            match groups.iter_mut().find(|group| group.rows[0].keys == row.keys) {
                Some(group) => group.rows.push(row),
                None => groups.push(Group { rows: vec![row] }),
            }
        }
        // Numbers by size, words by their first row.
        let place = |key: &(String, String)| match key.1.parse::<f64>() {
            Ok(number) => number,
            Err(_) => values.iter().position(|value| *value == key).unwrap_or(usize::MAX) as f64,
        };
        let order = |a: &Group<'_>, b: &Group<'_>| {
            let pairs = a.rows[0].keys.iter().zip(&b.rows[0].keys);
            pairs.map(|(a, b)| place(a).total_cmp(&place(b))).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        groups.sort_by(order);
        groups
    }

    /// A table for people: the keys, then mean ± spread over seeds of each of these figures.
    pub fn table(&self, columns: &[&str]) -> Vec<Vec<String>> {
        let groups = self.groups();
        let names: Vec<&str> = match groups.first() {
            Some(group) => group.rows[0].keys.iter().map(|key| key.0.as_str()).collect(),
            None => return Vec::new(),
        };
        let mut table = vec![names.iter().chain(columns).map(|name| name.replace('_', " ")).collect::<Vec<_>>()];
        for group in &groups {
            let keys = names.iter().map(|name| group.key(name).unwrap_or("").to_owned());
            let cells = columns.iter().map(|column| group.moments(column).map_or_else(|| "–".to_owned(), cell));
            table.push(keys.chain(cells).collect());
        }
        table
    }

    /// Every row with every figure, as CSV.
    pub fn csv(&self) -> Result<String, Error> {
        let mut keys: Vec<&str> = Vec::new();
        let mut values: Vec<&str> = Vec::new();
        for row in &self.list {
            keys.extend(
                row.keys.iter().map(|key| key.0.as_str()).filter(|key| !keys.contains(key)).collect::<Vec<_>>(),
            );
            values.extend(
                row.values
                    .iter()
                    .map(|value| value.0.as_str())
                    .filter(|name| !values.contains(name))
                    .collect::<Vec<_>>(),
            );
        }
        let fault = |error: &dyn std::fmt::Display| Error::Output(error.to_string());
        let mut table = csv::Writer::from_writer(Vec::new());
        let names = keys.iter().copied().chain(["seed"]).chain(values.iter().copied());
        table.write_record(names).map_err(|error| fault(&error))?;
        for row in &self.list {
            let cells = keys
                .iter()
                .map(|key| row.key(key).unwrap_or("").to_owned())
                .chain([row.seed.to_string()])
                .chain(values.iter().map(|name| row.value(name).map_or(String::new(), |value| value.to_string())));
            table.write_record(cells).map_err(|error| fault(&error))?;
        }
        let text = table.into_inner().map_err(|error| fault(&error))?;
        String::from_utf8(text).map_err(|error| fault(&error))
    }
}

/// Mean ± spread with as many digits as mean anything.
pub(crate) fn cell(moments: Moments) -> String {
    let digits = match moments.mean.abs() {
        mean if mean >= 1000.0 => 0,
        mean if mean >= 10.0 => 1,
        mean if mean >= 0.1 || mean == 0.0 => 3,
        mean if mean >= 0.001 => 4,
        _ => return format!("{:.2e}", moments.mean),
    };
    if moments.count > 1 {
        format!("{:.digits$} ± {:.digits$}", moments.mean, moments.spread())
    } else {
        format!("{:.digits$}", moments.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(method: &str, seed: u64, f1: f64) -> Row {
        Row::new(seed, &[("method", method.to_owned())]).with("f1", f1)
    }

    #[test]
    fn finished_cells_survive_and_a_cut_line_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        let mut rows = Rows::open(&path).unwrap();
        rows.add("a", 1, vec![row("x", 1, 0.5)]).unwrap();
        rows.add("a", 2, vec![row("x", 2, 0.7)]).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 5]).unwrap();
        let mut again = Rows::open(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text[..text.len() - 5], "who only reads changes nothing");
        assert!(again.has("a", 1) && !again.has("a", 2));
        again.add("a", 2, vec![row("x", 2, 0.7)]).unwrap();
        let table = Rows::open(&path).unwrap().table(&["f1"]);
        assert_eq!(table, [vec!["method", "f1"], vec!["x", "0.600 ± 0.141"]]);
        assert_eq!(again.csv().unwrap(), "method,seed,f1\nx,1,0.5\nx,2,0.7\n");
        again.add("b", 1, vec![row("x, auto", 1, 0.25)]).unwrap();
        assert!(again.csv().unwrap().ends_with("\n\"x, auto\",1,0.25\n"), "a comma in a name is no new column");
    }

    #[test]
    fn a_broken_file_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        fs::write(&path, "{\"cell\": 3}\n").unwrap();
        assert!(Rows::open(&path).unwrap_err().to_string().contains("rows.jsonl: line 1"));
    }
}
