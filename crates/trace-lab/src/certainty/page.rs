//! Tables, figures and the page, from rows.

use std::fs;
use std::path::{Path, PathBuf};

use trace_core::numerics::Moments;
use trace_report::figure::chart::{Chart, Scale as Axis, Series};

use super::Certainty;
use super::fit::{Fitted, GATE};
use super::score::{RATES, STRATA};
use super::world::LogKind;
use crate::Error;
use crate::rows::{Group, Rows, cell};

/// A table: what it is called, which rows it has, and which figures.
struct Table {
    title: &'static str,
    about: String,
    rows: fn(&Group<'_>) -> bool,
    figures: Vec<(String, String)>,
}

/// Writes what the rows say into the folder.
pub(super) fn write(folder: &Path, rows: &Rows) -> Result<Certainty, Error> {
    let groups = rows.groups();
    let mut text = String::from(
        "# Certainty\n\nWhether the population graph errs as rarely as it says: `trace-lab certainty`, as fixed before in \
         research/protocol.md. A cell is the mean over seeds, ± its spread where there is more than one.\n",
    );
    let mut files = vec![folder.join("certainty.csv")];
    fs::write(&files[0], rows.csv()?).map_err(Error::io(&files[0]))?;
    let tables = tables();
    for table in &tables {
        text += &format!("\n## {}\n\n{}\n\n{}", table.title, table.about, markdown(&table.lines(&groups)));
    }
    text += &format!("\n## Models that do not fit\n\n{}\n", unfit(&groups));
    for (name, chart) in charts(&groups) {
        let path = folder.join(format!("{name}.svg"));
        fs::write(&path, chart.svg()).map_err(Error::io(&path))?;
        text += &format!("\n![{}]({name}.svg)\n", chart.title);
        files.push(path);
    }
    let page: PathBuf = folder.join("results.md");
    fs::write(&page, text).map_err(Error::io(&page))?;
    files.push(page);
    let table = tables.first().map(|table| table.lines(&groups)).unwrap_or_default();
    Ok(Certainty { table, files })
}

fn is_default(group: &Group<'_>) -> bool {
    group.key("proposal") == Some("default")
}

fn is_null(group: &Group<'_>) -> bool {
    group.key("log").is_some_and(|log| log.ends_with("-null"))
}

fn tables() -> Vec<Table> {
    let figures = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter().map(|(name, title)| ((*name).to_owned(), (*title).to_owned())).collect()
    };
    let strata = |prefix: &str| -> Vec<(String, String)> {
        let parts = STRATA.iter().map(|(_, part)| *part).chain(["all"]);
        parts.map(|part| (format!("{prefix}_{part}"), part.replace('_', " "))).collect()
    };
    vec![
        Table {
            title: "All logs",
            about: "Realised false-discovery rate (kept nulls over all that is kept) at a nominal 0.05, 0.1 and 0.2, the same for pairs whose \
                    exact ratio does not exceed 1.2 at 0.1, recall at 0.1, and the rule without evidence."
                .to_owned(),
            rows: is_default,
            figures: figures(&[
                ("excess_loss", "excess loss"),
                ("designed", "designed"),
                ("fdr_05", "fdr 0.05"),
                ("fdr_10", "fdr 0.1"),
                ("fdr_20", "fdr 0.2"),
                ("fdr_of_ratio_10", "ratio ≤ 1.2"),
                ("recall_10", "recall 0.1"),
                ("kept_10", "kept 0.1"),
                ("kept_weak_10", "weak 0.1"),
                ("null_p05_all", "nulls p < 0.05"),
                ("null_p05_above_1_all", "for ratio 1"),
                ("null_p05_above_1_of_family", "of the family"),
                ("untestable", "untestable"),
                ("fdr_present", "present fdr"),
                ("recall_present", "present recall"),
            ]),
        },
        Table {
            title: "Null logs",
            about: "How many pairs are kept where nothing is designed; those of workflows include weak ones, which the order of steps makes."
                .to_owned(),
            rows: |group| is_default(group) && is_null(group),
            figures: figures(&[
                ("kept_05", "kept 0.05"),
                ("kept_10", "kept 0.1"),
                ("kept_20", "kept 0.2"),
                ("kept_null_10", "of them null 0.1"),
                ("kept_present", "present kept"),
                ("kept_null_present", "of them null"),
                ("pairs", "pairs"),
            ]),
        },
        Table {
            title: "Nulls with p < 0.05, for a ratio above 1",
            about: "By how often the effect was expected after the cause.".to_owned(),
            rows: is_default,
            figures: strata("null_p05_above_1"),
        },
        Table {
            title: "Nulls with p < 0.05, for a ratio above 1.2",
            about: "As it is decided by.".to_owned(),
            rows: is_default,
            figures: strata("null_p05"),
        },
        Table {
            title: "Proposals",
            about: "What replacements come from, at 500 sequences; the default is `unigram`. Evidence rests on plausible alternatives \
                    in all three."
                .to_owned(),
            rows: |group| group.key("model") == Some(Fitted::Network.name()) && group.key("size") == Some("500"),
            figures: figures(&[
                ("fdr_10", "fdr 0.1"),
                ("recall_10", "recall 0.1"),
                ("kept_10", "kept 0.1"),
                ("fdr_present", "present fdr"),
                ("recall_present", "present recall"),
                ("average_precision", "average precision"),
            ]),
        },
    ]
}

impl Table {
    fn lines(&self, groups: &[Group<'_>]) -> Vec<Vec<String>> {
        const KEYS: [&str; 4] = ["log", "model", "size", "proposal"];
        let names = KEYS.iter().map(|key| (*key).to_owned());
        let mut lines = vec![names.chain(self.figures.iter().map(|figure| figure.1.clone())).collect::<Vec<_>>()];
        for group in groups.iter().filter(|group| (self.rows)(group)) {
            let keys = KEYS.iter().map(|key| group.key(key).unwrap_or("").to_owned());
            let figure = |name: &str| group.moments(name).map_or_else(|| "–".to_owned(), cell);
            lines.push(keys.chain(self.figures.iter().map(|(name, _)| figure(name))).collect());
        }
        lines
    }
}

fn markdown(lines: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        text += &format!("| {} |\n", line.join(" | "));
        if index == 0 {
            text += &format!("|{}\n", " --- |".repeat(line.len()));
        }
    }
    text
}

/// Which models fail the gate, and by how much.
fn unfit(groups: &[Group<'_>]) -> String {
    let mut named: Vec<String> = Vec::new();
    for group in groups.iter().filter(|group| is_default(group)) {
        let (Some(fits), Some(excess)) = (group.moments("fits"), group.moments("excess_loss")) else { continue };
        if fits.mean < 1.0 {
            let (log, model) = (group.key("log").unwrap_or(""), group.key("model").unwrap_or(""));
            let seeds = if fits.mean > 0.0 { " on some seeds" } else { "" };
            let line = format!("- `{log}`, `{model}`: {:.3} nats above the process on average{seeds}", excess.mean);
            if !named.contains(&line) {
                named.push(line);
            }
        }
    }
    if named.is_empty() {
        return format!("None: all are within {GATE} nats an event of the process.");
    }
    format!(
        "More than {GATE} nats an event above the process; nothing is claimed of their cells.\n\n{}",
        named.join("\n")
    )
}

/// The mean of a figure over groups, as a point.
fn point<'g>(x: f64, groups: impl Iterator<Item = &'g Group<'g>>, figure: &str) -> Option<(f64, f64, f64)> {
    let mut all = Moments::default();
    groups.filter_map(|group| group.moments(figure)).for_each(|moments| all.merge(&moments));
    (all.count > 0).then(|| (x, all.mean, if all.count > 1 { all.spread() / (all.count as f64).sqrt() } else { 0.0 }))
}

/// For each model: nominal against realised rates, and recall by size.
fn charts(groups: &[Group<'_>]) -> Vec<(String, Chart)> {
    let mut charts = Vec::new();
    let logs: Vec<LogKind> = LogKind::all().into_iter().filter(|log| !log.null).collect();
    for model in Fitted::ALL.map(Fitted::name) {
        let of = |log: &LogKind| {
            let name = log.name();
            let here = move |group: &&Group<'_>| {
                is_default(group) && group.key("log") == Some(&*name) && group.key("model") == Some(model)
            };
            groups.iter().filter(here).collect::<Vec<_>>()
        };
        let nominal = RATES.map(|(rate, _)| (rate, rate, 0.0)).to_vec();
        let mut rates = vec![Series { name: "nominal".to_owned(), points: nominal }];
        let mut recalls = Vec::new();
        for log in &logs {
            let groups = of(log);
            let points =
                RATES.iter().filter_map(|(rate, name)| point(*rate, groups.iter().copied(), &format!("fdr_{name}")));
            rates.push(Series { name: log.name(), points: points.collect() });
            let by_size = groups.iter().filter_map(|group| {
                let size = group.key("size")?.parse().ok()?;
                point(size, std::iter::once(*group), "recall_10")
            });
            recalls.push(Series { name: log.name(), points: by_size.collect() });
        }
        recalls.retain(|series| !series.points.is_empty());
        if recalls.is_empty() {
            continue;
        }
        rates.retain(|series| !series.points.is_empty());
        let title = format!("Realised false-discovery rate, {model}");
        charts.push((format!("calibration-{model}"), chart(title, "nominal", Axis::Linear, rates)));
        let title = format!("Recall at a nominal rate of 0.1, {model}");
        charts.push((format!("recall-{model}"), chart(title, "sequences", Axis::Logarithmic, recalls)));
    }
    charts
}

fn chart(title: String, x: &str, axis: Axis, series: Vec<Series>) -> Chart {
    Chart { title, x: x.to_owned(), axis, series }
}
