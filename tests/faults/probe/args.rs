//! What the command line asks for.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use modeldir::options::{Io, MemoryCheck};

/// What to do and how.
pub(crate) struct Args {
    pub(crate) way: String,
    pub(crate) path: PathBuf,
    pub(crate) io: Io,
    pub(crate) threads: Option<NonZeroUsize>,
    pub(crate) max_bytes_in_flight: Option<NonZeroU64>,
    /// Whether loads compare what they need with what there is.
    pub(crate) memory_check: MemoryCheck,
    /// Where to save.
    pub(crate) to: PathBuf,
    /// Bytes of tensors in one file that is saved.
    pub(crate) shard_size: u64,
    /// Whether to wait after each step.
    pub(crate) steps: bool,
    /// Whether a byte from standard input cancels what follows opening.
    pub(crate) cancel: bool,
}

impl Args {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (Some(way), Some(path)) = (args.next(), args.next()) else {
            return Err("expected WAY PATH [KEY=VALUE]...".to_owned());
        };
        let mut parsed = Self {
            way,
            path: path.into(),
            io: Io::Auto,
            threads: None,
            max_bytes_in_flight: None,
            memory_check: MemoryCheck::Skip,
            to: PathBuf::new(),
            shard_size: 150_000,
            steps: false,
            cancel: false,
        };
        for arg in args {
            parsed.set(&arg).ok_or_else(|| format!("unknown argument {arg:?}"))?;
        }
        Ok(parsed)
    }

    fn set(&mut self, arg: &str) -> Option<()> {
        let (key, value) = arg.split_once('=')?;
        match (key, value) {
            ("io", "auto") => self.io = Io::Auto,
            ("io", "buffered") => self.io = Io::Buffered,
            ("io", "direct") => self.io = Io::Direct,
            ("threads", count) => self.threads = Some(count.parse().ok()?),
            ("in_flight", bytes) => self.max_bytes_in_flight = Some(bytes.parse().ok()?),
            ("memory_check", "1") => self.memory_check = MemoryCheck::Available,
            ("to", path) => self.to = path.into(),
            ("shard_size", bytes) => self.shard_size = bytes.parse().ok()?,
            ("steps", "1") => self.steps = true,
            ("cancel", "1") => self.cancel = true,
            _ => return None,
        }
        Some(())
    }
}
