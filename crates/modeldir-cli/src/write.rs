//! Writes one weights file, and compares what was written with the tensors in memory.

use std::path::{Path, PathBuf};

use modeldir::options::Existing;
use modeldir::{ModelDir, Rank, Tensor, TensorStore};
use tensorfile::{PathText, Writer};

use crate::failure::Result;
use crate::output::shown;

/// Whether a path names one weights file and not a directory.
pub(crate) fn is_weight_file(path: &Path) -> bool {
    !path.is_dir() && path.extension().is_some_and(|extension| extension == "safetensors")
}

/// The directory of one rank in the directory of the job.
pub(crate) fn rank_dir(dir: &Path, rank: Rank) -> PathBuf {
    dir.join(format!("rank-{}-of-{}", rank.rank(), rank.size()))
}

/// What `--replace` says about files that exist.
pub(crate) fn existing(replace: bool) -> Existing {
    if replace { Existing::Replace } else { Existing::Refuse }
}

/// Checks that a file does not exist or is to be replaced.
///
/// # Errors
///
/// If it exists and is not to be replaced.
pub(crate) fn may_write(path: &Path, existing: Existing) -> Result {
    if existing == Existing::Refuse && path.symlink_metadata().is_ok() {
        return Err(format!("{}: exists already (--replace replaces it)", PathText(path)).into());
    }
    Ok(())
}

/// Writes tensors to a file, which appears whole or not at all.
///
/// # Errors
///
/// Those of the writer.
pub(crate) fn write_file<'t>(tensors: impl IntoIterator<Item = &'t Tensor>, path: &Path) -> Result {
    let mut writer = Writer::new().with_metadata("format", "pt");
    for tensor in tensors {
        writer.add_tensor(tensor)?;
    }
    Ok(writer.save(path)?)
}

/// Compares written tensors with those in memory.
///
/// # Errors
///
/// If a tensor differs or cannot be read.
pub(crate) fn compare(store: &TensorStore, path: &Path) -> Result {
    let saved = ModelDir::open(path)?;
    for (name, tensor) in store.iter() {
        let read = saved.read(name)?;
        let is_same = |a: &Tensor, b: &Tensor| a.dtype() == b.dtype() && a.shape() == b.shape();
        if !is_same(&read, tensor) || read.bytes() != tensor.bytes() {
            let (path, name) = (PathText(path), shown(name));
            return Err(format!("{path}: {name} differs from what was written").into());
        }
    }
    Ok(())
}
