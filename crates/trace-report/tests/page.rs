//! The page in a real browser. Pictures of it land among the tests' temporary files (`target/tmp/pictures`).
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::json;
use support::browser::Browser;
use support::sample::{long, report, result, vehicle};
use trace_core::{Pair, Position};
use trace_io::result::ResultLine;

/// The pairs that elements stand for, by their numbers in the result.
fn pairs(page: &mut Browser, selector: &str) -> BTreeSet<usize> {
    let numbers = format!("[...document.querySelectorAll({})].map((arc) => Number(arc.dataset.pair))", json!(selector));
    serde_json::from_value(page.value(&numbers)).unwrap()
}

fn numbers_of(line: &ResultLine, wanted: impl Fn(&Pair) -> bool) -> BTreeSet<usize> {
    line.pairs.iter().enumerate().filter(|(_, edge)| wanted(edge)).map(|(number, _)| number).collect()
}

#[test]
fn the_slider_keeps_what_the_command_line_keeps() {
    let line = vehicle("one", 3);
    let Some(mut page) = Browser::open(report(std::slice::from_ref(&line)), 1440, 1000) else { return };
    page.picture("sequence");
    assert_eq!(page.count(".arc[data-pair]"), line.edges().count());
    page.enter("#threshold-number", "0");
    page.enter("#graph .limit input", "2000");
    for threshold in [0.3, 0.0, 0.01, 0.0137, 0.05, 2.0, 0.1] {
        page.enter("#threshold-number", &threshold.to_string());
        let mut moved = line.clone();
        assert!(moved.move_threshold(threshold));
        assert_eq!(pairs(&mut page, ".arc[data-pair]"), numbers_of(&moved, |pair| pair.kept), "at {threshold}");
        assert_eq!(page.count("#graph .link"), moved.summary.len(), "type graph at {threshold}");
    }
    // The slider itself, with the keyboard: the number it shows is the number that decides.
    page.value("document.querySelector('#threshold').focus()");
    for key in ["End", "ArrowLeft", "ArrowLeft", "Home", "ArrowRight"] {
        page.press(key);
        let shown: f64 =
            page.value("document.querySelector('#threshold-number').value").as_str().unwrap().parse().unwrap();
        let mut moved = line.clone();
        assert!(moved.move_threshold(shown));
        assert_eq!(pairs(&mut page, ".arc[data-pair]"), numbers_of(&moved, |pair| pair.kept), "at {shown}");
    }
    page.check_quiet();
}

#[test]
fn without_all_pairs_the_threshold_only_rises() {
    let mut line = vehicle("one", 4);
    line.pairs.retain(|pair| pair.kept);
    // Also: an edge that prior knowledge requires, pairs that it excludes, and a model that has learned little.
    line.pairs[0].required = true;
    line.pairs[0].strength = 0.06;
    line.excluded = [(0, 3), (1, 4)].map(|(cause, effect)| (Position(cause), Position(effect))).to_vec();
    line.model.held_out_loss = Some(4.08);
    let Some(mut page) = Browser::open(report(std::slice::from_ref(&line)), 1200, 900) else { return };
    assert!(page.text("#controls").contains("it can only rise"));
    assert!(page.text("#timeline-note").contains("2 pairs not tested by prior knowledge"));
    assert_eq!(page.text("#fitness .badge.poor"), "Hardly better than frequencies");
    page.enter("#threshold-number", "0.001");
    assert_eq!(page.count(".arc[data-pair]"), line.pairs.len());
    page.enter("#threshold-number", "0.2");
    let above = line.pairs.iter().filter(|edge| edge.strength > 0.2).count();
    assert_eq!(page.count(".arc[data-pair]"), above + 1, "the required edge stays");
    assert_eq!(page.text("#table tr[data-pair='0'] .tags"), "required");
    page.check_quiet();
}

/// All promoting paths to an event, by brute force, as lists of edges from the root on.
fn paths(line: &ResultLine, event: Position) -> Vec<Vec<&Pair>> {
    let promoting = |edge: &&Pair| edge.kept && edge.log_ratio > 0.0 && edge.effect == event;
    let mut all = Vec::new();
    for edge in line.pairs.iter().filter(promoting) {
        all.push(vec![edge]);
        for mut path in paths(line, edge.cause) {
            path.push(edge);
            all.push(path);
        }
    }
    all
}

/// The chains of an event's roots by the rule of the report, best first.
fn chains(line: &ResultLine, event: Position) -> Vec<Vec<(Position, Position)>> {
    let promoted =
        |position| line.pairs.iter().any(|edge| edge.kept && edge.log_ratio > 0.0 && edge.effect == position);
    let weakest = |path: &[&Pair]| path.iter().map(|edge| edge.strength).fold(f64::INFINITY, f64::min);
    let mut best: Vec<Vec<&Pair>> = Vec::new();
    let mut all: Vec<_> = paths(line, event).into_iter().filter(|path| !promoted(path[0].cause)).collect();
    all.sort_by(|a, b| {
        let steps = |path: &[&Pair]| path.iter().map(|edge| edge.effect).collect::<Vec<_>>();
        weakest(b).total_cmp(&weakest(a)).then(a.len().cmp(&b.len())).then(steps(a).cmp(&steps(b)))
    });
    for path in all {
        if !best.iter().any(|known| known[0].cause == path[0].cause) {
            best.push(path);
        }
    }
    let direct = |root: Position| {
        let edge = line.pairs.iter().find(|edge| edge.kept && edge.cause == root && edge.effect == event);
        edge.filter(|edge| edge.log_ratio > 0.0).map_or(0.0, |edge| edge.strength)
    };
    best.sort_by(|a, b| {
        let roots = (a[0].cause, b[0].cause);
        weakest(b).total_cmp(&weakest(a)).then(direct(roots.1).total_cmp(&direct(roots.0))).then(roots.0.cmp(&roots.1))
    });
    best.iter().map(|path| path.iter().map(|edge| (edge.cause, edge.effect)).collect()).collect()
}

#[test]
fn clicking_an_event_lights_its_causes_effects_and_chains() {
    let line = vehicle("one", 5);
    let Some(mut page) = Browser::open(report(std::slice::from_ref(&line)), 1500, 1000) else { return };
    let mut with_chain = 0;
    for event in [0, 7, 15, 22, 29].map(Position) {
        page.click(&format!("[data-event='{event}'] circle"));
        let chains = chains(&line, event);
        let chained: BTreeSet<(Position, Position)> = chains.iter().flatten().copied().collect();
        let lit = numbers_of(&line, |edge| {
            edge.kept && (edge.cause == event || edge.effect == event || chained.contains(&(edge.cause, edge.effect)))
        });
        assert_eq!(pairs(&mut page, ".arc.lit"), lit, "event {event}");
        let on_chain = numbers_of(&line, |edge| chained.contains(&(edge.cause, edge.effect)));
        assert_eq!(pairs(&mut page, ".arc.chain"), on_chain, "event {event}");
        // The panel names the same roots in the same order, the first ones without asking for more.
        let roots = page
            .value("[...document.querySelectorAll('#panel .chain .root .place')].map((e) => Number(e.textContent))");
        let expected: Vec<u32> = chains.iter().take(4).map(|chain| chain[0].0.0).collect();
        assert_eq!(roots, json!(expected), "event {event}");
        with_chain += usize::from(!chains.is_empty());
        if event == Position(22) {
            page.picture("chosen");
        }
    }
    assert!(with_chain >= 2, "the sample must have chains to be worth testing");
    // An edge, chosen in the table, explains itself and lights alone.
    page.click("#table tbody tr");
    assert_eq!(page.count(".arc.lit"), 1);
    assert!(page.text("#panel").contains("been another event, the probability of"));
    page.press("Escape");
    assert_eq!((page.count(".arc.lit"), page.count(".arc.dim")), (0, 0));
    page.check_quiet();
}

const HOSTILE: [&str; 8] = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror=\"window.hacked = 1\">",
    "comma, \"quotes\" and 'more' & &amp; <b>bold</b>",
    "émoji 🚗👩‍👩‍👧‍👦 \u{202e}turned",
    "{{script}} ${window.hacked = 1} `",
    "new\nline\ttab \u{2028} <!-- ",
    "__proto__",
    "\u{1} control",
];

#[test]
fn hostile_names_come_through_unharmed_and_unexecuted() {
    let long = "x🚗".repeat(2500);
    let events: Vec<String> = HOSTILE.iter().map(|name| (*name).to_owned()).chain([long]).collect();
    let mut line = result("</script><svg onload=alert(1)>", &events, 3, 8);
    assert!(line.move_threshold(0.0));
    let mut other = line.clone();
    other.id = "constructor".to_owned();
    let Some(mut page) = Browser::open(report(&[line, other]), 1300, 900) else { return };
    page.click("#tab-sequence");
    page.picture("hostile");
    for (position, name) in events.iter().enumerate() {
        page.value(&format!(
            "document.querySelector(\"[data-event='{position}']\").dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"
        ));
        page.settle();
        if name.len() > 100 {
            page.click("#panel .link");
        }
        assert_eq!(page.text("#panel .name"), *name);
    }
    assert_eq!(page.text("#picker"), "</script><svg onload=alert(1)>");
    page.enter("#search", "window.hacked");
    assert!(page.text("#controls").contains("3 events found"));
    assert_eq!(page.value("typeof window.hacked"), json!("undefined"));
    assert_eq!(page.count("script"), 2, "the page's own");
    assert_eq!(page.count("img"), 0);
    page.check_quiet();
}

#[test]
fn a_thousand_events_can_be_read_and_travelled() {
    let line = long("long", 1000, 120, 11);
    let kept = line.edges().count();
    let start = Instant::now();
    let Some(mut page) = Browser::open(report(std::slice::from_ref(&line)), 1440, 1000) else { return };
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    page.picture("thousand");
    assert!(page.text("#timeline-note").starts_with("1,000 events"));
    assert!(page.count(".node[data-event]") < 400, "only what is near the window");
    // To the end by key, and all of it by button.
    page.value("document.querySelector('#timeline-box').focus()");
    page.press("End");
    assert_eq!(page.count(".node.chosen[data-event='999']"), 1);
    assert!(page.value("document.querySelector('#timeline-box').scrollLeft").as_f64().unwrap() > 5000.0);
    page.press("Escape");
    page.click("#timeline-tools button:last-child");
    assert_eq!(page.count(".node[data-event]"), 1000);
    assert_eq!(page.count(".arc[data-pair]"), kept.min(1200));
    let before = Instant::now();
    page.enter("#threshold-number", "0");
    assert!(before.elapsed().as_secs() < 20, "{:?}", before.elapsed());
    assert!(page.text("#timeline-note").contains("the 1,200 strongest arcs in view drawn"));
    page.picture("thousand-whole");
    page.check_quiet();
}

#[test]
fn two_hundred_types_stay_legible() {
    let lines: Vec<ResultLine> = (0..6).map(|number| long(&format!("plant {number}"), 400, 200, number)).collect();
    let start = Instant::now();
    let Some(mut page) = Browser::open(report(&lines), 1440, 1000) else { return };
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    page.click("#tab-sequence");
    page.enter("#graph .limit input", "2000");
    let types = page.count("#graph .box");
    assert!(types > 100, "{types}");
    let overlaps = page.value(
        "(() => { const boxes = [...document.querySelectorAll('#graph .box rect')].map((box) => box.getBoundingClientRect()); \
         let overlaps = 0; boxes.forEach((a, i) => boxes.slice(0, i).forEach((b) => { \
         if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) overlaps += 1; })); return overlaps; })()",
    );
    assert_eq!(overlaps, json!(0));
    let wider = page.value(
        "[...document.querySelectorAll('#graph .box')].filter((box) => \
         box.querySelector('text').getBBox().width > box.querySelector('rect').getBBox().width).length",
    );
    assert_eq!(wider, json!(0), "labels wider than their boxes");
    page.click("#graph .graph-tools button:last-child");
    page.picture("types");
    page.check_quiet();
}

#[test]
fn the_population_leads_to_single_sequences() {
    let lines: Vec<ResultLine> = (0..60).map(|number| vehicle(&format!("vehicle {number}"), number)).collect();
    let Some(mut page) = Browser::open(report(&lines), 1440, 1000) else { return };
    page.enter("#cut-number", "0");
    page.picture("population");
    let links = page.count("#population-graph .link");
    assert!(links > 0);
    let rows = page.value("document.querySelector('#population-count').textContent").as_str().unwrap().to_owned();
    assert!(page.text("#claims").contains("merged from results"));
    assert_eq!(rows, format!("{} pairs", page.count("#population-table tbody tr")));
    // Every column sorts, both ways.
    for column in 1..=page.count("#population-table th") {
        let head = format!("#population-table th:nth-child({column}) button");
        page.click(&head);
        page.click(&head);
        assert_eq!(page.count(&format!("#population-table th:nth-child({column})[aria-sort]")), 1);
    }
    // The picker finds a sequence by its name.
    page.click("#tab-sequence");
    page.click("#picker");
    page.type_text("vehicle 7");
    page.press("Enter");
    assert_eq!(page.text("#picker"), "vehicle 7");
    assert_eq!(page.count(".arc[data-pair]"), lines[7].edges().count());
    page.check_quiet();
}

#[test]
fn the_keyboard_is_enough() {
    let line = vehicle("one", 5);
    let Some(mut page) = Browser::open(report(std::slice::from_ref(&line)), 1300, 900) else { return };
    page.value("document.querySelector('#timeline-box').focus()");
    let outline = "getComputedStyle(document.activeElement).outlineStyle";
    page.press("ArrowRight");
    assert_eq!(page.value(outline), json!("solid"), "the focus can be seen");
    for _ in 0..4 {
        page.press("ArrowRight");
    }
    assert_eq!(page.count(".node.chosen[data-event='4']"), 1);
    page.press("ArrowLeft");
    assert_eq!(page.count(".node.chosen[data-event='3']"), 1);
    page.press("/");
    assert_eq!(page.value("document.activeElement.id"), json!("search"));
    page.type_text("misfire");
    let found = line.events.iter().filter(|name| name.to_string().contains("isfire")).count();
    assert_eq!(page.count(".node.match"), found);
    page.press("Enter");
    page.press("Escape"); // the choice
    assert_eq!(page.count(".node.chosen"), 0);
    page.press("Escape"); // the search
    assert_eq!(page.count(".node.match"), 0);
    // Rows of the table.
    page.value("document.querySelector('#table .table-box').focus()");
    page.press("ArrowDown");
    page.press("ArrowDown");
    page.press("Enter");
    let chosen = page.value("document.activeElement.dataset.pair").as_str().unwrap().to_owned();
    assert_eq!(pairs(&mut page, ".arc.lit"), BTreeSet::from([chosen.parse().unwrap()]));
    page.press("Escape");
    // Tab reaches every control without a mouse.
    page.value("document.body.focus()");
    let mut reached = BTreeSet::new();
    for _ in 0..40 {
        page.press("Tab");
        reached.insert(page.value("document.activeElement.id").as_str().unwrap_or_default().to_owned());
    }
    for id in [
        "tab-sequence",
        "theme",
        "picker",
        "threshold",
        "lag-from",
        "least",
        "effect",
        "search",
        "timeline-box",
        "types-view",
    ] {
        assert!(reached.contains(id), "{id}: {reached:?}");
    }
    page.check_quiet();
}

#[test]
fn filters_hide_and_themes_change() {
    let line = vehicle("one", 6);
    let Some(mut page) = Browser::open(report(std::slice::from_ref(&line)), 1300, 900) else { return };
    let shown = |wanted: &dyn Fn(&Pair) -> bool| line.pairs.iter().filter(|edge| edge.kept && wanted(edge)).count();
    page.enter("#least", "0.2");
    assert_eq!(page.count(".arc[data-pair]"), shown(&|edge| edge.strength >= 0.2));
    page.enter("#least", "0");
    let choose = |id: &str, value: &str| {
        format!(
            "(() => {{ const e = document.getElementById('{id}'); e.value = '{value}'; e.dispatchEvent(new Event('change')); }})()"
        )
    };
    page.value(&choose("lag-from", "2"));
    page.value(&choose("effect", "despite"));
    page.settle();
    assert_eq!(page.count(".arc[data-pair]"), shown(&|edge| edge.lag.0 >= 2 && edge.log_ratio < 0.0));
    let paper = "getComputedStyle(document.body).backgroundColor";
    page.click("#theme");
    let light = page.value(paper);
    page.click("#theme");
    assert_ne!(page.value(paper), light);
    page.resize(480, 900);
    page.settle();
    let wide = page.value("document.documentElement.scrollWidth").as_u64().unwrap();
    assert!(wide <= 480, "the page is {wide} wide on a phone");
    page.picture("phone-dark");
    page.click("#tab-about");
    let words = page.value("document.body.innerText").as_str().unwrap().to_owned();
    assert!(words.contains("What is assumed") && words.contains("Causes come first."));
    for slip in ["undefined", "null", "false", "NaN", "[object"] {
        assert!(!words.contains(slip), "{slip} in {words}");
    }
    page.check_quiet();
}
