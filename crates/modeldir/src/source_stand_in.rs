//! Stands in for `tensorfile::SourceFile` until it is there.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use tensorfile::{Error, FileKind};

pub(crate) struct SourceFile {
    file: File,
    byte_len: u64,
}

impl SourceFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let io =
            |source| Error::Io { path: path.to_owned(), action: "open", source: Arc::new(source) };
        let Ok(meta) = path.metadata() else {
            return Err(Error::NotFound { path: path.to_owned() });
        };
        if !meta.is_file() {
            return Err(Error::NotARegularFile {
                path: path.to_owned(),
                kind: FileKind::Directory,
            });
        }
        Ok(Self { file: File::open(path).map_err(io)?, byte_len: meta.len() })
    }

    pub(crate) fn byte_len(&self) -> u64 {
        self.byte_len
    }

    pub(crate) fn read_exact_at(&self, buf: &mut [u8], _offset: u64) -> Result<(), Error> {
        (&self.file).read_exact(buf).map_err(|source| Error::Io {
            path: "?".into(),
            action: "read",
            source: Arc::new(source),
        })
    }
}
