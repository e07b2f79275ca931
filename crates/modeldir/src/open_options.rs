//! How a model directory is to be opened.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use tensorfile::HeaderOptions;

use crate::json;

/// How to open a model directory. The defaults refuse whatever has two readings.
///
/// With the limits as they are by default, opening takes at its peak at most 8 times the bytes of
/// all headers and the index together, 2 KiB for each shard and 2 MiB, whatever they hold; the headers
/// of models take less than 4 times. JSON files beside the weights are bounded each by itself: by
/// `max_json_bytes`, and by 1 GiB for the values that they make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Which files of the directory hold the weights.
    pub weights: Weights,
    /// What becomes of a tensor that is in a shard and not in the index.
    pub unindexed: Unindexed,
    /// What becomes of a model some of whose shards are missing.
    pub missing_shards: MissingShards,
    /// How the headers of the shards are judged.
    pub header: HeaderOptions,
    /// Shards a model may have; 100,000 by default.
    pub max_shards: usize,
    /// Bytes an index may have; 256 MiB by default.
    pub max_index_bytes: u64,
    /// Bytes any other JSON file may have; 64 MiB by default.
    pub max_json_bytes: u64,
    /// Threads that read headers; without a number, one per processor.
    pub threads: Option<NonZeroUsize>,
    /// Names to give to tensors: pairs of the further name and the name that is stored. A pair
    /// never hides a tensor that is stored.
    pub aliases: Vec<(String, String)>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            weights: Weights::default(),
            unindexed: Unindexed::default(),
            missing_shards: MissingShards::default(),
            header: HeaderOptions::default(),
            max_shards: 100_000,
            max_index_bytes: 256 << 20,
            max_json_bytes: json::DEFAULT_MAX_BYTES,
            threads: None,
            aliases: Vec::new(),
        }
    }
}

impl From<Weights> for OpenOptions {
    /// The defaults for all else.
    fn from(weights: Weights) -> Self {
        Self { weights, ..Self::default() }
    }
}

/// Which files of a directory hold the weights to open.
///
/// The path of one weight file, or of an index, opens that in place of a directory. What would
/// choose among its files then has no use, and is refused with
/// [`ErrorKind::UnusableOption`](crate::ErrorKind::UnusableOption): a list of files, a family or a
/// variant with either path, and [`IndexPolicy::Ignore`] with that of an index.
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
    /// The files that their names, or an index, show to be the weights.
    Named {
        /// The set of weights, where a directory may hold several. Without one the first of
        /// [`Family::ALL`] that is there is opened.
        family: Option<Family>,
        /// The variant, as `fp16` in `model.fp16.safetensors`. Without one the plain files are
        /// opened, never those of a variant; with one, only its files are.
        variant: Option<String>,
        /// What an index (`*.safetensors.index.json`) decides.
        index: IndexPolicy,
    },
    /// These files, at least one, relative to the directory or absolute. No index is read.
    Files(Vec<PathBuf>),
}

impl Default for Weights {
    /// The plain files, by whatever family is there, and by an index if there is one.
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

    /// The weights of a variant, as `fp16`.
    pub fn variant(name: impl Into<String>) -> Self {
        let (variant, index) = (Some(name.into()), IndexPolicy::default());
        Self::Named { family: None, variant, index }
    }

    /// The weights by the names of files alone.
    #[must_use]
    pub fn without_index() -> Self {
        Self::Named { family: None, variant: None, index: IndexPolicy::Ignore }
    }

    pub(crate) fn asked_family(&self) -> Option<Family> {
        match self {
            Self::Named { family, .. } => *family,
            Self::Files(_) => None,
        }
    }

    pub(crate) fn asked_variant(&self) -> Option<&str> {
        match self {
            Self::Named { variant, .. } => variant.as_deref(),
            Self::Files(_) => None,
        }
    }

    pub(crate) fn index_policy(&self) -> IndexPolicy {
        match self {
            Self::Named { index, .. } => *index,
            Self::Files(_) => IndexPolicy::Ignore,
        }
    }
}

/// What an index beside the weights decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexPolicy {
    /// The index names the shards, and the shard of each tensor.
    #[default]
    Use,
    /// The index is not read: the single file is opened if there is one, else the numbered files.
    Ignore,
}

/// What becomes of a tensor that a shard holds and the index does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unindexed {
    /// It belongs to the model, and the report counts it.
    #[default]
    Include,
    /// It is left out, and the report counts it.
    Ignore,
    /// It is a fault of the directory.
    Error,
}

/// What becomes of a model some of whose shards are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingShards {
    /// It is refused, and every missing shard is named.
    #[default]
    Refuse,
    /// The tensors of the shards that are there are opened, and the report names the others.
    ///
    /// Missing is a shard whose path leads to nothing. One that is there and damaged, cut short or
    /// not readable is refused all the same, and so is a model of which no shard is there. Where a
    /// single file lies beside the index, nothing says that the model is not that
    /// ([`ErrorKind::StaleIndex`](crate::ErrorKind::StaleIndex)): open the index by its own path.
    Skip,
}

/// A set of weights by the name that its files start with.
///
/// It is serialised as the name.
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
    /// All families, in the order in which they are looked for.
    pub const ALL: [Self; 4] = [Self::Model, Self::Diffusers, Self::Consolidated, Self::Adapter];

    /// Returns the name that the family's files start with.
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
