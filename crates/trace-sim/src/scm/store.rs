//! The process as a model folder.

use std::path::Path;

use serde_json::json;
use trace_core::Vocabulary;
use trace_models::folder::{Description, ModelRecord, RECORD_SCHEMA, WEIGHTS, save};
use trace_models::tensors::{self, AnyTensor, Tensor, TensorFile};

use super::process::{Layers, SparseRows};
use super::{EMBEDDING, HIDDEN, Process};
use crate::Error;

impl Process {
    /// `model_type` in `config.json`.
    pub const MODEL_TYPE: &'static str = "trace-scm";

    /// Writes the process as a model folder.
    pub fn save(&self, folder: &Path, training: &serde_json::Map<String, serde_json::Value>) -> Result<(), Error> {
        let config = json!({
            "model_type": Self::MODEL_TYPE,
            "vocab_size": self.size,
            "memory": self.memory,
            "decay": self.decay,
            "null": self.layers.is_none(),
        });
        let record = ModelRecord {
            schema: RECORD_SCHEMA.to_owned(),
            backbone: "scm".to_owned(),
            held_out_loss: self.fitness.held_out_loss,
            unigram_loss: self.fitness.unigram_loss,
            entropy: self.fitness.entropy,
            special_tokens: std::collections::BTreeMap::new(),
            event_counts: None,
            training: training.clone().into_iter().collect(),
            ..ModelRecord::default()
        };
        save(folder, &config, &record, &Vocabulary::ids(self.size), |path| self.write_weights(path))
    }

    fn write_weights(&self, path: &Path) -> Result<(), Error> {
        let single = |values: &[f64]| values.iter().map(|value| *value as f32).collect::<Vec<f32>>();
        let bias = single(&self.bias);
        let mut tensors = vec![("bias", AnyTensor::F32(Tensor { shape: vec![self.size], values: &bias }))];
        let dense = self
            .layers
            .as_ref()
            .map(|layers| (single(&layers.embedding), single(&layers.input), single(&layers.output)));
        if let (Some(layers), Some((embedding, input, output))) = (&self.layers, &dense) {
            let sparse = &layers.interaction;
            let f32s = |shape: Vec<usize>, values| AnyTensor::F32(Tensor { shape, values });
            tensors.extend([
                ("embedding.weight", f32s(vec![self.size, EMBEDDING], embedding)),
                ("hidden.weight", f32s(vec![EMBEDDING * self.memory, HIDDEN], input)),
                ("output.weight", f32s(vec![HIDDEN, self.size], output)),
                ("interaction.values", f32s(vec![sparse.values.len()], &sparse.values)),
                (
                    "interaction.columns",
                    AnyTensor::U32(Tensor { shape: vec![sparse.columns.len()], values: &sparse.columns }),
                ),
                (
                    "interaction.offsets",
                    AnyTensor::U64(Tensor { shape: vec![sparse.offsets.len()], values: &sparse.offsets }),
                ),
            ]);
        }
        tensors::write(path, &tensors)
    }

    pub(crate) fn open(description: &Description) -> Result<Self, Error> {
        let config = description.config();
        let size = config.size("vocab_size", 2, u32::MAX as usize)?;
        let memory = config.size("memory", 1, 1 << 20)?;
        let decay = config.number("decay")?;
        let path = description.folder.join(WEIGHTS);
        let mut file = TensorFile::open(&path)?;
        let mut double = |name: &str, shape: &[usize]| -> Result<Vec<f64>, Error> {
            Ok(file.read::<f32>(name, shape)?.into_iter().map(f64::from).collect())
        };
        let mut process = Self { bias: double("bias", &[size])?, ..Self::null(0, memory, decay) };
        process.size = size;
        if config.values.get("null") != Some(&json!(true)) {
            let embedding = double("embedding.weight", &[size, EMBEDDING])?;
            let input = double("hidden.weight", &[EMBEDDING * memory, HIDDEN])?;
            let output = double("output.weight", &[HIDDEN, size])?;
            let interaction = read_sparse(&mut file, &path, size)?;
            process.layers = Some(Layers { interaction, embedding, input, output });
        }
        process.fitness = description.record.as_ref().map(ModelRecord::fitness).unwrap_or_default();
        Ok(process)
    }
}

fn read_sparse(file: &mut TensorFile, path: &Path, size: usize) -> Result<SparseRows, Error> {
    let fault =
        |tensor: &str, reason: String| Error::Tensor { path: path.to_owned(), tensor: tensor.to_owned(), reason };
    let entries = file.length("interaction.columns")?;
    let rows = SparseRows {
        offsets: file.read("interaction.offsets", &[size + 1])?,
        columns: file.read("interaction.columns", &[entries])?,
        values: file.read("interaction.values", &[entries])?,
    };
    let ends = (rows.offsets.first().copied(), rows.offsets.last().copied());
    if ends != (Some(0), Some(entries as u64)) || !rows.offsets.is_sorted() {
        return Err(fault("interaction.offsets", format!("expected ascending numbers from 0 to {entries}")));
    }
    if let Some(column) = rows.columns.iter().find(|column| **column as usize >= size) {
        return Err(fault("interaction.columns", format!("column {column} of {size}")));
    }
    Ok(rows)
}
