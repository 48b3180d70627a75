//! A cross-fit: two models in one folder, each trained on one half of the sequences, so that every sequence has a model
//! that has not seen it.
//!
//! `trace.json` names the two halves, which are model folders of their own. They must have the same kind, the same event
//! types and ends, and must not have been trained on the same sequence.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::path::Path;

use serde_json::Value;
use twox_hash::XxHash3_64;

use crate::folder::{self, ModelRecord, OpenModel, RECORD, RECORD_SCHEMA, read_record, write_json};
use crate::{Error, Split};

/// The folders of the halves.
pub const HALVES: [&str; 2] = ["half-0", "half-1"];

/// A cross-fit opened from its folder.
pub struct OpenCrossFit {
    /// The two models.
    pub halves: [OpenModel; 2],
    /// What each was trained on.
    pub splits: [Split; 2],
    /// Its record; the losses are means of those of the halves.
    pub record: ModelRecord,
    /// A hash of all that decides its answers: both models, and which of them answers for a sequence.
    pub fingerprint: String,
}

/// Whether a folder holds a cross-fit, which [`open`] opens.
pub fn is_cross_fit(folder: &Path) -> Result<bool, Error> {
    let path = folder.join(RECORD);
    Ok(path.exists() && read_record(&path)?.cross_fit.is_some())
}

/// Opens the folder of a cross-fit.
pub fn open(folder: &Path) -> Result<OpenCrossFit, Error> {
    let path = folder.join(RECORD);
    let record = read_record(&path)?;
    if record.cross_fit.as_deref() != Some(&HALVES.map(str::to_owned)) {
        let found = record.cross_fit.unwrap_or_default();
        return Err(Error::folder(&path, format!("cross_fit: expected {HALVES:?}, found {found:?}")));
    }
    let half = |name: &str| {
        let mut opened = folder::open(&folder.join(name))?;
        let split = opened.split.take().ok_or_else(|| {
            let reason = "does not say what it was trained on; expected a half of a cross-fit";
            Error::folder(&folder.join(name), reason)
        })?;
        Ok((opened, split))
    };
    let ((first, first_split), (second, second_split)) = (half(HALVES[0])?, half(HALVES[1])?);
    let fault = |what: &str| Err(Error::folder(folder, format!("its halves {what}")));
    if first.model.backbone() != second.model.backbone() {
        return fault("are of different kinds");
    }
    if first.vocabulary != second.vocabulary {
        return fault("have different event types");
    }
    if first.model.predicts_end() != second.model.predicts_end() {
        return fault("differ in whether they predict the end of a case");
    }
    if first_split.overlaps(&second_split) {
        return fault("were trained on the same sequence, so that neither is a stranger to it");
    }
    let mut hasher = XxHash3_64::new();
    for (half, split) in [(&first, &first_split), (&second, &second_split)] {
        hasher.write(half.fingerprint.as_bytes());
        split.bytes().for_each(|bytes| hasher.write(&bytes));
    }
    let fingerprint = format!("{:016x}", hasher.finish());
    Ok(OpenCrossFit { halves: [first, second], splits: [first_split, second_split], record, fingerprint })
}

/// Writes `trace.json` into a folder that has both halves already; `training` says how they were made.
pub fn save(folder: &Path, training: BTreeMap<String, Value>) -> Result<(), Error> {
    let record = |name: &str| read_record(&folder.join(name).join(RECORD));
    let [first, second] = [record(HALVES[0])?, record(HALVES[1])?];
    let mean = |loss: fn(&ModelRecord) -> Option<f64>| Some(f64::midpoint(loss(&first)?, loss(&second)?));
    let record = ModelRecord {
        schema: RECORD_SCHEMA.to_owned(),
        backbone: first.backbone.clone(),
        held_out_loss: mean(|record| record.held_out_loss),
        unigram_loss: mean(|record| record.unigram_loss),
        entropy: mean(|record| record.entropy),
        cross_fit: Some(HALVES.map(str::to_owned).to_vec()),
        training,
        ..ModelRecord::default()
    };
    write_json(&folder.join(RECORD), &record)
}
