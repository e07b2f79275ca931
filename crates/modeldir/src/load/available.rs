//! How much memory this process can still get: the machine's available memory and the limits of its
//! control groups.

// Applies to the modules below too.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod groups;

use std::path::Path;

use super::memory_limit::MemoryLimit;
use crate::{ErrorKind, Result};

/// Whether a load checks for enough memory before it allocates.
///
/// ```
/// use modeldir::options::MemoryCheck;
/// use modeldir::{Error, ErrorKind, LoadOptions, ModelDir};
///
/// # let path = modeldir_fixtures::model("llama");
/// let model = ModelDir::open(path)?;
/// let options = LoadOptions { memory_check: MemoryCheck::Available, ..Default::default() };
/// match model.plan().load_with(&options) {
///     Ok(store) => assert_eq!(store.len(), model.len()),
///     Err(error) => match error.kind() {
///         ErrorKind::NotEnoughMemory { needed, available, limit } => {
///             println!("{needed} bytes needed, {available} available: {limit}");
///         }
///         _ => return Err(error),
///     },
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryCheck {
    /// No check. Failed allocations are still errors, but Linux overcommits: the OOM killer may end
    /// the process while memory is filled.
    #[default]
    Skip,
    /// Compares what the load allocates, buffers of its threads included and reused memory
    /// excluded, with what Linux reports as available: `MemAvailable` of the machine, and the limit
    /// of every control group around the process minus its use, page cache not counted. A limit
    /// that cannot be read is ignored. On other systems this is [`Skip`](Self::Skip).
    ///
    /// The check reserves nothing: other processes may take the memory in between.
    Available,
}

impl MemoryCheck {
    /// Fails if the check is on and fewer bytes than needed are available.
    pub(super) fn check(self, root: &Path, needed: u64) -> Result<()> {
        match self {
            Self::Available if cfg!(target_os = "linux") => {
                check(root, needed, tightest(|path| std::fs::read_to_string(path).ok()))
            }
            Self::Skip | Self::Available => Ok(()),
        }
    }
}

fn check(root: &Path, needed: u64, tightest: Option<(u64, MemoryLimit)>) -> Result<()> {
    match tightest {
        Some((available, limit)) if needed > available => {
            Err(ErrorKind::NotEnoughMemory { needed, available, limit }.at(root))
        }
        _ => Ok(()),
    }
}

/// The tightest limit and the bytes that it leaves; `read` returns the text of a file.
fn tightest(read: impl Fn(&Path) -> Option<String>) -> Option<(u64, MemoryLimit)> {
    let machine = read(Path::new("/proc/meminfo"));
    let machine = machine.and_then(|text| mem_available(&text));
    let machine = machine.map(|bytes| (bytes, MemoryLimit::Machine));
    let text = |path: &str| read(Path::new(path)).unwrap_or_default();
    let folders = groups::folders(&text("/proc/self/cgroup"), &text("/proc/self/mountinfo"));
    let left = |folder: groups::Folder| {
        let bytes = folder.available(|name| read(&folder.path.join(name)))?;
        Some((bytes, MemoryLimit::ControlGroup(folder.path)))
    };
    machine.into_iter().chain(folders.into_iter().filter_map(left)).min_by_key(|(bytes, _)| *bytes)
}

/// The bytes that `/proc/meminfo` calls available.
fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
