//! Writes tensors of a model to a new file, then reads it back and compares.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use modeldir::{LoadOptions, ModelDir};
use modeldir_examples::{bytes, counted, model_path, run, shown};
use tensorfile::{PathText, TensorFile, Writer};

/// Writes tensors of a model to a new file, then reads it back and compares.
#[derive(Parser)]
struct Args {
    /// Directory, .safetensors file or index; a small model of the repository if absent
    path: Option<PathBuf>,
    /// File to write; a temporary one if absent
    to: Option<PathBuf>,
    /// Write only the tensors whose names start so
    #[arg(long, default_value = "", hide_default_value = true)]
    only: String,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    run(|out| {
        let folder = tempfile::tempdir()?;
        let to = args.to.unwrap_or_else(|| folder.path().join("part.safetensors"));
        if to.exists() && !args.force {
            return Err(format!("{}: is there already (--force replaces it)", PathText(&to)).into());
        }

        // Only the chosen tensors are read.
        let model = ModelDir::open(model_path(args.path))?;
        let plan = model.plan().filter(|tensor| tensor.name().starts_with(&args.only));
        if plan.is_empty() {
            return Err(format!("no tensor's name starts with {}", shown(&args.only)).into());
        }
        let store = plan.load(&LoadOptions::default())?;

        // The file appears whole under its name, or not at all.
        let mut writer = Writer::new().with_metadata("format", "pt");
        for (_, tensor) in store.iter() {
            writer.add_tensor(tensor)?;
        }
        writer.save(&to)?;

        let saved = TensorFile::open(&to)?;
        for (name, tensor) in store.iter() {
            let read = saved.read(name)?;
            if (read.shape(), read.bytes()) != (tensor.shape(), tensor.bytes()) {
                return Err(format!("{}: {} differs", PathText(&to), shown(name)).into());
            }
        }
        let (tensors, size) = (counted(store.len(), "tensor"), bytes(saved.source().opened_len()));
        writeln!(out, "{}: {tensors}, {size}, read back and equal", PathText(&to))?;
        Ok(())
    })
}
