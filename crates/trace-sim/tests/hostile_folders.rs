//! Folders that are broken by accident or on purpose: each gives an error that names the file or tensor, and no panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::fs;
use std::path::Path;

use trace_models::{Description, OpenModel};
use trace_sim::{Error, Process, ProcessSpec};

fn open(folder: &Path) -> Result<OpenModel, Error> {
    let description = Description::read(folder)?;
    if trace_sim::is_process(&description) {
        trace_sim::open(description)
    } else {
        trace_models::open_described(description)
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let spec = ProcessSpec { vocabulary: 12, memory: 2, redundancy: 0.5, decay: 1.0, seed: 1 };
    Process::draw(&spec).unwrap().save(folder.path(), &serde_json::Map::new()).unwrap();
    folder
}

fn complaint(folder: &Path) -> String {
    open(folder).map(|_| ()).unwrap_err().to_string()
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// Where a tensor's data starts and ends in the file.
fn data(bytes: &[u8], name: &str) -> (usize, usize) {
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let json: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let offset = |i: usize| 8 + header + json[name]["data_offsets"][i].as_u64().unwrap() as usize;
    (offset(0), offset(1))
}

#[test]
fn nan_weights() {
    for name in ["bias", "output.weight", "interaction.values"] {
        let folder = folder();
        edit(&folder.path().join("model.safetensors"), |bytes| {
            let (start, _) = data(bytes, name);
            bytes[start + 4..start + 8].copy_from_slice(&f32::NAN.to_le_bytes());
        });
        let complaint = complaint(folder.path());
        assert!(complaint.contains(&format!("tensor {name}: NaN or infinity at element 1")), "{complaint}");
    }
}

#[test]
fn truncated_weights() {
    let folder = folder();
    let path = folder.path().join("model.safetensors");
    let whole = fs::read(&path).unwrap();
    for length in [0, 5, 8, 100, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let complaint = complaint(folder.path());
        assert!(complaint.contains("model.safetensors"), "{complaint}");
    }
    fs::write(&path, [whole.as_slice(), b"more"].concat()).unwrap();
    assert!(complaint(folder.path()).contains("overlong"));
}

#[test]
fn a_header_that_claims_terabytes() {
    let folder = folder();
    let path = folder.path().join("model.safetensors");
    edit(&path, |bytes| bytes[..8].copy_from_slice(&(1u64 << 42).to_le_bytes()));
    assert!(complaint(folder.path()).contains("not a safetensors file"));
    let header = br#"{"bias":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}"#;
    fs::write(&path, [&(header.len() as u64).to_le_bytes()[..], header].concat()).unwrap();
    assert!(complaint(folder.path()).contains("truncated or overlong"));
}

#[test]
fn sparse_rows_that_point_outside() {
    let folder1 = folder();
    edit(&folder1.path().join("model.safetensors"), |bytes| {
        let (start, _) = data(bytes, "interaction.columns");
        bytes[start..start + 4].copy_from_slice(&12u32.to_le_bytes());
    });
    assert!(complaint(folder1.path()).contains("interaction.columns: column 12 of 12"));
    let folder2 = folder();
    edit(&folder2.path().join("model.safetensors"), |bytes| {
        let (start, _) = data(bytes, "interaction.offsets");
        bytes[start + 8..start + 16].copy_from_slice(&u64::MAX.to_le_bytes());
    });
    assert!(complaint(folder2.path()).contains("interaction.offsets: expected ascending"));
}

#[test]
fn ngram_tables_that_do_not_fit() {
    let make = || {
        let folder = tempfile::tempdir().unwrap();
        let events = [0u32, 1, 2, 0, 1].map(trace_core::EventId).to_vec();
        let sequences =
            [("a", events.clone()), ("b", events)].map(|(id, events)| trace_core::EventSequence::new(id, events));
        let spec = trace_models::ngram::NgramSpec { order: Some(2), ..Default::default() };
        let trained = trace_models::ngram::train(&sequences, 3, &spec).unwrap();
        trained.model.save(folder.path(), &trace_core::Vocabulary::ids(3), &serde_json::Map::new()).unwrap();
        folder
    };
    for (tensor, element, expected) in [
        ("context.parent", 1, "tensor context.parent: context 1 comes before its parent 77"),
        ("context.event", 1, "tensor context.event: event 77 of 3"),
        ("count.context", 0, "tensor count.value: count"),
        ("count.event", 0, "tensor count.value: count"),
    ] {
        let folder = make();
        assert!(open(folder.path()).is_ok());
        edit(&folder.path().join("model.safetensors"), |bytes| {
            let (start, _) = data(bytes, tensor);
            bytes[start + 4 * element..][..4].copy_from_slice(&77u32.to_le_bytes());
        });
        let complaint = complaint(folder.path());
        assert!(complaint.contains(expected), "{complaint}");
    }
    let folder = make();
    let path = folder.path().join("trace.json");
    let record = fs::read_to_string(&path).unwrap();
    fs::write(&path, record.replacen("\"event_counts\": [", "\"event_counts\": [7,", 1)).unwrap();
    assert!(complaint(folder.path()).contains("event_counts: expected 3 numbers, found 4"));
}

#[test]
fn configs_that_do_not_fit() {
    let cases = [
        ("{}", "model_type"),
        ("{\"model_type\": \"gpt_neox\"}", "found \"gpt_neox\""),
        ("{\"model_type\": \"trace-scm\"}", "vocab_size: expected a whole number from 2"),
        ("{\"model_type\": \"trace-scm\", \"vocab_size\": -3}", "found -3"),
        (
            "{\"model_type\": \"trace-scm\", \"vocab_size\": 4000000000, \"memory\": 2, \"decay\": 1}",
            "tensor bias: expected F32 of shape [4000000000], found F32 of shape [12]",
        ),
        ("{\"model_type\": \"trace-scm\", \"vocab_size\": 12, \"memory\": 2, \"decay\": \"x\"}", "decay: expected"),
        ("{\"model_type\": \"trace-ngram\", \"vocab_size\": 12, \"order\": 2}", "context.parent: missing"),
        ("[1", "config.json"),
    ];
    for (text, expected) in cases {
        let folder = folder();
        fs::write(folder.path().join("config.json"), text).unwrap();
        let complaint = complaint(folder.path());
        assert!(
            complaint.contains(expected) && complaint.contains(".json") || complaint.contains("tensor"),
            "{complaint}"
        );
        assert!(complaint.contains(expected), "{complaint}");
    }
}

#[test]
fn records_and_vocabularies_that_do_not_fit() {
    for (name, text, expected) in [
        ("trace.json", "{}", "schema"),
        ("trace.json", r#"{"schema": "trace.model/9", "backbone": "scm"}"#, "expected schema \"trace.model/1\""),
        ("trace.json", r#"{"schema": "trace.model/1", "backbone": "scm", "entropy": -1}"#, "entropy: expected"),
        ("vocab.json", r#"{"a": 0, "b": 0}"#, "the same id 0"),
        ("vocab.json", r#"{"a": 12}"#, "but the model has 12 types"),
        ("vocab.json", r#"{"a": 0}"#, "no event has id 1"),
        ("vocab.json", r#"["a"]"#, "vocab.json"),
    ] {
        let folder = folder();
        fs::write(folder.path().join(name), text).unwrap();
        let complaint = complaint(folder.path());
        assert!(complaint.contains(expected) && complaint.contains(name), "{complaint}");
    }
    assert!(complaint(Path::new("no-such-folder")).contains("no such directory"));
}
