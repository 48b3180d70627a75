//! Putting the page together.
//!
//! The page is one file that needs nothing else and can do nothing else: its security policy names the hashes of its
//! own style and script and forbids all other sources, so that even text that broke out of its place could not run.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");

/// The parts of the script, in the order they build on each other.
const SCRIPTS: [&str; 16] = [
    include_str!("page/elements.js"),
    include_str!("page/words.js"),
    include_str!("page/data.js"),
    include_str!("page/chains.js"),
    include_str!("page/state.js"),
    include_str!("page/header.js"),
    include_str!("page/claims.js"),
    include_str!("page/controls.js"),
    include_str!("page/population-controls.js"),
    include_str!("page/timeline.js"),
    include_str!("page/graph.js"),
    include_str!("page/panel.js"),
    include_str!("page/population-panel.js"),
    include_str!("page/table.js"),
    include_str!("page/population-table.js"),
    include_str!("page/main.js"),
];

/// Writes the page around its data, which is JSON.
pub(crate) fn write(title: &str, data: &str, out: &mut dyn Write) -> io::Result<()> {
    let script = format!("(() => {{\n\"use strict\";\n{}}})();\n", SCRIPTS.join("\n"));
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        hash(&script),
        hash(STYLE)
    );
    let mut rest = PAGE;
    let parts = [
        ("{{policy}}", policy),
        ("{{title}}", as_text(title)),
        ("{{style}}", STYLE.to_owned()),
        ("{{data}}", in_script(data)),
        ("{{script}}", script),
    ];
    for (mark, text) in parts {
        let (before, after) =
            rest.split_once(mark).ok_or_else(|| io::Error::other(format!("no {mark} in the page")))?;
        out.write_all(before.as_bytes())?;
        out.write_all(text.as_bytes())?;
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// How a security policy names an inline part.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// Text between tags.
fn as_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// JSON that cannot end the element it stands in: `<`, `>` and `&` only occur within strings, where an escape means
/// the same. U+2028 and U+2029 end lines in old scripts.
fn in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_means_the_same_and_ends_no_element() {
        let name = "</script><img onerror=alert(1)> & \u{2028}\u{2029} <!-- 🚗";
        let json = serde_json::to_string(name).unwrap();
        let safe = in_script(&json);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}', '\u{2029}']));
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), name);
    }

    #[test]
    fn our_own_parts_end_no_element_either() {
        assert!(SCRIPTS.iter().all(|script| !script.contains("</script") && !script.contains("<!--")));
        assert!(!STYLE.contains("</"));
        assert!(!SCRIPTS.iter().any(|script| script.contains("innerHTML") || script.contains("insertAdjacentHTML")));
    }

    #[test]
    fn a_mark_in_the_data_stays_as_it_is() {
        let mut out = Vec::new();
        write("{{data}} <T>", "{\"x\": \"{{script}}\"}", &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        assert!(page.contains("<title>{{data}} &lt;T&gt;</title>"));
        assert!(page.contains("{\"x\": \"{{script}}\"}"));
    }
}
