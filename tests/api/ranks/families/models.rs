//! The models: what their configurations say, their table, and a sparse file with their tensors.

use std::fs::{self, File};
use std::io::Write;

use modeldir::partition::Uneven;
use modeldir_fixtures::RawFile;
use serde_json::{Value, json};

use super::table::{Expanded, Table};

/// A published model, cut down to a few of its layers.
pub(super) struct Model {
    pub(super) name: &'static str,
    pub(super) config: Value,
    pub(super) table: Table,
    /// Query heads.
    pub(super) heads: u64,
    /// Key and value heads.
    pub(super) kv: usize,
    layers: &'static [usize],
    experts: usize,
    /// The number of ranks that do not divide everything, and are served by `chunk`.
    chunk: Option<usize>,
}

impl Model {
    fn new(name: &'static str, table: &str, config: Value, layers: &'static [usize]) -> Self {
        let numbers = |names: &[&str]| {
            names.iter().find_map(|name| config[*name].as_u64()).expect("a number of the model")
        };
        let heads = numbers(&["num_attention_heads", "n_head"]);
        let kv = match config["multi_query"] == true && config["new_decoder_architecture"] != true {
            true => 1,
            false => {
                numbers(&["num_key_value_heads", "num_kv_heads", "num_attention_heads", "n_head"])
            }
        };
        let experts = ["num_experts", "num_local_experts", "n_routed_experts"];
        let experts = experts.iter().find_map(|name| config[*name].as_u64()).unwrap_or(0);
        let (kv, experts) = (usize::try_from(kv).unwrap(), usize::try_from(experts).unwrap());
        let table = Table::parse(table);
        Self { name, config, table, heads, kv, layers, experts, chunk: None }
    }

    pub(super) fn uneven(&self, size: usize) -> Uneven {
        if self.chunk == Some(size) { Uneven::Chunk } else { Uneven::Error }
    }

    /// Writes configuration, header and a hole for the data.
    pub(super) fn write(&self) -> (tempfile::TempDir, Vec<Expanded>) {
        let tensors = self.table.expand(self.layers, self.experts);
        let (mut raw, mut end) = (RawFile::new(), 0);
        for tensor in &tensors {
            let shape: Vec<_> = tensor.shape.iter().map(|len| *len as u64).collect();
            let begin = end;
            end += tensor.byte_len();
            raw = raw.tensor(&tensor.name, &tensor.dtype, &shape, begin, end);
        }
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("config.json"), self.config.to_string()).unwrap();
        let header = raw.pad(8, 0).to_bytes();
        let mut file = File::create(dir.path().join("model.safetensors")).unwrap();
        file.write_all(&header).unwrap();
        file.set_len(header.len() as u64 + end).unwrap();
        (dir, tensors)
    }
}

fn llama(layers: usize, hidden: usize, heads: usize, kv: usize) -> Value {
    json!({ "model_type": "llama", "num_hidden_layers": layers, "hidden_size": hidden,
        "num_attention_heads": heads, "num_key_value_heads": kv, "tie_word_embeddings": false })
}

fn with(mut config: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().expect("fields by name") {
        config[name] = value.clone();
    }
    config
}

/// Models of dense and fused layers.
fn dense() -> Vec<Model> {
    let phi3 = with(llama(32, 3072, 32, 32), &json!({ "model_type": "phi3" }));
    let gpt2 = json!({ "model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12,
        "tie_word_embeddings": true });
    let neox = json!({ "model_type": "gpt_neox", "num_hidden_layers": 44, "hidden_size": 6144,
        "num_attention_heads": 64, "tie_word_embeddings": false });
    let falcon_7b = json!({ "model_type": "falcon", "num_hidden_layers": 32, "hidden_size": 4544,
        "num_attention_heads": 71, "multi_query": true, "new_decoder_architecture": false,
        "tie_word_embeddings": true });
    let falcon_40b = json!({ "model_type": "falcon", "num_hidden_layers": 60, "hidden_size": 8192,
        "num_attention_heads": 128, "num_kv_heads": 8, "multi_query": true,
        "new_decoder_architecture": true, "tie_word_embeddings": false });
    vec![
        Model::new("Llama-3-8B", include_str!("llama-3-8b.txt"), llama(32, 4096, 32, 8), &[0, 31]),
        Model::new(
            "Llama-3-70B",
            include_str!("llama-3-70b.txt"),
            llama(80, 8192, 64, 8),
            &[0, 79],
        ),
        Model::new("Phi-3-mini", include_str!("phi-3-mini.txt"), phi3, &[0, 31]),
        Model::new("GPT-2", include_str!("gpt2.txt"), gpt2, &[0, 11]),
        Model::new("GPT-NeoX-20B", include_str!("gpt-neox-20b.txt"), neox, &[0, 43]),
        Model::new("Falcon-7B", include_str!("falcon-7b.txt"), falcon_7b, &[0, 31]),
        Model::new("Falcon-40B", include_str!("falcon-40b.txt"), falcon_40b, &[0, 59]),
    ]
}

/// Models with experts.
fn mixtures() -> Vec<Model> {
    let qwen = &json!({ "model_type": "qwen3_moe", "head_dim": 128, "num_experts": 128 });
    let mixtral = &json!({ "model_type": "mixtral", "num_local_experts": 8 });
    let deepseek = &json!({ "model_type": "deepseek_v3", "n_routed_experts": 256,
        "kv_lora_rank": 512, "q_lora_rank": 1536, "num_nextn_predict_layers": 1,
        "quantization_config": { "quant_method": "fp8", "weight_block_size": [128, 128] } });
    let oss = &json!({ "model_type": "gpt_oss", "head_dim": 64, "num_local_experts": 32 });
    let mxfp4 = &json!({ "quantization_config": { "quant_method": "mxfp4" } });
    let oss = with(llama(24, 2880, 64, 8), oss);
    let qwen = with(llama(48, 2048, 32, 4), qwen);
    let mixtral = with(llama(32, 4096, 32, 8), mixtral);
    let deepseek = with(llama(61, 7168, 128, 128), deepseek);
    let quantized = with(oss.clone(), mxfp4);
    vec![
        Model::new("Qwen3-30B-A3B", include_str!("qwen3-30b-a3b.txt"), qwen, &[0, 47]),
        Model::new("Mixtral-8x7B", include_str!("mixtral-8x7b.txt"), mixtral, &[0, 31]),
        Model::new("DeepSeek-V3", include_str!("deepseek-v3.txt"), deepseek, &[0, 60, 61]),
        Model::new("gpt-oss-20b in BF16", include_str!("gpt-oss-20b-bf16.txt"), oss, &[0, 23]),
        Model {
            chunk: Some(4),
            ..Model::new("gpt-oss-20b", include_str!("gpt-oss-20b.txt"), quantized, &[0, 23])
        },
    ]
}

/// Models whose weights are packed in words.
fn packed() -> Vec<Model> {
    let config = |method: &str, desc_act: bool| {
        let quantization = json!({ "quant_method": method, "bits": 4, "group_size": 128,
            "desc_act": desc_act });
        with(llama(32, 4096, 32, 32), &json!({ "quantization_config": quantization }))
    };
    let (gptq, reordered) = (config("gptq", false), config("gptq", true));
    let awq = config("awq", false);
    let act_order = include_str!("llama-7b-gptq-act-order.txt");
    vec![
        Model::new("Llama-7B-GPTQ", include_str!("llama-7b-gptq.txt"), gptq, &[0, 31]),
        Model::new("Llama-7B-GPTQ, columns reordered", act_order, reordered, &[0, 31]),
        Model::new("Llama-7B-AWQ", include_str!("llama-7b-awq.txt"), awq, &[0, 31]),
    ]
}

pub(super) fn models() -> Vec<Model> {
    [dense(), mixtures(), packed()].into_iter().flatten().collect()
}
