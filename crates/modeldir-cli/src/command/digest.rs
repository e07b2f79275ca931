//! Prints the SHA-256 of every tensor as it is loaded, or of the parts that one rank holds.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use modeldir::{At, LoadOptions, ModelDir, Topology};
use modeldir_examples::{PART_BYTES, RuleArgs, digests, model_path, parts, progress_bar, run};

/// Prints the SHA-256 of every tensor as it is loaded, or of the parts that one rank holds.
#[derive(Parser)]
struct Args {
    /// Directory, .safetensors file or index; a small model of the repository if absent
    path: Option<PathBuf>,
    /// Print one JSON object {name: {dtype, shape, sha256}} instead of lines
    #[arg(long)]
    json: bool,
    /// Take what tensor-parallel rank R of N holds, counted from 0, as 1/4
    #[arg(long, value_name = "R/N")]
    tp: Option<At>,
    #[command(flatten)]
    rules: RuleArgs,
}

fn main() -> ExitCode {
    let args = Args::parse();
    run(|out| {
        let model = ModelDir::open(model_path(args.path))?;
        let plan = match args.tp {
            Some(at) => {
                let topology = Topology::tensor_parallel(at.rank(), at.size())?;
                model.plan_for(&args.rules.partition(&model)?, &topology)?
            }
            None if args.rules.are_given() => {
                return Err("--rules and --uneven are about ranks: say which with --tp R/N".into());
            }
            None => model.plan(),
        };

        // A part at a time, so that a model larger than memory passes through.
        let bar = progress_bar(plan.bytes_selected());
        let mut all = Vec::with_capacity(plan.len());
        for part in parts(&plan, PART_BYTES) {
            let store = part.load(&LoadOptions::default())?;
            all.extend(digests(&store, |bytes| bar.inc(bytes)));
        }
        bar.finish_and_clear();
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));

        if args.json {
            let object = all.into_iter().map(|digest| (digest.name.clone(), digest.json()));
            let object: serde_json::Map<_, _> = object.collect();
            serde_json::to_writer_pretty(&mut *out, &object)?;
            return Ok(writeln!(out)?);
        }
        all.iter().try_for_each(|digest| Ok(writeln!(out, "{digest}")?))
    })
}
