//! Loading from async code: the same tensors, and an end when nobody waits any more.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use futures_core::Stream;
use modeldir::plan::PlannedTensor;
use modeldir::{Cancel, Error, ErrorKind, LoadOptions, ModelDir, Progress};
use modeldir_fixtures::{ShardedModel, Tensor as Made};
use tokio::runtime::{Builder, Runtime};

use crate::loading::written;
use crate::machine::at_once;

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn llama() -> ModelDir {
    ModelDir::open(modeldir_fixtures::model("llama")).unwrap()
}

#[test]
fn a_load_gives_what_the_blocking_one_gives() {
    let (model, last) = (llama(), Arc::new(AtomicU64::new(0)));
    let told = Arc::clone(&last);
    let tell = move |progress: Progress| told.store(progress.bytes_done, Ordering::Relaxed);
    let options = LoadOptions { progress: Some(Arc::new(tell)), ..Default::default() };
    let store = runtime().block_on(model.plan().load_async_with(&options)).unwrap();
    let blocking = model.load().unwrap();
    assert_eq!(store.len(), blocking.len());
    for (name, tensor) in blocking.iter() {
        assert_eq!(store.get(name).unwrap().bytes(), tensor.bytes());
    }
    assert_eq!(last.load(Ordering::Relaxed), model.byte_len());
}

#[test]
fn a_stream_gives_every_tensor_once_and_then_none() {
    let model = llama();
    let (mut names, mut bytes) = (Vec::new(), 0);
    runtime().block_on(async {
        let mut stream = model.plan().stream_async();
        while let Some(tensor) = stream.next().await {
            let tensor = tensor.unwrap();
            bytes += tensor.byte_len() as u64;
            names.push(tensor.name().to_owned());
        }
        assert!(stream.next().await.is_none());
    });
    names.sort();
    assert!(names.iter().eq(model.names()));
    assert_eq!(bytes, model.byte_len());
}

/// Whether a load was cancelled.
fn is_cancelled<T>(ended: Result<T, &Error>) -> bool {
    ended.is_err_and(|error| matches!(error.kind(), ErrorKind::Cancelled))
}

#[test]
fn a_load_runs_as_a_task_of_its_own() {
    let plan = llama().plan();
    let store = runtime().block_on(async {
        let task = tokio::spawn(plan.load_async());
        task.await.unwrap().unwrap()
    });
    assert_eq!(store.byte_len(), plan.bytes_selected());
}

#[test]
fn a_stream_is_polled_by_code_that_combines_streams() {
    let plan = llama().plan();
    runtime().block_on(async {
        let mut stream = Box::pin(plan.stream_async());
        let mut names = Vec::new();
        while let Some(tensor) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
            names.push(tensor.unwrap().name().to_owned());
        }
        assert!(plan.in_file_order().map(PlannedTensor::name).eq(&names));
        let again = poll_fn(|context| stream.as_mut().poll_next(context)).await;
        assert!(again.is_none());
    });
}

#[test]
fn errors_come_through() {
    let model = llama();
    let cancel = Cancel::default();
    cancel.cancel();
    let options = LoadOptions { cancel: Some(cancel), ..Default::default() };
    runtime().block_on(async {
        let ended = model.plan().load_async_with(&options).await;
        assert!(is_cancelled(ended.as_ref()));
        let mut stream = model.plan().stream_async_with(&options);
        assert!(is_cancelled(stream.next().await.unwrap().as_ref()));
        assert!(stream.next().await.is_none());
        let mut stream = model.plan().stream_async_with(&options);
        assert!(is_cancelled(stream.try_next().await.as_ref()));
        assert!(stream.try_next().await.unwrap().is_none());
    });
}

#[test]
fn a_load_whose_future_is_dropped_ends() {
    let (began, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = std::sync::Mutex::new(may_go_on);
    let tell = move |_: Progress| {
        began.send(()).unwrap();
        // Until the future is gone.
        may_go_on.lock().unwrap().recv().ok();
    };
    let progress: Arc<dyn Fn(Progress) + Send + Sync> = Arc::new(tell);
    let here = Arc::downgrade(&progress);
    let options = LoadOptions { progress: Some(progress), ..Default::default() };
    let runtime = runtime();
    runtime.block_on(async {
        let plan = llama().plan();
        let mut load = Box::pin(plan.load_async_with(&options));
        drop(options);
        let once = poll_fn(|context| {
            assert!(load.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        });
        once.await;
        has_begun.recv().unwrap();
        drop(load);
    });
    drop(go_on);
    // The runtime waits for the task, which drops what it was given when it has ended.
    drop(runtime);
    assert!(here.upgrade().is_none());
}

#[test]
fn a_stream_that_is_dropped_anywhere_ends() {
    let files = (1..=12).fold(ShardedModel::new(12), |files, i| {
        files.tensor(i, Made::random(&format!("t{i:02}"), "U8", &[64]))
    });
    let folder = written(&files);
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    at_once(move || {
        for taken in 0..=12 {
            let runtime = runtime();
            runtime.block_on(async {
                let mut stream = plan.stream_async();
                for _ in 0..taken {
                    assert!(stream.next().await.unwrap().is_ok());
                }
            });
            // It waits for the task.
            drop(runtime);
        }
    });
}

#[test]
fn a_runtime_that_has_ended_is_an_error_and_not_an_end() {
    let (plan, ended) = (llama().plan(), runtime());
    let handle = ended.handle().clone();
    drop(ended);
    let entered = handle.enter();
    let mut stream = plan.stream_async();
    drop(entered);
    runtime().block_on(async {
        let first = stream.next().await;
        assert!(first.as_ref().is_some_and(|first| is_cancelled(first.as_ref())), "{first:?}");
        assert!(stream.next().await.is_none());
    });
}

#[test]
fn a_panic_of_the_callers_reaches_the_caller() {
    let tell = |_: Progress| panic!("told badly");
    let options = LoadOptions { progress: Some(Arc::new(tell)), ..Default::default() };
    let (model, streamed) = (llama(), options.clone());
    let load = || runtime().block_on(model.plan().load_async_with(&options));
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(load)).unwrap_err();
    assert_eq!(*panic.downcast::<&str>().unwrap(), "told badly");
    let stream = || {
        runtime().block_on(async {
            let mut stream = model.plan().stream_async_with(&streamed);
            while stream.next().await.is_some() {}
        });
    };
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(stream)).unwrap_err();
    assert_eq!(*panic.downcast::<&str>().unwrap(), "told badly");
}
