//! The options of opening a model directory.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use tensorfile::{HeaderOptions, Unchanged};

use crate::{Rank, json};

/// Options of opening a model directory. With the defaults, an ambiguous directory is an error.
///
/// With the default limits, the peak memory of opening is at most the sum of 8 times the bytes of
/// all headers and the index, 2 KiB for each shard, and 2 MiB, whatever the files contain. Headers
/// of real models take less than 4 times their bytes. Separate limits apply to each JSON file
/// beside the weights: `max_json_bytes` for the file, and 1 GiB for its parsed values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Which files of the directory hold the weights.
    pub weights: Weights,
    /// What to do with a tensor that is in a shard but not in the index.
    pub unindexed: Unindexed,
    /// What to do if shards are missing.
    pub missing_shards: MissingShards,
    /// Limits and rules for the headers of the shards.
    pub header: HeaderOptions,
    /// How each read of tensors checks that a shard has not changed since its header was read.
    /// [`Unchanged::ByteLen`] is for file systems whose times or inode numbers change without a
    /// write.
    pub unchanged: Unchanged,
    /// The most shards that a model may have; 100,000 by default.
    pub max_shards: usize,
    /// The most bytes that an index may have; 256 MiB by default.
    pub max_index_bytes: u64,
    /// The most bytes that any other JSON file may have; 64 MiB by default.
    pub max_json_bytes: u64,
    /// Number of threads that read headers; one per processor by default.
    pub threads: Option<NonZeroUsize>,
    /// Additional names of tensors, as pairs: the new name, then the stored name. A new name that
    /// equals a stored name is ignored.
    pub aliases: Vec<(String, String)>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            weights: Weights::default(),
            unindexed: Unindexed::default(),
            missing_shards: MissingShards::default(),
            header: HeaderOptions::default(),
            unchanged: Unchanged::default(),
            max_shards: 100_000,
            max_index_bytes: 256 << 20,
            max_json_bytes: json::DEFAULT_MAX_BYTES,
            threads: None,
            aliases: Vec::new(),
        }
    }
}

impl From<Weights> for OpenOptions {
    /// These weights, with the default for every other option.
    fn from(weights: Weights) -> Self {
        Self { weights, ..Self::default() }
    }
}

/// The choice of weight files in a directory.
///
/// The choice applies to the path of a directory. If the path is that of a weight file or an index,
/// a list of files, a rank, a family or a variant is the error
/// [`ErrorKind::UnusableOption`](crate::ErrorKind::UnusableOption), and for the path of an index
/// [`IndexPolicy::Ignore`] is as well.
///
/// ```
/// use modeldir::ModelDir;
/// use modeldir::options::Weights;
///
/// # let path = modeldir_fixtures::model("llama");
/// let files = vec!["model-00001-of-00004.safetensors".into()];
/// let model = ModelDir::open_with(path, &Weights::Files(files).into())?;
/// assert_eq!(model.shards().len(), 1);
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Weights {
    /// The weight files found by name or by an index.
    Named {
        /// The family, for a directory that has several. `None` opens the first of [`Family::ALL`]
        /// that the directory has.
        family: Option<Family>,
        /// The variant, such as `fp16` in `model.fp16.safetensors`: only its files are opened.
        /// `None` opens files without a variant only.
        variant: Option<String>,
        /// Whether an index (`*.safetensors.index.json`) is used.
        index: IndexPolicy,
    },
    /// The files of one rank, in a directory that vLLM (`model-rank-0-part-0.safetensors`),
    /// DeepSeek's converter (`model0-mp8.safetensors`) or TensorRT-LLM (`rank0.safetensors`) has cut
    /// for as many ranks. The files of every rank must be there. No index is read.
    OfRank(Rank),
    /// These files, at least one; paths are absolute or relative to the directory. No index is
    /// read.
    Files(Vec<PathBuf>),
}

impl Default for Weights {
    /// Files of any family and without a variant, by an index if there is one.
    fn default() -> Self {
        Self::Named { family: None, variant: None, index: IndexPolicy::default() }
    }
}

impl Weights {
    /// The weights of a family.
    #[must_use]
    pub fn family(family: Family) -> Self {
        Self::Named { family: Some(family), variant: None, index: IndexPolicy::default() }
    }

    /// The weights of a variant, such as `fp16`.
    pub fn variant(name: impl Into<String>) -> Self {
        let (variant, index) = (Some(name.into()), IndexPolicy::default());
        Self::Named { family: None, variant, index }
    }

    /// The weights found by file names alone; an index is ignored.
    #[must_use]
    pub fn without_index() -> Self {
        Self::Named { family: None, variant: None, index: IndexPolicy::Ignore }
    }

    pub(crate) fn asked_family(&self) -> Option<Family> {
        match self {
            Self::Named { family, .. } => *family,
            Self::OfRank(_) | Self::Files(_) => None,
        }
    }

    pub(crate) fn asked_variant(&self) -> Option<&str> {
        match self {
            Self::Named { variant, .. } => variant.as_deref(),
            Self::OfRank(_) | Self::Files(_) => None,
        }
    }

    pub(crate) fn index_policy(&self) -> IndexPolicy {
        match self {
            Self::Named { index, .. } => *index,
            Self::OfRank(_) | Self::Files(_) => IndexPolicy::Ignore,
        }
    }
}

/// Whether an index beside the weights is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexPolicy {
    /// The index names the shards, and the shard of each tensor.
    #[default]
    Use,
    /// The index is not read. The single file is opened if there is one, else the numbered files.
    Ignore,
}

/// What to do with a tensor that is in a shard but not in the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unindexed {
    /// Include it in the model, and list it in the report.
    #[default]
    Include,
    /// Leave it out, and list it in the report.
    Ignore,
    /// Treat it as a fault of the directory: opening fails.
    Error,
}

/// What to do if shards of a model are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingShards {
    /// Opening fails, and the error names every missing shard.
    #[default]
    Refuse,
    /// The model has the tensors of the shards that exist, and the report names the missing ones.
    ///
    /// A shard is missing if nothing exists at its path. A shard that exists but is damaged,
    /// truncated or unreadable is still an error, and so is a model without any shard. If other
    /// weight files hold tensors of the missing shards, or the single file of the family exists, it
    /// is [`ErrorKind::StaleIndex`](crate::ErrorKind::StaleIndex), because these may be the model.
    /// Pass the path of the index to open the shards that exist.
    Skip,
}

/// A naming convention of weight files: the stem that their names start with.
///
/// Serialised as the stem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// `model.safetensors` and its shards, as written by transformers.
    Model,
    /// `diffusion_pytorch_model.safetensors` and its shards, as written by diffusers.
    Diffusers,
    /// `consolidated.safetensors` and its shards, as published by Mistral.
    Consolidated,
    /// `adapter_model.safetensors`, as written by peft.
    Adapter,
}

impl Family {
    /// All families, in search order.
    pub const ALL: &'static [Self] =
        &[Self::Model, Self::Diffusers, Self::Consolidated, Self::Adapter];

    /// Returns the stem: what the names of the files start with.
    #[must_use]
    pub const fn stem(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Diffusers => "diffusion_pytorch_model",
            Self::Consolidated => "consolidated",
            Self::Adapter => "adapter_model",
        }
    }
}

impl Serialize for Family {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.stem())
    }
}
