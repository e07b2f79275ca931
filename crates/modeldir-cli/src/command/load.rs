//! `modeldir load`: loads a whole model, and prints what was loaded and how fast.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use modeldir::plan::PlannedTensor;
use modeldir::{LoadPlan, ModelDir, TensorStore};
use serde_json::{Value, json};
use tensorfile::PathText;

use crate::args::{ModelArgs, NameArgs, parse_number};
use crate::contents::{Tally, print_report};
use crate::failure::Result;
use crate::output::{Output, bytes, counted, path_json, print_json, rate, time};
use crate::progress::load;

/// Maximum lines of the report of opening.
const MAX_REPORT_LINES: usize = 10;

const EXAMPLES: &str = "\
Examples:
  modeldir load Llama-3.1-8B
  modeldir load Llama-3.1-8B --threads 32
  modeldir load Llama-3.1-8B --json | jq .seconds";

/// Load a whole model into memory, in parallel, and print what was loaded and how fast
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    names: NameArgs,
    /// Number of reading threads [default: one for each processor, more while reads wait for a disk]
    #[arg(long, value_name = "N", value_parser = parse_number)]
    threads: Option<NonZeroUsize>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(&self, out: &mut Output) -> Result {
        let model = self.model.open()?;
        let plan = self.names.choose(&model.plan())?;
        let store = load(&plan, self.threads)?;
        let loaded = Loaded::new(&model, &plan, &store);
        Ok(if self.json { print_json(&loaded.json(), out) } else { loaded.print(out) }?)
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
    fn new(model: &'a ModelDir, plan: &LoadPlan, store: &'a TensorStore) -> Self {
        let tensors = || plan.planned().map(PlannedTensor::stored);
        let (shards, dtypes) = (Tally::by_shard(tensors()), Tally::by_dtype(tensors()));
        Self { model, store, shards, dtypes }
    }

    fn print(&self, out: &mut Output) -> io::Result<()> {
        writeln!(out, "{}", PathText(self.model.path()))?;
        self.shards.print(out)?;
        self.dtypes.print(out)?;

        let (stats, total) = (self.store.stats(), bytes(self.store.byte_len()));
        let (took, rate) = (time(stats.elapsed), rate(stats.bytes_read, stats.elapsed));
        let (tensors, threads) =
            (counted(self.store.len(), "tensor"), counted(stats.threads, "thread"));
        out.gap()?;
        writeln!(out, "{}", out.bold(format!("{tensors}, {total} in {took}, {rate}, {threads}")))?;
        print_report(self.model.report(), MAX_REPORT_LINES, out)
    }

    fn json(&self) -> Value {
        let stats = self.store.stats();
        json!({
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
        })
    }
}
