//! CSV: one row an edge, with what is known of its ends.

use std::io::{self, Write};

use super::{Attribute, Drawing, Kind, Node};

pub(super) fn write(kind: Kind, drawings: impl Iterator<Item = Drawing>, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    // Also where no row follows: a table without a header is a broken file to its readers.
    writer.write_record(header(kind)).map_err(plain)?;
    for drawing in drawings {
        for link in &drawing.links {
            let mut row = vec![drawing.name.clone()];
            row.extend(end(&drawing.nodes[link.from]));
            row.extend(end(&drawing.nodes[link.to]));
            row.extend(link.attributes.iter().map(|(_, value)| text(value)));
            writer.write_record(row).map_err(plain)?;
        }
    }
    writer.flush()
}

/// `graph`, the attributes of the ends as `cause`, `cause_position` and so on, those of the edge.
fn header(kind: Kind) -> Vec<String> {
    let mut columns = vec!["graph".to_owned()];
    for role in ["cause", "effect"] {
        columns.extend(kind.node_attributes().iter().map(|name| match *name {
            "event" => role.to_owned(),
            name => format!("{role}_{name}"),
        }));
    }
    columns.extend(kind.link_attributes().iter().map(|name| (*name).to_owned()));
    columns
}

/// The system's own error where there is one, so that a closed pipe is known as such.
fn plain(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn end(node: &Node) -> impl Iterator<Item = String> {
    node.attributes.iter().map(|(_, value)| text(value))
}

fn text(value: &Attribute) -> String {
    match value {
        Attribute::Text(text) => text.clone(),
        Attribute::Number(number) => number.to_string(),
        Attribute::Count(count) => count.to_string(),
        Attribute::Flag(flag) => flag.to_string(),
        Attribute::Unknown => String::new(),
    }
}
