//! What bounds the memory that a load can take.

use std::fmt;
use std::path::PathBuf;

use tensorfile::PathText;

/// What bounds the memory that a load can take.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryLimit {
    /// The memory that the machine has left: `MemAvailable` in `/proc/meminfo`.
    Machine,
    /// The limit of the control group with this folder.
    ControlGroup(PathBuf),
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine => f.write_str("MemAvailable of this machine"),
            Self::ControlGroup(folder) => {
                write!(f, "limit of control group {}", PathText(folder))
            }
        }
    }
}
