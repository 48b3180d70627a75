//! JSON: `{"name": …, "nodes": [{"label": …, …}], "edges": [{"from": 0, "to": 1, …}]}`, a graph a line.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::{Attribute, Drawing};

pub(super) fn write(drawings: impl Iterator<Item = Drawing>, out: &mut dyn Write) -> io::Result<()> {
    for drawing in drawings {
        let nodes: Vec<Value> =
            drawing.nodes.iter().map(|node| object([("label", json!(node.label))], &node.attributes)).collect();
        let links: Vec<Value> = drawing
            .links
            .iter()
            .map(|link| object([("from", json!(link.from)), ("to", json!(link.to))], &link.attributes))
            .collect();
        serde_json::to_writer(&mut *out, &json!({"name": drawing.name, "nodes": nodes, "edges": links}))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn object<const N: usize>(first: [(&str, Value); N], attributes: &[(&'static str, Attribute)]) -> Value {
    let mut map = Map::new();
    for (name, value) in first {
        map.insert(name.to_owned(), value);
    }
    for (name, attribute) in attributes {
        let value = match attribute {
            Attribute::Text(text) => json!(text),
            Attribute::Number(number) => json!(number),
            Attribute::Count(count) => json!(count),
            Attribute::Flag(flag) => json!(flag),
            Attribute::Unknown => Value::Null,
        };
        map.insert((*name).to_owned(), value);
    }
    Value::Object(map)
}
