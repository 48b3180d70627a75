//! Networks as model folders that Hugging Face Transformers reads too, and the other way round.
//!
//! Nothing is believed: the config's numbers have bounds, every tensor that it asks for must stand in the files'
//! headers with its shape before memory is set aside, and a tensor that this software has no use for is an error,
//! because it would mean another computation.

use std::path::Path;
use std::sync::Mutex;

use serde_json::{Map, Value};
use trace_core::theory::Fitness;
use trace_core::{DensityModel, Vocabulary};

use super::architecture::Architecture;
use super::bert;
use super::layout::Layout;
use super::logits::Logits;
use super::model::{Facts, NeuralModel};
use super::network::{MASKED, NetworkConfig, with_network};
use crate::Error;
use crate::folder::{self, Config, ModelRecord, RECORD_SCHEMA};
use crate::shards::TensorSet;
use crate::tensors::{self, AnyTensor, Tensor};

/// A network that is opened as a density model.
pub trait NeuralNetwork: DensityModel {
    /// Its shape.
    fn config(&self) -> NetworkConfig;
    /// Where each tensor lies in the weights.
    fn layout(&self) -> &Layout;
    /// All weights. Rows of special tokens come after those of events.
    fn weights(&self) -> &[f32];
    /// The token of each event in the folder's own counting.
    fn event_tokens(&self) -> &[u32];
    /// The begin token, where there is one, counted after the events.
    fn begin(&self) -> Option<u32>;
    /// Logits over all tokens after each token of each sequence.
    fn logits(&self, sequences: &[Vec<u32>]) -> Logits;
}

/// Opens the network in a folder.
pub fn open_network(folder: &Path) -> Result<Box<dyn NeuralNetwork>, Error> {
    let (config, record) = folder::read_description(folder)?;
    open(folder, &Config { path: folder.join(folder::CONFIG), values: &config }, record.as_ref())
}

/// Opens the network in a folder whose config and record were read.
pub(crate) fn open(
    folder: &Path,
    config: &Config<'_>,
    record: Option<&ModelRecord>,
) -> Result<Box<dyn NeuralNetwork>, Error> {
    NetworkConfig::check_known(config)?;
    let mut set = TensorSet::open(folder)?;
    let shape = NetworkConfig::read(config, |name| set.contains(name))?;
    with_network!(&shape, network => {
        let weights = read_weights(network.layout(), &mut set)?;
        let specials = special_tokens(folder, record, shape.tokens())?;
        let facts = facts(&shape, folder, &specials, record)?;
        let mut model = NeuralModel { network, weights, facts, spaces: Mutex::default() };
        model.reorder(&specials.order);
        Ok(Box::new(model))
    }, _encoder => Err(Error::folder(&config.path, MASKED)))
}

/// A network with weights that come from no folder.
pub(crate) fn bare<A: Architecture + 'static>(
    config: &NetworkConfig,
    network: A,
    weights: Vec<f32>,
) -> Box<dyn NeuralNetwork> {
    Box::new(NeuralModel { network, weights, facts: bare_facts(config), spaces: Mutex::default() })
}

/// Every token is an event, and nothing else is known.
pub(super) fn bare_facts(config: &NetworkConfig) -> Facts {
    Facts {
        config: config.clone(),
        types: config.tokens(),
        event_tokens: (0..config.tokens() as u32).collect(),
        begin: None,
        trained_length: config.trained_length(),
        frequencies: None,
        fitness: Fitness::default(),
        max_memory: None,
    }
}

/// Tokens in the order in which the model has them: events, then special tokens.
pub(super) struct Specials {
    order: Vec<u32>,
    begin: Option<u32>,
    types: usize,
}

impl Specials {
    /// The token of each event in the folder's own counting.
    pub(super) fn event_tokens(&self) -> &[u32] {
        &self.order[..self.types]
    }
}

pub(super) fn special_tokens(folder: &Path, record: Option<&ModelRecord>, tokens: usize) -> Result<Specials, Error> {
    let path = folder.join("trace.json");
    let mut special = vec![false; tokens];
    let mut begin = None;
    for (name, token) in record.iter().flat_map(|record| &record.special_tokens) {
        if !["begin", "mask", "padding", "unknown"].contains(&name.as_str()) {
            let reason = format!("special_tokens: expected begin, mask, padding or unknown, found {name:?}");
            return Err(Error::folder(&path, reason));
        }
        let Some(flag) = special.get_mut(*token as usize) else {
            let reason = format!("special_tokens: {name} is token {token}, but the model has {tokens}");
            return Err(Error::folder(&path, reason));
        };
        *flag = true;
        if name == "begin" {
            begin = Some(*token);
        }
    }
    let mut order: Vec<u32> = (0..tokens as u32).collect();
    order.sort_by_key(|token| special[*token as usize]);
    let types = special.iter().filter(|special| !**special).count();
    if types < 2 {
        return Err(Error::folder(&path, format!("{types} of {tokens} tokens are events; expected at least 2")));
    }
    let begin = begin.and_then(|begin| order.iter().position(|token| *token == begin)).map(|at| at as u32);
    Ok(Specials { order, begin, types })
}

/// How often each type occurred in training, if the record says so.
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

fn facts(
    config: &NetworkConfig,
    folder: &Path,
    specials: &Specials,
    record: Option<&ModelRecord>,
) -> Result<Facts, Error> {
    let counts = check_counts(folder, specials, record)?;
    Ok(Facts {
        config: config.clone(),
        types: specials.types,
        event_tokens: specials.event_tokens().to_vec(),
        begin: specials.begin,
        trained_length: config.trained_length(),
        frequencies: counts.map(|counts| counts.iter().map(|count| *count as f64).collect()),
        fitness: record.map(ModelRecord::fitness).unwrap_or_default(),
        max_memory: None,
    })
}

/// Tensors that files of known architectures carry and no computation needs.
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

impl<A: Architecture> NeuralModel<A> {
    /// Puts the rows of the tables into this order of tokens.
    fn reorder(&mut self, order: &[u32]) {
        if order.iter().enumerate().all(|(at, token)| at == *token as usize) {
            return;
        }
        let width = self.network.width();
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

impl<A: Architecture> NeuralNetwork for NeuralModel<A> {
    fn config(&self) -> NetworkConfig {
        self.facts.config.clone()
    }

    fn layout(&self) -> &Layout {
        self.network.layout()
    }

    fn weights(&self) -> &[f32] {
        &self.weights
    }

    fn event_tokens(&self) -> &[u32] {
        &self.facts.event_tokens
    }

    fn begin(&self) -> Option<u32> {
        self.facts.begin
    }

    fn logits(&self, sequences: &[Vec<u32>]) -> Logits {
        self.logits_of(sequences)
    }
}

impl NetworkConfig {
    /// Writes a network as a model folder. Special tokens are those of the record.
    pub fn save(
        &self,
        folder: &Path,
        weights: &[f32],
        vocabulary: &Vocabulary,
        record: ModelRecord,
    ) -> Result<(), Error> {
        let begin = record.special_tokens.get("begin").copied();
        let record = ModelRecord { schema: RECORD_SCHEMA.to_owned(), backbone: self.backbone().to_owned(), ..record };
        let mut config: Map<String, Value> = self.describe();
        config.insert("bos_token_id".to_owned(), begin.into());
        config.insert("eos_token_id".to_owned(), Value::Null);
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
