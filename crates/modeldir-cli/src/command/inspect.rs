//! `modeldir inspect`: the content of a model, from its headers and JSON files alone.

use std::path::PathBuf;

use modeldir::ModelDir;
use tensorfile::PathText;

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

/// Show what a model holds: tensors, shards, dtypes, configuration, tokenizer, what is odd
///
/// Reads headers and JSON files alone.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// List every tensor, not one row for those of all layers
    #[arg(long)]
    all: bool,
    /// Print one JSON object with everything instead of tables
    #[arg(long)]
    json: bool,
    /// Write a page for a browser to this file instead: bytes by module, shards, dtypes, report
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "all"])]
    html: Option<PathBuf>,
}

impl Args {
    pub(super) fn run(&self, out: &mut Output) -> Result {
        let model = self.model.open()?;
        if let Some(file) = &self.html {
            return write_page(&model_page(&model), file, out);
        }
        if self.json {
            return print_json(&model_json(&model), out);
        }
        let tensors = if self.all { tensor_rows(&model) } else { tensor_groups(&model) };
        tensors.print(out)?;
        print_tallies(&model, out)?;
        beside_the_weights(&model).print(out)?;
        print_report(model.report(), usize::MAX, out)
    }
}

fn print_tallies(model: &ModelDir, out: &mut Output) -> Result {
    let (mut shards, mut dtypes) = (Tally::new("shard"), Tally::new("dtype"));
    for tensor in model.tensors() {
        shards.add(&PathText(tensor.shard().path()), tensor.byte_len());
        dtypes.add(&tensor.dtype(), tensor.byte_len());
    }
    shards.print(out)?;
    Ok(dtypes.print(out)?)
}
