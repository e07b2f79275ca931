//! The memory that opening and streaming take, held to the bounds that the documentation states. A
//! binary of its own, for it counts what every thread allocates.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use modeldir::{Error, ErrorKind, LoadOptions, ModelDir, OpenOptions};
use modeldir_fixtures::{Excess, ShardedModel, Tensor as Made, file};
use peak_alloc::PeakAlloc;
use tensorfile::HeaderOptions;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Lets one test at a time count.
fn alone() -> MutexGuard<'static, ()> {
    static COUNTING: Mutex<()> = Mutex::new(());
    COUNTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the documentation of `OpenOptions` promises: so many times the bytes of headers and index.
const MAX_FACTOR: usize = 8;

/// And so many bytes for each shard.
const PER_SHARD: usize = 2048;

/// And so much whatever the model, which aliases alone can come near.
const CONSTANT: usize = 2 << 20;

/// What it is without them.
const CONSTANT_WITHOUT_ALIASES: usize = 64 << 10;

/// Bytes of headers and index of each hostile directory: many times what is constant, and about as
/// many as the aliases need that are kept.
const HOSTILE_LENS: [usize; 2] = [1 << 20, 96 << 10];

/// Opens and returns the most memory that it took.
fn peak_of(path: &Path, options: &OpenOptions) -> (Result<ModelDir, Error>, usize) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let opened = ModelDir::open_with(path, options);
    (opened, ALLOCATOR.peak_usage() - before)
}

/// Whether a kind of directory opens under these options.
fn opens(excess: Excess, is_raised: bool) -> bool {
    match excess {
        Excess::Absent | Excess::Misplaced | Excess::Shards => false,
        Excess::Dimensions => is_raised,
        _ => true,
    }
}

#[test]
fn hostile_directories_take_memory_in_proportion_to_their_length() {
    let _alone = alone();
    let header = HeaderOptions {
        max_tensors: usize::MAX,
        max_name_bytes: usize::MAX,
        max_rank: usize::MAX,
        ..HeaderOptions::default()
    };
    let raised = OpenOptions { header, max_shards: usize::MAX, ..OpenOptions::default() };
    let default = OpenOptions::default();
    let all = HOSTILE_LENS.iter().flat_map(|len| Excess::ALL.map(|excess| (excess, *len)));
    for (excess, len) in all {
        let folder = tempfile::tempdir().unwrap();
        let len = excess.write(folder.path(), len).unwrap();
        for (options, is_raised) in [(&default, false), (&raised, true)] {
            let (opened, peak) = peak_of(folder.path(), options);
            assert_eq!(opened.is_ok(), opens(excess, is_raised), "{excess:?}: {opened:?}");
            // What is said of it is bounded too.
            let said = match &opened {
                Ok(model) => model.report().to_string(),
                Err(error) => error.to_string(),
            };
            let shards = match &opened {
                Ok(model) => model.shards().len(),
                Err(error) => match error.kind() {
                    ErrorKind::Incomplete { faults, .. } if excess == Excess::Shards => {
                        faults.len()
                    }
                    _ => 2,
                },
            };
            let factor = peak as f64 / len as f64;
            println!("{factor:6.2} {excess:?}, {shards} shards, {} bytes said", said.len());
            // Only where the limit is raised can a shape be that long.
            let max_factor = if excess == Excess::Dimensions { 11 } else { MAX_FACTOR };
            let is_constant = excess == Excess::Aliases;
            let constant = if is_constant { CONSTANT } else { CONSTANT_WITHOUT_ALIASES };
            let most = max_factor * len + PER_SHARD * shards + constant;
            assert!(peak <= most, "{excess:?}: {peak} bytes for {len} and {shards} shards");
            let lines = said.lines().count();
            assert!(excess == Excess::Shards || lines <= 1100, "{excess:?}: {lines} lines");
        }
    }
}

/// Experts of one shard, whose headers are long beside their bytes.
fn experts(shard: usize) -> Vec<Made> {
    let parts = ["down_proj", "gate_proj", "up_proj"];
    let tensors = (0..256).flat_map(|expert| {
        parts.map(|part| format!("model.layers.{shard}.mlp.experts.{expert}.{part}.weight"))
    });
    tensors.map(|name| Made::random(&name, "BF16", &[4, 2])).collect()
}

fn header_len(file: &[u8]) -> usize {
    let (header_len, _) = file.split_first_chunk().expect("a file starts with eight bytes");
    usize::try_from(u64::from_le_bytes(*header_len)).expect("it is in memory")
}

#[test]
fn opening_takes_at_most_four_times_the_headers() {
    let _alone = alone();
    const SHARDS: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let mut model = ShardedModel::new(SHARDS);
    let mut header_bytes = 0;
    for shard in 1..=SHARDS {
        let tensors = experts(shard);
        header_bytes += header_len(&file(&tensors));
        model = tensors.into_iter().fold(model, |model, tensor| model.tensor(shard, tensor));
    }
    model.write(folder.path()).unwrap();
    drop(model);

    for with_index in [true, false] {
        if !with_index {
            std::fs::remove_file(folder.path().join("model.safetensors.index.json")).unwrap();
        }
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let model = ModelDir::open(folder.path()).unwrap();
        let peak = ALLOCATOR.peak_usage() - before;
        assert_eq!(model.len(), SHARDS * 768);
        assert!(peak <= 4 * header_bytes, "{peak} bytes for {header_bytes} of headers");
    }
}

#[test]
fn windows_of_a_stream_take_no_memory_before_their_turn() {
    const SHARDS: usize = 60;
    const TENSORS: usize = 60 * SHARDS;
    const IN_FLIGHT: usize = 40 << 10;
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let model = (0..TENSORS).fold(ShardedModel::new(SHARDS), |model, i| {
        model.tensor(1 + i % SHARDS, Made::random(&format!("t{i:04}"), "U8", &[8000]))
    });
    model.write(folder.path()).unwrap();
    drop(model);
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let max_bytes_in_flight = NonZeroU64::new(IN_FLIGHT as u64);
    let options = LoadOptions { max_bytes_in_flight, ..LoadOptions::default() };
    let mut taken = 0;
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let done = plan.stream_with(&options, |_| {
        taken += 1;
        Ok(())
    });
    let peak = ALLOCATOR.peak_usage() - before;
    // Two of them are longer than a window, so each is one of its own.
    assert_eq!((taken, done.unwrap().requests), (TENSORS, TENSORS));
    let bound = IN_FLIGHT + 100 * TENSORS + (256 << 10);
    assert!(peak <= bound, "{peak} bytes, at most {bound}");
}
