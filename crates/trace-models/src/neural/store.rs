//! Networks as model folders, readable and writable by Hugging Face Transformers too.
//!
//! Files are not trusted: the numbers of the config have bounds, every tensor that it needs must be in the headers of
//! the files with the right shape before memory is allocated, and an unknown tensor is an error, because it would mean
//! another computation.

use std::path::Path;
use std::sync::Mutex;

use serde_json::{Map, Value};
use trace_core::theory::Fitness;
use trace_core::{DensityModel, Vocabulary};

use super::architecture::Network;
use super::bert;
use super::layout::Layout;
use super::logits::Logits;
use super::model::{ModelInfo, NeuralModel};
use super::network::{MASKED, NetworkConfig, with_network};
use super::saliency::InputGradients;
use crate::Error;
use crate::folder::{self, Description, ModelRecord, RECORD_SCHEMA};
use crate::shards::TensorSet;
use crate::tensors::{self, AnyTensor, Tensor};

/// A network that was opened as a density model.
pub trait NeuralNetwork: DensityModel + InputGradients {
    /// Its configuration.
    fn config(&self) -> NetworkConfig;
    /// The place of each tensor in the weights.
    fn layout(&self) -> &Layout;
    /// All weights. Rows of special tokens come after those of events, that of a predicted end first.
    fn weights(&self) -> &[f32];
    /// The token of each event, as numbered in the folder.
    fn event_tokens(&self) -> &[u32];
    /// The begin token, where there is one; its number comes after those of the events.
    fn begin(&self) -> Option<u32>;
    /// Logits over all tokens after each token of each sequence.
    fn logits(&self, sequences: &[Vec<u32>]) -> Logits;
}

/// Opens the network in a folder.
pub fn open_network(folder: &Path) -> Result<Box<dyn NeuralNetwork>, Error> {
    open(&Description::read(folder)?)
}

/// Opens the network in a folder whose description was read already.
pub(crate) fn open(description: &Description) -> Result<Box<dyn NeuralNetwork>, Error> {
    let (folder, config, record) = (description.folder.as_path(), &description.config(), description.record.as_ref());
    NetworkConfig::check_known(config)?;
    let mut set = TensorSet::open(folder)?;
    let shape = NetworkConfig::read(config, |name| set.contains(name))?;
    with_network!(&shape, network => {
        let weights = read_weights(network.layout(), &mut set)?;
        let specials = special_tokens(folder, record, shape.vocab_size())?;
        let info = info(&shape, folder, &specials, record)?;
        let mut model = NeuralModel { network, weights, info, workspaces: Mutex::default() };
        model.reorder(&specials.order);
        Ok(Box::new(model))
    }, _encoder => Err(Error::folder(&config.path, MASKED)))
}

/// A network whose weights do not come from a folder.
pub(crate) fn bare<A: Network + 'static>(
    config: &NetworkConfig,
    network: A,
    weights: Vec<f32>,
) -> Box<dyn NeuralNetwork> {
    Box::new(NeuralModel { network, weights, info: bare_info(config), workspaces: Mutex::default() })
}

/// The info of a network of which every token is an event and nothing else is known.
pub(super) fn bare_info(config: &NetworkConfig) -> ModelInfo {
    ModelInfo {
        config: config.clone(),
        types: config.vocab_size(),
        end: false,
        event_tokens: (0..config.vocab_size() as u32).collect(),
        begin: None,
        trained_length: config.trained_length(),
        frequencies: None,
        fitness: Fitness::default(),
        ram_limit: None,
    }
}

/// Tokens in the order of the model: events, then the end of a case where it is predicted, then other special tokens.
pub(super) struct Specials {
    order: Vec<u32>,
    begin: Option<u32>,
    end: bool,
    types: usize,
}

impl Specials {
    /// The token of each event, as numbered in the folder.
    pub(super) fn event_tokens(&self) -> &[u32] {
        &self.order[..self.types]
    }
}

pub(super) fn special_tokens(folder: &Path, record: Option<&ModelRecord>, tokens: usize) -> Result<Specials, Error> {
    let path = folder.join("trace.json");
    let mut special = vec![false; tokens];
    let (mut begin, mut end) = (None, None);
    for (name, token) in record.iter().flat_map(|record| &record.special_tokens) {
        if !["begin", "end", "mask", "padding", "unknown"].contains(&name.as_str()) {
            let reason = format!("special_tokens: expected begin, end, mask, padding or unknown, found {name:?}");
            return Err(Error::folder(&path, reason));
        }
        let Some(flag) = special.get_mut(*token as usize) else {
            let reason = format!("special_tokens: {name} is token {token}, but the model has {tokens}");
            return Err(Error::folder(&path, reason));
        };
        *flag = true;
        match name.as_str() {
            "begin" => begin = Some(*token),
            "end" => end = Some(*token),
            _ => {}
        }
    }
    let mut order: Vec<u32> = (0..tokens as u32).collect();
    order.sort_by_key(|token| (special[*token as usize], Some(*token) != end));
    let types = special.iter().filter(|special| !**special).count();
    if types < 2 {
        return Err(Error::folder(&path, format!("{types} of {tokens} tokens are events; expected at least 2")));
    }
    let begin = begin.and_then(|begin| order.iter().position(|token| *token == begin)).map(|at| at as u32);
    Ok(Specials { order, begin, end: end.is_some(), types })
}

/// How often each type occurred in training, if the record contains it.
pub(super) fn check_counts<'r>(
    folder: &Path,
    specials: &Specials,
    record: Option<&'r ModelRecord>,
) -> Result<Option<&'r Vec<u64>>, Error> {
    let counts = record.and_then(|record| record.event_counts.as_ref());
    if let Some(counts) = counts.filter(|counts| counts.len() != specials.types) {
        let reason = format!("event_counts: expected {} numbers, found {}", specials.types, counts.len());
        return Err(Error::folder(&folder.join("trace.json"), reason));
    }
    Ok(counts)
}

fn info(
    config: &NetworkConfig,
    folder: &Path,
    specials: &Specials,
    record: Option<&ModelRecord>,
) -> Result<ModelInfo, Error> {
    let counts = check_counts(folder, specials, record)?;
    Ok(ModelInfo {
        config: config.clone(),
        types: specials.types,
        end: specials.end,
        event_tokens: specials.event_tokens().to_vec(),
        begin: specials.begin,
        trained_length: config.trained_length(),
        frequencies: counts.map(|counts| counts.iter().map(|count| *count as f64).collect()),
        fitness: record.map(ModelRecord::fitness).unwrap_or_default(),
        ram_limit: None,
    })
}

/// Tensors in files of known architectures that no computation needs.
fn is_idle(name: &str, layout: &Layout) -> bool {
    let tied = name == "lm_head.weight" && !layout.entries().iter().any(|entry| entry.name == name);
    tied || name.ends_with(".rotary_emb.inv_freq")
        || name.ends_with(".attn.bias")
        || name.ends_with(".attn.masked_bias")
        || bert::is_idle(name)
}

pub(super) fn read_weights(layout: &Layout, set: &mut TensorSet) -> Result<Vec<f32>, Error> {
    for entry in layout.entries() {
        set.check_floats(&entry.name, &entry.shape)?;
    }
    let unknown =
        set.names().find(|name| !is_idle(name, layout) && !layout.entries().iter().any(|entry| entry.name == *name));
    if let Some(name) = unknown.map(str::to_owned) {
        return Err(set.unexpected(&name));
    }
    let mut weights = vec![0.0; layout.len()];
    for entry in layout.entries() {
        set.read_floats(&entry.name, &entry.shape, &mut weights[entry.range()])?;
    }
    Ok(weights)
}

impl<A: Network> NeuralModel<A> {
    /// Reorders the rows of the tables by this order of tokens.
    fn reorder(&mut self, order: &[u32]) {
        if order.iter().enumerate().all(|(at, token)| at == *token as usize) {
            return;
        }
        let width = self.network.hidden_size();
        let mut tables = vec![self.network.embedding(), self.network.head()];
        tables.dedup();
        for table in tables {
            let old = self.weights[table.clone()].to_vec();
            let rows = self.weights[table].chunks_exact_mut(width);
            for (row, token) in rows.zip(order) {
                row.copy_from_slice(&old[*token as usize * width..][..width]);
            }
        }
    }
}

impl<A: Network> NeuralNetwork for NeuralModel<A> {
    fn config(&self) -> NetworkConfig {
        self.info.config.clone()
    }

    fn layout(&self) -> &Layout {
        self.network.layout()
    }

    fn weights(&self) -> &[f32] {
        &self.weights
    }

    fn event_tokens(&self) -> &[u32] {
        &self.info.event_tokens
    }

    fn begin(&self) -> Option<u32> {
        self.info.begin
    }

    fn logits(&self, sequences: &[Vec<u32>]) -> Logits {
        self.logits_of(sequences)
    }
}

impl NetworkConfig {
    /// Writes a network as a model folder. The special tokens are those of the record.
    pub fn save(
        &self,
        folder: &Path,
        weights: &[f32],
        vocabulary: &Vocabulary,
        record: ModelRecord,
    ) -> Result<(), Error> {
        let [begin, end] = ["begin", "end"].map(|name| record.special_tokens.get(name).copied());
        let record = ModelRecord { schema: RECORD_SCHEMA.to_owned(), backbone: self.backbone().to_owned(), ..record };
        let mut config: Map<String, Value> = self.describe();
        config.insert("bos_token_id".to_owned(), begin.into());
        config.insert("eos_token_id".to_owned(), end.into());
        config.insert("pad_token_id".to_owned(), Value::Null);
        config.insert("dtype".to_owned(), "float32".into());
        config.insert("torch_dtype".to_owned(), "float32".into());
        let layout = self.layout();
        let tensors: Vec<(&str, AnyTensor<'_>)> = layout
            .entries()
            .iter()
            .map(|entry| {
                let values = &weights[entry.range()];
                (entry.name.as_str(), AnyTensor::F32(Tensor { shape: entry.shape.clone(), values }))
            })
            .collect();
        folder::save(folder, &Value::Object(config), &record, vocabulary, |path| tensors::write(path, &tensors))
    }
}
