//! Graphviz DOT: one digraph a graph. An edge is as wide as it is strong, and dashed where the effect happened despite
//! the cause.

use std::io::{self, Write};

use super::{Attribute, Drawing};

pub(super) fn write(drawings: impl Iterator<Item = Drawing>, out: &mut dyn Write) -> io::Result<()> {
    for drawing in drawings {
        writeln!(out, "digraph {} {{", quoted(&drawing.name))?;
        writeln!(out, "  rankdir=LR;")?;
        writeln!(out, "  node [shape=box, style=rounded, fontname=\"sans-serif\"];")?;
        writeln!(out, "  edge [fontname=\"sans-serif\", fontsize=11, arrowsize=0.6];")?;
        for (index, node) in drawing.nodes.iter().enumerate() {
            writeln!(out, "  n{index} [label={}];", quoted(&node.label))?;
        }
        for link in &drawing.links {
            let mut fields = Vec::new();
            for (name, value) in &link.attributes {
                match value {
                    Attribute::Number(number) => {
                        if matches!(*name, "strength" | "score") {
                            fields.push(format!("label=\"{number:.2}\", penwidth={:.2}", width(*number)));
                        }
                        if matches!(*name, "log_ratio" | "mean_log_ratio") && *number < 0.0 {
                            fields.push("style=dashed".to_owned());
                        }
                        fields.push(format!("{name}={number}"));
                    }
                    Attribute::Count(count) => fields.push(format!("{name}={count}")),
                    Attribute::Flag(flag) => fields.push(format!("{name}={flag}")),
                    Attribute::Unknown => {}
                    Attribute::Text(text) => fields.push(format!("{name}={}", quoted(text))),
                }
            }
            writeln!(out, "  n{} -> n{} [{}];", link.from, link.to, fields.join(", "))?;
        }
        writeln!(out, "}}")?;
    }
    Ok(())
}

/// Between one and five points.
fn width(strength: f64) -> f64 {
    1.0 + 2.0 * strength.clamp(0.0, 2.0)
}

/// A quoted string: in DOT a backslash starts an escape such as `\n` or `\N`, so both it and quotes are escaped.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' | '\0' => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
