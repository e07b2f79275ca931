//! Writing one weights file, and comparing what was written with what was meant.

use std::path::Path;

use modeldir::{ModelDir, Tensor, TensorStore};
use tensorfile::{PathText, Writer};

use crate::run::Result;
use crate::text::shown;

/// Whether a path names one weights file, and not a directory to be.
pub(crate) fn is_weight_file(path: &Path) -> bool {
    !path.is_dir() && path.extension().is_some_and(|extension| extension == "safetensors")
}

/// Refuses a file that is there and is not to be replaced.
///
/// # Errors
///
/// If it is refused.
pub(crate) fn may_write(path: &Path, replace: bool) -> Result {
    if !replace && path.symlink_metadata().is_ok() {
        return Err(format!("{}: is there already (--replace replaces it)", PathText(path)).into());
    }
    Ok(())
}

/// Writes tensors to a file, which appears whole under its name, or not at all.
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

/// Reads back what was written from a store, and compares.
///
/// # Errors
///
/// If a tensor is not what it was, or cannot be read.
pub(crate) fn compare(store: &TensorStore, path: &Path) -> Result {
    let saved = ModelDir::open(path)?;
    for (name, tensor) in store.iter() {
        let read = saved.read(name)?;
        let is_same = |a: &Tensor, b: &Tensor| a.dtype() == b.dtype() && a.shape() == b.shape();
        if !is_same(&read, tensor) || read.bytes() != tensor.bytes() {
            return Err(format!("{}: {} differs", PathText(path), shown(name)).into());
        }
    }
    Ok(())
}
