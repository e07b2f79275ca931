//! Loads a whole model into memory, in parallel, and says what arrived and how fast.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use modeldir::{LoadOptions, ModelDir, Progress};
use modeldir_examples::{
    Tally, bytes, counted, model_path, print_report, progress_bar, rate, run, time,
};
use tensorfile::PathText;

/// Loads a whole model into memory, in parallel, and says what arrived and how fast.
#[derive(Parser)]
struct Args {
    /// Directory, .safetensors file or index; a small model of the repository if absent
    path: Option<PathBuf>,
    /// Threads that read; as many as there are processors if absent
    #[arg(long)]
    threads: Option<NonZeroUsize>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    run(|out| {
        // Reads JSON and headers only. A directory that is not whole is refused here.
        let model = ModelDir::open(model_path(args.path))?;

        // The plan is the list of reads. When `load` returns, every byte of them is in memory.
        let plan = model.plan();
        let bar = progress_bar(plan.bytes_read());
        let advance = |progress: Progress| bar.set_position(progress.bytes_done);
        let options = LoadOptions {
            threads: args.threads,
            progress: Some(&advance),
            ..LoadOptions::default()
        };
        let store = plan.load(&options)?;
        bar.finish_and_clear();

        let (mut shards, mut dtypes) = (Tally::new("shard"), Tally::new("dtype"));
        for (name, tensor) in store.iter() {
            let shard = model.shards()[model.info(name)?.shard()].path();
            shards.add(PathText(shard), tensor.byte_len());
            dtypes.add(tensor.dtype(), tensor.byte_len());
        }
        writeln!(out, "{}\n", PathText(model.path()))?;
        shards.print(out)?;
        dtypes.print(out)?;

        let (stats, total) = (store.stats(), bytes(store.byte_len()));
        let (took, rate) = (time(stats.elapsed), rate(stats.bytes_read, stats.elapsed));
        let (tensors, threads) = (counted(store.len(), "tensor"), counted(stats.threads, "thread"));
        writeln!(out, "{}", out.bold(format!("{tensors}, {total} in {took}, {rate}, {threads}")))?;

        // What was ignored or odd, and not refused; empty for a plain directory.
        print_report(model.report(), 10, out)
    })
}
