//! Futures that are dropped: before the load begins, and while they wait for the next tensor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Builder, Runtime};

use super::{LoadOptions, TensorStream};
use crate::{LoadPlan, ModelDir, Progress};

fn plan() -> LoadPlan {
    ModelDir::open(modeldir_fixtures::model("llama")).unwrap().plan()
}

/// A runtime whose only blocking thread is taken until the sender is dropped, so that a load waits.
fn busy() -> (Runtime, mpsc::Sender<()>) {
    let runtime = Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    let (release, wait) = mpsc::channel::<()>();
    drop(runtime.spawn_blocking(move || wait.recv()));
    (runtime, release)
}

/// Options that count the bytes read.
fn counting() -> (LoadOptions, Arc<AtomicU64>) {
    let read = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&read);
    let tell = move |progress: Progress| {
        told.fetch_max(progress.bytes_done, Ordering::Relaxed);
    };
    (LoadOptions { progress: Some(Arc::new(tell)), ..LoadOptions::default() }, read)
}

/// Waits until the only blocking thread has done all that was asked of it before.
fn wait_for_all(runtime: &Runtime) {
    runtime.block_on(runtime.spawn_blocking(|| ())).unwrap();
}

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

#[test]
fn a_load_whose_future_is_dropped_before_it_begins_reads_nothing() {
    for is_dropped in [true, false] {
        let ((runtime, release), (options, read)) = (busy(), counting());
        let plan = plan();
        let entered = runtime.enter();
        let mut load = Box::pin(plan.load_async_with(&options));
        assert!(load.as_mut().poll(&mut context()).is_pending());
        let kept = (!is_dropped).then_some(load);
        drop(release);
        drop(entered);
        let loaded = kept.map(|load| runtime.block_on(load).unwrap());
        wait_for_all(&runtime);
        let expected = if is_dropped { 0 } else { plan.bytes_read() };
        assert_eq!(read.load(Ordering::Relaxed), expected);
        assert_eq!(loaded.is_none(), is_dropped);
    }
}

#[test]
fn a_stream_that_is_dropped_before_it_begins_reads_nothing() {
    let ((runtime, release), (options, read)) = (busy(), counting());
    let entered = runtime.enter();
    drop(plan().stream_async_with(&options));
    drop((release, entered));
    wait_for_all(&runtime);
    assert_eq!(read.load(Ordering::Relaxed), 0);
}

/// Polls for the next tensor once, and drops the future.
fn poll_next(stream: &mut TensorStream) -> bool {
    let next = Box::pin(stream.next()).as_mut().poll(&mut context());
    matches!(next, Poll::Ready(Some(Ok(_))))
}

#[test]
fn a_tensor_is_requested_once_however_often_the_future_is_dropped() {
    let (runtime, release) = busy();
    let entered = runtime.enter();
    let mut stream = plan().stream_async();
    for _ in 0..5 {
        assert!(!poll_next(&mut stream));
    }
    let asked = Arc::clone(&stream.asking.0);
    assert!(asked.wait_for_more_than(0));
    drop(release);
    drop(entered);
    let next = runtime.block_on(stream.next());
    assert!(next.is_some_and(|next| next.is_ok()));
    // No more requests can come, so this does not wait.
    drop(stream);
    assert!(!asked.wait_for_more_than(1), "one tensor was received, and none requested after it");
}
