//! `trace evaluate`: found edges against true ones.

use trace_causal::evaluation::{FigureMeans, Figures};
use trace_causal::table::render;
use trace_causal::{EvaluateOptions, Evaluated, Scored, ScoredPopulation};

use crate::cli::EvaluateArgs;
use crate::failure::Failure;
use crate::output::{print, print_json};

pub fn run(args: &EvaluateArgs) -> Result<(), Failure> {
    let options =
        EvaluateOptions { threshold: args.threshold, self_loops: args.self_loops, question: args.question.question() };
    let evaluated = trace_causal::evaluate(&args.results, &args.truth, &options)?;
    if args.json {
        return print_json(&evaluated);
    }
    print(&match &evaluated {
        Evaluated::Results(scored) => results(scored),
        Evaluated::Population(scored) => population(scored),
    })
}

fn results(scored: &Scored) -> String {
    let cells = |means: &FigureMeans| {
        means.iter().map(|(name, mean, spread, _)| match (mean, spread) {
            (Some(mean), Some(spread)) if name == "shd" => format!("{mean:.1} ± {spread:.1}"),
            (Some(mean), Some(spread)) => format!("{mean:.3} ± {spread:.3}"),
            _ => "–".to_owned(),
        })
    };
    let mut rows =
        vec![["", "F1", "precision", "recall", "SHD", "AUROC", "avg. precision"].map(str::to_owned).to_vec()];
    let mut row = |name: String, means: &FigureMeans| {
        rows.push(std::iter::once(name).chain(cells(means)).collect());
    };
    let evaluation = &scored.evaluation;
    row("positions".to_owned(), &evaluation.positions);
    for (lag, means) in &evaluation.by_lag {
        row(format!("  lag {lag}"), means);
    }
    row("summary graph".to_owned(), &evaluation.summary);
    let mut text = render(&rows);
    text += &format!("mean ± spread over {} sequences", evaluation.sequences);
    if !scored.truths.is_empty() {
        text += &format!("; truth: {}", scored.truths.iter().cloned().collect::<Vec<_>>().join(" and "));
    }
    text.push('\n');
    if scored.other_divergence {
        text += "warning: results and truth measure different divergences, so their strengths do not compare\n";
    }
    if scored.outside > 0 {
        text += &format!(
            "{} true edges lie outside the tested pairs (memory, context) and are not scored\n",
            scored.outside
        );
    }
    if scored.untestable > 0 {
        text += &format!(
            "{} of {} true edges could not be tested, because there was no room for anything else; they count as missed\n",
            scored.untestable, scored.true_edges
        );
    }
    if scored.unscored > 0 {
        text += &format!("{} sequences have a truth but no result\n", scored.unscored);
    }
    text
}

fn population(scored: &ScoredPopulation) -> String {
    let cell = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
    let mut rows = vec![vec!["population of".to_owned(), format!("{} sequences", scored.sequences)]];
    for (name, value) in Figures::NAMES.iter().zip(scored.signed.values()) {
        rows.push(vec![(*name).to_owned(), cell(value)]);
    }
    rows.push(vec!["auroc (unsigned score)".to_owned(), cell(scored.unsigned.auroc)]);
    rows.push(vec!["average_precision (unsigned score)".to_owned(), cell(scored.unsigned.average_precision)]);
    let mut text = render(&rows);
    if scored.untestable > 0 {
        text += &format!("{} true pairs could not be tested; they count as missed\n", scored.untestable);
    }
    if scored.outside > 0 {
        text += &format!("{} true pairs never had an opportunity and are not scored\n", scored.outside);
    }
    text
}
