//! Ranks that cannot be served: the exact error, and a message that says what would do.

use modeldir::partition::{Misfit, PartitionError, TensorShape};
use modeldir::{
    Error, ErrorKind, ModelConfig, ModelDir, Partition, Quantization, Result, Topology,
};
use serde_json::{Value, json};
use tensorfile::Dtype;

/// How messages go on that say which numbers of ranks would do.
const HEADS: &str =
    "Uneven::Balanced gives some ranks more heads than others, Uneven::Chunk cuts heads";
const LENGTHS: &str = "Uneven::Balanced and Uneven::Chunk give some ranks more than others";

/// Cuts one tensor by the rules of a family.
fn cut(config: &Value, ranks: &Value, name: &str, shape: &[usize]) -> Result<()> {
    let config = ModelConfig::from_json("config.json", config.to_string().as_bytes())?;
    let ranks: Topology = serde_json::from_value(ranks.clone()).unwrap();
    let tensor = TensorShape { name, dtype: Dtype::BF16, shape };
    let quantization = Quantization::from_config(&config);
    Partition::for_config(&config)?.cut(&ranks, quantization.as_ref(), &[tensor]).map(drop)
}

/// What is wrong between rules, ranks and tensors.
fn kind(error: Error) -> PartitionError {
    match error.into_kind() {
        ErrorKind::Partition(error) => error,
        other => unreachable!("an error of rules and ranks, not {other:?}"),
    }
}

/// Qwen2-7B.
fn qwen2() -> Value {
    json!({"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4})
}

#[test]
fn twenty_eight_heads_over_eight_ranks() {
    let tensors = [
        ("model.layers.0.self_attn.q_proj.weight", "**.self_attn.q_proj.*"),
        ("model.layers.0.self_attn.o_proj.weight", "**.self_attn.o_proj.*"),
    ];
    for (name, pattern) in tensors {
        let error = cut(&qwen2(), &json!({"tp": "3/8"}), name, &[3584, 3584]).unwrap_err();
        // 7 and 14 divide the query heads, but not the 4 key and value heads, nor these them.
        let expected = format!(
            "tensor \"{name}\": rule \"{pattern}\": 28 heads over 8 ranks; 2, 4 or 28 would do; {HEADS}"
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.tensor(), Some(name));
        let PartitionError::Cut { rule, misfit } = kind(error) else { panic!("{expected}") };
        assert_eq!(&*rule, pattern);
        let works = Box::new([2, 4, 28]);
        assert_eq!(misfit, Misfit::Heads { heads: 28, ranks: 8, works });
    }
    // And they do.
    for size in [2, 4, 28] {
        for rank in 0..size {
            let ranks = json!({"tp": format!("{rank}/{size}")});
            for (name, _) in tensors {
                cut(&qwen2(), &ranks, name, &[3584, 3584]).unwrap();
            }
            cut(&qwen2(), &ranks, "model.layers.0.self_attn.k_proj.weight", &[512, 3584]).unwrap();
        }
    }
}

#[test]
fn key_and_value_heads_that_neither_divide_nor_are_divided() {
    let name = "model.layers.0.self_attn.k_proj.bias";
    let error = cut(&qwen2(), &json!({"tp": "0/7"}), name, &[512]).unwrap_err();
    let expected = format!(
        "tensor \"{name}\": rule \"**.self_attn.(k|v)_proj.*\": 4 heads over 7 ranks; \
         2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40 or 44 would do; {HEADS}"
    );
    assert_eq!(error.to_string(), expected);
    let PartitionError::Cut { misfit, .. } = kind(error) else { panic!("{expected}") };
    assert!(matches!(misfit, Misfit::Heads { heads: 4, ranks: 7, .. }), "{misfit:?}");
}

#[test]
fn blocks_of_thirty_two_columns_over_seven_ranks() {
    let config = json!({"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24,
        "num_attention_heads": 64, "num_key_value_heads": 8, "num_local_experts": 32,
        "quantization_config": {"quant_method": "mxfp4"}});
    let name = "model.layers.0.mlp.experts.down_proj_blocks";
    let error = cut(&config, &json!({"tp": "6/7"}), name, &[32, 2880, 90, 16]).unwrap_err();
    let expected = format!(
        "tensor \"{name}\": rule \"**.mlp.experts.down_proj*\": 2880 elements along the inputs in \
         blocks of 32 over 7 ranks; 2, 3, 5, 6, 9, 10, 15, 18, 30, 45 or 90 would do; {LENGTHS}"
    );
    assert_eq!(error.to_string(), expected);
    let PartitionError::Cut { misfit: Misfit::Uneven { len, unit, ranks, works, .. }, .. } =
        kind(error)
    else {
        panic!("{expected}")
    };
    assert_eq!((len, unit, ranks), (2880, 32, 7));
    for size in works {
        cut(&config, &json!({"tp": format!("{}/{size}", size - 1)}), name, &[32, 2880, 90, 16])
            .unwrap();
    }
}

#[test]
fn experts_that_the_ranks_do_not_divide() {
    let by_name = json!({"model_type": "qwen3_moe", "num_attention_heads": 32,
        "num_key_value_heads": 4, "num_hidden_layers": 48, "num_experts": 128});
    let stacked = json!({"model_type": "gpt_oss", "num_attention_heads": 64,
        "num_key_value_heads": 8, "num_hidden_layers": 24, "num_local_experts": 32});
    let cases: [(&Value, &str, &[usize], usize, &str); 2] = [
        (
            &by_name,
            "model.layers.0.mlp.experts.5.up_proj.weight",
            &[768, 2048],
            128,
            "2, 4, 8, 16, 32, 64 or 128",
        ),
        (
            &stacked,
            "model.layers.0.mlp.experts.gate_up_proj",
            &[32, 2880, 5760],
            32,
            "2, 4, 8, 16 or 32",
        ),
    ];
    for (config, name, shape, experts, works) in cases {
        let error = cut(config, &json!({"ep": "1/3"}), name, shape).unwrap_err();
        let expected = format!(
            "tensor \"{name}\": {experts} experts over 3 ranks; {works} would do; {LENGTHS}"
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.tensor(), Some(name));
        let uneven = PartitionError::UnevenExperts { count: experts, size: 3 };
        assert_eq!(kind(error), uneven);
    }
}

#[test]
fn a_model_type_without_rules() {
    for (config, model_type) in [(json!({"model_type": "mamba"}), "mamba"), (json!({}), "")] {
        let error = cut(&config, &json!({}), "w", &[2]).unwrap_err();
        let expected = format!(
            "no rules for model type \"{model_type}\"; write them, such as {{\"rules\": [{{\"match\": \
             \"**.q_proj.*\", \"tp\": \"col\"}}]}}; there are some for bloom, deepseek_v2, \
             deepseek_v3, falcon, gemma, gemma2, gemma3, gemma3_text, glm4, gpt2, gpt_neox, \
             gpt_oss, llama, llama4, llama4_text, mistral, mixtral, phi3, qwen2, qwen2_moe, qwen3, \
             qwen3_moe, starcoder2"
        );
        assert_eq!(error.to_string(), expected);
        let families = Partition::families().collect();
        assert_eq!(
            kind(error),
            PartitionError::NoRules { model_type: model_type.into(), families }
        );
    }
}

#[test]
fn a_directory_without_rules_names_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(
        modeldir_fixtures::model("llama").join("model-00001-of-00004.safetensors"),
        folder.path().join("model.safetensors"),
    )
    .unwrap();
    let partition = || ModelDir::open(folder.path()).unwrap().partition();
    assert!(matches!(partition().unwrap_err().kind(), ErrorKind::NoFile { .. }));
    let config = folder.path().join("config.json");
    std::fs::write(&config, r#"{"model_type": "mamba"}"#).unwrap();
    let error = partition().unwrap_err();
    assert_eq!(error.path(), Some(&*config));
    assert!(matches!(kind(error), PartitionError::NoRules { .. }));
}
