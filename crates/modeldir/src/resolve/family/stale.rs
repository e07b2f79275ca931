//! An index whose shards are missing while other files hold their tensors.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tensorfile::TensorFile;

use super::Folder;
use crate::open_options::{IndexPolicy, Weights};
use crate::resolve::choice::Choice;
use crate::resolve::index_file::IndexFile;
use crate::resolve::listing::{Kind, Role};
use crate::resolve::names::is_variant;
use crate::{ErrorKind, OpenOptions, Result};

/// The maximum number of weight files whose headers are read for one error.
const MAX_FILES: usize = 1000;

impl Folder<'_> {
    /// The weights named by an index. If shards are missing and other files hold their tensors, the
    /// files were renamed or saved anew, and the index is of no use; so it is if the single file of
    /// the family exists.
    pub(super) fn undisputed(&self, path: PathBuf, single: Option<&str>) -> Result<Choice> {
        let choice = self.indexed(path, single)?;
        let Some(index) = &choice.index else { return Ok(choice) };
        let is_missing: Vec<bool> =
            index.map.shards().iter().map(|shard| !self.is_there(shard)).collect();
        if !is_missing.contains(&true) {
            return Ok(choice);
        }
        match self.stale(index, &choice.shards, &is_missing, single) {
            Some(stale) => Err(stale.at(&index.path)),
            None => Ok(choice),
        }
    }

    /// The error for an index with missing shards, if other files may be the model.
    fn stale(
        &self,
        index: &IndexFile,
        shards: &[PathBuf],
        is_missing: &[bool],
        single: Option<&str>,
    ) -> Option<ErrorKind> {
        let is_missing = |shard: usize| is_missing.get(shard).is_some_and(|missing| *missing);
        let lost = index.map.iter().filter(|(_, shard)| is_missing(*shard)).map(|(name, _)| name);
        let mut lost = Lost::new(lost.collect());
        let is_single = |path: &Path| single.is_some_and(|single| path == Path::new(single));
        let of_variant = |path: &Path| self.variant.is_none() && is_variant(path);
        let others = self.listing.of(Role::Weights).filter(|entry| entry.kind == Kind::File);
        let others = others.map(|entry| PathBuf::from(&entry.name));
        let others = others.filter(|path| !shards.contains(path) && !of_variant(path));
        let found: Vec<PathBuf> = others
            .take(MAX_FILES)
            .filter(|path| lost.mark(&self.root.join(path), self.options) || is_single(path))
            .collect();
        if found.is_empty() {
            return None;
        }
        let missing = shards.iter().enumerate().filter(|(shard, _)| is_missing(*shard));
        Some(ErrorKind::StaleIndex {
            missing: missing.map(|(_, path)| path.clone()).collect(),
            held: lost.num_found(),
            lost: lost.names.len(),
            option: self.option_for(&found),
            found,
        })
    }

    /// The option that opens these files.
    fn option_for(&self, found: &[PathBuf]) -> &'static str {
        let weights = match &self.options.weights {
            Weights::Named { family, variant, .. } => Weights::Named {
                family: *family,
                variant: variant.clone(),
                index: IndexPolicy::Ignore,
            },
            other => other.clone(),
        };
        let options = OpenOptions { weights, ..self.options.clone() };
        let by_name = Folder::new(self.root, self.listing, &options).choose();
        let takes_all =
            by_name.is_ok_and(|choice| found.iter().all(|path| choice.shards.contains(path)));
        if takes_all { "IndexPolicy::Ignore" } else { "Weights::Files" }
    }

    /// Whether this path exists, whatever it is.
    fn is_there(&self, shard: &str) -> bool {
        if self.listing.get(shard).is_some_and(|entry| entry.kind != Kind::Dangling) {
            return true;
        }
        let absent = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        fs::metadata(self.root.join(shard)).map_or_else(|e| !absent.contains(&e.kind()), |_| true)
    }
}

/// The tensors of missing shards, and which of them other files hold.
struct Lost<'a> {
    /// Sorted.
    names: Vec<&'a str>,
    is_found: Vec<bool>,
}

impl<'a> Lost<'a> {
    fn new(names: Vec<&'a str>) -> Self {
        let is_found = vec![false; names.len()];
        Self { names, is_found }
    }

    /// Marks the tensors that a file holds. Returns whether there is one; a file that cannot be
    /// opened holds none.
    fn mark(&mut self, path: &Path, options: &OpenOptions) -> bool {
        let Ok(file) = TensorFile::open_with(path, &options.header) else { return false };
        let mut holds = false;
        for name in file.names() {
            let position = self.names.binary_search(&name).ok();
            if let Some(found) = position.and_then(|position| self.is_found.get_mut(position)) {
                (*found, holds) = (true, true);
            }
        }
        holds
    }

    fn num_found(&self) -> usize {
        self.is_found.iter().filter(|found| **found).count()
    }
}
