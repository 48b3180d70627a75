//! `trace log`, and how every other command opens a log.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trace_core::Vocabulary;
use trace_io::log::{EventLog, Log, RARE, Summary, Unknown};

use crate::cli::{LogArgs, LogCommand, LogInfoArgs};
use crate::failure::Failure;
use crate::progress::say;
use crate::table;

/// Opens a log as the flags say.
pub fn open_log(args: &LogArgs) -> anyhow::Result<Log> {
    Ok(Log::open(&args.path, &args.options())?)
}

/// Reads a whole log, and says in a line what was read.
pub fn read_log(
    args: &LogArgs,
    vocabulary: &mut Vocabulary,
    unknown: Unknown,
    quiet: bool,
) -> anyhow::Result<EventLog> {
    let mut args = args.clone();
    if unknown != Unknown::Add && args.min_count.is_some() {
        // What is rare was decided when the model was trained: counts of another log, or of one case, would differ.
        if !vocabulary.has_names() || vocabulary.id(&RARE.into()).is_none() {
            return Err(Failure::usage(format!(
                "--min-count: the model was trained without it and has no type {RARE:?}; leave the flag out"
            )));
        }
        args.min_count = None;
    }
    let (log, summary) = EventLog::read(&open_log(&args)?, vocabulary, unknown)?;
    say(quiet, summary.line());
    Ok(log)
}

/// The key of a model's record that says how the log was shaped.
pub const SHAPING: &str = "log_shaping";

/// Says so when a log is shaped in another way than the one the model was trained on.
pub fn compare_shaping(args: &LogArgs, training: &BTreeMap<String, Value>, quiet: bool) {
    // What is rare is known to the model.
    let ours = LogArgs { min_count: None, ..args.clone() }.shaping();
    let theirs = training.get(SHAPING).and_then(Value::as_str).map(|flags| {
        let words: Vec<&str> = flags.split(' ').collect();
        let rare = words.iter().position(|word| *word == "--min-count");
        let kept = words.iter().enumerate().filter(|(at, _)| rare.is_none_or(|rare| *at != rare && *at != rare + 1));
        kept.map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
    });
    let theirs = theirs.filter(|flags| !flags.is_empty());
    if !training.is_empty() && ours != theirs {
        let name = |flags: &Option<String>| flags.clone().unwrap_or_else(|| "no such flags".to_owned());
        let (theirs, ours) = (name(&theirs), name(&ours));
        say(
            quiet,
            format_args!("note: the model was trained on a log read with {theirs}; this one is read with {ours}"),
        );
    }
}

pub fn run(command: &LogCommand) -> anyhow::Result<()> {
    match command {
        LogCommand::Info(args) => info(args),
    }
}

fn info(args: &LogInfoArgs) -> anyhow::Result<()> {
    let summary = open_log(&args.log)?.summarise()?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&as_json(&summary))?);
    } else {
        print!("{}", as_text(&summary));
    }
    Ok(())
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
    }
    rows.push(("rows read", report.rows.to_string()));
    rows.push(("rows skipped", report.skipped.count.to_string()));
    rows.extend(shaping(summary));
    rows.push(("cases", summary.cases.to_string()));
    rows.push(("events", summary.events.to_string()));
    rows.push(("event types", summary.types.to_string()));
    if let Some(lengths) = summary.lengths {
        let text = format!(
            "{} to {} events a case, median {}, mean {:.1}",
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
        let text = match summary.dates() {
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
    let named =
        |(name, count): &(trace_core::EventName, u64)| vec![short(&name.to_string()), count.to_string(), share(*count)];
    let frequent: Vec<Vec<String>> = summary.frequent.iter().map(named).collect();
    for line in table::render(&frequent).lines() {
        text += &format!("  {line}\n");
    }
    text
}

/// A name as one line that is not too long.
fn short(name: &str) -> String {
    let shown: String = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(70).collect();
    if shown.chars().count() < name.chars().count() { shown + "…" } else { shown }
}

fn as_json(summary: &Summary) -> Value {
    let report = &summary.report;
    let shaped = report.shaped;
    json!({
        "log": summary.name,
        "format": report.format.to_string(),
        "compression": report.compression.map(trace_io::log::Compression::name),
        "delimiter": report.delimiter,
        "columns": {"case": report.case_columns, "event": report.event_columns, "time": report.time_columns},
        "rows": report.rows,
        "skipped_rows": report.skipped.count,
        "skipped_reasons": report.skipped.reasons,
        "sorted_cases": report.sorted_cases,
        "folded_types": shaped.folded_types,
        "folded_events": shaped.folded_events,
        "collapsed_events": shaped.collapsed,
        "gap_pieces": shaped.gap_pieces,
        "length_pieces": shaped.length_pieces,
        "cases": summary.cases,
        "events": summary.events,
        "event_types": summary.types,
        "lengths": summary.lengths.map(|lengths| json!({
            "min": lengths.min, "median": lengths.median, "mean": lengths.mean, "max": lengths.max,
        })),
        "timed_cases": summary.timed_cases,
        "ties": summary.ties,
        "time_span": summary.span,
        "dates": summary.dates(),
        "most_frequent": summary.frequent.iter()
            .map(|(name, count)| json!({"event": name.to_string(), "count": count})).collect::<Vec<_>>(),
    })
}
