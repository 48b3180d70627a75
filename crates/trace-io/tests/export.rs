//! Exports: hostile names come through every format unharmed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use serde_json::json;
use trace_io::export::{Drawing, Format, Kind, write};
use trace_io::result::ResultLine;

const HOSTILE: [&str; 7] = [
    "plain",
    "comma, \"quotes\" and 'more'",
    "</script><b>&amp;</b>",
    "new\nline\ttab",
    "back\\slash\\N",
    "émoji 🚗 ]]>",
    "control \u{1} char",
];

fn line() -> ResultLine {
    let long = "x".repeat(5000);
    let events: Vec<&str> = HOSTILE.iter().copied().chain([long.as_str()]).collect();
    let edge = |cause: usize| {
        json!({"cause": cause, "effect": cause + 1, "lag": 1, "strength": 0.5, "std_error": 0.01, "particles": 16,
               "log_ratio": 1.0, "probability": 0.6, "probability_replaced": 0.2, "tied": false, "kept": cause != 3})
    };
    let summary = |cause: usize| json!({"cause": events[cause], "effect": events[cause + 1], "strength": 0.5, "count": 1, "lags": [1]});
    serde_json::from_value(json!({
        "schema": "trace.result/1", "id": "a <b> \"c\"",
        "settings": {"intervention": "atomic", "proposal": "uniform", "divergence": "event", "history": "observed",
                     "particles": "auto", "memory": 1, "context": 0, "threshold": 0.05, "seed": 7},
        "model": {"backbone": "ngram", "held_out_loss": null, "unigram_loss": null, "epsilon_hat": null},
        "events": events,
        "edges": (0..7).map(edge).collect::<Vec<_>>(),
        "summary": (0..7).filter(|i| *i != 3).map(summary).collect::<Vec<_>>(),
    }))
    .unwrap()
}

fn export(drawing: Drawing, format: Format) -> String {
    let mut out = Vec::new();
    write(drawing.kind, [drawing].into_iter(), format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn csv_gives_every_name_back() {
    let text = export(Drawing::sample(&line()), Format::Csv);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(
        header,
        [
            "graph",
            "cause_position",
            "cause",
            "effect_position",
            "effect",
            "lag",
            "strength",
            "std_error",
            "particles",
            "log_ratio",
            "probability",
            "probability_replaced",
            "tied",
            "question",
            "verdict",
            "overlap",
            "hidden_cause_ratio"
        ]
    );
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 6, "only edges that were kept");
    for row in rows {
        let (cause, effect): (usize, usize) = (row[1].parse().unwrap(), row[3].parse().unwrap());
        let name = |position: usize| HOSTILE.get(position).map_or_else(|| "x".repeat(5000), |name| (*name).to_owned());
        assert_eq!(&row[2], name(cause));
        assert_eq!(&row[4], name(effect));
        assert_eq!(&row[0], "a <b> \"c\"");
    }
    let empty = Drawing { kind: Kind::Summary, name: "none".to_owned(), nodes: vec![], links: vec![] };
    assert_eq!(export(empty, Format::Csv), "graph,cause,effect,strength,mean_strength,count,lags\n");
}

#[test]
fn json_gives_every_name_back() {
    let text = export(Drawing::summary(&line()), Format::Json);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let labels: Vec<&str> =
        value["nodes"].as_array().unwrap().iter().map(|node| node["label"].as_str().unwrap()).collect();
    for name in HOSTILE {
        assert!(labels.contains(&name), "{name}");
    }
    assert_eq!(value["edges"].as_array().unwrap().len(), 6);
}

#[test]
fn graphml_is_xml_that_gives_every_name_back() {
    let text = export(Drawing::sample(&line()), Format::Graphml);
    let mut reader = quick_xml::Reader::from_str(&text);
    let mut texts: Vec<String> = Vec::new();
    let (mut nodes, mut edges) = (0, 0);
    let mut current = String::new();
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Eof => break,
            quick_xml::events::Event::Start(start) => {
                nodes += usize::from(start.name().as_ref() == "node");
                edges += usize::from(start.name().as_ref() == "edge");
                current.clear();
            }
            quick_xml::events::Event::Text(part) => current += &part,
            quick_xml::events::Event::GeneralRef(reference) => {
                current += match &*reference {
                    "lt" => "<",
                    "gt" => ">",
                    "amp" => "&",
                    "quot" => "\"",
                    "apos" => "'",
                    other => panic!("unknown entity {other}"),
                }
            }
            quick_xml::events::Event::End(_) => texts.push(std::mem::take(&mut current)),
            _ => {}
        }
    }
    assert_eq!((nodes, edges), (8, 6));
    for name in &HOSTILE[..6] {
        assert!(texts.iter().any(|text| text == name), "{name:?}");
    }
    assert!(texts.iter().any(|text| *text == "x".repeat(5000)), "5,000 characters");
    assert!(texts.iter().any(|text| text == "control \u{fffd} char"), "XML cannot hold control characters");
}

#[test]
fn dot_quotes_every_name() {
    let text = export(Drawing::summary(&line()), Format::Dot);
    assert!(text.starts_with("digraph \"a <b> \\\"c\\\"\" {\n"));
    assert!(text.contains(r#"[label="comma, \"quotes\" and 'more'"]"#));
    assert!(text.contains(r#"[label="back\\slash\\N"]"#));
    assert!(text.contains(r#"[label="new\nline	tab"]"#));
    assert!(text.contains(r#"[label="</script><b>&amp;</b>"]"#), "markup means nothing in DOT's quotes");
    assert!(text.contains(r#"[label="émoji 🚗 ]]>"]"#));
    assert!(text.contains(&format!("[label=\"{}\"]", "x".repeat(5000))));
    assert!(
        text.contains(
            "n0 -> n1 [label=\"0.50\", penwidth=2.00, strength=0.5, mean_strength=0.5, count=1, lags=\"1\"];"
        )
    );
    // Quotes come in pairs on every line, escaped ones aside.
    for line in text.lines() {
        assert_eq!(line.replace("\\\\", "").replace("\\\"", "").matches('"').count() % 2, 0, "{line}");
    }
}
