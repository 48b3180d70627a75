//! Explanations as JSON.

use serde::{Serialize, Serializer};
use trace_core::{Chain, EventName, Explanation, Pair, Position};

use super::Explained;

/// The version of explanations that this software writes.
const SCHEMA: &str = "trace.explanation/2";

impl Serialize for Explained {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Edge<'e> {
            #[serde(flatten)]
            pair: Pair,
            cause_type: &'e EventName,
            effect_type: &'e EventName,
            ratio: f64,
            required: bool,
        }
        #[derive(Serialize)]
        struct Path<'e> {
            root: Option<Position>,
            root_type: Option<&'e EventName>,
            strength: f64,
            edges: Vec<Edge<'e>>,
        }
        #[derive(Serialize)]
        struct File<'e> {
            schema: &'static str,
            id: &'e str,
            position: Position,
            r#type: &'e EventName,
            time: Option<f64>,
            probability: f64,
            rank: usize,
            types: usize,
            share_of_events: Option<f64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            end_probability: Option<f64>,
            held_out_loss: Option<f64>,
            unigram_loss: Option<f64>,
            threshold: f64,
            direct: Vec<Edge<'e>>,
            despite: Vec<Edge<'e>>,
            untestable: Vec<Edge<'e>>,
            chains: Vec<Path<'e>>,
            ancestors: &'e [Position],
        }
        let Explanation { position, direct, despite, untestable, roots, ancestors } = &self.explanation;
        let name = |position: Position| &self.events[position.index()];
        let edge = |pair: &Pair| Edge {
            pair: *pair,
            cause_type: name(pair.cause),
            effect_type: name(pair.effect),
            ratio: pair.log_ratio.exp().min(f64::MAX),
            required: pair.required,
        };
        let edges = |pairs: &[Pair]| pairs.iter().map(edge).collect::<Vec<_>>();
        let path = |chain: &Chain| {
            let root = chain.root();
            Path { root, root_type: root.map(name), strength: chain.strength, edges: edges(&chain.edges) }
        };
        let file = File {
            schema: SCHEMA,
            id: &self.id,
            position: *position,
            r#type: name(*position),
            time: self.times.as_ref().and_then(|times| times.get(position.index()).copied()),
            probability: self.prediction.probability,
            rank: self.prediction.rank,
            types: self.prediction.types,
            share_of_events: self.prediction.share,
            end_probability: self.prediction.end,
            held_out_loss: self.fitness.held_out_loss,
            unigram_loss: self.fitness.unigram_loss,
            threshold: self.threshold,
            direct: edges(direct),
            despite: edges(despite),
            untestable: edges(untestable),
            chains: roots.iter().map(path).collect(),
            ancestors,
        };
        file.serialize(serializer)
    }
}
