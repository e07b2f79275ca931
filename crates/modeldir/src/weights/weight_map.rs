//! The weight map of an index (`*.safetensors.index.json`): the shard of each tensor.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use tensorfile::reserve::{self, NoMemory};

use crate::weights::index_text::{self, Entry};
use crate::weights::natural;
use crate::{ErrorKind, Result};

/// The shard of each tensor as stated by an index. Names stay in the index's text.
#[derive(Debug)]
pub(crate) struct WeightMap {
    /// The index's text, followed by the unescaped form of names with escapes.
    text: String,
    /// Sorted by name, each name once.
    entries: Vec<Entry>,
    /// In natural order, each path once.
    shards: Vec<Box<str>>,
    total_size: Option<DeclaredSize>,
    metadata: tensorfile::Metadata,
    is_bare: bool,
}

impl WeightMap {
    /// Parses the text of an index.
    ///
    /// A byte-order mark is skipped. `metadata` and all other keys beside `weight_map` may be
    /// anything or absent. An index without `weight_map`, as accelerate writes it, is accepted as
    /// one bare map if it is an object in which every value but `metadata` is a string ending in
    /// `.safetensors`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Json`] with line and column; [`ErrorKind::NoWeightMap`]; for the first bad
    /// tensor by name, [`ErrorKind::ShardPathType`], [`ErrorKind::ShardPath`] or
    /// [`ErrorKind::MappedTwice`].
    pub(crate) fn parse(mut text: String) -> Result<Self> {
        let parsed = index_text::parse(&text)?;
        let total_size = parsed.metadata.total_size.map(DeclaredSize);
        let metadata = parsed.metadata.strings;
        let (mut entries, is_bare) = (parsed.entries, parsed.is_bare);
        reserve::push_str(&mut text, &parsed.unescaped)?;
        let shards = sort_shards(parsed.shards, &mut entries)?;

        let name = |entry: &Entry| text.as_bytes().get(entry.name()).unwrap_or_default();
        if !parsed.is_ascending {
            // A stable sort is fast on the sorted runs that indexes consist of.
            reserve::check::<Entry>(entries.len())?;
            entries.sort_by(|a, b| name(a).cmp(name(b)));
            let mut pairs = entries.iter().zip(entries.iter().skip(1));
            if let Some((twice, _)) = pairs.find(|(a, b)| name(a) == name(b)) {
                let tensor = text.get(twice.name()).unwrap_or_default();
                return Err(ErrorKind::MappedTwice.in_tensor(tensor));
            }
        }
        Ok(Self { text, entries, shards, total_size, metadata, is_bare })
    }

    /// Whether the index names no tensor.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The shards in natural order, as normalised paths relative to the model's folder.
    pub(crate) fn shards(&self) -> &[Box<str>] {
        &self.shards
    }

    /// Every tensor by name, with the position of its shard in [`Self::shards`].
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, usize)> + Clone {
        self.entries.iter().map(|entry| (self.name(entry), entry.shard as usize))
    }

    /// Whether the index names this tensor.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.entries.binary_search_by(|entry| self.name(entry).cmp(name)).is_ok()
    }

    /// The number of tensors in each of the [`Self::shards`].
    pub(crate) fn tensors_per_shard(&self) -> Result<Vec<usize>, NoMemory> {
        let mut counts = reserve::collect(self.shards.iter().map(|_| 0_usize))?;
        for entry in &self.entries {
            if let Some(count) = counts.get_mut(entry.shard as usize) {
                *count = count.saturating_add(1);
            }
        }
        Ok(counts)
    }

    /// `metadata.total_size`, if there is one.
    pub(crate) fn total_size(&self) -> Option<&DeclaredSize> {
        self.total_size.as_ref()
    }

    /// The entries of `metadata` whose value is a string, by key. They include the aliases recorded
    /// by `save_torch_state_dict`: from a name that is not stored to one that is.
    pub(crate) fn metadata(&self) -> &tensorfile::Metadata {
        &self.metadata
    }

    /// Whether the index is one bare map, without the key `weight_map`.
    pub(crate) fn is_bare(&self) -> bool {
        self.is_bare
    }

    fn name(&self, entry: &Entry) -> &str {
        self.text.get(entry.name()).unwrap_or_default()
    }
}

/// Sorts the shards and renumbers the entries accordingly.
fn sort_shards(shards: Vec<Box<str>>, entries: &mut [Entry]) -> Result<Vec<Box<str>>, NoMemory> {
    if shards.is_sorted_by(|a, b| natural::compare(a, b).is_le()) {
        return Ok(shards);
    }
    let mut order = reserve::collect(shards.into_iter().enumerate())?;
    // Unstable suffices, as no two are equal: the order is total, and each path occurs once.
    order.sort_unstable_by(|(_, a), (_, b)| natural::compare(a, b));
    let mut position = reserve::collect(order.iter().map(|_| 0_u32))?;
    for (new, (old, _)) in (0..).zip(&order) {
        if let Some(slot) = position.get_mut(*old) {
            *slot = new;
        }
    }
    for entry in entries {
        entry.shard = position.get(entry.shard as usize).copied().unwrap_or(entry.shard);
    }
    reserve::collect(order.into_iter().map(|(_, shard)| shard))
}

/// The total size declared by an index, in its own form: integer, float or string.
///
/// Writers disagree on what it covers, and some write 0. It is only compared, never relied on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeclaredSize(Box<str>);

impl DeclaredSize {
    /// The number or string as the index has it, except for the format of a float.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The size in bytes, if it is a whole number in range.
    pub(crate) fn byte_len(&self) -> Option<u64> {
        let text = self.0.trim();
        if let Ok(byte_len) = text.parse() {
            return Some(byte_len);
        }
        let number: f64 = text.parse().ok()?;
        let is_whole = number.is_finite() && number.fract() == 0.0 && number.abs() < 2_f64.powi(64);
        is_whole.then(|| format!("{number:.0}").parse().ok()).flatten()
    }
}

#[cfg(test)]
mod tests;
