//! CSV: one row an edge, with the labels of its ends.

use std::io::{self, Write};

use super::{Attribute, Drawing, Node};

pub(super) fn write(drawings: impl Iterator<Item = Drawing>, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let mut header = false;
    for drawing in drawings {
        for link in &drawing.links {
            let (from, to) = (&drawing.nodes[link.from], &drawing.nodes[link.to]);
            let ends = ends(from, "cause").into_iter().chain(ends(to, "effect"));
            let mut row = vec![("graph".to_owned(), drawing.name.clone())];
            row.extend(ends);
            row.extend(link.attributes.iter().map(|(name, value)| ((*name).to_owned(), text(value))));
            if !header {
                writer.write_record(row.iter().map(|field| &field.0)).map_err(plain)?;
                header = true;
            }
            writer.write_record(row.iter().map(|field| &field.1)).map_err(plain)?;
        }
    }
    if !header {
        // A table without rows still has a header, or readers take it for a broken file.
        writer.write_record(["graph", "cause", "effect"]).map_err(plain)?;
    }
    writer.flush()
}

/// The system's own error where there is one, so that a closed pipe is known as such.
fn plain(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// The attributes of a node as columns `cause`, `cause_position` and so on.
fn ends(node: &Node, role: &str) -> Vec<(String, String)> {
    node.attributes
        .iter()
        .map(|(name, value)| {
            let column = if *name == "event" { role.to_owned() } else { format!("{role}_{name}") };
            (column, text(value))
        })
        .collect()
}

fn text(value: &Attribute) -> String {
    match value {
        Attribute::Text(text) => text.clone(),
        Attribute::Number(number) => number.to_string(),
        Attribute::Count(count) => count.to_string(),
        Attribute::Flag(flag) => flag.to_string(),
    }
}
