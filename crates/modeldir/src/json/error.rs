//! What can be wrong with a JSON file.

use tensorfile::{Lookalike, Quoted};

/// What is wrong with a JSON file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The text is not the JSON that it should be.
    #[error("line {line} column {column}: {message}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        message: Box<str>,
    },
    /// The file holds something other than JSON: a web page, an error text.
    #[error("line {line} column {column}: not JSON: it looks like {looks_like}: {}", Quoted(start))]
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What it looks like.
        looks_like: Lookalike,
        /// How it starts.
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
    /// A field that the call needs has the wrong type.
    #[error("{field}: expected {expected}, found {found}")]
    FieldType {
        /// The name of the field.
        field: &'static str,
        /// The type that is expected.
        expected: &'static str,
        /// What was found.
        found: Box<str>,
    },
    /// The values would take more memory than a file of its kind can need.
    #[error("its values need some {needed} bytes of memory, the limit is {max}")]
    TooDense {
        /// Bytes that the values need.
        needed: u64,
        /// Bytes that they may take.
        max: u64,
    },
}
