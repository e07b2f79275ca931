//! The float type that a configuration names, written anew for weights that have another.

use super::names::{DTYPE, NESTED};
use crate::json;

/// The text of a configuration that names this float type wherever it names one for the whole model
/// or its language model. No other character changes; `auto` stays.
pub(crate) fn with_dtype(text: &str, dtype: &str) -> String {
    let scopes = [""].into_iter().chain(NESTED);
    let in_scope = |scope: &'static str| {
        let keys = scope.split('.').filter(|key| !key.is_empty());
        DTYPE.map(|key| keys.clone().chain([key]).collect())
    };
    let mut paths: Vec<Vec<&str>> = scopes.flat_map(in_scope).collect();
    // One type for each part of the model; the first is that of parts without one.
    paths.extend(DTYPE.iter().flat_map(|key| ["", "text_config"].map(|part| vec![*key, part])));
    json::replace_strings(text, &paths, dtype, |found| found != "auto")
}

#[cfg(test)]
mod tests {
    use super::with_dtype;
    use crate::ModelConfig;

    #[test]
    fn the_type_is_named_where_it_was_and_nowhere_else() {
        let text = r#"{"torch_dtype": "float32", "model_type": "x", "text_config": {"dtype": "float32"},
            "vision_config": {"dtype": "float32"}, "thinker_config": {"text_config": {"dtype": "float32"}}}"#;
        let expected = r#"{"torch_dtype": "bfloat16", "model_type": "x", "text_config": {"dtype": "bfloat16"},
            "vision_config": {"dtype": "float32"}, "thinker_config": {"text_config": {"dtype": "bfloat16"}}}"#;
        assert_eq!(with_dtype(text, "bfloat16"), expected);
        for same in [r#"{"hidden_size": 8}"#, r#"{"dtype": "auto"}"#, r#"{"bf16": true}"#] {
            assert_eq!(with_dtype(same, "float16"), same);
        }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        for text in [
            r#"{"dtype": "float16"}"#,
            r#"{"torch_dtype": "torch.float16"}"#,
            r#"{"dtype": {"": "float16", "vision_config": "float16"}}"#,
            r#"{"dtype": {"text_config": "float16"}}"#,
            r#"{"llm_config": {"torch_dtype": "float16"}}"#,
        ] {
            let text = with_dtype(text, "float32");
            let config = ModelConfig::from_json("config.json", text.as_bytes()).unwrap();
            assert_eq!(config.dtype(), Some("float32"), "{text}");
        }
    }
}
