//! What goes wrong on real, regular logs, each on a simulated log with a trained model, and that it does not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::fmt::Write;
use std::path::Path;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;
use trace_causal::{
    Backbone, Discover, EventName, Found, Log, LogOptions, Model, Pair, Population, Question, ResultLine, Shaping,
    Train, Verdict,
};

/// A log of cases, which a model is trained on by halves, so that every case has a model that has not seen it.
struct Workplace {
    log: Log,
    model: Model,
    _folder: TempDir,
}

/// One row per event: case, time, event.
fn write(path: &Path, cases: &[Vec<(f64, String)>]) {
    let mut text = "case_id,time,event\n".to_owned();
    for (number, case) in cases.iter().enumerate() {
        for (time, event) in case {
            writeln!(text, "c{number},{time},{event}").unwrap();
        }
    }
    std::fs::write(path, text).unwrap();
}

/// Events one hour apart.
fn hourly(events: impl IntoIterator<Item = String>) -> Vec<(f64, String)> {
    events.into_iter().enumerate().map(|(hour, event)| (3600.0 * hour as f64, event)).collect()
}

impl Workplace {
    fn new(cases: &[Vec<(f64, String)>]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        write(&path, cases);
        let log = Log::open(&path).unwrap();
        let model = Train::new().backbone(Backbone::Ngram).cross_fit(true).to_folder(folder.path().join("model"));
        let model = model.run(&log).unwrap();
        Self { log, model, _folder: folder }
    }

    fn found(&self, memory: usize) -> Found {
        Discover::new(&self.model).memory(memory).all_pairs(true).run(&self.log).unwrap()
    }
}

fn lines(found: &Found) -> Vec<ResultLine> {
    found.lines().unwrap().map(Result::unwrap).collect()
}

fn population(found: &Found) -> &Population {
    found.population().unwrap()
}

/// Kept pairs of different types.
fn kept(population: &Population) -> Vec<(String, String)> {
    let edges = population.edges().filter(|pair| pair.cause != pair.effect);
    edges.map(|pair| (pair.cause.to_string(), pair.effect.to_string())).collect()
}

fn shuffled(random: &mut impl Rng, mut items: Vec<String>) -> Vec<String> {
    for i in (1..items.len()).rev() {
        items.swap(i, random.random_range(0..=i));
    }
    items
}

/// What people read must agree: percentages, ratio, sign and verdict.
fn check_signs(lines: &[ResultLine]) -> usize {
    let mut edges = 0;
    for pair in lines.iter().flat_map(|line| &line.pairs) {
        let Pair { probability, probability_replaced, log_ratio, verdict, kept, .. } = *pair;
        assert!((log_ratio - (probability / probability_replaced).ln()).abs() < 1e-6, "{pair:?}");
        match verdict {
            Verdict::Promotes => assert!(probability > probability_replaced && kept, "{pair:?}"),
            Verdict::Inhibits => assert!(probability < probability_replaced && kept, "{pair:?}"),
            _ => assert!(!kept, "{pair:?}"),
        }
        edges += usize::from(kept);
    }
    edges
}

#[test]
fn lab_tests_in_any_order_do_not_cause_each_other() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let cases: Vec<_> = (0..6000)
        .map(|_| {
            let tests = shuffled(&mut random, (0..7).map(|test| format!("test {test}")).collect());
            hourly(tests.into_iter().take(5))
        })
        .collect();
    let found = Workplace::new(&cases).found(4);
    let population = population(&found);
    assert!(population.has_evidence());
    assert_eq!(population.counts().tested, 42);
    assert_eq!(kept(population), []);
    // None of them twice: a test makes itself impossible, which is a statement about the pair with itself.
    let own = population.pairs.iter().filter(|pair| pair.cause == pair.effect);
    assert!(own.clone().all(|pair| !pair.kept), "{:?}", own.collect::<Vec<_>>());
    // The effect sizes are those of nothing at all, too.
    let ratios = population.pairs.iter().filter(|pair| pair.cause != pair.effect).map(|pair| pair.mean_log_ratio);
    assert!(ratios.clone().all(|ratio| ratio.abs() < 0.15), "{:?}", ratios.collect::<Vec<_>>());
    check_signs(&lines(&found));
}

#[test]
fn what_always_follows_is_certain_with_its_cause_and_impossible_without() {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let cases: Vec<_> = (0..800)
        .map(|_| {
            let pairs = (0..5).map(|_| if random.random::<f64>() < 0.5 { ["A", "P"] } else { ["B", "Q"] });
            hourly(pairs.flatten().map(str::to_owned).collect::<Vec<_>>())
        })
        .collect();
    let at = Workplace::new(&cases);
    let found = at.found(2);
    let lines = lines(&found);
    let name = |line: &ResultLine, position: usize| line.events[position].to_string();
    let mut seen = 0;
    for line in &lines {
        for pair in line.pairs.iter().filter(|pair| pair.lag.0 == 1) {
            if (name(line, pair.cause.index()), name(line, pair.effect.index())) == ("A".into(), "P".into()) {
                assert!(pair.probability > 0.98 && pair.probability_replaced < 0.02, "{pair:?}");
                assert_eq!(pair.verdict, Verdict::Promotes);
                seen += 1;
            }
        }
    }
    assert!(seen > 500);
    assert!(check_signs(&lines) > 500);
    let kept = kept(population(&found));
    assert!(kept.contains(&("A".into(), "P".into())) && kept.contains(&("B".into(), "Q".into())), "{kept:?}");
    assert!(!kept.contains(&("A".into(), "Q".into())) && !kept.contains(&("P".into(), "B".into())), "{kept:?}");
}

#[test]
fn a_machine_that_always_does_the_same_cannot_be_asked_what_would_have_been() {
    // Twelve switch events in a fixed cycle that starts anywhere; one event in a thousand is another one.
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let cases: Vec<_> = (0..600)
        .map(|_| {
            let start = random.random_range(0..12);
            let events = (0..24).map(|step| {
                let slip = random.random::<f64>() < 0.001;
                let event = if slip { random.random_range(0..12) } else { (start + step) % 12 };
                format!("switch {event}")
            });
            hourly(events.collect::<Vec<_>>())
        })
        .collect();
    let found = Workplace::new(&cases).found(4);
    let lines = lines(&found);
    let pairs = lines.iter().flat_map(|line| &line.pairs);
    let (all, edges) = (pairs.clone().count(), pairs.clone().filter(|pair| pair.kept).count());
    let untestable = pairs.filter(|pair| pair.verdict == Verdict::Untestable).count();
    assert!(untestable * 10 > all * 8, "{untestable} of {all} are untestable");
    // Where a cycle starts is open, so that its first events can be asked about.
    assert!(edges * 10 < all, "{edges} of {all} are edges");
    let counts = population(&found).counts();
    assert!(counts.kept * 5 < counts.pairs, "{counts:?}");
    check_signs(&lines);
}

#[test]
fn what_is_always_booked_at_the_same_time_is_never_kept() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let cases: Vec<_> = (0..800)
        .map(|_| {
            let mut case = vec![(0.0, "open".to_owned())];
            let mut time = 0.0;
            for _ in 0..3 {
                time += 3600.0;
                // Booked together, in the file's order; a check follows a receipt more often than an invoice.
                let slip = if random.random::<f64>() < 0.5 { "receipt" } else { "invoice" };
                case.push((time, "pay".to_owned()));
                case.push((time, slip.to_owned()));
                time += 3600.0;
                let check = random.random::<f64>() < if case.last().unwrap().1 == "receipt" { 0.9 } else { 0.1 };
                case.push((time, if check { "check" } else { "skip" }.to_owned()));
            }
            case
        })
        .collect();
    let found = Workplace::new(&cases).found(1);
    let population = population(&found);
    let pair = |cause: &str, effect: &str| {
        let (cause, effect): (EventName, EventName) = (cause.into(), effect.into());
        population.pairs.iter().find(|pair| pair.cause == cause && pair.effect == effect)
    };
    let tied = pair("pay", "receipt").unwrap();
    assert!(tied.tied == 1.0 && !tied.kept && tied.p_value.is_none(), "{tied:?}");
    assert!(pair("receipt", "pay").is_none_or(|pair| !pair.kept));
    let real = pair("receipt", "check").unwrap();
    assert!(real.kept && real.tied == 0.0 && real.sequences > 300, "{real:?}");
    check_signs(&lines(&found));
}

#[test]
fn two_sensible_cuts_of_a_log_give_much_the_same_graph() {
    // Alarms over days: causes are followed by their effects within the hour, everything else comes at random.
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let pairs: Vec<(usize, usize)> = (0..10).map(|i| (i, 10 + i)).collect();
    let cases: Vec<_> = (0..300)
        .map(|_| {
            let mut alarms: Vec<(f64, String)> = Vec::new();
            for _ in 0..14 {
                let time = 86_400.0 * 7.0 * random.random::<f64>();
                let alarm = random.random_range(0..30);
                alarms.push((time, format!("alarm {alarm}")));
                if let Some((_, effect)) = pairs.iter().find(|pair| pair.0 == alarm && random.random::<f64>() < 0.6) {
                    alarms.push((time + 60.0 + 600.0 * random.random::<f64>(), format!("alarm {effect}")));
                }
            }
            alarms.sort_by(|a, b| a.0.total_cmp(&b.0));
            alarms
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    write(&path, &cases);
    let truth: Vec<(String, String)> =
        pairs.iter().map(|(cause, effect)| (format!("alarm {cause}"), format!("alarm {effect}"))).collect();
    for gap in [None, Some(86_400.0)] {
        let options = LogOptions { shaping: Shaping { gap, ..Shaping::default() }, ..LogOptions::default() };
        let log = Log::open_with(&path, &options).unwrap();
        let train = Train::new().backbone(Backbone::Ngram).cross_fit(true).to_folder(folder.path().join("model"));
        let model = train.run(&log).unwrap();
        let found = Discover::new(&model).memory(3).run(&log).unwrap();
        let kept = kept(population(&found));
        let hits = truth.iter().filter(|pair| kept.contains(pair)).count();
        assert!(hits >= 9, "{hits} of 10 with gap {gap:?}: {kept:?}");
        assert!(kept.len() - hits <= 2, "with gap {gap:?}: {kept:?}");
    }
}

#[test]
fn outcomes_spread_while_the_order_of_steps_says_nothing() {
    // Three steps in a fixed order; the second fails when the first does, the third does what it likes.
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let cases: Vec<_> = (0..2000)
        .map(|_| {
            let first = random.random::<f64>() < 0.3;
            let second = random.random::<f64>() < if first { 0.8 } else { 0.05 };
            let third = random.random::<f64>() < 0.3;
            let event = |step: &str, failed: bool| format!("{step}:{}", if failed { "error" } else { "ok" });
            hourly([event("db", first), event("pay", second), event("mail", third)])
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    write(&path, &cases);
    let options = LogOptions { family_separator: Some(":".to_owned()), ..LogOptions::default() };
    let log = Log::open_with(&path, &options).unwrap();
    let train = Train::new().backbone(Backbone::Ngram).cross_fit(true).to_folder(folder.path().join("model"));
    let model = train.run(&log).unwrap();
    let found = Discover::new(&model).memory(2).all_pairs(true).run(&log).unwrap();
    let population = population(&found);
    let how: Vec<_> = population.edges().filter(|pair| pair.question == Question::How).collect();
    let names: Vec<(String, String)> = how.iter().map(|p| (p.cause.to_string(), p.effect.to_string())).collect();
    assert!(names.contains(&("db:error".into(), "pay:error".into())), "{names:?}");
    assert!(names.contains(&("db:ok".into(), "pay:ok".into())), "{names:?}");
    assert_eq!(names.len(), 2, "{names:?}");
    // Whether is asked of steps, which always come in the same order here: nothing to be said.
    let whether = population.pairs.iter().filter(|pair| pair.question == Question::Whether);
    assert!(whether.clone().count() > 0 && whether.clone().all(|pair| pair.verdict == Verdict::Untestable));
    assert!(whether.clone().all(|pair| !pair.cause.to_string().contains(':')));
    // Each request by itself.
    let lines = lines(&found);
    let asked = lines.iter().flat_map(|line| &line.pairs).filter(|pair| pair.question == Question::How);
    let spread = asked.clone().filter(|pair| (pair.cause.0, pair.effect.0) == (0, 1));
    assert!(spread.clone().filter(|pair| pair.kept).count() * 10 > spread.count() * 9);
    assert!(asked.filter(|pair| pair.effect.0 == 2).filter(|pair| pair.kept).count() * 20 < lines.len());
}
