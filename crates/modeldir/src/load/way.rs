//! The way that bytes come: through the page cache or past it.

use super::residency::Residency;

/// How bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Through the page cache.
    Buffered,
    /// Past it.
    Direct,
}

impl Way {
    /// The way for a range of which this much is cached.
    pub(super) fn of(residency: Residency) -> Self {
        match residency {
            Residency::Absent => Self::Direct,
            Residency::Partial { cached, pages } if cached < pages / 2 => Self::Direct,
            Residency::Partial { .. } | Residency::Cached => Self::Buffered,
        }
    }
}
