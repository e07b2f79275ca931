//! One measurement of one load in a process of its own; the last line printed is a JSON object.
//!
//! Takes what the drivers of other loaders take, so that all can be run in turns:
//! memory is touched and the cache brought into its state before the clock starts, and nothing is
//! given back before it stops.

use std::io::Write;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use modeldir::options::Io;
use modeldir::options::Populate;
use modeldir::{LoadOptions, LoadPlan, ModelDir, Rank, Tensor};
use modeldir::{LoadStats, MapOptions};
use modeldir_benches::{
    Usage, anonymous_bytes, drop_cache, free_bytes, pretouch, rank_plan, warm_cache, warm_half,
};
use serde_json::json;
use sha2::{Digest, Sha256};

/// Loads a model once and prints what that took.
#[derive(Parser)]
struct Args {
    /// The model directory.
    #[arg(long)]
    model_dir: PathBuf,
    /// State of the page cache before loading.
    #[arg(long, value_enum, default_value_t = Cache::Asis)]
    cache: Cache,
    /// How to load.
    #[arg(long, value_enum, default_value_t = Mode::Load)]
    mode: Mode,
    /// Threads that read; by default what the library chooses.
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Through the page cache or past it.
    #[arg(long, value_enum, default_value_t = Way::Auto)]
    io: Way,
    /// Take the part of this rank: of every other matrix rows, of the others columns.
    #[arg(long, requires = "world")]
    rank: Option<usize>,
    /// Number of ranks.
    #[arg(long, requires = "rank")]
    world: Option<NonZeroUsize>,
    /// Most bytes in flight of a stream, in MiB.
    #[arg(long)]
    in_flight_mib: Option<NonZeroU64>,
    /// Print a digest of names and bytes too.
    #[arg(long)]
    digest: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Cache {
    Hot,
    Cold,
    Half,
    Asis,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Mode {
    /// Into owned memory.
    Load,
    /// Into the memory of a load before, which is not timed.
    Reload,
    /// Mapped, and every page brought in.
    Map,
    /// Tensor by tensor.
    Stream,
}

#[derive(Clone, Copy, ValueEnum)]
enum Way {
    Auto,
    Buffered,
    Direct,
}

fn main() {
    let args = Args::parse();
    if let Err(error) = run(&args) {
        let mut chain: &dyn std::error::Error = &*error;
        eprint!("{chain}");
        while let Some(source) = chain.source() {
            eprint!(": {source}");
            chain = source;
        }
        eprintln!();
        std::process::exit(1);
    }
    // Giving gigabytes back is nobody's time.
    std::process::exit(0);
}

fn run(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let model = ModelDir::open(&args.model_dir)?;
    let paths: Vec<PathBuf> =
        model.shards().iter().map(|shard| args.model_dir.join(shard.path())).collect();
    let total = model.byte_len();
    drop(model);
    let first = (args.mode == Mode::Reload).then(|| ModelDir::open(&args.model_dir)?.load());
    let reused = first.transpose()?.map(modeldir::TensorStore::into_memory).unwrap_or_default();
    let resident_before_cold = match args.cache {
        Cache::Hot => warm_cache(&paths).map(|()| None)?,
        Cache::Cold => Some(drop_cache(&paths)?),
        Cache::Half => warm_half(&paths).map(|()| None)?,
        Cache::Asis => None,
    };
    let touched = total * if matches!(args.cache, Cache::Cold) { 23 } else { 13 } / 10;
    pretouch(touched.min(free_bytes().saturating_sub(768 << 20)));

    let (anon_before, before, start) = (anonymous_bytes(), Usage::now(), Instant::now());
    let plan = plan(args)?;
    let mut anon_peak = 0;
    let (tensors, stats) = load(args, &plan, reused, &mut anon_peak)?;
    let seconds = start.elapsed().as_secs_f64();
    let (after, anon_grown) = (Usage::now(), anonymous_bytes().max(anon_peak) - anon_before);

    let bytes = plan.bytes_selected();
    let line = json!({
        "peer": "modeldir",
        "cache": name(args.cache),
        "mode": name(args.mode),
        "threads": stats.threads,
        "seconds": seconds,
        "bytes": bytes,
        "gib_s": bytes as f64 / seconds / f64::from(1 << 30),
        "peak_rss": after.peak_rss,
        "anon_grown": anon_grown,
        "tensors": plan.len(),
        "bytes_read": stats.bytes_read,
        "bytes_direct": stats.bytes_direct,
        "minflt": after.minflt - before.minflt,
        "majflt": after.majflt - before.majflt,
        "utime": after.utime - before.utime,
        "stime": after.stime - before.stime,
        "resident_before_cold": resident_before_cold,
        "digest": args.digest.then(|| digest(&tensors)),
    });
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

/// The whole model, or the part of a rank.
fn plan(args: &Args) -> modeldir::Result<LoadPlan> {
    let plan = ModelDir::open(&args.model_dir)?.plan();
    match (args.rank, args.world) {
        (Some(rank), Some(world)) => {
            let rank = Rank::new(rank, world.get())?;
            rank_plan(&plan, rank.rank(), rank.size())
        }
        _ => Ok(plan),
    }
}

/// Loads; a stream says how much anonymous memory there was at most while it ran.
fn load(
    args: &Args,
    plan: &LoadPlan,
    reused: modeldir::Memory,
    anon_peak: &mut i64,
) -> modeldir::Result<(Vec<Tensor>, LoadStats)> {
    let io = match args.io {
        Way::Auto => Io::Auto,
        Way::Buffered => Io::Buffered,
        Way::Direct => Io::Direct,
    };
    let options = LoadOptions { threads: args.threads, io, ..LoadOptions::default() };
    let store = match args.mode {
        Mode::Load | Mode::Reload => plan.load_reusing_with(reused, &options)?,
        Mode::Map => {
            let options = MapOptions { populate: Populate::AtOnce, threads: args.threads };
            // SAFETY: nothing writes to the model while the bench runs.
            unsafe { plan.map_with(&options) }?
        }
        Mode::Stream => {
            let max_bytes_in_flight = args.in_flight_mib.map(|mib| mib.saturating_mul(MIB));
            let options = LoadOptions { max_bytes_in_flight, ..options };
            let (mut copies, mut unseen) = (Vec::new(), 0);
            let stats = plan.stream_with(&options, |tensor| {
                unseen += tensor.byte_len();
                if unseen >= LOOK_EVERY {
                    unseen = 0;
                    *anon_peak = anonymous_bytes().max(*anon_peak);
                }
                if args.digest {
                    copies.push(tensor);
                }
                Ok(())
            })?;
            return Ok((copies, stats));
        }
    };
    let tensors = store.iter().map(|(_, tensor)| tensor.clone()).collect();
    Ok((tensors, store.stats()))
}

/// Bytes of a stream after which its memory is looked at: that takes some microseconds.
const LOOK_EVERY: usize = 16 << 20;

const MIB: NonZeroU64 = NonZeroU64::new(1 << 20).expect("not zero");

/// The digest that all drivers print: names and bytes in the order of names.
fn digest(tensors: &[Tensor]) -> String {
    let mut in_order: Vec<&Tensor> = tensors.iter().collect();
    in_order.sort_by_key(|tensor| tensor.name().to_owned());
    let mut hash = Sha256::new();
    for tensor in in_order {
        hash.update(tensor.name());
        hash.update(tensor.bytes());
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
