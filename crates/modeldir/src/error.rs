//! What can be wrong with a model directory, or with asking it for something.

mod fault;
mod shown;

use std::path::{Path, PathBuf};

use tensorfile::{FloatCast, Lookalike, PathText, Quoted};

pub use fault::{Fault, MissingCause};

use self::fault::Faults;
use self::shown::{Found, Lengths, Names, RaisedBy};
use crate::launch::Launcher;
use crate::load::MemoryLimit;
use crate::partition::Misfit;
use crate::partition::words::{AndLayers, Divisors, Families, OfTensor, Shown};

/// The result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What was wrong: the directory or file, the tensor if there is one, what was expected and found.
///
/// Messages start with the path. A directory with several faults is one error that lists them all.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "variants are documented, and their fields are what these name")]
pub enum Error {
    // -- Paths.
    /// A file or folder is not there, or cannot be opened, listed or read.
    #[error(transparent)]
    File(#[from] tensorfile::Error),

    /// The threads that were to read a directory, or to parse a file, could not be started.
    #[error("{}: cannot start {threads} threads: {message}", PathText(path))]
    Threads { path: PathBuf, threads: usize, message: Box<str> },

    // -- The rank of this process.
    /// A launcher has set one of the two variables that make a rank.
    #[error("{variable}={} is set and {unset} is not; {launcher} sets both", Quoted(value))]
    HalfSetRank { variable: &'static str, value: Box<str>, unset: &'static str, launcher: Launcher },
    /// A variable of a launcher does not hold a number.
    #[error("{variable}={}: not a whole number", Quoted(value))]
    RankNotANumber { variable: &'static str, value: Box<str> },
    /// Rank and size do not go together.
    #[error("{}={}, {}={}: {reason}", names[0], numbers[0], names[1], numbers[1])]
    ImpossibleRank { names: [&'static str; 2], numbers: [usize; 2], reason: &'static str },

    // -- Which files hold the weights.
    /// The directory has no safetensors weights. `found` are files of other formats and of downloads
    /// that are not done, `folders` the folders in it that hold safetensors weights.
    #[error(
        "{}: no safetensors weights in this directory{}{}",
        PathText(path),
        Found("found, and not read by this library", found),
        Found("folders in it that have some", folders)
    )]
    NoWeights { path: PathBuf, found: Vec<PathBuf>, folders: Vec<PathBuf> },
    /// The path is a file whose name is that of weights in a format that is not read.
    #[error("{}: weights of {format}; only safetensors files are read", PathText(path))]
    OtherFormat { path: PathBuf, format: &'static str },
    /// An option was given that says nothing about what is at the path.
    #[error("{}: OpenOptions::{option} has no use here: {reason}", PathText(path))]
    UnusableOption { path: PathBuf, option: &'static str, reason: &'static str },
    /// Nothing says which of several files or sets holds the weights.
    #[error("{}: {reason}: {}", PathText(path), Names(candidates))]
    Ambiguous { path: PathBuf, reason: &'static str, candidates: Vec<PathBuf> },
    /// The variant that was asked for is not there.
    #[error(
        "{}: no weights of variant {}; there are: {}",
        PathText(path),
        Quoted(variant),
        Names(found)
    )]
    NoVariant { path: PathBuf, variant: Box<str>, found: Vec<PathBuf> },
    /// The directory holds variants only, and none was asked for.
    #[error(
        "{}: no plain weights, only variants (OpenOptions::variant opens one): {}",
        PathText(path),
        Names(found)
    )]
    OnlyVariants { path: PathBuf, found: Vec<PathBuf> },
    /// The set of weights that was asked for is not there.
    #[error("{}: no weights named {stem}; there are: {}", PathText(path), Names(found))]
    NoFamily { path: PathBuf, stem: &'static str, found: Vec<PathBuf> },
    /// Files that number themselves are not all there, and no index says which belong to the model.
    #[error(
        "{}: no index, and {found} of {total} numbered files are there; missing: {}",
        PathText(path),
        Names(missing)
    )]
    MissingNumbered { path: PathBuf, found: usize, total: u64, missing: Vec<PathBuf> },
    /// Shards that the index names are missing, and a single file that may be the model is there.
    #[error(
        "{}: shards that it names are missing ({}), and {} lies beside it; IndexPolicy::Ignore opens that, and the index's own path what it names",
        PathText(path),
        Names(missing),
        PathText(single)
    )]
    StaleIndex { path: PathBuf, missing: Vec<PathBuf>, single: PathBuf },
    /// The configuration names weights that leave the directory or are no weight file.
    #[error(
        "{}: transformers_weights: path {} is not allowed: {reason}",
        PathText(path),
        Quoted(value)
    )]
    WeightsPath { path: PathBuf, value: Box<str>, reason: &'static str },
    /// The path is a folder of the hub cache that holds snapshots, not a model directory.
    #[error(
        "{}: is a repository folder of a hub cache; open one of its snapshots: {}",
        PathText(path),
        Names(snapshots)
    )]
    HubRepository { path: PathBuf, snapshots: Vec<PathBuf> },
    /// The path is the root of a hub cache, not a model directory.
    #[error(
        "{}: is a hub cache; open a snapshot of one of its repositories, or use hub::snapshot: {}",
        PathText(path),
        Names(repositories)
    )]
    HubCacheRoot { path: PathBuf, repositories: Vec<PathBuf> },
    /// The directory holds a pipeline of several models, each in a folder of its own.
    #[error(
        "{}: is a pipeline of several models; open one of: {}",
        PathText(path),
        Names(components)
    )]
    Pipeline { path: PathBuf, components: Vec<PathBuf> },

    /// The model has more shards than may be.
    #[error(
        "{}: {found} shards, the limit is {max} (OpenOptions::max_shards raises it)",
        PathText(path)
    )]
    TooManyShards { path: PathBuf, found: usize, max: usize },

    // -- The hub cache.
    /// No environment variable says where the hub cache is, and there is no home directory.
    #[error(
        "no hub cache: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME and HOME are unset"
    )]
    NoHubCache,
    /// A repository name is not of the form `name` or `org/name`, or a revision leaves its folder.
    #[error("{}: not a repository name or revision of the hub", Quoted(name))]
    HubName { name: Box<str> },
    /// The cache does not hold this revision of the repository.
    #[error(
        "{}: revision {} is not in the cache; snapshots there: {}",
        PathText(path),
        Quoted(revision),
        Names(snapshots)
    )]
    NoSnapshot { path: PathBuf, revision: Box<str>, snapshots: Vec<PathBuf> },

    // -- JSON files.
    /// A file is not the JSON that it should be.
    #[error("{}: line {line} column {column}: {message}", PathText(path))]
    Json { path: PathBuf, line: usize, column: usize, message: Box<str> },
    /// A file that should be JSON holds something else: a web page, an error text.
    #[error(
        "{}: line {line} column {column}: not JSON: it looks like {looks_like}: {}",
        PathText(path),
        Quoted(start)
    )]
    NotJson { path: PathBuf, line: usize, column: usize, looks_like: Lookalike, start: Box<str> },
    /// A file that should be a chat template holds something else.
    #[error(
        "{}: not a chat template: it looks like {looks_like}: {}",
        PathText(path),
        Quoted(start)
    )]
    NotATemplate { path: PathBuf, looks_like: Lookalike, start: Box<str> },
    /// A field that the call needs has the wrong type.
    #[error("{}: {field}: expected {expected}, found {found}", PathText(path))]
    FieldType { path: PathBuf, field: &'static str, expected: &'static str, found: Box<str> },
    /// A JSON file or a chat template is not UTF-8 text.
    #[error("{}: line {line} column {column}: not UTF-8", PathText(path))]
    NotUtf8 { path: PathBuf, line: usize, column: usize },
    /// A JSON file is longer than the cap, which this field of `OpenOptions` raises, if one does.
    #[error(
        "{}: {byte_len} bytes, the limit is {max}{}",
        PathText(path),
        RaisedBy(*option)
    )]
    JsonTooLarge { path: PathBuf, byte_len: u64, max: u64, option: Option<&'static str> },
    /// The values of a JSON file would take more memory than a file of its kind can need.
    #[error(
        "{}: its values need some {needed} bytes of memory, the limit is {max}",
        PathText(path)
    )]
    JsonTooDense { path: PathBuf, needed: u64, max: u64 },
    /// A file that the call needs is not in the directory.
    #[error("{}: no {what} here", PathText(path))]
    NoFile { path: PathBuf, what: &'static str },
    /// The weight map of the index names no tensor, and there is no single file either.
    #[error("{}: its weight_map is empty, and there is no single file beside it", PathText(path))]
    EmptyWeightMap { path: PathBuf },
    /// The index has no weight map.
    #[error("{}: not an index: it has no weight_map", PathText(path))]
    NoWeightMap { path: PathBuf },
    /// The weight map gives a tensor a shard path that leaves the directory or is no weight file.
    #[error(
        "{}: tensor {}: shard path {} is not allowed: {reason}",
        PathText(path),
        Quoted(tensor),
        Quoted(value)
    )]
    ShardPath { path: PathBuf, tensor: Box<str>, value: Box<str>, reason: &'static str },
    /// The weight map gives a tensor something that is not a string.
    #[error("{}: tensor {}: expected a shard path, found {found}", PathText(path), Quoted(tensor))]
    ShardPathType { path: PathBuf, tensor: Box<str>, found: Box<str> },
    /// The weight map gives a tensor two shards.
    #[error("{}: tensor {}: mapped twice in the weight map", PathText(path), Quoted(tensor))]
    MappedTwice { path: PathBuf, tensor: Box<str> },

    // -- Shards against index.
    /// Shards and index do not make a whole model. Every fault of a shard is listed, and of those of
    /// tensors the first thousand; `more` counts the others.
    #[error("{}: {}", PathText(path), Faults(faults, *more))]
    Incomplete { path: PathBuf, faults: Vec<Fault>, more: usize },

    // -- Saving.
    /// The directory holds weights, and they are not to be replaced.
    #[error(
        "{}: weights are there already (Existing::Replace replaces those of this model): {}",
        PathText(path),
        Names(found)
    )]
    WeightsExist { path: PathBuf, found: Vec<PathBuf> },
    /// A metadata key or an alias cannot be recorded.
    #[error("{}: metadata key {}: {reason}", PathText(path), Quoted(key))]
    MetadataKey { path: PathBuf, key: Box<str>, reason: &'static str },
    /// The header of a file to be written is longer than readers accept.
    #[error(
        "{}: header of {header_len} bytes to be written, the limit is {max} (a smaller SaveOptions::max_shard_size makes it shorter)",
        PathText(path)
    )]
    HeaderTooLarge { path: PathBuf, header_len: u64, max: u64 },
    /// A file to be written would have more tensors than readers accept.
    #[error(
        "{}: {found} tensors to be written, the limit is {max} (a smaller SaveOptions::max_shard_size makes them fewer)",
        PathText(path)
    )]
    TooManyTensors { path: PathBuf, found: usize, max: usize },
    /// The name of a tensor to be written is longer than readers accept.
    #[error(
        "{}: tensor {}: name of {byte_len} bytes to be written, the limit is {max} (only tensorfile::Writer writes what readers refuse by default)",
        PathText(path),
        Quoted(tensor)
    )]
    NameTooLong { path: PathBuf, tensor: Box<str>, byte_len: usize, max: usize },
    /// A tensor to be written has more dimensions than readers accept.
    #[error(
        "{}: tensor {}: {found} dimensions to be written, the limit is {max} (only tensorfile::Writer writes what readers refuse by default)",
        PathText(path),
        Quoted(tensor)
    )]
    TooManyDimensions { path: PathBuf, tensor: Box<str>, found: usize, max: usize },

    // -- Asking for tensors.
    /// The model has no tensor of this name.
    #[error("{}: no tensor {}{hint}", PathText(path), Quoted(tensor))]
    TensorNotFound { path: PathBuf, tensor: Box<str>, hint: Box<str> },
    /// The model has a tensor of this name, and the plan has left it out.
    #[error("{}: tensor {} is not in this plan", PathText(path), Quoted(tensor))]
    NotPlanned { path: PathBuf, tensor: Box<str> },
    /// A mapped tensor is a part of its file as it lies there, and this one is scattered.
    #[error(
        "{}: tensor {}: the planned part lies in {runs} runs, which cannot be mapped as one (load gathers them)",
        PathText(path),
        Quoted(tensor)
    )]
    ScatteredMap { path: PathBuf, tensor: Box<str>, runs: usize },
    /// A mapped tensor is what its file holds, and this one was to be converted.
    #[error(
        "{}: tensor {}: planned as {}, and mapped tensors stay {} (load converts them)",
        PathText(path),
        Quoted(tensor),
        cast.to().dtype(),
        cast.from().dtype()
    )]
    CastMap { path: PathBuf, tensor: Box<str>, cast: FloatCast },

    /// Loading was ended by [`LoadOptions::cancel`](crate::LoadOptions::cancel).
    #[error("{}: loading was cancelled", PathText(path))]
    Cancelled { path: PathBuf },
    /// The caller's memory for a tensor is not one place as long as the tensor; `found` has the
    /// lengths of the places.
    #[error(
        "{}: tensor {}: expected one place of {needed} bytes to load it into, found {}",
        PathText(path),
        Quoted(tensor),
        Lengths(found)
    )]
    Destination { path: PathBuf, tensor: Box<str>, needed: usize, found: Box<[usize]> },
    /// A tensor does not fit into the memory that streaming may use.
    #[error(
        "{}: tensor {}: {needed} bytes are more than the {max} that may be in flight \
         (StreamOptions::max_bytes_in_flight)",
        PathText(path),
        Quoted(tensor)
    )]
    TensorTooLarge { path: PathBuf, tensor: Box<str>, needed: u64, max: u64 },

    /// What a load needs is more than there is; see
    /// [`LoadOptions::memory_check`](crate::LoadOptions::memory_check).
    #[error(
        "{}: {needed} bytes of memory needed, {available} available: {limit} \
         (LoadOptions::memory_check)",
        PathText(path)
    )]
    NotEnoughMemory { path: PathBuf, needed: u64, available: u64, limit: MemoryLimit },

    // -- What a rank takes.
    /// There are no built-in rules for this family of models.
    #[error(
        "no rules for model type {}; write them, such as \
         {{\"rules\": [{{\"match\": \"**.q_proj.*\", \"tp\": \"col\"}}]}}; there are some for {}",
        Quoted(model_type),
        Families
    )]
    NoRules { model_type: Box<str> },
    /// The configuration lacks a number that the built-in rules need.
    #[error(
        "model type {}: its rules need {field}, and the configuration says none above 0",
        Quoted(model_type)
    )]
    NoNumber { model_type: Box<str>, field: &'static str },
    /// A plan of transformers has a style that is not known.
    #[error(
        "{}: {}: unknown style {}; take the entry out of the plan, and say how to cut the module \
         with Partition::with_rules",
        PathText(path),
        Quoted(module),
        Quoted(style)
    )]
    TpStyle { path: PathBuf, module: Box<str>, style: Box<str> },
    /// A text is not a rank and the number of ranks.
    #[error("{}: expected a rank and how many there are, such as 0/4", Quoted(text))]
    RankText { text: Box<str> },
    /// A pattern cannot be read, or its rule needs what it does not find.
    #[error("pattern {}: {reason}", Quoted(pattern))]
    Pattern { pattern: Box<str>, reason: &'static str },
    /// A tensor cannot be cut as its rule says.
    #[error("tensor {}: rule {}: {misfit}", Quoted(tensor), Quoted(rule))]
    Cut { tensor: Box<str>, rule: Box<str>, misfit: Misfit },
    /// The ranks do not divide the experts.
    #[error(
        "{}{count} experts over {size} ranks{}; Uneven::Balanced and Uneven::Chunk give some ranks \
         more than others",
        OfTensor(tensor),
        Divisors(*count)
    )]
    UnevenExperts { tensor: Option<Box<str>>, count: usize, size: usize },
    /// The ranks do not divide the slots of experts, of which each rank has as many.
    #[error("{}{count} expert slots over {size} ranks{}", OfTensor(tensor), Divisors(*count))]
    UnevenSlots { tensor: Option<Box<str>>, count: usize, size: usize },
    /// The slots of experts have no list for the layer of a tensor.
    #[error("{}no list of expert slots for this layer", OfTensor(tensor))]
    NoExpertSlots { tensor: Option<Box<str>> },
    /// The slots of experts list one that does not exist.
    #[error(
        "{}expert slots: {expert} is not an expert of {count}, counted from 0",
        OfTensor(tensor)
    )]
    ExpertSlot { tensor: Option<Box<str>>, expert: usize, count: usize },
    /// The sizes of stages are not one for each, or do not make the layers.
    #[error(
        "layer sizes {sizes:?} are for {} stages, {} layers; expected {stages} stages{}",
        sizes.len(),
        sizes.iter().map(|size| *size as u128).sum::<u128>(),
        AndLayers(*layers)
    )]
    LayerSizes { sizes: Box<[usize]>, stages: usize, layers: Option<usize> },
    /// A tensor is said to be of an expert or a stage that does not exist.
    #[error("tensor {}: {what} {number} is not one of {count}, counted from 0", Quoted(tensor))]
    Number { tensor: Box<str>, what: &'static str, number: usize, count: usize },
    /// Layers do not fit on devices in their order.
    #[error("{bytes} bytes of layers and what surrounds them do not fit on devices of {budgets:?}")]
    Budgets { bytes: u128, budgets: Box<[u64]> },
    /// Rules of a strict partition match no tensor.
    #[error(
        "{} rules match nothing, and Partition::strict is set: {}",
        patterns.len(),
        Shown(patterns)
    )]
    UnusedRules { patterns: Box<[String]> },
    /// No rule of a strict partition matches these tensors.
    #[error(
        "{} tensors that no rule matches, and Partition::strict is set: {}",
        tensors.len(),
        Shown(tensors)
    )]
    UnmatchedTensors { tensors: Box<[String]> },
}

impl Error {
    /// The file or folder that the error is about, as it was opened; of [`Error::Incomplete`] the
    /// directory.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "a line for each variant, so that none is forgotten")]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(error) => error.path(),
            Self::HalfSetRank { .. }
            | Self::RankNotANumber { .. }
            | Self::ImpossibleRank { .. }
            | Self::NoHubCache
            | Self::HubName { .. }
            | Self::NoRules { .. }
            | Self::NoNumber { .. }
            | Self::RankText { .. }
            | Self::Pattern { .. }
            | Self::Cut { .. }
            | Self::UnevenExperts { .. }
            | Self::UnevenSlots { .. }
            | Self::NoExpertSlots { .. }
            | Self::ExpertSlot { .. }
            | Self::LayerSizes { .. }
            | Self::Number { .. }
            | Self::Budgets { .. }
            | Self::UnusedRules { .. }
            | Self::UnmatchedTensors { .. } => None,
            Self::Threads { path, .. }
            | Self::NoWeights { path, .. }
            | Self::OtherFormat { path, .. }
            | Self::UnusableOption { path, .. }
            | Self::Ambiguous { path, .. }
            | Self::NoVariant { path, .. }
            | Self::OnlyVariants { path, .. }
            | Self::NoFamily { path, .. }
            | Self::MissingNumbered { path, .. }
            | Self::StaleIndex { path, .. }
            | Self::WeightsPath { path, .. }
            | Self::HubRepository { path, .. }
            | Self::HubCacheRoot { path, .. }
            | Self::Pipeline { path, .. }
            | Self::TooManyShards { path, .. }
            | Self::NoSnapshot { path, .. }
            | Self::Json { path, .. }
            | Self::NotJson { path, .. }
            | Self::NotATemplate { path, .. }
            | Self::FieldType { path, .. }
            | Self::NotUtf8 { path, .. }
            | Self::JsonTooLarge { path, .. }
            | Self::JsonTooDense { path, .. }
            | Self::NoFile { path, .. }
            | Self::TpStyle { path, .. }
            | Self::EmptyWeightMap { path }
            | Self::NoWeightMap { path }
            | Self::ShardPath { path, .. }
            | Self::ShardPathType { path, .. }
            | Self::MappedTwice { path, .. }
            | Self::Incomplete { path, .. }
            | Self::WeightsExist { path, .. }
            | Self::MetadataKey { path, .. }
            | Self::HeaderTooLarge { path, .. }
            | Self::TooManyTensors { path, .. }
            | Self::NameTooLong { path, .. }
            | Self::TooManyDimensions { path, .. }
            | Self::ScatteredMap { path, .. }
            | Self::CastMap { path, .. }
            | Self::Cancelled { path }
            | Self::Destination { path, .. }
            | Self::TensorTooLarge { path, .. }
            | Self::NotEnoughMemory { path, .. }
            | Self::TensorNotFound { path, .. }
            | Self::NotPlanned { path, .. } => Some(path),
        }
    }

    /// The tensor that the error is about, if it is about one.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        match self {
            Self::File(error) => error.tensor(),
            Self::ShardPath { tensor, .. }
            | Self::ShardPathType { tensor, .. }
            | Self::MappedTwice { tensor, .. }
            | Self::NameTooLong { tensor, .. }
            | Self::TooManyDimensions { tensor, .. }
            | Self::TensorNotFound { tensor, .. }
            | Self::NotPlanned { tensor, .. }
            | Self::ScatteredMap { tensor, .. }
            | Self::CastMap { tensor, .. }
            | Self::Destination { tensor, .. }
            | Self::TensorTooLarge { tensor, .. }
            | Self::Cut { tensor, .. }
            | Self::Number { tensor, .. } => Some(tensor),
            Self::UnevenExperts { tensor, .. }
            | Self::UnevenSlots { tensor, .. }
            | Self::NoExpertSlots { tensor }
            | Self::ExpertSlot { tensor, .. } => tensor.as_deref(),
            _ => None,
        }
    }

    /// The same, naming a tensor if it can and does not yet.
    pub(crate) fn of_tensor(mut self, name: &str) -> Self {
        if let Self::UnevenExperts { tensor, .. }
        | Self::UnevenSlots { tensor, .. }
        | Self::NoExpertSlots { tensor }
        | Self::ExpertSlot { tensor, .. } = &mut self
        {
            *tensor = Some(name.into());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Error, Fault};

    #[test]
    fn path_and_tensor_are_those_of_the_message() {
        let missing = tensorfile::ErrorKind::TensorNotFound { similar: [].into() };
        let missing = missing.in_tensor("w").at(Path::new("m.safetensors"));
        for error in [
            Error::from(missing),
            Error::MappedTwice { path: "m.safetensors".into(), tensor: "w".into() },
        ] {
            assert_eq!(error.path(), Some(Path::new("m.safetensors")), "{error}");
            assert_eq!(error.tensor(), Some("w"), "{error}");
        }
        assert_eq!((Error::NoHubCache.path(), Error::NoHubCache.tensor()), (None, None));
    }

    #[test]
    fn faults_that_are_not_listed_are_counted() {
        let fault = Fault::Unindexed { tensor: "w".into(), shard: Path::new("s").into() };
        let error = Error::Incomplete { path: "m".into(), faults: vec![fault], more: 2 };
        assert_eq!(
            error.to_string(),
            "m: 3 faults\n  tensor \"w\" in shard s is not in the index\n  and 2 more faults of tensors"
        );
    }

    #[test]
    fn an_error_is_small_enough_to_return_by_value() {
        assert!(size_of::<Error>() <= 128, "{}", size_of::<Error>());
    }
}
