//! What `--size auto` and the other sizes mean.

use trace_models::neural::NetworkConfig;
use trace_models::neural::bert::BertConfig;
use trace_models::neural::llama::LlamaConfig;
use trace_models::neural::mamba::MambaConfig;
use trace_models::neural::recurrent::RecurrentConfig;

use crate::cli::{Backbone, Size, TrainArgs};
use crate::failure::Failure;

/// The shape of a network, before it is one of an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub feed_forward: usize,
}

impl Shape {
    const fn new(layers: usize, width: usize, heads: usize, feed_forward: usize) -> Self {
        Self { layers, width, heads, feed_forward }
    }

    /// The shape of a named size; `auto` goes by the corpus: a network should have far fewer weights than there are
    /// events to learn from, and a row wide enough to tell the types apart.
    pub fn of(size: Size, types: usize, events: usize) -> Self {
        match size {
            Size::Tiny => Self::new(2, 64, 4, 128),
            Size::Small => Self::new(2, 128, 4, 256),
            Size::Base => Self::new(1, 512, 2, 128),
            Size::Large => Self::new(4, 512, 8, 1024),
            Size::Auto if events < 50_000 || types < 50 => Self::of(Size::Tiny, types, events),
            Size::Auto if events < 500_000 => Self::of(Size::Small, types, events),
            Size::Auto => Self::of(Size::Base, types, events),
        }
    }
}

/// The network that the flags ask for.
pub fn network(args: &TrainArgs, types: usize, events: usize, length: usize) -> anyhow::Result<NetworkConfig> {
    let usual = Shape::of(args.size.unwrap_or_default(), types, events);
    let check = |name: &str, value: Option<usize>, least: usize, most: usize| match value {
        Some(value) if !(least..=most).contains(&value) => {
            Err(Failure::usage(format!("--{name}: {value} is out of range; expected {least} to {most}")))
        }
        value => Ok(value),
    };
    let layers = check("layers", args.layers, 1, 128)?.unwrap_or(usual.layers);
    let width = check("width", args.width, 4, 16_384)?.unwrap_or(usual.width);
    let heads = check("heads", args.heads, 1, 256)?.unwrap_or_else(|| {
        // As wide as usual; a width of the user's own gets as many heads as fit.
        (1..=usual.heads).rev().find(|heads| width.is_multiple_of(heads * 2)).unwrap_or(1)
    });
    let feed_forward = check("feed-forward", args.feed_forward, 1, 65_536)?
        .unwrap_or_else(|| (width * usual.feed_forward).div_ceil(usual.width));
    let head_width = match check("head-width", args.head_width, 2, 1024)? {
        Some(head_width) if !head_width.is_multiple_of(2) => {
            return Err(Failure::usage(format!("--head-width: {head_width} is odd; expected an even number")));
        }
        Some(head_width) => head_width,
        None if args.backbone == Backbone::Bert && !width.is_multiple_of(heads) => {
            let reason = format!("--width {width} with --heads {heads}: expected a width that heads share evenly");
            return Err(Failure::usage(reason));
        }
        None if args.backbone == Backbone::Llama && !width.is_multiple_of(2 * heads) => {
            let reason = format!(
                "--width {width} with --heads {heads}: expected a width that gives each head an even part, or --head-width"
            );
            return Err(Failure::usage(reason));
        }
        None => width / heads,
    };
    let tokens = types + 1;
    Ok(match args.backbone {
        Backbone::Gru | Backbone::Lstm => {
            let config = RecurrentConfig { tokens, width, layers, norm_epsilon: 1e-6, tied: false };
            if args.backbone == Backbone::Gru { NetworkConfig::Gru(config) } else { NetworkConfig::Lstm(config) }
        }
        Backbone::Mamba => NetworkConfig::Mamba(MambaConfig {
            tokens,
            width,
            layers,
            state: 16,
            kernel: 4,
            inner: 2 * width,
            step_rank: width.div_ceil(16),
            norm_epsilon: 1e-5,
            conv_bias: true,
            bias: false,
            tied: false,
        }),
        Backbone::Bert => NetworkConfig::Bert(BertConfig {
            tokens,
            width,
            layers,
            heads,
            feed_forward,
            positions: length,
            token_types: 1,
            norm_epsilon: 1e-12,
        }),
        // N-grams are no network and do not come here.
        Backbone::Llama | Backbone::Ngram => NetworkConfig::Llama(LlamaConfig {
            tokens,
            width,
            layers,
            heads,
            key_heads: heads,
            head_width,
            feed_forward,
            rope_theta: 10_000.0,
            norm_epsilon: 1e-5,
            tied: false,
            trained_length: length,
        }),
    })
}
