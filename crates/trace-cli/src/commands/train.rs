//! `trace train`: from a log to a model.

use trace_causal::{Log, Train, TrainReport};

use crate::cli::{BackboneFlag, TrainArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Terminal;

pub fn run(args: &TrainArgs, quiet: bool) -> Result<(), Failure> {
    if args.resume && args.backbone == BackboneFlag::Ngram {
        return Err(Failure::usage("--resume: means nothing to the backbone ngram"));
    }
    let terminal = Terminal::new(quiet);
    let log = Log::open_with(&args.log.path, &args.log.options())?;
    let cancel = interrupt::watch()?;
    let mut train = Train::with_options(args.options()).to_folder(&args.out).resume(args.resume);
    if let Some(process) = &args.process {
        train = train.process(process);
    }
    train.progress(&terminal).cancel(&cancel).run(&log)?;
    Ok(())
}

/// What a training came to, in words.
pub fn describe(report: &TrainReport) -> String {
    let mut text = format!("{}: ", report.folder.display());
    if let Some(order) = report.order {
        text += &format!("{order}-gram with {} counts", report.parameters);
    } else {
        let (steps, events) = (report.steps.unwrap_or(0), report.events.unwrap_or(0));
        text += &format!(
            "{} with {} parameters after {steps} steps on {events} events in {}",
            report.backbone,
            report.parameters,
            time(report.seconds)
        );
    }
    if report.stopped_early {
        text += ", stopped because the held-out loss no longer fell";
    }
    let Some(loss) = report.held_out_loss else { return text + "; nothing was held out, so its fit is unknown" };
    let floors = &report.floors;
    text += &format!("\nheld-out loss {loss:.3} nats per event");
    if let Some(unigram) = floors.unigram {
        text += &format!("; frequencies alone {unigram:.3}");
    }
    if let Some((order, floor)) = floors.ngram {
        text += &format!("; {order}-gram {floor:.3}");
    }
    if let Some(score) = floors.fitness(Some(loss)).epsilon_hat(floors.types) {
        text += &format!("; oracle score {score:.4} (0 is perfect, 1 a uniform guess)");
    }
    if report.learned_nothing() {
        text += "\nwarning: the model predicts no better than event frequencies; expect to find no causes with it";
    } else if report.loses_to_ngrams() {
        text += "\nnote: counting n-grams predicts better; more training, or --backbone ngram, would help";
    }
    text
}

/// Seconds for people.
pub fn time(seconds: f64) -> String {
    if !seconds.is_finite() {
        "?".to_owned()
    } else if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else if seconds < 5400.0 {
        format!("{:.1} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}
