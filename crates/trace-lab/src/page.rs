//! The results page: every experiment that has rows, with the paper's figure beside ours.

use std::fs;
use std::path::{Path, PathBuf};

use crate::experiments::{ALL, Experiment};
use crate::rows::Rows;
use crate::{Error, Size};

/// Writes `results.md` into the folder of results, from what is finished there.
pub fn write_page(folder: &Path, size: Size) -> Result<PathBuf, Error> {
    let mut text = String::from(
        "# Results\n\nEvery table and figure of the paper, run again. How it was done was fixed before: see the protocol. \
         A cell is the mean over seeds, ± its spread where there is more than one. Figures without a prefix are those of \
         the summary graph (pairs of types); `positions` are pairs of positions.\n",
    );
    for experiment in ALL {
        let rows = Rows::open(&folder.join(format!("{}.rows.jsonl", experiment.name)))?;
        if !rows.rows().is_empty() {
            text += &section(experiment, &rows, size, &record(folder, experiment));
        }
    }
    let path = folder.join("results.md");
    fs::write(&path, text).map_err(Error::io(&path))?;
    Ok(path)
}

/// What the experiment's record says of the machine.
fn record(folder: &Path, experiment: &Experiment) -> String {
    let text = fs::read_to_string(folder.join(format!("{}.json", experiment.name))).unwrap_or_default();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    record["machine"].as_str().unwrap_or("an unknown machine").to_owned()
}

fn section(experiment: &Experiment, rows: &Rows, size: Size, machine: &str) -> String {
    let flag = match size {
        Size::Standard => String::new(),
        size => format!(" --{}", size.name()),
    };
    let seeds = rows.rows().iter().map(|row| row.seed).max().unwrap_or(0);
    let mut text = format!(
        "\n## {}\n\n`trace bench {}{flag} --seeds {seeds}` on {machine}\n\nPaper: {}.\n\n{}\n\n",
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
