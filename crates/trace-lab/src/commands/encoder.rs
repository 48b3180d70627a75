//! `trace-lab encoder`: the masked encoder that the attention method looks at.

use trace_core::Vocabulary;
use trace_io::log::{EventLog, Log, LogOptions, Unknown};
use trace_lab::Error;
use trace_lab::encoder::{EncoderLimit, EncoderOptions, train_encoder};

use super::Listener;
use crate::cli::EncoderArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::say;

/// Share of sequences that are held out, as `trace train` does.
const HELD_OUT: f64 = 0.1;

pub fn run(args: &EncoderArgs, quiet: bool) -> anyhow::Result<()> {
    let options = EncoderOptions { shape: None, limit: limit(args)?, held_out: HELD_OUT, seed: args.seed };
    let place = args.out.display();
    if let (Ok(log), Ok(out)) = (args.log.canonicalize(), args.out.canonicalize())
        && log.starts_with(out)
    {
        return Err(Failure::usage(format!("{place}: holds the log; expected another folder for the model")));
    }
    let mut vocabulary = Vocabulary::named();
    let log = read(args, &mut vocabulary)?;
    let corpus = log.sequences.into_iter().map(|sequence| sequence.events).collect();
    interrupt::watch()?;
    let trained = train_encoder(&corpus, &vocabulary, &options, &args.out, &Listener::new(quiet));
    let trained = trained.map_err(|error| match error {
        Error::Interrupted => Failure::interrupted("the steps so far are kept; the same command goes on"),
        error => error.into(),
    })?;
    let loss = trained.held_out_loss.map_or_else(String::new, |loss| format!(", held-out loss {loss:.3}"));
    let (parameters, steps, seconds) = (trained.parameters, trained.steps, trained.seconds);
    say(quiet, format_args!("{place}: bert with {parameters} parameters, {steps} steps in {seconds:.0} s{loss}"));
    Ok(())
}

fn limit(args: &EncoderArgs) -> anyhow::Result<EncoderLimit> {
    match (args.steps, args.minutes) {
        (Some(0), _) => Err(Failure::usage("--steps: expected at least 1")),
        (Some(steps), _) => Ok(EncoderLimit::Steps(steps)),
        (None, Some(minutes)) if minutes > 0.0 && minutes < 1e6 => Ok(EncoderLimit::Minutes(minutes)),
        (None, Some(_)) => Err(Failure::usage("--minutes: expected more than 0")),
        (None, None) => Ok(EncoderLimit::EarlyStop),
    }
}

fn read(args: &EncoderArgs, vocabulary: &mut Vocabulary) -> Result<EventLog, Error> {
    let log = Log::open(&args.log, &LogOptions::default())?;
    let (events, summary) = EventLog::read(&log, vocabulary, Unknown::Add)?;
    summary.check()?;
    Ok(events)
}
