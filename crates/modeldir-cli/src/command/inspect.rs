//! `modeldir inspect`: the content of a model, from its headers and JSON files alone.

use std::io;
use std::path::PathBuf;

use modeldir::ModelDir;

use crate::args::ModelArgs;
use crate::contents::{
    Tally, beside_the_weights, model_json, print_report, tensor_groups, tensor_rows,
};
use crate::failure::Result;
use crate::output::{Output, print_json};
use crate::page::{model_page, write_page};

const EXAMPLES: &str = "\
Examples:
  modeldir inspect Llama-3.1-8B
  modeldir inspect Llama-3.1-8B --all | grep lm_head
  modeldir inspect Llama-3.1-8B --json | jq .config.rope_scaling
  modeldir inspect Llama-3.1-8B --html model.html";

/// Show what a model holds: tensors, shards, dtypes, configuration, tokenizer, and what is odd
///
/// Reads headers and JSON files only.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// List every tensor; otherwise those that differ only in a number, such as the layer, share a row
    #[arg(long)]
    all: bool,
    /// Print one JSON object with everything instead of tables
    #[arg(long)]
    json: bool,
    /// Write a page for a browser to FILE instead: bytes by module, shards, dtypes, report
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "all"])]
    html: Option<PathBuf>,
}

impl Args {
    pub(super) fn run(&self, out: &mut Output) -> Result {
        let model = self.model.open()?;
        if let Some(file) = &self.html {
            return write_page(&model_page(&model), file, out);
        }
        Ok(if self.json { print_json(&model_json(&model), out) } else { self.print(&model, out) }?)
    }

    fn print(&self, model: &ModelDir, out: &mut Output) -> io::Result<()> {
        let tensors = if self.all { tensor_rows(model) } else { tensor_groups(model) };
        tensors.print(out)?;
        Tally::by_shard(model.tensors()).print(out)?;
        Tally::by_dtype(model.tensors()).print(out)?;
        beside_the_weights(model).print(out)?;
        print_report(model.report(), usize::MAX, out)
    }
}
