//! The workflow as a density model. A reading keeps where the case is before each event, so that a branch is played from
//! the replaced event on only.

use std::ops::Range;

use trace_core::numerics::divergence;
use trace_core::theory::Fitness;
use trace_core::{Branches, DensityModel, EventId, EventScore, Measure, ModelError, Reading, Scores};

use super::Workflow;
use super::process::Replay;

impl DensityModel for Workflow {
    fn vocabulary_size(&self) -> usize {
        self.types()
    }

    fn backbone(&self) -> &'static str {
        "workflow"
    }

    fn predicts_end(&self) -> bool {
        true
    }

    fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        let mut replay = self.replay();
        let mut masses = Vec::new();
        for event in &events[..positions.start] {
            self.push(&mut replay, *event);
        }
        for (position, row) in positions.clone().zip(rows.chunks_exact_mut(self.row_size())) {
            self.probabilities(&replay, &mut masses, row);
            to_logs(row);
            if position + 1 < positions.end {
                self.push(&mut replay, events[position]);
            }
        }
        Ok(())
    }

    fn read<'a>(&'a self, events: &[EventId]) -> Result<Box<dyn Reading + 'a>, ModelError> {
        let (mut replay, mut masses, mut row) = (self.replay(), Vec::new(), vec![0.0; self.row_size()]);
        let (mut before, mut observed) = (Vec::with_capacity(events.len()), Vec::with_capacity(events.len()));
        for event in events {
            self.probabilities(&replay, &mut masses, &mut row);
            observed.push(score(&row, event.index()));
            before.push(replay.clone());
            self.push(&mut replay, *event);
        }
        Ok(Box::new(WorkflowReading { workflow: self, events: events.to_vec(), before, observed }))
    }

    fn fitness(&self) -> Fitness {
        self.fitness
    }
}

/// The score of one event of a row of probabilities.
pub(super) fn score(row: &[f64], event: usize) -> EventScore {
    let others = row[..event].iter().chain(&row[event + 1..]).sum::<f64>();
    EventScore::from_log_weights(row[event].ln(), others.ln())
}

fn to_logs(row: &mut [f64]) {
    for value in row {
        *value = value.ln();
    }
}

struct WorkflowReading<'a> {
    workflow: &'a Workflow,
    events: Vec<EventId>,
    /// Where the case is before each event.
    before: Vec<Replay>,
    observed: Vec<EventScore>,
}

impl Reading for WorkflowReading<'_> {
    fn observed(&self) -> &[EventScore] {
        &self.observed
    }

    fn distribution(&self, position: usize, row: &mut [f64]) -> Result<(), ModelError> {
        self.workflow.forward(&self.events, position..position + 1, row)
    }

    fn score(&self, batch: &[Branches<'_>], scores: &mut Scores) -> Result<(), ModelError> {
        let (workflow, measure) = (self.workflow, scores.measure());
        let size = workflow.row_size();
        let (mut masses, mut row, mut original) = (Vec::new(), vec![0.0; size], vec![0.0; size]);
        for (branches, entry) in batch.iter().zip(scores.entries_mut()) {
            for branch in 0..branches.count() {
                let mut replay = self.before[branches.start()].clone();
                for lag in 1..=branches.horizon() {
                    let q = branches.start() + lag;
                    let replaced = branches.replacement(branch).get(lag - 1);
                    workflow.push(&mut replay, replaced.copied().unwrap_or(self.events[q - 1]));
                    workflow.probabilities(&replay, &mut masses, &mut row);
                    let at = branch * branches.horizon() + lag - 1;
                    entry.events[at] = score(&row, self.events[q].index());
                    if measure == Measure::Event {
                        continue;
                    }
                    to_logs(&mut row);
                    if measure == Measure::Distribution {
                        entry.distributions[at * size..][..size].copy_from_slice(&row);
                    } else {
                        workflow.probabilities(&self.before[q], &mut masses, &mut original);
                        to_logs(&mut original);
                        entry.divergences[at] = divergence(&original, &row);
                    }
                }
            }
        }
        Ok(())
    }
}
