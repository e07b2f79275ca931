//! `ModelDir`: an opened model directory.

mod plans;
mod report;

use std::path::Path;
use std::sync::Arc;

use tensorfile::PathText;
use tracing::debug_span;
use tracing::field::Empty;

use crate::beside::adapter::AdapterConfig;
use crate::beside::config::ModelConfig;
use crate::beside::generation::GenerationConfig;
use crate::beside::quantization::Quantization;
use crate::beside::tokenizer::TokenizerFiles;
use crate::open_options::OpenOptions;
use crate::report::Report;
use crate::resolve;
use crate::weights::index::{Index, IndexedTensor, Shard};
use crate::{Error, ErrorKind, Result};

use self::report::report;

/// An opened model directory: its tensors by name, and the files beside the weights.
///
/// It keeps no file open. Cloning is cheap.
///
/// ```
/// use modeldir::ModelDir;
///
/// # let path = modeldir_fixtures::model("llama");
/// let model = ModelDir::open(path)?;
/// println!("{} tensors, {} bytes, {} shards", model.len(), model.byte_len(), model.shards().len());
///
/// let head = model.info("lm_head.weight")?;
/// assert_eq!(head.shape(), [320, 64]);
/// assert!(model.report().is_clean());
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ModelDir {
    index: Arc<Index>,
    beside: Arc<Beside>,
}

/// The report, and what the files beside the weights say.
#[derive(Debug)]
struct Beside {
    report: Report,
    config: Result<ModelConfig>,
    quantization: Result<Option<Quantization>>,
    tokenizer: TokenizerFiles,
    max_json_bytes: u64,
}

impl ModelDir {
    /// Opens a model by the path of its directory, of one weight file, or of an index.
    ///
    /// Blocks while JSON files and, in parallel, the headers of all shards are read. Reads no byte
    /// of a tensor. A broken configuration, quantization or tokenizer file is not an error here;
    /// the method that returns its contents fails instead.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Incomplete`] lists every missing, short or damaged shard, and every tensor that
    /// is not in the shard named by the index. Other kinds say why no weights were found.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &OpenOptions::default())
    }

    /// Opens as [`open`](Self::open) does, with options.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        let shown = PathText(path);
        let span =
            debug_span!("open", path = %shown, files = Empty, tensors = Empty, bytes = Empty);
        let _entered = span.enter();
        // Classified once, so that configuration and weights come from the same folder.
        let input = resolve::classify(path)?;
        let config = ModelConfig::in_directory(input.folder(path), options.max_json_bytes);
        let resolved = resolve::resolve(path, input, options, config.as_ref().ok())?;
        let root = &resolved.root;
        let map = resolved.index.as_ref().map(|index| &index.map);
        let read = config.as_ref().ok();
        let built = Index::build(root, &resolved.shards, map, read, options);
        let (index, findings) = built.map_err(|error| error.at(root))?;
        let quantization = quantization(root, &config, options.max_json_bytes);

        let names = &resolved.file_names;
        let tokenizer = TokenizerFiles::with_max_bytes(root.clone(), names, options.max_json_bytes);
        let report = report(&index, resolved, findings, config.as_ref().ok());
        span.record("files", index.shards().len());
        span.record("tensors", index.len());
        span.record("bytes", index.byte_len());
        let max_json_bytes = options.max_json_bytes;
        let beside = Beside { report, config, quantization, tokenizer, max_json_bytes };
        Ok(Self { index: Arc::new(index), beside: Arc::new(beside) })
    }

    /// The directory to which shard paths are relative.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.index.root
    }

    /// Number of tensors; aliases are not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether the model has no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.len() == 0
    }

    /// Bytes of all tensors.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.index.byte_len()
    }

    /// The tensors, in name order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = IndexedTensor<'_>> {
        self.index.iter()
    }

    /// The stored names, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tensors().map(IndexedTensor::name)
    }

    /// Whether the model has a tensor of this name or alias.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.index.find(self.index.aliases.target(name)).is_some()
    }

    /// Dtype, shape and file range of a tensor, from the headers; for an alias, of its target.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TensorNotFound`] if there is none.
    pub fn info(&self, name: &str) -> Result<IndexedTensor<'_>> {
        self.index.resolve(name)
    }

    /// The weight files, each at its [`Shard::position`].
    #[must_use]
    pub fn shards(&self) -> &[Shard] {
        self.index.shards()
    }

    /// What opening ignored or found odd.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.beside.report
    }

    /// The configuration: `config.json`, or `params.json` where there is none.
    ///
    /// # Errors
    ///
    /// The error of reading the file when the directory was opened; [`ErrorKind::NoFile`] if there
    /// is none.
    pub fn config(&self) -> Result<&ModelConfig> {
        self.beside.config.as_ref().map_err(Error::clone)
    }

    /// How the weights are quantized, or `None` if no file of the directory says that they are.
    ///
    /// # Errors
    ///
    /// If one of the files that can describe a quantization was broken when the directory was
    /// opened.
    pub fn quantization(&self) -> Result<Option<&Quantization>> {
        self.beside.quantization.as_ref().map(Option::as_ref).map_err(Error::clone)
    }

    /// Reads `generation_config.json`, or returns `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the file is broken.
    pub fn generation_config(&self) -> Result<Option<GenerationConfig>> {
        GenerationConfig::in_directory(self.path(), self.beside.max_json_bytes)
    }

    /// Reads `adapter_config.json`, or returns `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the file is broken.
    pub fn adapter_config(&self) -> Result<Option<AdapterConfig>> {
        AdapterConfig::in_directory(self.path(), self.beside.max_json_bytes)
    }

    /// The files of tokenizer, chat templates and processors. Does no I/O.
    #[must_use]
    pub fn tokenizer(&self) -> &TokenizerFiles {
        &self.beside.tokenizer
    }
}

/// How the weights are quantized, by the configuration or a file beside it. Fails with the error of
/// the configuration if that is broken.
fn quantization(
    root: &Path,
    config: &Result<ModelConfig>,
    max_json_bytes: u64,
) -> Result<Option<Quantization>> {
    let config = match config {
        Ok(config) => Some(config),
        Err(error) if matches!(error.kind(), ErrorKind::NoFile { .. }) => None,
        Err(error) => return Err(error.clone()),
    };
    Quantization::in_directory(root, config, max_json_bytes)
}
