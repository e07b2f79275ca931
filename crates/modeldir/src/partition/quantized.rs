//! Which tensors are companions of a quantized weight, such as its scales, and worth nothing with
//! other values.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use tensorfile::Dtype;

use super::siblings::{Siblings, TensorShape};

/// Leaves of a quantized weight, all other tensors of whose module but a bias are its companions.
const WEIGHTS: [&str; 11] = [
    "weight",
    "qweight",
    "q_weight",
    "weight_packed",
    "trellis",
    "W_q",
    "Qidxs",
    "codes",
    "_data",
    "_weight_qdata",
    "B",
];

/// Leaves that belong to a quantized weight, also to one in another directory.
const COMPANIONS: [&str; 16] = [
    "weight_scale",
    "weight_scale_inv",
    "weight_scale_2",
    "weight_global_scale",
    "weight_zero_point",
    "input_scale",
    "input_global_scale",
    "output_scale",
    "q_scale",
    "k_scale",
    "v_scale",
    "SCB",
    "absmax",
    "nested_absmax",
    "quant_map",
    "nested_quant_map",
];

/// What the leaf of a companion adds to that of its weight, where a module holds several weights.
const SUFFIXES: [&str; 8] = [
    "_scale",
    "_scale_inv",
    "_scale_2",
    "_scales",
    "_global_scale",
    "_zero_point",
    "_zeros",
    "_absmax",
];

/// What the leaf of a packed weight adds to the name that its companions share.
const PACKED: [&str; 4] = ["", "_packed", "_blocks", "_qdata"];

/// Whether a tensor is the scale, zero point or another companion of a quantized weight.
///
/// `tensors` are those of a model in name order.
pub(crate) fn is_companion(tensors: &[TensorShape<'_>], position: usize) -> bool {
    let siblings = Siblings(tensors);
    let Some(tensor) = siblings.get(position) else { return false };
    let leaf = tensor.leaf();
    if leaf == "bias" || leaf.ends_with("_bias") {
        return false;
    }
    let is_coded = |weight: &str| {
        weight != leaf && siblings.find(position, weight).is_some_and(|it| holds_codes(it.dtype))
    };
    COMPANIONS.contains(&leaf)
        || WEIGHTS.into_iter().any(is_coded)
        || SUFFIXES
            .into_iter()
            .filter_map(|suffix| leaf.strip_suffix(suffix))
            .any(|stem| PACKED.into_iter().any(|packed| is_coded(&format!("{stem}{packed}"))))
}

/// Whether elements of this type can be codes, whose values other tensors give.
fn holds_codes(dtype: Dtype) -> bool {
    let is_plain = matches!(
        dtype,
        Dtype::Bool | Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64 | Dtype::C64
    );
    !is_plain
}

#[cfg(test)]
mod tests {
    use tensorfile::Dtype;

    use super::is_companion;
    use crate::partition::TensorShape;

    /// The names of the companions among these tensors.
    fn companions<'a>(tensors: &[(&'a str, Dtype)]) -> Vec<&'a str> {
        let mut shapes: Vec<_> = tensors
            .iter()
            .map(|(name, dtype)| TensorShape { name, dtype: *dtype, shape: &[8, 8] })
            .collect();
        shapes.sort_by_key(|tensor| tensor.name);
        let found = shapes.iter().enumerate().filter(|(i, _)| is_companion(&shapes, *i));
        found.map(|(_, tensor)| tensor.name).collect()
    }

    #[test]
    fn companions_are_what_lies_beside_a_quantized_weight() {
        use Dtype::{BF16, F8E4M3, F16, F32, I8, I16, I32, U8, U32};
        for (tensors, expected) in [
            (
                &[("m.weight", F8E4M3), ("m.weight_scale_inv", F32), ("m.bias", BF16)][..],
                &["m.weight_scale_inv"][..],
            ),
            (
                &[("m.qweight", I32), ("m.scales", F16), ("m.bias", F16), ("n.weight", F16)],
                &["m.scales"],
            ),
            (
                &[("m.weight", U32), ("m.scales", BF16), ("m.biases", BF16), ("m.bias", BF16)],
                &["m.biases", "m.scales"],
            ),
            (&[("m.trellis", I16), ("m.suh", F16), ("m.svh", F16)], &["m.suh", "m.svh"]),
            (&[("m.W_q", U8), ("m.scale", F16), ("m.zero", F16)], &["m.scale", "m.zero"]),
            (&[("m.weight", I8), ("m.SCB", F32)], &["m.SCB"]),
            (
                &[("m.weight", U8), ("m.weight.absmax", F32), ("m.weight.quant_map", F32)],
                &["m.weight.absmax", "m.weight.quant_map"],
            ),
            (
                &[("e.up", F8E4M3), ("e.up_scale", F32), ("e.up_bias", BF16), ("e.down", BF16)],
                &["e.up_scale"],
            ),
            (&[("e.up_blocks", U8), ("e.up_scales", F16)], &["e.up_scales"]),
            // Scales whose weight is in another directory.
            (&[("m.weight_scale", F32), ("a.k_scale", F32)], &["a.k_scale", "m.weight_scale"]),
        ] {
            assert_eq!(companions(tensors), expected, "{tensors:?}");
        }
    }

    #[test]
    fn plain_models_have_no_companions() {
        use Dtype::{Bool, F32, I64};
        let tensors = [
            ("logit_scale", F32),
            ("norm.weight", F32),
            ("norm.bias", F32),
            ("bn.running_mean", F32),
            ("bn.num_batches_tracked", I64),
            ("bn.weight", F32),
            ("embeddings.position_ids", I64),
            ("attn.bias", Bool),
            ("attn.masked_bias", F32),
            ("attn.relative_position_index", I64),
            ("attn.relative_position_bias_table", F32),
            ("layer_scale.lambda1", F32),
            ("scales", F32),
        ];
        assert_eq!(companions(&tensors), [""; 0]);
    }
}
