//! Every tensor that transformers saves for a model type with built-in rules has a rule, in the form of
//! published models and in that of transformers 5.

use std::collections::BTreeMap;
use std::fs;

use modeldir::partition::{TensorShape, Uneven};
use modeldir::{Dtype, ModelConfig, Partition, Topology};
use serde::Deserialize;
use serde_json::{Value, json};

/// A model type, as transformers saves a tiny model of it.
#[derive(Deserialize)]
struct Saved {
    config: Value,
    usual: BTreeMap<String, Vec<usize>>,
    stacked: BTreeMap<String, Vec<usize>>,
}

/// Cuts the tensors over two ranks, and returns those that no rule matches.
fn unmatched(
    config: &Value,
    tensors: &BTreeMap<String, Vec<usize>>,
) -> Result<Vec<String>, String> {
    let config = ModelConfig::from_json("config.json", config.to_string().as_bytes());
    let config = config.map_err(|error| error.to_string())?;
    let rules = Partition::for_config(&config).map_err(|error| error.to_string())?;
    let rules = Partition { uneven: Uneven::Chunk, ..rules };
    let shapes: Vec<_> = tensors
        .iter()
        .map(|(name, shape)| TensorShape { name, dtype: Dtype::BF16, shape })
        .collect();
    let mut found = Vec::new();
    for ranks in [json!({"tp": "1/2"}), json!({"tp": "0/2", "ep": "0/2"}), json!({"pp": "0/2"})] {
        let ranks: Topology = serde_json::from_value(ranks).unwrap();
        let cut = rules.cut(&ranks, None, &shapes).map_err(|error| error.to_string())?;
        found = cut.report.unmatched;
    }
    Ok(found)
}

fn saved() -> BTreeMap<String, Saved> {
    let path = modeldir_fixtures::families_file();
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn every_tensor_of_every_model_type_has_a_rule() {
    let models = saved();
    // Its language model is `llama4_text`.
    for family in Partition::families() {
        assert!(models.contains_key(family) || family == "llama4", "{family}");
    }
    let (mut wrong, mut table) = (Vec::new(), Vec::new());
    for (model_type, Saved { config, usual, stacked }) in &models {
        table.push(format!("| `{model_type}` | {} | {} |", usual.len(), stacked.len()));
        for (form, tensors) in [("usual", usual), ("stacked", stacked)] {
            match unmatched(config, tensors) {
                Ok(names) if names.is_empty() => {}
                // Published models have inputs first, and this form is refused.
                Err(error) if model_type == "qwen3_vl_moe" => {
                    assert!(error.contains("32 elements along the outputs"), "{error}");
                }
                found => wrong.push(format!("{model_type} {form}: {found:?}")),
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    let readme = modeldir_fixtures::families_file().with_file_name("README.md");
    let readme = fs::read_to_string(readme).unwrap();
    assert!(readme.contains(&table.join("\n")), "{}", table.join("\n"));
}
