//! Statistics of a load: counted by its workers, kept by the store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tracing::Span;

use super::way::Way;
use crate::as_text;

/// Statistics of a load, which show why it was fast or slow.
///
/// Serialised, the time is a number of seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LoadStats {
    /// Bytes read from the shards.
    pub bytes_read: u64,
    /// Bytes of these that bypassed the page cache; the others came through it.
    pub bytes_direct: u64,
    /// Bytes of these that were read to copy parts of rows from them.
    pub bytes_gathered: u64,
    /// Number of requests.
    pub requests: usize,
    /// Most threads that read at the same time.
    pub threads: usize,
    /// Time from the start of the load until all tensors were there.
    #[serde(rename = "seconds", serialize_with = "as_text::seconds")]
    pub elapsed: Duration,
}

impl LoadStats {
    /// Adds the statistics of another load by the same threads.
    pub(super) fn add(&mut self, other: &Self) {
        self.bytes_read += other.bytes_read;
        self.bytes_direct += other.bytes_direct;
        self.bytes_gathered += other.bytes_gathered;
        self.requests += other.requests;
        self.threads = self.threads.max(other.threads);
    }
}

/// Bytes of one load, or of one of its shards, by the way they were read.
#[derive(Debug, Default)]
pub(super) struct Counters {
    direct: AtomicU64,
    buffered: AtomicU64,
    gathered: AtomicU64,
}

impl Counters {
    /// Counts bytes that were read this way.
    pub(super) fn add(&self, way: Way, bytes: u64) {
        let counter = match way {
            Way::Direct => &self.direct,
            Way::Buffered => &self.buffered,
        };
        counter.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes of rows that were read to take parts of them.
    pub(super) fn add_gathered(&self, bytes: u64) {
        self.gathered.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds the counts of another counter.
    pub(super) fn add_all(&self, other: &Self) {
        self.add(Way::Direct, other.direct());
        self.add(Way::Buffered, other.buffered());
        self.add_gathered(other.gathered());
    }

    /// Records in a span what was read, and how fast.
    pub(super) fn record(&self, span: &Span, elapsed: Duration) {
        let (direct, buffered) = (self.direct(), self.buffered());
        span.record("direct", direct);
        span.record("buffered", buffered);
        span.record("gathered", self.gathered());
        let seconds = elapsed.as_secs_f64();
        span.record("seconds", seconds);
        // For display only: precision lost past 2^53 bytes does not show.
        let gib = (direct.saturating_add(buffered) >> 10) as f64 / f64::from(1 << 20);
        span.record("gib_s", gib / seconds.max(f64::MIN_POSITIVE));
    }

    pub(super) fn direct(&self) -> u64 {
        self.direct.load(Ordering::Relaxed)
    }

    pub(super) fn buffered(&self) -> u64 {
        self.buffered.load(Ordering::Relaxed)
    }

    pub(super) fn gathered(&self) -> u64 {
        self.gathered.load(Ordering::Relaxed)
    }
}
