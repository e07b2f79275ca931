//! Weights beside a model that were not read.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use modeldir::report::IgnoreReason;
use modeldir::{ModelDir, Shard};
use serde_json::{Value, json};
use tensorfile::PathText;

use crate::output::path_json;

/// Weight files of a directory that are not part of the model as it was opened.
#[derive(Debug, Default)]
pub(super) struct Unread {
    /// Each with its length.
    files: Vec<(PathBuf, u64)>,
    /// Bytes of the files that were read.
    bytes_read: u64,
    /// Whether the weights have no usual name, so that the others may be the model.
    is_unnamed: bool,
}

impl Unread {
    /// Those beside an opened model, as its report lists them.
    pub(super) fn beside(model: &ModelDir) -> Self {
        let report = model.report();
        let is_weights = |reason| {
            matches!(
                reason,
                IgnoreReason::OtherFormat
                    | IgnoreReason::RankFile
                    | IgnoreReason::NotInIndex
                    | IgnoreReason::OtherSet
            )
        };
        let weights = report.ignored_files.iter().filter(|ignored| is_weights(ignored.reason));
        let files = weights.filter_map(|ignored| {
            let found = fs::metadata(model.path().join(&ignored.path)).ok()?;
            found.is_file().then(|| (ignored.path.clone(), found.len()))
        });
        Self {
            files: files.collect(),
            bytes_read: model.shards().iter().map(Shard::file_bytes).sum(),
            is_unnamed: report.family.is_none() && report.index_file.is_none(),
        }
    }

    /// Whether these files are longer than those that were read.
    pub(super) fn is_most(&self) -> bool {
        self.files.iter().map(|(_, byte_len)| byte_len).sum::<u64>() > self.bytes_read
    }

    /// Whether most of the model is probably in these files: what was read has no usual name.
    pub(super) fn is_the_model(&self) -> bool {
        self.is_unnamed && self.is_most()
    }

    pub(super) fn json(&self) -> Value {
        let file = |(path, byte_len): &(PathBuf, u64)| json!({ "path": path_json(path), "bytes": byte_len });
        self.files.iter().map(file).collect()
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more weights are here and were not read: ")?;
        for (i, (path, byte_len)) in self.files.iter().take(20).enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            write!(f, "{} ({byte_len} bytes)", PathText(path))?;
        }
        match self.files.len() {
            n if n > 20 => write!(f, " and {} more", n - 20),
            _ => Ok(()),
        }
    }
}
