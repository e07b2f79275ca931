//! Opens and loads Hugging Face model directories.

mod accessors;
mod error;
mod generation;
#[expect(dead_code, unused_imports, reason = "the rooms that use the rest are not there yet")]
mod json;
mod source_stand_in;

pub use error::{Error, Fault, MissingCause, Result};
pub use generation::GenerationConfig;
