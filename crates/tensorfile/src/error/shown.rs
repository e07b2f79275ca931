//! Parts of messages.

use std::fmt;

use crate::quote::Quoted;
use crate::zeros::MAX_COUNTED;

/// Displays a shape from a file, cut after eight dimensions.
pub(super) struct Shape<'a>(pub(super) &'a [usize]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get(..8) {
            Some(first) if self.0.len() > 8 => write!(f, "{first:?} and {} more", self.0.len() - 8),
            _ => write!(f, "{:?}", self.0),
        }
    }
}

/// Displays the names near one that was not found.
pub(super) struct Similar<'a>(pub(super) &'a [Box<str>]);

impl fmt::Display for Similar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            f.write_str(if i == 0 { "; similar: " } else { ", " })?;
            Quoted(name).fmt(f)?;
        }
        Ok(())
    }
}

/// Displays how many bytes at the start of a file are zeros, of how many.
pub(super) struct Zeros(pub(super) u64, pub(super) u64);

impl fmt::Display for Zeros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(zero_bytes, byte_len) = self;
        match zero_bytes {
            all if all == byte_len => write!(f, "all of its {byte_len} bytes are zeros"),
            many if *many >= MAX_COUNTED => {
                write!(f, "at least the first {many} of its {byte_len} bytes are zeros")
            }
            few => write!(f, "the first {few} of its {byte_len} bytes are zeros"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_COUNTED, Shape, Zeros};

    #[test]
    fn zeros_are_all_some_or_more_than_counted() {
        for (zero_bytes, byte_len, expected) in [
            (9, 9, "all of its 9 bytes are zeros"),
            (8, 9, "the first 8 of its 9 bytes are zeros"),
            (MAX_COUNTED, 9_000_000, "at least the first 1048576 of its 9000000 bytes are zeros"),
        ] {
            assert_eq!(Zeros(zero_bytes, byte_len).to_string(), expected);
        }
    }

    #[test]
    fn long_shapes_are_cut() {
        assert_eq!(Shape(&[2, 3]).to_string(), "[2, 3]");
        assert_eq!(Shape(&[1; 10]).to_string(), "[1, 1, 1, 1, 1, 1, 1, 1] and 2 more");
    }
}
