//! The flags of `trace report`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  trace simulate scm --vocabulary 60 --memory 3 --length 30 --sequences 20 --out process\n  \
                  trace discover process/events.jsonl --model process --out results.jsonl --all-pairs\n  \
                  trace report results.jsonl --out report.html"
)]
pub struct ReportArgs {
    /// Result file; made with --all-pairs, the page can lower the threshold too
    pub results: PathBuf,
    /// Page to write, one HTML file that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Population graph to show [default: the results merged]
    #[arg(long, value_name = "FILE")]
    pub population: Option<PathBuf>,
    /// Headline of the page
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Only these sequences; may be given several times. What is merged is still all of them
    #[arg(long = "case", value_name = "ID")]
    pub cases: Vec<String>,
    /// Sequences to show, in the order of the file [default: 200, fewer where they have very many pairs]
    #[arg(long, value_name = "N", conflicts_with = "cases", allow_negative_numbers = true)]
    pub max_sequences: Option<usize>,
}
