//! What `--size auto` and the other sizes mean.

use trace_models::neural::NetworkConfig;
use trace_models::neural::shape::{Shape, Trainee};

use crate::cli::{Backbone, Size, TrainArgs};
use crate::failure::Failure;

/// The shape of a named size; `auto` goes by the corpus.
const fn usual(size: Size, types: usize, events: usize) -> Shape {
    match size {
        Size::Tiny => Shape::TINY,
        Size::Small => Shape::SMALL,
        Size::Base => Shape::BASE,
        Size::Large => Shape::LARGE,
        Size::Auto => Shape::for_corpus(types, events),
    }
}

/// The network that the flags ask for.
pub fn network(args: &TrainArgs, types: usize, events: usize, length: usize) -> anyhow::Result<NetworkConfig> {
    let usual = usual(args.size.unwrap_or_default(), types, events);
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
    let shape = Shape { layers, width, heads, head_width, feed_forward };
    Ok(match args.backbone {
        Backbone::Gru => shape.network(Trainee::Gru, types, length),
        Backbone::Lstm => shape.network(Trainee::Lstm, types, length),
        Backbone::Mamba => shape.network(Trainee::Mamba, types, length),
        Backbone::Bert => shape.encoder(types, length),
        // N-grams are no network and do not come here.
        Backbone::Llama | Backbone::Ngram => shape.network(Trainee::Llama, types, length),
    })
}
