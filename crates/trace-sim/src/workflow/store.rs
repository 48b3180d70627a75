//! The workflow as a model folder: its text is what other models have weights for.

use std::path::Path;

use serde_json::json;
use trace_models::folder::{Description, ModelRecord, RECORD_SCHEMA, SPECIFICATION, save};

use super::{Specification, Workflow, WorkflowSettings};
use crate::Error;

impl Workflow {
    /// `model_type` in `config.json`.
    pub const MODEL_TYPE: &'static str = "trace-workflow";

    /// Writes the workflow as a model folder.
    pub fn save(&self, folder: &Path, training: &serde_json::Map<String, serde_json::Value>) -> Result<(), Error> {
        let config = json!({
            "model_type": Self::MODEL_TYPE,
            "vocab_size": self.types(),
            "noise": self.settings.noise,
            "regularity": self.settings.regularity,
            "null": self.settings.null,
        });
        let record = ModelRecord {
            schema: RECORD_SCHEMA.to_owned(),
            backbone: "workflow".to_owned(),
            held_out_loss: self.fitness.held_out_loss,
            unigram_loss: self.fitness.unigram_loss,
            entropy: self.fitness.entropy,
            special_tokens: std::collections::BTreeMap::new(),
            event_counts: None,
            training: training.clone().into_iter().collect(),
            ..ModelRecord::default()
        };
        save(folder, &config, &record, &self.vocabulary(), |weights| {
            let path = weights.with_file_name(SPECIFICATION);
            std::fs::write(&path, self.specification.text()).map_err(Error::io(&path))
        })
    }

    pub(crate) fn open(description: &Description) -> Result<Self, Error> {
        let config = description.config();
        let size = config.size("vocab_size", 2, super::specification::MOST_TYPES)?;
        let settings = WorkflowSettings {
            noise: config.number("noise")?,
            regularity: config.number("regularity")?,
            null: config.flag_or("null", false)?,
        };
        let path = description.folder.join(SPECIFICATION);
        let specification = Specification::read(&path)?;
        let mut workflow = Self::new(&specification, &settings).map_err(|error| match error {
            Error::Spec { name: "spec", reason } => Error::folder(&path, reason),
            Error::Spec { name, reason } => Error::folder(&config.path, format!("{name}: {reason}")),
            other => other,
        })?;
        if workflow.types() != size {
            let reason = format!("{} event types, but config.json says {size}", workflow.types());
            return Err(Error::folder(&path, reason));
        }
        workflow.fitness = description.record.as_ref().map(ModelRecord::fitness).unwrap_or_default();
        Ok(workflow)
    }
}
