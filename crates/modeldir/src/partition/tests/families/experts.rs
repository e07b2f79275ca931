//! Families with experts.

use serde_json::json;

use super::{Line, check, check_uneven, cut, llama};
use crate::partition::Uneven;

#[test]
fn qwen3_30b_a3b() {
    let mut config = llama("qwen3_moe", 2048, 32, 4);
    config["num_experts"] = json!(128);
    let names = |first: &'static str, last: &'static str, down: &'static str| -> [Line; 8] {
        [
            ("model.layers.0.mlp.experts.0.gate_proj.weight", &[768, 2048], first),
            ("model.layers.0.mlp.experts.63.gate_proj.weight", &[768, 2048], last),
            ("model.layers.0.mlp.experts.63.down_proj.weight", &[2048, 768], down),
            ("model.layers.0.mlp.gate.weight", &[128, 2048], "="),
            ("model.layers.0.self_attn.k_norm.weight", &[128], "="),
            ("model.layers.0.self_attn.k_proj.weight", &[512, 2048], "0:128..256"),
            ("model.layers.0.self_attn.o_proj.weight", &[2048, 4096], "1:1024..2048"),
            ("model.layers.0.self_attn.q_proj.weight", &[4096, 2048], "0:1024..2048"),
        ]
    };
    let tp = names("0:192..384", "0:192..384", "1:192..384");
    check(&config, &json!({"tp": "1/4"}), &tp);
    check(&config, &json!({"tp": "1/4", "ep": "1/4"}), &names("-", "=", "="));
    let error = cut(&config, &json!({"ep": "0/3"}), Uneven::Error, &tp).unwrap_err().to_string();
    let expected = "128 experts over 3 ranks; 2, 4, 8, 16, 32, 64 or 128 would do; Uneven::Balanced and \
                    Uneven::Chunk give some ranks more than others";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn qwen2_moe_and_mixtral() {
    let mut config = llama("qwen2_moe", 2048, 16, 16);
    config["num_experts"] = json!(60);
    let qwen: &[Line] = &[
        ("model.layers.0.mlp.experts.30.up_proj.weight", &[1408, 2048], "="),
        ("model.layers.0.mlp.shared_expert.down_proj.weight", &[2048, 5632], "1:2816..5632"),
        ("model.layers.0.mlp.shared_expert.up_proj.weight", &[5632, 2048], "0:2816..5632"),
        ("model.layers.0.mlp.shared_expert_gate.weight", &[1, 2048], "="),
    ];
    check(&config, &json!({"tp": "1/2", "ep": "1/2"}), qwen);
    let mut config = llama("mixtral", 4096, 32, 8);
    config["num_local_experts"] = json!(8);
    let mixtral: &[Line] = &[
        ("model.layers.0.block_sparse_moe.experts.7.w1.weight", &[14_336, 4096], "0:7168..14336"),
        ("model.layers.0.block_sparse_moe.experts.7.w2.weight", &[4096, 14_336], "1:7168..14336"),
        ("model.layers.0.block_sparse_moe.experts.7.w3.weight", &[14_336, 4096], "0:7168..14336"),
        ("model.layers.0.block_sparse_moe.gate.weight", &[8, 4096], "="),
    ];
    check(&config, &json!({"tp": "1/2"}), mixtral);
}

#[test]
fn deepseek_v3() {
    let config = json!({"model_type": "deepseek_v3", "num_attention_heads": 128,
        "num_key_value_heads": 128, "num_hidden_layers": 61, "n_routed_experts": 256,
        "kv_lora_rank": 512,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}});
    let lines: &[Line] = &[
        ("model.layers.0.mlp.gate_proj.weight", &[18_432, 7168], "0:2304..4608"),
        ("model.layers.0.mlp.gate_proj.weight_scale_inv", &[144, 56], "0:18..36"),
        ("model.layers.0.self_attn.kv_a_layernorm.weight", &[512], "="),
        ("model.layers.0.self_attn.kv_a_proj_with_mqa.weight", &[576, 7168], "="),
        ("model.layers.0.self_attn.kv_a_proj_with_mqa.weight_scale_inv", &[5, 56], "="),
        ("model.layers.0.self_attn.kv_b_proj.weight", &[32_768, 512], "0:4096..8192"),
        ("model.layers.0.self_attn.kv_b_proj.weight_scale_inv", &[256, 4], "0:32..64"),
        ("model.layers.0.self_attn.o_proj.weight", &[7168, 16_384], "1:2048..4096"),
        ("model.layers.0.self_attn.o_proj.weight_scale_inv", &[56, 128], "1:16..32"),
        ("model.layers.0.self_attn.q_a_proj.weight", &[1536, 7168], "="),
        ("model.layers.0.self_attn.q_b_proj.weight", &[24_576, 1536], "0:3072..6144"),
        ("model.layers.0.self_attn.q_b_proj.weight_scale_inv", &[192, 12], "0:24..48"),
        ("model.layers.3.mlp.experts.0.down_proj.weight", &[7168, 2048], "1:256..512"),
        ("model.layers.3.mlp.experts.0.down_proj.weight_scale_inv", &[56, 16], "1:2..4"),
        ("model.layers.3.mlp.gate.e_score_correction_bias", &[256], "="),
        ("model.layers.3.mlp.gate.weight", &[256, 7168], "="),
        ("model.layers.3.mlp.shared_experts.up_proj.weight", &[2048, 7168], "0:256..512"),
        ("model.layers.61.eh_proj.weight", &[7168, 14_336], "="),
        ("model.layers.61.embed_tokens.weight", &[129_280, 7168], "0:16160..32320"),
        ("model.layers.61.enorm.weight", &[7168], "="),
        ("model.layers.61.shared_head.head.weight", &[129_280, 7168], "0:16160..32320"),
        ("model.layers.61.shared_head.norm.weight", &[7168], "="),
    ];
    check(&config, &json!({"tp": "1/8"}), lines);
    let stages: &[Line] = &[
        ("model.layers.3.mlp.experts.31.up_proj.weight", &[2048, 7168], "-"),
        ("model.layers.30.mlp.experts.31.up_proj.weight", &[2048, 7168], "-"),
        ("model.layers.31.mlp.experts.31.up_proj.weight", &[2048, 7168], "-"),
        ("model.layers.31.mlp.experts.32.up_proj.weight", &[2048, 7168], "="),
        ("model.layers.61.embed_tokens.weight", &[129_280, 7168], "="),
    ];
    check(&config, &json!({"pp": "1/2", "ep": "1/8"}), stages);
}

#[test]
fn gpt_oss_20b() {
    let mut config = llama("gpt_oss", 2880, 64, 8);
    config["num_local_experts"] = json!(32);
    let bf16: &[Line] = &[
        ("model.layers.0.mlp.experts.down_proj", &[32, 2880, 2880], "1:720..1440"),
        ("model.layers.0.mlp.experts.down_proj_bias", &[32, 2880], "="),
        ("model.layers.0.mlp.experts.gate_up_proj", &[32, 2880, 5760], "2:1440..2880"),
        ("model.layers.0.mlp.experts.gate_up_proj_bias", &[32, 5760], "1:1440..2880"),
        ("model.layers.0.mlp.router.weight", &[32, 2880], "="),
        ("model.layers.0.self_attn.o_proj.bias", &[2880], "="),
        ("model.layers.0.self_attn.q_proj.weight", &[4096, 2880], "0:1024..2048"),
        ("model.layers.0.self_attn.sinks", &[64], "0:16..32"),
    ];
    check(&config, &json!({"tp": "1/4"}), bf16);
    config["quantization_config"] = json!({"quant_method": "mxfp4"});
    let mxfp4 = |blocks: [&'static str; 2]| -> [Line; 6] {
        let [up, down] = blocks;
        [
            ("model.layers.0.mlp.experts.down_proj_bias", &[32, 2880], "="),
            ("model.layers.0.mlp.experts.down_proj_blocks", &[32, 2880, 90, 16], down),
            ("model.layers.0.mlp.experts.down_proj_scales", &[32, 2880, 90], down),
            ("model.layers.0.mlp.experts.gate_up_proj_bias", &[32, 5760], up),
            ("model.layers.0.mlp.experts.gate_up_proj_blocks", &[32, 5760, 90, 16], up),
            ("model.layers.0.mlp.experts.gate_up_proj_scales", &[32, 5760, 90], up),
        ]
    };
    check(&config, &json!({"tp": "1/2"}), &mxfp4(["1:2880..5760", "2:45..90"]));
    let uneven = mxfp4(["1:1472..2944", "2:23..46"]);
    check_uneven(&config, &json!({"tp": "1/4"}), Uneven::Chunk, &uneven);
    let error = cut(&config, &json!({"tp": "1/7"}), Uneven::Error, &uneven).unwrap_err();
    let expected = "2880 elements along the inputs in blocks of 32 over 7 ranks; \
                    2, 3, 5, 6, 9, 10, 15, 18, 30, 45 or 90 would do; Uneven::Balanced and Uneven::Chunk \
                    give some ranks more than others";
    assert!(error.to_string().ends_with(expected), "{error}");
    let mut experts = mxfp4(["0:8..16", "0:8..16"]);
    experts[0].2 = "0:8..16";
    check(&config, &json!({"tp": "1/4", "ep": "1/4"}), &experts);
}

#[test]
fn llama4() {
    let mut config = llama("llama4_text", 5120, 40, 8);
    config["num_local_experts"] = json!(16);
    let lines: &[Line] = &[
        ("model.layers.0.feed_forward.experts.down_proj", &[16, 8192, 5120], "1:4096..8192"),
        (
            "model.layers.0.feed_forward.experts.gate_up_proj",
            &[16, 5120, 16_384],
            "2:4096..8192,12288..16384",
        ),
        ("model.layers.0.feed_forward.router.weight", &[16, 5120], "="),
        (
            "model.layers.0.feed_forward.shared_expert.down_proj.weight",
            &[5120, 8192],
            "1:4096..8192",
        ),
        ("model.layers.0.feed_forward.shared_expert.up_proj.weight", &[8192, 5120], "0:4096..8192"),
        ("model.layers.1.feed_forward.down_proj.weight", &[5120, 16_384], "1:8192..16384"),
    ];
    check(&config, &json!({"tp": "1/2"}), lines);
    let both = json!({"ep": "1/4", "expert_tp": "1/2"});
    check(&config, &both, &[(lines[1].0, lines[1].1, "0:4..8; 2:4096..8192,12288..16384")]);
}
