//! `--method`: a rival of TRACE, as the flags ask for it.

use trace_causal::{Divergence, History, Intervention, Memory, Particles, Proposal, Settings, Threshold};
use trace_core::{DEFAULT_MEMORY, DEFAULT_SEED, Discovery, MOST_PARTICLES, Plan, ThresholdRule};
use trace_io::log::EventLog;
use trace_lab::Error;
use trace_lab::methods::{
    Absent, Attention, Bigram, BigramCounts, Frequency, Granger, Method, MethodName, Random, Saliency, Shapley, Span,
};

use super::opened::Opened;
use crate::cli::{DiscoverArgs, MethodFlag};
use crate::failure::Failure;

/// A method, and the settings that results say of it.
pub struct Rival<'m> {
    pub method: Box<dyn Method + 'm>,
    pub plan: Plan,
}

/// Flags that mean nothing to the method are mistakes, not wishes.
pub fn check_flags(args: &DiscoverArgs) -> anyhow::Result<()> {
    let method = args.method;
    let draws = matches!(method, MethodFlag::Granger | MethodFlag::Shapley);
    let wrong = [
        ("--particles", args.particles.is_some() && !draws),
        ("--particles all", args.particles == Some(Particles::All) && method == MethodFlag::Shapley),
        ("--seed", args.seed.is_some() && !draws && method != MethodFlag::Random),
    ];
    if let Some((name, _)) = wrong.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!("{name}: means nothing to --method {}", method.name().name())));
    }
    if args.threshold.is_some_and(|threshold| !(threshold >= 0.0 && threshold.is_finite())) {
        return Err(Failure::usage("--threshold: expected a number, 0 or more"));
    }
    if args.memory == Some(Memory::Lags(0)) {
        return Err(Failure::usage("--memory: 0 lags leave nothing to score; expected at least 1, or all"));
    }
    match args.particles {
        Some(Particles::Fixed(count)) if !(2..=MOST_PARTICLES).contains(&count) => {
            Err(Failure::usage(format!("--particles: {count} is out of range; expected 2 to {MOST_PARTICLES}")))
        }
        _ => Ok(()),
    }
}

/// The method, ready to run.
pub fn build<'m>(args: &DiscoverArgs, opened: &'m Opened, log: &EventLog) -> Result<Rival<'m>, Error> {
    let reach = opened.density().and_then(|model| model.density().reach());
    let memory = args.memory.unwrap_or_else(|| Memory::Lags(reach.unwrap_or(DEFAULT_MEMORY).max(1)));
    let span = Span { memory, context: args.context };
    let seed = args.seed.unwrap_or(DEFAULT_SEED);
    let own = |default: f64| args.threshold.unwrap_or(default);
    // What a method does not use stays at its default; no replacements are tried.
    let mut plan = Plan {
        intervention: Intervention::default(),
        proposal: Proposal::Uniform,
        divergence: Divergence::default(),
        history: History::default(),
        particles: Particles::Fixed(0),
        memory,
        context: args.context,
        threshold: 0.0,
        threshold_rule: ThresholdRule::Fixed,
        confidence: None,
        question: None,
        end: false,
        seed,
    };
    let mismatch = || Error::Output(format!("{} got another kind of model", args.method.name().name()));
    let density = || opened.density().map(trace_causal::Model::density).ok_or_else(mismatch);
    let method: Box<dyn Method + 'm> = match (args.method.name(), opened) {
        (MethodName::Granger, _) => {
            let particles = args.particles.unwrap_or_default();
            // The discovery's own threshold does not decide.
            let threshold = Some(Threshold::Fixed(0.0));
            let context = args.context;
            let settings =
                Settings { particles, memory: Some(memory), context, threshold, seed, ..Settings::default() };
            let discovery = Discovery::with_settings(density()?, settings);
            plan = discovery.plan()?;
            Box::new(Granger { discovery, threshold: own(Granger::THRESHOLD) })
        }
        (MethodName::Shapley, _) => {
            let orders = match args.particles {
                Some(Particles::Fixed(orders)) => orders,
                _ => Shapley::ORDERS,
            };
            plan.particles = Particles::Fixed(orders);
            let threshold = own(Shapley::THRESHOLD);
            Box::new(Shapley { span, model: density()?, orders, absent: Absent::Drawn, threshold, seed })
        }
        (MethodName::Saliency, Opened::Network(_, network)) => {
            Box::new(Saliency { span, network: &**network, threshold: own(Saliency::THRESHOLD) })
        }
        (MethodName::Attention, Opened::Encoder(opened)) => {
            Box::new(Attention { span, encoder: &opened.encoder, threshold: own(Attention::THRESHOLD) })
        }
        (MethodName::Bigram, _) => {
            let mut counts = BigramCounts::default();
            log.sequences.iter().for_each(|sequence| counts.add(&sequence.events));
            Box::new(Bigram { span, counts, threshold: own(Bigram::THRESHOLD) })
        }
        (MethodName::Frequency, _) => Box::new(Frequency::new(span, &counts(opened, log), args.threshold)),
        (MethodName::Random, _) => Box::new(Random { span, threshold: own(Random::THRESHOLD), seed }),
        _ => return Err(mismatch()),
    };
    plan.threshold = method.threshold();
    Ok(Rival { method, plan })
}

/// How often each type occurred in training, or else in the log.
fn counts(opened: &Opened, log: &EventLog) -> Vec<f64> {
    if let Some(frequencies) = opened.density().and_then(|model| model.density().frequencies()) {
        return frequencies.to_vec();
    }
    let mut counts = vec![0.0; opened.vocabulary().len()];
    for event in log.sequences.iter().flat_map(|sequence| &sequence.events) {
        counts[event.index()] += 1.0;
    }
    counts
}
