//! tmp
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking
use trace_core::DensityModel;
use trace_sim::workflow::*;

#[test]
fn stats() {
    for preset in Preset::ALL {
        let mut w = Workflow::new(&preset.specification().unwrap(), &WorkflowSettings::default()).unwrap();
        w.measure_entropy();
        let cases = w.cases(7, 0, 2000);
        let lens: Vec<usize> = cases.iter().map(|c| c.events.len()).collect();
        let t = std::time::Instant::now();
        let classes = w.classes(&ClassOptions::new(&w));
        let took = t.elapsed();
        let count = |q, c| classes.iter().filter(|((_, _, qq), p)| *qq == q && p.class == c).count();
        println!(
            "{} types {} mean {} min {} max {} entropy {:?} classes in {:?}",
            preset.name(),
            w.vocabulary_size(),
            lens.iter().sum::<usize>() as f64 / 2000.0,
            lens.iter().min().unwrap(),
            lens.iter().max().unwrap(),
            w.fitness().entropy,
            took
        );
        for q in [Question::Whether, Question::How] {
            println!(
                "  {q:?} designed {} order {} null {}",
                count(q, TruthClass::Designed),
                count(q, TruthClass::Order),
                count(q, TruthClass::Null)
            );
        }
        let worst = classes
            .iter()
            .filter(|(k, p)| k.2 == Question::Whether && p.class == TruthClass::Null)
            .map(|(_, p)| p.log_ratio.unwrap_or(0.0).abs())
            .fold(0.0, f64::max);
        println!("  worst null mean {worst}");
        let noplace = classes
            .iter()
            .filter(|(k, p)| k.2 == Question::Whether && p.class == TruthClass::Null && p.places == 0)
            .count();
        println!("  null whether without places {noplace}");
        let vocab = w.vocabulary();
        for ((u, v, q), p) in &classes {
            if p.class == TruthClass::Designed && *q == Question::Whether {
                println!("   {} -> {} {:?} {:?}", vocab.name(*u), vocab.name(*v), p.log_ratio, p.places);
            }
        }
        println!("   rules {}", w.specification().rules().len());
        let t = std::time::Instant::now();
        let mut e = [0usize; 3];
        for c in &cases[..100] {
            for x in w.true_edges(&c.events, w.memory()) {
                e[match (x.question, x.class) {
                    (Question::How, _) => 0,
                    (_, TruthClass::Designed) => 1,
                    _ => 2,
                }] += 1;
            }
        }
        println!("   100 truths in {:?}: how {} designed {} order {}", t.elapsed(), e[0], e[1], e[2]);
        for c in &cases[..2] {
            println!("   {}", c.events.iter().map(|x| vocab.name(*x).to_string()).collect::<Vec<_>>().join(" | "));
        }
    }
}
