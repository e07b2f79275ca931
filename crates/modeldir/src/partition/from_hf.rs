//! Rules from the plans of transformers, which name the modules of a loaded model.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use super::error::PartitionError;
use super::expect::Expected;
use super::pattern::Pattern;
use super::rule::{Ep, Rule, Unused};
use super::rules::{Partition, from_text};
use super::tp::{Axis, Part, Split, Tp, Uneven};
use crate::{Result, json};

/// Styles of transformers that concern communication only, and cut nothing.
const HOOKS_ONLY: [&str; 12] = [
    "all_reduce",
    "ep_dispatch_experts",
    "ep_router",
    "gather",
    "local",
    "local_params",
    "mla_kv_a_proj",
    "moe_identity_expert",
    "moe_tp_experts",
    "replicate",
    "replicated_with_grad_allreduce",
    "sequence_parallel",
];

/// How a style of transformers cuts a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Whole,
    Cut(Axis),
    /// Two blocks side by side, each cut by itself.
    Packed(Axis),
    Experts,
}

impl Style {
    /// Older releases have other names for the same cuts with different communication.
    fn from_name(name: &str) -> Option<Self> {
        let plain = name.strip_prefix("local_").unwrap_or(name);
        Some(match plain {
            _ if HOOKS_ONLY.contains(&name) => Self::Whole,
            "colwise" | "colwise_rep" | "colwise_gather_output" | "embedding_rowwise" => {
                Self::Cut(Axis::Out)
            }
            "rowwise" | "rowwise_rep" | "rowwise_split_input" => Self::Cut(Axis::In),
            "embedding_colwise" => Self::Cut(Axis::Dim(1)),
            "packed_colwise" => Self::Packed(Axis::Out),
            "packed_rowwise" => Self::Packed(Axis::In),
            "grouped_gemm" => Self::Experts,
            _ => return None,
        })
    }
}

impl Partition {
    /// Converts a tensor-parallel plan of transformers to rules.
    ///
    /// The plan is a JSON object as written by `json.dumps(model.tp_plan)`. Its keys are names of
    /// modules or parameters, with `*` for numbers; its values are styles. Lengths that do not
    /// divide evenly are cut as by `torch.chunk`.
    ///
    /// The keys are names in the loaded model. If the checkpoint has other names, list them in
    /// `renames`, as pairs of a pattern for whole names on disk and the key that applies to them:
    ///
    /// ```
    /// use modeldir::Partition;
    ///
    /// let plan = r#"{
    ///     "layers.*.self_attn.q_proj": "colwise",
    ///     "layers.*.mlp.experts.gate_up_proj": "packed_colwise",
    ///     "layers.*.mlp.experts.down_proj": "rowwise"
    /// }"#;
    /// let renames = [
    ///     ("**.experts.{e}.(gate|up)_proj.*", "layers.*.mlp.experts.gate_up_proj"),
    ///     ("**.experts.{e}.down_proj.*", "layers.*.mlp.experts.down_proj"),
    /// ];
    /// let partition = Partition::from_hf(plan.as_bytes(), &renames)?;
    /// assert_eq!(partition.rules.len(), 3);
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// The rules [expect](Rule::expect) a known layout, as built-in rules do: a plan names modules,
    /// and says nothing about how their tensors are stored.
    ///
    /// A pattern with `{e}` matches tensors of single experts, which a packed style cuts as if they
    /// were not packed. Biases are cut like their weights; in packed modules this differs from
    /// transformers, which cuts such biases as if they were not packed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Json`](crate::ErrorKind::Json) if the bytes are not such an object;
    /// [`PartitionError::TpStyle`] for an unknown style; [`PartitionError::Pattern`] for a key or
    /// a rename that is not a valid pattern.
    pub fn from_hf(plan: &[u8], renames: &[(&str, &str)]) -> Result<Self> {
        let plan: BTreeMap<String, String> = from_text(json::text(plan)?)?;
        let mut rules = Vec::with_capacity(plan.len());
        // A parameter comes before its module.
        let mut keys: Vec<_> = plan.iter().collect();
        keys.sort_by_key(|(key, _)| Reverse((key.matches('.').count(), key.len())));
        for (key, name) in keys {
            let style = Style::from_name(name).ok_or_else(|| PartitionError::TpStyle {
                module: key.as_str().into(),
                style: name.as_str().into(),
            })?;
            let mut on_disk = renames.iter().filter(|(_, of)| of == key).peekable();
            if on_disk.peek().is_none() {
                rules.push(rule(on_disk_by_default(key).parse()?, style));
            }
            for (pattern, _) in on_disk {
                rules.push(rule(pattern.parse()?, style));
            }
        }
        Ok(Self { rules, uneven: Uneven::Chunk, ..Self::default() })
    }
}

/// The pattern of names on disk for a key of a plan.
///
/// Stacked experts are parameters; all other keys of plans are modules.
fn on_disk_by_default(key: &str) -> String {
    match key.rsplit('.').nth(1) {
        Some("experts") => format!("**.{key}*"),
        _ => format!("**.{key}.*"),
    }
}

fn rule(pattern: Pattern, style: Style) -> Rule {
    let is_of_one_expert = pattern.has_expert();
    let packed = |axis| {
        let parts = vec![Part::new(NonZeroUsize::MIN); 2];
        Tp::Split(Split { parts, ..Split::along(axis) })
    };
    let tp = match style {
        Style::Whole => Some(Tp::Replicate),
        Style::Packed(axis) if !is_of_one_expert => Some(packed(axis)),
        Style::Cut(axis) | Style::Packed(axis) => Some(Tp::Split(Split::along(axis))),
        Style::Experts => None,
    };
    let ep = match style {
        Style::Experts if is_of_one_expert => Some(Ep::Name),
        Style::Experts => Some(Ep::Axis),
        _ => None,
    };
    let unused = if style == Style::Whole { Unused::Ignore } else { Unused::Report };
    Rule { tp, ep, unused, expect: Some(Expected::default()), ..Rule::new(pattern) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tensorfile::{Dtype, Selection};

    use crate::json::JsonError;
    use crate::partition::{Misfit, PartitionError, TensorShape};
    use crate::{ErrorKind, Partition, Rank, Topology};

    /// The parts of BF16 tensors for rank 1 of 2.
    fn parts(
        plan: &str,
        renames: &[(&str, &str)],
        tensors: &[(&str, &[usize])],
    ) -> Vec<Option<Selection>> {
        let partition = Partition::from_hf(plan.as_bytes(), renames).unwrap();
        let tensors: Vec<_> = tensors
            .iter()
            .map(|&(name, shape)| TensorShape { name, dtype: Dtype::BF16, shape })
            .collect();
        let cut = partition
            .cut(&Topology::tensor_parallel(Rank::new(1, 2).unwrap()), None, &tensors)
            .unwrap();
        assert_eq!(cut.report.unused, [""; 0]);
        cut.parts
    }

    fn dim(dim: usize, range: std::ops::Range<usize>) -> Option<Selection> {
        Some(Selection::all().with_range(dim, range))
    }

    #[test]
    fn tensors_of_unknown_layouts_are_refused() {
        let partition = Partition::from_hf(br#"{"layers.*.up_proj": "colwise"}"#, &[]).unwrap();
        let name = "layers.0.up_proj.odd";
        let tensor = TensorShape { name, dtype: Dtype::I32, shape: &[8, 4] };
        let rank = Topology::tensor_parallel(Rank::new(1, 2).unwrap());
        let error = partition.cut(&rank, None, &[tensor]).unwrap_err();
        assert_eq!(error.tensor(), Some(name));
        let ErrorKind::Partition(PartitionError::Cut { misfit, .. }) = error.kind() else {
            panic!("{error}")
        };
        assert!(matches!(misfit, Misfit::UnknownLayout { .. }), "{misfit}");
    }

    #[test]
    fn styles_are_cuts_of_the_parameters_of_a_module() {
        let plan = json!({
            "lm_head": "colwise_gather_output",
            "model.embed_tokens": "embedding_rowwise",
            "model.layers.*.mlp.down_proj": "rowwise_split_input",
            "model.layers.*.mlp.up_proj": "local_colwise",
            "model.layers.*.norm": "sequence_parallel",
            "model.layers.*.mlp.experts": "moe_tp_experts",
            "model.layers.*.mlp.experts.down_proj": "rowwise",
            "model.layers.*.mlp.experts.gate_up_proj": "packed_colwise"
        });
        let halves = Selection::all().with_ranges(1, vec![2..4, 6..8]);
        let tensors: &[(&str, &[usize])] = &[
            ("lm_head.weight", &[5, 4]),
            ("model.embed_tokens.weight", &[5, 4]),
            ("model.layers.0.mlp.down_proj.bias", &[4]),
            ("model.layers.0.mlp.down_proj.weight", &[4, 8]),
            ("model.layers.0.mlp.experts.down_proj", &[2, 4, 8]),
            ("model.layers.0.mlp.experts.gate_up_proj", &[2, 8, 4]),
            ("model.layers.0.mlp.up_proj.weight", &[8, 4]),
            ("model.layers.0.norm.weight", &[4]),
        ];
        assert_eq!(
            parts(&plan.to_string(), &[], tensors),
            [
                dim(0, 3..5),
                dim(0, 3..5),
                Some(Selection::all()),
                dim(1, 4..8),
                dim(2, 4..8),
                Some(halves),
                dim(0, 4..8),
                Some(Selection::all()),
            ]
        );
    }

    #[test]
    fn renamed_experts_are_cut_one_by_one() {
        let plan = r#"{"layers.*.experts.gate_up_proj": "packed_colwise", "layers.*.experts.down_proj": "rowwise"}"#;
        let renames = [
            ("**.moe.{e}.(w1|w3).*", "layers.*.experts.gate_up_proj"),
            ("**.moe.{e}.w2.*", "layers.*.experts.down_proj"),
        ];
        let tensors: &[(&str, &[usize])] =
            &[("layers.0.moe.0.w1.weight", &[4, 6]), ("layers.0.moe.0.w2.weight", &[6, 4])];
        assert_eq!(parts(plan, &renames, tensors), [dim(0, 2..4), dim(1, 2..4)]);
        // Without the names on disk, the report says that the plan met nothing.
        let partition = Partition::from_hf(plan.as_bytes(), &[]).unwrap();
        let w1 = TensorShape { name: tensors[0].0, dtype: Dtype::BF16, shape: tensors[0].1 };
        let cut = partition
            .cut(&Topology::tensor_parallel(Rank::new(0, 2).unwrap()), None, &[w1])
            .unwrap();
        assert_eq!(cut.report.unused.len(), 2);
    }

    #[test]
    fn grouped_experts_are_shared_out() {
        let plan = br#"{"layers.*.experts.gate_up_proj": "grouped_gemm"}"#;
        let partition = Partition::from_hf(plan, &[]).unwrap();
        let ranks: Topology = serde_json::from_str(r#"{"ep": "1/2"}"#).unwrap();
        let name = "model.layers.0.experts.gate_up_proj_bias";
        let tensor = TensorShape { name, dtype: Dtype::BF16, shape: &[4, 6] };
        assert_eq!(partition.cut(&ranks, None, &[tensor]).unwrap().parts, [dim(0, 2..4)]);
    }

    #[test]
    fn experts_with_names_of_their_own_are_shared_out_by_them() {
        let plan = br#"{"layers.*.experts.gate_up_proj": "grouped_gemm"}"#;
        let renames = [("**.moe.{e}.w1.*", "layers.*.experts.gate_up_proj")];
        let partition = Partition::from_hf(plan, &renames).unwrap();
        let ranks: Topology = serde_json::from_str(r#"{"ep": "1/2"}"#).unwrap();
        let names = [0, 1, 2, 3].map(|expert| format!("layers.0.moe.{expert}.w1.weight"));
        let tensors: Vec<_> = names
            .iter()
            .map(|name| TensorShape { name, dtype: Dtype::BF16, shape: &[4, 6] })
            .collect();
        let cut = partition.cut(&ranks, None, &tensors).unwrap();
        assert_eq!(
            cut.parts.iter().map(Option::is_some).collect::<Vec<_>>(),
            [false, false, true, true]
        );
    }

    #[test]
    fn second_dimensions_and_blocks_side_by_side_are_cut() {
        let plan =
            r#"{"embed": "embedding_colwise", "layers.*.mlp.experts.down_proj": "packed_rowwise"}"#;
        let tensors: &[(&str, &[usize])] =
            &[("embed.weight", &[5, 4]), ("layers.0.mlp.experts.down_proj", &[2, 4, 8])];
        let blocks = Selection::all().with_ranges(2, vec![2..4, 6..8]);
        assert_eq!(parts(plan, &[], tensors), [dim(1, 2..4), Some(blocks)]);
    }

    #[test]
    fn styles_that_cut_nothing_need_not_meet_a_tensor() {
        assert_eq!(parts(r#"{"layers.*.norm": "sequence_parallel"}"#, &[], &[]), []);
    }

    #[test]
    fn unknown_styles_are_named() {
        let plan = br#"{"lm_head": "diagonal"}"#;
        let error = Partition::from_hf(plan, &[]).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Partition(PartitionError::TpStyle { style, .. }) if &**style == "diagonal"),
            "{error}"
        );
        let error = Partition::from_hf(b"{\"lm_head\": 1}", &[]).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Json(JsonError::Syntax { line: 1, .. })),
            "{error}"
        );
    }
}
