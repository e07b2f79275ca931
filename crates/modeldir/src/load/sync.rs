//! The locks, flags and threads of a load: those of the standard library. `tests/model` compiles the
//! files that use them once more, with those of a model checker.

use std::io;

pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub(super) use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
pub(super) use std::thread::{Scope, scope};

/// Starts a thread that has ended when the scope does.
pub(super) fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: String,
    work: impl FnOnce() + Send + 'scope,
) -> io::Result<()> {
    std::thread::Builder::new().name(name).spawn_scoped(scope, work).map(drop)
}

/// Runs a test; the model checker runs it once for each order of its steps.
#[cfg(test)]
pub(super) fn check(test: impl Fn() + Send + Sync + 'static) {
    test();
}
