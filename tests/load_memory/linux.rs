//! The memory that a load takes, held to what its plan says. A binary of its own with one test, for
//! it asks the system how much memory the process has had at most.
#![expect(clippy::unwrap_used, reason = "what helpers meet fails the test that calls them")]

use std::fs;
use std::num::{NonZeroU64, NonZeroUsize};

use modeldir::options::Io;
use modeldir::{LoadOptions, LoadPlan, ModelDir, Selection};
use modeldir_fixtures::{ShardedModel, Tensor as Made};
use peak_alloc::PeakAlloc;

/// Counts what the allocator gives; large memory comes from the system itself.
#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MIB: u64 = 1 << 20;
const THREADS: u64 = 4;

/// What each thread has of its own: for the ends of direct reads, and where rows are cut.
const OF_A_THREAD: u64 = 2 * MIB;
const OF_A_THREAD_WITH_ROWS: u64 = 8 * MIB;

/// Stacks, counters that the system keeps for each thread, and the ends of huge pages.
const SPARE: u64 = 3 * MIB;

/// Bytes that the allocator may give for each tensor and request, to keep account of it.
const OF_A_TENSOR: u64 = 1024;

/// A field of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kib: u64 = line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap();
    kib * 1024
}

/// The most memory that something takes beyond what there is: of the system, and of the allocator.
fn peak<T>(work: impl FnOnce() -> T) -> (T, u64, u64) {
    // "5" makes the system forget how much there has been.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    ALLOCATOR.reset_peak_usage();
    let (before, given_before) = (status("VmRSS"), ALLOCATOR.current_usage());
    let done = work();
    let given = ALLOCATOR.peak_usage().saturating_sub(given_before);
    (done, status("VmHWM").saturating_sub(before), u64::try_from(given).unwrap())
}

#[expect(clippy::print_stdout, reason = "what was measured is told")]
fn assert_at_most(title: &str, peak: u64, bound: u64) {
    println!("{title}: {:.1} MiB of at most {:.1}", mib(peak), mib(bound));
    assert!(peak <= bound, "{title}: {peak} bytes, at most {bound}");
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB as f64
}

/// Three shards with 40 MiB of large tensors and many small ones.
fn model() -> (tempfile::TempDir, ModelDir) {
    let mut files = ShardedModel::new(3);
    for i in 0..5_u8 {
        let data = vec![i; 8 << 20];
        files = files
            .tensor(1 + usize::from(i % 3), Made::new(&format!("w{i}"), "U8", &[2048, 4096], data));
    }
    for i in 0..300 {
        let data = vec![1; 64];
        files = files.tensor(1 + i % 3, Made::new(&format!("b{i}"), "U8", &[64], data));
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    files.write(folder.path()).unwrap();
    let model = ModelDir::open(folder.path()).unwrap();
    (folder, model)
}

/// Streams for async code, and holds each tensor until the next one is asked for; returns the bytes.
fn hold_each(plan: &LoadPlan, options: &LoadOptions) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (mut stream, mut taken) = (plan.stream_async_with(options), 0);
        while let Some(tensor) = stream.next().await {
            let tensor = tensor.unwrap();
            taken += tensor.byte_len() as u64;
            // While they are looked at the loader takes all that it may.
            assert!(tensor.bytes().iter().all(|byte| *byte < 5), "{}", tensor.name());
        }
        taken
    })
}

#[test]
fn a_load_takes_what_its_plan_says_and_what_its_threads_have() {
    let (_folder, model) = model();
    let whole = model.plan();
    let part = whole
        .select(|tensor| {
            let is_large = tensor.byte_len() > 1 << 20;
            is_large.then(|| Selection::all().with_range(1, 1000..3000))
        })
        .unwrap();
    let threads = NonZeroUsize::new(4);
    // What a first load brings of the program itself is no memory of a load.
    drop(whole.load_with(&LoadOptions { threads, ..LoadOptions::default() }).unwrap());
    for io in [Io::Auto, Io::Buffered, Io::Direct] {
        let options = LoadOptions { threads, io, ..LoadOptions::default() };
        let plans = [("whole", &whole, OF_A_THREAD), ("part", &part, OF_A_THREAD_WITH_ROWS)];
        for (title, plan, of_a_thread) in plans {
            let of_threads = THREADS * of_a_thread + SPARE;
            let (store, most, given) = peak(|| plan.load_with(&options).unwrap());
            assert_at_most(&format!("{title} {io:?}"), most, plan.memory_bytes() + of_threads);
            let accounts = (plan.len() + plan.requests().len()) as u64 * OF_A_TENSOR + MIB / 2;
            assert_at_most(&format!("{title} {io:?}, accounts"), given, accounts);

            let memory = store.into_memory();
            let (store, most, _) = peak(|| plan.load_reusing_with(memory, &options).unwrap());
            assert_at_most(&format!("{title} {io:?}, memory used again"), most, of_threads);
            drop(store);

            let bound = 12 * MIB;
            let max_bytes_in_flight = NonZeroU64::new(bound);
            let stream = LoadOptions { max_bytes_in_flight, ..options.clone() };
            let (done, most, _) = peak(|| plan.stream_with(&stream, |_| Ok(())));
            assert_eq!(done.unwrap().bytes_read, plan.bytes_read());
            assert_at_most(&format!("{title} {io:?}, streamed"), most, bound + of_threads);

            let (taken, most, _) = peak(|| hold_each(plan, &stream));
            assert_eq!(taken, plan.bytes_selected());
            assert_at_most(&format!("{title} {io:?}, async stream"), most, bound + of_threads);
        }
    }
}
