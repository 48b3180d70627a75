//! Workflows: the oracle against what it samples, the classes of the truth, folders, and texts that are wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::collections::{BTreeMap, BTreeSet};

use trace_core::{Branches, DensityModel, EventId, EventScore, Measure, PlainReading, Reading, Scores};
use trace_models::Description;
use trace_sim::workflow::{
    Case, ClassOptions, Classes, Preset, Question, Specification, TruthClass, Workflow, WorkflowSettings,
};

fn workflow(preset: Preset) -> Workflow {
    Workflow::new(&preset.specification().unwrap(), &WorkflowSettings::default()).unwrap()
}

fn written(text: &str) -> Workflow {
    Workflow::new(&Specification::parse(text).unwrap(), &WorkflowSettings::default()).unwrap()
}

fn classes(workflow: &Workflow) -> Classes {
    workflow.classes(&ClassOptions::new(workflow))
}

/// Probabilities after these events, by name; the end is `END`.
fn next(workflow: &Workflow, past: &[&str]) -> BTreeMap<String, f64> {
    let events: Vec<EventId> = past.iter().map(|name| workflow.event(name).unwrap()).collect();
    let mut row = vec![0.0; workflow.row_size()];
    workflow.forward(&events, events.len()..events.len() + 1, &mut row).unwrap();
    let vocabulary = workflow.vocabulary();
    let name = |id: usize| {
        if id == vocabulary.len() { "END".to_owned() } else { vocabulary.name(EventId(id as u32)).to_string() }
    };
    row.iter().enumerate().map(|(id, log_p)| (name(id), log_p.exp())).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

/// The pairs of a question and class, by name.
fn pairs(workflow: &Workflow, classes: &Classes, question: Question, class: TruthClass) -> BTreeSet<(String, String)> {
    let vocabulary = workflow.vocabulary();
    classes
        .iter()
        .filter(|((_, _, asked), pair)| *asked == question && pair.class == class)
        .map(|((u, v, _), _)| (vocabulary.name(*u).to_string(), vocabulary.name(*v).to_string()))
        .collect()
}

#[test]
fn presets_are_of_the_size_they_are_said_to_be() {
    for (preset, types, least, most) in [
        (Preset::Hospital, 36, 8.0, 40.0),
        (Preset::Business, 38, 8.0, 40.0),
        (Preset::Services, 30, 8.0, 12.0),
        (Preset::LabTests, 7, 5.0, 5.2),
    ] {
        let workflow = workflow(preset);
        assert_eq!(workflow.vocabulary_size(), types, "{preset:?}");
        assert_eq!(workflow.specification().name(), preset.name());
        let cases = workflow.cases(1, 0, 500);
        let mean = cases.iter().map(|case| case.events.len()).sum::<usize>() as f64 / 500.0;
        assert!((least..=most).contains(&mean), "{preset:?}: {mean}");
        let seen: BTreeSet<EventId> = cases.iter().flat_map(|case| case.events.clone()).collect();
        assert_eq!(seen.len(), types, "{preset:?}: a type that never occurs");
    }
}

#[test]
fn rows_are_distributions_and_finite() {
    for preset in Preset::ALL {
        for regularity in [0.0, 0.5, 1.0] {
            let settings = WorkflowSettings { regularity, ..WorkflowSettings::default() };
            let workflow = Workflow::new(&preset.specification().unwrap(), &settings).unwrap();
            let size = workflow.row_size();
            for case in workflow.cases(3, 0, 20) {
                let mut rows = vec![0.0; (case.events.len() + 1) * size];
                workflow.forward(&case.events, 0..case.events.len() + 1, &mut rows).unwrap();
                for row in rows.chunks_exact(size) {
                    assert!((row.iter().map(|log_p| log_p.exp()).sum::<f64>() - 1.0).abs() < 1e-12);
                    assert!(row.iter().all(|log_p| log_p.is_finite()));
                }
                // The end becomes likely where the workflow is over.
                assert!(rows[rows.len() - 1].exp() > 0.1, "{preset:?} {regularity}");
            }
        }
    }
}

/// Over many cases, each event and the end happen as often as the rows promise: what was drawn less what was expected is
/// small against its standard deviation.
#[test]
fn cases_are_drawn_as_the_rows_say() {
    for preset in Preset::ALL {
        let workflow = workflow(preset);
        let size = workflow.row_size();
        let (mut difference, mut variance) = (vec![0.0; size], vec![0.0; size]);
        for Case { mut events, .. } in workflow.cases(11, 0, 3000) {
            let mut rows = vec![0.0; (events.len() + 1) * size];
            workflow.forward(&events, 0..events.len() + 1, &mut rows).unwrap();
            events.extend(workflow.end());
            for (row, event) in rows.chunks_exact(size).zip(&events) {
                for (column, log_p) in row.iter().enumerate() {
                    let p = log_p.exp();
                    difference[column] += f64::from(column == event.index()) - p;
                    variance[column] += p * (1.0 - p);
                }
            }
        }
        for (column, (difference, variance)) in difference.iter().zip(&variance).enumerate() {
            assert!(difference.abs() < 4.5 * variance.sqrt(), "{preset:?} column {column}: {difference} {variance}");
        }
    }
}

#[test]
fn a_reading_gives_what_a_forward_pass_gives() {
    let workflow = workflow(Preset::Hospital);
    let mut events = workflow.case(5, 3).events;
    events.extend(workflow.end());
    let fast = workflow.read(&events).unwrap();
    let plain = PlainReading::new(&workflow, &events).unwrap();
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9 * (1.0 + b.abs());
    let same = |a: &EventScore, b: &EventScore| close(a.log_p, b.log_p) && close(a.log_not_p, b.log_not_p);
    assert!(fast.observed().iter().zip(plain.observed()).all(|(a, b)| same(a, b)));
    let all: Vec<EventId> = (0..workflow.vocabulary_size() as u32).map(EventId).collect();
    let batch = [Branches::new(0, 4, 1, &all), Branches::new(2, events.len() - 3, 2, &all)];
    for measure in [Measure::Event, Measure::Divergence, Measure::Distribution] {
        let (mut a, mut b) = (Scores::default(), Scores::default());
        a.lay_out(&batch, measure, workflow.row_size());
        b.lay_out(&batch, measure, workflow.row_size());
        fast.score(&batch, &mut a).unwrap();
        plain.score(&batch, &mut b).unwrap();
        for (entry, branches) in batch.iter().enumerate() {
            for branch in 0..branches.count() {
                for lag in 1..=branches.horizon() {
                    assert!(same(&a.event(entry, branch, lag), &b.event(entry, branch, lag)));
                    match measure {
                        Measure::Event => {}
                        Measure::Divergence => {
                            assert!(close(a.divergence(entry, branch, lag), b.divergence(entry, branch, lag)));
                        }
                        Measure::Distribution => {
                            let rows = (a.distribution(entry, branch, lag), b.distribution(entry, branch, lag));
                            assert!(rows.0.iter().zip(rows.1).all(|(a, b)| close(*a, *b)));
                        }
                    }
                }
            }
        }
    }
}

const SMALL: &str = r#"
name = "small"
start = "case"
tied = ["note"]
[outcomes]
test = { high = 1, low = 3 }
[blocks.case]
sequence = ["arrival", "note", "work", "maybe", "bye"]
late = { note = 1.0 }
[blocks.work]
parallel = ["test", "rounds"]
[blocks.rounds]
loop = "round"
again = 0.25
most = 2
[blocks.maybe]
once = "extra"
chance = 0.4
[blocks.bye]
choice = { home = 3, ward = 1 }
[[depends]]
cause = "test:high"
effect = "ward"
factor = 3.0
within = 3
"#;

/// By hand: noise 0.02 over eight types, a millionth of it for the end.
#[test]
fn blocks_give_the_probabilities_that_they_say() {
    let workflow = written(SMALL);
    let noise = 0.02 * (1.0 - 1e-6) / 8.0;
    let after = |past: &[&str]| next(&workflow, past);
    assert_eq!(workflow.vocabulary_size(), 8);
    let start = after(&[]);
    assert!(near(start["arrival"], 0.98 + noise) && near(start["END"], 2e-8), "{start:?}");
    // The late note competes with the work, half and half; work is a test or a round.
    let early = after(&["arrival"]);
    assert!(near(early["note"], 0.98 * 0.5 + noise), "{early:?}");
    assert!(near(early["round"], 0.98 * 0.25 + noise));
    assert!(near(early["test:high"], (0.98 * 0.25 + 2.0 * noise) * 0.25), "{early:?}");
    // An event out of order changes nothing but the window of rules.
    assert_eq!(after(&["arrival", "home"]), early);
    // A round was had: it may come again, once, or the test comes.
    let rounds = after(&["arrival", "note", "round"]);
    assert!(near(rounds["round"], 0.98 * 0.25 / 1.25 + noise), "{rounds:?}");
    assert!(near(after(&["arrival", "note", "round", "round"])["round"], noise));
    // Optional, then a choice; the rule triples the odds of the ward, for three events.
    let done = ["arrival", "note", "round", "round", "test:low"];
    let low = after(&done);
    assert!(near(low["extra"], 0.98 * 0.4 + noise) && near(low["ward"], 0.98 * 0.6 * 0.25 + noise), "{low:?}");
    let high = after(&["arrival", "note", "round", "round", "test:high"]);
    let total = 0.4 + 0.6 * 0.75 + 0.6 * 0.25 * 3.0;
    assert!(near(high["ward"], 0.98 * 0.45 / total + noise), "{high:?}");
    let past = after(&["arrival", "note", "round", "test:high", "round", "extra", "extra", "extra"]);
    assert!(near(past["ward"], 0.98 * 0.25 + noise) && near(past["extra"], noise), "{past:?}");
    // Over.
    let over = after(&["arrival", "note", "round", "round", "test:low", "home"]);
    assert!(near(over["END"], 0.98 + 2e-8) && near(over["home"], noise), "{over:?}");
}

#[test]
fn regularity_moves_choices_from_even_to_certain() {
    let specification = Specification::parse(SMALL).unwrap();
    let ward = |regularity| {
        let settings = WorkflowSettings { regularity, ..WorkflowSettings::default() };
        let workflow = Workflow::new(&specification, &settings).unwrap();
        let row = next(&workflow, &["arrival", "note", "round", "round", "test:low", "extra"]);
        (row["ward"] / 0.98 * 100.0).round()
    };
    assert_eq!([0.0, 0.5, 0.75, 1.0].map(ward), [50.0, 25.0, 4.0, 0.0]);
}

#[test]
fn times_increase_but_for_tied_bookings() {
    let workflow = workflow(Preset::Business);
    let tied = ["file note", "fee booking", "status mail"].map(|name| workflow.event(name).unwrap());
    let mut equal = 0;
    for case in workflow.cases(2, 0, 200) {
        assert_eq!(case.events.len(), case.times.len());
        for (times, event) in case.times.windows(2).zip(&case.events[1..]) {
            assert!(if tied.contains(event) { times[0] == times[1] } else { times[0] < times[1] });
            equal += usize::from(times[0] == times[1]);
        }
    }
    assert!(equal > 400, "{equal}");
}

#[test]
fn a_seed_decides_every_case() {
    let workflow = workflow(Preset::Hospital);
    let all = workflow.cases(4, 0, 50);
    assert_eq!(workflow.cases(4, 10, 5), all[10..15]);
    assert_eq!(self::workflow(Preset::Hospital).cases(4, 0, 50), all);
    assert_ne!(workflow.case(5, 0), all[0]);
}

#[test]
fn lab_tests_do_not_cause_each_other() {
    let workflow = workflow(Preset::LabTests);
    let classes = classes(&workflow);
    assert_eq!(classes.len(), 42);
    for pair in classes.values() {
        assert_eq!(pair.class, TruthClass::Null);
        assert!(pair.log_ratio.unwrap().abs() < 0.01, "{pair:?}");
    }
}

#[test]
fn designed_pairs_are_those_of_the_rules() {
    for preset in [Preset::Hospital, Preset::Business, Preset::Services] {
        let workflow = workflow(preset);
        let classes = classes(&workflow);
        let vocabulary = workflow.vocabulary();
        let rules = workflow.specification().rules();
        // No rule of these has a step with outcomes for its effect.
        let expected: BTreeSet<(String, String)> =
            rules.iter().map(|rule| (rule.cause.clone(), rule.effect.clone())).collect();
        assert_eq!(pairs(&workflow, &classes, Question::Whether, TruthClass::Designed), expected, "{preset:?}");
        for rule in rules {
            let id = |name: &str| workflow.event(name).unwrap();
            let pair = &classes[&(id(&rule.cause), id(&rule.effect), Question::Whether)];
            let ratio = pair.log_ratio.unwrap();
            assert!(ratio.abs() > 0.2 && (ratio > 0.0) == (rule.factor > 1.0), "{rule:?}: {ratio}");
        }
        // How a step turns out depends on rules alone: nothing is a matter of order.
        assert!(pairs(&workflow, &classes, Question::How, TruthClass::Order).is_empty());
        let step = |name: &str| name.split_once(':').map(|(step, _)| step.to_owned());
        let linked = |(cause, effect): (String, String)| Some((step(&cause)?, step(&effect)?));
        let found: BTreeSet<_> = pairs(&workflow, &classes, Question::How, TruthClass::Designed)
            .into_iter()
            .map(|pair| linked(pair).unwrap())
            .collect();
        let expected: BTreeSet<_> = expected.into_iter().filter_map(linked).collect();
        assert_eq!(found, expected, "{preset:?}");
        assert!(!found.is_empty());
        // Both kinds of what is not designed exist, and an order of steps is one.
        let order = pairs(&workflow, &classes, Question::Whether, TruthClass::Order);
        let null = pairs(&workflow, &classes, Question::Whether, TruthClass::Null);
        assert!(order.len() > 100 && null.len() > 100, "{preset:?}: {} {}", order.len(), null.len());
        let worst = classes
            .iter()
            .filter(|((_, _, question), pair)| *question == Question::Whether && pair.class == TruthClass::Null)
            .map(|(_, pair)| pair.log_ratio.unwrap_or(0.0).abs())
            .fold(0.0, f64::max);
        assert!(worst < 0.1, "{preset:?}: {worst} nats over {} types", vocabulary.len());
    }
}

#[test]
fn the_null_version_keeps_the_steps_and_has_no_design() {
    for preset in [Preset::Hospital, Preset::Services] {
        let settings = WorkflowSettings { null: true, ..WorkflowSettings::default() };
        let null = Workflow::new(&preset.specification().unwrap(), &settings).unwrap();
        assert_eq!(null.vocabulary(), workflow(preset).vocabulary());
        let classes = classes(&null);
        for question in [Question::Whether, Question::How] {
            assert!(pairs(&null, &classes, question, TruthClass::Designed).is_empty());
        }
        assert!(pairs(&null, &classes, Question::How, TruthClass::Order).is_empty());
        assert!(!pairs(&null, &classes, Question::Whether, TruthClass::Order).is_empty());
        let edges: usize = null.cases(1, 0, 20).iter().map(|case| null.true_edges(&case.events, 8).len()).sum();
        assert!(edges > 0);
    }
}

#[test]
fn true_edges_of_a_request() {
    let workflow = workflow(Preset::Services);
    let names = [
        "auth:ok",
        "pricing:5xx",
        "catalog:5xx",
        "inventory:ok",
        "cart:ok",
        "payments:ok",
        "shipping:ok",
        "checkout:ok",
    ];
    let events: Vec<EventId> = names.iter().map(|name| workflow.event(name).unwrap()).collect();
    let edges = workflow.true_edges(&events, 12);
    let how: BTreeSet<(u32, u32)> =
        edges.iter().filter(|edge| edge.question == Question::How).map(|edge| (edge.cause.0, edge.effect.0)).collect();
    // A callee and its caller, and nothing else: pricing → catalog, inventory → cart, payments and shipping → checkout.
    assert_eq!(how, BTreeSet::from([(1, 2), (3, 4), (5, 7), (6, 7)]));
    let designed: Vec<(u32, u32)> = edges
        .iter()
        .filter(|edge| edge.question == Question::Whether && edge.class == TruthClass::Designed)
        .map(|edge| (edge.cause.0, edge.effect.0))
        .collect();
    assert_eq!(designed, [(1, 2)]);
    assert!(edges.iter().all(|edge| edge.strength > 0.05 && edge.cause < edge.effect));
}

#[test]
fn a_folder_gives_the_same_workflow_back() {
    let folder = tempfile::tempdir().unwrap();
    let settings = WorkflowSettings { noise: 0.05, regularity: 0.7, null: false };
    let mut workflow = Workflow::new(&Preset::Hospital.specification().unwrap(), &settings).unwrap();
    workflow.measure_entropy();
    workflow.save(folder.path(), &serde_json::Map::new()).unwrap();
    let description = Description::read(folder.path()).unwrap();
    assert!(trace_sim::is_process(&description));
    let opened = trace_sim::open(description).unwrap();
    let events = workflow.case(1, 0).events;
    let rows = |model: &dyn DensityModel| {
        let mut rows = vec![0.0; (events.len() + 1) * model.row_size()];
        model.forward(&events, 0..events.len() + 1, &mut rows).unwrap();
        rows
    };
    assert_eq!(rows(&workflow), rows(&*opened.model));
    assert_eq!(opened.vocabulary, workflow.vocabulary());
    assert_eq!(opened.model.fitness(), workflow.fitness());
    assert!(opened.model.predicts_end() && opened.model.predicts_first());
    assert_eq!(opened.parameters, workflow.parameters());
    // The text decides: another one is another model.
    let path = folder.path().join("workflow.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("factor = 10.0", "factor = 9.0")).unwrap();
    let other = trace_sim::open(Description::read(folder.path()).unwrap()).unwrap();
    assert_ne!(other.fingerprint, opened.fingerprint);
    for (file, from, to, said) in [
        ("workflow.toml", "start = \"patient\"", "start = \"nobody\"", "workflow.toml: start: there is no block"),
        ("workflow.toml", "ultrasound", "x-ray", "workflow.toml: "),
        ("config.json", "0.05", "7", "config.json: noise: 7 is out of range"),
        ("config.json", "\"vocab_size\": 36", "\"vocab_size\": 35", "config.json says 35"),
    ] {
        let path = folder.path().join(file);
        let before = std::fs::read_to_string(&path).unwrap();
        assert!(before.contains(from), "{from}");
        std::fs::write(&path, before.replacen(from, to, 1)).unwrap();
        let complaint = trace_sim::open(Description::read(folder.path()).unwrap()).map(|_| ()).unwrap_err().to_string();
        assert!(complaint.contains(said), "{complaint}");
        std::fs::write(&path, before).unwrap();
    }
}

/// What is said to a text, with one thing in it replaced.
fn complaint(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    let said = Specification::parse(&SMALL.replacen(from, to, 1))
        .and_then(|specification| Workflow::new(&specification, &WorkflowSettings::default()));
    said.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn texts_that_are_wrong() {
    for (from, to, said) in [
        ("cause = \"test:high\"", "cause = \"tets:high\"", "there is no step \"tets\""),
        ("cause = \"test:high\"", "cause = \"test\"", "expected one of its outcomes [\"high\", \"low\"]"),
        ("cause = \"test:high\"", "cause = \"test:hihg\"", "step \"test\" has no outcome \"hihg\""),
        ("effect = \"ward\"", "effect = \"bye\"", "there is no step \"bye\""),
        ("factor = 3.0", "factor = -3.0", "factor: -3 is out of range"),
        ("factor = 3.0", "factor = nan", "factor: NaN is out of range"),
        ("within = 3", "within = 0", "within: 0 is out of range"),
        ("within = 3", "within = 3\nwithout = 4", "unknown field `without`"),
        ("home = 3", "home = -3", "block \"bye\": \"home\": -3 is out of range"),
        ("home = 3", "home = inf", "inf is out of range"),
        ("high = 1", "high = 0", "outcome \"high\" of \"test\": 0 is out of range"),
        ("high = 1, low = 3", "high = 1", "outcomes of \"test\": expected at least 2"),
        ("again = 0.25", "again = 1.0", "again: 1 is out of range"),
        ("again = 0.25\n", "", "again is missing"),
        ("most = 2", "most = 1000000", "most: 1000000 is out of range"),
        ("chance = 0.4", "chance = 0", "chance: 0 is out of range"),
        ("chance = 0.4", "chance = 0.4\npick = 1", "pick belongs to a parallel, not to a once"),
        ("once = \"extra\"", "once = \"extra\"\nsequence = [\"a\"]", "found [\"sequence\", \"once\"]"),
        ("parallel = [\"test\", \"rounds\"]", "parallel = []", "expected a parallel of something"),
        ("\"rounds\"]", "\"rounds\"]\npick = 3", "pick: 3 is out of range; expected 1 to 2"),
        ("loop = \"round\"", "loop = \"work\"", "block \"work\" is part of itself"),
        ("start = \"case\"", "start = \"cases\"", "there is no block \"cases\""),
        ("start = \"case\"", "start = \"maybe\"", "block \"case\" is part of no other block"),
        ("tied = [\"note\"]", "tied = [\"nose\"]", "tied: \"nose\" is a step of no block"),
        ("test = {", "toast = {", "outcomes of \"toast\", which is a step of no block"),
        ("late = { note", "late = { nose", "late \"nose\": expected a part of the sequence"),
        ("late = { note", "late = { bye", "late \"bye\": expected a part of the sequence that others follow"),
        ("once = \"extra\"", "once = \"ex:tra\"", "step \"ex:tra\": expected a short name without colon"),
        ("once = \"extra\"", "once = \"ex,tra\"", "expected a short name without colon, comma and quote"),
        ("name = \"small\"", "", "missing field `name`"),
        ("name = \"small\"", "name = ", "TOML parse error at line 2"),
    ] {
        let complaint = complaint(from, to);
        assert!(complaint.contains(said) && complaint.starts_with("spec: "), "{to}: {complaint}");
    }
    let whole = |blocks: &str| {
        let specification = Specification::parse(&format!("name = \"x\"\nstart = \"a\"\n{blocks}"))?;
        Workflow::new(&specification, &WorkflowSettings::default()).map(|_| ())
    };
    for (blocks, said) in [
        ("[blocks.a]\nchoice = { b = 1, c = 1, nothing = 1 }", "a case could end before anything happens"),
        (
            "[blocks.a]\nparallel = [\"b\", \"c\", \"d\"]\npick = 2\n[blocks.d]\nonce = \"e\"\nchance = 0.5",
            "part 3 of a parallel block is optional",
        ),
        ("[blocks.a]\nsequence = [\"b\"]", "1 event types; expected 2 to 500"),
    ] {
        let complaint = whole(blocks).unwrap_err().to_string();
        assert!(complaint.contains(said), "{complaint}");
    }
}

#[test]
fn texts_that_are_huge() {
    let make = |text: &str| {
        let specification = Specification::parse(text)?;
        Workflow::new(&specification, &WorkflowSettings::default()).map(|_| ())
    };
    // Blocks that double: 2^40 parts.
    let mut text = "name = \"x\"\nstart = \"b0\"\n".to_owned();
    for level in 0..40 {
        let below = if level == 39 { "step".to_owned() } else { format!("b{}", level + 1) };
        text += &format!("[blocks.b{level}]\nsequence = [\"{below}\", \"{below}\", \"other\"]\n");
    }
    assert!(make(&text).unwrap_err().to_string().contains("more than 4096 parts"));
    // Loops of loops.
    let mut text = "name = \"x\"\nstart = \"b0\"\n".to_owned();
    for level in 0..30 {
        let below = if level == 29 { "pair".to_owned() } else { format!("b{}", level + 1) };
        text += &format!("[blocks.b{level}]\nloop = \"{below}\"\nagain = 0.5\nmost = 100\n");
    }
    text += "[blocks.pair]\nsequence = [\"a\", \"b\"]\n";
    let said = make(&text).unwrap_err().to_string();
    assert!(said.contains("events; expected at most 1000"), "{said}");
    // Deep, many, long.
    let mut text = "name = \"x\"\nstart = \"b0\"\n".to_owned();
    for level in 0..100 {
        text += &format!("[blocks.b{level}]\nsequence = [\"b{}\", \"s\"]\n", level + 1);
    }
    assert!(make(&text).unwrap_err().to_string().contains("nested more than 64 deep"));
    let steps: Vec<String> = (0..501).map(|step| format!("\"s{step}\"")).collect();
    let text = format!("name = \"x\"\nstart = \"a\"\n[blocks.a]\nchoice = {{ {} = 1 }}\n", steps.join(" = 1, "));
    assert!(make(&text).unwrap_err().to_string().contains("501 event types; expected 2 to 500"));
    assert!(make(&"#".repeat(1 << 19)).unwrap_err().to_string().contains("bytes are too many for a workflow"));
    assert!(make("a = [[[[").is_err());
}

#[test]
fn settings_that_are_wrong() {
    let specification = Preset::LabTests.specification().unwrap();
    for (noise, regularity, said) in [
        (0.0, 0.5, "noise: 0 is out of range; expected a share from 0.0001 to 0.5"),
        (f64::NAN, 0.5, "noise: NaN is out of range"),
        (0.02, 1.5, "regularity: 1.5 is out of range; expected a number from 0 to 1"),
    ] {
        let settings = WorkflowSettings { noise, regularity, null: false };
        let complaint = Workflow::new(&specification, &settings).map(|_| ()).unwrap_err().to_string();
        assert!(complaint.contains(said), "{complaint}");
    }
}

/// The example of the manual is a workflow.
#[test]
fn the_example_of_the_manual_runs() {
    let page = include_str!("../../../docs/reference/simulators.md");
    let text = page.split_once("```toml\n").unwrap().1.split_once("```").unwrap().0;
    let workflow = written(text);
    assert_eq!(workflow.specification().name(), "ward");
    let found = pairs(&workflow, &classes(&workflow), Question::Whether, TruthClass::Designed);
    assert_eq!(found, BTreeSet::from([("lab test:high".to_owned(), "intensive care".to_owned())]));
    for preset in Preset::ALL {
        assert!(page.contains(&format!("| `{}` | {} |", preset.name(), self::workflow(preset).vocabulary_size())));
    }
}
