//! Values that ranks load of quantized weights and of what belongs to them: words, groups, blocks.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::case::{Case, Given, Take, any_uneven, tensor_parallel};
use super::oracle::{Lists, all, on_disk, share, share_blocks};

fn config() -> ProptestConfig {
    ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() }
}

/// A layer of some outputs and inputs that is cut along one of them.
struct Layer {
    outputs: usize,
    inputs: usize,
    size: usize,
    is_row: bool,
    /// What each rank takes along the axis, in elements of the layer; none if it is refused.
    cut: Option<Vec<Vec<usize>>>,
    cover: bool,
}

/// An axis of a tensor.
#[derive(Clone, Copy)]
enum Dim {
    /// Outputs, so many in one element.
    Out(usize),
    /// Inputs, so many in one element.
    In(usize),
    /// Outputs that have something in common, which is every rank's if it is one for all of them.
    OutScale(usize),
    /// Inputs that have something in common.
    InScale(usize),
    /// What is never cut, of some length.
    Other(usize),
}

impl Layer {
    /// Cut as the rule `{"split": {"axis": …, "align": align}}` says.
    fn new(
        [outputs, inputs]: [usize; 2],
        is_row: bool,
        size: usize,
        align: usize,
        uneven: &str,
    ) -> Self {
        let positions = all(if is_row { inputs } else { outputs });
        let cut = share_blocks(&positions, align, size, uneven);
        Self { outputs, inputs, size, is_row, cut, cover: false }
    }

    /// A tensor of the layer that has these axes.
    fn tensor(&self, name: &str, dtype: &'static str, dims: &[Dim]) -> Given {
        let extent = |dim: &Dim| match *dim {
            Dim::Out(per) | Dim::OutScale(per) => self.outputs.div_ceil(per),
            Dim::In(per) | Dim::InScale(per) => self.inputs.div_ceil(per),
            Dim::Other(len) => len,
        };
        let shape: Vec<_> = dims.iter().map(extent).collect();
        let takes = (0..self.size).map(|rank| self.take(dims, &shape, rank)).collect();
        Given { name: format!("m.{name}"), dtype: Some(dtype), shape, takes, is_covered: true }
    }

    fn take(&self, dims: &[Dim], shape: &[usize], rank: usize) -> Take {
        let Some(cut) = &self.cut else { return Take::Refused };
        let along = |(dim, len): (&Dim, &usize)| {
            let (per, axis) = match (dim, self.is_row) {
                (Dim::OutScale(_), false) | (Dim::InScale(_), true) if *len == 1 => {
                    return Some(all(*len));
                }
                (Dim::Out(per) | Dim::OutScale(per), false) => (*per, self.outputs),
                (Dim::In(per) | Dim::InScale(per), true) => (*per, self.inputs),
                _ => return Some(all(*len)),
            };
            if self.size == 1 {
                return Some(all(*len));
            }
            on_disk(&cut[rank], per, axis, self.cover)
        };
        let lists: Option<Lists> = dims.iter().zip(shape).map(along).collect();
        lists.map_or(Take::Refused, Take::Part)
    }

    fn rule(&self, align: usize) -> Value {
        let axis = if self.is_row { "in" } else { "out" };
        let misaligned = if self.cover { "cover" } else { "error" };
        json!({ "match": "m.*", "tp": { "split":
            { "axis": axis, "align": align, "misaligned": misaligned } } })
    }

    fn case(&self, quantization: Value, rule: &Value, uneven: &str, tensors: Vec<Given>) -> Case {
        Case {
            quantization: Some(quantization),
            partition: json!({ "uneven": uneven, "rules": [rule] }),
            ranks: tensor_parallel(self.size),
            tensors,
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn scales_of_blocks(
        outputs in 2..24usize, inputs in 2..24usize, block in 2..6usize, size in 1..5usize,
        is_row: bool, cover: bool, align: bool, uneven in any_uneven(),
    ) {
        let align = if align { block } else { 1 };
        let mut layer = Layer::new([outputs, inputs], is_row, size, align, uneven);
        layer.cover = cover;
        if cover && uneven == "error" {
            // An even cut will do, wherever blocks lie.
            let positions = all(if is_row { inputs } else { outputs });
            layer.cut = share(&positions, size, uneven);
        }
        let tensors = vec![
            layer.tensor("weight", "F8_E4M3", &[Dim::Out(1), Dim::In(1)]),
            layer.tensor("weight_scale_inv", "F32", &[Dim::OutScale(block), Dim::InScale(block)]),
            layer.tensor("bias", "BF16", &[Dim::Out(1)]),
            layer.tensor("input_scale", "F32", &[]),
        ];
        let scheme = json!({ "quant_method": "fp8", "weight_block_size": [block, block] });
        layer.case(scheme, &layer.rule(align), uneven, tensors).check();
    }

    #[test]
    fn a_scale_for_each_output(
        outputs in 2..24usize, inputs in 2..24usize, size in 1..5usize, is_row: bool, uneven in any_uneven(),
    ) {
        let layer = Layer::new([outputs, inputs], is_row, size, 1, uneven);
        for scale in [&[Dim::Out(1)][..], &[Dim::Out(1), Dim::Other(1)]] {
            let tensors = vec![
                layer.tensor("weight", "I8", &[Dim::Out(1), Dim::In(1)]),
                layer.tensor("weight_scale", "F32", scale),
            ];
            layer.case(json!({ "quant_method": "fbgemm_fp8" }), &layer.rule(1), uneven, tensors).check();
        }
    }

    #[test]
    fn words_and_groups_of_gptq_and_awq(
        outputs in 1..6usize, groups in 2..6usize, words in 1..4usize, size in 1..5usize,
        is_row: bool, is_awq: bool, desc_act: bool, uneven in any_uneven(),
    ) {
        let (pack, group) = (8, 8 * words);
        let axes = [outputs * pack, groups * group];
        let align = if is_row { group } else { pack };
        let layer = Layer::new(axes, is_row, size, align, uneven);
        let (method, weight) = match is_awq {
            true => ("awq", [Dim::In(1), Dim::Out(pack)]),
            false => ("gptq", [Dim::In(pack), Dim::Out(1)]),
        };
        // Where columns were reordered, any group may be needed.
        let by_group = if desc_act && !is_awq { Dim::Other(groups) } else { Dim::InScale(group) };
        let mut tensors = vec![
            layer.tensor("qweight", "I32", &weight),
            layer.tensor("qzeros", "I32", &[by_group, Dim::Out(pack)]),
            layer.tensor("scales", "F16", &[by_group, Dim::Out(1)]),
        ];
        if !is_awq {
            tensors.insert(0, layer.tensor("g_idx", "I32", &[Dim::In(1)]));
        }
        let mut scheme = json!({ "quant_method": method, "bits": 4, "group_size": group });
        if !is_awq {
            scheme["desc_act"] = json!(desc_act);
        }
        layer.case(scheme, &layer.rule(align), uneven, tensors).check();
    }

    #[test]
    fn blocks_of_stacked_experts(
        pairs in 1..5usize, blocks in 1..7usize, size in 1..5usize, is_row: bool, uneven in any_uneven(),
    ) {
        let axes = [2 * pairs, 32 * blocks];
        let align = if is_row { 32 } else { 2 };
        let layer = Layer::new(axes, is_row, size, align, uneven);
        let experts = Dim::Other(3);
        let tensors = vec![
            layer.tensor("up_bias", "BF16", &[experts, Dim::Out(1)]),
            layer.tensor("up_blocks", "U8", &[experts, Dim::Out(1), Dim::In(32), Dim::Other(16)]),
            layer.tensor("up_scales", "U8", &[experts, Dim::Out(1), Dim::In(32)]),
        ];
        // Gate and up alternate along the outputs.
        layer.case(json!({ "quant_method": "mxfp4" }), &layer.rule(align), uneven, tensors).check();
    }

    #[test]
    fn pairs_with_a_scale_for_sixteen(
        outputs in 2..9usize, blocks in 1..7usize, size in 1..5usize, is_row: bool, uneven in any_uneven(),
    ) {
        let align = if is_row { 16 } else { 1 };
        let layer = Layer::new([outputs, 16 * blocks], is_row, size, align, uneven);
        let tensors = vec![
            layer.tensor("weight", "U8", &[Dim::Out(1), Dim::In(2)]),
            layer.tensor("weight_scale", "F8_E4M3", &[Dim::Out(1), Dim::InScale(16)]),
            layer.tensor("weight_scale_2", "F32", &[]),
        ];
        let scheme = json!({ "quant_method": "modelopt", "quant_algo": "NVFP4" });
        layer.case(scheme, &layer.rule(align), uneven, tensors).check();
    }

    #[test]
    fn packed_words_of_compressed_tensors(
        outputs in 1..6usize, groups in 2..5usize, size in 1..5usize, is_row: bool, uneven in any_uneven(),
    ) {
        let (pack, group) = (8, 16);
        let align = if is_row { group } else { pack };
        let layer = Layer::new([outputs * pack, groups * group], is_row, size, align, uneven);
        let tensors = vec![
            layer.tensor("weight_packed", "I32", &[Dim::Out(1), Dim::In(pack)]),
            layer.tensor("weight_scale", "BF16", &[Dim::Out(1), Dim::InScale(group)]),
            layer.tensor("weight_shape", "I64", &[Dim::Other(2)]),
            layer.tensor("weight_zero_point", "I32", &[Dim::Out(pack), Dim::InScale(group)]),
        ];
        let weights = json!({ "num_bits": 4, "group_size": group });
        let scheme = json!({ "quant_method": "compressed-tensors", "format": "pack-quantized",
            "config_groups": { "group_0": { "weights": weights } } });
        layer.case(scheme, &layer.rule(align), uneven, tensors).check();
    }

    #[test]
    fn axes_that_a_rule_states(
        outputs in 1..9usize, inputs in 1..9usize, per in 1..4usize, size in 1..5usize,
        is_row: bool, uneven in any_uneven(),
    ) {
        let layer = Layer::new([outputs * per, inputs], is_row, size, if is_row { 1 } else { per }, uneven);
        let tensors = vec![layer.tensor("odd", "F64", &[Dim::In(1), Dim::Other(2), Dim::Out(per)])];
        let mut rule = layer.rule(if is_row { 1 } else { per });
        rule["layout"] = json!({ "in": 0, "out": [2, per] });
        let mut case = layer.case(json!({}), &rule, uneven, tensors);
        case.quantization = None;
        case.check();
    }
}
