//! Files and folders that look like weights but are not used, and why.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use tensorfile::PathText;

use crate::as_text;
use crate::formats::format_of;

/// A file or folder of a model directory that is not one of its weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IgnoredFile {
    /// The path, relative to the directory.
    #[serde(serialize_with = "as_text::path")]
    pub path: PathBuf,
    /// Why it is not read.
    pub reason: IgnoreReason,
}

impl fmt::Display for IgnoredFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", PathText(&self.path), self.reason)?;
        let format = format_of(&self.path).filter(|_| self.reason == IgnoreReason::OtherFormat);
        format.map_or(Ok(()), |format| write!(f, ": {format}"))
    }
}

/// Why a file or folder is not one of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IgnoreReason {
    /// Its name starts with a dot.
    Hidden,
    /// It is part of a download, running or interrupted, or its lock.
    Partial,
    /// It holds the state of a training run.
    Training,
    /// It holds weights in an unsupported format.
    OtherFormat,
    /// It is cut for a rank, as vLLM, DeepSeek's converter, TensorRT-LLM or PyTorch's distributed
    /// checkpoints write it.
    RankFile,
    /// The index does not name it.
    NotInIndex,
    /// It belongs to another set of weights or to another variant.
    OtherSet,
    /// It is an index of another set or variant, or one that the options ignore.
    UnusedIndex,
    /// It is a folder without indexed shards.
    Folder,
}

impl fmt::Display for IgnoreReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hidden => "hidden",
            Self::Partial => "part or lock of a download",
            Self::Training => "state of a training run",
            Self::OtherFormat => "weights of a format that is not read",
            Self::RankFile => "weights of one rank",
            Self::NotInIndex => "not named by the index",
            Self::OtherSet => "of another set of weights",
            Self::UnusedIndex => "index that is not used",
            Self::Folder => "folder that is not named by the index",
        })
    }
}
