//! Copies of the files beside the weights.

use std::fs;
use std::path::{Path, PathBuf};

use modeldir::{Float, ModelDir};
use serde_json::Value;
use tensorfile::PathText;

use crate::run::Result;

/// Copies the configuration and the tokenizer of a model, and returns the copies.
///
/// After a cast the configuration names the new float type.
///
/// # Errors
///
/// If a file cannot be read or written, or exists and may not be replaced.
pub(crate) fn copy_companions(
    model: &ModelDir,
    to: &Path,
    cast: Option<Float>,
    replace: bool,
) -> Result<Vec<PathBuf>> {
    let json = ["config.json", "generation_config.json"].map(|name| model.path().join(name));
    let files = json.into_iter().filter(|path| path.is_file());
    let files = files.chain(model.tokenizer().iter().map(|(_, path)| path.to_owned()));
    let mut copies = Vec::new();
    for from in files {
        let Some(name) = from.file_name() else { continue };
        let copy = to.join(name);
        let failed = |error| format!("{}: {error}", PathText(&copy));
        if copy.exists() && !replace {
            return Err(format!("{}: is there already", PathText(&copy)).into());
        }
        match cast.filter(|_| name == "config.json") {
            Some(float) => fs::write(&copy, with_dtype(model, float)?).map_err(failed)?,
            None => _ = fs::copy(&from, &copy).map_err(failed)?,
        }
        copies.push(copy);
    }
    Ok(copies)
}

/// The configuration with its float type replaced.
fn with_dtype(model: &ModelDir, float: Float) -> Result<String> {
    let name = match float {
        Float::F16 => "float16",
        Float::F32 => "float32",
        _ => "bfloat16",
    };
    let mut config = model.config()?.raw().clone();
    for key in ["dtype", "torch_dtype"] {
        if let Some(value) = config.get_mut(key) {
            *value = Value::from(name);
        }
    }
    Ok(serde_json::to_string_pretty(&config)? + "\n")
}
