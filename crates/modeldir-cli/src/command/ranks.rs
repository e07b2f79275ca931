//! `modeldir ranks`: the tensors and reads of each rank of a job, from headers alone.

use std::io::Write;
use std::path::PathBuf;

use crate::args::{JobArgs, ModelArgs, RuleArgs};
use crate::failure::Result;
use crate::output::{Output, print_json};
use crate::page::{job_page, write_page};
use crate::ranks::{JobPlan, oddity_lines, rank_table, ranks_json};

const EXAMPLES: &str = "\
Examples:
  modeldir ranks Llama-3.1-70B --tp 8
  modeldir ranks Llama-3.1-70B --tp 4 --pp 2 --json
  modeldir ranks Mixtral-8x7B --tp 2 --ep 4
  modeldir ranks Llama-3.1-70B --tp 8 --html ranks.html
  modeldir ranks bert-base --tp 4 --rules rules.json";

/// Show what each rank of a job would hold and read of a model
///
/// Two ranks that cut tensors between them, if no number is given. Reads headers alone.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    rules: RuleArgs,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Write a page for a browser to this file instead: bars for each rank, and the table
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
}

impl Args {
    pub(super) fn run(&self, out: &mut Output) -> Result {
        let model = self.model.open()?;
        let job = JobPlan::new(&model, &self.rules.partition(&model)?, self.job.or_tp(2).ranks()?)?;
        if let Some(file) = &self.html {
            return write_page(&job_page(&job), file, out);
        }
        if self.json {
            return print_json(&ranks_json(&job), out);
        }
        rank_table(&job).print(out)?;
        oddity_lines(&job).iter().try_for_each(|line| Ok(writeln!(out, "{line}")?))
    }
}
