//! Says whether a model is complete and sound, and which files to fetch again if it is not.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use modeldir::{Error, LoadOptions, ModelDir};
use modeldir_examples::{PART_BYTES, broken_beside, model_path, parts, progress_bar};
use modeldir_examples::{run, show_error, wanting};
use tensorfile::PathText;

/// Says whether a model is complete and sound, and which files to fetch again if it is not.
#[derive(Parser)]
struct Args {
    /// Directory, .safetensors file or index; a small model of the repository if absent
    path: Option<PathBuf>,
    /// Read every byte too, a part at a time
    #[arg(long)]
    read: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    run(|out| {
        let path = model_path(args.path);
        let faults = faults(&path, args.read);
        if faults.is_empty() {
            let read = if args.read { "every byte" } else { "headers and JSON" };
            let verdict = out.green(format!("complete and sound ({read} read)"));
            writeln!(out, "{}: {verdict}", PathText(&path))?;
            return Ok(ExitCode::SUCCESS);
        }
        faults.iter().for_each(|fault| show_error(fault));
        for file in wanting(&faults) {
            writeln!(out, "fetch again: {}", PathText(file.strip_prefix(&path).unwrap_or(file)))?;
        }
        Ok(ExitCode::FAILURE)
    })
}

/// Everything that is wrong with the model.
fn faults(path: &Path, read: bool) -> Vec<Error> {
    // One error lists every missing and damaged shard; without it, the headers fit the index.
    let model = match ModelDir::open(path) {
        Ok(model) => model,
        Err(error) => return vec![error],
    };
    let mut faults = broken_beside(&model);
    if read {
        let bar = progress_bar(model.byte_len());
        for part in parts(&model.plan(), PART_BYTES) {
            faults.extend(part.load(&LoadOptions::default()).err());
            bar.inc(part.bytes_read());
        }
    }
    faults.dedup_by_key(|fault| fault.to_string());
    faults
}
