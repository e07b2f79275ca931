//! The built-in rules, on names and shapes of published models.

mod experts;
mod fused;
mod wrapped;

use serde_json::{Value, json};
use tensorfile::{Dtype, Selection};

use crate::partition::PartitionError;
use crate::partition::{Partition, TensorShape, Topology, Uneven};
use crate::{ModelConfig, Quantization, Result};

/// Name, shape, and what the rank takes: `=` all, `-` nothing, else dimension and ranges.
type Line = (&'static str, &'static [usize], &'static str);

fn config(json: &Value) -> ModelConfig {
    ModelConfig::from_json("config.json", json.to_string().as_bytes()).unwrap()
}

fn cut(json: &Value, ranks: &Value, uneven: Uneven, lines: &[Line]) -> Result<Vec<String>> {
    let config = config(json);
    let partition = Partition { uneven, ..Partition::for_config(&config)? };
    let ranks: Topology = serde_json::from_value(ranks.clone()).unwrap();
    let tensors: Vec<_> = lines
        .iter()
        .map(|&(name, shape, _)| TensorShape { name, dtype: dtype(name), shape })
        .collect();
    let cut = partition.cut(&ranks, Quantization::from_config(&config).as_ref(), &tensors)?;
    assert_eq!(cut.report.unmatched, [""; 0]);
    Ok(cut.parts.iter().zip(lines).map(|(part, line)| text(part.as_ref(), line)).collect())
}

fn dtype(name: &str) -> Dtype {
    match name.rsplit('.').next().unwrap() {
        "qweight" | "qzeros" => Dtype::I32,
        leaf if leaf.ends_with("_blocks") || leaf.ends_with("_scales") => Dtype::U8,
        _ => Dtype::BF16,
    }
}

/// The expected text if it is what was selected, else what was selected.
fn text(part: Option<&Selection>, (_, _, expected): &Line) -> String {
    let Some(part) = part else { return "-".to_owned() };
    let wanted = expected.split("; ").filter(|cut| cut.contains(':')).fold(
        Selection::all(),
        |selection, cut| {
            let (dim, ranges) = cut.split_once(':').unwrap();
            let ranges = ranges.split(',').map(|range| {
                let (start, end) = range.split_once("..").unwrap();
                start.parse().unwrap()..end.parse().unwrap()
            });
            selection.with_ranges(dim.parse().unwrap(), ranges.collect())
        },
    );
    if wanted == *part && *expected != "-" { (*expected).to_owned() } else { format!("{part:?}") }
}

fn check_uneven(json: &Value, ranks: &Value, uneven: Uneven, lines: &[Line]) {
    for (found, line) in cut(json, ranks, uneven, lines).unwrap().iter().zip(lines) {
        assert_eq!(found, line.2, "{}", line.0);
    }
}

fn check(json: &Value, ranks: &Value, lines: &[Line]) {
    check_uneven(json, ranks, Uneven::Error, lines);
}

fn llama(model_type: &str, hidden: usize, heads: usize, kv: usize) -> Value {
    json!({"model_type": model_type, "hidden_size": hidden, "num_attention_heads": heads,
        "num_key_value_heads": kv, "num_hidden_layers": 2})
}

#[test]
fn llama_3_8b_and_70b() {
    let small: &[Line] = &[
        ("lm_head.weight", &[128_256, 4096], "0:32064..64128"),
        ("model.embed_tokens.weight", &[128_256, 4096], "0:32064..64128"),
        ("model.layers.0.input_layernorm.weight", &[4096], "="),
        ("model.layers.0.mlp.down_proj.weight", &[4096, 14_336], "1:3584..7168"),
        ("model.layers.0.mlp.gate_proj.weight", &[14_336, 4096], "0:3584..7168"),
        ("model.layers.0.mlp.up_proj.weight", &[14_336, 4096], "0:3584..7168"),
        ("model.layers.0.post_attention_layernorm.weight", &[4096], "="),
        ("model.layers.0.self_attn.k_proj.weight", &[1024, 4096], "0:256..512"),
        ("model.layers.0.self_attn.o_proj.weight", &[4096, 4096], "1:1024..2048"),
        ("model.layers.0.self_attn.q_proj.weight", &[4096, 4096], "0:1024..2048"),
        ("model.layers.0.self_attn.rotary_emb.inv_freq", &[64], "="),
        ("model.layers.0.self_attn.v_proj.weight", &[1024, 4096], "0:256..512"),
        ("model.norm.weight", &[4096], "="),
    ];
    check(&llama("llama", 4096, 32, 8), &json!({"tp": "1/4"}), small);
    // Two ranks hold the same key and value head.
    let large: &[Line] = &[
        ("lm_head.weight", &[128_256, 8192], "0:24048..32064"),
        ("model.layers.0.mlp.down_proj.weight", &[8192, 28_672], "1:5376..7168"),
        ("model.layers.0.self_attn.k_proj.weight", &[1024, 8192], "0:128..256"),
        ("model.layers.0.self_attn.o_proj.weight", &[8192, 8192], "1:1536..2048"),
        ("model.layers.0.self_attn.q_proj.weight", &[8192, 8192], "0:1536..2048"),
    ];
    check(&llama("llama", 8192, 64, 8), &json!({"tp": "3/16"}), large);
}

#[test]
fn stages_have_the_ends_that_they_need() {
    let stage = |tied: bool, rank: usize, lines: &[Line]| {
        let mut config = llama("qwen2", 64, 4, 2);
        config["tie_word_embeddings"] = json!(tied);
        check(&config, &json!({"pp": format!("{rank}/2")}), lines);
    };
    let names = |marks: [&'static str; 6]| -> [Line; 6] {
        [
            ("lm_head.weight", &[320, 64], marks[0]),
            ("model.embed_tokens.weight", &[320, 64], marks[1]),
            ("model.layers.0.self_attn.q_proj.bias", &[64], marks[2]),
            ("model.layers.1.mlp.up_proj.weight", &[128, 64], marks[3]),
            ("model.layers.2.mlp.up_proj.weight", &[128, 64], marks[4]),
            ("model.norm.weight", &[64], marks[5]),
        ]
    };
    stage(false, 0, &names(["-", "=", "=", "-", "-", "-"]));
    stage(false, 1, &names(["=", "-", "-", "=", "=", "="]));
    stage(true, 1, &names(["=", "=", "-", "=", "=", "="]));
}

#[test]
fn heads_that_do_not_divide() {
    let config = llama("qwen2", 3584, 28, 4);
    let lines: &[Line] = &[
        ("model.layers.0.self_attn.k_proj.weight", &[512, 3584], "0:128..256"),
        ("model.layers.0.self_attn.o_proj.weight", &[3584, 3584], "1:1408..1792"),
        ("model.layers.0.self_attn.q_proj.bias", &[3584], "0:1408..1792"),
    ];
    let error = cut(&config, &json!({"tp": "3/8"}), Uneven::Error, lines).unwrap_err().to_string();
    assert_eq!(
        error,
        "tensor \"model.layers.0.self_attn.o_proj.weight\": rule \"**.self_attn.o_proj.*\": \
         28 heads over 8 ranks; 2, 4 or 28 would do; Uneven::Balanced gives some ranks more heads than \
         others, Uneven::Chunk cuts heads"
    );
    // The 7 heads that share one key and value head are on its two ranks: 4 and 3.
    check_uneven(&config, &json!({"tp": "3/8"}), Uneven::Balanced, lines);
}

#[test]
fn a_gptq_and_an_awq_llama() {
    let config = |method: &str| {
        let mut config = llama("llama", 4096, 32, 32);
        config["quantization_config"] =
            json!({"quant_method": method, "bits": 4, "group_size": 128});
        config
    };
    let gptq: &[Line] = &[
        ("model.layers.0.mlp.down_proj.g_idx", &[11_008], "0:5504..11008"),
        ("model.layers.0.mlp.down_proj.qweight", &[1376, 4096], "0:688..1376"),
        ("model.layers.0.mlp.down_proj.qzeros", &[86, 512], "0:43..86"),
        ("model.layers.0.mlp.down_proj.scales", &[86, 4096], "0:43..86"),
        ("model.layers.0.self_attn.q_proj.g_idx", &[4096], "="),
        ("model.layers.0.self_attn.q_proj.qweight", &[512, 4096], "1:2048..4096"),
        ("model.layers.0.self_attn.q_proj.qzeros", &[32, 512], "1:256..512"),
        ("model.layers.0.self_attn.q_proj.scales", &[32, 4096], "1:2048..4096"),
    ];
    check(&config("gptq"), &json!({"tp": "1/2"}), gptq);
    let error = cut(&config("gptq"), &json!({"tp": "0/4"}), Uneven::Error, gptq).unwrap_err();
    assert!(error.to_string().contains("11008 elements along the inputs in blocks of 128 over 4"));
    let awq: &[Line] = &[
        ("model.layers.0.mlp.down_proj.qweight", &[11_008, 512], "0:5504..11008"),
        ("model.layers.0.mlp.down_proj.qzeros", &[86, 512], "0:43..86"),
        ("model.layers.0.mlp.down_proj.scales", &[86, 4096], "0:43..86"),
        ("model.layers.0.mlp.gate_proj.qweight", &[4096, 1376], "1:688..1376"),
        ("model.layers.0.mlp.gate_proj.qzeros", &[32, 1376], "1:688..1376"),
        ("model.layers.0.mlp.gate_proj.scales", &[32, 11_008], "1:5504..11008"),
    ];
    check(&config("awq"), &json!({"tp": "1/2"}), awq);
}

#[test]
fn an_unknown_family_and_a_missing_number_are_named() {
    let error = Partition::for_config(&config(&json!({"model_type": "mamba"}))).unwrap_err();
    assert!(matches!(error, PartitionError::NoRules { .. }), "{error}");
    let expected = r#"no rules for model type "mamba"; write them, such as {"rules": [{"match": "**.q_proj.*", "tp": "col"}]}; there are some for bloom, deepseek_v2, "#;
    assert!(error.to_string().starts_with(expected), "{error}");
    let error = Partition::for_config(&config(&json!({"model_type": "llama"}))).unwrap_err();
    let expected = r#"model type "llama": its rules need num_attention_heads, and the configuration says none above 0"#;
    assert_eq!(error.to_string(), expected);
}

#[test]
fn every_family_is_written_and_read_again() {
    assert_eq!(Partition::families().count(), 23);
    for family in Partition::families() {
        let partition = Partition::for_config(&config(&llama(family, 64, 8, 4))).unwrap();
        let text = serde_json::to_string(&partition).unwrap();
        assert_eq!(serde_json::from_str::<Partition>(&text).unwrap(), partition, "{family}");
    }
}
