//! Events recorded wrongly.

use trace_sim::TruthSpec;

use super::{Axis, Cell, Experiment, Plot, ProcessKind, THRESHOLD, base, measured, numbered, trace_method};
use crate::lab::Lab;
use crate::rows::Row;
use crate::scores::Case;
use crate::setup::{Setup, with_noise};
use crate::{Error, Size};

pub const NOISE: Experiment = Experiment {
    name: "noise",
    process: ProcessKind::Synthetic,
    title: "Accuracy where a share of events is replaced by random ones",
    paper: "precision above 0.8 with 40 % of the context replaced; recall falls",
    why: "Two truths: `what happened` holds the edges of the sequence before it was disturbed, which a replaced event \
          can no longer show; `what was recorded` is what the process says of the disturbed sequence, in which a \
          wrong event does change what is to be expected after it.",
    cells,
    run,
    columns: &["f1", "precision", "recall", "positions_precision", "positions_recall", "true_edges", "epsilon_hat"],
    plot: Plot {
        x: "replaced",
        axis: Axis::Linear,
        only: None,
        series: Some("truth"),
        figures: &["precision", "recall"],
    },
    note: None,
};

fn cells(size: Size) -> Vec<Cell> {
    numbered(size.pick(&[0.0, 0.4], &[0.0, 0.2, 0.4], &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5], &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5]))
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let scale = lab.scale;
    let setup = Setup::new(lab, base(lab, seed))?;
    let clean = setup.reported(scale.sequences, scale.length);
    let noisy: Vec<_> = clean.iter().map(|clean| with_noise(clean, cell.value, scale.vocabulary, seed)).collect();
    let mut happened = setup.cases(clean, TruthSpec::EXACT)?;
    for (case, (noisy, replaced)) in happened.iter_mut().zip(&noisy) {
        case.sequence = noisy.clone();
        // An edge from or to an event that was not recorded is no longer in the record.
        case.truth.retain(|(cause, effect), _| !replaced[cause.index()] && !replaced[effect.index()]);
    }
    let recorded: Vec<Case> = setup.cases(noisy.into_iter().map(|(noisy, _)| noisy).collect(), TruthSpec::EXACT)?;
    let method = trace_method(lab, setup.model(), scale.memory, seed).threshold(THRESHOLD);
    let mut rows = Vec::new();
    for (truth, cases) in [("what happened", happened), ("what was recorded", recorded)] {
        let row = Row::new(seed, &[("truth", truth.to_owned()), ("replaced", cell.name.clone())]);
        rows.push(measured(row, &setup, &method, &cases)?.0);
    }
    Ok(rows)
}
