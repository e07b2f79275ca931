//! Which model an example works on.

use std::path::PathBuf;

/// Returns the path given, or that of a small Llama directory that the repository ships.
///
/// The shipped path is relative if the example runs inside the repository, for people to read.
pub fn model_path(given: Option<PathBuf>) -> PathBuf {
    given.unwrap_or_else(|| {
        let shipped = modeldir_fixtures::model("llama");
        let here = std::env::current_dir().unwrap_or_default();
        shipped.strip_prefix(here).map(PathBuf::from).unwrap_or(shipped)
    })
}
