//! Files that are broken, and files that a new download would mend.

use std::collections::BTreeSet;
use std::path::Path;

use modeldir::{Error, Fault, ModelDir};
use tensorfile::ErrorKind;

/// Returns what is wrong with the files beside the weights, which load without them. A file that is
/// not there is no fault.
///
/// JSON files and templates are read. Of others, such as sentencepiece models, it is only known
/// that they have bytes and are no Git LFS pointers.
pub(crate) fn broken_beside(model: &ModelDir) -> Vec<Error> {
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
    faults.retain(|error| !matches!(error, Error::NoFile { .. }));
    faults
}

/// Returns the files that a new download would mend: shards as the index names them, and others as
/// they were opened.
pub(crate) fn wanting(errors: &[Error]) -> BTreeSet<&Path> {
    errors.iter().flat_map(files).collect()
}

/// The files that one error names.
fn files(error: &Error) -> Vec<&Path> {
    match error {
        Error::Incomplete { faults, .. } => faults.iter().filter_map(shard).collect(),
        Error::MissingNumbered { missing, .. } | Error::StaleIndex { missing, .. } => {
            missing.iter().map(AsRef::as_ref).collect()
        }
        Error::File(error) if is_mended_by_download(error.kind()) => {
            error.path().into_iter().collect()
        }
        Error::Json { .. }
        | Error::NotATemplate { .. }
        | Error::NotJson { .. }
        | Error::NotUtf8 { .. } => error.path().into_iter().collect(),
        _ => Vec::new(),
    }
}

fn is_mended_by_download(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::DanglingLink { .. }
            | ErrorKind::Empty
            | ErrorKind::HeaderPastEnd { .. }
            | ErrorKind::Io { .. }
            | ErrorKind::LfsPointer { .. }
            | ErrorKind::NotSafetensors { .. }
            | ErrorKind::ReadPastEnd { .. }
            | ErrorKind::TooShort { .. }
            | ErrorKind::Truncated { .. }
    )
}

/// The shard that is missing, damaged or not the one of the index.
fn shard(fault: &Fault) -> Option<&Path> {
    match fault {
        Fault::MissingShard { shard, .. }
        | Fault::UnusableShard { shard, .. }
        | Fault::NotInShard { shard, .. } => Some(shard),
        _ => None,
    }
}
