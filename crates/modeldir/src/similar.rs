//! What to add to "no tensor" about names that may have been meant.

use tensorfile::{Quoted, similar_names};

/// A hint to follow the name that was asked for, or nothing.
pub(crate) fn hint<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> String {
    let similar = similar_names(asked, names);
    let shown: Vec<String> = similar.iter().map(|name| Quoted(name).to_string()).collect();
    if shown.is_empty() { String::new() } else { format!("; similar: {}", shown.join(", ")) }
}
