//! Models that the tests damage.

use std::fs;

/// The shard that [`broken_model`] lacks.
pub(crate) const MISSING: &str = "model-00002-of-00004.safetensors";
/// The shard that it has cut short.
pub(crate) const SHORT: &str = "model-00003-of-00004.safetensors";

/// A folder with the files of a shipped model.
pub(crate) fn copy_of_llama() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(modeldir_fixtures::model("llama")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
    }
    folder
}

/// A model with one shard missing and one cut short.
pub(crate) fn broken_model() -> tempfile::TempDir {
    let folder = copy_of_llama();
    fs::remove_file(folder.path().join(MISSING)).unwrap();
    let short = fs::File::options().write(true).open(folder.path().join(SHORT)).unwrap();
    short.set_len(short.metadata().unwrap().len() - 1).unwrap();
    folder
}
