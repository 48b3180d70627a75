//! GraphML: one document with a graph for each drawing.

use std::collections::BTreeMap;
use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::{Attribute, Drawing};

type Attributes<'a> = &'a [(&'static str, Attribute)];

pub(super) fn write(drawings: impl Iterator<Item = Drawing>, out: &mut dyn Write) -> io::Result<()> {
    let drawings: Vec<Drawing> = drawings.collect();
    let mut writer = Writer::new_with_indent(&mut *out, b' ', 1);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    writer
        .create_element("graphml")
        .with_attribute(("xmlns", "http://graphml.graphdrawing.org/xmlns"))
        .write_inner_content(|writer| {
            declare(writer, "node", drawings.iter().flat_map(|d| &d.nodes).map(|node| node.attributes.as_slice()))?;
            declare(writer, "edge", drawings.iter().flat_map(|d| &d.links).map(|link| link.attributes.as_slice()))?;
            for (index, drawing) in drawings.iter().enumerate() {
                write_graph(writer, index, drawing)?;
            }
            Ok(())
        })?;
    out.write_all(b"\n")
}

/// Declares each attribute once with its type.
fn declare<'a, W: Write>(
    writer: &mut Writer<W>,
    kind: &str,
    attributes: impl Iterator<Item = Attributes<'a>>,
) -> io::Result<()> {
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    if kind == "node" {
        types.insert("label", "string");
    }
    for (name, value) in attributes.flatten() {
        types.entry(name).or_insert(match value {
            Attribute::Text(_) => "string",
            Attribute::Number(_) | Attribute::Unknown => "double",
            Attribute::Count(_) => "long",
            Attribute::Flag(_) => "boolean",
        });
    }
    for (name, of) in types {
        writer
            .create_element("key")
            .with_attribute(("id", format!("{kind}_{name}").as_str()))
            .with_attribute(("for", kind))
            .with_attribute(("attr.name", name))
            .with_attribute(("attr.type", of))
            .write_empty()?;
    }
    Ok(())
}

fn write_graph<W: Write>(writer: &mut Writer<W>, index: usize, drawing: &Drawing) -> io::Result<()> {
    writer
        .create_element("graph")
        .with_attribute(("id", legal(&drawing.name).as_str()))
        .with_attribute(("edgedefault", "directed"))
        .write_inner_content(|writer| {
            for (number, node) in drawing.nodes.iter().enumerate() {
                let id = format!("g{index}n{number}");
                writer.create_element("node").with_attribute(("id", id.as_str())).write_inner_content(|writer| {
                    datum(writer, "node_label", &node.label)?;
                    data(writer, "node", &node.attributes)
                })?;
            }
            for link in &drawing.links {
                writer
                    .create_element("edge")
                    .with_attribute(("source", format!("g{index}n{}", link.from).as_str()))
                    .with_attribute(("target", format!("g{index}n{}", link.to).as_str()))
                    .write_inner_content(|writer| data(writer, "edge", &link.attributes))?;
            }
            Ok(())
        })?;
    Ok(())
}

fn data<W: Write>(writer: &mut Writer<W>, kind: &str, attributes: Attributes<'_>) -> io::Result<()> {
    for (name, value) in attributes {
        let text = match value {
            Attribute::Text(text) => text.clone(),
            Attribute::Number(number) => number.to_string(),
            Attribute::Count(count) => count.to_string(),
            Attribute::Flag(flag) => flag.to_string(),
            // A key without a datum is a value that is not known.
            Attribute::Unknown => continue,
        };
        datum(writer, &format!("{kind}_{name}"), &text)?;
    }
    Ok(())
}

fn datum<W: Write>(writer: &mut Writer<W>, key: &str, text: &str) -> io::Result<()> {
    writer.create_element("data").with_attribute(("key", key)).write_text_content(BytesText::new(&legal(text)))?;
    Ok(())
}

/// XML cannot hold most control characters, not even escaped; they become the replacement character.
fn legal(text: &str) -> String {
    let illegal =
        |c: char| matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    text.chars().map(|c| if illegal(c) { '\u{fffd}' } else { c }).collect()
}
