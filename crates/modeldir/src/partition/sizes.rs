//! The numbers of a model that built-in rules need: as its configuration states them, else the
//! defaults of its class in transformers.

use serde_json::Value;

use crate::ModelConfig;

/// Where a configuration keeps the numbers of its language model.
const SCOPES: [&str; 4] = ["", "/text_config", "/language_config", "/llm_config"];

/// Model types whose heads share the width of the residual stream unless the configuration says
/// otherwise.
const DERIVED_HEAD_DIM: [&str; 7] =
    ["llama", "mistral", "mixtral", "phi3", "qwen2", "qwen2_moe", "starcoder2"];

/// The defaults of a class. Configurations within others leave out what equals them.
#[derive(Clone, Copy, Debug)]
struct Defaults {
    hidden: usize,
    query: usize,
    /// As many as query heads if there is no number.
    kv: Option<usize>,
}

const fn defaults(hidden: usize, query: usize, kv: Option<usize>) -> Defaults {
    Defaults { hidden, query, kv }
}

/// The defaults of a class by its model type.
fn defaults_of(model_type: &str) -> Option<Defaults> {
    Some(match model_type {
        "deepseek_v2" => defaults(4096, 32, None),
        "deepseek_v3" => defaults(7168, 128, Some(128)),
        "gemma" => defaults(3072, 16, Some(16)),
        "gemma2" | "gemma3_text" => defaults(2304, 8, Some(4)),
        "glm4" => defaults(4096, 32, Some(2)),
        "gpt_oss" => defaults(2880, 64, Some(8)),
        "llama" => defaults(4096, 32, None),
        "llama4_text" => defaults(5120, 40, Some(8)),
        "mistral" | "mixtral" => defaults(4096, 32, Some(8)),
        "phi3" => defaults(3072, 32, None),
        "qwen2" | "qwen3" | "qwen3_vl_text" => defaults(4096, 32, Some(32)),
        "qwen2_moe" | "qwen3_vl_moe_text" => defaults(2048, 16, Some(16)),
        "qwen2_vl_text" | "qwen2_5_vl_text" => defaults(8192, 64, Some(8)),
        "qwen3_moe" => defaults(2048, 32, Some(4)),
        "starcoder2" => defaults(3072, 24, Some(2)),
        _ => return None,
    })
}

/// The numbers of a language model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// The width of the residual stream.
    pub(super) hidden: Option<usize>,
    pub(super) query: Option<usize>,
    pub(super) kv: Option<usize>,
    /// The width of a head, unless it may differ from what the configuration says.
    pub(super) head_dim: Option<usize>,
    pub(super) experts: Option<usize>,
}

impl Sizes {
    /// The numbers of a model whose language model is of this type.
    ///
    /// Defaults count for a part of a larger configuration, which leaves out what equals them, and
    /// for a whole one that states a width: one that states nothing is no configuration.
    pub(super) fn new(config: &ModelConfig, model_type: &str) -> Self {
        let is_part = SCOPES
            .iter()
            .skip(1)
            .any(|scope| config.raw().pointer(scope).is_some_and(Value::is_object));
        let has_defaults = is_part || config.hidden_size().is_some();
        let defaults = defaults_of(model_type).filter(|_| has_defaults);
        let is_stated = |field: &str| {
            SCOPES.iter().any(|scope| config.raw().pointer(&format!("{scope}/{field}")).is_some())
        };
        let query = config.num_attention_heads().or(defaults.map(|class| class.query));
        let is_derived =
            DERIVED_HEAD_DIM.contains(&model_type) && config.num_attention_heads().is_some();
        Self {
            hidden: hidden_of_part(config)
                .or(config.hidden_size())
                .or(defaults.map(|class| class.hidden)),
            query,
            kv: match is_stated("num_key_value_heads") {
                true => config.num_key_value_heads().or(query),
                false => kv_heads(config, defaults, query),
            },
            head_dim: config.head_dim().filter(|_| is_derived || is_stated("head_dim")),
            experts: config.num_experts(),
        }
    }
}

/// The width of the language model within another, whose own width may be another number.
fn hidden_of_part(config: &ModelConfig) -> Option<usize> {
    let mut parts = SCOPES.iter().skip(1);
    let stated = parts.find_map(|scope| config.raw().pointer(&format!("{scope}/hidden_size")));
    usize::try_from(stated?.as_u64()?).ok()
}

/// Key and value heads that the configuration does not state by their usual name: another name of
/// the field, else the default of the class if the query heads can share so many.
fn kv_heads(
    config: &ModelConfig,
    defaults: Option<Defaults>,
    query: Option<usize>,
) -> Option<usize> {
    let found = config.num_key_value_heads();
    let is_other = found.is_some() && found != config.num_attention_heads();
    let class = defaults
        .and_then(|class| class.kv)
        .filter(|kv| query.and_then(|query| query.checked_rem(*kv)) == Some(0));
    let same = query.filter(|_| config.num_attention_heads().is_none());
    found.filter(|_| is_other).or(class).or(found).or(same)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Sizes;
    use crate::ModelConfig;

    fn heads(config: &Value, model_type: &str) -> [Option<usize>; 2] {
        let config = ModelConfig::from_json("config.json", config.to_string().as_bytes()).unwrap();
        let sizes = Sizes::new(&config, model_type);
        [sizes.query, sizes.kv]
    }

    #[test]
    fn what_a_configuration_leaves_out_has_the_default_of_its_class() {
        let cases = [
            (json!({"text_config": {"hidden_size": 2560}}), "gemma3_text", [Some(8), Some(4)]),
            (json!({"text_config": {}}), "llama", [Some(32), Some(32)]),
            (json!({"text_config": {"num_attention_heads": 40}}), "llama", [Some(40), Some(40)]),
            (json!({"text_config": {}}), "mistral", [Some(32), Some(8)]),
            (json!({"hidden_size": 4096}), "mistral", [Some(32), Some(8)]),
            (json!({"num_attention_heads": 12}), "mistral", [Some(12), Some(12)]),
            (json!({"text_config": {"num_attention_heads": 12}}), "mistral", [Some(12), Some(12)]),
            (
                json!({"text_config": {"num_key_value_heads": null}}),
                "mistral",
                [Some(32), Some(32)],
            ),
            (json!({}), "llama", [None, None]),
            (json!({"text_config": {}}), "bloom", [None, None]),
        ];
        for (config, model_type, expected) in cases {
            assert_eq!(heads(&config, model_type), expected, "{config} {model_type}");
        }
    }
}
