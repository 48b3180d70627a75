//! The model folder: `config.json`, `model.safetensors`, `vocab.json` and `trace.json`.
//!
//! A folder is written under a temporary name beside its place and renamed when complete, so that no half-written
//! model is ever seen. Reading trusts nothing: every size is checked before memory is set aside for it.

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

use crate::neural::{self, Encoder};
use crate::shards::weight_files;
use crate::{Error, Fleet, NgramModel, Process};

/// The version of `trace.json` that this software writes.
pub const RECORD_SCHEMA: &str = "trace.model/1";

/// What `trace.json` says of a model beyond its weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// The version of this record.
    pub schema: String,
    /// The architecture.
    pub backbone: String,
    /// Cross-entropy on held-out events, in nats per event.
    #[serde(default)]
    pub held_out_loss: Option<f64>,
    /// Cross-entropy of event frequencies on the same events.
    #[serde(default)]
    pub unigram_loss: Option<f64>,
    /// Entropy of the process that made the events, where it is known.
    #[serde(default)]
    pub entropy: Option<f64>,
    /// Tokens that are not events: `begin`, `mask`, `padding`, `unknown`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub special_tokens: BTreeMap<String, u32>,
    /// How often each type occurred in training, by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_counts: Option<Vec<u64>>,
    /// How the model was made: the command's settings and what it measured.
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
    /// How many numbers it is made of.
    pub parameters: usize,
    /// Facts of the architecture, from `config.json`.
    pub config: BTreeMap<String, Value>,
    /// A hash of weights and configuration: equal for equal models.
    pub fingerprint: String,
}

/// A masked model opened from its folder.
#[derive(Debug)]
pub struct OpenEncoder {
    /// The model itself.
    pub encoder: Encoder,
    /// Its event types.
    pub vocabulary: Vocabulary,
    /// Its record; the losses are those of hidden events.
    pub record: ModelRecord,
    /// Facts of the architecture, from `config.json`.
    pub config: BTreeMap<String, Value>,
    /// A hash of weights and configuration: equal for equal models.
    pub fingerprint: String,
}

pub(crate) const CONFIG: &str = "config.json";
const RECORD: &str = "trace.json";
const VOCABULARY: &str = "vocab.json";
pub(crate) const WEIGHTS: &str = "model.safetensors";

/// Opens a model folder of any kind that this software knows.
pub fn open(folder: &Path) -> Result<OpenModel, Error> {
    let (config, record) = read_description(folder)?;
    let kind = config.get("model_type").and_then(Value::as_str).unwrap_or_default();
    // The token of each event, where there are special ones besides.
    let mut events = None;
    let opened = match kind {
        Process::MODEL_TYPE => {
            let process =
                Process::open(folder, &Config { path: folder.join(CONFIG), values: &config }, record.as_ref())?;
            let parameters = process.parameters();
            (Box::new(process) as Box<dyn DensityModel>, parameters)
        }
        Fleet::MODEL_TYPE => {
            let fleet = Fleet::open(folder, &Config { path: folder.join(CONFIG), values: &config }, record.as_ref())?;
            let parameters = fleet.parameters();
            (Box::new(fleet) as Box<dyn DensityModel>, parameters)
        }
        NgramModel::MODEL_TYPE => {
            let model =
                NgramModel::open(folder, &Config { path: folder.join(CONFIG), values: &config }, record.as_ref())?;
            let parameters = model.parameters();
            (Box::new(model) as Box<dyn DensityModel>, parameters)
        }
        _ => {
            let config = Config { path: folder.join(CONFIG), values: &config };
            let network = neural::open(folder, &config, record.as_ref())?;
            let parameters = network.weights().len();
            events = Some((network.event_tokens().to_vec(), network.config().tokens()));
            (network as Box<dyn DensityModel>, parameters)
        }
    };
    let (model, parameters) = opened;
    let size = model.vocabulary_size();
    let (events, tokens) = events.unwrap_or_else(|| ((0..size as u32).collect(), size));
    let vocabulary = read_vocabulary(&folder.join(VOCABULARY), &events, tokens)?;
    let record =
        record.unwrap_or_else(|| ModelRecord { backbone: model.backbone().to_owned(), ..ModelRecord::default() });
    let fingerprint = fingerprint(folder, &record)?;
    Ok(OpenModel { model, vocabulary, record, parameters, config, fingerprint })
}

/// Whether a folder holds a masked model, which [`open_encoder`] opens and [`open`] refuses.
pub fn is_encoder(folder: &Path) -> Result<bool, Error> {
    let (config, _) = read_description(folder)?;
    Ok(config.get("model_type").and_then(Value::as_str) == Some(Encoder::MODEL_TYPE))
}

/// Opens the folder of a masked model.
pub fn open_encoder(folder: &Path) -> Result<OpenEncoder, Error> {
    let (config, record) = read_description(folder)?;
    let place = Config { path: folder.join(CONFIG), values: &config };
    let encoder = Encoder::open(folder, &place, record.as_ref())?;
    let tokens = encoder.config().tokens;
    let vocabulary = read_vocabulary(&folder.join(VOCABULARY), encoder.event_tokens(), tokens)?;
    let record =
        record.unwrap_or_else(|| ModelRecord { backbone: Encoder::MODEL_TYPE.to_owned(), ..ModelRecord::default() });
    let fingerprint = fingerprint(folder, &record)?;
    Ok(OpenEncoder { encoder, vocabulary, record, config, fingerprint })
}

/// What `config.json` holds.
type ConfigValues = BTreeMap<String, Value>;

/// A folder's config, and its record if it has one.
pub(crate) fn read_description(folder: &Path) -> Result<(ConfigValues, Option<ModelRecord>), Error> {
    if !folder.is_dir() {
        return Err(Error::folder(folder, "not a model folder: no such directory"));
    }
    let config = read_json(&folder.join(CONFIG))?;
    let record = if folder.join(RECORD).exists() { Some(read_record(&folder.join(RECORD))?) } else { None };
    Ok((config, record))
}

/// XXH3 over everything that decides what a model answers.
fn fingerprint(folder: &Path, record: &ModelRecord) -> Result<String, Error> {
    let mut hasher = XxHash3_64::new();
    // Of the record, what decides what an event is and what replacements are drawn from.
    let decisive = serde_json::to_vec(&(&record.special_tokens, &record.event_counts));
    hasher.write(&decisive.map_err(|error| Error::folder(&folder.join(RECORD), error.to_string()))?);
    let mut paths = vec![folder.join(CONFIG)];
    paths.extend(weight_files(folder)?);
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

/// `config.json` with errors that name what is missing.
pub(crate) struct Config<'a> {
    pub(crate) path: PathBuf,
    pub(crate) values: &'a BTreeMap<String, Value>,
}

impl Config<'_> {
    /// A whole number within these bounds.
    pub(crate) fn size(&self, name: &str, least: usize, most: usize) -> Result<usize, Error> {
        let value = self.values.get(name);
        value
            .and_then(Value::as_u64)
            .and_then(|size| usize::try_from(size).ok())
            .filter(|size| (least..=most).contains(size))
            .ok_or_else(|| self.fault(name, &format!("a whole number from {least} to {most}"), value))
    }

    /// A finite number that is not negative.
    pub(crate) fn number(&self, name: &str) -> Result<f64, Error> {
        let value = self.values.get(name);
        value
            .and_then(Value::as_f64)
            .filter(|number| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| self.fault(name, "a number, 0 or more", value))
    }

    /// A whole number within these bounds, or this one where there is none.
    pub(crate) fn size_or(&self, name: &str, least: usize, most: usize, usual: usize) -> Result<usize, Error> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(usual),
            Some(_) => self.size(name, least, most),
        }
    }

    /// A finite number that is not negative, or this one where there is none.
    pub(crate) fn number_or(&self, name: &str, usual: f64) -> Result<f64, Error> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(usual),
            Some(_) => self.number(name),
        }
    }

    /// Yes or no, or this where it does not say.
    pub(crate) fn flag_or(&self, name: &str, usual: bool) -> Result<bool, Error> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(usual),
            value => value.and_then(Value::as_bool).ok_or_else(|| self.fault(name, "true or false", value)),
        }
    }

    /// Refuses a setting that this software does not compute: it must be one of these, or absent.
    pub(crate) fn only(&self, name: &str, known: &[Value]) -> Result<(), Error> {
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

    pub(crate) fn fault(&self, name: &str, expected: &str, found: Option<&Value>) -> Error {
        let found = found.map_or_else(|| "nothing".to_owned(), Value::to_string);
        Error::folder(&self.path, format!("{name}: expected {expected}, found {found}"))
    }
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = fs::read(path).map_err(Error::io(path))?;
    serde_json::from_slice(&text).map_err(|error| Error::folder(path, error.to_string()))
}

fn read_record(path: &Path) -> Result<ModelRecord, Error> {
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

/// Event names from `vocab.json`; bare ids without it. `events` are those of the model's `tokens` that are events; the
/// others may have names too.
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

/// Writes a model folder at `folder`, which must not hold anything else: weights by `weights`, and the rest from
/// the other arguments.
pub(crate) fn save(
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

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::folder(path, error.to_string()))?;
    fs::write(path, text + "\n").map_err(Error::io(path))
}

/// Makes a folder all at once: `fill` writes into a temporary one beside it, which then takes its name.
///
/// An older folder of that name is replaced at that moment if [`check_replaceable`] allows it.
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

/// The place that a path means, with links followed and dots gone, so that it can be renamed to.
fn resolve(folder: &Path) -> Result<PathBuf, Error> {
    if let Ok(there) = folder.canonicalize() {
        return Ok(there);
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = folder.file_name().ok_or_else(|| Error::folder(folder, "is not the name of a folder"))?;
    fs::create_dir_all(parent).map_err(Error::io(parent))?;
    Ok(parent.canonicalize().map_err(Error::io(parent))?.join(name))
}

/// What a folder written by this software may hold.
const OURS: [&str; 8] = [CONFIG, RECORD, VOCABULARY, WEIGHTS, "events.jsonl", "events.csv", "truth.jsonl", "graph.csv"];

/// Whether a folder may be written at this place: it is free, empty, or holds only files of a model or simulation.
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
        if !OURS.iter().any(|ours| *ours == name) {
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
