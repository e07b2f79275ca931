//! Families with fused, transposed or oddly named tensors.

use serde_json::json;

use super::{Line, check, cut, llama};
use crate::partition::Uneven;

#[test]
fn phi3_and_glm4() {
    let fused: &[Line] = &[
        ("model.layers.0.mlp.down_proj.weight", &[3072, 8192], "1:4096..8192"),
        ("model.layers.0.mlp.gate_up_proj.weight", &[16_384, 3072], "0:4096..8192,12288..16384"),
        ("model.layers.0.self_attn.o_proj.weight", &[3072, 3072], "1:1536..3072"),
        (
            "model.layers.0.self_attn.qkv_proj.weight",
            &[9216, 3072],
            "0:1536..3072,4608..6144,7680..9216",
        ),
    ];
    check(&llama("phi3", 3072, 32, 32), &json!({"tp": "1/2"}), fused);
    let glm: &[Line] = &[
        ("model.layers.0.mlp.gate_up_proj.weight", &[27_392, 4096], "0:6848..13696,20544..27392"),
        ("model.layers.0.post_mlp_layernorm.weight", &[4096], "="),
        ("model.layers.0.self_attn.k_proj.weight", &[256, 4096], "0:128..256"),
        ("model.layers.0.self_attn.q_proj.bias", &[4096], "0:2048..4096"),
    ];
    check(&llama("glm4", 4096, 32, 2), &json!({"tp": "1/2"}), glm);
}

#[test]
fn gemma_and_starcoder2() {
    let mut config =
        json!({"model_type": "gemma3", "text_config": llama("gemma3_text", 2560, 8, 4)});
    let gemma: &[Line] = &[
        ("language_model.model.embed_tokens.weight", &[262_208, 2560], "0:131104..262208"),
        ("language_model.model.layers.0.pre_feedforward_layernorm.weight", &[2560], "="),
        ("language_model.model.layers.0.self_attn.q_norm.weight", &[256], "="),
        ("language_model.model.layers.0.self_attn.q_proj.weight", &[2048, 2560], "0:1024..2048"),
        ("language_model.model.norm.weight", &[2560], "="),
        ("multi_modal_projector.mm_input_projection_weight", &[1152, 2560], "="),
        ("vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.weight", &[1152, 1152], "="),
    ];
    check(&config, &json!({"tp": "1/2"}), gemma);
    config = llama("gemma2", 2304, 8, 4);
    check(
        &config,
        &json!({"tp": "1/2"}),
        &[("model.layers.0.mlp.up_proj.weight", &[9216, 2304], "0:4608..9216")],
    );
    let star: &[Line] = &[
        ("model.layers.0.mlp.c_fc.bias", &[12_288], "0:6144..12288"),
        ("model.layers.0.mlp.c_fc.weight", &[12_288, 3072], "0:6144..12288"),
        ("model.layers.0.mlp.c_proj.bias", &[3072], "="),
        ("model.layers.0.mlp.c_proj.weight", &[3072, 12_288], "1:6144..12288"),
        ("model.layers.0.self_attn.k_proj.bias", &[256], "0:128..256"),
        ("model.norm.bias", &[3072], "="),
    ];
    check(&llama("starcoder2", 3072, 24, 2), &json!({"tp": "1/2"}), star);
}

#[test]
fn gpt2() {
    let config = json!({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12});
    let thirds = "1:384..768,1152..1536,1920..2304";
    let lines: &[Line] = &[
        ("h.0.attn.bias", &[1, 1, 1024, 1024], "="),
        ("h.0.attn.c_attn.bias", &[2304], "0:384..768,1152..1536,1920..2304"),
        ("h.0.attn.c_attn.weight", &[768, 2304], thirds),
        ("h.0.attn.c_proj.bias", &[768], "="),
        ("h.0.attn.c_proj.weight", &[768, 768], "0:384..768"),
        ("h.0.ln_1.bias", &[768], "="),
        ("h.0.mlp.c_fc.bias", &[3072], "0:1536..3072"),
        ("h.0.mlp.c_fc.weight", &[768, 3072], "1:1536..3072"),
        ("h.0.mlp.c_proj.bias", &[768], "="),
        ("h.0.mlp.c_proj.weight", &[3072, 768], "0:1536..3072"),
        ("ln_f.weight", &[768], "="),
        ("wpe.weight", &[1024, 768], "="),
        ("wte.weight", &[50_257, 768], "0:25129..50257"),
    ];
    check(&config, &json!({"tp": "1/2"}), lines);
    let last: &[Line] = &[
        ("transformer.h.11.ln_1.bias", &[768], "="),
        ("transformer.h.5.ln_1.bias", &[768], "-"),
        ("transformer.ln_f.weight", &[768], "="),
        ("transformer.wpe.weight", &[1024, 768], "-"),
        ("transformer.wte.weight", &[50_257, 768], "="),
    ];
    check(&config, &json!({"pp": "1/2"}), last);
}

#[test]
fn gpt_neox_and_bloom() {
    let neox: &[Line] = &[
        ("embed_out.weight", &[50_432, 6144], "0:25216..50432"),
        ("gpt_neox.embed_in.weight", &[50_432, 6144], "0:25216..50432"),
        ("gpt_neox.final_layer_norm.bias", &[6144], "="),
        ("gpt_neox.layers.0.attention.bias", &[1, 1, 2048, 2048], "="),
        ("gpt_neox.layers.0.attention.dense.bias", &[6144], "="),
        ("gpt_neox.layers.0.attention.dense.weight", &[6144, 6144], "1:3072..6144"),
        ("gpt_neox.layers.0.attention.query_key_value.bias", &[18_432], "0:9216..18432"),
        ("gpt_neox.layers.0.attention.query_key_value.weight", &[18_432, 6144], "0:9216..18432"),
        ("gpt_neox.layers.0.attention.rotary_emb.inv_freq", &[12], "="),
        ("gpt_neox.layers.0.mlp.dense_4h_to_h.weight", &[6144, 24_576], "1:12288..24576"),
        ("gpt_neox.layers.0.mlp.dense_h_to_4h.bias", &[24_576], "0:12288..24576"),
    ];
    check(&llama("gpt_neox", 6144, 64, 64), &json!({"tp": "1/2"}), neox);
    let bloom: &[Line] = &[
        ("h.0.input_layernorm.bias", &[14_336], "="),
        ("h.0.self_attention.dense.weight", &[14_336, 14_336], "1:1792..3584"),
        ("h.0.self_attention.query_key_value.weight", &[43_008, 14_336], "0:5376..10752"),
        ("word_embeddings.weight", &[250_880, 14_336], "0:31360..62720"),
        ("word_embeddings_layernorm.weight", &[14_336], "="),
    ];
    check(&llama("bloom", 14_336, 112, 112), &json!({"tp": "1/8"}), bloom);
}

#[test]
fn falcons_of_three_kinds() {
    let mut config = llama("falcon", 4544, 71, 71);
    config["multi_query"] = json!(true);
    let name = "transformer.h.0.self_attention.query_key_value.weight";
    check(&config, &json!({"tp": "1/71"}), &[(name, &[4672, 4544], "0:64..128,4544..4672")]);
    let error = cut(&config, &json!({"tp": "1/2"}), Uneven::Error, &[(name, &[4672, 4544], "")]);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("71 heads over 2 ranks; 71 would do; Uneven::Balanced"), "{error}");
    config = llama("falcon", 8192, 128, 8);
    config["new_decoder_architecture"] = json!(true);
    let large: &[Line] = &[
        ("transformer.h.0.ln_attn.weight", &[8192], "="),
        ("transformer.h.0.self_attention.dense.weight", &[8192, 8192], "1:1024..2048"),
        (name, &[9216, 8192], "0:1152..2304"),
    ];
    check(&config, &json!({"tp": "1/8"}), large);
    config = llama("falcon", 2048, 32, 32);
    config["multi_query"] = json!(false);
    check(&config, &json!({"tp": "1/4"}), &[(name, &[6144, 2048], "0:1536..3072")]);
}
