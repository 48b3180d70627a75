//! The model folder: `config.json`, `model.safetensors`, `vocab.json`, `trace.json` and `split.safetensors`.
//!
//! A folder is written under a temporary name next to its destination and renamed when complete, so that nobody sees a
//! half-written model. Files are not trusted: every size is checked before memory is allocated for it.

use std::collections::BTreeMap;
use std::fs;
use std::hash::Hasher;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trace_core::theory::Fitness;
use trace_core::{DensityModel, EventId, EventName, Vocabulary};
use twox_hash::XxHash3_64;

use crate::cross_fit::HALVES;
use crate::neural::{self, Encoder};
use crate::shards::weight_files;
use crate::split::SPLIT;
use crate::{Error, NgramModel, Split};

/// The version of `trace.json` that this software writes.
pub const RECORD_SCHEMA: &str = "trace.model/1";

/// The content of `trace.json`: what is known of a model besides its weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// The version of this record.
    pub schema: String,
    /// The architecture.
    pub backbone: String,
    /// Cross-entropy on held-out events, and ends of cases where these are predicted, in nats per event.
    #[serde(default)]
    pub held_out_loss: Option<f64>,
    /// Cross-entropy of event frequencies on the same events.
    #[serde(default)]
    pub unigram_loss: Option<f64>,
    /// Entropy of the process that generated the events, where it is known.
    #[serde(default)]
    pub entropy: Option<f64>,
    /// Tokens that are not events: `begin`, `end`, `mask`, `padding`, `unknown`. A model that names an end predicts it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub special_tokens: BTreeMap<String, u32>,
    /// How often each type occurred in training, by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_counts: Option<Vec<u64>>,
    /// The folders of the two halves, where this is a cross-fit and not one model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross_fit: Option<Vec<String>>,
    /// How the model was trained: the settings, and what was measured.
    #[serde(default)]
    pub training: BTreeMap<String, Value>,
}

impl ModelRecord {
    /// The record's losses.
    pub const fn fitness(&self) -> Fitness {
        Fitness { held_out_loss: self.held_out_loss, unigram_loss: self.unigram_loss, entropy: self.entropy }
    }
}

/// A model opened from its folder.
pub struct OpenModel {
    /// The model itself.
    pub model: Box<dyn DensityModel>,
    /// Its event types.
    pub vocabulary: Vocabulary,
    /// Its record.
    pub record: ModelRecord,
    /// The number of parameters.
    pub parameters: usize,
    /// The architecture, from `config.json`.
    pub config: BTreeMap<String, Value>,
    /// A hash of weights and configuration: equal for equal models.
    pub fingerprint: String,
    /// What it was trained on, where the folder says so.
    pub split: Option<Split>,
}

/// A masked model opened from its folder.
#[derive(Debug)]
pub struct OpenEncoder {
    /// The model itself.
    pub encoder: Encoder,
    /// Its event types.
    pub vocabulary: Vocabulary,
    /// Its record; the losses are those of masked events.
    pub record: ModelRecord,
    /// The architecture, from `config.json`.
    pub config: BTreeMap<String, Value>,
    /// A hash of weights and configuration: equal for equal models.
    pub fingerprint: String,
}

const CONFIG: &str = "config.json";
pub(crate) const RECORD: &str = "trace.json";
const VOCABULARY: &str = "vocab.json";
/// The file of weights.
pub const WEIGHTS: &str = "model.safetensors";
/// The text of a simulated workflow, which has no weights.
pub const SPECIFICATION: &str = "workflow.toml";

/// The description of a model folder: the first part that is read, for every kind of model.
#[derive(Clone, Debug)]
pub struct Description {
    /// The folder.
    pub folder: PathBuf,
    /// The architecture, from `config.json`.
    pub values: BTreeMap<String, Value>,
    /// The record of `trace.json`, where there is one.
    pub record: Option<ModelRecord>,
}

impl Description {
    /// Reads `config.json` and `trace.json`.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        if !folder.is_dir() {
            return Err(Error::folder(folder, "not a model folder: no such directory"));
        }
        let record = if folder.join(RECORD).exists() { Some(read_record(&folder.join(RECORD))?) } else { None };
        if record.as_ref().is_some_and(|record| record.cross_fit.is_some()) {
            return Err(Error::folder(folder, "is a cross-fit of two models; expected one model"));
        }
        let values = read_json(&folder.join(CONFIG))?;
        Ok(Self { folder: folder.to_owned(), values, record })
    }

    /// The kind of model, as named by Transformers.
    pub fn model_type(&self) -> &str {
        self.values.get("model_type").and_then(Value::as_str).unwrap_or_default()
    }

    /// The config, with errors that name what is missing.
    pub fn config(&self) -> Config<'_> {
        Config { path: self.folder.join(CONFIG), values: &self.values }
    }

    /// The model with its vocabulary, record and fingerprint, where every token is an event or the end.
    pub fn complete(self, model: Box<dyn DensityModel>, parameters: usize) -> Result<OpenModel, Error> {
        let events: Vec<u32> = (0..model.vocabulary_size() as u32).collect();
        let tokens = model.row_size();
        self.complete_with(model, parameters, &events, tokens)
    }

    /// The same for a model with `tokens` tokens of which `events` are events.
    fn complete_with(
        self,
        model: Box<dyn DensityModel>,
        parameters: usize,
        events: &[u32],
        tokens: usize,
    ) -> Result<OpenModel, Error> {
        let vocabulary = read_vocabulary(&self.folder.join(VOCABULARY), events, tokens)?;
        let backbone = || ModelRecord { backbone: model.backbone().to_owned(), ..ModelRecord::default() };
        let record = self.record.unwrap_or_else(backbone);
        let fingerprint = fingerprint(&self.folder, &record)?;
        let split = Split::open(&self.folder)?;
        Ok(OpenModel { model, vocabulary, record, parameters, config: self.values, fingerprint, split })
    }
}

/// Opens the folder of an n-gram model or a network.
pub fn open(folder: &Path) -> Result<OpenModel, Error> {
    open_described(Description::read(folder)?)
}

/// The same for a folder whose description was read already.
pub fn open_described(description: Description) -> Result<OpenModel, Error> {
    if description.model_type() == NgramModel::MODEL_TYPE {
        let model = NgramModel::open(&description)?;
        let parameters = model.parameters();
        return description.complete(Box::new(model), parameters);
    }
    let network = neural::open(&description)?;
    let (parameters, tokens) = (network.weights().len(), network.config().vocab_size());
    let events = network.event_tokens().to_vec();
    description.complete_with(network, parameters, &events, tokens)
}

/// Whether a folder holds a masked model, which [`open_encoder`] opens and [`open`] rejects.
pub fn is_encoder(folder: &Path) -> Result<bool, Error> {
    Ok(Description::read(folder)?.model_type() == Encoder::MODEL_TYPE)
}

/// Opens the folder of a masked model.
pub fn open_encoder(folder: &Path) -> Result<OpenEncoder, Error> {
    let description = Description::read(folder)?;
    let encoder = Encoder::open(&description)?;
    let tokens = encoder.config().vocab_size;
    let vocabulary = read_vocabulary(&folder.join(VOCABULARY), encoder.event_tokens(), tokens)?;
    let backbone = || ModelRecord { backbone: Encoder::MODEL_TYPE.to_owned(), ..ModelRecord::default() };
    let record = description.record.unwrap_or_else(backbone);
    let fingerprint = fingerprint(folder, &record)?;
    Ok(OpenEncoder { encoder, vocabulary, record, config: description.values, fingerprint })
}

/// XXH3 hash of everything that determines the predictions of a model.
fn fingerprint(folder: &Path, record: &ModelRecord) -> Result<String, Error> {
    let mut hasher = XxHash3_64::new();
    // Of the record: what is an event, and the distribution that replacements are drawn from.
    let decisive = serde_json::to_vec(&(&record.special_tokens, &record.event_counts));
    hasher.write(&decisive.map_err(|error| Error::folder(&folder.join(RECORD), error.to_string()))?);
    let mut paths = vec![folder.join(CONFIG)];
    let specification = folder.join(SPECIFICATION);
    if specification.exists() && !folder.join(WEIGHTS).exists() {
        paths.push(specification);
    } else {
        paths.extend(weight_files(folder)?);
    }
    paths.extend([VOCABULARY].map(|name| folder.join(name)).into_iter().filter(|path| path.exists()));
    for path in paths {
        let mut file = fs::File::open(&path).map_err(Error::io(&path))?;
        let mut piece = vec![0; 1 << 20];
        loop {
            match file.read(&mut piece).map_err(Error::io(&path))? {
                0 => break,
                count => hasher.write(&piece[..count]),
            }
        }
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// `config.json`, with errors that name what is missing.
#[derive(Clone, Debug)]
pub struct Config<'a> {
    /// The file.
    pub path: PathBuf,
    /// Its content.
    pub values: &'a BTreeMap<String, Value>,
}

impl Config<'_> {
    /// A whole number within these bounds.
    pub fn size(&self, name: &str, least: usize, most: usize) -> Result<usize, Error> {
        let value = self.values.get(name);
        value
            .and_then(Value::as_u64)
            .and_then(|size| usize::try_from(size).ok())
            .filter(|size| (least..=most).contains(size))
            .ok_or_else(|| self.fault(name, &format!("a whole number from {least} to {most}"), value))
    }

    /// A finite number that is not negative.
    pub fn number(&self, name: &str) -> Result<f64, Error> {
        let value = self.values.get(name);
        value
            .and_then(Value::as_f64)
            .filter(|number| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| self.fault(name, "a number, 0 or more", value))
    }

    /// A whole number within these bounds, or `usual` if it is absent.
    pub fn size_or(&self, name: &str, least: usize, most: usize, usual: usize) -> Result<usize, Error> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(usual),
            Some(_) => self.size(name, least, most),
        }
    }

    /// A finite number that is not negative, or `usual` if it is absent.
    pub fn number_or(&self, name: &str, usual: f64) -> Result<f64, Error> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(usual),
            Some(_) => self.number(name),
        }
    }

    /// A boolean, or `usual` if it is absent.
    pub fn flag_or(&self, name: &str, usual: bool) -> Result<bool, Error> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(usual),
            value => value.and_then(Value::as_bool).ok_or_else(|| self.fault(name, "true or false", value)),
        }
    }

    /// Rejects a setting that this software does not support: it must be one of these, or absent.
    pub fn only(&self, name: &str, known: &[Value]) -> Result<(), Error> {
        match self.values.get(name) {
            None => Ok(()),
            Some(value) if known.contains(value) => Ok(()),
            value => {
                let known: Vec<String> = known.iter().map(Value::to_string).collect();
                Err(self.fault(
                    name,
                    &format!("{}, the only form that this version computes", known.join(" or ")),
                    value,
                ))
            }
        }
    }

    /// The error for a value that is missing or out of range.
    pub fn fault(&self, name: &str, expected: &str, found: Option<&Value>) -> Error {
        let found = found.map_or_else(|| "nothing".to_owned(), Value::to_string);
        Error::folder(&self.path, format!("{name}: expected {expected}, found {found}"))
    }
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = fs::read(path).map_err(Error::io(path))?;
    serde_json::from_slice(&text).map_err(|error| Error::folder(path, error.to_string()))
}

pub(crate) fn read_record(path: &Path) -> Result<ModelRecord, Error> {
    let record: ModelRecord = read_json(path)?;
    if record.schema != RECORD_SCHEMA {
        return Err(Error::folder(path, format!("expected schema {RECORD_SCHEMA:?}, found {:?}", record.schema)));
    }
    let losses =
        [("held_out_loss", record.held_out_loss), ("unigram_loss", record.unigram_loss), ("entropy", record.entropy)];
    for (name, loss) in losses {
        if loss.is_some_and(|loss| !(loss.is_finite() && loss >= 0.0)) {
            return Err(Error::folder(path, format!("{name}: expected a number of nats, 0 or more")));
        }
    }
    Ok(record)
}

/// Event names from `vocab.json`, or plain ids if it does not exist. `events` are those of the model's `tokens` that
/// are events; the other tokens may have names too.
fn read_vocabulary(path: &Path, events: &[u32], tokens: usize) -> Result<Vocabulary, Error> {
    if !path.exists() {
        return match (0..).zip(events).find(|(id, token)| id != *token) {
            None => Ok(Vocabulary::ids(events.len())),
            Some((id, _)) => Err(Error::folder(
                path,
                format!("missing: without names, special tokens must come after all events, but token {id} is one"),
            )),
        };
    }
    let ids: BTreeMap<String, u64> = read_json(path)?;
    let mut names: Vec<Option<String>> = vec![None; tokens];
    for (name, id) in ids {
        let place = usize::try_from(id).ok().and_then(|id| names.get_mut(id));
        match place {
            Some(place @ None) => *place = Some(name),
            Some(Some(other)) => {
                return Err(Error::folder(path, format!("{name:?} and {other:?} have the same id {id}")));
            }
            None => {
                let size = events.len();
                return Err(Error::folder(path, format!("{name:?} has id {id}, but the model has {size} types")));
            }
        }
    }
    let mut vocabulary = Vocabulary::named();
    for token in events {
        let name = names[*token as usize].take();
        let size = events.len();
        let name = name.ok_or_else(|| Error::folder(path, format!("no event has id {token} of {size}")))?;
        vocabulary.intern(&EventName::Text(name.into()));
    }
    Ok(vocabulary)
}

/// Writes a model folder at `folder`, which must be empty: `weights` writes the weights, and the other files are
/// written from the other arguments.
pub fn save(
    folder: &Path,
    config: &Value,
    record: &ModelRecord,
    vocabulary: &Vocabulary,
    weights: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<(), Error> {
    weights(&folder.join(WEIGHTS))?;
    write_json(&folder.join(CONFIG), config)?;
    write_json(&folder.join(RECORD), record)?;
    if vocabulary.has_names() {
        let ids: BTreeMap<String, usize> =
            (0..vocabulary.len()).map(|id| (vocabulary.name(EventId(id as u32)).to_string(), id)).collect();
        write_json(&folder.join(VOCABULARY), &ids)?;
    }
    Ok(())
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::folder(path, error.to_string()))?;
    fs::write(path, text + "\n").map_err(Error::io(path))
}

/// Writes a folder atomically: `fill` writes into a temporary folder next to it, which is then renamed.
///
/// An existing folder of that name is replaced if [`check_replaceable`] allows it.
pub fn write_folder<E: From<Error>>(folder: &Path, fill: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), E> {
    check_replaceable(folder)?;
    let folder = &resolve(folder)?;
    let parent = folder.parent().unwrap_or(Path::new("/"));
    let temporary = tempfile::Builder::new().prefix(".trace-").tempdir_in(parent).map_err(Error::io(parent))?;
    let (new, old) = (temporary.path().join("new"), temporary.path().join("old"));
    fs::create_dir(&new).map_err(Error::io(&new))?;
    fill(&new)?;
    if folder.exists() {
        fs::rename(folder, &old).map_err(Error::io(folder))?;
    }
    if let Err(error) = fs::rename(&new, folder) {
        if old.exists() {
            fs::rename(&old, folder).map_err(Error::io(folder))?;
        }
        return Err(Error::io(folder)(error).into());
    }
    Ok(())
}

/// The absolute path without links and dots, so that a folder can be renamed to it.
fn resolve(folder: &Path) -> Result<PathBuf, Error> {
    if let Ok(there) = folder.canonicalize() {
        return Ok(there);
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = folder.file_name().ok_or_else(|| Error::folder(folder, "is not the name of a folder"))?;
    fs::create_dir_all(parent).map_err(Error::io(parent))?;
    Ok(parent.canonicalize().map_err(Error::io(parent))?.join(name))
}

/// The files that a folder written by this software may contain.
const KNOWN_FILES: [&str; 11] = [
    CONFIG,
    RECORD,
    VOCABULARY,
    WEIGHTS,
    SPLIT,
    SPECIFICATION,
    "events.jsonl",
    "events.csv",
    "truth.jsonl",
    "truth-pairs.csv",
    "graph.csv",
];

/// Checks that a folder may be written here: it does not exist, is empty, or holds only files of a model or simulation,
/// or the halves of a cross-fit.
pub fn check_replaceable(folder: &Path) -> Result<(), Error> {
    if !folder.exists() {
        return Ok(());
    }
    if !folder.is_dir() {
        return Err(Error::folder(folder, "is a file; expected a folder to write, or a name that is free"));
    }
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    if let (Ok(folder), Ok(here)) = (folder.canonicalize(), here)
        && here.starts_with(&folder)
    {
        return Err(Error::folder(&folder, "is the folder you are in; expected another one to write"));
    }
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let name = entry.map_err(Error::io(folder))?.file_name();
        if HALVES.iter().any(|half| *half == name) {
            check_replaceable(&folder.join(&name))?;
        } else if !KNOWN_FILES.iter().any(|known| *known == name) {
            return Err(Error::folder(
                folder,
                format!(
                    "holds {}, which is not part of a model; expected a folder to write or replace",
                    name.display()
                ),
            ));
        }
    }
    Ok(())
}
