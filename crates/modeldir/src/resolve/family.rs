//! Which files of a folder are the weights: by name, index and number.

mod refused;
mod stale;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tensorfile::PathText;

use super::choice::Choice;
use super::index_file::{IndexFile, read_index};
use super::listing::{Listing, Role};
use super::names::{INDEX_ENDING, index_names, is_variant, single_name};
use super::numbered::NumberedSet;
use super::rank_files;
use crate::open_options::{Family, IndexPolicy};
use crate::{ErrorKind, OpenOptions, Result};

/// A folder, and the options for choosing in it.
#[derive(Debug)]
pub(super) struct Folder<'a> {
    root: &'a Path,
    listing: &'a Listing,
    options: &'a OpenOptions,
    variant: Option<&'a str>,
    numbered: Vec<NumberedSet>,
}

impl<'a> Folder<'a> {
    pub(super) fn new(root: &'a Path, listing: &'a Listing, options: &'a OpenOptions) -> Self {
        let numbered = NumberedSet::find(listing);
        Self { root, listing, options, variant: options.weights.asked_variant(), numbered }
    }

    /// Chooses the weights; two remaining sets are an error that names both.
    pub(super) fn choose(&self) -> Result<Choice> {
        if let Some(family) = self.options.weights.asked_family() {
            return self.family(family)?.ok_or_else(|| self.nothing(family));
        }
        self.refuse_two_models()?;
        for &family in Family::ALL {
            if let Some(choice) = self.family(family)? {
                return Ok(choice);
            }
        }
        match self.variant {
            Some(variant) => Err(self.no_variant(variant)),
            None => self.unnamed(),
        }
    }

    /// The weights named by an index. If it names none, `single` is used.
    pub(super) fn indexed(&self, path: PathBuf, single: Option<&str>) -> Result<Choice> {
        let map = read_index(&path, self.options)?;
        let mut choice = Choice::default();
        if map.is_empty() {
            let single = single.ok_or_else(|| ErrorKind::EmptyWeightMap.at(&path))?;
            choice.notes.push(format!(
                "{}: names no tensor, {} is opened",
                PathText(&path),
                PathText(single.as_ref())
            ));
            choice.shards.push(single.into());
            return Ok(choice);
        }
        if map.is_bare() {
            choice.remarks.push(format!("{}: is a bare weight map", PathText(&path)));
        }
        choice.shards = map.shards().iter().map(|shard| PathBuf::from(&**shard)).collect();
        choice.index = Some(IndexFile { path, map });
        Ok(choice)
    }

    /// The weights of an index that something other than its name assigns to the model; `name` is
    /// its path in the folder. If the options ignore the index, the weights that match by name.
    pub(super) fn named_index(&self, name: &str) -> Result<Choice> {
        match self.options.weights.index_policy() {
            IndexPolicy::Use => self.undisputed(self.root.join(name), None),
            IndexPolicy::Ignore => Ok(self.choose()?.remarking(not_read(&[name.to_owned()]))),
        }
    }

    /// The weights of a family, if there are any.
    fn family(&self, family: Family) -> Result<Option<Choice>> {
        let choice = self.stem(family.stem(), self.variant)?;
        Ok(choice.map(|choice| Choice { family: Some(family), ..choice }))
    }

    /// The weights whose names start with `stem`, if there are any.
    fn stem(&self, stem: &str, variant: Option<&str>) -> Result<Option<Choice>> {
        let single = Some(single_name(stem, variant)).filter(|name| self.listing.has(name));
        let mut indexes = index_names(stem, variant);
        indexes.retain(|name| self.listing.has(name));
        match (self.options.weights.index_policy(), &*indexes) {
            (_, []) => self.unindexed(stem, variant, single),
            (IndexPolicy::Use, [index]) => {
                self.undisputed(self.root.join(index), single.as_deref()).map(Some)
            }
            (IndexPolicy::Use, _) => Err(self.ambiguous(
                "two indexes of one variant (the path of one opens it)",
                indexes.iter().map(PathBuf::from).collect(),
            )),
            (IndexPolicy::Ignore, _) => {
                let choice = match single {
                    Some(single) => Some(Choice::of_files([single.into()])),
                    None => self.unindexed(stem, variant, None)?,
                };
                Ok(choice.map(|choice| choice.remarking(not_read(&indexes))))
            }
        }
    }

    /// The weights by name alone: a single file or a numbered set.
    fn unindexed(
        &self,
        stem: &str,
        variant: Option<&str>,
        single: Option<String>,
    ) -> Result<Option<Choice>> {
        let sets: Vec<_> = self.numbered.iter().filter(|set| set.is_of(stem, variant)).collect();
        match (single, &*sets) {
            (Some(single), []) => Ok(Some(Choice::of_files([single.into()]))),
            (Some(single), _) => Err(self.ambiguous(
                "a single file and numbered files, and no index to choose (Weights::Files does)",
                [single.into()]
                    .into_iter()
                    .chain(sets.iter().flat_map(|set| set.paths()))
                    .collect(),
            )),
            (None, []) => Ok(None),
            (None, [set]) => self.numbered_set(set).map(Some),
            (None, _) => Err(self.ambiguous(
                "several numbered sets, and no index to choose (Weights::Files does)",
                sets.iter().flat_map(|set| set.paths()).collect(),
            )),
        }
    }

    fn numbered_set(&self, set: &NumberedSet) -> Result<Choice> {
        let files = set.complete(self.root)?;
        let remark = format!("no index: {} numbered files are the model", files.len());
        Ok(Choice::of_files(files).remarking(remark))
    }

    /// The weights of a folder without any known name.
    fn unnamed(&self) -> Result<Choice> {
        let indexes = self.unknown_indexes();
        match &*indexes {
            [] => {}
            [name] => {
                let stem = name.strip_suffix(INDEX_ENDING).unwrap_or(name);
                let name = PathText(name.as_ref());
                let remark = format!("{name}: is the only index; its name is not a known one");
                let choice = self.stem(stem, None)?.unwrap_or_default();
                return Ok(choice.remarking(remark));
            }
            _ => {
                let candidates = indexes.iter().map(PathBuf::from).collect();
                return Err(
                    self.ambiguous("several indexes (the path of one opens it)", candidates)
                );
            }
        }
        if let Some(refused) = rank_files::refused(self.listing) {
            return Err(refused.at(self.root));
        }
        let mut lone: Vec<_> = self.lone_files().collect();
        if let Some(remark) = drop_earlier_steps(&mut lone) {
            return Ok(Choice::of_files(lone).remarking(remark));
        }
        match (&*self.numbered, &*lone) {
            ([], []) => Err(self.no_weights()),
            _ if self.holds_variants() => Err(self.only_variants()),
            ([], [only]) => {
                let remark = format!(
                    "{}: is the only weight file; its name is not a known one",
                    PathText(only)
                );
                Ok(Choice::of_files([only.clone()]).remarking(remark))
            }
            ([set], []) => self.numbered_set(set),
            _ => Err(self.ambiguous(
                "several weight files, and no index or numbering groups them (Weights::Files does)",
                self.of_role(Role::Weights).collect(),
            )),
        }
    }

    /// Indexes without a known name.
    fn unknown_indexes(&self) -> Vec<&str> {
        let names = self.listing.of(Role::Index).filter_map(|entry| entry.name.to_str());
        let is_known = |name: &str| is_variant(Path::new(name)) || !name.ends_with(INDEX_ENDING);
        let uses_index = self.options.weights.index_policy() == IndexPolicy::Use;
        names.filter(|name| uses_index && !is_known(name)).collect()
    }

    /// Whether any index, or every weight file, belongs to a variant of a known family.
    fn holds_variants(&self) -> bool {
        self.of_role(Role::Index).any(|path| is_variant(&path))
            || self.of_role(Role::Weights).all(|path| is_variant(&path))
    }

    /// Weight files outside numbered sets.
    fn lone_files(&self) -> impl Iterator<Item = PathBuf> {
        let numbered: HashSet<PathBuf> =
            self.numbered.iter().flat_map(NumberedSet::paths).collect();
        self.of_role(Role::Weights).filter(move |path| !numbered.contains(path))
    }

    /// Refuses a folder with both a transformers and a diffusers model.
    fn refuse_two_models(&self) -> Result<()> {
        let [model, diffusers] =
            [Family::Model, Family::Diffusers].map(|f| self.first_of(f.stem()));
        match (model, diffusers) {
            (Some(a), Some(b)) => {
                Err(self.ambiguous("two models (Weights::family opens one)", vec![a, b]))
            }
            _ => Ok(()),
        }
    }

    /// Any file that proves weights whose names start with `stem`.
    fn first_of(&self, stem: &str) -> Option<PathBuf> {
        let mut names = index_names(stem, self.variant);
        names.push(single_name(stem, self.variant));
        let named = names.into_iter().find(|name| self.listing.has(name));
        let numbered = || self.numbered.iter().find(|set| set.is_of(stem, self.variant));
        named.or_else(|| numbered().map(|set| set.first().to_owned())).map(PathBuf::from)
    }

    fn of_role(&self, role: Role) -> impl Iterator<Item = PathBuf> {
        self.listing.of(role).map(|entry| PathBuf::from(&entry.name))
    }
}

/// The remark on ignored indexes.
fn not_read(indexes: &[String]) -> String {
    let names: Vec<String> =
        indexes.iter().map(|name| PathText(name.as_ref()).to_string()).collect();
    format!("{}: not read", names.join(", "))
}

/// Leaves the last step of an adapter that MLX has trained, if it and earlier steps are all.
fn drop_earlier_steps(lone: &mut Vec<PathBuf>) -> Option<String> {
    const LAST: &str = "adapters.safetensors";
    let is_step = |path: &PathBuf| {
        let name = path.to_string_lossy();
        let step = name.strip_suffix(LAST).and_then(|start| start.strip_suffix('_'));
        step.is_some_and(|step| !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit()))
    };
    let is_last = |path: &PathBuf| path.as_os_str() == LAST;
    let is_adapter = lone.len() > 1 && lone.iter().all(|path| is_last(path) || is_step(path));
    if !is_adapter || !lone.iter().any(is_last) {
        return None;
    }
    let steps = lone.len().saturating_sub(1);
    lone.retain(is_last);
    Some(format!("{LAST}: is the last step of an adapter; {steps} earlier steps are not read"))
}
