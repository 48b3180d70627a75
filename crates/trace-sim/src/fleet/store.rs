//! The fleet as a model folder.

use std::path::Path;

use serde_json::json;
use trace_core::Vocabulary;
use trace_models::folder::{Description, ModelRecord, RECORD_SCHEMA, WEIGHTS, save};
use trace_models::tensors::{self, AnyTensor, Tensor, TensorFile};

use super::Fleet;
use super::process::{InvalidTensor, Rules};
use crate::Error;

impl Fleet {
    /// `model_type` in `config.json`.
    pub const MODEL_TYPE: &'static str = "trace-fleet";

    /// Writes the fleet as a model folder.
    pub fn save(
        &self,
        folder: &Path,
        vocabulary: &Vocabulary,
        training: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<(), Error> {
        let config = json!({
            "model_type": Self::MODEL_TYPE,
            "vocab_size": self.background.len(),
            "memory": self.memory(),
        });
        let record = ModelRecord {
            schema: RECORD_SCHEMA.to_owned(),
            backbone: "fleet".to_owned(),
            held_out_loss: self.fitness.held_out_loss,
            unigram_loss: self.fitness.unigram_loss,
            entropy: self.fitness.entropy,
            special_tokens: std::collections::BTreeMap::new(),
            event_counts: None,
            training: training.clone().into_iter().collect(),
            ..ModelRecord::default()
        };
        save(folder, &config, &record, vocabulary, |path| self.write_weights(path))
    }

    fn write_weights(&self, path: &Path) -> Result<(), Error> {
        let kernel: Vec<f32> = self.kernel.iter().map(|value| *value as f32).collect();
        let rules = &self.rules;
        let f32s = |values| AnyTensor::F32(Tensor { shape: vec![<[f32]>::len(values)], values });
        tensors::write(
            path,
            &[
                ("background", f32s(&self.shares)),
                ("kernel", f32s(&kernel)),
                ("rule.offsets", AnyTensor::U64(Tensor { shape: vec![rules.offsets.len()], values: &rules.offsets })),
                ("rule.effects", AnyTensor::U32(Tensor { shape: vec![rules.effects.len()], values: &rules.effects })),
                ("rule.shares", f32s(&rules.shares)),
            ],
        )
    }

    pub(crate) fn open(description: &Description) -> Result<Self, Error> {
        let config = description.config();
        let size = config.size("vocab_size", 2, u32::MAX as usize)?;
        let memory = config.size("memory", 1, 4096)?;
        let path = description.folder.join(WEIGHTS);
        let mut file = TensorFile::open(&path)?;
        let fault =
            |InvalidTensor { tensor, reason }| Error::Tensor { path: path.clone(), tensor: tensor.to_owned(), reason };
        let background = file.read("background", &[size])?;
        let kernel = file.read("kernel", &[memory])?;
        let count = file.length("rule.effects")?;
        let rules = Rules {
            offsets: file.read("rule.offsets", &[size + 1])?,
            effects: file.read("rule.effects", &[count])?,
            shares: file.read("rule.shares", &[count])?,
        };
        let ends = (rules.offsets.first().copied(), rules.offsets.last().copied());
        if ends != (Some(0), Some(count as u64)) || !rules.offsets.is_sorted() {
            let reason = format!("expected ascending numbers from 0 to {count}");
            return Err(fault(InvalidTensor { tensor: "rule.offsets", reason }));
        }
        if let Some(effect) = rules.effects.iter().find(|effect| **effect as usize >= size) {
            return Err(fault(InvalidTensor {
                tensor: "rule.effects",
                reason: format!("effect {effect} of {size} types"),
            }));
        }
        let mut fleet = Self::new(background, kernel, rules).map_err(fault)?;
        fleet.fitness = description.record.as_ref().map(ModelRecord::fitness).unwrap_or_default();
        Ok(fleet)
    }
}
