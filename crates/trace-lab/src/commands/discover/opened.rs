//! The model that a method needs.

use trace_causal::{Model, Vocabulary};
use trace_io::result::ResultModel;
use trace_lab::Error;
use trace_lab::methods::MethodName;
use trace_models::neural::{NeuralNetwork, open_network};
use trace_models::{OpenEncoder, is_encoder, open_encoder};

use crate::cli::DiscoverArgs;
use crate::failure::Failure;

/// A model, opened as the method needs it.
pub enum Opened {
    /// Any density model.
    Density(Model),
    /// A network with its gradients.
    Network(Model, Box<dyn NeuralNetwork>),
    /// A masked encoder with its attention.
    Encoder(Box<OpenEncoder>),
}

impl Opened {
    /// Opens what the method needs.
    pub fn open(args: &DiscoverArgs) -> anyhow::Result<Self> {
        let (folder, place, method) = (&args.model, args.model.display(), args.method.name());
        let masked = is_encoder(folder).map_err(Error::from)?;
        if method == MethodName::Attention {
            if !masked {
                let expected = "expected a masked encoder, as `trace-lab encoder` trains it";
                return Err(Failure::usage(format!(
                    "--method attention: {place} has no attention to look at; {expected}"
                )));
            }
            return Ok(Self::Encoder(Box::new(open_encoder(folder).map_err(Error::from)?)));
        }
        if masked {
            let reason = "is a masked encoder, which predicts no next event; only --method attention looks at it";
            return Err(Failure::usage(format!("{place}: {reason}")));
        }
        let model = Model::open(folder).map_err(Error::from)?;
        if method != MethodName::Saliency {
            return Ok(Self::Density(model));
        }
        let refuse = || {
            let backbone = model.density().backbone();
            Failure::usage(format!("--method saliency: {place} ({backbone}) has no gradients; expected a network"))
        };
        if model.is_process() || model.density().backbone() == "ngram" {
            return Err(refuse());
        }
        let network = open_network(folder).map_err(Error::from)?;
        network.saliency(&[], 0..0, &mut []).map_err(|_| refuse())?;
        Ok(Self::Network(model, network))
    }

    /// The event types.
    pub fn vocabulary(&self) -> &Vocabulary {
        match self {
            Self::Density(model) | Self::Network(model, _) => model.vocabulary(),
            Self::Encoder(opened) => &opened.vocabulary,
        }
    }

    /// The density model, where it is one.
    pub fn density(&self) -> Option<&Model> {
        match self {
            Self::Density(model) | Self::Network(model, _) => Some(model),
            Self::Encoder(_) => None,
        }
    }

    /// The longest sequence that it reads.
    pub fn max_length(&self) -> Option<usize> {
        match self {
            Self::Density(model) | Self::Network(model, _) => model.density().max_length(),
            Self::Encoder(opened) => Some(opened.encoder.most_events()),
        }
    }

    /// What results say of it.
    pub fn for_results(&self) -> ResultModel {
        match self {
            Self::Density(model) | Self::Network(model, _) => model.for_results(),
            Self::Encoder(opened) => ResultModel {
                backbone: opened.record.backbone.clone(),
                held_out_loss: opened.record.held_out_loss,
                unigram_loss: opened.record.unigram_loss,
                epsilon_hat: None,
                bound: None,
                fingerprint: Some(opened.fingerprint.clone()),
            },
        }
    }
}
