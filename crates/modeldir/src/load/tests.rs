//! A caller's function that panics, cancels, uses a pool or changes a file, at each of its calls.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use rayon::prelude::*;
use tempfile::TempDir;
use tensorfile::{BufferMut, Selection};

use super::progress::Meter;
use super::run::Run;
use super::{Cancel, LoadOptions, Memory, Progress, job, memory};
use crate::{ErrorKind, IndexedTensor, LoadPlan, LoadStats, ModelDir, Result};

/// Requests of the plan.
const REQUESTS: usize = 12;

/// A plan of as many requests in three shards: every second of its tensors.
fn plan() -> (TempDir, LoadPlan) {
    let dir = tempfile::tempdir().unwrap();
    for shard in 0..3 {
        let tensor = |i: usize| {
            let name = format!("s{shard}.t{i}");
            modeldir_fixtures::Tensor::new(&name, "U8", &[4096], vec![1; 4096])
        };
        let tensors: Vec<_> = (0..2 * REQUESTS / 3).map(tensor).collect();
        let path = dir.path().join(modeldir_fixtures::shard_name(shard + 1, 3));
        std::fs::write(path, modeldir_fixtures::file(&tensors)).unwrap();
    }
    let plan = ModelDir::open(dir.path()).unwrap().plan();
    let is_even = |name: &str| name[4..].parse::<usize>().unwrap() % 2 == 0;
    let plan = plan.filter(|tensor| is_even(tensor.name()));
    assert_eq!(plan.requests().len(), REQUESTS);
    (dir, plan)
}

/// Loads, and tells of every request.
fn load(plan: &LoadPlan, options: &LoadOptions) -> Result<LoadStats> {
    let mut run = Run::new(plan, options);
    run.meter = Meter::new(plan.bytes_read(), options.progress.as_deref()).at_once();
    let mut regions = memory::regions(plan, Memory::default(), |_| Ok(()))?;
    let done = run.run_all(plan, job::of_plan(plan, &mut regions));
    let all: usize =
        regions.values_mut().flat_map(BufferMut::as_mut_slice).map(|b| usize::from(*b)).sum();
    assert!(done.is_err() || all == REQUESTS * 4096, "{all}");
    done
}

/// Options with so many threads that tell this function.
fn told(threads: usize, tell: impl Fn(Progress) + Send + Sync + 'static) -> LoadOptions {
    let threads = std::num::NonZeroUsize::new(threads);
    LoadOptions { threads, progress: Some(Arc::new(tell)), ..LoadOptions::default() }
}

#[test]
fn a_panic_at_any_call_reaches_the_caller_once_and_nobody_is_told_after() {
    let (_dir, plan) = plan();
    for threads in [1, 2, 8] {
        for at in 1.. {
            let calls = Arc::new(AtomicUsize::new(0));
            let told_calls = Arc::clone(&calls);
            let tell = move |_: Progress| {
                let call = told_calls.fetch_add(1, Ordering::Relaxed) + 1;
                if call == at {
                    std::panic::resume_unwind(Box::new(call));
                }
            };
            let options = told(threads, tell);
            let done = catch_unwind(AssertUnwindSafe(|| load(&plan, &options)));
            let calls_at_end = calls.load(Ordering::Relaxed);
            match done {
                Err(panic) => assert_eq!(*panic.downcast::<usize>().unwrap(), at),
                Ok(done) => {
                    assert_eq!(done.unwrap().requests, REQUESTS);
                    assert!(calls_at_end < at, "{calls_at_end} calls, none of which panicked");
                    // One thread alone tells of each request but the last, and then of all.
                    assert!(threads > 1 || at == REQUESTS + 1, "{at}");
                    break;
                }
            }
            assert_eq!(calls.load(Ordering::Relaxed), calls_at_end);
        }
    }
}

#[test]
fn a_load_that_is_cancelled_at_any_call_ends_there() {
    let (_dir, plan) = plan();
    for threads in [1, 2, 8] {
        for at in 1.. {
            let (calls, cancel) = (Arc::new(AtomicUsize::new(0)), Cancel::default());
            let (told_calls, flag) = (Arc::clone(&calls), cancel.clone());
            let tell = move |_: Progress| {
                if told_calls.fetch_add(1, Ordering::Relaxed) + 1 == at {
                    flag.cancel();
                }
            };
            let options = LoadOptions { cancel: Some(cancel), ..told(threads, tell) };
            match load(&plan, &options) {
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Cancelled), "{error}");
                    // Whoever had a job ended it, and nobody took another.
                    assert!(calls.load(Ordering::Relaxed) < at + threads);
                }
                Ok(stats) => {
                    assert_eq!(stats.requests, REQUESTS);
                    // The last call comes when all is there.
                    assert!(threads > 1 || at == REQUESTS, "{at}");
                    break;
                }
            }
        }
    }
}

#[test]
fn a_function_that_uses_a_pool_meets_no_job_of_the_load() {
    let (_dir, plan) = plan();
    let calls = Arc::new(AtomicUsize::new(0));
    let (told_calls, within) = (Arc::clone(&calls), Arc::new(AtomicUsize::new(0)));
    let tell = move |_: Progress| {
        told_calls.fetch_add(1, Ordering::Relaxed);
        assert_eq!(rayon::current_thread_index(), None, "a thread of a pool");
        assert_eq!(within.fetch_add(1, Ordering::Relaxed), 0, "called by another call");
        let sum: usize = (0..1000_usize).into_par_iter().map(std::hint::black_box).sum();
        assert_eq!(sum, 499_500);
        within.fetch_sub(1, Ordering::Relaxed);
    };
    for threads in [1, 8] {
        assert_eq!(load(&plan, &told(threads, tell.clone())).unwrap().requests, REQUESTS);
    }
    assert!(calls.load(Ordering::Relaxed) > REQUESTS);
}

/// Writes other bytes over a shard, which stays as long as it was.
fn rewrite(path: &Path) {
    let mut file = File::options().write(true).open(path).unwrap();
    let bytes = vec![9; 4096 * 2 * REQUESTS / 3];
    let data_start = file.metadata().unwrap().len() - bytes.len() as u64;
    file.seek(SeekFrom::Start(data_start)).unwrap();
    file.write_all(&bytes).unwrap();
    // Clocks of file systems are coarse.
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
}

#[test]
fn a_shard_that_is_rewritten_at_any_call_gives_its_old_bytes_or_an_error() {
    let rest = |tensor: IndexedTensor<'_>| {
        Some(Selection::all().with_range(0, tensor.shape()[0] / 4..tensor.shape()[0]))
    };
    let (mut changed, mut loaded) = (0, 0);
    for is_part in [false, true] {
        for threads in [1, 4] {
            for (shard, at) in (1..=3).flat_map(|shard| (1..REQUESTS).map(move |at| (shard, at))) {
                let (dir, whole) = plan();
                let plan = if is_part { whole.select(rest).unwrap() } else { whole };
                let path = dir.path().join(modeldir_fixtures::shard_name(shard, 3));
                let (calls, rewritten) = (AtomicUsize::new(0), path.clone());
                let tell = move |_: Progress| {
                    if calls.fetch_add(1, Ordering::Relaxed) + 1 == at {
                        rewrite(&rewritten);
                    }
                };
                let options = told(threads, tell);
                let mut run = Run::new(&plan, &options);
                run.meter = Meter::new(plan.bytes_read(), options.progress.as_deref()).at_once();
                let mut regions = memory::regions(&plan, Memory::default(), |_| Ok(())).unwrap();
                match run.run_all(&plan, job::of_plan(&plan, &mut regions)) {
                    Err(error) => match error.kind() {
                        ErrorKind::File(tensorfile::ErrorKind::Changed { .. }) => {
                            assert_eq!(error.path(), Some(&*path));
                            changed += 1;
                        }
                        _ => panic!("{error}"),
                    },
                    Ok(_) => {
                        let regions = memory::freeze(regions);
                        let tensors = memory::tensors(&plan, plan.planned(), &regions).unwrap();
                        assert!(tensors.iter().all(|t| t.bytes().iter().all(|byte| *byte == 1)));
                        loaded += 1;
                    }
                }
            }
        }
    }
    assert!(changed > 0 && loaded > 0, "{changed} changed, {loaded} loaded");
}
