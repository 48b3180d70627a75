//! `trace report` and figures, from the command line.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use support::{Workplace, json};

/// A folder with results of ten sequences.
fn workplace() -> Workplace {
    let at = Workplace::new();
    at.simulate("--vocabulary 20 --memory 2 --length 12 --sequences 10 --truth none");
    at.run("discover process/events.jsonl --model process --out r.jsonl --all-pairs --population p.json -q");
    at
}

/// What a page holds.
fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    json(rest.split_once("</script>").unwrap().0)
}

#[test]
fn a_page_of_results() {
    let at = workplace();
    let said = String::from_utf8(at.try_run("report r.jsonl --out r.html").stderr).unwrap();
    assert!(said.starts_with("r.html: 10 sequences; 0.") && said.ends_with("MB; opens in any browser\n"), "{said}");
    let page = at.read("r.html");
    assert!(page.starts_with("<!doctype html>"));
    assert!(!page.contains("http://") || page.matches("http://").count() == page.matches("http://www.w3.org/").count());
    assert!(!page.contains("https://"));
    let all = data(&page);
    assert_eq!(all["sequences"].as_array().unwrap().len(), 10);
    assert_eq!(all["population"]["scored"], true, "merged from all pairs");
    // The same population from its file.
    at.run("report r.jsonl --population p.json --out p.html --title <Fleet>");
    let page = at.read("p.html");
    assert!(page.contains("<title>&lt;Fleet&gt;</title>"));
    let merged = data(&page);
    for column in ["count", "sequences", "sequences_with", "opportunities", "kept_count", "lags", "mean_strength"] {
        assert_eq!(merged["population"][column], all["population"][column], "{column}");
    }
    // Parts of it.
    at.run("report r.jsonl --out few.html --max-sequences 3");
    let few = data(&at.read("few.html"));
    assert_eq!((few["sequences"].as_array().unwrap().len(), &few["total"]["left_out"]), (3, &serde_json::json!(7)));
    at.run("report r.jsonl --out one.html --case s4");
    assert_eq!(data(&at.read("one.html"))["sequences"][0]["id"], "s4");
}

#[test]
fn figures() {
    let at = workplace();
    for words in ["r.jsonl --case s1", "r.jsonl --case s1 --graph summary", "r.jsonl --case s1 --threshold 0", "p.json"]
    {
        let svg = at.run(&format!("export {words} --to svg"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{words}");
        at.run(&format!("export {words} --to png --scale 1 --out f.png"));
        assert_eq!(std::fs::read(at.path("f.png")).unwrap()[..8], *b"\x89PNG\r\n\x1a\n", "{words}");
    }
    // As many arcs as edges.
    let svg = at.run("export r.jsonl --case s1 --to svg --threshold 0.02");
    let rows = at.run("export r.jsonl --case s1 --to csv --threshold 0.02").lines().count() - 1;
    assert_eq!(svg.matches(" nats</title>").count(), rows);
}

#[test]
fn what_cannot_be() {
    let at = workplace();
    let cases = [
        ("report p.json --out x.html", "p.json: is a population graph; expected results"),
        ("report r.jsonl --out r.jsonl", "r.jsonl: is read from, and would be written over"),
        ("report r.jsonl --population p.json --out p.json", "p.json: is read from, and would be written over"),
        ("report r.jsonl --out x.html --case nobody", "--case: r.jsonl has no sequence \"nobody\""),
        ("report r.jsonl --out x.html --max-sequences 0", "--max-sequences: 0 leaves nothing to show"),
        ("report nowhere.jsonl --out x.html", "nowhere.jsonl"),
        ("report r.jsonl --population r.jsonl --out x.html", "r.jsonl: expected a population graph as JSON"),
        ("report r.jsonl --out nowhere/x.html", "nowhere/x.html"),
        ("export r.jsonl --to svg", "a figure shows one graph, but r.jsonl holds 10 (--case ID chooses a sequence)"),
        ("export r.jsonl --case s1 --to svg --scale 3", "--scale: is for PNG figures"),
        ("export r.jsonl --to csv --scale 3", "--scale: is for PNG figures"),
        ("export r.jsonl --case s1 --to png --scale 0", "--scale: 0 is out of range; expected 0.1 to 20"),
        ("export r.jsonl --case s1 --to png --scale nan", "--scale: NaN is out of range"),
    ];
    for (words, expected) in cases {
        let said = at.refuse(words);
        assert!(said.contains(expected), "{words}: {said}");
    }
    at.write("empty.jsonl", "");
    assert!(at.refuse("report empty.jsonl --out x.html").contains("empty.jsonl: holds no result"));
}
