//! Every field of every configuration, under each of its names: no field stands for another.

use modeldir::{ModelConfig, Quantization};
use serde_json::{Value, json};

/// A field that is a whole number.
type Whole = (&'static str, fn(&ModelConfig) -> Option<usize>, &'static [&'static str]);

const WHOLE: [Whole; 15] = [
    (
        "hidden_size",
        ModelConfig::hidden_size,
        &["hidden_size", "n_embd", "d_model", "n_embed", "dim"],
    ),
    (
        "num_hidden_layers",
        ModelConfig::num_hidden_layers,
        &["num_hidden_layers", "n_layer", "num_layers", "n_layers"],
    ),
    (
        "num_attention_heads",
        ModelConfig::num_attention_heads,
        &["num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads"],
    ),
    (
        "num_key_value_heads",
        ModelConfig::num_key_value_heads,
        &["num_key_value_heads", "num_kv_heads", "n_kv_heads", "multi_query_group_num"],
    ),
    ("head_dim", ModelConfig::head_dim, &["head_dim", "kv_channels", "d_kv"]),
    (
        "intermediate_size",
        ModelConfig::intermediate_size,
        &["intermediate_size", "ffn_hidden_size", "n_inner", "d_ff", "ffn_dim", "hidden_dim"],
    ),
    ("vocab_size", ModelConfig::vocab_size, &["vocab_size", "padded_vocab_size"]),
    (
        "max_position_embeddings",
        ModelConfig::max_position_embeddings,
        &["max_position_embeddings", "n_positions", "max_sequence_length", "seq_length"],
    ),
    ("sliding_window", ModelConfig::sliding_window, &["sliding_window"]),
    (
        "num_experts",
        ModelConfig::num_experts,
        &["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"],
    ),
    (
        "num_experts_per_tok",
        ModelConfig::num_experts_per_tok,
        &["num_experts_per_tok", "experts_per_token", "top_k_experts", "moe_topk", "moe_k"],
    ),
    (
        "n_shared_experts",
        ModelConfig::n_shared_experts,
        &["n_shared_experts", "num_shared_experts", "moe_num_shared_experts"],
    ),
    ("moe_intermediate_size", ModelConfig::moe_intermediate_size, &["moe_intermediate_size"]),
    ("first_k_dense_replace", ModelConfig::first_k_dense_replace, &["first_k_dense_replace"]),
    (
        "num_nextn_predict_layers",
        ModelConfig::num_nextn_predict_layers,
        &["num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"],
    ),
];

fn config(value: &Value) -> ModelConfig {
    ModelConfig::from_json("config.json", value.to_string().as_bytes()).unwrap()
}

#[test]
fn each_number_of_a_configuration_is_read_from_its_own_names() {
    for (field, read, names) in WHOLE {
        for name in names {
            let found = config(&json!({ *name: 7 }));
            assert_eq!(read(&found), Some(7), "{field} as {name}");
            for (other, read, _) in WHOLE.into_iter().filter(|(other, _, _)| *other != field) {
                // Heads without a number of their own for keys and values have as many.
                if (field, other) == ("num_attention_heads", "num_key_value_heads") {
                    continue;
                }
                assert_eq!(read(&found), None, "{other} from {name}");
            }
        }
    }
}

#[test]
fn the_other_fields_of_a_configuration_are_its_own() {
    let found = config(&json!({
        "model_type": "t", "_class_name": "C", "architectures": ["A"], "dtype": "float16",
        "rope_theta": 0.5, "tie_word_embeddings": true, "bos_token_id": 1, "eos_token_id": [2, 3],
        "pad_token_id": 4, "auto_map": {}, "transformers_weights": "w.safetensors",
    }));
    assert_eq!((found.model_type(), found.class_name()), (Some("t"), Some("C")));
    assert_eq!((found.architectures(), found.dtype()), (&["A".to_owned()][..], Some("float16")));
    assert_eq!((found.rope_theta(), found.tie_word_embeddings()), (Some(0.5), Some(true)));
    assert_eq!((found.bos_token_ids(), found.eos_token_ids()), (&[1][..], &[2, 3][..]));
    assert_eq!((found.pad_token_ids(), found.has_auto_map()), (&[4][..], true));
    assert_eq!(found.transformers_weights(), Some("w.safetensors"));
    let native = config(&json!({ "tied_embeddings": true }));
    assert_eq!(native.tie_word_embeddings(), Some(true));
    let empty = config(&json!({}));
    assert_eq!((empty.tie_word_embeddings(), empty.has_auto_map()), (None, false));
    assert_eq!((empty.bos_token_ids(), empty.pad_token_ids()), (&[0; 0][..], &[0; 0][..]));
}

#[test]
fn each_field_of_a_quantization_is_its_own() {
    let of = |value: Value| {
        let config = config(&json!({ "quantization_config": value }));
        Quantization::from_config(&config).unwrap()
    };
    let found = of(json!({
        "quant_method": "m", "quant_algo": "A", "bits": 3, "group_size": 64, "desc_act": true,
        "sym": false, "weight_block_size": [128, 256], "modules_to_not_convert": ["x"],
        "kv_cache_scheme": "FP8",
    }));
    assert_eq!((found.method(), found.algorithm()), (Some("m"), Some("A")));
    assert_eq!((found.bits(), found.group_size()), (Some(3), Some(64)));
    assert_eq!((found.desc_act(), found.sym()), (Some(true), Some(false)));
    assert_eq!(found.weight_block_size(), [128, 256]);
    assert_eq!(found.skipped_modules(), ["x"]);
    assert_eq!(found.kv_cache(), Some(&json!("FP8")));
    let empty = of(json!({ "quant_method": "m" }));
    assert_eq!((empty.bits(), empty.group_size(), empty.algorithm()), (None, None, None));
    assert_eq!((empty.desc_act(), empty.sym(), empty.kv_cache()), (None, None, None));
}
