//! Maps a model without reading it, then touches one tensor.
#![expect(unsafe_code, reason = "a mapping is sound only while nobody writes to the files")]

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use modeldir::ModelDir;
use modeldir_examples::{bytes, counted, model_path, run, shown, time};

/// Maps a model without reading it, then touches one tensor.
#[derive(Parser)]
struct Args {
    /// Directory, .safetensors file or index; a small model of the repository if absent
    path: Option<PathBuf>,
    /// Tensor to touch; the first one if absent
    name: Option<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    run(|out| {
        let start = Instant::now();
        let model = ModelDir::open(model_path(args.path))?;
        let opened = start.elapsed();

        let start = Instant::now();
        // SAFETY: the user of this example leaves the model's files alone until it ends.
        let store = unsafe { model.plan().map()? };
        let mapped = start.elapsed();

        // The first access to a page reads it from the file; the other tensors are never read.
        let name = args.name.as_deref().or_else(|| store.names().next()).ok_or("no tensors")?;
        let tensor = store.get(name)?;
        let start = Instant::now();
        let zeros = tensor.bytes().iter().filter(|&&byte| byte == 0).count();
        let touched = start.elapsed();

        let (shards, tensors) =
            (counted(model.shards().len(), "shard"), counted(store.len(), "tensor"));
        let total = bytes(store.byte_len());
        writeln!(out, "open   {:>10}  headers of {shards}", time(opened))?;
        writeln!(out, "map    {:>10}  {tensors}, {total}, nothing read", time(mapped))?;
        let (name, zeros) = (shown(name), counted(zeros, "zero byte"));
        let size = bytes(tensor.byte_len() as u64);
        writeln!(out, "touch  {:>10}  {name}, {size}, {zeros}", time(touched))?;
        Ok(())
    })
}
