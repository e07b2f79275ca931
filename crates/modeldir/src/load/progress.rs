//! Counts bytes as they arrive and reports them to the caller at a bounded rate.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

/// Shortest time between two calls of the caller's function.
const INTERVAL: Duration = Duration::from_millis(33);

/// The progress of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes read so far.
    pub bytes_done: u64,
    /// Total bytes that the plan reads.
    pub bytes_total: u64,
}

/// The byte counter of one load.
pub(super) struct Meter<'a> {
    start: Instant,
    interval: Duration,
    bytes_total: u64,
    bytes_done: AtomicU64,
    /// Time of the next call, in nanoseconds since `start`.
    next_call: AtomicU64,
    tell: Option<Tell<'a>>,
    /// Held by the calling thread, so that the reported bytes never decrease.
    telling: Mutex<()>,
}

type Tell<'a> = &'a (dyn Fn(Progress) + Send + Sync);

impl<'a> Meter<'a> {
    pub(super) fn new(bytes_total: u64, tell: Option<Tell<'a>>) -> Self {
        let (bytes_done, next_call) = (AtomicU64::new(0), AtomicU64::new(nanos(INTERVAL)));
        let telling = Mutex::default();
        let (start, interval) = (Instant::now(), INTERVAL);
        Self { start, interval, bytes_total, bytes_done, next_call, tell, telling }
    }

    /// A meter that reports every request at once.
    #[cfg(test)]
    pub(super) fn at_once(self) -> Self {
        Self { interval: Duration::ZERO, next_call: AtomicU64::new(0), ..self }
    }

    /// Adds bytes that have arrived; calls the caller's function if the interval has passed and no
    /// other thread is calling it.
    pub(super) fn add(&self, bytes: u64) {
        let bytes_done = self.bytes_done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let Some(tell) = self.tell else { return };
        if bytes_done < self.bytes_total && self.is_time() {
            if let Ok(_telling) = self.telling.try_lock() {
                tell(self.progress());
            }
        }
    }

    /// Reports that all bytes have arrived; every worker has ended.
    pub(super) fn finish(&self) {
        if let Some(tell) = self.tell {
            let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
            tell(self.progress());
        }
    }

    pub(super) fn bytes_done(&self) -> u64 {
        self.bytes_done.load(Ordering::Relaxed)
    }

    fn progress(&self) -> Progress {
        Progress { bytes_done: self.bytes_done(), bytes_total: self.bytes_total }
    }

    /// Whether the interval has passed; true for one thread only.
    fn is_time(&self) -> bool {
        let now = nanos(self.start.elapsed());
        let due = self.next_call.load(Ordering::Relaxed);
        let next = now.saturating_add(nanos(self.interval));
        let relaxed = Ordering::Relaxed;
        now >= due && self.next_call.compare_exchange(due, next, relaxed, relaxed).is_ok()
    }
}

/// Nanoseconds of a duration; 500 years fit.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{AtomicU64, Duration, Instant, Meter, Ordering, Progress};
    use std::sync::Mutex;
    use std::thread;

    #[test]
    fn the_bytes_told_never_fall_whatever_the_threads() {
        let [last, falls, calls] = [(); 3].map(|()| AtomicU64::new(0));
        let tell = |progress: Progress| {
            calls.fetch_add(1, Ordering::Relaxed);
            let before = last.swap(progress.bytes_done, Ordering::Relaxed);
            falls.fetch_add(u64::from(before > progress.bytes_done), Ordering::Relaxed);
        };
        let meter = Meter::new(u64::MAX, Some(&tell)).at_once();
        // Long enough for the system to interrupt a thread at every step.
        let (start, enough) = (Instant::now(), Duration::from_millis(500));
        let count = || {
            while start.elapsed() < enough {
                (0..1000).for_each(|_| meter.add(1));
            }
        };
        thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(count))));
        assert_eq!(falls.into_inner(), 0);
        assert!(calls.into_inner() > 1_000);
    }

    #[test]
    fn the_last_byte_is_always_told_and_the_calls_between_are_few() {
        let calls = Mutex::new(Vec::new());
        let tell = |progress: Progress| calls.lock().unwrap().push(progress.bytes_done);
        let meter = Meter::new(100_000, Some(&tell));
        let start = Instant::now();
        (0..100_000).for_each(|_| meter.add(1));
        meter.finish();
        let at_most = 2 + start.elapsed().as_millis() / 33;
        let calls = calls.into_inner().unwrap();
        assert_eq!(calls.last(), Some(&100_000));
        assert!(calls.len() as u128 <= at_most, "{} calls", calls.len());
    }
}
