//! `trace demo`: the whole story with no input.
//!
//! A fleet of vehicles with known causes makes a log; a network learns to predict it; vehicles it has not seen are asked
//! what caused what; the answers are compared with the truth; one failure is explained; all of it goes into a page.
//! Every step is a command that the user could have typed, and is shown before it runs.

use std::path::Path;

use clap::Parser;
use trace_causal::{Chain, Explanation, Position, ResultReader};

use crate::cli::{Cli, DemoArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::say;

/// Vehicles whose graphs are looked at.
const ASKED_ABOUT: usize = 100;
/// Events that a step of training reads, and events of a vehicle, about: together one pass over the training vehicles.
const STEP_EVENTS: usize = 1024;
const VEHICLE_EVENTS: usize = 60;
/// Marks a folder as one that a demo made and may replace.
const MARK: &str = "demo.txt";

pub fn run(args: &DemoArgs, quiet: bool) -> Result<(), Failure> {
    if !(100..=10_000_000).contains(&args.vehicles) {
        return Err(Failure::usage(format!("--vehicles: {} is out of range; expected 100 to 10000000", args.vehicles)));
    }
    prepare(&args.out)?;
    let folder = args.out.display().to_string();
    let story = Story { folder: &folder, quiet };
    let (seed, other) = (args.seed.to_string(), args.seed.wrapping_add(1).to_string());
    let (vehicles, asked) = (args.vehicles.to_string(), ASKED_ABOUT.to_string());
    let steps = (args.vehicles * VEHICLE_EVENTS).div_ceil(STEP_EVENTS).to_string();

    story.tell("1. A fleet of vehicles whose trouble codes cause each other in known ways.");
    story.run(&[
        "simulate",
        "fleet",
        "--sequences",
        &vehicles,
        "--truth",
        "none",
        "--seed",
        &seed,
        "--out",
        "@/training",
    ])?;
    story.tell("\n2. Vehicles of the same fleet to ask about, with the truth: which event caused which.");
    story.run(&["simulate", "fleet", "--sequences", &asked, "--seed", &other, "--out", "@/asked"])?;
    story.tell("\n3. A network that learns to predict the next trouble code. It is told nothing about causes.");
    story.run(&[
        "train",
        "@/training/events.jsonl",
        "--process",
        "@/training",
        "--size",
        "tiny",
        "--steps",
        &steps,
        "--seed",
        &seed,
        "--out",
        "@/model",
    ])?;
    story.tell("\n4. What caused what, vehicle by vehicle, and over all of them.");
    story.run(&[
        "discover",
        "@/asked/events.jsonl",
        "--model",
        "@/model",
        "--memory",
        "6",
        "--seed",
        &seed,
        "--all-pairs",
        "--population",
        "@/population.json",
        "--out",
        "@/results.jsonl",
    ])?;
    story.tell("\n5. Against the truth: events of single vehicles, then trouble codes over all vehicles.");
    story.run(&["evaluate", "@/results.jsonl", "--truth", "@/asked/truth.jsonl"])?;
    story.run(&["evaluate", "@/population.json", "--truth", "@/asked/graph.csv"])?;
    if let Some((id, position)) = worth_explaining(&args.out.join("results.jsonl"))? {
        story.tell("\n6. One failure, explained back to its root.");
        let position = position.to_string();
        story.run(&[
            "explain",
            "@/asked/events.jsonl",
            "--model",
            "@/model",
            "--memory",
            "6",
            "--seed",
            &seed,
            "--case",
            &id,
            "--at",
            &position,
            "--chains",
            "2",
        ])?;
    }
    story.tell("\n7. A page to look around in.");
    story.run(&[
        "report",
        "@/results.jsonl",
        "--population",
        "@/population.json",
        "--title",
        "A simulated vehicle fleet",
        "--out",
        "@/report.html",
    ])?;
    story.tell(&format!("\nOpen {folder}/report.html in a browser."));
    Ok(())
}

/// Makes room. Only what an earlier demo left is replaced.
fn prepare(folder: &Path) -> Result<(), Failure> {
    let is_empty = |folder: &Path| folder.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    if folder.join(MARK).is_file() {
        std::fs::remove_dir_all(folder).map_err(trace_io::Error::io(folder))?;
    } else if folder.exists() && !is_empty(folder) {
        let reason = format!(
            "{}: is there already; expected a new or empty folder, or that of an earlier demo",
            folder.display()
        );
        return Err(Failure::usage(reason));
    }
    std::fs::create_dir_all(folder).map_err(trace_io::Error::io(folder))?;
    let mark = folder.join(MARK);
    std::fs::write(&mark, "Made by `trace demo`, which replaces this folder when it runs again.\n")
        .map_err(trace_io::Error::io(&mark))?;
    Ok(())
}

/// Shows commands and runs them.
struct Story<'s> {
    folder: &'s str,
    quiet: bool,
}

impl Story<'_> {
    fn tell(&self, text: &str) {
        say(self.quiet, text);
    }

    /// Runs a command line in which `@` stands for the demo's folder.
    fn run(&self, words: &[&str]) -> Result<(), Failure> {
        if interrupt::requested() {
            return Err(Failure::Interrupted(format!("what is done so far is in {}", self.folder)));
        }
        let words: Vec<String> = words
            .iter()
            .map(|word| {
                word.strip_prefix('@').map_or_else(|| (*word).to_owned(), |rest| format!("{}{rest}", self.folder))
            })
            .collect();
        let shown: Vec<String> =
            words.iter().map(|word| if word.contains(' ') { format!("'{word}'") } else { word.clone() }).collect();
        say(self.quiet, format_args!("$ trace {}", shown.join(" ")));
        let program = std::iter::once("trace".to_owned());
        let cli = Cli::try_parse_from(program.chain(words)).map_err(|error| Failure::usage(error.to_string()))?;
        super::run(&cli.command, self.quiet)
    }
}

/// The event whose chain back to a root has the most links, and among those the strongest.
fn worth_explaining(results: &Path) -> Result<Option<(String, Position)>, Failure> {
    let mut reader = ResultReader::open(results)?;
    let mut best: Option<((usize, f64), String, Position)> = None;
    while let Some((_, line)) = reader.next_result()? {
        let (graph, _) = line.graph();
        for position in (1..line.events.len() as u32).map(Position) {
            let longest = |chain: &Chain| (chain.edges.len(), chain.strength);
            let chains = Explanation::new(&graph, position).roots;
            // Only the strongest chain of an event counts: it is the one that will be read first.
            let Some(rank) = chains.first().map(longest) else { continue };
            if best.as_ref().is_none_or(|(most, ..)| rank > *most) {
                best = Some((rank, line.id.clone(), position));
            }
        }
    }
    Ok(best.map(|(_, id, position)| (id, position)))
}
