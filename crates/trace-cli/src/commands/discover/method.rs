//! `--method`: our own, or one to compare it with.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use trace_core::theory::Fitness;
use trace_core::{
    DensityModel, Discovery, EventId, Intervention, Knowledge, ModelError, Particles, Plan, Settings, Threshold,
};
use trace_io::log::EventLog;
use trace_io::result::{CountOrWord, ResultSettings};
use trace_lab::methods::{
    Absent, Attention, Bigram, BigramCounts, Frequency, Granger, Kind, Method, Random, Saliency, Shapley, Span,
};
use trace_models::neural::Encoder;
use trace_models::{ModelRecord, OpenEncoder, OpenModel};

use crate::cli::{DiscoverArgs, DivergenceFlag, HistoryFlag, InterventionFlag};
use crate::failure::Failure;

/// A model for the method, and the encoder behind it where its attention is what is looked at.
pub struct Opened {
    pub model: OpenModel,
    pub encoder: Option<Arc<Encoder>>,
}

/// An encoder in the place of a density model: it has a vocabulary and a limit, and predicts nothing.
struct Masked {
    encoder: Arc<Encoder>,
    fitness: Fitness,
}

impl DensityModel for Masked {
    fn vocabulary_size(&self) -> usize {
        self.encoder.vocabulary_size()
    }

    fn backbone(&self) -> &'static str {
        "bert"
    }

    fn forward(&self, _: &[EventId], _: Range<usize>, _: &mut [f64]) -> Result<(), ModelError> {
        Err(ModelError::new("a masked model predicts no next event"))
    }

    fn max_length(&self) -> Option<usize> {
        Some(self.encoder.most_events())
    }

    fn fitness(&self) -> Fitness {
        self.fitness
    }
}

/// Opens what the method needs.
pub fn open(kind: Kind, folder: &Path) -> anyhow::Result<Opened> {
    if kind != Kind::Attention {
        return Ok(Opened { model: trace_models::open(folder)?, encoder: None });
    }
    if !trace_models::is_encoder(folder)? {
        let place = folder.display();
        return Err(Failure::usage(format!(
            "--method attention: {place} is no masked model; expected one trained with --backbone bert"
        )));
    }
    let OpenEncoder { encoder, vocabulary, record, config, fingerprint } = trace_models::open_encoder(folder)?;
    let encoder = Arc::new(encoder);
    let ModelRecord { held_out_loss, unigram_loss, .. } = record;
    let fitness = Fitness { held_out_loss, unigram_loss, entropy: None };
    let parameters = encoder.parameters();
    let model = Box::new(Masked { encoder: Arc::clone(&encoder), fitness });
    let model = OpenModel { model, vocabulary, record, parameters, config, fingerprint };
    Ok(Opened { model, encoder: Some(encoder) })
}

/// The settings of our own method that the flags ask for.
pub fn settings(args: &DiscoverArgs) -> Settings {
    let settings = args.method.settings();
    match args.kind.kind() {
        Kind::Staircase => Settings { intervention: Intervention::Staircase, ..settings },
        Kind::Granger => Settings { threshold: Some(Threshold::Fixed(0.0)), ..settings },
        _ => settings,
    }
}

/// Flags that mean nothing to the method are mistakes, not wishes.
pub fn check_flags(args: &DiscoverArgs) -> anyhow::Result<()> {
    let kind = args.kind.kind();
    if matches!(kind, Kind::Trace | Kind::Staircase) {
        return Ok(());
    }
    let compares = kind == Kind::Granger;
    let wrong = [
        ("--knowledge", args.knowledge.is_some() && !compares),
        // Its rule is made for ratios of probabilities, which these methods do not have.
        ("--population", args.population.is_some() && !compares),
        ("--intervention staircase", args.method.intervention == InterventionFlag::Staircase),
        ("--divergence full", args.method.divergence == DivergenceFlag::Full),
        ("--history sampled", args.method.history == HistoryFlag::Sampled && !compares),
        ("--proposal", args.method.proposal.is_some() && !compares),
        ("--particles all", args.method.particles == Particles::All && kind == Kind::Shapley),
        ("--particles", args.method.particles != Particles::Auto && !compares && kind != Kind::Shapley),
        ("--threshold", matches!(args.method.threshold, Some(Threshold::ScalingLaw | Threshold::Bound))),
    ];
    match wrong.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(Failure::usage(format!("{name}: means nothing to --method {}", kind.name()))),
        None => Ok(()),
    }
}

/// The method, and what results say of its settings.
pub fn build<'m>(
    args: &DiscoverArgs,
    opened: &'m Opened,
    plan: &Plan,
    log: &EventLog,
    knowledge: Option<&'m Knowledge>,
) -> anyhow::Result<(Box<dyn Method + 'm>, ResultSettings)> {
    let model = &*opened.model.model;
    let mut discovery = Discovery::with_settings(model, settings(args));
    if let Some(knowledge) = knowledge {
        discovery = discovery.knowledge(knowledge);
    }
    let kind = args.kind.kind();
    let mut said = ResultSettings::new(plan);
    if matches!(kind, Kind::Trace | Kind::Staircase) {
        return Ok((Box::new(discovery), said));
    }
    let own = match args.method.threshold {
        Some(Threshold::Fixed(number)) => Some(number),
        _ => None,
    };
    let span = Span { memory: plan.memory, context: plan.context };
    let seed = plan.seed;
    said.method = Some(kind.name().to_owned());
    if kind != Kind::Granger {
        let none = || "none".to_owned();
        (said.intervention, said.proposal, said.divergence) = (none(), none(), none());
        said.particles = CountOrWord::Count(0);
    }
    let method: Box<dyn Method + 'm> = match kind {
        Kind::Granger => Box::new(Granger { discovery, threshold: own.unwrap_or(Granger::THRESHOLD) }),
        Kind::Shapley => {
            let orders = match plan.particles {
                Particles::Fixed(orders) => orders,
                Particles::Auto | Particles::All => Shapley::ORDERS,
            };
            said.particles = CountOrWord::Count(orders as u64);
            "uniform".clone_into(&mut said.proposal);
            let threshold = own.unwrap_or(Shapley::THRESHOLD);
            Box::new(Shapley { span, model, orders, absent: Absent::Drawn, threshold, seed })
        }
        Kind::Saliency => {
            let asked = model.saliency(&[], 0..0, &mut []);
            asked.map_err(|error| Failure::usage(format!("--method saliency: {error}")))?;
            Box::new(Saliency { span, model, threshold: own.unwrap_or(Saliency::THRESHOLD) })
        }
        Kind::Attention => match &opened.encoder {
            Some(encoder) => {
                Box::new(Attention { span, encoder: &**encoder, threshold: own.unwrap_or(Attention::THRESHOLD) })
            }
            None => return Err(Failure::usage("--method attention: expected a model trained with --backbone bert")),
        },
        Kind::Bigram => {
            let mut counts = BigramCounts::default();
            log.sequences.iter().for_each(|sequence| counts.add(&sequence.events));
            Box::new(Bigram { span, counts, threshold: own.unwrap_or(Bigram::THRESHOLD) })
        }
        Kind::Frequency => Box::new(Frequency::new(span, &counts(model, log), own)),
        Kind::Random => Box::new(Random { span, threshold: own.unwrap_or(Random::THRESHOLD), seed }),
        Kind::Trace | Kind::Staircase => Box::new(discovery),
    };
    said.threshold = method.threshold();
    Ok((method, said))
}

/// How often each type occurred in training, or else in the log.
fn counts(model: &dyn DensityModel, log: &EventLog) -> Vec<f64> {
    if let Some(frequencies) = model.frequencies() {
        return frequencies.to_vec();
    }
    let mut counts = vec![0.0; model.vocabulary_size()];
    for event in log.sequences.iter().flat_map(|sequence| &sequence.events) {
        counts[event.index()] += 1.0;
    }
    counts
}
