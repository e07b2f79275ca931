//! Copies the files beside the weights along with a store.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tensorfile::{Dtype, SourceFile};

use super::commit::{Changes, folder_of};
use super::options::{Beside, Existing};
use crate::beside::file_role::FileRole;
use crate::beside::versions::version;
use crate::beside::{chat_template, config};
use crate::io_error::io_error;
use crate::json::{self, MaxBytes};
use crate::{ErrorKind, Quantization, Result, TensorStore, resolve};

/// Files that are copied although they have no [`FileRole`].
const NAMES: [&str; 4] =
    ["config.json", "params.json", "generation_config.json", "adapter_config.json"];

/// The files to copy.
#[derive(Debug)]
pub(super) struct Copies<'a> {
    root: &'a Path,
    /// Relative to the folder, in order.
    pub(super) names: Vec<PathBuf>,
    /// The new float type for the configuration, if it has changed.
    dtype: Option<&'static str>,
}

impl<'a> Copies<'a> {
    /// Finds the files to copy along with a store.
    pub(super) fn of(store: &'a TensorStore, beside: Beside) -> Result<Self> {
        let root = store.root();
        match beside {
            Beside::Leave => Ok(Self { root, names: Vec::new(), dtype: None }),
            Beside::Copy => {
                Ok(Self { root, names: found_in(root)?, dtype: dtype_after_cast(store) })
            }
        }
    }

    /// The changes beside the weights of `dir`, the destination of the copies.
    pub(super) fn changes(
        &self,
        dir: &Path,
        beside: Beside,
        existing: Existing,
    ) -> Result<Changes> {
        let mut stale = match beside {
            Beside::Leave => Vec::new(),
            Beside::Copy => found_in(dir)?,
        };
        if existing == Existing::Refuse && !stale.is_empty() {
            return Err(ErrorKind::FilesExist { found: stale }.at(dir));
        }
        stale.retain(|name| !self.names.contains(name));
        for folder in self.names.iter().chain(&stale).filter_map(|name| folder_of(name)) {
            let path = dir.join(folder);
            // A link could lead out of the directory.
            if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_dir()) {
                return Err(io_error(&path, "write to", io::ErrorKind::NotADirectory.into()));
            }
        }
        Ok(Changes { stale, placed: self.names.clone() })
    }

    /// Copies the files to the folder `waiting`; errors of writing name their final paths in `dir`.
    pub(super) fn write(&self, dir: &Path, waiting: &Path) -> Result<()> {
        for name in &self.names {
            let (from, to) = (self.root.join(name), waiting.join(name));
            let failed = |source| io_error(&dir.join(name), "write", source);
            if let Some(folder) = folder_of(name) {
                fs::create_dir_all(waiting.join(folder)).map_err(failed)?;
            }
            let mut to = File::create(&to).map_err(failed)?;
            match self.dtype.filter(|_| is_configuration(name)) {
                Some(dtype) => {
                    to.write_all(renamed(&from, dtype)?.as_bytes()).map_err(failed)?;
                }
                None => copy(&from, |piece| to.write_all(piece).map_err(failed))?,
            }
            to.sync_all().map_err(failed)?;
        }
        Ok(())
    }
}

/// The files of a folder to copy, relative to it and in order.
fn found_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let names = resolve::file_names(folder)?;
    let mut found: Vec<_> =
        names.into_iter().filter(|name| is_copied(name)).map(PathBuf::from).collect();
    let templates = chat_template::additional(folder)?;
    let relative = |path: PathBuf| path.strip_prefix(folder).map(Path::to_owned).ok();
    found.extend(templates.into_iter().filter_map(relative));
    found.sort();
    Ok(found)
}

/// Whether a file of this name belongs to the model and holds no weights.
fn is_copied(name: &str) -> bool {
    NAMES.contains(&name)
        || Quantization::SIDE_CARS.contains(&name)
        || ["config", "tokenizer"].iter().any(|stem| version(name, stem).is_some())
        || FileRole::ALL.iter().any(|role| role.find(&[name]).is_some())
}

/// Whether a file is `config.json` or a version of it.
fn is_configuration(name: &Path) -> bool {
    let name = name.to_str().unwrap_or_default();
    name == "config.json" || version(name, "config").is_some()
}

/// The name of the most frequent float type, by elements, if the elements of a store were cast.
fn dtype_after_cast(store: &TensorStore) -> Option<&'static str> {
    if !store.is_cast() {
        return None;
    }
    let types = [
        (Dtype::BF16, "bfloat16"),
        (Dtype::F16, "float16"),
        (Dtype::F32, "float32"),
        (Dtype::F64, "float64"),
    ];
    let elements = |dtype| {
        let of_type = store.iter().filter(|(_, tensor)| tensor.dtype() == dtype);
        of_type.map(|(_, tensor)| tensor.num_elements() as u64).sum::<u64>()
    };
    let most = types.iter().max_by_key(|(dtype, _)| elements(*dtype))?;
    (elements(most.0) > 0).then_some(most.1)
}

/// The text of a configuration with `dtype` as its float type.
fn renamed(path: &Path, dtype: &str) -> Result<String> {
    let text = json::read_with_mark(path, MaxBytes::FIXED)?;
    // `with_dtype` searches the text for fields, so it must be JSON.
    json::parse_object(json::without_mark(&text)).map_err(|error| error.at(path))?;
    Ok(config::with_dtype(&text, dtype))
}

/// Bytes of a file that are in memory at a time.
const PIECE: u64 = 1 << 20;

/// Reads a file piece by piece, up to its length when it was opened.
fn copy(path: &Path, mut write: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let file = SourceFile::open(path)?;
    let len = file.opened_bytes();
    let mut piece = Vec::new();
    let mut at = 0;
    while at < len {
        let piece_len = PIECE.min(len - at);
        piece.resize(usize::try_from(piece_len).unwrap_or(usize::MAX), 0);
        file.read_exact_at(&mut piece, at)?;
        write(&piece)?;
        at += piece_len;
    }
    Ok(file.check_unchanged()?)
}

#[cfg(test)]
mod tests {
    use super::is_copied;

    #[test]
    fn files_to_copy_are_known_by_their_names() {
        for (name, expected) in [
            ("config.json", true),
            ("config.4.9.json", true),
            ("tokenizer.4.0.json", true),
            ("params.json", true),
            ("quantize_config.json", true),
            ("adapter_config.json", true),
            ("spiece.model", true),
            ("tokenizer.model", true),
            ("tokenizer.model.v3", true),
            ("qwen.tiktoken", true),
            ("preprocessor_config.json", true),
            ("chat_template.jinja", true),
            ("model.safetensors", false),
            ("model.safetensors.index.json", false),
            ("model.fp16.safetensors", false),
            ("pytorch_model.bin", false),
            ("consolidated.safetensors", false),
            ("trainer_state.json", false),
            ("config.json.lock", false),
            (".config.json", false),
            ("._qwen.tiktoken", false),
            ("modeling_x.py", false),
            ("README.md", false),
        ] {
            assert_eq!(is_copied(name), expected, "{name}");
        }
    }
}
