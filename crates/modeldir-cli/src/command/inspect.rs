//! Shows what a model holds, from its headers and JSON files alone.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use modeldir::ModelDir;
use modeldir_examples::{Tally, beside_the_weights, json_text, model_json, model_path};
use modeldir_examples::{print_report, run, tensor_groups, tensor_rows};
use tensorfile::PathText;

/// Shows what a model holds, from its headers and JSON files alone.
#[derive(Parser)]
struct Args {
    /// Directory, .safetensors file or index; a small model of the repository if absent
    path: Option<PathBuf>,
    /// List every tensor, not one row for those of all layers
    #[arg(long)]
    all: bool,
    /// Print one JSON object with everything instead of tables
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    run(|out| {
        let model = ModelDir::open(model_path(args.path))?;
        if args.json {
            return Ok(writeln!(out, "{}", json_text(&model_json(&model))?)?);
        }
        let tensors = if args.all { tensor_rows(&model) } else { tensor_groups(&model) };
        tensors.print(out)?;

        let (mut shards, mut dtypes) = (Tally::new("shard"), Tally::new("dtype"));
        for tensor in model.tensors() {
            shards.add(PathText(model.shards()[tensor.shard()].path()), tensor.byte_len());
            dtypes.add(tensor.dtype(), tensor.byte_len());
        }
        shards.print(out)?;
        dtypes.print(out)?;
        beside_the_weights(&model).print(out)?;
        print_report(model.report(), usize::MAX, out)
    })
}
