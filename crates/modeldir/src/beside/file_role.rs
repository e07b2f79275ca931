//! The roles of the files beside the weights, and the names of each.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::fmt;

/// The purpose of a file beside the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FileRole {
    /// The whole tokenizer as JSON: `tokenizer.json`, or a version of it listed in
    /// `fast_tokenizer_files` of the tokenizer's configuration.
    Tokenizer,
    /// The tokenizer's configuration.
    TokenizerConfig,
    /// The special tokens by their use.
    SpecialTokensMap,
    /// The tokens added to the vocabulary.
    AddedTokens,
    /// A vocabulary as JSON, usually with [`Merges`](Self::Merges) beside it; of a translation
    /// model, that of the source language.
    VocabJson,
    /// The vocabulary of the target language of a translation model, as JSON.
    TargetVocabJson,
    /// The merges of a byte-pair vocabulary.
    Merges,
    /// A vocabulary with one token per line.
    VocabText,
    /// A sentencepiece model; of a translation model, that of the source language.
    SentencePiece,
    /// The sentencepiece model of the target language of a translation model.
    TargetSentencePiece,
    /// The tokenizer of Mistral's own releases.
    Tekken,
    /// A tiktoken vocabulary.
    Tiktoken,
    /// The chat template.
    ChatTemplate,
    /// The chat template in the former format of processors.
    ChatTemplateJson,
    /// How images or sounds are prepared.
    Preprocessor,
    /// How the parts of an input are put together.
    Processor,
    /// How videos are prepared.
    VideoPreprocessor,
    /// The model that makes tokens of sounds.
    AudioTokenizer,
    /// The modules of a sentence-transformers model.
    Modules,
    /// The configuration of a sentence-transformers model.
    SentenceTransformers,
    /// The configuration of the transformer module of a sentence-transformers model.
    SentenceBert,
}

impl FileRole {
    /// Every role, in the order of the variants.
    pub const ALL: &'static [Self] = &[
        Self::Tokenizer,
        Self::TokenizerConfig,
        Self::SpecialTokensMap,
        Self::AddedTokens,
        Self::VocabJson,
        Self::TargetVocabJson,
        Self::Merges,
        Self::VocabText,
        Self::SentencePiece,
        Self::TargetSentencePiece,
        Self::Tekken,
        Self::Tiktoken,
        Self::ChatTemplate,
        Self::ChatTemplateJson,
        Self::Preprocessor,
        Self::Processor,
        Self::VideoPreprocessor,
        Self::AudioTokenizer,
        Self::Modules,
        Self::SentenceTransformers,
        Self::SentenceBert,
    ];

    /// The names that a file of this role may have; the first present in a directory wins.
    ///
    /// Not listed are the versioned names of the tokenizer; for sentencepiece models
    /// `tokenizer.model.vN`, any name that ends in `.spm`, and names such as
    /// `tokenizer_spm_32k_3.model`; for tiktoken vocabularies any name that ends in `.tiktoken`.
    /// `prophetnet.tokenizer` is a sentencepiece model in XLM-ProphetNet, and a list of tokens in
    /// ProphetNet.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Tokenizer => &["tokenizer.json"],
            Self::TokenizerConfig => &["tokenizer_config.json"],
            Self::SpecialTokensMap => &["special_tokens_map.json"],
            Self::AddedTokens => &["added_tokens.json"],
            Self::VocabJson => &["vocab.json", "vocab-src.json"],
            Self::TargetVocabJson => &["target_vocab.json", "vocab-tgt.json"],
            Self::Merges => &["merges.txt", "bpe.codes"],
            Self::VocabText => &["vocab.txt"],
            Self::SentencePiece => &[
                "spiece.model",
                "tokenizer.model",
                "sentencepiece.bpe.model",
                "sentencepiece.model",
                "source.spm",
                "spm.model",
                "spm_char.model",
                "prophetnet.tokenizer",
                "ice_text.model",
            ],
            Self::TargetSentencePiece => &["target.spm"],
            Self::Tekken => &["tekken.json"],
            Self::Tiktoken => &["tiktoken.model", "qwen.tiktoken"],
            Self::ChatTemplate => &["chat_template.jinja"],
            Self::ChatTemplateJson => &["chat_template.json"],
            Self::Preprocessor => &["preprocessor_config.json"],
            Self::Processor => &["processor_config.json"],
            Self::VideoPreprocessor => &["video_preprocessor_config.json"],
            Self::AudioTokenizer => &["audio_tokenizer_config.json"],
            Self::Modules => &["modules.json"],
            Self::SentenceTransformers => &["config_sentence_transformers.json"],
            Self::SentenceBert => &[
                "sentence_bert_config.json",
                "sentence_roberta_config.json",
                "sentence_distilbert_config.json",
                "sentence_camembert_config.json",
                "sentence_albert_config.json",
                "sentence_xlm-roberta_config.json",
                "sentence_xlnet_config.json",
            ],
        }
    }

    /// The first of its [`names`](Self::names).
    pub(crate) fn name(self) -> &'static str {
        self.names().first().copied().unwrap_or_default()
    }

    /// The best of these names that has this role.
    pub(crate) fn find<'n>(self, names: &[&'n str]) -> Option<&'n str> {
        let listed = |name: &&str| names.iter().copied().find(|listed| listed == name);
        self.names().iter().find_map(listed).or_else(|| self.find_pattern(names))
    }

    /// The first name that matches the role's pattern.
    fn find_pattern<'n>(self, names: &[&'n str]) -> Option<&'n str> {
        let names = names.iter().copied().filter(|name| !name.starts_with('.'));
        match self {
            Self::SentencePiece => {
                let versions =
                    names.clone().filter_map(|name| Some((mistral_version(name)?, name)));
                let newest = versions.max().map(|(_, name)| name);
                newest.or_else(|| names.filter(|name| is_sentencepiece(name)).min())
            }
            Self::Tiktoken => names.filter(|name| name.ends_with(".tiktoken")).min(),
            _ => None,
        }
    }
}

impl fmt::Display for FileRole {
    /// Writes the first of the role's names, such as `tokenizer.json`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a name of no fixed form is that of a sentencepiece model.
fn is_sentencepiece(name: &str) -> bool {
    if name == "target.spm" {
        return false;
    }
    let stem = name.strip_suffix(".model").unwrap_or_default();
    let parts = || stem.split(['_', '-', '.']);
    name.ends_with(".spm") || parts().any(|part| matches!(part, "spm" | "spiece" | "sentencepiece"))
}

/// The version in a name such as `tokenizer.model.v3` or `tokenizer.model.v7m1`.
fn mistral_version(name: &str) -> Option<u32> {
    let version = name.strip_prefix("tokenizer.model.v")?;
    let digits = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version.get(..digits)?.parse().ok()
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "of small lists")]
mod tests {
    use super::FileRole;

    #[test]
    fn every_role_is_listed_once_and_in_order() {
        assert!(FileRole::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(FileRole::SentenceBert as usize + 1, FileRole::ALL.len());
    }

    #[test]
    fn the_first_name_of_a_role_counts() {
        let cases: [(FileRole, &[&str], Option<&str>); 18] = [
            (FileRole::SentencePiece, &["spm.model", "x.spm"], Some("spm.model")),
            (FileRole::SentencePiece, &["spm_char.model"], Some("spm_char.model")),
            (FileRole::SentencePiece, &["target.spm", "source.spm"], Some("source.spm")),
            (FileRole::SentencePiece, &["target.spm", "de.spm", "._a.spm"], Some("de.spm")),
            (FileRole::TargetSentencePiece, &["target.spm", "source.spm"], Some("target.spm")),
            (FileRole::SentencePiece, &["prophetnet.tokenizer"], Some("prophetnet.tokenizer")),
            (
                FileRole::SentencePiece,
                &["tokenizer_spm_32k_3.model", "m.model", "spm.txt"],
                Some("tokenizer_spm_32k_3.model"),
            ),
            (FileRole::VocabJson, &["vocab-tgt.json", "vocab-src.json"], Some("vocab-src.json")),
            (FileRole::TargetVocabJson, &["target_vocab.json"], Some("target_vocab.json")),
            (FileRole::Tokenizer, &["config.json", "tokenizer.json"], Some("tokenizer.json")),
            (FileRole::Tokenizer, &["tokenizer.4.0.json", "Tokenizer.json"], None),
            (FileRole::SentencePiece, &["spiece.model", "tokenizer.model"], Some("spiece.model")),
            (
                FileRole::SentencePiece,
                &["tokenizer.model", "tokenizer.model.v3"],
                Some("tokenizer.model"),
            ),
            (
                FileRole::SentencePiece,
                &["tokenizer.model.v10", "tokenizer.model.v3"],
                Some("tokenizer.model.v10"),
            ),
            (
                FileRole::SentencePiece,
                &["tokenizer.model.v7m1", "tokenizer.model.vx"],
                Some("tokenizer.model.v7m1"),
            ),
            (FileRole::Tiktoken, &["a.tiktoken", "qwen.tiktoken"], Some("qwen.tiktoken")),
            (
                FileRole::Tiktoken,
                &["._a.tiktoken", "multilingual.tiktoken"],
                Some("multilingual.tiktoken"),
            ),
            (
                FileRole::SentenceBert,
                &["sentence_xlnet_config.json"],
                Some("sentence_xlnet_config.json"),
            ),
        ];
        for (role, names, found) in cases {
            assert_eq!(role.find(names), found, "{role:?} in {names:?}");
        }
    }
}
