//! The plans that transformers ships, on the names that are on disk: no rule of them is idle.

use modeldir::partition::TensorShape;
use modeldir::{Partition, Selection, Topology};
use serde_json::{Map, Value, json};
use tensorfile::Dtype;

/// What every plan has, and that of an attention of three projections.
const ENDS: &[(&str, &str)] =
    &[("lm_head", "colwise_gather_output"), ("model.embed_tokens", "embedding_rowwise")];
const ATTENTION: &[(&str, &str)] = &[
    ("L.self_attn.q_proj", "colwise"),
    ("L.self_attn.k_proj", "colwise"),
    ("L.self_attn.v_proj", "colwise"),
    ("L.self_attn.o_proj", "rowwise"),
];
const MLP: &[(&str, &str)] =
    &[("L.mlp.gate_proj", "colwise"), ("L.mlp.up_proj", "colwise"), ("L.mlp.down_proj", "rowwise")];
const HEAD_NORMS: &[(&str, &str)] = &[
    ("L.self_attn.q_norm", "replicated_with_grad_allreduce"),
    ("L.self_attn.k_norm", "replicated_with_grad_allreduce"),
];
const EXPERTS: &[(&str, &str)] = &[
    ("L.mlp.experts", "moe_tp_experts"),
    ("L.mlp.experts.gate_up_proj", "packed_colwise"),
    ("L.mlp.experts.down_proj", "rowwise"),
];
const SHARED: &[(&str, &str)] = &[
    ("L.mlp.shared_experts.gate_proj", "colwise"),
    ("L.mlp.shared_experts.up_proj", "colwise"),
    ("L.mlp.shared_experts.down_proj", "rowwise"),
];
const EXPERT_PARALLEL: &[(&str, &str)] = &[
    ("L.mlp.experts", "ep_dispatch_experts"),
    ("L.mlp.experts.gate_up_proj", "grouped_gemm"),
    ("L.mlp.experts.down_proj", "grouped_gemm"),
];
const PHI3: &[(&str, &str)] = &[
    ("L.self_attn.qkv_proj", "colwise_gather_output"),
    ("L.self_attn.o_proj", "rowwise_split_input"),
    ("L.mlp.gate_up_proj", "colwise_gather_output"),
    ("L.mlp.down_proj", "rowwise_split_input"),
];
const LLAMA4: &[(&str, &str)] = &[
    ("L.feed_forward.experts.gate_up_proj", "packed_rowwise"),
    ("L.feed_forward.experts.down_proj", "colwise"),
    ("L.feed_forward.shared_expert.gate_proj", "colwise"),
    ("L.feed_forward.shared_expert.down_proj", "rowwise"),
    ("L.feed_forward.up_proj", "colwise"),
];
const GPT_NEOX: &[(&str, &str)] = &[
    ("gpt_neox.embed_in", "embedding_rowwise"),
    ("gpt_neox.layers.*.attention.query_key_value", "colwise"),
    ("gpt_neox.layers.*.attention.dense", "rowwise"),
    ("gpt_neox.layers.*.mlp.dense_h_to_4h", "colwise"),
    ("gpt_neox.layers.*.mlp.dense_4h_to_h", "rowwise"),
];

/// Names on disk of what mixtures of experts have stacked once they are loaded.
const QWEN_NAMES: &[(&str, &str)] = &[
    ("**.mlp.experts.{e}.(gate|up)_proj.*", "model.layers.*.mlp.experts.gate_up_proj"),
    ("**.mlp.experts.{e}.down_proj.*", "model.layers.*.mlp.experts.down_proj"),
];
const MIXTRAL_NAMES: &[(&str, &str)] = &[
    ("**.block_sparse_moe.experts.{e}.(w1|w3).*", "model.layers.*.mlp.experts.gate_up_proj"),
    ("**.block_sparse_moe.experts.{e}.w2.*", "model.layers.*.mlp.experts.down_proj"),
];

fn whole() -> Option<Selection> {
    Some(Selection::all())
}

/// The second half of a dimension.
fn half(dim: usize) -> Option<Selection> {
    Some(Selection::all().with_range(dim, 4..8))
}

/// The second half of each half of a dimension.
fn halves(dim: usize) -> Option<Selection> {
    Some(Selection::all().with_ranges(dim, vec![2..4, 6..8]))
}

/// Cuts for rank 1 of 2 by a plan; names of matrices, or with `[]` before them of stacks.
fn check(
    plan: &[&[(&str, &str)]],
    renames: &[(&str, &str)],
    ranks: &Value,
    tensors: &[(&str, Option<Selection>)],
) {
    let full = |name: &str| name.replace("L.", "model.layers.0.");
    let plan = plan.concat();
    let entry =
        |(key, style): &(&str, &str)| (key.replace("L.", "model.layers.*."), Value::from(*style));
    let plan: Map<String, Value> = plan.iter().map(entry).collect();
    let plan = Value::from(plan).to_string();
    let partition = Partition::from_hf(plan.as_bytes(), renames).unwrap();
    let ranks: Topology = serde_json::from_value(ranks.clone()).unwrap();
    let names: Vec<_> =
        tensors.iter().map(|(name, _)| full(name.trim_start_matches("[]"))).collect();
    let shapes: Vec<_> = names
        .iter()
        .zip(tensors)
        .map(|(name, (given, _))| {
            let shape: &[usize] = if given.starts_with("[]") { &[8, 8, 8] } else { &[8, 8] };
            TensorShape { name, dtype: Dtype::BF16, shape }
        })
        .collect();
    let cut = partition.cut(&ranks, None, &shapes).unwrap();
    assert_eq!(cut.report.unused, [""; 0], "{plan}");
    for ((name, expected), found) in tensors.iter().zip(&cut.parts) {
        assert_eq!(found, expected, "{name}");
    }
}

fn ends() -> [(&'static str, Option<Selection>); 2] {
    [("lm_head.weight", half(0)), ("model.embed_tokens.weight", half(0))]
}

fn attention() -> [(&'static str, Option<Selection>); 4] {
    [
        ("L.self_attn.q_proj.weight", half(0)),
        ("L.self_attn.k_proj.weight", half(0)),
        ("L.self_attn.v_proj.weight", half(0)),
        ("L.self_attn.o_proj.weight", half(1)),
    ]
}

fn mlp() -> [(&'static str, Option<Selection>); 3] {
    [
        ("L.mlp.gate_proj.weight", half(0)),
        ("L.mlp.up_proj.weight", half(0)),
        ("L.mlp.down_proj.weight", half(1)),
    ]
}

#[test]
fn dense_models() {
    let tp = json!({ "tp": "1/2" });
    let llama = [&ends()[..], &attention(), &mlp()].concat();
    check(&[ENDS, ATTENTION, MLP], &[], &tp, &llama);
    let norms = [("L.self_attn.q_norm.weight", whole()), ("L.self_attn.k_norm.weight", whole())];
    check(&[ENDS, ATTENTION, MLP, HEAD_NORMS], &[], &tp, &[&llama[..], &norms].concat());
    let phi3 = [
        ("L.self_attn.qkv_proj.weight", half(0)),
        ("L.self_attn.o_proj.weight", half(1)),
        ("L.mlp.gate_up_proj.weight", half(0)),
        ("L.mlp.down_proj.weight", half(1)),
    ];
    check(&[ENDS, PHI3], &[], &tp, &[&ends()[..], &phi3].concat());
    let neox = [
        ("gpt_neox.embed_in.weight", half(0)),
        ("gpt_neox.layers.0.attention.query_key_value.weight", half(0)),
        ("gpt_neox.layers.0.attention.dense.weight", half(1)),
        ("gpt_neox.layers.0.mlp.dense_h_to_4h.weight", half(0)),
        ("gpt_neox.layers.0.mlp.dense_4h_to_h.weight", half(1)),
    ];
    check(&[GPT_NEOX], &[], &tp, &neox);
}

#[test]
fn mixtures_of_experts() {
    let tp = json!({ "tp": "1/2" });
    let qwen = [
        ("L.mlp.experts.0.gate_proj.weight", half(0)),
        ("L.mlp.experts.0.up_proj.weight", half(0)),
        ("L.mlp.experts.0.down_proj.weight", half(1)),
        ("L.mlp.gate.weight", whole()),
    ];
    let names = [&ends()[..], &attention(), &mlp(), &qwen].concat();
    check(&[ENDS, ATTENTION, MLP, EXPERTS], QWEN_NAMES, &tp, &names);
    let mixtral = [
        ("L.block_sparse_moe.experts.0.w1.weight", half(0)),
        ("L.block_sparse_moe.experts.0.w2.weight", half(1)),
        ("L.block_sparse_moe.experts.0.w3.weight", half(0)),
        ("L.block_sparse_moe.gate.weight", whole()),
    ];
    let names = [&ends()[..], &attention(), &mixtral].concat();
    check(&[ENDS, ATTENTION, EXPERTS], MIXTRAL_NAMES, &tp, &names);
    // The attention is not cut.
    let deepseek = [
        ("L.self_attn.q_b_proj.weight", whole()),
        ("L.self_attn.o_proj.weight", whole()),
        ("L.mlp.shared_experts.gate_proj.weight", half(0)),
        ("L.mlp.shared_experts.up_proj.weight", half(0)),
        ("L.mlp.shared_experts.down_proj.weight", half(1)),
    ];
    let names = [&ends()[..], &mlp(), &qwen, &deepseek].concat();
    check(&[ENDS, MLP, EXPERTS, SHARED], QWEN_NAMES, &tp, &names);
    // Stacked with inputs first, so that columns of the plan are rows of the layer.
    let llama4 = [
        ("[]L.feed_forward.experts.gate_up_proj", halves(2)),
        ("[]L.feed_forward.experts.down_proj", half(1)),
        ("L.feed_forward.shared_expert.gate_proj.weight", half(0)),
        ("L.feed_forward.shared_expert.down_proj.weight", half(1)),
        ("L.feed_forward.up_proj.weight", half(0)),
    ];
    let names = [&ends()[..], &attention(), &llama4].concat();
    check(&[ENDS, ATTENTION, LLAMA4], &[], &tp, &names);
}

#[test]
fn expert_parallel_plans() {
    let ep = json!({ "ep": "1/2" });
    let stacked = [
        ("[]L.mlp.experts.down_proj", half(0)),
        ("[]L.mlp.experts.gate_up_proj", half(0)),
        ("[]L.mlp.experts.gate_up_proj_bias", half(0)),
        ("L.self_attn.q_proj.weight", whole()),
    ];
    check(&[EXPERT_PARALLEL], &[], &ep, &stacked);
    let named = [
        ("L.mlp.experts.0.down_proj.weight", None),
        ("L.mlp.experts.0.gate_proj.weight", None),
        ("L.mlp.experts.1.down_proj.weight", whole()),
        ("L.mlp.experts.1.up_proj.weight", whole()),
    ];
    check(&[EXPERT_PARALLEL], QWEN_NAMES, &ep, &named);
}
