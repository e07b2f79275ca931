//! Language models within others, adapters around weights, and numbers that are left out.

use serde_json::{Value, json};

use super::{Line, check, config, cut, llama};
use crate::partition::{Partition, TensorShape, Topology, Uneven};
use crate::{ModelConfig, Rank};

/// A wrapper of this type around a small language model of another.
fn wrapper(model_type: &str, inner: &str) -> Value {
    json!({"model_type": model_type, "text_config": llama(inner, 256, 4, 2)})
}

#[test]
fn the_language_model_of_a_wrapper_has_its_rules_and_the_rest_is_whole() {
    let cases = [
        ("idefics3", "llama", "model.text_model.", "model.connector.modality_projection.proj"),
        ("internvl", "qwen2", "language_model.model.", "multi_modal_projector.linear_1"),
        ("internvl_chat", "llama", "language_model.model.", "mlp1.1"),
        ("llava", "llama", "language_model.model.", "vision_tower.encoder.0.self_attn.q_proj"),
        ("llava_next", "mistral", "model.language_model.", "model.vision_tower.mlp.up_proj"),
        (
            "mistral3",
            "ministral3",
            "model.language_model.",
            "model.vision_tower.a.self_attn.q_proj",
        ),
        ("paligemma", "gemma", "language_model.model.", "vision_tower.vision_model.x.mlp.up_proj"),
        ("qwen2_5_vl", "qwen2_5_vl_text", "model.language_model.", "visual.blocks.0.mlp.gate_proj"),
        ("qwen3_vl", "qwen3_vl_text", "model.language_model.", "model.visual.blocks.0.mlp.up_proj"),
        ("video_llava", "llama", "language_model.model.", "video_tower.a.self_attn.q_proj"),
    ];
    for (outer, inner, prefix, other) in cases {
        let names: Vec<String> = vec![
            format!("{other}.weight"),
            format!("{prefix}embed_tokens.weight"),
            format!("{prefix}layers.0.mlp.down_proj.weight"),
            format!("{prefix}layers.0.self_attn.k_proj.weight"),
            format!("{prefix}norm.weight"),
        ];
        let config = config(&wrapper(outer, inner));
        let rules = Partition::for_config(&config).unwrap();
        let shapes: [&[usize]; 5] = [&[64, 64], &[1000, 256], &[256, 512], &[128, 256], &[256]];
        let tensors: Vec<_> = names
            .iter()
            .zip(shapes)
            .map(|(name, shape)| TensorShape { name, dtype: tensorfile::Dtype::BF16, shape })
            .collect();
        let cut = rules.cut(&Topology::tensor_parallel(Rank::new(1, 2).unwrap()), None, &tensors);
        let cut = cut.unwrap();
        assert_eq!(cut.report.unmatched, [""; 0], "{outer}");
        let whole = crate::partition::tests::whole;
        let dim = crate::partition::tests::dim;
        let expected = [whole(), dim(0, 500..1000), dim(1, 256..512), dim(0, 64..128), whole()];
        assert_eq!(cut.parts, expected, "{outer}");
    }
}

#[test]
fn a_wrapper_of_an_unknown_language_model_has_no_rules() {
    let error = Partition::for_config(&config(&wrapper("llava", "mamba"))).unwrap_err();
    let expected = "no rules for model type \"llava\"; write them";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert!(Partition::wrappers().is_sorted());
    assert!(Partition::wrappers().all(|name| Partition::families().all(|family| family != name)));
}

#[test]
fn qwen3_vl_moe_has_experts_with_inputs_before_outputs() {
    let mut config = wrapper("qwen3_vl_moe", "qwen3_vl_moe_text");
    config["text_config"]["num_experts"] = json!(4);
    let lines: &[Line] = &[
        ("model.language_model.layers.0.mlp.experts.down_proj", &[4, 96, 256], "1:48..96"),
        (
            "model.language_model.layers.0.mlp.experts.gate_up_proj",
            &[4, 256, 192],
            "2:48..96,144..192",
        ),
        ("model.language_model.layers.0.mlp.gate.weight", &[4, 256], "="),
    ];
    check(&config, &json!({"tp": "1/2"}), lines);
}

#[test]
fn experts_are_stacked_by_transformers_and_by_mlx() {
    for (model_type, field) in [
        ("deepseek_v2", "n_routed_experts"),
        ("deepseek_v3", "n_routed_experts"),
        ("mixtral", "num_local_experts"),
        ("qwen2_moe", "num_experts"),
        ("qwen3_moe", "num_experts"),
    ] {
        let mut config = llama(model_type, 256, 4, 2);
        config[field] = json!(4);
        let lines = |marks: [&'static str; 3]| -> [Line; 6] {
            [
                ("model.layers.0.mlp.experts.down_proj", &[4, 256, 64], marks[1]),
                ("model.layers.0.mlp.experts.gate_up_proj", &[4, 128, 256], marks[2]),
                ("model.layers.0.mlp.gate.weight", &[4, 256], "="),
                ("model.layers.0.mlp.switch_mlp.down_proj.weight", &[4, 256, 64], marks[1]),
                ("model.layers.0.mlp.switch_mlp.gate_proj.weight", &[4, 64, 256], marks[0]),
                ("model.layers.0.mlp.switch_mlp.up_proj.weight", &[4, 64, 256], marks[0]),
            ]
        };
        let halves = lines(["1:32..64", "2:32..64", "1:32..64,96..128"]);
        check(&config, &json!({"tp": "1/2"}), &halves);
        check(&config, &json!({"ep": "1/2"}), &lines(["0:2..4"; 3]));
    }
}

#[test]
fn the_weight_below_an_adapter_is_cut_like_any() {
    let lines: &[Line] = &[
        (
            "base_model.model.model.layers.0.mlp.down_proj.base_layer.weight",
            &[256, 512],
            "1:256..512",
        ),
        (
            "base_model.model.model.layers.0.self_attn.q_proj.base_layer.weight",
            &[256, 256],
            "0:128..256",
        ),
        ("base_model.model.model.layers.0.self_attn.q_proj.base_layer.bias", &[256], "0:128..256"),
    ];
    check(&llama("llama", 256, 4, 2), &json!({"tp": "1/2"}), lines);
}

#[test]
fn numbers_left_out_have_the_defaults_of_the_class() {
    let config = json!({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
        "hidden_size": 256, "num_hidden_layers": 1}, "vision_config": {"num_attention_heads": 16}});
    let lines = |k: &'static str, q: &'static str| -> [Line; 2] {
        [
            ("language_model.model.layers.0.self_attn.k_proj.weight", &[128, 256], k),
            ("language_model.model.layers.0.self_attn.q_proj.weight", &[256, 256], q),
        ]
    };
    check(&config, &json!({"tp": "1/2"}), &lines("0:64..128", "0:128..256"));
    // Two ranks share each of four key and value heads.
    check(&config, &json!({"tp": "3/8"}), &lines("0:32..64", "0:96..128"));
    // Shapes that these numbers do not explain are refused.
    let other: [Line; 2] = [(lines("", "")[0].0, &[256, 256], ""), lines("", "")[1]];
    let error = cut(&config, &json!({"tp": "1/2"}), Uneven::Error, &other).unwrap_err();
    assert!(error.to_string().contains("8 heads of 32 elements, where"), "{error}");
}

#[test]
fn rules_of_the_caller_need_no_number_that_they_do_not_use() {
    let bare = ModelConfig::from_json("config.json", br#"{"model_type": "llama"}"#).unwrap();
    let own = r#"{"rules": [{"match": "**.q_proj.*", "tp": "col"}]}"#;
    let rules = Partition::from_json(own.as_bytes()).unwrap().or_for_config(&bare).unwrap();
    let cut = |name: &str| {
        let tensor = TensorShape { name, dtype: tensorfile::Dtype::BF16, shape: &[64, 64] };
        rules.cut(&Topology::tensor_parallel(Rank::new(1, 2).unwrap()), None, &[tensor])
    };
    cut("model.layers.0.self_attn.q_proj.weight").unwrap();
    cut("model.layers.0.mlp.down_proj.weight").unwrap();
    let error = cut("model.layers.0.self_attn.k_proj.weight").unwrap_err().to_string();
    assert!(
        error.ends_with("it needs num_key_value_heads, and the configuration says none above 0")
    );
}
