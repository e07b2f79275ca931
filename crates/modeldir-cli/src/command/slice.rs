//! Reads a rectangular part of one tensor, and nothing else of its file but the header.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use modeldir::ModelDir;
use modeldir_examples::{Ranges, bytes, counted, first_values, model_path, run, shown};
use tensorfile::TensorFile;

/// Reads a rectangular part of one tensor, and nothing else of its file but the header.
#[derive(Parser)]
struct Args {
    /// Directory, .safetensors file or index; a small model of the repository if absent
    #[arg(requires = "name")]
    path: Option<PathBuf>,
    /// Tensor to read from
    name: Option<String>,
    /// What to take of each dimension: 0..2 or 3 or :, as in 0..2,:,3..4
    ranges: Option<Ranges>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    run(|out| {
        let (name, ranges) = match args.name {
            Some(name) => (name, args.ranges.unwrap_or_default()),
            None => ("model.embed_tokens.weight".to_owned(), "2..4,0..8".parse()?),
        };

        // The index says which shard holds the tensor, and the tensor's shape.
        let model = ModelDir::open(model_path(args.path))?;
        let info = model.info(&name)?;
        let shard = model.path().join(model.shards()[info.shard()].path());

        // The selection becomes runs of bytes, before anything is read.
        let file = TensorFile::open(&shard)?;
        let selection = ranges.selection(info.shape());
        let runs = selection.lower(&shard, file.info(&name)?)?;
        let part = file.read_selection(&name, &selection)?;

        let (whole, read) = (bytes(info.byte_len() as u64), bytes(runs.byte_len() as u64));
        writeln!(out, "{}: {} {:?}, {whole}", shown(&name), info.dtype(), info.shape())?;
        writeln!(out, "part: {:?}, {read} in {}", part.shape(), counted(runs.num_runs(), "run"))?;
        writeln!(out, "values: {}", first_values(&part, 8)?)?;
        Ok(())
    })
}
