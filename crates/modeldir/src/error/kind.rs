//! What can be wrong with a model directory, or with asking it for something.

use std::path::PathBuf;

use tensorfile::{FloatCast, Limit, Lookalike, PathText, Quoted};

use super::fault::{Fault, Faults};
use super::shown::{Found, Lengths, Names};
use crate::json::JsonError;
use crate::launch::LaunchError;
use crate::load::MemoryLimit;
use crate::partition::PartitionError;

/// What was wrong, with what was expected and what was found.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    // -- Files, memory, threads.
    /// A file or folder is not there, or cannot be opened, listed or read; or a weights file is
    /// not what its format asks for.
    #[error(transparent)]
    File(#[from] tensorfile::ErrorKind),
    /// A limit that an option sets was exceeded.
    #[error("{0}")]
    Limit(Limit),
    /// Threads could not be started.
    #[error("cannot start {threads} threads: {message}")]
    Threads {
        /// How many were needed.
        threads: usize,
        /// What the system said.
        message: Box<str>,
    },
    /// A load needs more memory than there is; see
    /// [`LoadOptions::memory_check`](crate::LoadOptions::memory_check).
    #[error(
        "{needed} bytes of memory needed, {available} available: {limit} \
         (LoadOptions::memory_check)"
    )]
    NotEnoughMemory {
        /// Bytes that the load allocates.
        needed: u64,
        /// Bytes that the limit leaves.
        available: u64,
        /// The tightest limit.
        limit: MemoryLimit,
    },

    // -- Rooms with kinds of their own.
    /// The environment does not say which rank this process is.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A JSON file is not what it should be.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// Rules, ranks and tensors do not go together.
    #[error(transparent)]
    Partition(#[from] PartitionError),

    // -- Which files hold the weights.
    /// The directory has no safetensors weights.
    #[error(
        "no safetensors weights in this directory{}{}",
        Found("found, and not read by this library", found),
        Found("folders in it that have some", folders)
    )]
    NoWeights {
        /// Files of other formats, and unfinished downloads.
        found: Vec<PathBuf>,
        /// Folders in the directory that hold safetensors weights.
        folders: Vec<PathBuf>,
    },
    /// The path is a file named like weights in a format that is not read.
    #[error("weights of {format}; only safetensors files are read")]
    OtherFormat {
        /// The name of the format.
        format: &'static str,
    },
    /// An option says nothing about what is at the path.
    #[error("OpenOptions::{option} has no use here: {reason}")]
    UnusableOption {
        /// The field of [`OpenOptions`](crate::OpenOptions).
        option: &'static str,
        /// Why it has no use.
        reason: &'static str,
    },
    /// Nothing says which of several files or sets holds the weights.
    #[error("{reason}: {}", Names(candidates))]
    Ambiguous {
        /// What there is more than one of.
        reason: &'static str,
        /// The files or sets.
        candidates: Vec<PathBuf>,
    },
    /// The directory has no weights of the variant that was asked for.
    #[error("no weights of variant {}; there are: {}", Quoted(variant), Names(found))]
    NoVariant {
        /// The variant that was asked for.
        variant: Box<str>,
        /// The weights that are there.
        found: Vec<PathBuf>,
    },
    /// The directory holds variants only, and none was asked for.
    #[error("no plain weights, only variants (OpenOptions::variant opens one): {}", Names(found))]
    OnlyVariants {
        /// The weights that are there.
        found: Vec<PathBuf>,
    },
    /// The directory has no weights of the family that was asked for.
    #[error("no weights named {stem}; there are: {}", Names(found))]
    NoFamily {
        /// The name that the family's files start with.
        stem: &'static str,
        /// The weights that are there.
        found: Vec<PathBuf>,
    },
    /// Some of the numbered files are missing, and no index says which belong to the model.
    #[error(
        "no index, and {found} of {total} numbered files are there; missing: {}",
        Names(missing)
    )]
    MissingNumbered {
        /// How many files are there.
        found: usize,
        /// How many there should be.
        total: u64,
        /// The files that are missing.
        missing: Vec<PathBuf>,
    },
    /// Shards that the index names are missing, and a single file that may be the model is there.
    #[error(
        "shards that it names are missing ({}), and {} lies beside it; IndexPolicy::Ignore opens \
         that, and the index's own path what it names",
        Names(missing),
        PathText(single)
    )]
    StaleIndex {
        /// The shards that are missing.
        missing: Vec<PathBuf>,
        /// The single file.
        single: PathBuf,
    },
    /// The configuration names weights that leave the directory or are no weight file.
    #[error("transformers_weights: path {} is not allowed: {reason}", Quoted(value))]
    WeightsPath {
        /// The path.
        value: Box<str>,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The directory holds a pipeline of several models, each in a folder of its own.
    #[error("is a pipeline of several models; open one of: {}", Names(components))]
    Pipeline {
        /// The folders of the models.
        components: Vec<PathBuf>,
    },
    /// A file that the call needs is not in the directory.
    #[error("no {what} here")]
    NoFile {
        /// What the file holds.
        what: &'static str,
    },
    /// A file that should be a chat template holds something else.
    #[error("not a chat template: it looks like {looks_like}: {}", Quoted(start))]
    NotATemplate {
        /// What it looks like.
        looks_like: Lookalike,
        /// How it starts.
        start: Box<str>,
    },

    // -- The hub cache.
    /// The path is the folder of a repository in a hub cache, not a model directory.
    #[error(
        "is a repository folder of a hub cache; open one of its snapshots: {}",
        Names(snapshots)
    )]
    HubRepository {
        /// The snapshots of the repository.
        snapshots: Vec<PathBuf>,
    },
    /// The path is the root of a hub cache, not a model directory.
    #[error(
        "is a hub cache; open a snapshot of one of its repositories, or use hub::snapshot: {}",
        Names(repositories)
    )]
    HubCacheRoot {
        /// The repositories of the cache.
        repositories: Vec<PathBuf>,
    },
    /// No environment variable says where the hub cache is, and there is no home directory.
    #[error(
        "no hub cache: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME and HOME are \
         unset"
    )]
    NoHubCache,
    /// A repository name is not of the form `name` or `org/name`, or a revision leaves its folder.
    #[error("{}: not a repository name or revision of the hub", Quoted(name))]
    HubName {
        /// The name or revision.
        name: Box<str>,
    },
    /// The cache does not hold this revision of the repository.
    #[error(
        "revision {} is not in the cache; snapshots there: {}",
        Quoted(revision),
        Names(snapshots)
    )]
    NoSnapshot {
        /// The revision that was asked for.
        revision: Box<str>,
        /// The snapshots that are there.
        snapshots: Vec<PathBuf>,
    },

    // -- The index, and shards against it.
    /// The index has no weight map.
    #[error("not an index: it has no weight_map")]
    NoWeightMap,
    /// The weight map names no tensor, and there is no single file either.
    #[error("its weight_map is empty, and there is no single file beside it")]
    EmptyWeightMap,
    /// The weight map gives a tensor a shard path that leaves the directory or is no weight file.
    #[error("shard path {} is not allowed: {reason}", Quoted(value))]
    ShardPath {
        /// The path.
        value: Box<str>,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The weight map gives a tensor something that is not a string.
    #[error("expected a shard path, found {found}")]
    ShardPathType {
        /// What it gives.
        found: Box<str>,
    },
    /// The weight map gives a tensor two shards.
    #[error("mapped twice in the weight map")]
    MappedTwice,
    /// Shards and index do not make a whole model.
    #[error("{}", Faults(faults, *more))]
    Incomplete {
        /// Every fault of a shard, and the first thousand faults of tensors.
        faults: Vec<Fault>,
        /// How many faults of tensors are not listed.
        more: usize,
    },

    // -- Asking for tensors.
    /// The model has no tensor of this name.
    #[error("not in this model{hint}")]
    TensorNotFound {
        /// Names near it, or why there is none.
        hint: Box<str>,
    },
    /// The model has a tensor of this name, and the plan leaves it out.
    #[error("not in this plan")]
    NotPlanned,
    /// A part that is scattered over its file cannot be mapped.
    #[error(
        "the planned part lies in {runs} runs, which cannot be mapped as one (load gathers them)"
    )]
    ScatteredMap {
        /// Runs of bytes in the file.
        runs: usize,
    },
    /// A mapped tensor cannot be converted.
    #[error(
        "planned as {}, and mapped tensors stay {} (load converts them)",
        cast.target().dtype(),
        cast.source().dtype()
    )]
    CastMap {
        /// The conversion that the plan asks for.
        cast: FloatCast,
    },
    /// [`LoadOptions::cancel`](crate::LoadOptions::cancel) ended the load.
    #[error("loading was cancelled")]
    Cancelled,
    /// The caller's memory for a tensor is not one place as long as the tensor.
    #[error("expected one place of {needed} bytes to load it into, found {}", Lengths(found))]
    Destination {
        /// Bytes of the tensor.
        needed: usize,
        /// Bytes of each place that was given.
        found: Box<[usize]>,
    },
    /// A tensor does not fit into the memory that streaming may use.
    #[error(
        "{needed} bytes are more than the {max} that may be in flight \
         (StreamOptions::max_bytes_in_flight)"
    )]
    TensorTooLarge {
        /// Bytes that the tensor needs.
        needed: u64,
        /// Bytes that may be in flight.
        max: u64,
    },

    // -- Saving.
    /// The directory holds weights already.
    #[error(
        "weights are there already (Existing::Replace replaces those of this model): {}",
        Names(found)
    )]
    WeightsExist {
        /// The weights that are there.
        found: Vec<PathBuf>,
    },
    /// A metadata key or an alias cannot be recorded.
    #[error("metadata key {}: {reason}", Quoted(key))]
    MetadataKey {
        /// The key.
        key: Box<str>,
        /// What is wrong with it.
        reason: &'static str,
    },
}
