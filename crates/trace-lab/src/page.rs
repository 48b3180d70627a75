//! The results page: every experiment that has rows, with what the paper reports beside it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::experiments::{ALL, Experiment};
use crate::rows::Rows;
use crate::{Error, Size};

/// Writes `results.md` into the folder of results, from what is finished there.
pub fn write_page(folder: &Path) -> Result<PathBuf, Error> {
    let mut text = String::from(
        "# Results\n\nTables and figures of the paper, run again: those that have been run into this folder. How it was \
         done was fixed before: see research/protocol.md. A cell is the mean over seeds, ± its spread where there is \
         more than one. Figures without a prefix are those of the summary graph (pairs of types); `positions` are pairs \
         of positions; `megabytes` is the most that the program held meanwhile, with all that it keeps for other \
         experiments.\n",
    );
    for experiment in ALL {
        let rows = Rows::open(&folder.join(format!("{}.rows.jsonl", experiment.name)))?;
        if !rows.rows().is_empty() {
            text += &section(experiment, &rows, &Record::read(folder, experiment));
        }
    }
    let path = folder.join("results.md");
    fs::write(&path, text).map_err(Error::io(&path))?;
    Ok(path)
}

/// What was written down of how an experiment was run.
struct Record {
    size: Option<Size>,
    machine: String,
    flags: String,
}

impl Record {
    fn read(folder: &Path, experiment: &Experiment) -> Self {
        let text = fs::read_to_string(folder.join(format!("{}.json", experiment.name))).unwrap_or_default();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let part = |key: &str| record[key].as_str().map(str::to_owned);
        Self {
            size: part("size").and_then(|name| Size::named(&name)),
            machine: part("machine").unwrap_or_else(|| "an unknown machine".to_owned()),
            flags: part("flags").unwrap_or_default(),
        }
    }
}

/// What asks for the parts that have rows, where others have none.
fn only(experiment: &Experiment, rows: &Rows, size: Size) -> String {
    let cells = (experiment.cells)(size);
    let done: Vec<String> =
        cells.iter().filter(|cell| rows.has(&cell.name, 1)).map(|cell| quoted(&cell.name)).collect();
    // An early version divided an experiment into other parts.
    if done.is_empty() || done.len() == cells.len() { String::new() } else { format!(" --only {}", done.join(" ")) }
}

/// A name as a shell takes it.
fn quoted(name: &str) -> String {
    if name.contains(' ') { format!("'{name}'") } else { name.to_owned() }
}

fn section(experiment: &Experiment, rows: &Rows, record: &Record) -> String {
    let Record { size, machine, flags } = record;
    let only = size.map_or_else(String::new, |size| only(experiment, rows, size));
    let seeds = rows.rows().iter().map(|row| row.seed).max().unwrap_or(0);
    let mut text = format!(
        "\n## {}\n\n`trace-lab {}{flags}{only} --seeds {seeds}` on {machine}\n\nPaper: {}.\n\n{}\n\n",
        experiment.title, experiment.name, experiment.paper, experiment.why
    );
    let table = rows.table(experiment.columns);
    for (index, row) in table.iter().enumerate() {
        text += &format!("| {} |\n", row.join(" | "));
        if index == 0 {
            text += &format!("|{}\n", " --- |".repeat(row.len()));
        }
    }
    if let Some(note) = experiment.note.and_then(|note| note(rows)) {
        text += &format!("\n{note}\n");
    }
    text + &format!("\n![{}]({}.svg)\n", experiment.title, experiment.name)
}
