//! Writing a store as a model directory: one file, or shards with an index.

mod beside;
mod commit;
mod index_file;
mod options;
mod split;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tensorfile::{Limit, LimitOn, Remedy, Writer};
use tracing::{debug, debug_span};

use crate::io_error::io_error;
use crate::open_options::Family;
use crate::rank_part::{KEYS, PartRecord};
use crate::resolve::{self, Present};
use crate::store::TensorStore;
use crate::{Error, ErrorKind, Result};

pub use options::{Beside, Existing, SaveOptions, Saved};

use beside::Copies;
use commit::Step;
use index_file::IndexFile;
use split::{Shard, shards};

impl TensorStore {
    /// Writes the tensors into a directory, which is created if it does not exist.
    ///
    /// Files, names and order are those of `save_torch_state_dict` in the Python library
    /// `huggingface_hub`, given the same tensors in name order: either `model.safetensors`, or
    /// `model-00001-of-0000N.safetensors` and so on with `model.safetensors.index.json`.
    /// [Aliases](Self::aliases) are recorded in the metadata. [`SaveOptions::beside`] chooses
    /// whether configuration and tokenizer are copied.
    ///
    /// Blocks until all is on the disk, and makes no second copy of a tensor in memory.
    ///
    /// All files are first written to a hidden folder inside the directory; if that fails, the old
    /// files are unchanged. Then the old weights are removed, files beside the weights are
    /// replaced, the new weights are moved into place, and the index last. If the process dies
    /// midway, the directory opens as the old model, the new model, or not at all; or as weights of
    /// other names, if [`Existing::Replace`] left some. Files that are not yet in place remain in
    /// the hidden folder.
    ///
    /// Old files are never written to, so a store that is mapped from them can be saved in their
    /// place. Two saves into one directory must not run at the same time.
    ///
    /// ```
    /// use modeldir::ModelDir;
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// # let folder = tempfile::tempdir()?;
    /// # let to = folder.path();
    /// let model = ModelDir::open(path)?;
    /// let saved = model.load()?.save(to)?;
    /// assert_eq!(saved.byte_len, model.byte_len());
    /// assert_eq!(ModelDir::open(to)?.len(), model.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WeightsExist`] if the directory has weights and [`SaveOptions::existing`] does
    /// not replace them, [`ErrorKind::MetadataKey`] for a metadata key or an alias that cannot be
    /// recorded, [`ErrorKind::Limit`] for a shard or a tensor beyond the default limits of readers
    /// (only [`Writer`](tensorfile::Writer) has options to write it), [`ErrorKind::File`] with the
    /// file that could not be written. After any error but [`tensorfile::ErrorKind::Io`], the
    /// directory is unchanged.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<Saved> {
        self.save_with(dir, &SaveOptions::default())
    }

    /// Saves as [`save`](Self::save) does, with options.
    ///
    /// ```
    /// use modeldir::options::Beside;
    /// use modeldir::{Float, ModelDir, SaveOptions};
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// # let folder = tempfile::tempdir()?;
    /// # let to = folder.path();
    /// let store = ModelDir::open(path)?.plan().cast(Float::F16).load()?;
    /// let options = SaveOptions { max_shard_bytes: 100_000, beside: Beside::Copy, ..Default::default() };
    /// let saved = store.save_with(to, &options)?;
    /// assert!(saved.index.is_some());
    ///
    /// let copy = ModelDir::open(to)?;
    /// assert_eq!(copy.shards().len(), saved.shards.len());
    /// assert_eq!(copy.config()?.dtype(), Some("float16"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A rank of a distributed job can save its parts as a directory of its own, and load that in
    /// later jobs. The metadata records the rank, the rules and the directory of the model, so that
    /// another rank cannot load it by mistake:
    ///
    /// ```
    /// use modeldir::{ModelDir, Rank, Topology};
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// # let folder = tempfile::tempdir()?;
    /// # let to = folder.path();
    /// let model = ModelDir::open(path)?;
    /// let rules = model.partition()?;
    /// let plan = model.plan_for(&rules, &Topology::tensor_parallel(Rank::new(1, 4)?))?;
    /// let of_rank = to.join("rank-1-of-4");
    /// plan.load()?.save(&of_rank)?;
    ///
    /// let part = ModelDir::open(&of_rank)?;
    /// assert_eq!(part.byte_len(), plan.bytes_selected());
    /// assert_eq!(part.info("model.layers.0.mlp.down_proj.weight")?.shape(), [64, 44]);
    ///
    /// let loaded = part.plan_for(&rules, &Topology::tensor_parallel(Rank::new(1, 4)?))?.load()?;
    /// assert_eq!(loaded.byte_len(), part.byte_len());
    /// let other = part.plan_for(&rules, &Topology::tensor_parallel(Rank::new(2, 4)?)).unwrap_err();
    /// assert!(other.to_string().ends_with("holds the part of rank 1/4, not that of rank 2/4"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`save`](Self::save). With [`Beside::Copy`] also [`ErrorKind::FilesExist`] if such files
    /// exist and [`SaveOptions::existing`] does not replace them, an error that names a file that
    /// cannot be copied, and [`ErrorKind::Json`] if elements were cast and `config.json` is not
    /// JSON.
    pub fn save_with(&self, dir: impl AsRef<Path>, options: &SaveOptions) -> Result<Saved> {
        let dir = dir.as_ref();
        let _span = debug_span!("save", tensors = self.len()).entered();
        let metadata = Metadata::new(self, dir, options)?;
        let copies = Copies::of(self, options.beside)?;
        fs::create_dir_all(dir).map_err(|source| io_error(dir, "create", source))?;
        let old = weights_to_replace(dir, options.existing)?;
        let changes = copies.changes(dir, options.beside, options.existing)?;
        let shards = shards(self, options.max_shard_bytes);
        let names: Vec<PathBuf> = shards.iter().map(|shard| shard.file.clone().into()).collect();
        let index = (shards.len() > 1).then(|| PathBuf::from(INDEX));
        refuse_folders(dir, names.iter().chain(&index).chain(&changes.placed))?;

        let waiting = tempfile::Builder::new().prefix(".modeldir-").suffix(".tmp").tempdir_in(dir);
        let waiting = waiting.map_err(|source| io_error(dir, "create a folder in", source))?;
        copies.write(dir, waiting.path())?;
        write_shards(&shards, dir, waiting.path(), &metadata)?;
        let byte_len = self.byte_len();
        if index.is_some() {
            write_index(&shards, dir, waiting.path(), byte_len, &metadata)?;
        }
        put_in_place(dir, waiting, &commit::steps(old, &changes, &names, index.as_deref()))?;
        debug!(shards = names.len(), bytes = byte_len, "saved");
        let in_dir = |names: Vec<PathBuf>| names.iter().map(|name| dir.join(name)).collect();
        let (shards, beside) = (in_dir(names), in_dir(changes.placed));
        Ok(Saved { shards, index: index.map(|name| dir.join(name)), beside, byte_len })
    }
}

/// The file name of the index.
const INDEX: &str = "model.safetensors.index.json";

/// The weight files to replace; fails if there are any and `existing` refuses them.
fn weights_to_replace(dir: &Path, existing: Existing) -> Result<Present> {
    let found = resolve::present(dir, Family::Model)?;
    match existing {
        Existing::Replace => Ok(found),
        Existing::Refuse if found == Present::default() => Ok(found),
        Existing::Refuse => {
            let found = [found.indexes, found.shards, found.others].concat();
            Err(ErrorKind::WeightsExist { found }.at(dir))
        }
    }
}

/// Fails if a folder has the name of a file to be written.
fn refuse_folders<'a>(dir: &Path, names: impl Iterator<Item = &'a PathBuf>) -> Result<()> {
    for path in names.map(|name| dir.join(name)) {
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            return Err(io_error(&path, "replace", io::ErrorKind::IsADirectory.into()));
        }
    }
    Ok(())
}

/// The metadata of the files to be written.
struct Metadata {
    format: String,
    /// Entries for the single file, or for the index.
    entries: BTreeMap<String, String>,
}

impl Metadata {
    /// Joins the aliases, the record of a rank's part, and the caller's entries; of equal keys, the
    /// caller's entry wins.
    fn new(store: &TensorStore, dir: &Path, options: &SaveOptions) -> Result<Self> {
        let refuse =
            |key: &str, reason| Err(ErrorKind::MetadataKey { key: key.into(), reason }.at(dir));
        if options.metadata.contains_key(TOTAL_SIZE) {
            return refuse(TOTAL_SIZE, "the index has this key for the bytes of all tensors");
        }
        let mut entries = BTreeMap::new();
        for alias in store.aliases() {
            if [FORMAT, TOTAL_SIZE].contains(&&*alias.name) || KEYS.contains(&&*alias.name) {
                return refuse(&alias.name, "an alias of this name cannot be recorded");
            }
            entries.insert(alias.name.clone(), alias.target.clone());
        }
        let part = store.part_record().into_iter().flat_map(PartRecord::entries);
        entries.extend(part.map(|(key, value)| (key.to_owned(), value.to_owned())));
        entries.extend(options.metadata.clone());
        let format = entries.remove(FORMAT).unwrap_or_else(|| "pt".to_owned());
        Ok(Self { format, entries })
    }
}

/// The metadata key for the library that a file is for.
const FORMAT: &str = "format";

/// The metadata key of an index for the bytes of all tensors.
const TOTAL_SIZE: &str = "total_size";

/// Writes the shards to the folder `waiting`; errors name their final paths in `dir`.
fn write_shards(
    shards: &[Shard<'_>],
    dir: &Path,
    waiting: &Path,
    metadata: &Metadata,
) -> Result<()> {
    for shard in shards {
        let path = dir.join(&shard.file);
        let mut writer = Writer::new().with_metadata(FORMAT, &metadata.format);
        if shards.len() == 1 {
            writer.extend_metadata(metadata.entries.clone());
        }
        for tensor in &shard.tensors {
            writer.add_tensor(tensor).map_err(|error| of_file(&path, error))?;
        }
        writer.save(waiting.join(&shard.file)).map_err(|error| of_file(&path, error))?;
    }
    Ok(())
}

/// Writes the index to the folder `waiting`; errors name its final path in `dir`.
fn write_index(
    shards: &[Shard<'_>],
    dir: &Path,
    waiting: &Path,
    total_size: u64,
    metadata: &Metadata,
) -> Result<()> {
    let mut weight_map = Vec::new();
    for shard in shards {
        weight_map.extend(shard.tensors.iter().map(|tensor| (tensor.name(), &*shard.file)));
    }
    let metadata = &metadata.entries;
    let bytes = IndexFile { total_size, metadata, weight_map }.to_bytes();
    let written = fs::File::create(waiting.join(INDEX)).and_then(|mut file| {
        file.write_all(&bytes)?;
        file.sync_all()
    });
    written.map_err(|source| io_error(&dir.join(INDEX), "write", source))
}

/// Takes the steps. If one fails, unplaced files are kept in the folder `waiting`.
fn put_in_place(dir: &Path, waiting: TempDir, steps: &[Step]) -> Result<()> {
    for step in steps {
        if let Err(error) = commit::take(step, dir, waiting.path()) {
            let _kept: PathBuf = waiting.keep();
            return Err(error);
        }
    }
    Ok(())
}

/// The error of a file that cannot be written, with its final path and the option of a save that
/// helps.
fn of_file(path: &Path, error: tensorfile::Error) -> Error {
    let tensor = error.tensor().map(Box::<str>::from);
    let error = match error.into_kind() {
        tensorfile::ErrorKind::Limit(limit) => {
            let of_shard = matches!(limit.what, LimitOn::HeaderBytes | LimitOn::Tensors);
            let remedy = of_shard.then_some(Remedy::Lower("SaveOptions::max_shard_bytes"));
            Error::from(ErrorKind::Limit(Limit { remedy, ..limit }))
        }
        kind => Error::from(ErrorKind::File(kind)),
    };
    tensor.iter().fold(error, |error, name| error.in_tensor(name)).at(path)
}

#[cfg(test)]
mod tests;
