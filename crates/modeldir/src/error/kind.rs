//! The kinds of error of this crate.

use std::path::PathBuf;

use tensorfile::{FloatCast, Limit, Lookalike, Quoted};

use super::fault::{Fault, Faults};
use super::given::Given;
use super::shown::{Formats, Found, Lengths, Names};
use crate::json::JsonError;
use crate::launch::LaunchError;
use crate::load::MemoryLimit;
use crate::partition::PartitionError;
use crate::rank::{Rank, RankError};

/// What was wrong, with expected and found values.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    // -- Files, memory, threads.
    /// A file or folder does not exist, or cannot be opened, listed or read; or a weight file is
    /// malformed.
    #[error(transparent)]
    File(#[from] tensorfile::ErrorKind),
    /// A limit was exceeded.
    #[error("{0}")]
    Limit(Limit),
    /// Threads could not be started.
    #[error("cannot start {threads} threads: {message}")]
    Threads {
        /// The number of threads needed.
        threads: usize,
        /// The system's message.
        message: Box<str>,
    },
    /// A load needs more memory than is available; see
    /// [`LoadOptions::memory_check`](crate::LoadOptions::memory_check).
    #[error(
        "{needed} bytes of memory needed, {available} available: {limit} \
         (MemoryCheck::Skip loads all the same)"
    )]
    NotEnoughMemory {
        /// Bytes that the load would allocate.
        needed: u64,
        /// Bytes available under the limit.
        available: u64,
        /// The tightest limit.
        limit: MemoryLimit,
    },

    // -- Modules with kinds of their own.
    /// The environment does not give the rank of this process.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A rank is not less than the number of ranks, or a text is not a rank.
    #[error(transparent)]
    Rank(#[from] RankError),
    /// A JSON file is not valid.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// Rules, ranks and tensors do not fit together.
    #[error(transparent)]
    Partition(#[from] PartitionError),

    // -- Which files hold the weights.
    /// The directory has no safetensors weights.
    #[error(
        "no safetensors weights in this directory{}{}",
        Formats("unsupported or unfinished", found),
        Found("subfolders with weights", folders)
    )]
    NoWeights {
        /// Weights of other formats, and partial downloads.
        found: Vec<PathBuf>,
        /// Subfolders with safetensors weights.
        folders: Vec<PathBuf>,
    },
    /// The path is a file named like weights of an unsupported format.
    #[error("weights of {format}; only safetensors files are read")]
    OtherFormat {
        /// The name of the format.
        format: &'static str,
    },
    /// Nothing exists at the path, which looks like an address, a hub name or an unexpanded path.
    #[error("{0}")]
    NotLocal(Given),
    /// The path is that of a file beside the weights, such as `config.json`.
    #[error("is a configuration or a tokenizer, not an index; open the folder that it is in")]
    BesideWeights,
    /// An option does not apply to the file or directory that was opened.
    #[error("{option} does not apply here: {reason}")]
    UnusableOption {
        /// The part of [`OpenOptions::weights`](crate::OpenOptions::weights), such as
        /// `Weights::Files`.
        option: &'static str,
        /// Why it does not apply.
        reason: &'static str,
    },
    /// Several files or sets could be the weights.
    #[error("{reason}: {}", Names(candidates))]
    Ambiguous {
        /// What is ambiguous.
        reason: &'static str,
        /// The files or sets.
        candidates: Vec<PathBuf>,
    },
    /// The directory holds weights that are cut for ranks already.
    #[error(
        "files of {ranks} ranks, as {writer} writes them ({option} opens those of one rank): {}",
        Names(files)
    )]
    RankFiles {
        /// The program that writes files of these names.
        writer: &'static str,
        /// The number of ranks whose files are there.
        ranks: usize,
        /// The option that opens them: `Weights::OfRank`, or `Weights::Files` for parts that are no
        /// model without those of other ranks.
        option: &'static str,
        /// The files.
        files: Vec<PathBuf>,
    },
    /// The directory has no complete set of files for the requested rank and number of ranks.
    #[error("no whole set of files of rank {rank} of as many ranks; there are: {}", Names(found))]
    NoRankFiles {
        /// The requested rank.
        rank: Rank,
        /// The files of ranks present.
        found: Vec<PathBuf>,
    },
    /// The directory has no weights of the requested variant.
    #[error("no weights of variant {}; there are: {}", Quoted(variant), Names(found))]
    NoVariant {
        /// The requested variant.
        variant: Box<str>,
        /// The weights present.
        found: Vec<PathBuf>,
    },
    /// The directory holds variants only, and none was requested.
    #[error("no plain weights, only variants (Weights::variant opens one): {}", Names(found))]
    OnlyVariants {
        /// The weights present.
        found: Vec<PathBuf>,
    },
    /// The directory has no weights of the requested family.
    #[error("no weights named {stem}; there are: {}", Names(found))]
    NoFamily {
        /// The start of the family's file names.
        stem: &'static str,
        /// The weights present.
        found: Vec<PathBuf>,
    },
    /// Some of the numbered files are missing, and there is no index to tell whether they belong to
    /// the model.
    #[error("no index, and {found} of {total} numbered files exist; missing: {}", Names(missing))]
    MissingNumbered {
        /// The number of files present.
        found: usize,
        /// The number of files expected.
        total: u64,
        /// The missing files.
        missing: Vec<PathBuf>,
    },
    /// Shards named by the index are missing, and other weight files exist that may be the model:
    /// the index belongs to another model, or the files were renamed.
    #[error(
        "names missing shards ({}), and {} {} there with {held} of their {lost} tensors; {option} \
         opens what is there, and the path of the index opens the index",
        Names(missing),
        Names(found),
        if found.len() == 1 { "is" } else { "are" }
    )]
    StaleIndex {
        /// The missing shards.
        missing: Vec<PathBuf>,
        /// Weight files that the index does not name, and that hold tensors of the missing shards or
        /// are the single file of the family.
        found: Vec<PathBuf>,
        /// How many tensors of the missing shards they hold.
        held: usize,
        /// The number of tensors that the index places in the missing shards.
        lost: usize,
        /// The option that opens them: `IndexPolicy::Ignore`, or `Weights::Files` if names alone do
        /// not lead to them.
        option: &'static str,
    },
    /// `transformers_weights` of the configuration leads out of the directory or names no weight
    /// file.
    #[error("transformers_weights: path {} is not allowed: {reason}", Quoted(value))]
    WeightsPath {
        /// The path.
        value: Box<str>,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The directory is a pipeline of several models, each in a subfolder.
    #[error("is a pipeline of several models; open one of: {}", Names(components))]
    Pipeline {
        /// The folders of the models.
        components: Vec<PathBuf>,
    },
    /// A required file is not in the directory.
    #[error("no {what} here")]
    NoFile {
        /// The name of the file.
        what: &'static str,
    },
    /// A chat template file does not contain a template.
    #[error("not a chat template: it looks like {looks_like}: {}", Quoted(start))]
    NotATemplate {
        /// What it looks like.
        looks_like: Lookalike,
        /// The start of the file.
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
    /// No environment variable sets the hub cache, and there is no home directory.
    #[error(
        "no hub cache: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME and HOME are \
         unset"
    )]
    NoHubCache,
    /// A repository is not of the form `name` or `org/name`, or a revision leads out of its folder.
    #[error(
        "{}: not a repository of the hub, such as org/name, or a revision, such as main",
        Quoted(name)
    )]
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
        /// The requested revision.
        revision: Box<str>,
        /// The snapshots present.
        snapshots: Vec<PathBuf>,
    },

    // -- The index, and the shards compared with it.
    /// The index has no weight map.
    #[error("not an index: it has no weight_map")]
    NoWeightMap,
    /// The weight map is empty, and there is no single file either.
    #[error("its weight_map is empty, and no single file exists")]
    EmptyWeightMap,
    /// The weight map gives a shard path that leads out of the directory or names no weight file.
    #[error("shard path {} is not allowed: {reason}", Quoted(value))]
    ShardPath {
        /// The path.
        value: Box<str>,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The weight map gives a value that is not a string.
    #[error("expected a shard path, found {found}")]
    ShardPathType {
        /// The kind of value found.
        found: Box<str>,
    },
    /// The weight map has the same tensor twice.
    #[error("mapped twice in the weight map")]
    MappedTwice,
    /// Shards and index do not make a complete model.
    #[error("{}", Faults(faults, *more))]
    Incomplete {
        /// All faults of shards, and the first thousand faults of tensors.
        faults: Vec<Fault>,
        /// The number of tensor faults not listed.
        more: usize,
    },

    // -- Access to tensors.
    /// The model has no tensor of this name.
    #[error("not in this model{hint}")]
    TensorNotFound {
        /// Similar names, or why the tensor is absent.
        hint: Box<str>,
    },
    /// The tensor exists in the model, but not in the plan.
    #[error("not in this plan")]
    NotPlanned,
    /// A planned part is not contiguous in its file, so it cannot be mapped.
    #[error(
        "the planned part lies in {runs} runs, which cannot be mapped as one (load gathers them)"
    )]
    ScatteredMap {
        /// The number of runs of bytes in the file.
        runs: usize,
    },
    /// A tensor with a planned conversion cannot be mapped.
    #[error(
        "planned as {}, but mapped tensors stay {} (load converts them)",
        cast.target().dtype(),
        cast.source().dtype()
    )]
    CastMap {
        /// The planned conversion.
        cast: FloatCast,
    },
    /// The load was cancelled through [`LoadOptions::cancel`](crate::LoadOptions::cancel).
    #[error("loading was cancelled")]
    Cancelled,
    /// The caller did not give exactly one place of the right length for a tensor.
    #[error("expected one place of {needed} bytes to load it into, found {}", Lengths(found))]
    Destination {
        /// The length of the tensor in bytes.
        needed: usize,
        /// The length of each given place in bytes.
        found: Box<[usize]>,
    },
    /// A tensor needs more memory than a stream may use.
    #[error(
        "{needed} bytes are more than the {max} that may be in flight \
         (LoadOptions::max_bytes_in_flight raises it)"
    )]
    TensorTooLarge {
        /// Bytes that the tensor needs.
        needed: u64,
        /// The maximum bytes in flight.
        max: u64,
    },

    // -- Saving.
    /// The directory already holds weights.
    #[error(
        "the directory already has weights (Existing::Replace replaces those of this model): {}",
        Names(found)
    )]
    WeightsExist {
        /// The weights present.
        found: Vec<PathBuf>,
    },
    /// The directory already holds configuration or tokenizer files, and
    /// [`Beside::Copy`](crate::options::Beside::Copy) writes such files.
    #[error(
        "the directory already has configuration or tokenizer files (Existing::Replace replaces them): {}",
        Names(found)
    )]
    FilesExist {
        /// The files present.
        found: Vec<PathBuf>,
    },
    /// The metadata says whose part of a model the directory holds, in a form that no save writes.
    #[error("metadata key {}: {message}", Quoted(key))]
    PartRecord {
        /// The key.
        key: &'static str,
        /// What is wrong with its value.
        message: Box<str>,
    },
    /// A metadata key or an alias cannot be stored.
    #[error("metadata key {}: {reason}", Quoted(key))]
    MetadataKey {
        /// The key.
        key: Box<str>,
        /// What is wrong with it.
        reason: &'static str,
    },
}
