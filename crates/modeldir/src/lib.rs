//! Opens and loads Hugging Face model directories.

mod error;

pub use error::{Error, Fault, MissingCause, Result};
