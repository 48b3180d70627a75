//! `trace demo`: the whole story with no input.
//!
//! A process with known causes makes a log; an n-gram model is trained on it; both the process itself (a perfect
//! model) and the n-gram model are asked what caused what in fresh sequences; both answers are scored against the
//! truth.

use std::io::Write;
use std::path::Path;

use rayon::prelude::*;
use serde_json::{Map, json};
use trace_core::{
    DensityModel, Discovery, Divergence, EventId, EventSequence, Particles, Proposal, SampleGraph, Vocabulary,
};
use trace_io::output::write_whole;
use trace_io::result::{ResultLine, ResultModel, ResultOptions, ResultSettings};
use trace_io::truth::TruthLine;
use trace_models::ngram::{self, NgramSpec};
use trace_models::{Process, ProcessSpec, write_folder};

use super::evaluate::Scored;
use super::simulate::TruthSpec;
use super::train::process_entropy;
use crate::cli::DemoArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Progress, say};
use crate::table;

const VOCABULARY: usize = 200;
const MEMORY: usize = 3;
const LENGTH: usize = 64;
const TRAINED_ON: usize = 4000;
const ASKED_ABOUT: usize = 20;

pub fn run(args: &DemoArgs, quiet: bool) -> anyhow::Result<()> {
    if let Some(folder) = &args.out
        && folder.exists()
        && !folder.read_dir().is_ok_and(|mut entries| entries.next().is_none())
    {
        return Err(Failure::usage(format!("{}: is there already; expected a new or empty folder", folder.display())));
    }
    let spec = ProcessSpec { vocabulary: VOCABULARY, memory: MEMORY, redundancy: 0.6, decay: 1.0, seed: args.seed };
    say(quiet, format_args!("1. simulating: {VOCABULARY} event types, each event depends on the {MEMORY} before it"));
    let mut process = Process::draw(&spec)?;
    let (training, asked, entropy) = simulate(&process, args.seed);
    process.set_entropy(entropy, (TRAINED_ON + ASKED_ABOUT) * (LENGTH - MEMORY), args.seed);
    say(
        quiet,
        format_args!(
            "   {TRAINED_ON} sequences of {LENGTH} events to train on, {ASKED_ABOUT} to ask about; redundancy {:.2}",
            process.fitness().redundancy(VOCABULARY).unwrap_or(f64::NAN)
        ),
    );

    say(quiet, "2. training an n-gram model on them");
    let vocabulary = Vocabulary::ids(VOCABULARY);
    let mut trained = ngram::train(&training, VOCABULARY, &NgramSpec { seed: args.seed, ..NgramSpec::default() })?;
    let held_out = trained.held_out.iter().map(|index| training[*index].events.as_slice());
    let floor = process_entropy(&process, &vocabulary, held_out, &vocabulary)?;
    trained.model.set_entropy(floor);
    let fitness = trained.model.fitness();
    say(
        quiet,
        format_args!(
            "   a {}-gram: held-out loss {:.2} nats an event (frequencies alone {:.2}, the process itself {floor:.2})",
            trained.model.order(),
            fitness.held_out_loss.unwrap_or(f64::NAN),
            fitness.unigram_loss.unwrap_or(f64::NAN),
        ),
    );

    say(quiet, "3. measuring the truth by intervention on the process");
    let truth = TruthSpec { divergence: Divergence::Event, draws: Particles::All, seed: args.seed };
    let progress = Progress::new("measuring", ASKED_ABOUT as u64, quiet);
    let truths = asked
        .par_iter()
        .map(|sequence| {
            let line = truth.measure(&process, sequence)?;
            progress.add(1);
            Ok(line)
        })
        .collect::<Result<Vec<_>, trace_core::Error>>()?;
    progress.finish();

    say(quiet, "4. asking both models what caused what");
    let oracle = Answer::new(&process, &vocabulary, &asked, args.seed)?;
    let ngram = Answer::new(&trained.model, &vocabulary, &asked, args.seed)?;

    if let Some(folder) = &args.out {
        interrupt::watch()?; // so that writing is not cut in half
        write_folder(folder, |folder| -> anyhow::Result<()> {
            keep(folder, &training, &asked, &truths, &oracle, &ngram)?;
            let (process_folder, model_folder) = (folder.join("process"), folder.join("model"));
            std::fs::create_dir(&process_folder)?;
            process.save(&process_folder, &Map::new())?;
            std::fs::create_dir(&model_folder)?;
            trained.model.save(&model_folder, &vocabulary, &Map::new())?;
            Ok(())
        })?;
        say(quiet, format_args!("   everything is kept in {}", folder.display()));
    }

    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{}", strongest(&asked[0], &oracle, &ngram, &truths[0]))?;
    for (title, answer) in [("With the process itself, a perfect model:", &oracle), ("With the n-gram model:", &ngram)]
    {
        let mut scored = Scored::new(false);
        for (line, truth) in answer.lines.iter().zip(&truths) {
            scored.add(line, truth).map_err(Failure::usage)?;
        }
        writeln!(out, "{title}\n{}", scored.as_text())?;
    }
    writeln!(
        out,
        "A perfect model shows what the method can do. The n-gram model shows what a poor one costs: lags above {} are\n\
         beyond its reach, and where its counts are sparse it sees dependence that is not there.\n\
         An edge reads: replacing the cause changes the prediction of the effect by that many nats. To call it a cause is\n\
         to assume that causes come first, that none is missing from the log, that mechanisms stay the same along the\n\
         sequence, and that the model fits.",
        trained.model.order() - 1
    )?;
    Ok(())
}

/// Sequences to train on, sequences to ask about, and the sum of their entropies.
fn simulate(process: &Process, seed: u64) -> (Vec<EventSequence>, Vec<EventSequence>, f64) {
    let all = process.simulate(seed, 0, TRAINED_ON + ASKED_ABOUT, LENGTH);
    let entropy = all.iter().map(|s| s.entropy).sum::<f64>();
    let mut sequences: Vec<EventSequence> =
        all.into_iter().enumerate().map(|(i, s)| EventSequence::new(format!("s{i}"), s.events)).collect();
    let asked = sequences.split_off(TRAINED_ON);
    (sequences, asked, entropy)
}

/// What one model says about the sequences.
struct Answer {
    graphs: Vec<SampleGraph>,
    lines: Vec<ResultLine>,
}

impl Answer {
    fn new(
        model: &dyn DensityModel,
        vocabulary: &Vocabulary,
        asked: &[EventSequence],
        seed: u64,
    ) -> anyhow::Result<Self> {
        // The truth replaces events uniformly, so both models are asked that way.
        let discovery = Discovery::new(model).proposal(Proposal::Uniform).memory(MEMORY).seed(seed);
        let settings = ResultSettings::new(&discovery.plan()?);
        let about = ResultModel::new(model, None);
        let options = ResultOptions { all_pairs: true, self_loops: false };
        let graphs = asked
            .par_iter()
            .map(|sequence| Ok(discovery.run(sequence)?.graph))
            .collect::<Result<Vec<_>, trace_core::Error>>()?;
        let lines = asked
            .iter()
            .zip(&graphs)
            .map(|(sequence, graph)| ResultLine::new(sequence, graph, &settings, &about, vocabulary, options))
            .collect();
        Ok(Self { graphs, lines })
    }
}

/// The strongest edges of one sequence, as both models see them.
fn strongest(sequence: &EventSequence, oracle: &Answer, ngram: &Answer, truth: &TruthLine) -> String {
    let mut edges: Vec<_> = oracle.graphs[0].edges().collect();
    edges.sort_by(|a, b| b.strength.total_cmp(&a.strength));
    let mut rows =
        vec![["cause", "effect", "lag", "strength", "p", "p without", "by n-gram", "true"].map(str::to_owned).to_vec()];
    let event = |position: trace_core::Position| {
        let EventId(id) = sequence.events[position.index()];
        format!("{id} at {position}")
    };
    for edge in edges.iter().take(8) {
        let by_ngram =
            ngram.graphs[0].pairs().iter().find(|pair| (pair.cause, pair.effect) == (edge.cause, edge.effect));
        let is_true = truth.edges.iter().any(|t| (t.cause, t.effect) == (edge.cause.0, edge.effect.0));
        rows.push(vec![
            event(edge.cause),
            event(edge.effect),
            edge.lag().to_string(),
            format!("{:.2} ± {:.2}", edge.strength, edge.std_error),
            format!("{:.3}", edge.probability),
            format!("{:.3}", edge.probability_replaced),
            by_ngram.map_or("–".to_owned(), |pair| format!("{:.2}", pair.strength)),
            if is_true { "yes" } else { "no" }.to_owned(),
        ]);
    }
    format!(
        "Strongest of {} edges in sequence {} (strength in nats; p: probability of the effect):\n{}",
        edges.len(),
        sequence.id,
        table::render(&rows)
    )
}

/// Writes the logs, the truth and both answers.
fn keep(
    folder: &Path,
    training: &[EventSequence],
    asked: &[EventSequence],
    truths: &[TruthLine],
    oracle: &Answer,
    ngram: &Answer,
) -> anyhow::Result<()> {
    let log = |sequences: &[EventSequence]| -> Vec<String> {
        let ids = |s: &EventSequence| s.events.iter().map(|event| event.0).collect::<Vec<_>>();
        sequences.iter().map(|s| json!({"id": s.id, "events": ids(s)}).to_string()).collect()
    };
    let results = |answer: &Answer| answer.lines.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
    for (name, lines) in [
        ("training.jsonl", log(training)),
        ("events.jsonl", log(asked)),
        ("truth.jsonl", truths.iter().map(serde_json::to_string).collect::<Result<_, _>>()?),
        ("oracle.jsonl", results(oracle)?),
        ("ngram.jsonl", results(ngram)?),
    ] {
        write_whole(&folder.join(name), |out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
    }
    Ok(())
}
