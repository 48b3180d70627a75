//! Explanations as text for people.

use std::fmt::{self, Display};

use trace_core::{Explanation, Pair, Position, Question};
use trace_io::log::show_time;
use trace_report::shorten::distinct;

use super::{DEFAULT_CHAINS, Explained, Prediction};

/// Letters of a name that the text shows.
const LONGEST_NAME: usize = 48;

impl Explained {
    /// The text with at most this many chains.
    pub fn text(&self, chains: usize) -> String {
        let Explanation { position, direct, despite, untestable, roots, .. } = &self.explanation;
        let names = self.names();
        let place = |position: Position| format!("{} at {position}", names[position.index()]);
        let mut text = format!("{} of {}", place(*position), self.id);
        if let Some(time) = self.time(*position) {
            text += &format!(", {time}");
        }
        text.push('\n');
        if !self.others.is_empty() {
            let places: Vec<String> = self.others.iter().map(ToString::to_string).collect();
            text += &format!("(the last of its type; also at {})\n", places.join(", "));
        }
        text += &self.foreseen();
        if direct.is_empty() {
            text += &format!(
                "\nNothing explains it: no earlier event within reach made it more likely by more than {} nats.\n",
                self.threshold
            );
        } else {
            text += "\nDirect causes, strongest first (probability of the event with and without each):\n";
            text += &table(direct, &place);
        }
        if !despite.is_empty() {
            text += &format!("\nIt happened in spite of:\n{}", table(despite, &place));
        }
        if !untestable.is_empty() {
            text += "\nAlways so here: the log cannot say what would have happened otherwise. Nothing is claimed of:\n";
            text += &untestable_table(untestable, &place);
        }
        if !roots.is_empty() {
            text += "\nChains back to the roots, each as strong as its weakest link:\n";
            for (number, chain) in (1..).zip(roots.iter().take(chains)) {
                let mut places: Vec<String> = chain.edges.iter().map(|edge| place(edge.cause)).collect();
                places.push(place(*position));
                text += &format!("{number}. {:.3}  {}\n", chain.strength, places.join(" → "));
            }
            if roots.len() > chains {
                text += &format!("and {} weaker ones\n", roots.len() - chains);
            }
        }
        text += &self.errors();
        text + "\nTo call these causes is to assume that causes come first, that none is missing from the log, that mechanisms\n\
                stay the same along the sequence, and that the model fits.\n"
    }

    /// How far the errors of drawing and of the model reach, and what no error says.
    fn errors(&self) -> String {
        let Explanation { direct, despite, .. } = &self.explanation;
        let mut edges = direct.iter().chain(despite).peekable();
        let mut text = String::from("\n");
        if edges.peek().is_some() {
            text += if edges.any(|edge| edge.std_error > 0.0) {
                "± is the error of drawing replacements (Monte Carlo); that of the model comes on top.\n"
            } else {
                "All replacements were tried, so that strengths have no Monte-Carlo error; that of the model remains.\n"
            };
        }
        if let Some(held) = self.fitness.held_out_loss {
            text += &format!("On events it had not seen, the model loses {held:.2} nats per event");
            if let Some(frequencies) = self.fitness.unigram_loss {
                text += &format!("; plain frequencies lose {frequencies:.2}");
            }
            text += ".\n";
        }
        if !direct.is_empty() || !despite.is_empty() {
            text += "The hidden-cause ratio says how many times as likely something that is not in the log would have to make\n\
                     both events to explain the edge away: near 1, very little is enough.\n";
        }
        if text.len() > 1 { text } else { String::new() }
    }

    /// Names short enough for a table, cut so that those which differ still do.
    fn names(&self) -> Vec<String> {
        distinct(&self.events.iter().map(ToString::to_string).collect::<Vec<_>>(), LONGEST_NAME)
    }

    /// When an event happened, as a date where the log has dates.
    fn time(&self, position: Position) -> Option<String> {
        let time = *self.times.as_ref()?.get(position.index())?;
        let date = if self.dated { show_time(time) } else { None };
        Some(date.unwrap_or_else(|| format!("time {time}")))
    }

    fn foreseen(&self) -> String {
        let Prediction { probability, rank, types, share, end } = self.prediction;
        let mut text =
            format!("The model gave it a probability of {}, rank {rank} of {types} types", percent(probability));
        if let Some(share) = share {
            text += &format!("; its share of all events is {}", percent(share));
            if probability < share {
                text += ".\nIt came as a surprise: the past made it less likely than usual";
            }
        }
        if let Some(end) = end {
            text += &format!(".\nThat the case would end there instead had a probability of {}", percent(end));
        }
        text + ".\n"
    }
}

impl Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(DEFAULT_CHAINS))
    }
}

/// One edge per line.
fn table(edges: &[Pair], place: &dyn Fn(Position) -> String) -> String {
    let row = |edge: &Pair| {
        let mut cells = vec![
            format!("  {}", place(edge.cause)),
            format!("{} before", edge.lag),
            times(edge.log_ratio.exp()),
            format!("{} → {}", percent(edge.probability), percent(edge.probability_replaced)),
            format!("{:.3} ± {:.3} nats", edge.strength, edge.std_error),
            format!("hidden-cause ratio {}", number(edge.hidden_cause_ratio)),
        ];
        cells.extend(remarks(edge));
        cells
    };
    crate::table::render(&edges.iter().map(row).collect::<Vec<_>>())
}

/// One pair that cannot be tested per line.
fn untestable_table(pairs: &[Pair], place: &dyn Fn(Position) -> String) -> String {
    let row = |pair: &Pair| {
        let mut cells = vec![format!("  {}", place(pair.cause)), format!("{} before", pair.lag)];
        cells.extend(pair.overlap.map(|overlap| format!("room for anything else: {}", percent(overlap))));
        cells.extend(remarks(pair));
        cells
    };
    crate::table::render(&pairs.iter().map(row).collect::<Vec<_>>())
}

/// What else is to be known of a pair.
fn remarks(pair: &Pair) -> Vec<String> {
    let remarks = [
        (pair.question == Question::How, "how it turned out"),
        (pair.required, "required by knowledge"),
        (pair.tied, "same time: the order is the file's"),
    ];
    remarks.into_iter().filter(|(holds, _)| *holds).map(|(_, words)| words.to_owned()).collect()
}

/// A ratio of probabilities for people.
fn times(ratio: f64) -> String {
    format!("{} times as likely", number(ratio))
}

/// A ratio with the digits that matter.
fn number(ratio: f64) -> String {
    match ratio {
        r if r >= 1000.0 => "more than 1000".to_owned(),
        r if r >= 10.0 => format!("{r:.0}"),
        r if r >= 1.0 => format!("{r:.1}"),
        r if r >= 0.001 => format!("{r:.3}"),
        _ => "less than 0.001".to_owned(),
    }
}

/// A probability for people.
fn percent(probability: f64) -> String {
    let percent = 100.0 * probability;
    match percent {
        p if p >= 99.995 && probability < 1.0 => "more than 99.99 %".to_owned(),
        p if p >= 99.0 => format!("{p:.2} %"),
        p if p >= 10.0 => format!("{p:.0} %"),
        p if p >= 0.1 => format!("{p:.1} %"),
        p if p >= 0.01 => format!("{p:.2} %"),
        0.0 => "0 %".to_owned(),
        _ => "less than 0.01 %".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use trace_core::theory::Fitness;
    use trace_core::{EventId, Lag, SampleGraph, Verdict};

    use super::*;

    fn pair(cause: u32, probability: f64, replaced: f64, overlap: f64, std_error: f64) -> Pair {
        let pair = Pair {
            cause: Position(cause),
            effect: Position(3),
            lag: Lag(3 - cause),
            question: Question::Whether,
            strength: 0.4,
            std_error,
            particles: 16,
            log_ratio: (probability / replaced).ln(),
            probability,
            probability_replaced: replaced,
            effective_particles: None,
            overlap: Some(overlap),
            verdict: Verdict::None,
            hidden_cause_ratio: 1.0,
            tied: false,
            kept: true,
            required: false,
        };
        pair.decided(0.05)
    }

    fn explained(pairs: Vec<Pair>) -> Explained {
        let graph = SampleGraph::new((0..4).map(EventId).collect(), pairs, 0.05);
        Explained {
            id: "case 1".to_owned(),
            events: ["arrival", "triage", "test", "release"].map(Into::into).to_vec(),
            times: None,
            dated: false,
            prediction: Prediction { probability: 0.64, rank: 1, types: 4, share: None, end: None },
            explanation: Explanation::new(&graph, Position(3)),
            fitness: Fitness { held_out_loss: Some(0.92), unigram_loss: Some(2.3), entropy: None },
            threshold: 0.05,
            others: Vec::new(),
        }
    }

    #[test]
    fn ratios_and_what_cannot_be_tested_are_told_in_words() {
        let how = Pair { question: Question::How, ..pair(2, 0.64, 0.2, 0.5, 0.01) };
        let told = explained(vec![how, pair(1, 0.64, 0.1, 0.001, 0.0), pair(0, 0.2, 0.8, 0.5, 0.0)]);
        let text = told.to_string();
        for part in [
            "1 before  3.2 times as likely  64 % → 20 %",
            "how it turned out",
            "0.250 times as likely",
            "Always so here: the log cannot say what would have happened otherwise. Nothing is claimed of:\n  triage at 1",
            "room for anything else: 0.1 %",
            "± is the error of drawing replacements",
            "the model loses 0.92 nats per event; plain frequencies lose 2.30.",
            "The hidden-cause ratio says",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 130), "{text}");
        let data = serde_json::to_value(&told).unwrap();
        assert_eq!(data["schema"], "trace.explanation/2");
        assert_eq!(data["untestable"][0]["cause_type"], "triage");
        assert_eq!(data["untestable"][0]["verdict"], "untestable");
        assert!((data["direct"][0]["ratio"].as_f64().unwrap() - 3.2).abs() < 1e-9, "{data}");
        assert_eq!((&data["direct"][0]["question"], &data["held_out_loss"]), (&"how".into(), &0.92.into()));
    }

    #[test]
    fn nothing_is_said_of_errors_where_there_are_no_edges() {
        let mut told = explained(Vec::new());
        told.fitness = Fitness::default();
        let text = told.to_string();
        assert!(text.contains("Nothing explains it"), "{text}");
        assert!(!text.contains("Monte") && !text.contains("hidden-cause") && !text.contains("Always"), "{text}");
    }
}
