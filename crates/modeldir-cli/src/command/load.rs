//! `modeldir load`: loads a whole model, and prints what was loaded and how fast.

use std::io::Write;
use std::num::NonZeroUsize;

use modeldir::{ModelDir, TensorStore};
use serde_json::json;
use tensorfile::PathText;

use crate::args::{ModelArgs, NameArgs};
use crate::contents::{Tally, print_report};
use crate::failure::Result;
use crate::output::{Output, bytes, counted, load_with_threads, path_json, print_json, rate, time};

const EXAMPLES: &str = "\
Examples:
  modeldir load Llama-3.1-8B
  modeldir load Llama-3.1-8B --threads 32
  modeldir load Llama-3.1-8B --json | jq .seconds";

/// Load a whole model into memory, in parallel, and say what arrived and how fast
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    names: NameArgs,
    /// Threads that read; as many as there are processors if absent, and more while disks are slow
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(&self, out: &mut Output) -> Result {
        let model = self.model.open()?;
        let store = load_with_threads(&self.names.choose(&model.plan())?, self.threads)?;
        let loaded = Loaded::new(&model, &store)?;
        if self.json { loaded.print_json(out) } else { loaded.print(out) }
    }
}

/// A finished load.
struct Loaded<'a> {
    model: &'a ModelDir,
    store: &'a TensorStore,
    shards: Tally,
    dtypes: Tally,
}

impl<'a> Loaded<'a> {
    fn new(model: &'a ModelDir, store: &'a TensorStore) -> Result<Self> {
        let (mut shards, mut dtypes) = (Tally::new("shard"), Tally::new("dtype"));
        for (name, tensor) in store.iter() {
            let shard = model.info(name)?.shard().path();
            shards.add(&PathText(shard), tensor.byte_len());
            dtypes.add(&tensor.dtype(), tensor.byte_len());
        }
        Ok(Self { model, store, shards, dtypes })
    }

    fn print(&self, out: &mut Output) -> Result {
        writeln!(out, "{}\n", PathText(self.model.path()))?;
        self.shards.print(out)?;
        self.dtypes.print(out)?;

        let (stats, total) = (self.store.stats(), bytes(self.store.byte_len()));
        let (took, rate) = (time(stats.elapsed), rate(stats.bytes_read, stats.elapsed));
        let (tensors, threads) =
            (counted(self.store.len(), "tensor"), counted(stats.threads, "thread"));
        writeln!(out, "{}", out.bold(format!("{tensors}, {total} in {took}, {rate}, {threads}")))?;
        print_report(self.model.report(), 10, out)
    }

    fn print_json(&self, out: &mut Output) -> Result {
        let stats = self.store.stats();
        let object = json!({
            "path": path_json(self.model.path()),
            "tensors": self.store.len(),
            "bytes": self.store.byte_len(),
            "bytes_read": stats.bytes_read,
            "reads": stats.requests,
            "threads": stats.threads,
            "seconds": stats.elapsed.as_secs_f64(),
            "shards": self.shards.json(),
            "dtypes": self.dtypes.json(),
            "report": self.model.report().to_string().lines().collect::<Vec<_>>(),
        });
        print_json(&object, out)
    }
}
