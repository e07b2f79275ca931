//! Names of tensors that are stored once and used twice: tied weights.

use std::collections::BTreeMap;
use std::fmt;

use tensorfile::Quoted;

/// A name that stands for a tensor stored under another name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alias {
    /// The name that is not stored.
    pub name: String,
    /// The name of the tensor that it stands for.
    pub target: String,
    /// Why it is an alias.
    pub rule: AliasRule,
}

impl Alias {
    /// What to add to "no tensor" where the name is this alias.
    pub(crate) fn hint(&self) -> String {
        format!("; it is tied to {}: {} (get follows it)", Quoted(&self.target), self.rule)
    }
}

/// Which rule made a name an alias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum AliasRule {
    /// The caller asked for it, in [`OpenOptions::aliases`](crate::OpenOptions).
    Declared,
    /// The metadata of a shard or of the index records it, as `save_model` of the Python library
    /// and `save_torch_state_dict` do.
    Metadata,
    /// The name is an output head or a copy of the embedding by the conventions of model code,
    /// and `tie_word_embeddings` is not false.
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

/// The aliases of a model, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aliases(Vec<Alias>);

impl Aliases {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Alias> {
        self.0.iter()
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

/// What decides about aliases, beside the names on disk.
#[derive(Debug)]
pub(crate) struct AliasSources<'a> {
    /// Pairs of name and target that the caller wants.
    pub(crate) declared: &'a [(String, String)],
    /// Entries of index and shard metadata, of which most are no aliases.
    pub(crate) metadata: Vec<(&'a str, &'a str)>,
    /// `tie_word_embeddings` of the configuration, where it says.
    pub(crate) tied: Option<bool>,
}

/// Output heads and the embeddings they share, as model code names them. The first embedding that
/// is stored is taken.
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

/// Embeddings that encoder and decoder share whatever the flag says: it speaks of the head only.
const ALWAYS_TIED: &[(&str, &[&str])] = &[
    ("encoder.embed_tokens.weight", &["shared.weight"]),
    ("decoder.embed_tokens.weight", &["shared.weight"]),
    ("model.encoder.embed_tokens.weight", &["model.shared.weight"]),
    ("model.decoder.embed_tokens.weight", &["model.shared.weight"]),
];

/// Finds the aliases of a model. None hides a stored tensor: presence on disk decides first.
pub(crate) fn find(is_stored: impl Fn(&str) -> bool, sources: &AliasSources<'_>) -> Aliases {
    let mut found = BTreeMap::new();
    let mut add = |name: &str, target: &str, rule: AliasRule| {
        if !is_stored(name) && is_stored(target) {
            found.entry(name.to_owned()).or_insert_with(|| (target.to_owned(), rule));
        }
    };
    for (name, target) in sources.declared {
        add(name, target, AliasRule::Declared);
    }
    for (name, target) in &sources.metadata {
        add(name, target, AliasRule::Metadata);
    }
    let by_flag = TIED_TO_FLAG.iter().filter(|_| sources.tied != Some(false));
    for (name, targets) in by_flag.chain(ALWAYS_TIED) {
        if let Some(target) = targets.iter().find(|target| is_stored(target)) {
            add(name, target, AliasRule::TiedEmbedding);
        }
    }
    Aliases(found.into_iter().map(|(name, (target, rule))| Alias { name, target, rule }).collect())
}

#[cfg(test)]
mod tests {
    use super::{Alias, AliasRule, AliasSources, find};

    fn aliases(stored: &[&str], sources: &AliasSources<'_>) -> Vec<(String, String, AliasRule)> {
        let found = find(|name| stored.contains(&name), sources);
        found.0.into_iter().map(|Alias { name, target, rule }| (name, target, rule)).collect()
    }

    fn sources(tied: Option<bool>) -> AliasSources<'static> {
        AliasSources { declared: &[], metadata: Vec::new(), tied }
    }

    #[test]
    fn a_head_that_is_not_stored_is_the_embedding_unless_the_flag_is_false() {
        let stored = ["model.embed_tokens.weight"];
        for tied in [Some(true), None] {
            let [(name, target, rule)] = &aliases(&stored, &sources(tied))[..] else { panic!() };
            assert_eq!((&**name, &**target), ("lm_head.weight", "model.embed_tokens.weight"));
            assert_eq!(*rule, AliasRule::TiedEmbedding);
        }
        assert_eq!(aliases(&stored, &sources(Some(false))), []);
    }

    #[test]
    fn a_stored_head_is_never_hidden() {
        let stored = ["model.embed_tokens.weight", "lm_head.weight"];
        assert_eq!(aliases(&stored, &sources(Some(true))), []);
    }

    #[test]
    fn t5_shares_one_embedding_whatever_the_flag_says() {
        let names: Vec<_> =
            aliases(&["shared.weight"], &sources(Some(false))).into_iter().map(|a| a.0).collect();
        assert_eq!(names, ["decoder.embed_tokens.weight", "encoder.embed_tokens.weight"]);
    }

    #[test]
    fn metadata_entries_count_only_between_a_free_name_and_a_stored_tensor() {
        let sources = AliasSources {
            declared: &[],
            metadata: vec![("format", "pt"), ("head", "emb"), ("emb", "head"), ("x", "gone")],
            tied: None,
        };
        assert_eq!(
            aliases(&["emb"], &sources),
            [("head".into(), "emb".into(), AliasRule::Metadata)]
        );
    }

    #[test]
    fn the_caller_comes_before_metadata_and_convention() {
        let declared = [("lm_head.weight".to_owned(), "b".to_owned())];
        let sources = AliasSources {
            declared: &declared,
            metadata: vec![("lm_head.weight", "model.embed_tokens.weight")],
            tied: Some(true),
        };
        assert_eq!(
            aliases(&["b", "model.embed_tokens.weight"], &sources),
            [("lm_head.weight".into(), "b".into(), AliasRule::Declared)]
        );
    }
}
