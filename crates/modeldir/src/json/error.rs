//! The kinds of error of a JSON file.

use tensorfile::{Lookalike, Quoted};

/// What was wrong with a JSON file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The text is not JSON, or not of the expected form.
    #[error("line {line} column {column}: {message}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        message: Box<str>,
    },
    /// The file holds something other than JSON, such as a web page or an error text.
    #[error("line {line} column {column}: not JSON: it looks like {looks_like}: {}", Quoted(start))]
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What the file looks like.
        looks_like: Lookalike,
        /// The start of the file.
        start: Box<str>,
    },
    /// The file is not UTF-8 text.
    #[error("line {line} column {column}: not UTF-8")]
    NotUtf8 {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A required field has the wrong type.
    #[error("{field}: expected {expected}, found {found}")]
    FieldType {
        /// The name of the field.
        field: &'static str,
        /// The expected type.
        expected: &'static str,
        /// The type that was found.
        found: Box<str>,
    },
    /// The values would take more memory than any valid file of this kind.
    #[error("its values need about {needed} bytes of memory, the limit is {max}")]
    TooDense {
        /// The estimated memory for the values, in bytes.
        needed: u64,
        /// The limit in bytes.
        max: u64,
    },
}
