//! Parts of messages.

use std::fmt;

use crate::quote::Quoted;

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

#[cfg(test)]
mod tests {
    use super::Shape;

    #[test]
    fn long_shapes_are_cut() {
        assert_eq!(Shape(&[2, 3]).to_string(), "[2, 3]");
        assert_eq!(Shape(&[1; 10]).to_string(), "[1, 1, 1, 1, 1, 1, 1, 1] and 2 more");
    }
}
