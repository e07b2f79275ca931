//! Reads an index, within the limits of the options.

use std::path::{Path, PathBuf};

use tensorfile::{Limit, LimitOn, Remedy};

use crate::json::MaxBytes;
use crate::weights::weight_map::WeightMap;
use crate::{ErrorKind, OpenOptions, Result, json};

/// A parsed index.
#[derive(Debug)]
pub(crate) struct IndexFile {
    /// The path as opened.
    pub(crate) path: PathBuf,
    pub(crate) map: WeightMap,
}

/// Reads and parses an index.
pub(super) fn read_index(path: &Path, options: &OpenOptions) -> Result<WeightMap> {
    let text = json::read(path, MaxBytes::of_index(options.max_index_bytes))?;
    let map = WeightMap::parse(text).map_err(|error| error.at(path))?;
    check_shards(path, map.shards().len(), options)?;
    Ok(map)
}

/// Refuses too many shards before any of them is looked up.
pub(super) fn check_shards(path: &Path, found: usize, options: &OpenOptions) -> Result<()> {
    if found <= options.max_shards {
        return Ok(());
    }
    let limit = Limit {
        what: LimitOn::Shards,
        limit: options.max_shards as u64,
        found: found as u64,
        remedy: Some(Remedy::Raise("OpenOptions::max_shards")),
    };
    Err(ErrorKind::Limit(limit).at(path))
}
