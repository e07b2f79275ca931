//! The result of a save, as a line and as JSON.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use modeldir::TensorStore;
use serde_json::{Value, json};
use tensorfile::PathText;

use crate::output::{Output, bytes, counted, path_json};

/// The files that a save wrote to one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SavedModel {
    path: PathBuf,
    tensors: usize,
    byte_len: u64,
    files: Vec<PathBuf>,
    is_verified: bool,
}

impl SavedModel {
    /// The files of a directory, or one file, with the tensors of this store.
    pub(super) fn new(
        path: &Path,
        store: &TensorStore,
        files: Vec<PathBuf>,
        is_verified: bool,
    ) -> Self {
        let (tensors, byte_len) = (store.len(), store.byte_len());
        Self { path: path.into(), tensors, byte_len, files, is_verified }
    }

    /// Writes a line.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub(super) fn print(&self, out: &mut Output) -> io::Result<()> {
        let (tensors, size) = (counted(self.tensors, "tensor"), bytes(self.byte_len));
        let files = counted(self.files.len(), "file");
        let verified = if self.is_verified { ", read back and equal" } else { "" };
        writeln!(out, "{}: {tensors}, {size} in {files}{verified}", PathText(&self.path))
    }

    /// As JSON.
    pub(super) fn json(&self) -> Value {
        json!({
            "path": path_json(&self.path),
            "tensors": self.tensors,
            "bytes": self.byte_len,
            "files": self.files.iter().map(|file| path_json(file)).collect::<Vec<_>>(),
            "verified": self.is_verified,
        })
    }
}
