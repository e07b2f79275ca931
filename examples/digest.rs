//! Prints the SHA-256 of every tensor as it is loaded.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use modeldir::{LoadOptions, ModelDir};
use modeldir_examples::{PART_BYTES, model_path, parts, progress_bar, run, shown};
use rayon::prelude::*;
use serde_json::json;
use sha2::{Digest, Sha256};
use tensorfile::Tensor;

/// Prints the SHA-256 of every tensor as it is loaded.
#[derive(Parser)]
struct Args {
    /// Directory, .safetensors file or index; a small model of the repository if absent
    path: Option<PathBuf>,
    /// Print one JSON object {name: {dtype, shape, sha256}} instead of lines
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    run(|out| {
        let model = ModelDir::open(model_path(args.path))?;
        let bar = progress_bar(model.byte_len());

        // A part at a time, so that a model larger than memory passes through.
        let mut digests = BTreeMap::new();
        for part in parts(&model.plan(), PART_BYTES) {
            let store = part.load(&LoadOptions::default())?;
            let tensors: Vec<(&str, &Tensor)> = store.iter().collect();
            let hash = |&(name, tensor): &(&str, &Tensor)| {
                let sha256 = format!("{:x}", Sha256::digest(tensor.bytes()));
                bar.inc(tensor.byte_len() as u64);
                (name.to_owned(), (tensor.dtype(), tensor.shape().to_vec(), sha256))
            };
            digests.par_extend(tensors.par_iter().map(hash));
        }
        bar.finish_and_clear();

        if args.json {
            let object = digests.into_iter().map(|(name, (dtype, shape, sha256))| {
                (name, json!({ "dtype": dtype.name(), "shape": shape, "sha256": sha256 }))
            });
            let object: serde_json::Map<_, _> = object.collect();
            serde_json::to_writer_pretty(&mut *out, &object)?;
            return Ok(writeln!(out)?);
        }
        for (name, (dtype, shape, sha256)) in &digests {
            writeln!(out, "{sha256}  {} {dtype} {shape:?}", shown(name))?;
        }
        Ok(())
    })
}
