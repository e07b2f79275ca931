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

#[cfg(test)]
mod tests {
    use super::{Residency, Way};

    #[test]
    fn what_is_cached_for_the_greater_part_is_copied_from_there() {
        let partial = |cached| Residency::Partial { cached, pages: 8 };
        for (residency, way) in [
            (Residency::Absent, Way::Direct),
            (partial(1), Way::Direct),
            (partial(3), Way::Direct),
            (partial(4), Way::Buffered),
            (partial(7), Way::Buffered),
            (Residency::Cached, Way::Buffered),
        ] {
            assert_eq!(Way::of(residency), way, "{residency:?}");
        }
    }
}
