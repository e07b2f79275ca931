//! Broken files, and files to download again.

use std::collections::BTreeSet;
use std::path::Path;

use modeldir::error::{Fault, JsonError};
use modeldir::{Error, ErrorKind, ModelDir};
use tensorfile::ErrorKind as FileErrorKind;

/// Returns the faults of the files beside the weights, which load without them. A missing file is
/// no fault.
///
/// JSON files and templates are parsed. Other files, such as sentencepiece models, are only checked
/// not to be empty or Git LFS pointers.
pub(super) fn broken_beside(model: &ModelDir) -> Vec<Error> {
    let files = model.tokenizer();
    let is_json = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
    let read = |(role, path)| match is_json(path) {
        true => files.read(role).err(),
        false => files.check(role).err(),
    };
    let mut faults: Vec<Error> = files.iter().filter_map(read).collect();
    faults.extend(model.config().err());
    faults.extend(model.generation_config().err());
    faults.extend(model.quantization().err());
    faults.extend(files.chat_templates().err());
    faults.retain(|error| !matches!(error.kind(), ErrorKind::NoFile { .. }));
    faults
}

/// Returns the files to download again: shards by their names in the index, and others by the paths
/// under which they were opened.
pub(super) fn wanting(errors: &[Error]) -> BTreeSet<&Path> {
    errors.iter().flat_map(files).collect()
}

/// The files that one error names.
fn files(error: &Error) -> Vec<&Path> {
    match error.kind() {
        ErrorKind::Incomplete { faults, .. } => faults.iter().filter_map(shard).collect(),
        // What a stale index names never existed here, or is there under another name.
        ErrorKind::MissingNumbered { missing, .. } => missing.iter().map(AsRef::as_ref).collect(),
        ErrorKind::File(kind) if is_mended_by_download(kind) => error.path().into_iter().collect(),
        ErrorKind::Json(
            JsonError::Syntax { .. } | JsonError::NotJson { .. } | JsonError::NotUtf8 { .. },
        )
        | ErrorKind::NotATemplate { .. } => error.path().into_iter().collect(),
        _ => Vec::new(),
    }
}

fn is_mended_by_download(kind: &FileErrorKind) -> bool {
    matches!(
        kind,
        FileErrorKind::DanglingLink { .. }
            | FileErrorKind::Empty
            | FileErrorKind::HeaderPastEnd { .. }
            | FileErrorKind::Io { .. }
            | FileErrorKind::LeadingZeros { .. }
            | FileErrorKind::LfsPointer { .. }
            | FileErrorKind::NotSafetensors { .. }
            | FileErrorKind::ReadPastEnd { .. }
            | FileErrorKind::TooShort { .. }
            | FileErrorKind::Truncated { .. }
    )
}

/// The shard that is missing, damaged or different from the index.
fn shard(fault: &Fault) -> Option<&Path> {
    match fault {
        Fault::MissingShard { shard, .. }
        | Fault::UnusableShard { shard, .. }
        | Fault::NotInShard { shard, .. } => Some(shard),
        _ => None,
    }
}
