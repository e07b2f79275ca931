//! The error type of this crate, its kinds, and the types in them.
//!
//! [`launch`](crate::launch), [`partition`](crate::partition) and [`tensorfile`] have the types of
//! their own kinds.

mod fault;
mod given;
mod kind;
mod shown;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tensorfile::reserve::NoMemory;
use tensorfile::{PathText, Quoted};

pub use fault::{Fault, MissingCause};
pub use given::Given;
pub use kind::ErrorKind;
pub use tensorfile::{Limit, LimitOn, Remedy};

pub use crate::json::JsonError;
use crate::launch::LaunchError;
pub use crate::load::MemoryLimit;
use crate::partition::PartitionError;
use crate::rank::RankError;

/// The result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: what was wrong, and in which file or directory and which tensor.
///
/// The message consists of the path, the tensor and the [kind](Self::kind) with expected and found
/// values. One error lists all faults of a directory. The size of this type is 8 bytes.
///
/// ```
/// use modeldir::{ErrorKind, ModelDir};
///
/// let error = ModelDir::open("no/such/model").unwrap_err();
/// assert!(matches!(error.kind(), ErrorKind::File(_)));
/// assert_eq!(error.path(), Some("no/such/model".as_ref()));
/// assert_eq!(error.to_string(), "no/such/model: no such file");
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    path: Option<Arc<Path>>,
    tensor: Option<Box<str>>,
    kind: ErrorKind,
}

impl Error {
    /// Returns what was wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Returns what was wrong, without path and tensor.
    #[must_use]
    pub fn into_kind(self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the file or directory concerned, as it was opened.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the tensor concerned.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        self.0.tensor.as_deref()
    }

    /// Adds the file or directory, unless the error has one.
    #[must_use]
    pub fn at(mut self, path: impl AsRef<Path>) -> Self {
        self.0.path.get_or_insert_with(|| path.as_ref().into());
        self
    }

    /// Adds the tensor, unless the error has one.
    #[must_use]
    pub fn in_tensor(mut self, name: &str) -> Self {
        self.0.tensor.get_or_insert_with(|| name.into());
        self
    }
}

impl ErrorKind {
    /// Builds an error of this kind for a file or directory.
    #[must_use]
    pub fn at(self, path: impl AsRef<Path>) -> Error {
        Error::from(self).at(path)
    }

    /// Builds an error of this kind for a tensor.
    #[must_use]
    pub fn in_tensor(self, name: &str) -> Error {
        Error::from(self).in_tensor(name)
    }
}

/// Builds an error without path and tensor; the caller may add them.
impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { path: None, tensor: None, kind }))
    }
}

impl From<JsonError> for Error {
    fn from(error: JsonError) -> Self {
        ErrorKind::Json(error).into()
    }
}

impl From<LaunchError> for Error {
    fn from(error: LaunchError) -> Self {
        ErrorKind::Launch(error).into()
    }
}

impl From<RankError> for Error {
    fn from(error: RankError) -> Self {
        ErrorKind::Rank(error).into()
    }
}

impl From<PartitionError> for Error {
    fn from(error: PartitionError) -> Self {
        ErrorKind::Partition(error).into()
    }
}

impl From<tensorfile::Error> for Error {
    fn from(error: tensorfile::Error) -> Self {
        let (path, tensor) = (error.path().map(Arc::from), error.tensor().map(Box::from));
        Self(Box::new(Inner { path, tensor, kind: ErrorKind::File(error.into_kind()) }))
    }
}

impl From<tensorfile::ErrorKind> for Error {
    fn from(kind: tensorfile::ErrorKind) -> Self {
        ErrorKind::File(kind).into()
    }
}

impl From<NoMemory> for Error {
    fn from(none: NoMemory) -> Self {
        tensorfile::ErrorKind::from(none).into()
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { path, tensor, kind } = &*self.0;
        f.debug_struct("Error")
            .field("path", path)
            .field("tensor", tensor)
            .field("kind", kind)
            .finish()
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

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.kind().source()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Error, ErrorKind, Fault};

    #[test]
    fn path_and_tensor_are_those_of_the_message() {
        let missing = tensorfile::ErrorKind::TensorNotFound { similar: [].into() };
        let missing = missing.in_tensor("w").at(Path::new("m.safetensors"));
        for error in
            [Error::from(missing), ErrorKind::MappedTwice.at("m.safetensors").in_tensor("w")]
        {
            assert_eq!(error.path(), Some(Path::new("m.safetensors")), "{error}");
            assert_eq!(error.tensor(), Some("w"), "{error}");
        }
        let error = Error::from(ErrorKind::NoHubCache);
        assert_eq!((error.path(), error.tensor()), (None, None));
    }

    #[test]
    fn what_is_nearest_to_the_fault_wins() {
        let error = ErrorKind::NoWeightMap.at("inner").at("outer").in_tensor("a").in_tensor("b");
        assert_eq!(error.to_string(), "inner: tensor \"a\": not an index: it has no weight_map");
    }

    #[test]
    fn faults_that_are_not_listed_are_counted() {
        let fault = Fault::Unindexed { tensor: "w".into(), shard: Path::new("s").into() };
        let error = ErrorKind::Incomplete { faults: vec![fault], more: 2 }.at("m");
        assert_eq!(
            error.to_string(),
            "m: 3 faults\n  tensor \"w\" in shard s is not in the index\n  and 2 more faults of tensors"
        );
    }

    #[test]
    fn an_error_is_8_bytes() {
        assert_eq!(size_of::<Error>(), 8);
    }
}
