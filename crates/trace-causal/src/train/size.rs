//! The network that the options ask for, and what is left to the log.

use trace_models::neural::NetworkConfig;
use trace_models::neural::shape::{Architecture, Shape};
use trace_models::neural::train::CorpusStatistics;

use super::{Backbone, NetworkOptions, Size};
use crate::Error;

/// The shape of a named size; `auto` goes by the log.
const fn default_shape(size: Size, types: usize, events: usize) -> Shape {
    match size {
        Size::Tiny => Shape::TINY,
        Size::Small => Shape::SMALL,
        Size::Base => Shape::BASE,
        Size::Large => Shape::LARGE,
        Size::Auto => Shape::for_corpus(types, events),
    }
}

/// The network for a corpus, which it reads in pieces of at most `length` targets.
pub(super) fn network(
    backbone: Backbone,
    options: &NetworkOptions,
    statistics: &CorpusStatistics,
    length: usize,
) -> Result<NetworkConfig, Error> {
    let (types, events) = (statistics.counts.len(), statistics.training_events());
    let default = default_shape(options.size.unwrap_or_default(), types, events);
    let layers = options.layers.unwrap_or(default.layers);
    let hidden_size = options.width.unwrap_or(default.hidden_size);
    let intermediate_size =
        options.feed_forward.unwrap_or_else(|| (hidden_size * default.intermediate_size).div_ceil(default.hidden_size));
    let (heads, head_dim) = heads(backbone, options, &default, hidden_size)?;
    let shape = Shape { layers, hidden_size, heads, head_dim, intermediate_size };
    let architecture = match backbone {
        Backbone::Gru => Architecture::Gru,
        Backbone::Lstm => Architecture::Lstm,
        Backbone::Mamba => Architecture::Mamba,
        // N-grams are no network and do not come here.
        Backbone::Llama | Backbone::Ngram => Architecture::Llama,
    };
    Ok(shape.network(architecture, statistics.outcomes(), length))
}

/// The number of heads and the size of each.
fn heads(
    backbone: Backbone,
    options: &NetworkOptions,
    default: &Shape,
    hidden_size: usize,
) -> Result<(usize, usize), Error> {
    let chosen = match (options.heads, options.head_width) {
        (Some(count), Some(size)) => (count, size),
        (Some(count), None) => (count, hidden_size / count),
        // As many as carry a whole row, or a few more.
        (None, Some(size)) => {
            let divides = |count: &usize| hidden_size.is_multiple_of(*count);
            ((hidden_size.div_ceil(size)..=hidden_size).find(divides).unwrap_or(hidden_size), size)
        }
        (None, None) => match default.heads_for(hidden_size) {
            Some(default) => default,
            // A hidden size of the user's own that the default heads do not fit.
            None => {
                let fit = |count: &usize| hidden_size.is_multiple_of(count * 2);
                let count = (1..=default.heads).rev().find(fit).unwrap_or(1);
                (count, hidden_size / count)
            }
        },
    };
    let (count, size) = chosen;
    match backbone {
        Backbone::Llama if !hidden_size.is_multiple_of(count) => Err(Error::option(
            "heads",
            format!("{count} does not divide the width {hidden_size}, as Transformers wants it to"),
        )),
        Backbone::Llama if size % 2 == 1 => Err(Error::option(
            "heads",
            format!("{count} gives each an odd part of the width {hidden_size}; expected an even one, or a head width"),
        )),
        _ => Ok(chosen),
    }
}
