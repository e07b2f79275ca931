//! Weights already present in a folder, for saving into it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::listing::{Listing, Role};
use super::numbered::NumberedSet;
use crate::Result;
use crate::open_options::Family;

/// The weight files and indexes of a folder, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Present {
    /// Indexes of the family without a variant.
    pub(crate) indexes: Vec<PathBuf>,
    /// Weight files of the family without a variant: the single one and numbered ones.
    pub(crate) shards: Vec<PathBuf>,
    /// All other weights and indexes.
    pub(crate) others: Vec<PathBuf>,
}

/// Lists the weights of a folder, separated by whether they belong to this family.
pub(crate) fn present(folder: &Path, family: Family) -> Result<Present> {
    let listing = Listing::read(folder)?;
    let single = format!("{}.safetensors", family.stem());
    let index = format!("{single}.index.json");
    let sets = NumberedSet::find(&listing);
    let numbered = sets.iter().filter(|set| set.is_of(family.stem(), None));
    let numbered: HashSet<PathBuf> = numbered.flat_map(NumberedSet::paths).collect();
    let mut present = Present::default();
    for entry in &listing.entries {
        let name = PathBuf::from(&entry.name);
        let list = match entry.role {
            Role::Index if entry.name == *index => &mut present.indexes,
            Role::Weights if entry.name == *single || numbered.contains(&name) => {
                &mut present.shards
            }
            Role::Index | Role::Weights | Role::RankFile => &mut present.others,
            _ => continue,
        };
        list.push(name);
    }
    Ok(present)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Present, present};
    use crate::open_options::Family;

    fn sorted(names: &[&str]) -> Vec<PathBuf> {
        let mut names: Vec<_> = names.iter().map(PathBuf::from).collect();
        names.sort();
        names
    }

    #[test]
    fn a_family_is_told_from_its_variants_and_from_others() {
        let dir = tempfile::tempdir().unwrap();
        let shards =
            ["model.safetensors", "model-00001-of-00002.safetensors", "model-2-of-7.safetensors"];
        let indexes = ["model.safetensors.index.json"];
        let others = [
            "model.fp16.safetensors",
            "model-00001-of-00002.fp16.safetensors",
            "model.safetensors.index.fp16.json",
            "adapter_model.safetensors",
            "my_model-1-of-2.safetensors",
            "model-rank-0-part-0.safetensors",
        ];
        let no_weights = [
            "config.json",
            "pytorch_model.bin",
            ".model.safetensors",
            "model.safetensors.backup",
            "optimizer.safetensors",
        ];
        for name in [&shards[..], &indexes, &others, &no_weights].concat() {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let mut found = present(dir.path(), Family::Model).unwrap();
        found.shards.sort();
        found.others.sort();
        let (shards, others) = (sorted(&shards), sorted(&others));
        assert_eq!(found, Present { indexes: sorted(&indexes), shards, others });
    }
}
