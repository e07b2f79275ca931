//! Reads the fields of `config.json`, with the rules of the families that differ.

use std::path::Path;

use serde_json::{Map, Value};

use super::{ModelConfig, names};
use crate::beside::json_file::JsonFile;
use crate::json::{self, Fields};

impl JsonFile for ModelConfig {
    fn from_object(path: &Path, object: Map<String, Value>, notes: Vec<String>) -> Self {
        let mut fields = Fields::new(&object, notes);
        // Read from the whole model only: a part has a type and a class of its own.
        let model_type = fields.string(&["model_type"]).map(str::to_owned);
        let class_name = fields.string(&["_class_name"]).map(str::to_owned);
        let architectures = fields.strings(&["architectures"]).unwrap_or_default();
        let transformers_weights = fields.string(&["transformers_weights"]).map(str::to_owned);

        let mut fields = fields.with_nested(&names::NESTED);
        let hidden_size = fields.usize(names::HIDDEN_SIZE);
        let num_attention_heads = fields.usize(names::NUM_ATTENTION_HEADS);
        Self {
            path: path.to_owned(),
            model_type,
            class_name,
            architectures,
            transformers_weights,
            dtype: dtype(&mut fields),
            hidden_size,
            num_hidden_layers: num_hidden_layers(&mut fields),
            num_attention_heads,
            num_key_value_heads: num_key_value_heads(&mut fields, num_attention_heads),
            head_dim: head_dim(&mut fields, hidden_size, num_attention_heads),
            intermediate_size: fields.usize(names::INTERMEDIATE_SIZE),
            vocab_size: fields.usize(names::VOCAB_SIZE),
            max_position_embeddings: fields.usize(names::MAX_POSITION_EMBEDDINGS),
            sliding_window: sliding_window(&mut fields),
            rope_theta: fields.f64(names::ROPE_THETA),
            num_experts: fields.usize(names::NUM_EXPERTS),
            num_experts_per_tok: fields.usize(names::NUM_EXPERTS_PER_TOK),
            n_shared_experts: fields.usize(names::N_SHARED_EXPERTS),
            moe_intermediate_size: fields.usize(&["moe_intermediate_size"]),
            first_k_dense_replace: fields.usize(&["first_k_dense_replace"]),
            num_nextn_predict_layers: fields.usize(names::NUM_NEXTN_PREDICT_LAYERS),
            tie_word_embeddings: fields.bool(&["tie_word_embeddings", "tied_embeddings"]),
            bos_token_ids: fields.token_ids(&["bos_token_id"]),
            eos_token_ids: fields.token_ids(&["eos_token_id"]),
            pad_token_ids: fields.token_ids(&["pad_token_id"]),
            has_auto_map: fields.value(&["auto_map"]).is_some(),
            notes: json::notes_of(path, fields.into_notes()),
            raw: Value::Object(object),
        }
    }
}

/// The dtype as a plain name. The first Qwen states it by flags.
fn dtype(fields: &mut Fields<'_>) -> Option<String> {
    let name = fields.find(&names::DTYPE, "the name of a dtype", |value| match value {
        Value::String(name) => Some(name.as_str()),
        Value::Object(parts) => {
            ["", "text_config"].iter().find_map(|key| parts.get(*key)?.as_str())
        }
        _ => None,
    });
    if let Some(name) = name {
        let name = name.strip_prefix("torch.").unwrap_or(name);
        return (name != "auto").then(|| name.to_owned());
    }
    let flags = [("bf16", "bfloat16"), ("fp16", "float16"), ("fp32", "float32")];
    let set = flags.iter().find(|(flag, _)| fields.bool(&[flag]) == Some(true));
    set.map(|(_, name)| (*name).to_owned())
}

/// The number of layers, or the length of the list of layer kinds if no number is given.
fn num_hidden_layers(fields: &mut Fields<'_>) -> Option<usize> {
    fields.usize(names::NUM_HIDDEN_LAYERS).or_else(|| {
        fields.find(&["layers_block_type"], "a list", |kinds| kinds.as_array().map(Vec::len))
    })
}

/// The number of key and value heads, by the rules of each family that shares them between query
/// heads.
fn num_key_value_heads(fields: &mut Fields<'_>, heads: Option<usize>) -> Option<usize> {
    // Falcon: the new architecture ignores the flag, the old one ignores the number.
    let mut flag = |name| fields.bool(&[name]);
    let grouped = flag("multi_query_attention") != Some(false);
    if flag("multi_query") == Some(true) && flag("new_decoder_architecture") != Some(true) {
        return Some(1);
    }
    if let Some(number) = fields.usize(names::NUM_KEY_VALUE_HEADS) {
        return Some(number);
    }
    if let Some(number) = fields.usize(&["multi_query_group_num"]).filter(|_| grouped) {
        return Some(number);
    }
    let differs_by_layer = fields.value(&["block_configs"]).is_some();
    heads.filter(|_| !differs_by_layer)
}

/// The width of a head, as stated or by division.
fn head_dim(fields: &mut Fields<'_>, width: Option<usize>, heads: Option<usize>) -> Option<usize> {
    if let Some(stated) = fields.usize(names::HEAD_DIM) {
        return Some(stated);
    }
    // In the U-Nets of diffusers, which state no number of heads, this field is that number.
    if let Some(stated) = heads.and_then(|_| fields.usize(&["attention_head_dim"])) {
        return Some(stated);
    }
    if fields.value(&["kv_lora_rank"]).is_some() {
        return None;
    }
    let (width, heads) = (width?, heads?);
    width.checked_div(heads).filter(|_| width.checked_rem(heads) == Some(0))
}

/// The window, unless `use_sliding_window` is false.
fn sliding_window(fields: &mut Fields<'_>) -> Option<usize> {
    let window = fields.usize(&["sliding_window"]);
    window.filter(|_| fields.bool(&["use_sliding_window"]) != Some(false))
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "of small lists")]
mod tests {
    use serde_json::{Value, json};

    use super::{ModelConfig, names};

    fn config(value: &Value) -> ModelConfig {
        ModelConfig::from_json("config.json", value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn each_family_names_its_dimensions() {
        let shape = |c: &ModelConfig| {
            (c.hidden_size(), c.num_hidden_layers(), c.num_attention_heads(), c.intermediate_size())
        };
        let cases = [
            json!({"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}),
            json!({"n_embd": 8, "n_layer": 2, "n_head": 4, "n_inner": 32}),
            json!({"d_model": 8, "num_layers": 2, "num_heads": 4, "d_ff": 32}),
            json!({"d_model": 8, "n_layers": 2, "n_heads": 4, "ffn_dim": 32}),
            json!({"n_embed": 8, "num_layers": 2, "num_attention_heads": 4, "ffn_hidden_size": 32}),
            json!({"dim": 8, "n_layers": 2, "n_heads": 4, "hidden_dim": 32}),
        ];
        for case in cases {
            assert_eq!(shape(&config(&case)), (Some(8), Some(2), Some(4), Some(32)), "{case}");
        }
    }

    #[test]
    fn layers_may_be_listed_by_kind() {
        let value = json!({"layers_block_type": ["mamba", "moe", "attention"]});
        assert_eq!(config(&value).num_hidden_layers(), Some(3));
    }

    #[test]
    fn nested_configurations_come_after_the_top_level() {
        for nest in names::NESTED {
            let inner = json!({"hidden_size": 8, "vocab_size": 100, "model_type": "llama"});
            let nested = nest.rsplit('.').fold(inner, |value, key| json!({ key: value }));
            let mut value = nested.clone();
            value["hidden_size"] = json!(16);
            assert_eq!(config(&nested).hidden_size(), Some(8), "{nest}");
            assert_eq!(config(&value).hidden_size(), Some(16), "{nest}");
            assert_eq!(config(&value).vocab_size(), Some(100), "{nest}");
            assert_eq!(config(&value).model_type(), None, "{nest}");
        }
    }

    #[test]
    fn key_and_value_heads_follow_their_family() {
        let cases = [
            (json!({"num_attention_heads": 8, "num_key_value_heads": 2}), Some(2)),
            (json!({"num_attention_heads": 8, "num_key_value_heads": null}), Some(8)),
            (json!({"n_head": 71, "multi_query": true}), Some(1)),
            (json!({"n_head": 71, "multi_query": true, "num_kv_heads": 71}), Some(1)),
            (
                json!({"n_head": 232, "multi_query": true, "new_decoder_architecture": true, "num_kv_heads": 8}),
                Some(8),
            ),
            (
                json!({"n_head": 8, "multi_query_attention": true, "multi_query_group_num": 2}),
                Some(2),
            ),
            (
                json!({"n_head": 8, "multi_query_attention": false, "multi_query_group_num": 2}),
                Some(8),
            ),
            (json!({"n_head": 8, "num_key_value_heads": null, "block_configs": [{}]}), None),
            (json!({"n_heads": 32, "n_kv_heads": 8}), Some(8)),
            (json!({}), None),
        ];
        for (case, heads) in cases {
            assert_eq!(config(&case).num_key_value_heads(), heads, "{case}");
        }
    }

    #[test]
    fn the_width_of_a_head_is_stated_or_divided() {
        let cases = [
            (json!({"hidden_size": 2880, "num_attention_heads": 64, "head_dim": 64}), Some(64)),
            (json!({"hidden_size": 4096, "num_attention_heads": 32, "head_dim": null}), Some(128)),
            (json!({"d_model": 1024, "num_heads": 128, "d_kv": 128}), Some(128)),
            (json!({"hidden_size": 7168, "num_attention_heads": 128, "kv_lora_rank": 512}), None),
            (json!({"num_attention_heads": 24, "attention_head_dim": 128}), Some(128)),
            (json!({"num_attention_heads": null, "attention_head_dim": 8}), None),
            (json!({"hidden_size": 10, "num_attention_heads": 4}), None),
            (json!({"hidden_size": 10, "num_attention_heads": 0}), None),
        ];
        for (case, width) in cases {
            assert_eq!(config(&case).head_dim(), width, "{case}");
        }
    }

    #[test]
    fn dtypes_come_in_several_forms() {
        let cases = [
            (json!({"torch_dtype": "bfloat16"}), Some("bfloat16")),
            (json!({"dtype": "float16", "torch_dtype": "float32"}), Some("float16")),
            (json!({"torch_dtype": "torch.float16"}), Some("float16")),
            (json!({"torch_dtype": "auto"}), None),
            (json!({"dtype": {"": "bfloat16", "vision_config": "float32"}}), Some("bfloat16")),
            (json!({"text_config": {"dtype": "bfloat16"}}), Some("bfloat16")),
            (json!({"bf16": false, "fp16": true, "fp32": false}), Some("float16")),
            (json!({"dtype": 16}), None),
            (json!({}), None),
        ];
        for (case, dtype) in cases {
            assert_eq!(config(&case).dtype(), dtype, "{case}");
        }
    }

    #[test]
    fn experts_have_many_names() {
        for name in ["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"] {
            assert_eq!(config(&json!({ name: 8 })).num_experts(), Some(8), "{name}");
        }
        let value = json!({"moe": {"num_experts": 8, "num_experts_per_tok": 2}});
        let config = config(&value);
        assert_eq!((config.num_experts(), config.num_experts_per_tok()), (Some(8), Some(2)));
    }

    #[test]
    fn a_window_that_is_not_used_is_none() {
        let cases = [
            (json!({"sliding_window": 4096}), Some(4096)),
            (json!({"sliding_window": null}), None),
            (json!({"sliding_window": 4096, "use_sliding_window": false}), None),
        ];
        for (case, window) in cases {
            assert_eq!(config(&case).sliding_window(), window, "{case}");
        }
    }

    #[test]
    fn rotary_bases_may_be_nested() {
        let cases = [
            (json!({"rope_theta": 5e5}), 5e5),
            (json!({"rope_parameters": {"rope_theta": 1000}}), 1e3),
            (
                json!({"text_config": {"rope_parameters": {"full_attention": {"rope_theta": 1e6}}}}),
                1e6,
            ),
            (json!({"rotary_emb_base": 10000}), 1e4),
        ];
        for (case, base) in cases {
            assert_eq!(config(&case).rope_theta(), Some(base), "{case}");
        }
    }
}
