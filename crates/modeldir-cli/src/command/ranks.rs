//! `modeldir ranks`: the tensors and reads of each rank of a job, from headers alone.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::args::{JobArgs, ModelArgs, RuleArgs};
use crate::failure::Result;
use crate::output::{Output, print_json};
use crate::page::{job_page, write_page};
use crate::ranks::JobPlan;

const AFTER: &str = "\
Columns:
  bytes       what the rank holds
  share       these bytes in per cent of all bytes of the model
  replicated  those of them that other ranks hold too
  read        bytes read from files, including gaps between the parts
  reads       number of reads

Examples:
  modeldir ranks Llama-3.1-70B --tp 8
  modeldir ranks Llama-3.1-70B --tp 4 --pp 2 --json
  modeldir ranks Mixtral-8x7B --tp 2 --ep 4
  modeldir ranks Llama-3.1-70B --tp 8 --html ranks.html
  modeldir ranks bert-base --tp 4 --rules rules.json";

/// Show what each rank of a job would hold and read
///
/// Without --tp, --pp and --ep the job is that of --tp 2. Reads headers and JSON files only.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
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
    /// Write a page for a browser to FILE instead: bars for each rank, and the table
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
        Ok(if self.json { print_json(&job.json(), out) } else { print(&job, out) }?)
    }
}

fn print(job: &JobPlan<'_>, out: &mut Output) -> io::Result<()> {
    job.table().print(out)?;
    let lines = job.oddity_lines();
    if !lines.is_empty() {
        out.gap()?;
    }
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}
