//! Models of several parts: the type of the language model within one.

use serde_json::Value;

use crate::ModelConfig;

/// Model types that wrap a language model, and the type of that one if the configuration does not
/// say. The names of their other parts are known, which are whole on every rank.
const WRAPPERS: [(&str, &str); 24] = [
    ("deepseek_vl", "llama"),
    ("got_ocr2", "qwen2"),
    ("idefics2", "mistral"),
    ("idefics3", "llama"),
    ("internvl", "qwen2"),
    ("internvl_chat", ""),
    ("kimi_vl", "deepseek_v3"),
    ("llava", "llama"),
    ("llava_llama", "llama"),
    ("llava_next", "llama"),
    ("llava_next_video", "llama"),
    ("llava_onevision", "qwen2"),
    ("mistral3", "mistral"),
    ("paligemma", "gemma"),
    ("perception_lm", "llama"),
    ("qwen2_5_vl", "qwen2_5_vl_text"),
    ("qwen2_audio", "qwen2"),
    ("qwen2_vl", "qwen2_vl_text"),
    ("qwen3_vl", "qwen3_vl_text"),
    ("qwen3_vl_moe", "qwen3_vl_moe_text"),
    ("smolvlm", "llama"),
    ("video_llava", "llama"),
    ("vipllava", "llama"),
    ("voxtral", "llama"),
];

/// Where a wrapper keeps the configuration of its language model.
const PARTS: [&str; 3] = ["text_config", "language_config", "llm_config"];

/// The type of the language model within a model of this type; `None` if it wraps none.
pub(super) fn inner_type<'a>(config: &'a ModelConfig, model_type: &str) -> Option<&'a str> {
    let (_, default) = WRAPPERS.iter().find(|(wrapper, _)| *wrapper == model_type)?;
    let parts = PARTS.iter().filter_map(|part| config.raw().get(part)?.get("model_type"));
    let stated = parts.filter_map(Value::as_str).next();
    // An older form of qwen2_vl states its own type for its part.
    let stated = stated.filter(|stated| *stated != model_type);
    stated.or(Some(default)).filter(|inner| !inner.is_empty())
}

/// The model type whose rules a language model within another has.
pub(super) fn rules_of(inner: &str) -> &str {
    match inner {
        "ministral3" => "mistral",
        "qwen2_vl_text" | "qwen2_5_vl_text" => "qwen2",
        "qwen3_vl_text" => "qwen3",
        other => other,
    }
}

/// The type whose class has the defaults for a model of this type.
pub(super) fn class_of(model_type: &str) -> &str {
    match model_type {
        "gemma3" => "gemma3_text",
        "llama4" => "llama4_text",
        other => other,
    }
}

/// The model types that wrap a language model, in order.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    WRAPPERS.iter().map(|(wrapper, _)| *wrapper)
}
