//! Parts of published models by the built-in rules: shapes for each rank, and bytes of all ranks.

mod models;
mod table;

use std::collections::BTreeMap;

use modeldir::partition::Uneven;
use modeldir::{LoadPlan, ModelDir, Partition, Topology};
use serde_json::{Value, json};

use models::{Model, models};
use table::{Expanded, Share};

/// The shape of each planned part.
fn shapes(plan: &LoadPlan) -> BTreeMap<String, Vec<usize>> {
    let plan = serde_json::to_value(plan).unwrap();
    let shape = |tensor: &Value| {
        (
            tensor["name"].as_str().unwrap().to_owned(),
            serde_json::from_value(tensor["shape"].clone()).unwrap(),
        )
    };
    plan["tensors"].as_array().unwrap().iter().map(shape).collect()
}

fn rules(dir: &ModelDir, uneven: Uneven) -> Partition {
    Partition { uneven, ..dir.partition().unwrap() }
}

fn plan(dir: &ModelDir, uneven: Uneven, ranks: Value) -> LoadPlan {
    let topology: Topology = serde_json::from_value(ranks).unwrap();
    let plan = dir.plan_for(&rules(dir, uneven), &topology).unwrap();
    let report = plan.partition_report().unwrap();
    assert_eq!((&report.unused, &report.unmatched), (&Vec::new(), &Vec::new()));
    plan
}

#[test]
fn every_rank_has_parts_of_the_shapes_in_the_table() {
    let mut compared = 0;
    for model in models() {
        let (folder, tensors) = model.write();
        let dir = ModelDir::open(folder.path()).unwrap();
        for (column, size) in model.table.sizes.iter().copied().enumerate() {
            for rank in 0..size {
                let ranks = json!({ "tp": format!("{rank}/{size}") });
                let found = shapes(&plan(&dir, model.uneven(size), ranks));
                assert_eq!(found.len(), tensors.len(), "{}", model.name);
                for tensor in &tensors {
                    let expected = tensor.parts[column].of_rank(rank);
                    let name = format!("{}: {} on {rank}/{size}", model.name, tensor.name);
                    assert_eq!(found[&tensor.name], expected, "{name}");
                    compared += 1;
                }
            }
        }
    }
    // A table that loses a line is noticed.
    assert_eq!(compared, 39_304);
}

/// How often the ranks of `stages` stages of `size` hold an element of a tensor, in units of its
/// bytes divided by `parts`.
fn copies(model: &Model, tensor: &Expanded, size: usize, stages: usize, ep: bool) -> (u64, u64) {
    let kv = (size / model.kv).max(1) as u64;
    let size = size as u64;
    let (copies, parts) = match tensor.share {
        Share::Cut => (1, 1),
        Share::ExpertCut | Share::ExpertAll if ep => (1, 1),
        Share::ExpertCut => (1, 1),
        Share::All | Share::ExpertAll => (size, 1),
        Share::Kv => (kv, 1),
        // So many query heads, then key and value heads.
        Share::Qkv => (model.heads + 2 * kv, model.heads + 2),
    };
    let embeddings = ["wte.weight", "word_embeddings.weight", "embed_tokens.weight"];
    let is_embedding = embeddings.iter().any(|name| tensor.name.ends_with(name));
    let is_twice = stages > 1 && is_embedding && model.config["tie_word_embeddings"] == true;
    (copies * if is_twice { 2 } else { 1 }, parts)
}

#[test]
fn all_ranks_together_select_what_the_rules_say_and_read_no_more() {
    for model in models() {
        let (folder, tensors) = model.write();
        let dir = ModelDir::open(folder.path()).unwrap();
        let has_experts = tensors.iter().any(Expanded::is_of_expert);
        for (column, size) in model.table.sizes.iter().copied().enumerate() {
            // Of these, ranks hold whole rows.
            let is_cut_by_rows =
                |tensor: &Expanded| tensor.shape[1..] == tensor.parts[column].of_rank(0)[1..];
            let by_rows: BTreeMap<_, _> =
                tensors.iter().map(|t| (t.name.as_str(), is_cut_by_rows(t))).collect();
            for (stages, ep) in [(1, false), (2, false), (1, true), (2, true)] {
                if ep && !has_experts {
                    continue;
                }
                let mut selected = 0;
                for (stage, rank) in (0..stages).flat_map(|s| (0..size).map(move |r| (s, r))) {
                    let mut ranks = json!({
                        "tp": format!("{rank}/{size}"), "pp": format!("{stage}/{stages}"),
                    });
                    if ep {
                        ranks["ep"] = json!(format!("{rank}/{size}"));
                    }
                    let plan = plan(&dir, model.uneven(size), ranks);
                    selected += plan.bytes_selected();
                    let rows = plan.filter(|tensor| by_rows[tensor.name()]);
                    let (read, wanted) = (rows.bytes_read(), rows.bytes_selected());
                    assert!(read * 100 <= wanted * 101, "{}: {read} of {wanted}", model.name);
                }
                let of_all = |tensor: &Expanded| {
                    let (copies, parts) = copies(&model, tensor, size, stages, ep);
                    tensor.byte_len() / parts * copies
                };
                let expected: u64 = tensors.iter().map(of_all).sum();
                let mesh = format!("{}: tp {size}, pp {stages}, ep {ep}", model.name);
                assert_eq!(selected, expected, "{mesh}");
            }
        }
    }
}

/// Bytes of a tensor that each of `size` ranks holds and another of them holds too.
fn replicated(model: &Model, tensor: &Expanded, size: usize) -> u64 {
    let is_shared = size > model.kv;
    let kv = tensor.byte_len() / model.kv as u64;
    match tensor.share {
        Share::Cut | Share::ExpertCut => 0,
        Share::All | Share::ExpertAll => tensor.byte_len(),
        Share::Kv => {
            if is_shared {
                kv
            } else {
                0
            }
        }
        Share::Qkv => {
            if is_shared {
                tensor.byte_len() / (model.heads + 2) * 2
            } else {
                0
            }
        }
    }
}

#[test]
fn a_rank_has_an_even_share_and_what_all_have() {
    for model in models() {
        let (folder, tensors) = model.write();
        let dir = ModelDir::open(folder.path()).unwrap();
        let single = plan(&dir, Uneven::Error, json!({}));
        assert_eq!(single.bytes_selected(), dir.byte_len());
        assert_eq!(single.requests(), dir.plan().requests());
        for size in model.table.sizes.iter().copied() {
            let common: u64 = tensors.iter().map(|t| replicated(&model, t, size)).sum();
            // Without the key and value heads that several ranks hold.
            let of_all = |tensor: &Expanded| match tensor.share {
                Share::Kv if size > model.kv => 0,
                Share::Qkv => tensor.byte_len() / (model.heads + 2) * model.heads,
                _ => tensor.byte_len() - replicated(&model, tensor, size),
            };
            let shared: u64 = tensors.iter().map(of_all).sum();
            for rank in 0..size {
                let plan =
                    plan(&dir, model.uneven(size), json!({ "tp": format!("{rank}/{size}") }));
                let report = plan.partition_report().unwrap();
                assert_eq!(report.replicated_bytes, common, "{} {rank}/{size}", model.name);
                let own = plan.bytes_selected() - common;
                // Vocabularies and blocks leave remainders: none of them is a fortieth.
                let even = shared.div_ceil(size as u64);
                assert!(own <= even + even / 40, "{} on {rank}/{size}", model.name);
            }
        }
    }
}
