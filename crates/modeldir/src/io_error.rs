//! The error of an operation on a file or folder that is no read of tensors.

use std::io;
use std::path::Path;

use crate::Error;

/// The error of what was tried with a file or folder; `action` is a verb such as `write`.
pub(crate) fn io_error(path: &Path, action: &'static str, source: io::Error) -> Error {
    Error::from(tensorfile::ErrorKind::io(action, source)).at(path)
}
