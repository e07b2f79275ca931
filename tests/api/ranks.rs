//! What each rank takes of shipped models, against what transformers itself put there.

// Ranks that cannot be served.
mod refused;
// Values that are loaded, for every kind of cut, against an oracle that cuts element by element.
mod case;
mod companions;
mod experts;
mod oracle;
mod placements;
// The same, against what numpy cut of a shipped file.
mod numpy;
// Shapes and bytes of published models, by the built-in rules.
mod families;
// Plans that transformers ships.
mod plans;
// Names and shapes that transformers saves.
mod types;
// Plans of ranks that are mapped, narrowed and saved.
mod kept;
mod saved;

use std::collections::BTreeMap;

use modeldir::partition::Uneven;
use modeldir::{ModelDir, Partition, Rank, Tensor, TensorStore, Topology};
use modeldir_fixtures::{PartDigest, RankDump, rank_dump, sha256_hex};

/// Calls back with the store of each rank and with what transformers held there.
fn each_rank(
    model: &str,
    sizes: &[usize],
    rules: impl Fn(&ModelDir, &RankDump) -> Partition,
    check: impl Fn(&TensorStore, &BTreeMap<String, PartDigest>) -> usize,
) -> usize {
    let dir = ModelDir::open(modeldir_fixtures::model(model)).unwrap();
    let mut compared = 0;
    for &size in sizes {
        for rank in 0..size {
            let dump = rank_dump(model, rank, size);
            let topology = Topology::tensor_parallel(Rank::new(rank, size).unwrap());
            let plan = dir.plan_for(&rules(&dir, &dump), &topology).unwrap();
            let store = plan.load().unwrap();
            assert_eq!(store.byte_len(), plan.bytes_selected());
            compared += check(&store, &dump.parts);
        }
    }
    compared
}

fn assert_same(name: &str, tensor: &Tensor, expected: &PartDigest) {
    assert_eq!(tensor.shape(), expected.shape, "{name}");
    assert_eq!(sha256_hex(tensor.bytes()), expected.sha256, "{name}");
}

/// Every parameter has one name in both.
fn all_are_same(store: &TensorStore, parts: &BTreeMap<String, PartDigest>) -> usize {
    assert!(store.names().eq(parts.keys()), "{:?}", store.names().collect::<Vec<_>>());
    for (name, expected) in parts {
        assert_same(name, store.get(name).unwrap(), expected);
    }
    parts.len()
}

/// The rules of the family, cut as transformers cuts.
fn built_in(dir: &ModelDir, _: &RankDump) -> Partition {
    let partition = Partition::for_config(dir.config().unwrap()).unwrap();
    Partition { uneven: Uneven::Chunk, ..partition }
}

/// The rules that transformers followed, none of which is idle.
fn from_plan(_: &ModelDir, dump: &RankDump) -> Partition {
    let partition = Partition::from_hf(dump.plan.as_bytes(), &[]).unwrap();
    assert!(!partition.rules.is_empty());
    partition
}

#[test]
fn llama_by_the_rules_of_its_family_and_by_the_plan() {
    let sizes = &[2, 3, 4];
    assert_eq!(each_rank("llama", sizes, built_in, all_are_same), 30 * (2 + 3 + 4));
    assert_eq!(each_rank("llama", sizes, from_plan, all_are_same), 30 * (2 + 3 + 4));
}

#[test]
fn phi3_by_the_plan() {
    assert_eq!(each_rank("phi3", &[2, 4], from_plan, all_are_same), 21 * (2 + 4));
}

#[test]
fn the_rules_of_phi3_cut_blocks_where_the_plan_cuts_them_as_one() {
    let differ = |store: &TensorStore, parts: &BTreeMap<String, PartDigest>| {
        let differ = |(name, tensor): &(&str, &Tensor)| {
            assert_eq!(tensor.shape(), parts[*name].shape, "{name}");
            sha256_hex(tensor.bytes()) != parts[*name].sha256
        };
        let names: Vec<_> = store.iter().filter(differ).map(|(name, _)| name).collect();
        let is_fused =
            |name: &&str| name.contains("qkv_proj.weight") || name.contains("gate_up_proj.weight");
        assert!(names.iter().all(is_fused), "{names:?}");
        names.len()
    };
    // Two fused tensors in each of three layers.
    assert_eq!(each_rank("phi3", &[2], built_in, differ), 2 * 3 * 2);
}

#[test]
fn gpt_oss_by_the_plan() {
    assert_eq!(each_rank("gpt-oss", &[2], from_plan, all_are_same), 54 * 2);
}

/// Parameters on disk are as they are; experts are stacked here as transformers does it.
fn experts_stack_to_the_same(store: &TensorStore, parts: &BTreeMap<String, PartDigest>) -> usize {
    let mut stacks: BTreeMap<String, (Vec<usize>, Vec<u8>)> = BTreeMap::new();
    let mut unfused = 0;
    for (name, tensor) in store.iter() {
        if let Some(expected) = parts.get(name) {
            assert_same(name, tensor, expected);
            unfused += 1;
        }
    }
    for (name, expected) in parts.iter().filter(|(name, _)| !store.contains(name)) {
        let (module, leaf) = name.rsplit_once('.').unwrap();
        let leaves: &[&str] =
            if leaf == "down_proj" { &["down_proj"] } else { &["gate_proj", "up_proj"] };
        let (shape, bytes) = stacks.entry(name.clone()).or_default();
        for expert in 0..expected.shape[0] {
            for leaf in leaves {
                let part = store.get(&format!("{module}.{expert}.{leaf}.weight")).unwrap();
                let [rows, columns] = *part.shape() else { unreachable!("a matrix") };
                *shape = vec![expert + 1, rows * leaves.len(), columns];
                bytes.extend_from_slice(part.bytes());
            }
        }
        assert_eq!(*shape, expected.shape, "{name}");
        assert_eq!(sha256_hex(bytes), expected.sha256, "{name}");
    }
    // Two stacks in each of three layers, of 8 experts with three matrices.
    assert_eq!((stacks.len(), store.len() - unfused), (2 * 3, 3 * 3 * 8));
    unfused
}

#[test]
fn qwen3_moe_by_the_rules_of_its_family_and_by_the_plan() {
    let renamed = |_: &ModelDir, dump: &RankDump| {
        let of = |name| format!("model.layers.*.mlp.experts.{name}");
        let (gate_up, down) = (of("gate_up_proj"), of("down_proj"));
        let renames = [
            ("**.mlp.experts.{e}.(gate|up)_proj.*", gate_up.as_str()),
            ("**.mlp.experts.{e}.down_proj.*", down.as_str()),
        ];
        Partition::from_hf(dump.plan.as_bytes(), &renames).unwrap()
    };
    assert_eq!(each_rank("qwen3-moe", &[2], built_in, experts_stack_to_the_same), 30 * 2);
    assert_eq!(each_rank("qwen3-moe", &[2], renamed, experts_stack_to_the_same), 30 * 2);
}
