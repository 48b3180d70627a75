//! The n-gram model as a model folder: the tree of contexts and the raw counts.

use std::path::Path;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use trace_core::{DensityModel, Vocabulary};

use super::{NgramCounts, NgramModel};
use crate::Error;
use crate::folder::{self, Description, ModelRecord, RECORD_SCHEMA, WEIGHTS};
use crate::tensors::{self, AnyTensor, Tensor, TensorFile};

impl NgramModel {
    /// `model_type` in `config.json`.
    pub const MODEL_TYPE: &'static str = "trace-ngram";

    /// Writes the model as a model folder.
    pub fn save(&self, folder: &Path, vocabulary: &Vocabulary, training: &Map<String, Value>) -> Result<(), Error> {
        let end = self.end().map(|end| ("end".to_owned(), end.0));
        let config = json!({
            "model_type": Self::MODEL_TYPE,
            "vocab_size": self.counts.size,
            "order": self.order,
        });
        let record = ModelRecord {
            schema: RECORD_SCHEMA.to_owned(),
            backbone: "ngram".to_owned(),
            held_out_loss: self.fitness.held_out_loss,
            unigram_loss: self.fitness.unigram_loss,
            entropy: self.fitness.entropy,
            special_tokens: end.into_iter().collect(),
            event_counts: self.frequencies.as_ref().map(|f| f.iter().map(|count| *count as u64).collect()),
            training: training.clone().into_iter().collect(),
            ..ModelRecord::default()
        };
        folder::save(folder, &config, &record, vocabulary, |path| self.write_weights(path))
    }

    fn write_weights(&self, path: &Path) -> Result<(), Error> {
        let counts = &self.counts;
        let (parents, events): (Vec<u32>, Vec<u32>) = counts.nodes.iter().copied().unzip();
        let mut followers: Vec<(u32, u32, u64)> =
            counts.followers.iter().map(|((node, event), count)| (*node, *event, *count)).collect();
        followers.sort_unstable();
        let nodes: Vec<u32> = followers.iter().map(|f| f.0).collect();
        let words: Vec<u32> = followers.iter().map(|f| f.1).collect();
        let values: Vec<u64> = followers.iter().map(|f| f.2).collect();
        let u32s = |values| AnyTensor::U32(Tensor { shape: vec![<[u32]>::len(values)], values });
        tensors::write(
            path,
            &[
                ("context.parent", u32s(&parents)),
                ("context.event", u32s(&events)),
                ("count.context", u32s(&nodes)),
                ("count.event", u32s(&words)),
                ("count.value", AnyTensor::U64(Tensor { shape: vec![values.len()], values: &values })),
            ],
        )
    }

    pub(crate) fn open(description: &Description) -> Result<Self, Error> {
        let (folder, config, record) = (&description.folder, description.config(), description.record.as_ref());
        let size = config.size("vocab_size", 2, u32::MAX as usize - 1)?;
        let order = config.size("order", 1, 1 << 16)?;
        let end = predicts_end(description, size)?;
        let types = size - usize::from(end);
        let path = folder.join(WEIGHTS);
        let mut file = TensorFile::open(&path)?;
        let fault =
            |tensor: &str, reason: String| Error::Tensor { path: path.clone(), tensor: tensor.to_owned(), reason };

        let contexts = file.length("context.parent")?;
        let parents: Vec<u32> = file.read("context.parent", &[contexts])?;
        let events: Vec<u32> = file.read("context.event", &[contexts])?;
        let mut children = FxHashMap::default();
        for (node, (parent, event)) in parents.iter().zip(&events).enumerate().skip(1) {
            if *parent as usize >= node {
                return Err(fault("context.parent", format!("context {node} comes before its parent {parent}")));
            }
            if *event as usize > size {
                return Err(fault("context.event", format!("event {event} of {size}")));
            }
            if children.insert((*parent, *event), node as u32).is_some() {
                return Err(fault("context.event", format!("context {node} stands there twice")));
            }
        }
        if (parents.first(), events.first()) != (Some(&0), Some(&0)) {
            return Err(fault("context.parent", "expected the empty context first".to_owned()));
        }

        let entries = file.length("count.value")?;
        let nodes: Vec<u32> = file.read("count.context", &[entries])?;
        let words: Vec<u32> = file.read("count.event", &[entries])?;
        let values: Vec<u64> = file.read("count.value", &[entries])?;
        let mut followers = FxHashMap::default();
        for ((node, word), value) in nodes.into_iter().zip(words).zip(values) {
            if node as usize >= contexts || word as usize >= size || value == 0 {
                return Err(fault("count.value", format!("count {value} of event {word} after context {node}")));
            }
            followers.insert((node, word), value);
        }
        let counts =
            NgramCounts { order, size, end, nodes: parents.into_iter().zip(events).collect(), children, followers };
        let frequencies = record.and_then(|record| record.event_counts.as_ref());
        if let Some(frequencies) = frequencies.filter(|counts| counts.len() != types) {
            return Err(Error::folder(
                &folder.join("trace.json"),
                format!("event_counts: expected {types} numbers, found {}", frequencies.len()),
            ));
        }
        let mut model = Self::new(counts, order);
        let frequencies = frequencies.map(|counts| counts.iter().map(|count| *count as f64).collect());
        model.set_record(frequencies, record.map(ModelRecord::fitness).unwrap_or_default());
        Ok(model)
    }
}

/// Whether the last of `size` outcomes is the end of a case.
fn predicts_end(description: &Description, size: usize) -> Result<bool, Error> {
    let fault = |reason: String| Err(Error::folder(&description.folder.join("trace.json"), reason));
    let mut end = false;
    for (name, token) in description.record.iter().flat_map(|record| &record.special_tokens) {
        if name != "end" {
            return fault(format!("special_tokens: an n-gram model has an end alone, found {name:?}"));
        }
        if *token as usize + 1 != size || size < 3 {
            return fault(format!("special_tokens: end is token {token}, expected the last of {size} after 2 events"));
        }
        end = true;
    }
    Ok(end)
}
