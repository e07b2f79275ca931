//! Tied tensors: the names under which model code uses a tensor that is stored once.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use tensorfile::Quoted;

/// The stored names of a model.
pub(crate) trait Stored {
    /// Whether a tensor is stored under this name.
    fn has(&self, name: &str) -> bool;

    /// Whether any stored name is accepted; visits all of them.
    fn any(&self, accept: impl FnMut(&str) -> bool) -> bool;
}

/// What a name may stand for: the first stored of these.
type Ties = &'static [(&'static str, &'static [&'static str])];

/// What precedes the names of a language model within another one.
const PREFIXES: &[&str] = &[
    "",
    "language_model.",
    "model.language_model.",
    "text_model.",
    "llm.",
    "thinker.",
    "talker.",
    "text_decoder.",
];

/// Output heads and the embeddings they share, as named in model code.
const HEADS: Ties = &[
    (
        "lm_head.weight",
        &[
            "model.embed_tokens.weight",
            "model.language_model.embed_tokens.weight",
            "language_model.model.embed_tokens.weight",
            "model.text_model.embed_tokens.weight",
            "language_model.embed_tokens.weight",
            "embed_tokens.weight",
            "transformer.wte.weight",
            "wte.weight",
            "transformer.word_embeddings.weight",
            "word_embeddings.weight",
            "backbone.embeddings.weight",
            "backbone.embedding.weight",
            "transformer.tokens_embed.weight",
            "model.decoder.embed_tokens.weight",
            "decoder.embed_tokens.weight",
            "model.shared.weight",
            "shared.weight",
            "encoder.embed_tokens.weight",
        ],
    ),
    ("embed_out.weight", &["gpt_neox.embed_in.weight", "embed_in.weight"]),
    ("output.weight", &["model.tok_embeddings.weight", "tok_embeddings.weight"]),
    ("transformer.output_layer.weight", &["transformer.embedding.word_embeddings.weight"]),
    ("proj_out.weight", &["model.decoder.embed_tokens.weight"]),
    (
        "cls.predictions.decoder.weight",
        &["bert.embeddings.word_embeddings.weight", "deberta.embeddings.word_embeddings.weight"],
    ),
    ("cls.predictions.decoder.bias", &["cls.predictions.bias"]),
    (
        "lm_head.decoder.weight",
        &["roberta.embeddings.word_embeddings.weight", "mpnet.embeddings.word_embeddings.weight"],
    ),
    ("lm_head.decoder.bias", &["lm_head.bias"]),
    ("predictions.decoder.weight", &["albert.embeddings.word_embeddings.weight"]),
    ("predictions.decoder.bias", &["predictions.bias"]),
    ("vocab_projector.weight", &["distilbert.embeddings.word_embeddings.weight"]),
    ("generator_lm_head.weight", &["electra.embeddings.word_embeddings.weight"]),
    ("decoder.weight", &["model.embeddings.tok_embeddings.weight"]),
    ("lm_loss.weight", &["transformer.word_embedding.weight"]),
];

/// Embeddings shared by encoder and decoder whatever `tie_word_embeddings` says: it concerns the
/// head only.
const SHARED: Ties = &[
    ("encoder.embed_tokens.weight", &["shared.weight"]),
    ("decoder.embed_tokens.weight", &["shared.weight"]),
    ("model.encoder.embed_tokens.weight", &["model.shared.weight"]),
    ("model.decoder.embed_tokens.weight", &["model.shared.weight"]),
];

/// The same in the classes of [`T5`] and [`BART`], of which some files lack the shared name.
const UNSHARED: Ties = &[
    ("shared.weight", &["encoder.embed_tokens.weight", "decoder.embed_tokens.weight"]),
    ("encoder.embed_tokens.weight", &["decoder.embed_tokens.weight"]),
    ("decoder.embed_tokens.weight", &["encoder.embed_tokens.weight"]),
    (
        "model.shared.weight",
        &["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"],
    ),
    ("model.encoder.embed_tokens.weight", &["model.decoder.embed_tokens.weight"]),
    ("model.decoder.embed_tokens.weight", &["model.encoder.embed_tokens.weight"]),
];

/// Model types whose encoder and decoder always share one embedding.
const T5: &[&str] = &["t5", "mt5", "umt5", "longt5", "switch_transformers"];

/// Model types whose encoder and decoder share one embedding unless both store their own.
const BART: &[&str] = &[
    "bart",
    "bigbird_pegasus",
    "blenderbot",
    "blenderbot-small",
    "florence2",
    "led",
    "m2m_100",
    "marian",
    "mbart",
    "mvp",
    "nllb-moe",
    "pegasus",
    "plbart",
];

/// Embeddings of model types, and the head of which each is a copy if only the head is stored.
const BY_CLASS: &[(&str, &str, &[&str])] = &[
    ("transformer.wte.weight", "lm_head.weight", &["gpt2", "gpt_bigcode", "gptj", "codegen"]),
    ("transformer.wte.weight", "lm_head.weight", &["gpt_neo", "mpt"]),
    ("transformer.word_embeddings.weight", "lm_head.weight", &["bloom", "falcon"]),
    ("backbone.embeddings.weight", "lm_head.weight", &["mamba", "mamba2", "falcon_mamba"]),
    ("gpt_neox.embed_in.weight", "embed_out.weight", &["gpt_neox", "gpt_neox_japanese"]),
    ("model.decoder.embed_tokens.weight", "lm_head.weight", &["opt"]),
    ("model.decoder.embed_tokens.weight", "proj_out.weight", &["whisper"]),
    ("model.shared.weight", "lm_head.weight", &["bart", "mbart", "pegasus", "marian"]),
    ("shared.weight", "lm_head.weight", T5),
    ("encoder.embed_tokens.weight", "lm_head.weight", T5),
    ("decoder.embed_tokens.weight", "lm_head.weight", T5),
    (
        "model.embed_tokens.weight",
        "lm_head.weight",
        &["llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma"],
    ),
    (
        "model.embed_tokens.weight",
        "lm_head.weight",
        &["gemma2", "gemma3_text", "phi", "phi3", "cohere", "cohere2", "olmo", "olmo2"],
    ),
    (
        "model.embed_tokens.weight",
        "lm_head.weight",
        &["granite", "starcoder2", "stablelm", "smollm3", "deepseek_v2", "deepseek_v3", "glm4"],
    ),
];

/// Ends of the names of embeddings that are shared in some model.
const EMBEDDINGS: &[&str] = &[
    "embed_tokens.weight",
    "shared.weight",
    "wte.weight",
    "word_embeddings.weight",
    "word_embedding.weight",
    "tok_embeddings.weight",
    "tokens_embed.weight",
    "embeddings.weight",
    "embedding.weight",
    "embed_in.weight",
];

/// Ends of the names of heads.
const HEAD_ENDS: &[&str] = &[
    "lm_head.weight",
    "embed_out.weight",
    "proj_out.weight",
    "output.weight",
    "output_layer.weight",
    "decoder.weight",
    "vocab_projector.weight",
    "lm_loss.weight",
];

/// Calls `add` with each name that the conventions of model code give to a stored tensor: name and
/// stored name. `tied` is `tie_word_embeddings` of the configuration, `model_type` its type.
///
/// A head is tied unless the flag is false; an embedding is tied to the head only if the flag is
/// true and no embedding is stored.
pub(crate) fn by_convention(
    stored: &impl Stored,
    tied: Option<bool>,
    model_type: Option<&str>,
    mut add: impl FnMut(String, String),
) {
    let first = |prefix: &str, targets: &[&str]| {
        let mut names = targets.iter().map(|target| format!("{prefix}{target}"));
        names.find(|target| stored.has(target))
    };
    let [is_t5, is_bart] =
        [T5, BART].map(|classes| model_type.is_some_and(|class| classes.contains(&class)));
    for prefix in PREFIXES {
        for (name, targets) in HEADS.iter().filter(|_| tied != Some(false)).chain(SHARED) {
            if let Some(target) = first(prefix, targets) {
                add(format!("{prefix}{name}"), target);
            }
        }
        for (name, targets) in UNSHARED.iter().filter(|_| is_t5 || is_bart) {
            let found = targets.iter().filter(|target| stored.has(&format!("{prefix}{target}")));
            let is_one = is_t5 || found.count() == 1;
            if let Some(target) = first(prefix, targets).filter(|_| is_one) {
                add(format!("{prefix}{name}"), target);
            }
        }
    }
    if tied == Some(true) {
        only_head(stored, model_type, add);
    }
}

/// The embeddings of a model of which only the head is stored.
fn only_head(stored: &impl Stored, model_type: Option<&str>, mut add: impl FnMut(String, String)) {
    let class = model_type.unwrap_or_default();
    let mut of_class: Vec<(&str, &str)> = BY_CLASS
        .iter()
        .filter(|(_, _, classes)| classes.contains(&class))
        .map(|(embedding, head, _)| (*embedding, *head))
        .collect();
    if of_class.is_empty() {
        of_class.push(("model.embed_tokens.weight", "lm_head.weight"));
        if !stored.has("lm_head.weight") || !stored.any(|name| name.starts_with("model.layers.")) {
            return;
        }
    }
    // Any stored embedding may be the one that is shared, whatever its name.
    if of_class.iter().all(|(_, head)| !stored.has(head)) || stored.any(is_embedding) {
        return;
    }
    for (embedding, head) in of_class {
        add(embedding.to_owned(), head.to_owned());
    }
}

fn is_embedding(name: &str) -> bool {
    EMBEDDINGS.iter().any(|end| ends_with_segments(name, end))
}

fn is_head(name: &str) -> bool {
    HEAD_ENDS.iter().any(|end| ends_with_segments(name, end))
}

/// Whether a name ends with these dotted segments.
fn ends_with_segments(name: &str, end: &str) -> bool {
    name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The end of a "no tensor" message for a name that some models tie: the stored tensor that it
/// may stand for. Empty if there is none, or more than one.
pub(crate) fn hint<'a, I: Iterator<Item = &'a str>>(asked: &str, names: impl Fn() -> I) -> String {
    let only = |accept: fn(&str) -> bool| {
        let mut found = names().filter(|name| accept(name));
        found.next().filter(|_| found.next().is_none())
    };
    let likely = match (is_head(asked), is_embedding(asked)) {
        (true, _) => only(is_embedding),
        (_, true) if names().any(is_embedding) => only(is_embedding),
        (_, true) => only(is_head),
        _ => None,
    };
    likely.map_or_else(String::new, |likely| {
        let likely = Quoted(likely);
        format!("; it may be a second name of {likely} (OpenOptions::aliases declares one)")
    })
}

#[cfg(test)]
mod tests {
    use super::{Stored, by_convention, hint};

    impl Stored for [&str] {
        fn has(&self, name: &str) -> bool {
            self.contains(&name)
        }

        fn any(&self, accept: impl FnMut(&str) -> bool) -> bool {
            self.iter().copied().any(accept)
        }
    }

    struct Names<'a>(&'a [&'a str]);

    impl Stored for Names<'_> {
        fn has(&self, name: &str) -> bool {
            self.0.has(name)
        }

        fn any(&self, accept: impl FnMut(&str) -> bool) -> bool {
            self.0.any(accept)
        }
    }

    /// The stored name that `asked` stands for.
    fn stands_for(stored: &[&str], tied: Option<bool>, class: &str, asked: &str) -> Option<String> {
        let mut found = None;
        by_convention(&Names(stored), tied, Some(class), |name, target| {
            if name == asked && !stored.has(asked) {
                found.get_or_insert(target);
            }
        });
        found
    }

    #[test]
    fn heads_are_tied_by_the_names_of_each_class() {
        for (class, stored, asked) in [
            ("bloom", "transformer.word_embeddings.weight", "lm_head.weight"),
            ("bloom", "word_embeddings.weight", "lm_head.weight"),
            ("mamba", "backbone.embeddings.weight", "lm_head.weight"),
            ("mamba", "backbone.embedding.weight", "lm_head.weight"),
            ("nemotron_parse", "decoder.embed_tokens.weight", "lm_head.weight"),
            ("llava", "language_model.model.embed_tokens.weight", "language_model.lm_head.weight"),
            ("llava", "language_model.model.embed_tokens.weight", "lm_head.weight"),
            ("qwen2", "embed_tokens.weight", "lm_head.weight"),
            ("qwen2_5_omni", "thinker.model.embed_tokens.weight", "thinker.lm_head.weight"),
            ("modernbert", "model.embeddings.tok_embeddings.weight", "decoder.weight"),
            ("gpt_neox", "gpt_neox.embed_in.weight", "embed_out.weight"),
            ("roberta", "roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight"),
            (
                "distilbert",
                "distilbert.embeddings.word_embeddings.weight",
                "vocab_projector.weight",
            ),
            ("whisper", "model.decoder.embed_tokens.weight", "proj_out.weight"),
        ] {
            for tied in [Some(true), None] {
                let found = stands_for(&[stored], tied, class, asked);
                assert_eq!(found.as_deref(), Some(stored), "{class} {asked} {tied:?}");
            }
            assert_eq!(stands_for(&[stored], Some(false), class, asked), None, "{class} {asked}");
        }
    }

    #[test]
    fn encoder_and_decoder_share_whichever_embedding_is_stored() {
        let (encoder, decoder) = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight");
        let shared = "shared.weight";
        for prefix in ["", "model."] {
            let [encoder, decoder, shared] =
                [encoder, decoder, shared].map(|name| format!("{prefix}{name}"));
            for (stored, asked) in [
                (&encoder, &shared),
                (&decoder, &shared),
                (&shared, &encoder),
                (&shared, &decoder),
                (&encoder, &decoder),
                (&decoder, &encoder),
            ] {
                let head = "lm_head.weight";
                for class in ["t5", "bart"] {
                    let found = stands_for(&[stored, head], Some(false), class, asked);
                    assert_eq!(found.as_ref(), Some(stored), "{class} {asked}");
                }
            }
            let both = [&*encoder, &*decoder];
            assert_eq!(stands_for(&both, None, "t5", &shared).as_deref(), Some(&*encoder));
            assert_eq!(stands_for(&both, None, "bart", &shared), None);
            // A decoder alone has no encoder whose embedding it shares.
            assert_eq!(stands_for(&[&decoder], None, "whisper", &encoder), None);
        }
    }

    #[test]
    fn an_embedding_is_the_head_only_by_the_flag_and_without_another_embedding() {
        let head = &["lm_head.weight"][..];
        let embedding = "model.embed_tokens.weight";
        let asked = |stored, tied, class| stands_for(stored, tied, class, embedding);
        assert_eq!(asked(head, Some(true), "llama").as_deref(), Some("lm_head.weight"));
        for tied in [None, Some(false)] {
            assert_eq!(asked(head, tied, "llama"), None);
        }
        let elsewhere = ["lm_head.weight", "x.embed_tokens.weight"];
        assert_eq!(asked(&elsewhere, Some(true), "llama"), None);
        // Of an unknown class, the names on disk decide.
        assert_eq!(asked(head, Some(true), "other"), None);
        let layers = ["lm_head.weight", "model.layers.0.mlp.weight"];
        assert_eq!(asked(&layers, Some(true), "other").as_deref(), Some("lm_head.weight"));
        let bloom = stands_for(head, Some(true), "bloom", "transformer.word_embeddings.weight");
        assert_eq!(bloom.as_deref(), Some("lm_head.weight"));
        // The head of a T5 model may be of its own.
        let madlad = ["decoder.embed_tokens.weight", "lm_head.weight"];
        for asked in ["shared.weight", "encoder.embed_tokens.weight"] {
            let found = stands_for(&madlad, Some(true), "t5", asked);
            assert_eq!(found.as_deref(), Some("decoder.embed_tokens.weight"));
        }
    }

    #[test]
    fn an_error_hints_at_the_one_tensor_that_it_may_be() {
        let says = |asked, stored: &[&str]| hint(asked, || stored.iter().copied());
        let likely = says("lm_head.weight", &["x.wte.weight", "x.h.0.weight"]);
        assert!(likely.contains("a second name of \"x.wte.weight\""), "{likely}");
        let embedding = says("x.wte.weight", &["y.lm_head.weight", "z"]);
        assert!(embedding.contains("\"y.lm_head.weight\""), "{embedding}");
        let other = says("shared.weight", &["a.embed_tokens.weight", "lm_head.weight"]);
        assert!(other.contains("\"a.embed_tokens.weight\""), "{other}");
        for (asked, stored) in [
            ("lm_head.weight", &["a.wte.weight", "b.wte.weight"][..]),
            ("mlp.weight", &["a.wte.weight"]),
            ("lm_head.weight", &["my_embed_tokens.weight"]),
        ] {
            assert_eq!(says(asked, stored), "", "{asked}");
        }
    }
}
