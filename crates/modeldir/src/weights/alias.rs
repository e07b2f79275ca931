//! Aliases: names that stand for a tensor stored under another name, such as tied weights.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use tensorfile::Quoted;

use crate::similar;
use crate::weights::tied::{self, Stored};

/// A name that is not stored and refers to a tensor stored under another name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Alias {
    /// The name, which is not stored.
    pub name: String,
    /// The name of the stored tensor.
    pub target: String,
    /// Why it is an alias.
    pub rule: AliasRule,
}

/// The rule that made a name an alias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AliasRule {
    /// Declared by the caller in [`OpenOptions::aliases`](crate::OpenOptions).
    Declared,
    /// Recorded in the metadata of a shard or of the index, as Python's `save_model` and
    /// `save_torch_state_dict` do.
    Metadata,
    /// An output head, or a copy of the embedding, by the conventions of model code;
    /// `tie_word_embeddings` is not false.
    TiedEmbedding,
}

impl fmt::Display for AliasRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Declared => "declared by the caller",
            Self::Metadata => "recorded in the metadata",
            Self::TiedEmbedding => "tied embedding (tie_word_embeddings is not false)",
        })
    }
}

/// The maximum number of aliases from metadata; other rules have no limit. Real models have a few
/// hundred at most.
const MAX_FROM_METADATA: usize = 10_000;

/// The aliases of a model, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aliases(Arc<[Alias]>);

impl Aliases {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Alias> {
        self.0.iter()
    }

    /// All aliases, shared.
    pub(crate) fn shared(&self) -> Arc<[Alias]> {
        Arc::clone(&self.0)
    }

    /// The alias of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Alias> {
        let found = self.0.binary_search_by(|alias| alias.name.as_str().cmp(name));
        found.ok().and_then(|position| self.0.get(position))
    }

    /// Whether the caller or the metadata state that this name is an alias.
    pub(crate) fn is_stated(&self, name: &str) -> bool {
        self.get(name).is_some_and(|alias| alias.rule != AliasRule::TiedEmbedding)
    }

    /// The end of a "no tensor" message: the absent target of an alias, or else the tensor that the
    /// name may stand for and similar names.
    pub(crate) fn hint<'a, I: Iterator<Item = &'a str>>(
        &self,
        name: &str,
        names: impl Fn() -> I,
    ) -> String {
        let Some(Alias { target, rule, .. }) = self.get(name) else {
            return tied::hint(name, &names) + &similar::hint(name, names());
        };
        format!("; it is tied to {}, which is not here: {rule}", Quoted(target))
    }

    /// The name under which a tensor is stored: the target of an alias, or the name itself.
    pub(crate) fn target<'a>(&'a self, name: &'a str) -> &'a str {
        self.get(name).map_or(name, |alias| &alias.target)
    }
}

/// The inputs that decide about aliases, apart from the names on disk.
#[derive(Debug)]
pub(crate) struct AliasSources<'a, M, I> {
    /// Pairs of name and target declared by the caller.
    pub(crate) declared: &'a [(String, String)],
    /// Entries of index and shard metadata; most are not aliases.
    pub(crate) metadata: M,
    /// `tie_word_embeddings` of the configuration, if present.
    pub(crate) tied: Option<bool>,
    /// `model_type` of the configuration, if present.
    pub(crate) model_type: Option<&'a str>,
    /// Whether an index names a tensor, stored or not: no convention applies to it.
    pub(crate) is_mapped: I,
}

/// Finds the aliases of a model. A stored tensor is never hidden by an alias.
///
/// The second value is the number of metadata entries left out because of [`MAX_FROM_METADATA`].
pub(crate) fn find<'a>(
    stored: &impl Stored,
    sources: AliasSources<'a, impl Iterator<Item = (&'a str, &'a str)>, impl Fn(&str) -> bool>,
) -> (Aliases, usize) {
    let mut found: BTreeMap<Cow<'a, str>, (Cow<'a, str>, AliasRule)> = BTreeMap::new();
    let (mut from_metadata, mut left_out) = (0_usize, 0_usize);
    let mut add = |name: Cow<'a, str>, target: Cow<'a, str>, rule: AliasRule| {
        if stored.has(&name) || !stored.has(&target) || found.contains_key(&name) {
            return;
        }
        if rule == AliasRule::Metadata {
            if from_metadata == MAX_FROM_METADATA {
                left_out = left_out.saturating_add(1);
                return;
            }
            from_metadata = from_metadata.saturating_add(1);
        }
        found.insert(name, (target, rule));
    };
    for (name, target) in sources.declared {
        add(name.into(), target.into(), AliasRule::Declared);
    }
    for (name, target) in sources.metadata {
        add(name.into(), target.into(), AliasRule::Metadata);
    }
    tied::by_convention(stored, sources.tied, sources.model_type, |name, target| {
        // What an index maps is stored, though perhaps in a shard that is missing.
        if !(sources.is_mapped)(&name) {
            add(name.into(), target.into(), AliasRule::TiedEmbedding);
        }
    });
    let alias = |(name, (target, rule)): (Cow<'_, str>, (Cow<'_, str>, AliasRule))| Alias {
        name: name.into_owned(),
        target: target.into_owned(),
        rule,
    };
    (Aliases(found.into_iter().map(alias).collect()), left_out)
}

#[cfg(test)]
mod tests {
    use super::{Alias, AliasRule, AliasSources, MAX_FROM_METADATA, Stored, find};

    type Sources<'a> = AliasSources<'a, std::vec::IntoIter<(&'a str, &'a str)>, fn(&str) -> bool>;

    /// Stored names.
    struct Names<'a>(&'a [&'a str]);

    impl Stored for Names<'_> {
        fn has(&self, name: &str) -> bool {
            self.0.contains(&name)
        }

        fn any(&self, accept: impl FnMut(&str) -> bool) -> bool {
            self.0.iter().copied().any(accept)
        }
    }

    /// These sources, and no index.
    fn unmapped<'a, M: Iterator<Item = (&'a str, &'a str)>>(
        declared: &'a [(String, String)],
        metadata: M,
        tied: Option<bool>,
    ) -> AliasSources<'a, M, fn(&str) -> bool> {
        AliasSources { declared, metadata, tied, model_type: None, is_mapped: |_| false }
    }

    fn aliases(stored: &[&str], sources: Sources<'_>) -> Vec<(String, String, AliasRule)> {
        let (found, left_out) = find(&Names(stored), sources);
        assert_eq!(left_out, 0);
        let shown = |alias: &Alias| (alias.name.clone(), alias.target.clone(), alias.rule);
        found.iter().map(shown).collect()
    }

    fn sources(tied: Option<bool>) -> Sources<'static> {
        unmapped(&[], Vec::new().into_iter(), tied)
    }

    #[test]
    fn metadata_cannot_make_aliases_without_end() {
        let names: Vec<String> = (0..MAX_FROM_METADATA + 3).map(|i| i.to_string()).collect();
        let metadata = names.iter().map(|name| (name.as_str(), "shared.weight"));
        let declared = ["a", "b"].map(|name| (name.to_owned(), "shared.weight".to_owned()));
        let sources = unmapped(&declared, metadata, None);
        let (found, left_out) = find(&Names(&["shared.weight"]), sources);
        let of = |rule| found.iter().filter(|alias| alias.rule == rule).count();
        assert_eq!((of(AliasRule::Metadata), left_out), (MAX_FROM_METADATA, 3));
        // The limit leaves the others alone: by convention the head, and encoder and decoder.
        assert_eq!((of(AliasRule::Declared), of(AliasRule::TiedEmbedding)), (2, 3));
    }

    #[test]
    fn what_the_caller_declares_takes_no_place_of_metadata() {
        let names: Vec<String> = (0..MAX_FROM_METADATA).map(|i| i.to_string()).collect();
        let declared: Vec<_> = names.iter().map(|name| (name.clone(), "w".to_owned())).collect();
        let metadata = [("other", "w"), ("0", "w")].into_iter();
        let sources = unmapped(&declared, metadata, None);
        let (found, left_out) = find(&Names(&["w"]), sources);
        assert_eq!((found.iter().len(), left_out), (MAX_FROM_METADATA + 1, 0));
        assert_eq!(found.get("0").unwrap().rule, AliasRule::Declared);
    }

    #[test]
    fn a_head_that_is_not_stored_is_the_embedding_unless_the_flag_is_false() {
        let stored = ["model.embed_tokens.weight"];
        for tied in [Some(true), None] {
            let [(name, target, rule)] = &aliases(&stored, sources(tied))[..] else { panic!() };
            assert_eq!((&**name, &**target), ("lm_head.weight", "model.embed_tokens.weight"));
            assert_eq!(*rule, AliasRule::TiedEmbedding);
        }
        assert_eq!(aliases(&stored, sources(Some(false))), []);
    }

    #[test]
    fn what_an_index_maps_is_no_alias_by_convention() {
        let mapped = |metadata: Vec<(&'static str, &'static str)>| {
            let none: &[(String, String)] = &[];
            let sources = unmapped(none, metadata.into_iter(), Some(true));
            Sources { is_mapped: |name| name == "lm_head.weight", ..sources }
        };
        let stored = ["model.embed_tokens.weight"];
        assert_eq!(aliases(&stored, mapped(Vec::new())), []);
        let recorded = vec![("lm_head.weight", "model.embed_tokens.weight")];
        let [(_, _, rule)] = &aliases(&stored, mapped(recorded))[..] else { panic!() };
        assert_eq!(*rule, AliasRule::Metadata);
    }

    #[test]
    fn a_stored_head_is_never_hidden() {
        let stored = ["model.embed_tokens.weight", "lm_head.weight"];
        assert_eq!(aliases(&stored, sources(Some(true))), []);
    }

    #[test]
    fn t5_shares_one_embedding_whatever_the_flag_says() {
        let names: Vec<_> =
            aliases(&["shared.weight"], sources(Some(false))).into_iter().map(|a| a.0).collect();
        assert_eq!(names, ["decoder.embed_tokens.weight", "encoder.embed_tokens.weight"]);
    }

    #[test]
    fn metadata_entries_count_only_between_a_free_name_and_a_stored_tensor() {
        let metadata = vec![("format", "pt"), ("head", "emb"), ("emb", "head"), ("x", "gone")];
        let sources = unmapped(&[], metadata.into_iter(), None);
        assert_eq!(
            aliases(&["emb"], sources),
            [("head".into(), "emb".into(), AliasRule::Metadata)]
        );
    }

    #[test]
    fn the_caller_comes_before_metadata_and_convention() {
        let declared = [("lm_head.weight".to_owned(), "b".to_owned())];
        let metadata = vec![("lm_head.weight", "model.embed_tokens.weight")];
        let sources = unmapped(&declared, metadata.into_iter(), Some(true));
        assert_eq!(
            aliases(&["b", "model.embed_tokens.weight"], sources),
            [("lm_head.weight".into(), "b".into(), AliasRule::Declared)]
        );
    }
}
