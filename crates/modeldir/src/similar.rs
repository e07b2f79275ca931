//! The end of a "no tensor" message: similar names.

use tensorfile::{Quoted, similar_names};

/// A hint to append to a message, or nothing.
pub(crate) fn hint<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> String {
    let similar = similar_names(asked, names);
    let shown: Vec<String> = similar.iter().map(|name| Quoted(name).to_string()).collect();
    if shown.is_empty() { String::new() } else { format!("; similar: {}", shown.join(", ")) }
}
