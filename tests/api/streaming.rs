//! Streams: tensors in file order, in bounded memory, until somebody stops them.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use modeldir::{Cancel, Error, ErrorKind, LoadOptions, LoadPlan, ModelDir, Progress};
use modeldir_fixtures::{ShardedModel, Tensor as Made};
use tempfile::TempDir;

use crate::loading::{threads, written};
use crate::machine::at_once;

/// 40 tensors of 64 KiB in two shards, and a few small ones.
fn model() -> (TempDir, BTreeMap<String, Vec<u8>>) {
    let mut files = ShardedModel::new(2);
    let mut made = BTreeMap::new();
    for i in 0..40 {
        let tensor = Made::random(&format!("t{:02}", (i * 7) % 40), "U8", &[64 << 10]);
        made.insert(tensor.name.clone(), tensor.data.clone());
        let small = Made::random(&format!("s{i:02}"), "F32", &[i % 3]);
        made.insert(small.name.clone(), small.data.clone());
        files = files.tensor(1 + i % 2, tensor).tensor(1 + i % 2, small);
    }
    (written(&files), made)
}

fn in_flight(bytes: u64, load: LoadOptions) -> LoadOptions {
    LoadOptions { max_bytes_in_flight: NonZeroU64::new(bytes), ..load }
}

/// The names in the order of shards and of their files.
fn in_file_order(path: &Path) -> Vec<String> {
    let model = ModelDir::open(path).unwrap();
    let mut tensors: Vec<_> = model.tensors().collect();
    tensors.sort_by_key(|t| (t.shard().position(), t.file_range().start, t.name().to_owned()));
    tensors.into_iter().map(|tensor| tensor.name().to_owned()).collect()
}

#[test]
fn tensors_come_in_file_order_with_their_bytes_whatever_the_memory() {
    let (folder, made) = model();
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let order = in_file_order(folder.path());
    for bytes in [80 << 10, 300 << 10, 1 << 20, 1 << 30] {
        for count in [1, 3] {
            let load = LoadOptions { threads: threads(count), ..LoadOptions::default() };
            let mut names = Vec::new();
            let stats = plan.stream_with(&in_flight(bytes, load), |tensor| {
                assert!(tensor.bytes() == made[tensor.name()], "{}", tensor.name());
                names.push(tensor.name().to_owned());
                Ok(())
            });
            let stats = stats.unwrap();
            assert_eq!(names, order, "{bytes} bytes");
            assert_eq!(stats.bytes_read, plan.bytes_read());
        }
    }
}

#[test]
fn tensors_that_fit_together_are_read_together() {
    let files = (0..40).fold(ShardedModel::new(1), |files, i| {
        files.tensor(1, Made::random(&format!("t{i:02}"), "U8", &[(i + 1) % 40]))
    });
    let folder = written(&files);
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    // One tensor has no byte.
    for plan in [plan.only(["t39"]).unwrap(), plan] {
        let mut taken = 0;
        let stats = plan.stream(|_| {
            taken += 1;
            Ok(())
        });
        assert_eq!(stats.unwrap().requests, plan.requests().len());
        assert_eq!(taken, plan.len());
    }
}

#[test]
fn a_plain_ok_is_enough_whatever_the_caller_returns() {
    fn ours(plan: &LoadPlan) -> modeldir::Result<usize> {
        let mut taken = 0;
        plan.stream(|_| {
            taken += 1;
            Ok(())
        })?;
        Ok(taken)
    }
    fn any(plan: &LoadPlan) -> Result<usize, Box<dyn std::error::Error>> {
        let mut taken = 0;
        plan.stream(|_| {
            taken += 1;
            Ok(())
        })?;
        Ok(taken)
    }
    let (folder, made) = model();
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    assert_eq!((ours(&plan).unwrap(), any(&plan).unwrap()), (made.len(), made.len()));
}

#[test]
fn a_tensor_that_is_kept_stays_what_it_is() {
    let (folder, made) = model();
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let mut kept = Vec::new();
    let options = in_flight(300 << 10, LoadOptions::default());
    plan.stream_with(&options, |tensor| {
        kept.push(tensor);
        Ok(())
    })
    .unwrap();
    assert_eq!(kept.len(), made.len());
    for tensor in kept {
        assert!(tensor.bytes() == made[tensor.name()], "{}", tensor.name());
    }
}

#[test]
fn a_tensor_that_needs_more_memory_than_there_may_be_is_refused_at_once() {
    let (folder, _) = model();
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let options = in_flight(10_000, LoadOptions::default());
    let error = plan.stream_with(&options, |_| Ok(())).unwrap_err();
    let ErrorKind::TensorTooLarge { needed, max: 10_000 } = error.kind() else {
        unreachable!("{error}")
    };
    let tensor = error.tensor().unwrap();
    let model = ModelDir::open(folder.path()).unwrap();
    let shard = model.info(tensor).unwrap().shard();
    assert_eq!(error.path(), Some(&*folder.path().join(shard.path())));
    assert!(tensor.starts_with('t') && *needed >= 64 << 10, "{error}");
    assert!(error.to_string().contains("LoadOptions::max_bytes_in_flight"), "{error}");
}

#[test]
fn who_takes_can_end_the_stream_with_an_error_of_its_own() {
    #[derive(Debug)]
    enum Mine {
        Full(usize),
        Loading(Error),
    }
    impl From<Error> for Mine {
        fn from(error: Error) -> Self {
            Self::Loading(error)
        }
    }
    let (folder, _) = model();
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let mut taken = 0;
    let ended = plan.try_stream_with(&in_flight(300 << 10, LoadOptions::default()), |_| {
        taken += 1;
        if taken == 5 { Err(Mine::Full(taken)) } else { Ok(()) }
    });
    assert!(matches!(ended, Err(Mine::Full(5))));
    std::fs::remove_file(folder.path().join(modeldir_fixtures::shard_name(2, 2))).unwrap();
    let ended = plan.try_stream(|_| Ok::<(), Mine>(()));
    let Err(Mine::Loading(error)) = &ended else { unreachable!("{ended:?}") };
    assert!(matches!(error.kind(), ErrorKind::File(_)), "{ended:?}");
}

#[test]
fn a_panic_of_who_takes_ends_the_stream_and_reaches_the_caller() {
    let (folder, _) = model();
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let options = in_flight(300 << 10, LoadOptions::default());
    let stream = || plan.stream_with(&options, |_| panic!("taken badly"));
    let panic = catch_unwind(AssertUnwindSafe(stream)).unwrap_err();
    assert_eq!(*panic.downcast::<&str>().unwrap(), "taken badly");
    let tell = |_: Progress| panic!("told badly");
    let load = LoadOptions { progress: Some(Arc::new(tell)), ..LoadOptions::default() };
    let stream = || plan.stream_with(&in_flight(300 << 10, load.clone()), |_| Ok(()));
    let panic = catch_unwind(AssertUnwindSafe(stream)).unwrap_err();
    assert_eq!(*panic.downcast::<&str>().unwrap(), "told badly");
}

#[test]
fn a_stream_of_many_windows_ends_wherever_taking_ends() {
    // Each shard is a window, and memory for all of them is there.
    let files = (1..=12).fold(ShardedModel::new(12), |files, i| {
        files.tensor(i, Made::random(&format!("t{i:02}"), "U8", &[64]))
    });
    let folder = written(&files);
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let mine = || Error::from(ErrorKind::HubName { name: "mine".into() });
    at_once(move || {
        for last in 1..=12 {
            let (mut taken, cancel) = (0, Cancel::default());
            let ended = plan.stream(|_| {
                taken += 1;
                if taken == last { Err(mine()) } else { Ok(()) }
            });
            assert!(
                matches!(&ended, Err(error) if matches!(error.kind(), ErrorKind::HubName { .. })),
                "{ended:?}"
            );
            let stream = || {
                plan.stream(|_| {
                    taken -= 1;
                    assert!(taken > 0, "taken badly");
                    Ok(())
                })
            };
            let panic = catch_unwind(AssertUnwindSafe(stream)).unwrap_err();
            assert_eq!(*panic.downcast::<&str>().unwrap(), "taken badly");
            let load = LoadOptions { cancel: Some(cancel.clone()), ..LoadOptions::default() };
            let ended = plan.stream_with(&in_flight(1 << 30, load), |_| {
                taken += 1;
                if taken == last {
                    cancel.cancel();
                }
                Ok(())
            });
            assert!(
                last == 12
                    || matches!(&ended, Err(error) if matches!(error.kind(), ErrorKind::Cancelled)),
                "{ended:?}"
            );
            assert_eq!(taken, last);
        }
    });
}

#[test]
fn a_cancelled_stream_hands_nothing_over_any_more() {
    let (folder, _) = model();
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let cancel = Cancel::default();
    let load = LoadOptions { cancel: Some(cancel.clone()), ..LoadOptions::default() };
    let mut taken = 0;
    let ended = plan.stream_with(&in_flight(1 << 20, load), |_| {
        taken += 1;
        if taken == 3 {
            cancel.cancel();
        }
        Ok(())
    });
    assert!(
        matches!(&ended, Err(error) if matches!(error.kind(), ErrorKind::Cancelled)),
        "{ended:?}"
    );
    assert_eq!(taken, 3);
}

#[test]
fn progress_of_a_stream_ends_with_all_bytes() {
    let (folder, _) = model();
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let (last, total) = (Arc::new(AtomicU64::new(0)), plan.bytes_read());
    let said = Arc::clone(&last);
    let tell = move |progress: Progress| {
        assert_eq!(progress.bytes_total, total);
        let before = said.swap(progress.bytes_done, Ordering::Relaxed);
        assert!(before <= progress.bytes_done);
    };
    let load = LoadOptions { progress: Some(Arc::new(tell)), ..LoadOptions::default() };
    plan.stream_with(&in_flight(300 << 10, load), |_| Ok(())).unwrap();
    assert_eq!(last.load(Ordering::Relaxed), total);
}
