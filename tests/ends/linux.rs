//! However a load ends, nothing of it is left: no thread, no open file, no hold on memory. A binary
//! of its own, for it counts the threads of the process; its tests run one after the other.
#![expect(clippy::unwrap_used, reason = "what helpers meet fails the test that calls them")]

use std::fs;
use std::future::Future;
use std::num::{NonZeroU64, NonZeroUsize};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use modeldir::options::{Io, Populate};
use modeldir::{
    Cancel, Error, ErrorKind, LoadOptions, MapOptions, ModelDir, Progress, Selection, TensorStore,
};
use modeldir_fixtures::{ShardedModel, Tensor as Made};
use tempfile::TempDir;

/// Longer than a thread takes to leave the tables of the system once it has been waited for.
const PATIENCE: Duration = Duration::from_secs(20);

const SHARDS: usize = 3;
const TENSORS: usize = 12;

/// A model, and the right to be the only one that loads.
struct Alone {
    folder: TempDir,
    model: ModelDir,
    made: Vec<Made>,
    _turn: MutexGuard<'static, ()>,
}

impl Alone {
    fn new() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |i| format!("t{i:02}");
        let made: Vec<_> =
            (0..TENSORS).map(|i| Made::random(&name(i), "F32", &[16, 256 + i])).collect();
        let files = made.iter().enumerate();
        let files = files.fold(ShardedModel::new(SHARDS), |files, (i, tensor)| {
            files.tensor(1 + i % SHARDS, tensor.clone())
        });
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        files.write(folder.path()).unwrap();
        let model = ModelDir::open(folder.path()).unwrap();
        Self { folder, model, made, _turn: turn }
    }

    /// Fails unless every thread of the library has ended and every file of the model is closed.
    fn assert_nothing_is_left(&self, what: &str) {
        let start = Instant::now();
        loop {
            let (threads, files) = (our_threads(), open_below(self.folder.path()));
            if threads.is_empty() && files.is_empty() {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{what}: {threads:?} {files:?}");
            thread::yield_now();
        }
    }

    fn assert_holds(&self, store: &TensorStore) {
        assert_eq!(store.len(), self.made.len());
        for tensor in &self.made {
            assert!(store.get(&tensor.name).unwrap().bytes() == tensor.data, "{}", tensor.name);
        }
    }
}

/// The names of threads that the library has started.
fn our_threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("modeldir")).collect()
}

/// What this process has open in a folder.
fn open_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let files = files.filter_map(|file| fs::read_link(file.path()).ok());
    files.filter(|file| file.starts_with(folder)).collect()
}

fn threads(count: usize) -> Option<NonZeroUsize> {
    NonZeroUsize::new(count)
}

/// Memory for two of the tensors.
fn in_flight(load: LoadOptions) -> LoadOptions {
    LoadOptions { max_bytes_in_flight: NonZeroU64::new(64 << 10), ..load }
}

#[test]
fn one_model_is_loaded_by_many_threads_in_every_way_at_once() {
    const ROUNDS: usize = 6;
    let alone = Alone::new();
    let plan = alone.model.plan();
    let part = plan.select(|_| Some(Selection::all().with_range(1, 8..200))).unwrap();
    let wanted: Vec<_> = alone
        .made
        .iter()
        .map(|tensor| {
            let rows = tensor.data.chunks(tensor.shape[1] * 4);
            rows.flat_map(|row| row[8 * 4..200 * 4].to_vec()).collect::<Vec<u8>>()
        })
        .collect();
    let ways: [&(dyn Fn() + Sync); 6] = [
        &|| alone.assert_holds(&plan.load().unwrap()),
        &|| {
            let options = LoadOptions { io: Io::Direct, threads: threads(3), ..Default::default() };
            let store = part.load_with(&options).unwrap();
            for (tensor, wanted) in alone.made.iter().zip(&wanted) {
                assert!(store.get(&tensor.name).unwrap().bytes() == *wanted);
            }
        },
        &|| {
            let mut taken = 0;
            let done = plan.stream_with(&in_flight(LoadOptions::default()), |tensor| {
                taken += 1;
                let made = alone.made.iter().find(|made| made.name == tensor.name()).unwrap();
                assert!(tensor.bytes() == made.data);
                Ok(())
            });
            assert_eq!((done.unwrap().bytes_read, taken), (plan.bytes_read(), TENSORS));
        },
        &|| {
            let cancel = Cancel::default();
            let load = LoadOptions { cancel: Some(cancel.clone()), ..LoadOptions::default() };
            let ended = plan.stream_with(&in_flight(load), |_| {
                cancel.cancel();
                Ok(())
            });
            let kind = ended.map_err(Error::into_kind);
            assert!(matches!(kind, Err(ErrorKind::Cancelled)), "{kind:?}");
        },
        &|| {
            let options = MapOptions { populate: Populate::AtOnce, ..MapOptions::default() };
            // SAFETY: nothing writes to the folder of this test.
            #[expect(unsafe_code, reason = "mapping is one of the ways")]
            alone.assert_holds(&unsafe { plan.map_with(&options) }.unwrap());
        },
        &|| {
            let take = |_| resume_unwind(Box::new("taken badly"));
            let stream = || plan.stream_with(&in_flight(LoadOptions::default()), take);
            let panic = catch_unwind(AssertUnwindSafe(stream)).unwrap_err();
            assert_eq!(*panic.downcast::<&str>().unwrap(), "taken badly");
        },
    ];
    thread::scope(|scope| {
        for way in ways {
            scope.spawn(move || (0..ROUNDS).for_each(|_| way()));
        }
    });
    alone.assert_nothing_is_left("many threads");
}

#[test]
fn a_stream_that_panics_fails_or_is_cancelled_at_any_tensor_leaves_nothing() {
    #[derive(Clone, Copy, Debug)]
    enum How {
        Panic,
        Fail,
        Cancel,
    }
    let alone = Alone::new();
    let plan = alone.model.plan();
    for how in [How::Panic, How::Fail, How::Cancel] {
        for count in [1, 4] {
            for at in 1..=TENSORS {
                let (cancel, mut taken) = (Cancel::default(), 0);
                let load = LoadOptions {
                    threads: threads(count),
                    cancel: Some(cancel.clone()),
                    ..LoadOptions::default()
                };
                let take = |_| {
                    taken += 1;
                    match how {
                        How::Panic if taken == at => resume_unwind(Box::new(at)),
                        How::Fail if taken == at => {
                            Err(Error::from(ErrorKind::HubName { name: "mine".into() }))
                        }
                        How::Cancel if taken == at => {
                            cancel.cancel();
                            Ok(())
                        }
                        _ => Ok(()),
                    }
                };
                let ended =
                    catch_unwind(AssertUnwindSafe(|| plan.stream_with(&in_flight(load), take)));
                assert_eq!(taken, at);
                match ended.map(|ended| ended.map_err(Error::into_kind)) {
                    Err(panic) => assert_eq!(*panic.downcast::<usize>().unwrap(), at),
                    Ok(Err(ErrorKind::HubName { .. } | ErrorKind::Cancelled)) => {}
                    // There was nothing more to be cancelled.
                    Ok(ended) => assert!(at == TENSORS, "{how:?} {at} {ended:?}"),
                }
                alone.assert_nothing_is_left(&format!("{how:?} at {at}"));
            }
        }
    }
}

#[test]
fn a_load_that_is_told_to_end_at_its_last_call_leaves_nothing() {
    let alone = Alone::new();
    let plan = alone.model.plan();
    let tell = |_: Progress| resume_unwind(Box::new("told badly"));
    for count in [1, 4] {
        let options = LoadOptions {
            threads: threads(count),
            progress: Some(Arc::new(tell)),
            ..Default::default()
        };
        let mut places: Vec<_> = alone.made.iter().map(|made| vec![0; made.byte_len()]).collect();
        let named = alone.made.iter().zip(&mut places);
        let named = named.map(|(made, place)| (&made.name, &mut place[..]));
        let loads: [Box<dyn FnOnce() + '_>; 2] = [
            Box::new(|| drop(plan.load_with(&options))),
            Box::new(|| drop(plan.load_into_with(named, &options))),
        ];
        for load in loads {
            let panic = catch_unwind(AssertUnwindSafe(load)).unwrap_err();
            assert_eq!(*panic.downcast::<&str>().unwrap(), "told badly");
            alone.assert_nothing_is_left("a panic");
        }
    }
}

#[test]
fn functions_of_a_plan_may_panic_at_any_tensor() {
    let alone = Alone::new();
    let plan = alone.model.plan();
    for at in 0..TENSORS {
        let calls = AtomicUsize::new(0);
        let ask = || {
            if calls.fetch_add(1, Ordering::Relaxed) == at {
                resume_unwind(Box::new(at));
            }
        };
        let place = |_: &Made| -> (&str, &mut [u8]) {
            ask();
            ("t00", &mut [])
        };
        let asks: [&dyn Fn(); 3] = [
            &|| {
                drop(plan.filter(|_| {
                    ask();
                    true
                }));
            },
            &|| {
                plan.select(|_| {
                    ask();
                    None
                })
                .unwrap();
            },
            &|| drop(plan.load_into(alone.made.iter().map(place))),
        ];
        for asking in asks {
            calls.store(0, Ordering::Relaxed);
            let panic = catch_unwind(AssertUnwindSafe(asking)).unwrap_err();
            assert_eq!(*panic.downcast::<usize>().unwrap(), at);
        }
        alone.assert_nothing_is_left("a plan");
    }
}

/// Polls a future so many times at most, and drops it unless it was ready.
fn poll_at_most<T>(future: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (0..times).find_map(|_| match future.as_mut().poll(&mut context) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => {
            thread::yield_now();
            None
        }
    })
}

#[test]
fn a_future_that_is_dropped_at_any_poll_leaves_nothing() {
    let alone = Alone::new();
    let plan = alone.model.plan();
    let mut is_done = false;
    for times in (0..20).chain([usize::MAX]) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let entered = runtime.enter();
        let load = plan.load_async();
        if let Some(store) = poll_at_most(load, times) {
            alone.assert_holds(&store.unwrap());
            is_done = true;
        }
        drop(entered);
        // It waits for the threads that have not ended yet.
        drop(runtime);
        alone.assert_nothing_is_left(&format!("{times} polls"));
    }
    assert!(is_done);
}

#[test]
fn a_stream_for_async_code_that_is_dropped_anywhere_leaves_nothing() {
    let alone = Alone::new();
    let plan = alone.model.plan();
    for taken in 0..=TENSORS {
        for polls in [0, 1, 3] {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let options = LoadOptions {
                max_bytes_in_flight: NonZeroU64::new(64 << 10),
                ..LoadOptions::default()
            };
            let entered = runtime.enter();
            let mut stream = plan.stream_async_with(&options);
            for _ in 0..taken {
                let tensor = poll_at_most(stream.next(), usize::MAX).unwrap().unwrap().unwrap();
                let made = alone.made.iter().find(|made| made.name == tensor.name()).unwrap();
                assert!(tensor.bytes() == made.data);
            }
            // Nothing is lost with a future that was not ready.
            if let Some(next) = poll_at_most(stream.next(), polls) {
                assert_eq!(next.is_none(), taken == TENSORS);
            }
            drop(stream);
            drop(entered);
            drop(runtime);
            alone.assert_nothing_is_left(&format!("{taken} tensors, {polls} polls"));
        }
    }
}

#[test]
fn a_panic_in_async_code_reaches_who_waits_and_leaves_nothing() {
    let alone = Alone::new();
    let plan = alone.model.plan();
    let has_panicked = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&has_panicked);
    let tell = move |_: Progress| {
        assert!(!told.swap(true, Ordering::Relaxed), "told again");
        resume_unwind(Box::new("told badly"))
    };
    let options = LoadOptions { progress: Some(Arc::new(tell)), ..Default::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let entered = runtime.enter();
    let load = || poll_at_most(plan.load_async_with(&options), usize::MAX);
    let panic = catch_unwind(AssertUnwindSafe(load)).unwrap_err();
    assert_eq!(*panic.downcast::<&str>().unwrap(), "told badly");
    drop(entered);
    drop(runtime);
    alone.assert_nothing_is_left("a panic in async code");
}

#[test]
fn a_shard_that_is_missing_ends_every_way_and_leaves_nothing() {
    let alone = Alone::new();
    let plan = alone.model.plan();
    let path = alone.folder.path().join(modeldir_fixtures::shard_name(2, SHARDS));
    fs::remove_file(&path).unwrap();
    let is_named = |error: &Error| error.path() == Some(&path);
    for count in [1, 4] {
        let load = LoadOptions { threads: threads(count), ..LoadOptions::default() };
        assert!(is_named(&plan.load_with(&load).unwrap_err()));
        alone.assert_nothing_is_left("a load");
        let ended = plan.stream_with(&in_flight(load), |_| Ok(()));
        assert!(is_named(&ended.unwrap_err()));
        alone.assert_nothing_is_left("a stream");
        // SAFETY: nothing writes to the folder of this test.
        #[expect(unsafe_code, reason = "mapping is one of the ways")]
        let ended = unsafe { plan.map() };
        assert!(is_named(&ended.unwrap_err()));
        alone.assert_nothing_is_left("a mapping");
    }
}

#[test]
fn a_shard_that_is_rewritten_while_it_is_streamed_gives_old_tensors_and_then_an_error() {
    let mut ends = [0, 0];
    for at in 0..TENSORS {
        let alone = Alone::new();
        let plan = alone.model.plan();
        let path = alone.folder.path().join(modeldir_fixtures::shard_name(2, SHARDS));
        let mut taken = 0;
        let ended = plan.stream_with(&in_flight(LoadOptions::default()), |tensor| {
            if taken == at {
                let file = fs::File::options().write(true).open(&path).unwrap();
                let byte_len = usize::try_from(file.metadata().unwrap().len()).unwrap();
                file.write_all_at(&vec![0; byte_len], 0).unwrap();
                // Clocks of file systems are coarse.
                file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
            }
            taken += 1;
            let made = alone.made.iter().find(|made| made.name == tensor.name()).unwrap();
            assert!(tensor.bytes() == made.data, "{}", tensor.name());
            Ok(())
        });
        match ended {
            Ok(_) => ends[0] += 1,
            Err(error) => {
                assert_eq!(error.path(), Some(&*path), "{error}");
                assert!(error.to_string().contains("changed since it was opened"), "{error}");
                ends[1] += 1;
            }
        }
        alone.assert_nothing_is_left("a shard that is rewritten");
    }
    assert!(ends.iter().all(|times| *times > 0), "{ends:?}");
}
