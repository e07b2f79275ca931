//! The locks, flags and threads of the model checker, in the place of those of `load/sync.rs`.

use std::io;

use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::Once;
use shuttle::{Config, Runner};

pub(super) use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub(super) use shuttle::sync::mpsc::{Receiver, SyncSender, sync_channel};
pub(super) use shuttle::sync::{Condvar, Mutex, MutexGuard};
pub(super) use shuttle::thread::{Scope, scope};

/// Most orders of steps that are gone through one after the other.
const MAX_IN_TURN: usize = 2_000;

/// Orders of steps that are drawn at random, and others where threads have priorities.
const AT_RANDOM: usize = 1_000;

/// How often threads change places where they have priorities.
const CHANGES: usize = 4;

/// A value that the first thread makes and the others wait for.
pub(super) struct OnceLock<T> {
    once: Once,
    value: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    pub(super) fn new() -> Self {
        Self { once: Once::new(), value: std::sync::OnceLock::new() }
    }

    pub(super) fn get(&self) -> Option<&T> {
        self.value.get()
    }

    pub(super) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.once.call_once(|| {
            assert!(self.value.set(make()).is_ok(), "it is made once");
        });
        self.value.get().expect("it was made")
    }
}

/// Starts a thread that has ended when the scope does.
pub(super) fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    _name: String,
    work: impl FnOnce() + Send + 'scope,
) -> io::Result<()> {
    drop(scope.spawn(work));
    Ok(())
}

/// Runs a test once for each order of its steps, as far as they are few, and then for some drawn at
/// random; says how many that were.
pub(super) fn check(test: impl Fn() + Send + Sync + 'static) {
    count("test", test);
}

/// The same, with a title; returns how many orders there were.
pub(super) fn count(title: &str, test: impl Fn() + Send + Sync + 'static) -> usize {
    let test = std::sync::Arc::new(test);
    let run = |scheduler: Box<dyn Scheduler + Send>| {
        let test = std::sync::Arc::clone(&test);
        Runner::new(scheduler, config()).run(move || test())
    };
    let in_turn = run(Box::new(DfsScheduler::new(Some(MAX_IN_TURN), false)));
    if in_turn < MAX_IN_TURN {
        println!("{title}: all {in_turn} orders of steps");
        return in_turn;
    }
    let at_random = run(Box::new(RandomScheduler::new_from_seed(1, AT_RANDOM)));
    let by_priority = run(Box::new(PctScheduler::new_from_seed(1, CHANGES, AT_RANDOM)));
    println!(
        "{title}: {in_turn} orders of steps in turn, {at_random} at random, {by_priority} by priority"
    );
    in_turn + at_random + by_priority
}

fn config() -> Config {
    let mut config = Config::new();
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.silence_warnings = true;
    config
}

/// Asserts that some order of the steps of a test makes it fail, by a deadlock or a panic.
pub(super) fn assert_caught(title: &str, test: impl Fn() + Send + Sync + 'static) {
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| count(title, test)));
    assert!(found.is_err(), "{title}: no order of {found:?} shows what is wrong");
    println!("{title}: caught");
}
