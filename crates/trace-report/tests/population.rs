//! Claims about populations, and what cannot be tested, in a real browser.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod support;

use serde_json::{Value, json};
use support::browser::Browser;
use support::sample::{population, report_with, result, type_pair, vehicle};
use trace_core::{Pair, Question};
use trace_io::result::ResultLine;

/// The values of the slider of q-values.
const Q_STEPS: [f64; 19] =
    [1e-12, 1e-9, 1e-6, 1e-5, 1e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0];

/// Pairs of every kind: ratios and q-values that differ, and one pair for each toggle.
fn pairs() -> Vec<Value> {
    let nothing = json!({});
    vec![
        type_pair("Arrival", "Triage", 8.0, 1e-7, &nothing),
        type_pair("Triage", "Blood test", 3.2, 0.004, &json!({"sequences": 40})),
        type_pair("Blood test", "Release", 2.0, 0.04, &json!({"sequences": 12})),
        type_pair("Triage", "X-ray", 1.3, 0.08, &nothing),
        type_pair("X-ray", "Release", 1.6, 0.17, &nothing),
        type_pair("Arrival", "X-ray", 1.05, 0.9, &nothing),
        type_pair("Release", "X-ray", 0.25, 0.001, &nothing),
        type_pair("Blood test", "Blood test", 4.0, 0.01, &nothing),
        type_pair("Arrival:late", "Triage:slow", 2.5, 0.02, &json!({"question": "how"})),
        type_pair(
            "Arrival",
            "Blood test",
            1.0,
            0.5,
            &json!({"verdict": "untestable", "p_value": null, "q_value": null, "sequences": 0, "opportunities": 0,
                    "kept_count": 0, "overlap": 0.001, "tied": 0.0, "lags": {}}),
        ),
        type_pair(
            "Arrival",
            "Bed 7",
            1.0,
            0.5,
            &json!({"verdict": "untestable", "p_value": null, "q_value": null, "sequences": 2, "opportunities": 2,
                    "places": 2, "tied": 0.0}),
        ),
    ]
}

/// Moves a slider to one of its places.
fn slide(page: &mut Browser, id: &str, place: usize) {
    page.value(&format!(
        "(() => {{ const e = document.getElementById('{id}'); e.value = {place}; e.dispatchEvent(new Event('input')); }})()"
    ));
    page.settle();
}

fn choose(page: &mut Browser, id: &str, value: &str) {
    page.value(&format!(
        "(() => {{ const e = document.getElementById('{id}'); e.value = '{value}'; e.dispatchEvent(new Event('change')); }})()"
    ));
    page.settle();
}

/// How many pairs are drawn and listed.
fn shown(page: &mut Browser) -> (usize, usize) {
    (page.count("#population-graph .link"), page.count("#population-table tbody tr"))
}

#[test]
fn filters_decide_what_is_drawn_and_listed() {
    let file = population(&pairs(), true);
    let Some(mut page) = Browser::open(report_with(&file, &[]), 1440, 1000) else { return };
    page.picture("evidence");
    let kept = file.edges().filter(|pair| pair.cause != pair.effect).count();
    assert_eq!(shown(&mut page), (kept, kept), "what the file keeps");
    assert_eq!(page.count("#cut"), 0, "no score where there is evidence");
    let promoting = |q: f64, ratio: f64, sequences: u64| {
        let wanted = file.pairs.iter().filter(|pair| pair.cause != pair.effect && pair.sequences >= sequences.max(5));
        wanted.filter(|pair| pair.ratio > ratio && pair.q_value.is_some_and(|own| q >= 1.0 || own <= q)).count()
    };
    for (place, q) in Q_STEPS.into_iter().enumerate() {
        slide(&mut page, "q", place);
        let expected = promoting(q, 1.2, 0);
        assert_eq!(shown(&mut page), (expected, expected), "q-values up to {q}");
    }
    assert_eq!(page.text("#q-shown"), "all");
    assert!(page.text("#population-controls").contains("No error rate holds"));
    for place in 0..4 {
        slide(&mut page, "least-ratio", place);
        let ratio: f64 = page.text("#least-ratio-shown").trim_end_matches(" times").parse().unwrap();
        assert_eq!(shown(&mut page).0, promoting(1.0, ratio, 0), "ratios above {ratio}");
    }
    assert!(page.text("#population-controls").contains("q-values are for a ratio above 1.2"));
    slide(&mut page, "least-ratio", 0);
    for place in [2, 5, 0] {
        slide(&mut page, "least-sequences", place);
        let least: u64 = page.text("#least-sequences-shown").parse().unwrap();
        assert_eq!(shown(&mut page).0, promoting(1.0, 1.2, least), "{least} sequences at least");
    }
    page.check_quiet();
}

#[test]
fn a_page_says_what_is_claimed_and_what_is_not() {
    let Some(mut page) = Browser::open(report_with(&population(&pairs(), true), &[]), 1440, 1000) else { return };
    let words = page.text("#claims");
    for part in [
        "Of 10 pairs of types, 5 are kept",
        "At most 10\u{202f}% of these are expected to be false",
        "1 pair inhibits",
        "are tested apart: 1 of 1 is kept",
        "2 pairs cannot be tested",
        "1 is always so here",
        "900 sequences that the model had not seen",
        "100 more it was trained on",
        "loses 1.90 nats per event; plain frequencies lose 4.10",
        "seen by no test of this kind",
        "explain the pair away",
    ] {
        assert!(words.contains(part), "{part} in {words}");
    }
    // The table and the panel name verdicts, ratios and the rest.
    let table = page.text("#population-table");
    assert!(table.contains("promotes") && !table.contains("inhibits") && !table.contains("always so here"), "{table}");
    let row = page.value(
        "[...document.querySelectorAll('#population-table tbody tr')].find((row) => row.textContent.includes('TriageBlood')).dataset.edge",
    );
    page.click(&format!("#population-table tr[data-edge='{}']", row.as_str().unwrap()));
    let panel = page.text("#population-panel");
    for part in
        ["3.2 times as likely", "promotes", "q-value0.004", "p-value, one-sided4.0·10⁻⁴", "20\u{202f}%", "75\u{202f}%"]
    {
        assert!(panel.contains(part), "{part} in {panel}");
    }
    assert!(panel.contains("Hidden-cause ratio") && panel.contains("near 1, very little is enough"));
    page.click("#tab-about");
    assert!(page.value("document.body.innerText").as_str().unwrap().contains("Always so here"));
    page.check_quiet();
}

#[test]
fn toggles_show_what_is_apart() {
    let Some(mut page) = Browser::open(report_with(&population(&pairs(), true), &[]), 1440, 1000) else { return };
    let before = shown(&mut page);
    page.click("#show-inhibits");
    assert_eq!(shown(&mut page), (before.0 + 1, before.1 + 1));
    assert_eq!(page.count("#population-graph .link.despite"), 1);
    let dashes = "getComputedStyle(document.querySelector('#population-graph .link.despite')).strokeDasharray";
    assert_ne!(page.value(dashes), json!("none"));
    assert!(page.text("#population-panel").contains("Inhibiting pairs"));
    page.click("#show-inhibits");
    page.click("#show-own");
    assert_eq!(shown(&mut page), (before.0 + 1, before.1 + 1));
    page.click("#show-own");
    // What cannot be tested is listed, never drawn.
    page.click("#show-untestable");
    assert_eq!(shown(&mut page), (before.0, before.1 + 2));
    let note = page.text("#population-count");
    assert!(note.contains("Always so here: the log cannot say what would have happened otherwise"), "{note}");
    let table = page.text("#population-table");
    assert!(table.contains("always so here") && table.contains("too rare"), "{table}");
    page.picture("untestable");
    page.click("#population-table tr.unclaimed");
    assert!(page.text("#population-panel").contains("always so here: the log cannot say"));
    page.click("#show-untestable");
    // Whether and how.
    assert_eq!(page.text("#population-graph .question"), "how");
    choose(&mut page, "population-question", "how");
    assert_eq!(shown(&mut page), (1, 1));
    assert!(page.text("#population-table").contains("Arrival:late"));
    choose(&mut page, "population-question", "whether");
    assert_eq!(shown(&mut page), (before.0 - 1, before.1 - 1));
    assert_eq!(page.count("#population-graph .question"), 0);
    page.resize(390, 844);
    page.settle();
    let wide = page.value("document.documentElement.scrollWidth").as_u64().unwrap();
    assert!(wide <= 390, "the page is {wide} wide on a phone");
    page.picture("evidence-phone");
    page.check_quiet();
}

#[test]
fn without_p_values_the_score_decides_and_the_page_says_why() {
    let file = population(&pairs(), false);
    let Some(mut page) = Browser::open(report_with(&file, &[]), 1440, 1000) else { return };
    assert_eq!((page.count("#q"), page.count("#cut")), (0, 1));
    let words = page.text("#claims");
    assert!(words.contains("There are no p-values, and no error rate holds."), "{words}");
    assert!(words.contains("trained on all 1,000 sequences") && words.contains("train --cross-fit"), "{words}");
    for cut in [0.3, 1.0, 0.05] {
        page.enter("#cut-number", &cut.to_string());
        let above = |pair: &&trace_core::PopulationPair<_>| pair.score > cut && pair.sequences >= 5;
        let expected = file.pairs.iter().filter(|pair| pair.cause != pair.effect).filter(above).count();
        assert_eq!(shown(&mut page), (expected, expected), "scores above {cut}");
    }
    page.check_quiet();
}

/// A case with its end, a pair that cannot be tested and one about outcomes.
fn case() -> ResultLine {
    let events = ["Arrival", "Triage", "Blood test", "Release", "[end]"].map(str::to_owned);
    let mut line = result("case 1", &events, 2, 3);
    let decide = |pair: &mut Pair, strength: f64, overlap: f64| {
        (pair.strength, pair.overlap) = (strength, Some(overlap));
        *pair = pair.decided(0.05);
    };
    for pair in &mut line.pairs {
        let strong = pair.lag.0 == 1;
        decide(pair, if strong { 0.8 } else { 0.01 }, 0.6);
        pair.log_ratio = (pair.probability / pair.probability_replaced).ln();
    }
    let into = |line: &ResultLine, effect: u32, lag: u32| {
        line.pairs.iter().position(|pair| pair.effect.0 == effect && pair.lag.0 == lag).unwrap()
    };
    let never = into(&line, 3, 2);
    decide(&mut line.pairs[never], 0.9, 0.002);
    let how = into(&line, 2, 1);
    line.pairs[how].question = Question::How;
    line
}

#[test]
fn a_sequence_draws_no_edge_where_it_was_always_so() {
    let line = case();
    let Some(mut page) =
        Browser::open(report_with(&population(&pairs(), true), std::slice::from_ref(&line)), 1440, 1000)
    else {
        return;
    };
    page.click("#tab-sequence");
    assert_eq!(page.count(".arc[data-pair]"), 4);
    page.enter("#threshold-number", "0");
    assert_eq!(page.count(".arc[data-pair]"), line.pairs.len() - 1, "no threshold makes it an edge");
    page.enter("#threshold-number", "0.05");
    page.click("[data-event='3'] circle");
    let panel = page.text("#panel");
    assert!(panel.contains("Always so here") && panel.contains("the log cannot say what would have"), "{panel}");
    assert_eq!(page.count("#panel [data-untestable]"), 1);
    assert!(page.text("#panel [data-untestable]").contains("Triage"));
    page.picture("always-so");
    // The end of the case.
    page.click("[data-event='4'] circle");
    assert_eq!(page.text("#panel .name"), "end of the case");
    assert_eq!(page.count(".node.end"), 1);
    // Percentages, ratio and sign agree.
    let pair = line.pairs.iter().position(|pair| pair.effect.0 == 4 && pair.lag.0 == 1).unwrap();
    page.click(&format!("#table tr[data-pair='{pair}']"));
    let panel = page.text("#panel");
    let Pair { probability, probability_replaced, .. } = line.pairs[pair];
    let ratio = probability / probability_replaced;
    let words = format!("{ratio:.*} times as likely", if ratio < 1.0 { 2 } else { usize::from(ratio < 10.0) });
    assert!(panel.contains(&words), "{words} in {panel}");
    assert!(panel.contains("the end of the case") && panel.contains("Hidden-cause ratio"), "{panel}");
    assert!(panel.contains("Room for anything else (overlap)60"), "{panel}");
    // Outcomes.
    choose(&mut page, "question", "how");
    assert_eq!(page.count(".arc[data-pair]"), 1);
    page.click("#table tbody tr");
    assert!(page.text("#panel").contains("turned out otherwise"));
    choose(&mut page, "question", "whether");
    assert_eq!(page.count(".arc[data-pair]"), 3);
    page.check_quiet();
}

#[test]
fn hostile_types_are_only_text() {
    let names =
        ["</script><script>window.hacked = 1</script>", "<img src=x onerror=\"window.hacked = 1\">", "__proto__"];
    let mut all = vec![
        type_pair(names[0], names[1], 3.0, 0.01, &json!({})),
        type_pair(names[1], names[2], 0.2, 0.01, &json!({})),
        type_pair(names[2], names[0], 2.0, 0.01, &json!({"question": "how"})),
    ];
    all.push(type_pair(
        names[0],
        names[2],
        1.0,
        0.5,
        &json!({"verdict": "untestable", "opportunities": 0, "tied": 0.0}),
    ));
    let Some(mut page) = Browser::open(report_with(&population(&all, true), &[vehicle("one", 1)]), 1300, 900) else {
        return;
    };
    page.click("#show-inhibits");
    page.click("#show-untestable");
    assert_eq!(shown(&mut page), (3, 4));
    for row in 0..4 {
        page.click(&format!("#population-table tr[data-edge='{row}']"));
        assert!(page.text("#population-panel .name").contains('→'));
    }
    assert_eq!(page.value("typeof window.hacked"), json!("undefined"));
    assert_eq!((page.count("script"), page.count("img")), (2, 0));
    page.check_quiet();
}
