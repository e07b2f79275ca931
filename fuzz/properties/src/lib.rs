//! What must hold for any input: the bodies of the fuzz targets, and the exceptions from agreement
//! with the reference.
//!
//! Each property takes bytes and says what is wrong, if anything is. The fuzz targets give them
//! bytes of libFuzzer, the tests bytes of proptest, of the conformance corpus, and of every input
//! that once failed.

mod config;
mod differential;
mod directory;
mod header;
mod layer;
mod partition;
mod quantized;
mod scratch;
mod weight_map;

pub use config::config;
pub use differential::{Agreement, EXCEPTIONS, Exception, compare, exception};
pub use directory::directory;
pub use header::header;
pub use partition::partition;
pub use quantized::quantized;
pub use weight_map::weight_map;

/// A property: what does not hold for these bytes, if anything does not.
pub type Property = fn(&[u8]) -> Result<(), String>;

/// Every property by the name of its fuzz target.
pub const PROPERTIES: [(&str, Property); 6] = [
    ("config", config),
    ("directory", directory),
    ("header", header),
    ("header_differential", header_differential),
    ("partition", partition),
    ("weight_map", weight_map),
];

/// Compares the reader with the reference; see [`compare`].
///
/// # Errors
///
/// Says where they differ.
pub fn header_differential(file: &[u8]) -> Result<(), String> {
    compare(file).map(drop)
}
