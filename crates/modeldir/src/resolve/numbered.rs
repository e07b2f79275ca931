//! Sets of numbered files: `model-00002-of-00005.safetensors`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::listing::{Listing, Role};
use crate::weights::{natural, shard_path};
use crate::{ErrorKind, Result};

/// The largest total of a set; a name with a larger one is not numbered.
const MAX_TOTAL: u64 = 100_000;

/// All numbered files of a folder whose names belong to one set.
#[derive(Debug)]
pub(super) struct NumberedSet {
    /// The part before the number, without the `-` or `_` at its end.
    pub(super) stem: String,
    /// The part after the total, such as `fp16` in `model-00001-of-00002.fp16.safetensors`.
    pub(super) variant: Option<String>,
    total: u64,
    key: Key,
    /// The least number of digits.
    width: usize,
    /// The files present, by number.
    files: BTreeMap<u64, String>,
}

/// The common parts of the names of a set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    before: String,
    total: String,
    after: String,
    /// Distinguishes sets with the same numbers, such as `x-1-of-1` and `x-01-of-1`.
    copy: usize,
}

impl NumberedSet {
    /// All numbered sets of a folder, complete or not, in natural order.
    pub(super) fn find(listing: &Listing) -> Vec<Self> {
        let mut sets: BTreeMap<Key, Self> = BTreeMap::new();
        for entry in listing.of(Role::Weights) {
            let Some(name) = entry.name.to_str() else { continue };
            let Some(Parsed { mut key, number, width, total }) = parse(name) else { continue };
            while sets.get(&key).is_some_and(|set| set.files.contains_key(&number)) {
                key.copy = key.copy.saturating_add(1);
            }
            let set = sets.entry(key.clone()).or_insert_with(|| Self::new(key, total));
            set.width = set.width.min(width);
            set.files.insert(number, name.to_owned());
        }
        let mut sets: Vec<_> = sets.into_values().collect();
        sets.sort_by(|a, b| natural::compare(a.first(), b.first()));
        sets
    }

    fn new(key: Key, total: u64) -> Self {
        let stem = key.before.trim_end_matches(['-', '_', '.']).to_owned();
        let variant = key.after.strip_prefix('.').map(str::to_owned);
        Self { stem, variant, total, key, width: usize::MAX, files: BTreeMap::new() }
    }

    /// The file with the lowest number.
    pub(super) fn first(&self) -> &str {
        self.files.values().next().map(String::as_str).unwrap_or_default()
    }

    /// The files present, by number.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.files.values().map(PathBuf::from)
    }

    /// Whether the set belongs to `stem` and `variant`, in either spelling.
    pub(super) fn is_of(&self, stem: &str, variant: Option<&str>) -> bool {
        match (variant, &self.variant) {
            (None, None) => self.stem == stem,
            (Some(asked), Some(own)) => self.stem == stem && asked == own,
            (Some(asked), None) => self.stem.strip_prefix(stem) == Some(&format!(".{asked}")),
            (None, Some(_)) => false,
        }
    }

    /// The file name for a number.
    fn name(&self, number: u64) -> String {
        let (Key { before, total, after, .. }, width) = (&self.key, self.width);
        format!("{before}{number:0width$}-of-{total}{after}{}", shard_path::EXTENSION)
    }

    /// All files of the set, by number.
    ///
    /// Depending on the writer, numbers run from 1 to the total, from 0 to one less, or from 0 to
    /// the total.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MissingNumbered`] if a number is missing.
    pub(super) fn complete(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let start = u64::from(!self.files.contains_key(&0));
        let end = if start == 1 || self.files.contains_key(&self.total) {
            self.total
        } else {
            self.total.saturating_sub(1)
        };
        let missing: Vec<PathBuf> = (start..=end)
            .filter(|number| !self.files.contains_key(number))
            .map(|number| self.name(number).into())
            .collect();
        if missing.is_empty() && !self.files.is_empty() {
            return Ok(self.paths().collect());
        }
        let found = self.files.len();
        Err(ErrorKind::MissingNumbered { found, total: self.total, missing }.at(folder))
    }
}

/// The parts of a numbered name.
struct Parsed {
    key: Key,
    number: u64,
    /// The number of digits.
    width: usize,
    total: u64,
}

/// Splits a name into the common parts of its set, its number and the total.
fn parse(name: &str) -> Option<Parsed> {
    let name = name.strip_suffix(shard_path::EXTENSION)?;
    let (left, right) = name.rsplit_once("-of-")?;
    let is_digit = |c: char| c.is_ascii_digit();
    let before = left.trim_end_matches(is_digit);
    let after = right.trim_start_matches(is_digit);
    let digits = left.strip_prefix(before)?;
    let total_digits = right.strip_suffix(after)?;
    let is_variant = after.strip_prefix('.').is_some_and(|variant| !variant.is_empty());
    if before.is_empty() || !(after.is_empty() || is_variant) {
        return None;
    }
    let (number, total): (u64, u64) = (digits.parse().ok()?, total_digits.parse().ok()?);
    if number > total || total > MAX_TOTAL {
        return None;
    }
    let (before, after) = (before.to_owned(), after.to_owned());
    let key = Key { before, total: total_digits.to_owned(), after, copy: 0 };
    Some(Parsed { key, number, width: digits.len(), total })
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "of small lists")]
mod tests {
    use super::super::listing::Listing;
    use super::NumberedSet;
    use crate::{ErrorKind, Result};
    use std::path::{Path, PathBuf};

    fn find(names: &[&str]) -> Vec<NumberedSet> {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        NumberedSet::find(&Listing::read(dir.path()).unwrap())
    }

    fn complete(names: &[&str]) -> Result<Vec<PathBuf>> {
        let sets = find(names);
        assert_eq!(sets.len(), 1, "{sets:?}");
        sets.first().unwrap().complete(Path::new("m"))
    }

    #[test]
    fn complete_sets_are_taken_in_the_order_of_their_numbers() {
        for names in [
            ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"],
            ["model_00001-of-00002.safetensors", "model_00002-of-00002.safetensors"],
            ["part.1-of-2.safetensors", "part.2-of-2.safetensors"],
            ["m-00000-of-00002.safetensors", "m-00001-of-00002.safetensors"],
            ["x-1-of-2.fp16.safetensors", "x-2-of-2.fp16.safetensors"],
        ] {
            assert_eq!(complete(&names).unwrap(), names.map(PathBuf::from), "{names:?}");
        }
        let unpadded: Vec<_> = (1..=12).map(|i| format!("m-{i}-of-12.safetensors")).collect();
        let names: Vec<_> = unpadded.iter().map(String::as_str).collect();
        assert_eq!(complete(&names).unwrap().get(9), Some(&"m-10-of-12.safetensors".into()));
        let zero_to_total =
            ["m-0-of-2.safetensors", "m-1-of-2.safetensors", "m-2-of-2.safetensors"];
        assert_eq!(complete(&zero_to_total).unwrap().len(), 3);
        assert_eq!(complete(&["m-00001-of-000001.safetensors"]).unwrap().len(), 1);
    }

    #[test]
    fn every_missing_number_is_named_as_its_file_would_be() {
        for (names, expected) in [
            (
                &["m-00002-of-00004.safetensors", "m-00003-of-00004.safetensors"][..],
                &["m-00001-of-00004.safetensors", "m-00004-of-00004.safetensors"][..],
            ),
            (
                &["m_0-of-3.fp16.safetensors", "m_3-of-3.fp16.safetensors"],
                &["m_1-of-3.fp16.safetensors", "m_2-of-3.fp16.safetensors"],
            ),
            (&["m-10-of-11.safetensors", "m-9-of-11.safetensors"], &["m-1-of-11.safetensors"]),
        ] {
            match complete(names).unwrap_err().into_kind() {
                ErrorKind::MissingNumbered { found, missing, .. } => {
                    assert_eq!(found, names.len());
                    assert!(missing.starts_with(&[PathBuf::from(expected[0])]), "{missing:?}");
                    assert!(expected.iter().all(|name| missing.contains(&name.into())));
                }
                other => panic!("{names:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn sets_are_told_apart_by_stem_total_variant_and_width() {
        let sets = find(&[
            "a-1-of-2.safetensors",
            "a-01-of-2.safetensors",
            "a-1-of-3.safetensors",
            "b-1-of-2.safetensors",
            "a-1-of-2.fp16.safetensors",
            "a.fp16-1-of-2.safetensors",
        ]);
        assert_eq!(sets.len(), 6);
        let of = |stem, variant| sets.iter().filter(|set| set.is_of(stem, variant)).count();
        assert_eq!((of("a", None), of("a", Some("fp16"))), (3, 2));
        assert_eq!((of("b", None), of("b", Some("fp16")), of("c", None)), (1, 0, 0));
    }

    #[test]
    fn names_that_are_no_number_of_a_total_are_left_alone() {
        for name in [
            "model.safetensors",
            "1-of-2.safetensors",
            "model-x-of-2.safetensors",
            "model-3-of-2.safetensors",
            "model-1-of-.safetensors",
            "model-1-of-2x.safetensors",
            "model-1-of-2..safetensors",
            "model-1-of-99999999.safetensors",
            "model-1-of-99999999999999999999999.safetensors",
            "model-00001-model.layers.0.weight.safetensors",
        ] {
            assert!(find(&[name]).is_empty(), "{name}");
        }
    }
}
