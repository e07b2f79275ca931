//! Parts of messages: lengths, lists of paths.

use std::fmt;
use std::path::PathBuf;

use tensorfile::PathText;

use crate::formats::format_of;

/// Displays lengths of places, or that there are none.
pub(super) struct Lengths<'a>(pub(super) &'a [usize]);

impl fmt::Display for Lengths<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("none"),
            [len] => write!(f, "one of {len}"),
            lens => write!(f, "{} of {lens:?}", lens.len()),
        }
    }
}

/// Displays a list of paths, cut after twenty.
pub(super) struct Names<'a>(pub(super) &'a [PathBuf]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, path) in self.0.iter().take(20).enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            PathText(path).fmt(f)?;
        }
        match self.0.len() {
            0 => f.write_str("none"),
            n if n > 20 => write!(f, " and {} more", n - 20),
            _ => Ok(()),
        }
    }
}

/// Displays a label and the paths found, or nothing without any.
pub(super) struct Found<'a>(pub(super) &'static str, pub(super) &'a [PathBuf]);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            [] => Ok(()),
            paths => write!(f, "; {}: {}", self.0, Names(paths)),
        }
    }
}

/// Displays a label and the paths found, each with its format if it has a known one.
pub(super) struct Formats<'a>(pub(super) &'static str, pub(super) &'a [PathBuf]);

impl fmt::Display for Formats<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(label, paths) = self;
        for (i, path) in paths.iter().take(20).enumerate() {
            if i == 0 {
                write!(f, "; {label}: ")?;
            } else {
                f.write_str(", ")?;
            }
            PathText(path).fmt(f)?;
            if let Some(format) = format_of(path) {
                write!(f, " ({format})")?;
            }
        }
        match paths.len() {
            n if n > 20 => write!(f, " and {} more", n - 20),
            _ => Ok(()),
        }
    }
}
