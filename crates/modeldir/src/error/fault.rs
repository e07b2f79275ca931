//! Faults in the shards of a directory and its index.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tensorfile::{PathText, Quoted};

/// One fault in the shards of a directory or its index.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A shard named by the index does not exist.
    #[error("shard {} is missing{cause}{}", PathText(shard), Lost(tensors))]
    MissingShard {
        /// The shard.
        shard: Arc<Path>,
        /// Why it is probably missing.
        cause: MissingCause,
        /// The tensors that the index maps to it.
        tensors: Vec<String>,
    },
    /// A shard exists but is unusable: too short, a Git LFS pointer, damaged or unreadable.
    #[error("{error}{}{}", Causes(error), Lost(tensors))]
    UnusableShard {
        /// The shard.
        shard: Arc<Path>,
        /// What is wrong with it.
        error: tensorfile::Error,
        /// The tensors that the index maps to it.
        tensors: Vec<String>,
    },
    /// The index maps a tensor to a shard that does not hold it.
    #[error(
        "tensor {} is not in shard {}, where the index places it{}",
        Quoted(tensor),
        PathText(shard),
        ElseIn(found_in)
    )]
    NotInShard {
        /// The tensor.
        tensor: Box<str>,
        /// The shard that the index names.
        shard: Arc<Path>,
        /// Another shard that holds it.
        found_in: Option<Arc<Path>>,
    },
    /// Two files hold the same tensor, and there is no index to choose.
    #[error(
        "tensor {} is duplicated: it is in {} and in {}",
        Quoted(tensor),
        PathText(first),
        PathText(second)
    )]
    DuplicateTensor {
        /// The tensor.
        tensor: Box<str>,
        /// The first file, in natural order.
        first: Arc<Path>,
        /// The other file.
        second: Arc<Path>,
    },
    /// A shard holds a tensor that the index does not map; only with
    /// [`Unindexed::Error`](crate::options::Unindexed).
    #[error("tensor {} in shard {} is not in the index", Quoted(tensor), PathText(shard))]
    Unindexed {
        /// The tensor.
        tensor: Box<str>,
        /// The shard.
        shard: Arc<Path>,
    },
}

/// The probable cause of a missing shard.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingCause {
    /// The directory has neither a link nor a partial download of this name.
    Unknown,
    /// The cause was not looked up, because a hundred other shards are missing.
    NotLookedFor,
    /// The name is a link to this target, which does not exist.
    DanglingLink(PathBuf),
    /// A partial download with this path exists.
    Incomplete(PathBuf),
}

impl fmt::Display for MissingCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => Ok(()),
            Self::NotLookedFor => f.write_str(" (cause not looked up)"),
            Self::DanglingLink(target) => {
                write!(f, " (a dangling link: {} does not exist)", PathText(target))
            }
            Self::Incomplete(part) => {
                write!(f, " (download incomplete: {} exists)", PathText(part))
            }
        }
    }
}

/// Displays the faults of a directory: one on the same line, several on lines of their own.
pub(super) struct Faults<'a>(pub(super) &'a [Fault], pub(super) usize);

impl fmt::Display for Faults<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(faults, more) = self;
        if let ([only], 0) = (faults, more) {
            return only.fmt(f);
        }
        write!(f, "{} faults", faults.len().saturating_add(*more))?;
        for fault in *faults {
            write!(f, "\n  {fault}")?;
        }
        if *more > 0 {
            write!(f, "\n  and {more} more faults of tensors")?;
        }
        Ok(())
    }
}

/// Displays the causes of an error that is part of another one.
struct Causes<'a>(&'a tensorfile::Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cause = std::error::Error::source(self.0);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// Displays the tensors of a lost shard, if an index names them.
struct Lost<'a>(&'a [String]);

impl fmt::Display for Lost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            [only] => write!(f, "; tensor {} is lost", Quoted(only)),
            [first, .., last] => {
                let (count, first, last) = (self.0.len(), Quoted(first), Quoted(last));
                write!(f, "; {count} tensors are lost, among them {first} and {last}")
            }
        }
    }
}

/// Displays another shard that holds the tensor.
struct ElseIn<'a>(&'a Option<Arc<Path>>);

impl fmt::Display for ElseIn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(shard) => write!(f, "; shard {} has it", PathText(shard)),
            None => Ok(()),
        }
    }
}
