//! Builds an index: reads the headers, joins them with the weight map, and reports all faults in
//! one error.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tensorfile::Metadata;
use tensorfile::reserve::{self, NoMemory};
use tracing::debug_span;
use tracing::field::Empty;

use super::id::ShardId;
use super::shard::{self, Opened};
use super::{Index, Shard, shard_of, stored};
use crate::error::Fault;
use crate::open_options::{MissingShards, OpenOptions, Unindexed};
use crate::rank_part::PartRecord;
use crate::report::StrayTensor;
use crate::resolve::Causes;
use crate::weights::alias::{self, AliasSources, Aliases};
use crate::weights::join::{self, Fit, Joined, Slot, Tensors, Wanted};
use crate::weights::tied::Stored;
use crate::weights::weight_map::WeightMap;
use crate::{ErrorKind, ModelConfig, Result};

/// The maximum number of tensor faults in an error; the others are only counted, as there may be
/// millions.
const MAX_TENSOR_FAULTS: usize = 1000;

/// What building an index found odd but accepted.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) unindexed: Vec<StrayTensor>,
    pub(crate) stale: Vec<StrayTensor>,
    pub(crate) skipped: Vec<Fault>,
    /// The number of metadata entries for aliases beyond the limit.
    pub(crate) aliases_left_out: usize,
}

impl Index {
    /// Reads the headers of these shards, relative to `root`, and joins them with the weight map.
    /// The configuration, if there is one, tells which tensors are tied.
    ///
    /// One error lists all faults: shards that are missing or unusable, tensors that are not in the
    /// mapped shard, tensors in two shards. An error without a path is one of `root`.
    pub(crate) fn build(
        root: &Path,
        shard_paths: &[PathBuf],
        map: Option<&WeightMap>,
        config: Option<&ModelConfig>,
        options: &OpenOptions,
    ) -> Result<(Self, Findings)> {
        let span = debug_span!("index", shards = shard_paths.len(), tensors = Empty).entered();
        let wanted = wanted(map)?;
        let opened = shard::open_all(root, shard_paths, &wanted, options)?;
        let Numbered { shards, fits, lost } = numbered(root, shard_paths, opened, &wanted)?;
        let mut joined = join(&shards, map, fits, options.unindexed)?;
        let (aliases, aliases_left_out) =
            find_aliases(&shards, &joined.order, map, config, options);
        // Some converters leave in the index the name that they recorded as tied.
        joined.absent.retain(|absent| absent.found_in.is_some() || !aliases.is_stated(absent.name));
        let skipped = judge(&shards, lost, &joined, options)?;
        let unindexed = strays(&shards, &joined.unindexed)?;
        let stale = strays(&shards, &joined.stale)?;
        let findings = Findings { unindexed, stale, skipped, aliases_left_out };
        let in_index = map.into_iter().map(WeightMap::metadata);
        let in_shards = shards.iter().filter_map(Shard::metadata);
        let part_record = PartRecord::find(in_index.chain(in_shards))?;
        let (root, order, aliases) = (root.to_owned(), joined.order, Arc::new(aliases));
        span.record("tensors", order.len());
        let unchanged = options.unchanged;
        Ok((Self { root, shards, order, aliases, part_record, unchanged }, findings))
    }
}

/// The shards that could be opened, how each fits the map, and why the others are lost.
#[derive(Default)]
struct Numbered<'m> {
    shards: Vec<Shard>,
    fits: Vec<Fit<'m>>,
    lost: Vec<Fault>,
}

/// Numbers the shards that could be opened.
fn numbered<'m>(
    root: &Path,
    paths: &[PathBuf],
    opened: Vec<Opened<'m>>,
    wanted: &[Vec<Wanted<'m>>],
) -> Result<Numbered<'m>, NoMemory> {
    let (mut found, mut causes, mut id) = (Numbered::default(), Causes::new(root), ShardId::new(0));
    for (i, (path, opened)) in paths.iter().zip(opened).enumerate() {
        match opened {
            Ok((file, fit)) => {
                reserve::push(&mut found.shards, Shard::new(id, file))?;
                reserve::push(&mut found.fits, fit)?;
                id = id.next();
            }
            Err(error) => {
                // Without a map, no tensor in particular is expected in a shard.
                let tensors = join::names(wanted.get(i).map(Vec::as_slice).unwrap_or_default())?;
                reserve::push(&mut found.lost, shard_fault(&mut causes, path, error, tensors))?;
            }
        }
    }
    Ok(found)
}

impl Tensors for [Shard] {
    fn name(&self, slot: Slot) -> &str {
        stored(self, slot).1.name()
    }
}

/// The tensors that the map expects in each shard; empty without a map.
fn wanted(map: Option<&WeightMap>) -> Result<Vec<Vec<Wanted<'_>>>, NoMemory> {
    map.map_or(Ok(Vec::new()), |map| join::wanted(map.iter(), &map.tensors_per_shard()?))
}

/// Joins the shards with the weight map, if there is one.
fn join<'m>(
    shards: &[Shard],
    map: Option<&'m WeightMap>,
    fits: Vec<Fit<'m>>,
    unindexed: Unindexed,
) -> Result<Joined<'m>, NoMemory> {
    match map {
        Some(map) => join::with_map(shards, fits, map.iter().map(|(name, _)| name), unindexed),
        None => join::without_map(shards, shards.iter().map(Shard::num_tensors)),
    }
}

/// Fails with all faults that make the model incomplete; returns the faults of skipped shards.
fn judge(
    shards: &[Shard],
    lost: Vec<Fault>,
    joined: &Joined<'_>,
    options: &OpenOptions,
) -> Result<Vec<Fault>> {
    // If no shard can be opened, skipping leaves no model.
    let skips = options.missing_shards == MissingShards::Skip && !shards.is_empty();
    let (mut skipped, mut faults) = (Vec::new(), Vec::new());
    for fault in lost {
        let is_skipped = skips && matches!(fault, Fault::MissingShard { .. });
        let list = if is_skipped { &mut skipped } else { &mut faults };
        reserve::push(list, fault)?;
    }
    let (of_tensors, more) = join_faults(shards, joined, options.unindexed);
    for fault in of_tensors {
        reserve::push(&mut faults, fault)?;
    }
    if faults.is_empty() {
        return Ok(skipped);
    }
    Err(ErrorKind::Incomplete { faults, more }.into())
}

/// The faults found by the join that make the model incomplete: the first ones, and the number of
/// others.
fn join_faults(shards: &[Shard], joined: &Joined<'_>, unindexed: Unindexed) -> (Vec<Fault>, usize) {
    let shard = |slot: Slot| stored(shards, slot).0.shared_path();
    let name = |slot: Slot| shards.name(slot).into();
    let absent = joined.absent.iter().map(|absent| Fault::NotInShard {
        tensor: absent.name.into(),
        shard: shard_of(shards, ShardId::new(absent.shard)).shared_path(),
        found_in: absent.found_in.map(|shard| shard_of(shards, ShardId::new(shard)).shared_path()),
    });
    let duplicates = joined.duplicates.iter().map(|&(first, second)| Fault::DuplicateTensor {
        tensor: name(first),
        first: shard(first),
        second: shard(second),
    });
    let refused = joined.unindexed.iter().filter(|_| unindexed == Unindexed::Error);
    let unindexed =
        refused.map(|&stray| Fault::Unindexed { tensor: name(stray), shard: shard(stray) });
    let mut all = absent.chain(duplicates).chain(unindexed);
    let first = all.by_ref().take(MAX_TENSOR_FAULTS).collect();
    (first, all.count())
}

fn strays(shards: &[Shard], slots: &[Slot]) -> Result<Vec<StrayTensor>, NoMemory> {
    let mut strays = reserve::list(slots.len())?;
    for slot in slots {
        let (shard, info) = stored(shards, *slot);
        let tensor = reserve::boxed(info.name())?.into();
        strays.push(StrayTensor { tensor, shard: shard.shared_path() });
    }
    Ok(strays)
}

/// Finds the aliases; sources in order of precedence: disk, caller, metadata, configuration. Also
/// returns the number of metadata entries left out.
fn find_aliases(
    shards: &[Shard],
    order: &[Slot],
    map: Option<&WeightMap>,
    config: Option<&ModelConfig>,
    options: &OpenOptions,
) -> (Aliases, usize) {
    let in_index = map.into_iter().flat_map(|map| map.metadata().iter());
    let in_shards = shards.iter().filter_map(Shard::metadata).flat_map(Metadata::iter);
    let sources = AliasSources {
        declared: &options.aliases,
        metadata: in_index.chain(in_shards),
        tied: config.and_then(ModelConfig::tie_word_embeddings),
        model_type: config.and_then(ModelConfig::model_type),
        is_mapped: |name: &str| map.is_some_and(|map| map.contains(name)),
    };
    alias::find(&StoredNames { shards, order }, sources)
}

/// The names of the tensors in slots, which are sorted by name.
struct StoredNames<'a> {
    shards: &'a [Shard],
    order: &'a [Slot],
}

impl Stored for StoredNames<'_> {
    fn has(&self, name: &str) -> bool {
        self.order.binary_search_by(|slot| self.shards.name(*slot).cmp(name)).is_ok()
    }

    fn any(&self, mut accept: impl FnMut(&str) -> bool) -> bool {
        self.order.iter().any(|slot| accept(self.shards.name(*slot)))
    }
}

/// The fault for an unusable shard.
fn shard_fault(
    causes: &mut Causes<'_>,
    shard: &Path,
    error: tensorfile::Error,
    tensors: Vec<String>,
) -> Fault {
    let shard: Arc<Path> = shard.into();
    match error.kind() {
        tensorfile::ErrorKind::NotFound | tensorfile::ErrorKind::DanglingLink { .. } => {
            Fault::MissingShard { cause: causes.cause(&shard), shard, tensors }
        }
        _ => Fault::UnusableShard { shard, error, tensors },
    }
}
