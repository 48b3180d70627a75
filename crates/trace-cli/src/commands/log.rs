//! `trace log`: what a log holds.

use trace_causal::shorten::distinct;
use trace_causal::table::render;
use trace_causal::{Log, RARE, Summary};

use crate::cli::{LogCommand, LogInfoArgs};
use crate::failure::Failure;
use crate::output::{print, print_json};

/// Letters of a name that are shown.
const LONGEST_NAME: usize = 70;

pub fn run(command: &LogCommand) -> Result<(), Failure> {
    match command {
        LogCommand::Info(args) => info(args),
    }
}

fn info(args: &LogInfoArgs) -> Result<(), Failure> {
    let summary = Log::open_with(&args.log.path, &args.log.options())?.summary()?;
    if args.json { print_json(&summary) } else { print(&as_text(&summary)) }
}

/// What shaping did in words, of what it did anything to.
fn shaping(summary: &Summary) -> Vec<(&'static str, String)> {
    let shaped = summary.report.shaped;
    let mut rows = Vec::new();
    if shaped.folded_types > 0 {
        rows.push((
            "folded",
            format!("{} types with {} events into {RARE}", shaped.folded_types, shaped.folded_events),
        ));
    }
    if shaped.collapsed > 0 {
        rows.push(("collapsed", format!("{} events that repeated the one before", shaped.collapsed)));
    }
    if shaped.gap_pieces > 0 {
        rows.push(("split at gaps", format!("{} more pieces", shaped.gap_pieces)));
    }
    if shaped.length_pieces > 0 {
        rows.push(("split by length", format!("{} more pieces", shaped.length_pieces)));
    }
    rows
}

fn as_text(summary: &Summary) -> String {
    let report = &summary.report;
    let mut rows: Vec<(&str, String)> = Vec::new();
    let mut format = report.format.to_string();
    if let Some(delimiter) = report.delimiter {
        let sign = if delimiter == '\t' { "tab".to_owned() } else { format!("{delimiter:?}") };
        format += &format!(", fields separated by {sign}");
    }
    if let Some(compression) = report.compression {
        format += &format!(", {}", compression.name());
    }
    rows.push(("format", format));
    if !report.event_columns.is_empty() {
        let or = |names: &[String], none: &str| if names.is_empty() { none.to_owned() } else { names.join(" + ") };
        rows.push(("case column", or(&report.case_columns, "none: all rows are one case")));
        rows.push(("event column", or(&report.event_columns, "none")));
        rows.push(("time column", or(&report.time_columns, "none: by the order of rows")));
        rows.extend(report.outcome_column.iter().map(|name| ("outcome column", name.clone())));
    }
    rows.push(("rows read", report.rows.to_string()));
    rows.push(("rows skipped", report.skipped.count.to_string()));
    rows.extend(shaping(summary));
    rows.push(("cases", summary.cases.to_string()));
    rows.push(("cases that ended", summary.ended_cases.to_string()));
    rows.push(("events", summary.events.to_string()));
    rows.push(("event types", summary.types.to_string()));
    if let Some(steps) = summary.steps {
        rows.push(("steps", format!("{}, {} of them with several outcomes", steps.steps, steps.steps_with_outcomes)));
    }
    if let Some(lengths) = summary.lengths {
        let text = format!(
            "{} to {} events per case, median {}, mean {:.1}",
            lengths.min, lengths.max, lengths.median, lengths.mean
        );
        rows.push(("lengths", text));
    }
    if summary.timed_cases > 0 {
        let ties = format!("{} events at the same time as the one before", summary.ties);
        rows.push(("ties", ties));
        let sorted = if report.sorted_cases > 0 { " (sorted)" } else { "" };
        rows.push(("cases not in time order", format!("{}{sorted}", report.sorted_cases)));
    }
    if summary.timed_cases < summary.cases {
        rows.push(("cases without times", (summary.cases - summary.timed_cases).to_string()));
    }
    if let Some((first, last)) = summary.span {
        let text = match &summary.dates {
            Some((first, last)) => format!("{first} to {last}"),
            None => format!("{first} to {last}"),
        };
        rows.push(("time span", text));
    }
    let wide = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = format!("{}\n", summary.name);
    for (name, value) in rows {
        text += &format!("  {name:wide$}  {value}\n");
    }
    for reason in &report.skipped.reasons {
        text += &format!("  skipped: {reason}\n");
    }
    text += "\nmost frequent types\n";
    let share = |count: u64| format!("{:.1} %", 100.0 * count as f64 / summary.events.max(1) as f64);
    let names: Vec<String> = summary.frequent.iter().map(|(name, _)| name.to_string()).collect();
    let names = distinct(&names, LONGEST_NAME);
    let named = |(name, (_, count)): (&String, &(trace_causal::EventName, u64))| {
        vec![name.clone(), count.to_string(), share(*count)]
    };
    let frequent: Vec<Vec<String>> = names.iter().zip(&summary.frequent).map(named).collect();
    for line in render(&frequent).lines() {
        text += &format!("  {line}\n");
    }
    text
}
