//! Network folders that are broken by accident or on purpose: each gives an error that names the file or tensor, no
//! panic, and no allocation for missing data.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use trace_models::{is_encoder, open, open_encoder};

/// A copy of a golden checkpoint.
fn copy(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    for entry in fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let path = folder.path().to_owned();
    (folder, path)
}

fn complaint(folder: &Path) -> String {
    let opened = if is_encoder(folder).unwrap() { open_encoder(folder).map(drop) } else { open(folder).map(drop) };
    opened.unwrap_err().to_string()
}

fn edit_json(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// Rewrites the header of a safetensors file; the data stay as they are.
fn edit_header(path: &Path, change: impl FnOnce(&mut Value)) {
    let bytes = fs::read(path).unwrap();
    let size = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + size]).unwrap();
    change(&mut header);
    let text = header.to_string();
    let whole = [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &bytes[8 + size..]].concat();
    fs::write(path, whole).unwrap();
}

#[test]
fn configs_that_ask_for_terabytes() {
    let cases = [
        ("llama-tied", "vocab_size", json!(16_000_000), "tensor model.embed_tokens.weight: expected"),
        ("llama-tied", "hidden_size", json!(65_536), "tensor model.embed_tokens.weight: expected"),
        ("llama-tied", "num_hidden_layers", json!(1000), "tensor model.layers.2.input_layernorm.weight: missing"),
        ("llama-tied", "intermediate_size", json!(1_000_000), "tensor model.layers.0.mlp.gate_proj.weight: expected"),
        ("llama-tied", "vocab_size", json!(1e18), "vocab_size: expected a whole number"),
        ("llama-tied", "vocab_size", json!(-1), "vocab_size: expected a whole number"),
        ("llama-tied", "num_hidden_layers", json!(0), "num_hidden_layers: expected"),
        ("gpt2", "n_positions", json!(10_000_000), "tensor transformer.wpe.weight: expected"),
        ("mamba", "state_size", json!(4000), "tensor backbone.layers.0.mixer.x_proj.weight: expected"),
        ("gru", "hidden_size", json!(60_000), "tensor embedding.weight: expected"),
        ("lstm", "num_hidden_layers", json!(1024), "tensor rnn.weight_ih_l2: missing"),
        ("bert", "vocab_size", json!(16_000_000), "tensor bert.embeddings.word_embeddings.weight: expected"),
        ("bert", "max_position_embeddings", json!(10_000_000), "tensor bert.embeddings.position_embeddings.weight"),
        ("bert", "type_vocab_size", json!(60_000), "tensor bert.embeddings.token_type_embeddings.weight: expected"),
        ("bert", "num_hidden_layers", json!(1000), "tensor bert.encoder.layer.2.attention.self.query.weight: missing"),
        ("bert", "intermediate_size", json!(0), "intermediate_size: expected a whole number"),
    ];
    for (name, key, value, expected) in cases {
        let (_keep, folder) = copy(name);
        edit_json(&folder.join("config.json"), |config| config[key] = value);
        let complaint = complaint(&folder);
        assert!(complaint.contains(expected), "{name} {key}: {complaint}");
    }
}

#[test]
fn computations_that_are_not_done() {
    let cases = [
        ("llama-tied", "hidden_act", json!("gelu"), "hidden_act: expected \"silu\""),
        ("llama-tied", "attention_bias", json!(true), "attention_bias: expected"),
        ("llama-tied", "rope_scaling", json!({"rope_type": "llama3", "factor": 8.0}), "rope_scaling: expected"),
        ("llama-tied", "num_key_value_heads", json!(3), "num_key_value_heads: expected a divisor of 4"),
        ("llama-tied", "head_dim", json!(3), "head_dim: expected an even number"),
        ("gpt2", "activation_function", json!("relu"), "activation_function: expected"),
        ("gpt2", "n_head", json!(5), "n_head: expected a divisor"),
        ("mamba", "hidden_act", json!("relu"), "hidden_act: expected"),
        ("bert", "hidden_act", json!("gelu_new"), "hidden_act: expected \"gelu\""),
        ("bert", "position_embedding_type", json!("relative_key"), "position_embedding_type: expected"),
        ("bert", "is_decoder", json!(true), "is_decoder: expected false"),
        ("bert", "tie_word_embeddings", json!(false), "tie_word_embeddings: expected true"),
        ("bert", "num_attention_heads", json!(5), "num_attention_heads: expected a divisor of hidden_size 16"),
    ];
    for (name, key, value, expected) in cases {
        let (_keep, folder) = copy(name);
        edit_json(&folder.join("config.json"), |config| config[key] = value);
        let complaint = complaint(&folder);
        assert!(complaint.contains(expected), "{name} {key}: {complaint}");
    }
}

#[test]
fn tensors_that_do_not_fit() {
    let name = "model.layers.1.mlp.up_proj.weight";
    let (_keep, folder) = copy("llama-tied");
    let weights = folder.join("model.safetensors");
    edit_header(&weights, |header| {
        let tensor = header.as_object_mut().unwrap().remove(name).unwrap();
        header["model.layers.1.mlp.up_proj.bias"] = tensor;
    });
    assert!(complaint(&folder).contains(&format!("tensor {name}: missing")), "{}", complaint(&folder));

    let (_keep, folder) = copy("llama-tied");
    edit_header(&folder.join("model.safetensors"), |header| header[name]["shape"] = json!([16, 24]));
    assert!(complaint(&folder).contains(&format!("tensor {name}: expected F32, F16 or BF16 of shape [24, 16]")));

    let (_keep, folder) = copy("llama-tied");
    edit_header(&folder.join("model.safetensors"), |header| {
        header["model.layers.0.self_attn.q_proj.bias"] = json!({"dtype": "F32", "shape": [0], "data_offsets": [0, 0]});
    });
    let said = complaint(&folder);
    assert!(said.contains("q_proj.bias: not part of this architecture") || said.contains("header"), "{said}");

    // Two tensors that share their data, and one that claims more than there is.
    let (_keep, folder) = copy("llama-tied");
    edit_header(&folder.join("model.safetensors"), |header| {
        let other = header["model.layers.0.mlp.up_proj.weight"]["data_offsets"].clone();
        header[name]["data_offsets"] = other;
    });
    assert!(complaint(&folder).contains("model.safetensors"), "{}", complaint(&folder));
    let (_keep, folder) = copy("llama-tied");
    edit_header(&folder.join("model.safetensors"), |header| {
        header[name]["shape"] = json!([1u64 << 40, 1u64 << 40]);
    });
    assert!(complaint(&folder).contains("model.safetensors"), "{}", complaint(&folder));
}

#[test]
fn numbers_that_are_none() {
    for (name, tensor) in
        [("llama-tied", "model.norm.weight"), ("gpt2-f16", "transformer.ln_f.weight"), ("bert", "cls.predictions.bias")]
    {
        let (_keep, folder) = copy(name);
        let path = folder.join("model.safetensors");
        let mut bytes = fs::read(&path).unwrap();
        let size = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&bytes[8..8 + size]).unwrap();
        let start = 8 + size + header[tensor]["data_offsets"][0].as_u64().unwrap() as usize;
        bytes[start..start + 4].fill(0xff); // NaN in any of the formats
        fs::write(&path, bytes).unwrap();
        let complaint = complaint(&folder);
        assert!(complaint.contains(&format!("tensor {tensor}: NaN or infinity at element 0")), "{complaint}");
    }
}

#[test]
fn shards_that_do_not_belong_together() {
    let index = "model.safetensors.index.json";
    let (_keep, folder) = copy("llama-gqa");
    fs::remove_file(folder.join("model-00003-of-00005.safetensors")).unwrap();
    assert!(complaint(&folder).contains("model-00003-of-00005.safetensors"));

    let (_keep, folder) = copy("llama-gqa");
    edit_json(&folder.join(index), |index| {
        index["weight_map"]["model.norm.weight"] = json!("../elsewhere.safetensors");
    });
    assert!(complaint(&folder).contains("expected files of the same folder"), "{}", complaint(&folder));

    let (_keep, folder) = copy("llama-gqa");
    edit_json(&folder.join(index), |index| {
        index["weight_map"]["model.extra.weight"] = json!("model-00001-of-00005.safetensors");
    });
    let said = complaint(&folder);
    assert!(said.contains("tensor model.extra.weight: missing, though the index has it"), "{said}");

    let (_keep, folder) = copy("llama-gqa");
    fs::copy(folder.join("model-00001-of-00005.safetensors"), folder.join("model-00002-of-00005.safetensors")).unwrap();
    assert!(complaint(&folder).contains("occurs in two files"), "{}", complaint(&folder));

    let (_keep, folder) = copy("llama-gqa");
    fs::write(folder.join(index), "{\"weight_map\": 3}").unwrap();
    assert!(complaint(&folder).contains("the index is broken"));
}

#[test]
fn masked_models_and_others_are_told_apart() {
    let (_keep, folder) = copy("bert");
    let said = open(&folder).map(drop).unwrap_err().to_string();
    let expected = "config.json: a masked model predicts no next event; only its attention can be read";
    assert!(said.ends_with(expected), "{said}");
    // Even where nothing else of it could be read.
    fs::remove_file(folder.join("model.safetensors")).unwrap();
    assert!(open(&folder).map(drop).unwrap_err().to_string().ends_with(expected));
    let (_keep, folder) = copy("llama-tied");
    let said = open_encoder(&folder).unwrap_err().to_string();
    assert!(said.contains("model_type: expected \"bert\", the only masked model, found \"llama\""), "{said}");
}

#[test]
fn tensors_of_a_masked_model_that_do_not_fit() {
    let weights = "model.safetensors";
    let (name, twin) = ("cls.predictions.transform.dense.weight", "bert.pooler.dense.weight");
    let (_keep, folder) = copy("bert");
    edit_header(&folder.join(weights), |header| {
        header[twin] = header.as_object_mut().unwrap().remove(name).unwrap();
    });
    assert!(complaint(&folder).contains(&format!("tensor {name}: missing")), "{}", complaint(&folder));
    let (_keep, folder) = copy("bert");
    edit_header(&folder.join(weights), |header| header[name]["shape"] = json!([4, 64]));
    assert!(complaint(&folder).contains(&format!("tensor {name}: expected F32, F16 or BF16 of shape [16, 16]")));
    let (_keep, folder) = copy("bert");
    let record = json!({"schema": "trace.model/1", "backbone": "bert", "special_tokens": {"mask": 99}});
    fs::write(folder.join("trace.json"), record.to_string()).unwrap();
    assert!(complaint(&folder).contains("mask is token 99, but the model has 23"), "{}", complaint(&folder));
    let record = json!({"schema": "trace.model/1", "backbone": "bert", "event_counts": [1, 2]});
    fs::write(folder.join("trace.json"), record.to_string()).unwrap();
    assert!(complaint(&folder).contains("event_counts: expected 23 numbers, found 2"), "{}", complaint(&folder));
}

#[test]
fn a_masked_model_counts_events_without_its_special_tokens() {
    use trace_core::EventId;
    let (_keep, folder) = copy("bert");
    let plain = open_encoder(&folder).unwrap().encoder;
    let record = json!({"schema": "trace.model/1", "backbone": "bert", "special_tokens": {"mask": 2, "padding": 0}});
    fs::write(folder.join("trace.json"), record.to_string()).unwrap();
    let names: serde_json::Map<String, Value> = (0..23).map(|id| (format!("e{id}"), json!(id))).collect();
    fs::write(folder.join("vocab.json"), Value::Object(names).to_string()).unwrap();
    let special = open_encoder(&folder).unwrap();
    assert_eq!((special.encoder.vocabulary_size(), special.vocabulary.len()), (21, 21));
    assert_eq!(special.vocabulary.name(EventId(1)).to_string(), "e3");
    // Tokens 1, 3, 4, … are events 0, 1, 2, …
    let attention = special.encoder.attention(&[0, 1, 5, 20].map(EventId)).unwrap();
    assert_eq!(attention, plain.attention(&[1, 3, 7, 22].map(EventId)).unwrap());
    let said = special.encoder.attention(&[EventId(21)]).unwrap_err().to_string();
    assert!(said.contains("event 21 is none of the model's 21 types"), "{said}");
    let said = special.encoder.attention(&[EventId(3); 33]).unwrap_err().to_string();
    assert!(said.contains("33 in a sequence, but the model knows 32 positions"), "{said}");
    assert!(special.encoder.attention(&[]).unwrap().is_empty());
    assert_eq!(special.encoder.attention(&[EventId(3)]).unwrap(), [1.0]);
}

#[test]
fn special_tokens_come_after_the_events_whatever_their_ids() {
    use trace_core::EventId;
    let (_keep, folder) = copy("llama-tied");
    let plain = open(&folder).unwrap();
    let record = json!({"schema": "trace.model/1", "backbone": "llama", "special_tokens": {"begin": 2, "padding": 0}});
    fs::write(folder.join("trace.json"), record.to_string()).unwrap();
    assert!(complaint(&folder).contains("special tokens must come after all events"), "{}", complaint(&folder));
    let names: serde_json::Map<String, Value> = (0..23).map(|id| (format!("e{id}"), json!(id))).collect();
    fs::write(folder.join("vocab.json"), Value::Object(names).to_string()).unwrap();
    let special = open(&folder).unwrap();
    assert_eq!(special.model.vocabulary_size(), 21);
    assert!(special.model.predicts_first());
    // Tokens 1, 3, 4, … are events 0, 1, 2, …
    assert_eq!(special.vocabulary.name(EventId(1)).to_string(), "e3");
    let mut rows = vec![0.0; 21 * 3];
    special.model.forward(&[0, 1, 5].map(EventId), 0..3, &mut rows).unwrap();
    let mut all = vec![0.0; 23 * 3];
    plain.model.forward(&[2, 1, 3, 7].map(EventId), 1..4, &mut all).unwrap();
    for (row, all) in rows.chunks(21).zip(all.chunks(23)) {
        let events: Vec<f64> = (0..23).filter(|token| *token != 0 && *token != 2).map(|token| all[token]).collect();
        let total = events.iter().map(|x| x.exp()).sum::<f64>().ln();
        for (a, b) in row.iter().zip(events) {
            assert!((a - (b - total)).abs() < 1e-5, "{a} {b}");
        }
    }
    fs::write(folder.join("trace.json"), record.to_string().replace("\"begin\":2", "\"begin\":77")).unwrap();
    assert!(complaint(&folder).contains("begin is token 77, but the model has 23"), "{}", complaint(&folder));
}
