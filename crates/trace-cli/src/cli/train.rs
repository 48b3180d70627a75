//! The flags of `trace train`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trace_causal::{Backbone, NetworkOptions, OptimizerKind, Order, Schedule, Size, TrainOptions};

use super::LogArgs;
use super::parse::parse_order;

/// The flags of `trace train`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  trace simulate scm --vocabulary 200 --memory 2 --sequences 500 --truth none --out process\n  \
                  trace train process/events.jsonl --out model"
)]
pub struct TrainArgs {
    /// The log
    #[command(flatten)]
    pub log: LogArgs,
    /// Model folder to write
    #[arg(long, value_name = "MODEL")]
    pub out: PathBuf,
    /// Architecture
    #[arg(long, value_enum, default_value_t = BackboneFlag::Llama)]
    pub backbone: BackboneFlag,
    /// Size of the network [default: auto, by the number of events and types]
    #[arg(long, value_enum, help_heading = "Network")]
    pub size: Option<SizeFlag>,
    /// Number of layers [default: by --size]
    #[arg(long, value_name = "N", help_heading = "Network", allow_negative_numbers = true)]
    pub layers: Option<usize>,
    /// Hidden size [default: by --size]
    #[arg(long, value_name = "D", help_heading = "Network", allow_negative_numbers = true)]
    pub width: Option<usize>,
    /// Attention heads of a LLaMA [default: by --size]
    #[arg(long, value_name = "N", help_heading = "Network", allow_negative_numbers = true)]
    pub heads: Option<usize>,
    /// Size of a head of a LLaMA; heads need not share the hidden size between them [default: width / heads]
    #[arg(long, value_name = "D", help_heading = "Network", allow_negative_numbers = true)]
    pub head_width: Option<usize>,
    /// Intermediate size of the feed-forward layers of a LLaMA [default: by --size]
    #[arg(long, value_name = "F", help_heading = "Network", allow_negative_numbers = true)]
    pub feed_forward: Option<usize>,
    /// Train for this many steps; the result is then the same to the bit on any number of threads
    #[arg(long, value_name = "N", help_heading = "Network", conflicts_with = "minutes", allow_negative_numbers = true)]
    pub steps: Option<u64>,
    /// Train for this many minutes [default: until the held-out loss no longer falls, at most 10 million events]
    #[arg(long, value_name = "M", help_heading = "Network", allow_negative_numbers = true)]
    pub minutes: Option<f64>,
    /// Sequences per step [default: as many as have about 1000 events]
    #[arg(long, value_name = "N", help_heading = "Network", allow_negative_numbers = true)]
    pub batch: Option<usize>,
    /// Events of a sequence that are read at once; longer ones are cut [default: the longest sequence, at most 256]
    #[arg(long, value_name = "L", help_heading = "Network", allow_negative_numbers = true)]
    pub length: Option<usize>,
    /// Largest learning rate [default: 0.003]
    #[arg(long, value_name = "R", help_heading = "Network", allow_negative_numbers = true)]
    pub learning_rate: Option<f32>,
    /// How the learning rate decays to zero [default: linear]
    #[arg(long, value_enum, help_heading = "Network")]
    pub schedule: Option<ScheduleFlag>,
    /// Weight decay of hidden matrices [default: 0.1]
    #[arg(long, value_name = "X", help_heading = "Network", allow_negative_numbers = true)]
    pub weight_decay: Option<f32>,
    /// Optimizer [default: adamw]
    #[arg(long, alias = "optimiser", value_enum, help_heading = "Network")]
    pub optimizer: Option<OptimizerFlag>,
    /// Seconds between checkpoints, from which --resume continues [default: 30]
    #[arg(long, value_name = "S", help_heading = "Network", allow_negative_numbers = true)]
    pub checkpoint_seconds: Option<f64>,
    /// Continue an interrupted run
    #[arg(long, help_heading = "Network")]
    pub resume: bool,
    /// Order of an n-gram model: a number, or auto for the lowest held-out loss [default: auto]
    #[arg(long, value_name = "auto|N", value_parser = parse_order, allow_negative_numbers = true)]
    pub order: Option<Order>,
    /// Share of sequences to measure the fit on instead of training on them
    #[arg(long, default_value_t = 0.1, value_name = "SHARE", allow_negative_numbers = true)]
    pub held_out: f64,
    /// Train two models, each on one half of the sequences, so that every sequence has one that has not seen it
    #[arg(long)]
    pub cross_fit: bool,
    /// The simulated process that made the log, to compare the fit with its entropy
    #[arg(long, value_name = "DIR")]
    pub process: Option<PathBuf>,
    /// Seed of the held-out split, the weights and the order of training
    #[arg(long, default_value_t = 7, value_name = "S", allow_negative_numbers = true)]
    pub seed: u64,
}

impl TrainArgs {
    /// The library's options.
    pub fn options(&self) -> TrainOptions {
        TrainOptions {
            backbone: self.backbone.backbone(),
            network: NetworkOptions {
                size: self.size.map(SizeFlag::size),
                layers: self.layers,
                width: self.width,
                heads: self.heads,
                head_width: self.head_width,
                feed_forward: self.feed_forward,
                steps: self.steps,
                minutes: self.minutes,
                batch: self.batch,
                length: self.length,
                learning_rate: self.learning_rate,
                schedule: self.schedule.map(|schedule| match schedule {
                    ScheduleFlag::Linear => Schedule::Linear,
                    ScheduleFlag::Cosine => Schedule::Cosine,
                }),
                weight_decay: self.weight_decay,
                optimizer: self.optimizer.map(|optimizer| match optimizer {
                    OptimizerFlag::Adamw => OptimizerKind::AdamW,
                    OptimizerFlag::Muon => OptimizerKind::Muon,
                }),
                checkpoint_seconds: self.checkpoint_seconds,
            },
            order: self.order,
            held_out: self.held_out,
            cross_fit: self.cross_fit,
            seed: self.seed,
        }
    }
}

/// Architectures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackboneFlag {
    /// Transformer with rotary positions
    Llama,
    /// Selective state-space model
    Mamba,
    /// Gated recurrent units
    Gru,
    /// Long short-term memory
    Lstm,
    /// Interpolated Kneser–Ney counts: for small logs, and trained in no time
    Ngram,
}

impl BackboneFlag {
    const fn backbone(self) -> Backbone {
        match self {
            Self::Llama => Backbone::Llama,
            Self::Mamba => Backbone::Mamba,
            Self::Gru => Backbone::Gru,
            Self::Lstm => Backbone::Lstm,
            Self::Ngram => Backbone::Ngram,
        }
    }
}

/// Sizes of networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SizeFlag {
    /// By the number of events and types
    Auto,
    /// 2 layers, width 64
    Tiny,
    /// 2 layers, width 128
    Small,
    /// 1 layer, width 512: the best fit per minute on large logs
    Base,
    /// 4 layers, width 512
    Large,
}

impl SizeFlag {
    const fn size(self) -> Size {
        match self {
            Self::Auto => Size::Auto,
            Self::Tiny => Size::Tiny,
            Self::Small => Size::Small,
            Self::Base => Size::Base,
            Self::Large => Size::Large,
        }
    }
}

/// Optimizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OptimizerFlag {
    /// AdamW for everything
    Adamw,
    /// Orthogonal steps for hidden matrices, AdamW for the rest
    Muon,
}

/// Learning rate schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScheduleFlag {
    /// In a straight line
    Linear,
    /// Slowly, then fast, then slowly
    Cosine,
}
