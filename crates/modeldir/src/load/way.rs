//! The way that bytes are read: through the page cache or bypassing it.

use super::residency::Residency;

/// How bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Through the page cache.
    Buffered,
    /// Bypassing the page cache (`O_DIRECT`).
    Direct,
}

impl Way {
    /// The best way for a range with this much in the cache.
    pub(super) fn of(residency: Residency) -> Self {
        match residency {
            Residency::Absent => Self::Direct,
            Residency::Partial { cached, pages } if cached < pages / 2 => Self::Direct,
            Residency::Partial { .. } | Residency::Cached => Self::Buffered,
        }
    }
}
