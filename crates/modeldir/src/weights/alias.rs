//! Aliases: names that stand for a tensor stored under another name, such as tied weights.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use tensorfile::Quoted;

/// A name that is not stored and refers to a tensor stored under another name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Alias {
    /// The name, which is not stored.
    pub name: String,
    /// The name of the stored tensor.
    pub target: String,
    /// Why it is an alias.
    pub rule: AliasRule,
}

impl Alias {
    /// The end of the "no tensor" message for a name that is this alias.
    pub(crate) fn hint(&self) -> String {
        format!("; it is tied to {}, which is not here: {}", Quoted(&self.target), self.rule)
    }
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

    /// The name under which a tensor is stored: the target of an alias, or the name itself.
    pub(crate) fn target<'a>(&'a self, name: &'a str) -> &'a str {
        self.get(name).map_or(name, |alias| &alias.target)
    }
}

/// The inputs that decide about aliases, apart from the names on disk.
#[derive(Debug)]
pub(crate) struct AliasSources<'a, M> {
    /// Pairs of name and target declared by the caller.
    pub(crate) declared: &'a [(String, String)],
    /// Entries of index and shard metadata; most are not aliases.
    pub(crate) metadata: M,
    /// `tie_word_embeddings` of the configuration, if present.
    pub(crate) tied: Option<bool>,
}

/// Output heads and the embeddings they share, as named in model code. The first stored embedding
/// wins.
const TIED_TO_FLAG: &[(&str, &[&str])] = &[
    (
        "lm_head.weight",
        &[
            "model.embed_tokens.weight",
            "model.language_model.embed_tokens.weight",
            "language_model.model.embed_tokens.weight",
            "transformer.wte.weight",
            "wte.weight",
            "transformer.word_embeddings.weight",
            "model.decoder.embed_tokens.weight",
            "model.shared.weight",
            "shared.weight",
        ],
    ),
    ("proj_out.weight", &["model.decoder.embed_tokens.weight"]),
    ("cls.predictions.decoder.weight", &["bert.embeddings.word_embeddings.weight"]),
    ("cls.predictions.decoder.bias", &["cls.predictions.bias"]),
];

/// Embeddings shared by encoder and decoder whatever `tie_word_embeddings` says: it concerns the
/// head only.
const ALWAYS_TIED: &[(&str, &[&str])] = &[
    ("encoder.embed_tokens.weight", &["shared.weight"]),
    ("decoder.embed_tokens.weight", &["shared.weight"]),
    ("model.encoder.embed_tokens.weight", &["model.shared.weight"]),
    ("model.decoder.embed_tokens.weight", &["model.shared.weight"]),
];

/// Finds the aliases of a model. A stored tensor is never hidden by an alias.
///
/// The second value is the number of metadata entries left out because of [`MAX_FROM_METADATA`].
pub(crate) fn find<'a>(
    is_stored: impl Fn(&str) -> bool,
    sources: AliasSources<'a, impl Iterator<Item = (&'a str, &'a str)>>,
) -> (Aliases, usize) {
    let mut found: BTreeMap<&'a str, (&'a str, AliasRule)> = BTreeMap::new();
    let (mut from_metadata, mut left_out) = (0_usize, 0_usize);
    let mut add = |name: &'a str, target: &'a str, rule: AliasRule| {
        if is_stored(name) || !is_stored(target) || found.contains_key(name) {
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
        add(name, target, AliasRule::Declared);
    }
    for (name, target) in sources.metadata {
        add(name, target, AliasRule::Metadata);
    }
    let by_flag = TIED_TO_FLAG.iter().filter(|_| sources.tied != Some(false));
    for (name, targets) in by_flag.chain(ALWAYS_TIED) {
        if let Some(target) = targets.iter().find(|target| is_stored(target)) {
            add(name, target, AliasRule::TiedEmbedding);
        }
    }
    let alias = |(name, (target, rule)): (&str, (&str, AliasRule))| Alias {
        name: name.to_owned(),
        target: target.to_owned(),
        rule,
    };
    (Aliases(found.into_iter().map(alias).collect()), left_out)
}

#[cfg(test)]
mod tests {
    use super::{Alias, AliasRule, AliasSources, MAX_FROM_METADATA, find};

    type Sources<'a> = AliasSources<'a, std::vec::IntoIter<(&'a str, &'a str)>>;

    fn aliases(stored: &[&str], sources: Sources<'_>) -> Vec<(String, String, AliasRule)> {
        let (found, left_out) = find(|name| stored.contains(&name), sources);
        assert_eq!(left_out, 0);
        let shown = |alias: &Alias| (alias.name.clone(), alias.target.clone(), alias.rule);
        found.iter().map(shown).collect()
    }

    fn sources(tied: Option<bool>) -> Sources<'static> {
        AliasSources { declared: &[], metadata: Vec::new().into_iter(), tied }
    }

    #[test]
    fn metadata_cannot_make_aliases_without_end() {
        let names: Vec<String> = (0..MAX_FROM_METADATA + 3).map(|i| i.to_string()).collect();
        let metadata = names.iter().map(|name| (name.as_str(), "shared.weight"));
        let declared = ["a", "b"].map(|name| (name.to_owned(), "shared.weight".to_owned()));
        let sources = AliasSources { declared: &declared, metadata, tied: None };
        let (found, left_out) = find(|name| name == "shared.weight", sources);
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
        let sources = AliasSources { declared: &declared, metadata, tied: None };
        let (found, left_out) = find(|name| name == "w", sources);
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
        let sources = AliasSources {
            declared: &[],
            metadata: vec![("format", "pt"), ("head", "emb"), ("emb", "head"), ("x", "gone")]
                .into_iter(),
            tied: None,
        };
        assert_eq!(
            aliases(&["emb"], sources),
            [("head".into(), "emb".into(), AliasRule::Metadata)]
        );
    }

    #[test]
    fn the_caller_comes_before_metadata_and_convention() {
        let declared = [("lm_head.weight".to_owned(), "b".to_owned())];
        let sources = AliasSources {
            declared: &declared,
            metadata: vec![("lm_head.weight", "model.embed_tokens.weight")].into_iter(),
            tied: Some(true),
        };
        assert_eq!(
            aliases(&["b", "model.embed_tokens.weight"], sources),
            [("lm_head.weight".into(), "b".into(), AliasRule::Declared)]
        );
    }
}
