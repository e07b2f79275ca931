//! The error of this crate: what was wrong, in which file, and with which tensor.

mod kind;
mod shown;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use self::kind::ErrorKind;
use crate::limit::Limit;
use crate::quote::{PathText, Quoted};
use crate::reserve::NoMemory;

/// The result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What was wrong, in which file, and with which tensor.
///
/// The message is one line: path, tensor, [`kind`](Self::kind), each if there is one. Text from the
/// file is escaped and shortened. The type takes 8 bytes.
///
/// ```
/// use tensorfile::{ErrorKind, TensorFile, Writer};
///
/// let bytes = Writer::new().to_bytes()?;
/// let error = TensorFile::from_bytes(&bytes)?.read("w").unwrap_err();
/// assert!(matches!(error.kind(), ErrorKind::TensorNotFound { .. }));
/// assert_eq!((error.path(), error.tensor()), (Some("<memory>".as_ref()), Some("w")));
/// assert_eq!(error.to_string(), r#"<memory>: tensor "w": not in this file"#);
/// # Ok::<(), tensorfile::Error>(())
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    path: Option<Arc<Path>>,
    tensor: Option<Box<str>>,
    kind: ErrorKind,
}

impl Error {
    /// What was wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// What was wrong, without path and tensor.
    #[must_use]
    pub fn into_kind(self) -> ErrorKind {
        self.0.kind
    }

    /// The path of the file, as it was opened; `None` for bytes that are not in a file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The name of the tensor, if the error is about one.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        self.0.tensor.as_deref()
    }

    /// Adds the path of the file, unless the error has one.
    #[must_use]
    pub fn at(mut self, path: impl Into<Arc<Path>>) -> Self {
        self.0.path.get_or_insert_with(|| path.into());
        self
    }

    /// Adds the name of the tensor, unless the error has one.
    #[must_use]
    pub fn in_tensor(mut self, name: impl Into<Box<str>>) -> Self {
        self.0.tensor.get_or_insert_with(|| name.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = self.path() {
            write!(f, "{}: ", PathText(path))?;
        }
        if let Some(tensor) = self.tensor() {
            write!(f, "tensor {}: ", Quoted(tensor))?;
        }
        self.kind().fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("path", &self.path())
            .field("tensor", &self.tensor())
            .field("kind", self.kind())
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.kind().source()
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { path: None, tensor: None, kind }))
    }
}

impl From<NoMemory> for Error {
    fn from(none: NoMemory) -> Self {
        ErrorKind::from(none).into()
    }
}

impl ErrorKind {
    /// An operation that the operating system refused: `action` follows "cannot".
    #[must_use]
    pub fn io(action: &'static str, source: io::Error) -> Self {
        Self::Io { action, source: Arc::new(source) }
    }

    /// The error of this kind in this file.
    #[must_use]
    pub fn at(self, path: impl Into<Arc<Path>>) -> Error {
        Error::from(self).at(path)
    }

    /// The error of this kind in this tensor.
    #[must_use]
    pub fn in_tensor(self, name: impl Into<Box<str>>) -> Error {
        Error::from(self).in_tensor(name)
    }
}

impl From<Limit> for ErrorKind {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}

impl From<NoMemory> for ErrorKind {
    fn from(NoMemory(byte_len): NoMemory) -> Self {
        Self::OutOfMemory { byte_len }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::io;
    use std::path::Path;

    use super::{Error, ErrorKind};

    #[test]
    fn an_error_takes_as_much_as_a_pointer() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<super::Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn the_message_has_path_tensor_and_kind_in_this_order() {
        let hole = || ErrorKind::Hole { begin: 8, expected: 4 };
        let says = "data offset 8 leaves a hole: the bytes before it are used up to 4";
        assert_eq!(hole().to_string(), says);
        assert_eq!(Error::from(hole()).to_string(), says);
        assert_eq!(hole().in_tensor("w\n").to_string(), format!(r#"tensor "w\n": {says}"#));
        let whole = hole().in_tensor("w").at(Path::new("m"));
        assert_eq!(whole.to_string(), format!(r#"m: tensor "w": {says}"#));
        assert_eq!((whole.path(), whole.tensor()), (Some(Path::new("m")), Some("w")));
        assert!(matches!(whole.into_kind(), ErrorKind::Hole { begin: 8, .. }));
    }

    #[test]
    fn the_first_place_named_stays() {
        let error = ErrorKind::NameTaken.in_tensor("w").at(Path::new("m"));
        let error = error.in_tensor("v").at(Path::new("n"));
        assert_eq!((error.path(), error.tensor()), (Some(Path::new("m")), Some("w")));
    }

    #[test]
    fn the_cause_is_the_source_and_not_in_the_message() {
        let error = ErrorKind::io("open it", io::Error::other("it is locked")).at(Path::new("m"));
        assert_eq!(error.to_string(), "m: cannot open it");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("it is locked"));
    }

    #[test]
    fn debug_shows_the_fields() {
        let error = ErrorKind::Empty.at(Path::new("m"));
        assert_eq!(format!("{error:?}"), r#"Error { path: Some("m"), tensor: None, kind: Empty }"#);
    }
}
