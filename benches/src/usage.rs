//! What the process has used so far, as the kernel counts it.

use std::fs;

/// Times and faults of the process since it started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Seconds of all threads in the program.
    pub utime: f64,
    /// Seconds of all threads in the kernel.
    pub stime: f64,
    /// Page faults without a read.
    pub minflt: i64,
    /// Page faults that had to read.
    pub majflt: i64,
    /// Most bytes of memory at any time, mapped files included.
    pub peak_rss: i64,
}

impl Usage {
    /// Returns what was used until now.
    #[must_use]
    pub fn now() -> Self {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the call fills the struct that it is given.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
        // SAFETY: all zeros are a valid rusage, whatever the call has done.
        let usage = unsafe { usage.assume_init() };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Self {
            utime: seconds(usage.ru_utime),
            stime: seconds(usage.ru_stime),
            minflt: usage.ru_minflt,
            majflt: usage.ru_majflt,
            peak_rss: usage.ru_maxrss * 1024,
        }
    }
}

/// Returns the bytes of memory that are the process's own, mapped files left out.
#[must_use]
pub fn anonymous_bytes() -> i64 {
    kib_field("/proc/self/status", "RssAnon:") * 1024
}

/// Returns the bytes of memory that nobody uses, not even the page cache.
#[must_use]
pub fn free_bytes() -> u64 {
    kib_field("/proc/meminfo", "MemFree:").unsigned_abs() * 1024
}

/// A line of a file of the kernel such as `MemFree: 123 kB`; 0 if it has none.
fn kib_field(path: &str, field: &str) -> i64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
