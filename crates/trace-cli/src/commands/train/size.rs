//! What `--size auto` and the other sizes mean.

use trace_models::neural::NetworkConfig;
use trace_models::neural::shape::{Shape, Trainee};
use trace_models::neural::train::Echo;

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
pub fn network(
    args: &TrainArgs,
    types: usize,
    events: usize,
    length: usize,
    echo: &Echo,
) -> anyhow::Result<NetworkConfig> {
    let usual = usual(args.size.unwrap_or_default(), types, events);
    let layers = within("layers", args.layers, 1, 128)?.unwrap_or(usual.layers);
    let width = within("width", args.width, 4, 16_384)?.unwrap_or(usual.width);
    let feed_forward = within("feed-forward", args.feed_forward, 1, 65_536)?
        .unwrap_or_else(|| (width * usual.feed_forward).div_ceil(usual.width));
    let (heads, head_width) = heads(args, &usual, width)?;
    let mut shape = Shape { layers, width, heads, head_width, feed_forward };
    if args.heads.is_none() && args.head_width.is_none() {
        shape = shape.reaching(echo.reach());
    }
    Ok(match args.backbone {
        Backbone::Gru => shape.network(Trainee::Gru, types, length),
        Backbone::Lstm => shape.network(Trainee::Lstm, types, length),
        Backbone::Mamba => shape.network(Trainee::Mamba, types, length),
        Backbone::Bert => shape.encoder(types, length),
        // N-grams are no network and do not come here.
        Backbone::Llama | Backbone::Ngram => shape.network(Trainee::Llama, types, length),
    })
}

/// A value that a flag may have.
fn within(flag: &str, value: Option<usize>, least: usize, most: usize) -> anyhow::Result<Option<usize>> {
    match value {
        Some(value) if !(least..=most).contains(&value) => {
            Err(Failure::usage(format!("--{flag}: {value} is out of range; expected {least} to {most}")))
        }
        value => Ok(value),
    }
}

/// The number of heads and the width of each.
fn heads(args: &TrainArgs, usual: &Shape, width: usize) -> anyhow::Result<(usize, usize)> {
    let count = within("heads", args.heads, 1, 256)?;
    let head_width = within("head-width", args.head_width, 2, 1024)?;
    if let Some(odd) = head_width.filter(|head_width| !head_width.is_multiple_of(2)) {
        return Err(Failure::usage(format!("--head-width: {odd} is odd; expected an even number")));
    }
    let chosen = match (count, head_width) {
        (Some(count), Some(head_width)) => (count, head_width),
        (Some(count), None) => (count, width / count),
        // As many as carry a whole row, or a few more.
        (None, Some(head_width)) => {
            let divides = |count: &usize| width.is_multiple_of(*count);
            ((width.div_ceil(head_width)..=width).find(divides).unwrap_or(width), head_width)
        }
        (None, None) => match usual.heads_for(width) {
            Some(usual) => usual,
            // A width of the user's own that usual heads do not fit.
            None => {
                let fit = |count: &usize| width.is_multiple_of(count * 2);
                let count = (1..=usual.heads).rev().find(fit).unwrap_or(1);
                (count, width / count)
            }
        },
    };
    let (heads, each) = chosen;
    match args.backbone {
        Backbone::Llama | Backbone::Bert if !width.is_multiple_of(heads) => Err(Failure::usage(format!(
            "--width {width} with --heads {heads}: expected a number of heads that divides the width, as Transformers does"
        ))),
        Backbone::Llama if each % 2 == 1 => Err(Failure::usage(format!(
            "--width {width} with --heads {heads}: expected a width that gives each head an even part, or --head-width"
        ))),
        _ => Ok(chosen),
    }
}
