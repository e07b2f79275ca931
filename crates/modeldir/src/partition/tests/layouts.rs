//! The cut of a weight and its companions by one rule, for each kind of quantization.

use serde_json::{Value, json};
use tensorfile::{Dtype, Selection};

use super::{Given, dim, partition, quantization, shapes, topology, whole};
use crate::partition::{Misfit, PartitionError};
use crate::{Error, ErrorKind};

/// The parts of tensors for rank 1 of 2, cut by one rule that matches all of them.
pub(super) fn parts(
    scheme: Option<Value>,
    rule: Value,
    tensors: &[Given<'_>],
) -> Result<Vec<Option<Selection>>, Error> {
    let mut rule = rule;
    rule["match"] = json!("**");
    let scheme = scheme.map(|scheme| quantization(&scheme));
    let rules = partition(&json!({ "rules": [rule] }));
    Ok(rules.cut(&topology(&json!({"tp": "1/2"})), scheme.as_ref(), &shapes(tensors))?.parts)
}

/// Checks the cuts of a layer's tensors by columns and by rows.
fn check(scheme: Option<Value>, cases: &[(Given<'_>, Option<Selection>, Option<Selection>)]) {
    let tensors: Vec<Given<'_>> = cases.iter().map(|case| case.0).collect();
    let columns = parts(scheme.clone(), json!({"tp": "col"}), &tensors).unwrap();
    let rows = parts(scheme, json!({"tp": "row"}), &tensors).unwrap();
    for (i, (tensor, column, row)) in cases.iter().enumerate() {
        assert_eq!((&columns[i], &rows[i]), (column, row), "{tensor:?}");
    }
}

#[test]
fn plain_weights_and_biases() {
    check(
        None,
        &[
            (("m.weight", Dtype::BF16, &[512, 1024]), dim(0, 256..512), dim(1, 512..1024)),
            (("m.bias", Dtype::BF16, &[512]), dim(0, 256..512), whole()),
            (("m.experts.w", Dtype::BF16, &[4, 8, 6]), dim(1, 4..8), dim(2, 3..6)),
            (("m.experts.w_bias", Dtype::BF16, &[4, 8]), dim(1, 4..8), whole()),
            (("m.conv", Dtype::BF16, &[8, 4, 3, 3]), dim(0, 4..8), dim(1, 2..4)),
        ],
    );
}

#[test]
fn transposed_weights_and_their_biases() {
    let tensors: &[Given<'_>] = &[
        ("m.weight", Dtype::F32, &[64, 192]),
        ("m.bias", Dtype::F32, &[192]),
        ("m.experts.w", Dtype::F32, &[2, 64, 192]),
        ("m.experts.w_bias", Dtype::F32, &[2, 192]),
    ];
    let qkv = json!({"tp": {"qkv": [4, 4]}, "layout": "transposed"});
    let cut = parts(None, qkv, tensors).unwrap();
    let at = |dim| Some(Selection::all().with_ranges(dim, vec![32..64, 96..128, 160..192]));
    assert_eq!(cut, [at(1), at(0), at(2), at(1)]);
    let cut = parts(None, json!({"tp": "row", "layout": "transposed"}), tensors).unwrap();
    assert_eq!(cut, [dim(0, 32..64), whole(), dim(1, 32..64), whole()]);
}

#[test]
fn stated_axes() {
    let layout = json!({"out": [1, 8], "expert": 0});
    let tensors: &[Given<'_>] = &[("m.odd", Dtype::I32, &[3, 16, 5])];
    let column = parts(None, json!({"tp": "col", "layout": layout}), tensors).unwrap();
    assert_eq!(column, [dim(1, 8..16)]);
    let row = parts(None, json!({"tp": "row", "layout": layout}), tensors).unwrap();
    assert_eq!(row, [whole()]);
}

#[test]
fn gptq_packs_inputs() {
    let scheme = |desc_act| {
        Some(json!({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": desc_act}))
    };
    let weight: Given<'_> = ("m.qweight", Dtype::I32, &[128, 512]);
    let zeros: Given<'_> = ("m.qzeros", Dtype::I32, &[8, 64]);
    let scales: Given<'_> = ("m.scales", Dtype::F16, &[8, 512]);
    let g_idx: Given<'_> = ("m.g_idx", Dtype::I32, &[1024]);
    check(
        scheme(false),
        &[
            (weight, dim(1, 256..512), dim(0, 64..128)),
            (zeros, dim(1, 32..64), dim(0, 4..8)),
            (scales, dim(1, 256..512), dim(0, 4..8)),
            (g_idx, whole(), dim(0, 512..1024)),
            (("m.bias", Dtype::F16, &[512]), dim(0, 256..512), whole()),
        ],
    );
    // Any group may hold any input.
    check(
        scheme(true),
        &[
            (weight, dim(1, 256..512), dim(0, 64..128)),
            (zeros, dim(1, 32..64), whole()),
            (scales, dim(1, 256..512), whole()),
        ],
    );
    // One group for all inputs.
    check(
        Some(json!({"quant_method": "gptq", "bits": 4, "group_size": -1})),
        &[
            (weight, dim(1, 256..512), dim(0, 64..128)),
            (("m.qzeros", Dtype::I32, &[1, 64]), dim(1, 32..64), whole()),
            (("m.scales", Dtype::F16, &[1, 512]), dim(1, 256..512), whole()),
        ],
    );
    let three_bits = Some(json!({"quant_method": "gptq", "bits": 3, "group_size": 128}));
    let error = parts(three_bits, json!({"tp": "row"}), &[weight, scales]).unwrap_err();
    assert!(error.to_string().ends_with("its packed weights straddle words"), "{error}");
}

#[test]
fn awq_packs_outputs() {
    check(
        Some(json!({"quant_method": "awq", "bits": 4, "group_size": 128})),
        &[
            (("m.qweight", Dtype::I32, &[1024, 64]), dim(1, 32..64), dim(0, 512..1024)),
            (("m.qzeros", Dtype::I32, &[8, 64]), dim(1, 32..64), dim(0, 4..8)),
            (("m.scales", Dtype::F16, &[8, 512]), dim(1, 256..512), dim(0, 4..8)),
        ],
    );
}

#[test]
fn compressed_tensors_pack_inputs_of_weights_and_outputs_of_zero_points() {
    let scheme = || {
        let weights = json!({"num_bits": 4, "group_size": 128});
        Some(json!({"quant_method": "compressed-tensors", "format": "pack-quantized",
            "config_groups": {"group_0": {"weights": weights}}}))
    };
    let weight: Given<'_> = ("m.weight_packed", Dtype::I32, &[512, 128]);
    let scale: Given<'_> = ("m.weight_scale", Dtype::BF16, &[512, 8]);
    let zeros: Given<'_> = ("m.weight_zero_point", Dtype::I32, &[64, 8]);
    check(
        scheme(),
        &[
            (weight, dim(0, 256..512), dim(1, 64..128)),
            (scale, dim(0, 256..512), dim(1, 4..8)),
            (zeros, dim(0, 32..64), dim(1, 4..8)),
            (("m.weight_shape", Dtype::I64, &[2]), whole(), whole()),
        ],
    );
    check(
        scheme(),
        &[
            (weight, dim(0, 256..512), dim(1, 64..128)),
            (scale, dim(0, 256..512), whole()),
            (zeros, dim(0, 32..64), whole()),
            (("m.weight_g_idx", Dtype::I32, &[1024]), whole(), dim(0, 512..1024)),
        ],
    );
}

#[test]
fn one_packed_word_is_not_one_number_for_all() {
    let weights = json!({"num_bits": 4, "group_size": 8});
    let packed = json!({"quant_method": "compressed-tensors", "format": "pack-quantized",
        "config_groups": {"group_0": {"weights": weights}}});
    let gptq = json!({"quant_method": "gptq", "bits": 4, "group_size": 8});
    let of_gptq: &[Given<'_>] = &[
        ("m.qweight", Dtype::I32, &[1, 8]),
        ("m.qzeros", Dtype::I32, &[1, 1]),
        ("m.scales", Dtype::F16, &[1, 8]),
    ];
    let of_packed: &[Given<'_>] = &[
        ("m.weight_packed", Dtype::I32, &[8, 2]),
        ("m.weight_scale", Dtype::BF16, &[8, 2]),
        ("m.weight_zero_point", Dtype::I32, &[1, 2]),
    ];
    for (scheme, tensors) in [(gptq, of_gptq), (packed, of_packed)] {
        let error = parts(Some(scheme), json!({"tp": "col"}), tensors).unwrap_err().to_string();
        assert!(error.contains("over 2 ranks cut blocks of 8"), "{error}");
    }
}

#[test]
fn fp8_has_a_scale_for_a_block_an_output_or_all() {
    let weight: Given<'_> = ("m.weight", Dtype::F8E4M3, &[512, 1024]);
    let weight = (weight, dim(0, 256..512), dim(1, 512..1024));
    let blocks = json!({"quant_method": "fp8", "weight_block_size": [128, 128]});
    let scale: Given<'_> = ("m.weight_scale_inv", Dtype::F32, &[4, 8]);
    check(Some(blocks), &[weight.clone(), (scale, dim(0, 2..4), dim(1, 4..8))]);
    // The shapes show the block if the configuration does not state it.
    check(None, &[weight.clone(), (scale, dim(0, 2..4), dim(1, 4..8))]);
    for shape in [&[512][..], &[512, 1]] {
        check(
            None,
            &[weight.clone(), (("m.weight_scale", Dtype::F32, shape), dim(0, 256..512), whole())],
        );
    }
    for shape in [&[][..], &[1]] {
        check(None, &[weight.clone(), (("m.weight_scale", Dtype::F32, shape), whole(), whole())]);
        check(None, &[weight.clone(), (("m.input_scale", Dtype::F32, shape), whole(), whole())]);
    }
    let stacked: Given<'_> = ("m.experts.up", Dtype::F8E4M3, &[4, 512, 1024]);
    let scale: Given<'_> = ("m.experts.up_scale_inv", Dtype::F32, &[4, 4, 8]);
    check(
        None,
        &[(stacked, dim(1, 256..512), dim(2, 512..1024)), (scale, dim(1, 2..4), dim(2, 4..8))],
    );
}

#[test]
fn scales_of_blocks_may_have_twice_the_dimensions() {
    let weight: Given<'_> = ("m.weight", Dtype::F8E4M3, &[512, 1024]);
    let weight = (weight, dim(0, 256..512), dim(1, 512..1024));
    let scale: Given<'_> = ("m.weight_scale", Dtype::F32, &[4, 1, 8, 1]);
    let scheme = json!({"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"});
    check(Some(scheme), &[weight, (scale, dim(0, 2..4), dim(2, 4..8))]);
}

#[test]
fn scales_in_no_known_relation_to_their_weight_are_refused() {
    let tensors: &[Given<'_>] =
        &[("m.weight", Dtype::F8E4M3, &[512, 1024]), ("m.weight_scale", Dtype::F32, &[4, 2, 8])];
    for rule in ["col", "row"] {
        let error = parts(None, json!({ "tp": rule }), tensors).unwrap_err().to_string();
        assert!(error.ends_with("the size of its blocks is not known"), "{error}");
    }
}

#[test]
fn the_last_block_may_be_short() {
    let scheme = json!({"quant_method": "fp8", "weight_block_size": [128, 128]});
    let rule = json!({"tp": {"split": {"axis": "out", "align": 128, "uneven": "balanced"}}});
    let tensors: &[Given<'_>] =
        &[("m.weight", Dtype::F8E4M3, &[576, 64]), ("m.weight_scale_inv", Dtype::F32, &[5, 1])];
    let cut = parts(Some(scheme.clone()), rule, tensors).unwrap();
    assert_eq!(cut, [dim(0, 384..576), dim(0, 3..5)]);
    // A cut at 288 is within the third block, which both ranks take with `Cover`.
    let error = parts(Some(scheme.clone()), json!({"tp": "col"}), tensors).unwrap_err();
    let expected = "elements 288..576 along the outputs over 2 ranks cut blocks of 128";
    assert!(error.to_string().contains(expected), "{error}");
    let cover = json!({"tp": {"split": {"axis": "out", "misaligned": "cover"}}});
    assert_eq!(parts(Some(scheme), cover, tensors).unwrap(), [dim(0, 288..576), dim(0, 2..5)]);
}

#[test]
fn nvfp4_packs_pairs_and_scales_sixteen() {
    check(
        Some(json!({"quant_method": "modelopt", "quant_algo": "NVFP4"})),
        &[
            (("m.weight", Dtype::U8, &[512, 512]), dim(0, 256..512), dim(1, 256..512)),
            (("m.weight_scale", Dtype::F8E4M3, &[512, 64]), dim(0, 256..512), dim(1, 32..64)),
            (("m.weight_scale_2", Dtype::F32, &[]), whole(), whole()),
        ],
    );
    check(
        Some(json!({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"})),
        &[
            (("m.weight_packed", Dtype::U8, &[512, 512]), dim(0, 256..512), dim(1, 256..512)),
            (("m.weight_scale", Dtype::F8E4M3, &[512, 64]), dim(0, 256..512), dim(1, 32..64)),
            (("m.weight_global_scale", Dtype::F32, &[1]), whole(), whole()),
        ],
    );
}

#[test]
fn mxfp4_has_blocks_of_thirty_two_inputs() {
    check(
        Some(json!({"quant_method": "mxfp4"})),
        &[
            (("e.up_blocks", Dtype::U8, &[4, 512, 32, 16]), dim(1, 256..512), dim(2, 16..32)),
            (("e.up_scales", Dtype::U8, &[4, 512, 32]), dim(1, 256..512), dim(2, 16..32)),
            (("e.up_bias", Dtype::BF16, &[4, 512]), dim(1, 256..512), whole()),
        ],
    );
}

#[test]
fn mlx_packs_inputs() {
    check(
        Some(json!({"quant_method": "mlx", "bits": 4, "group_size": 64})),
        &[
            (("m.weight", Dtype::U32, &[512, 128]), dim(0, 256..512), dim(1, 64..128)),
            (("m.scales", Dtype::BF16, &[512, 16]), dim(0, 256..512), dim(1, 8..16)),
            (("m.biases", Dtype::BF16, &[512, 16]), dim(0, 256..512), dim(1, 8..16)),
        ],
    );
}

#[test]
fn bitsandbytes_is_whole_or_refused_with_the_reason() {
    let tensors: &[Given<'_>] = &[
        ("m.weight", Dtype::U8, &[262_144, 1]),
        ("m.weight.absmax", Dtype::U8, &[8192]),
        ("m.weight.quant_map", Dtype::F32, &[16]),
    ];
    let error = parts(None, json!({"tp": "col"}), tensors).unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Partition(PartitionError::Cut { misfit: Misfit::Uncuttable { .. }, .. })
        ),
        "{error}"
    );
    assert!(error.to_string().contains("bitsandbytes stores it flattened"), "{error}");
    let cover = json!({"tp": {"split": {"axis": "out", "misaligned": "cover"}}});
    assert_eq!(parts(None, cover, tensors).unwrap(), [whole(), whole(), whole()]);
}

#[test]
fn a_column_of_bytes_without_blocks_is_a_plain_weight() {
    let weight: Given<'_> = ("m.weight", Dtype::U8, &[64, 1]);
    assert_eq!(parts(None, json!({"tp": "col"}), &[weight]).unwrap(), [dim(0, 32..64)]);
}

#[test]
fn the_bias_of_one_output_is_where_its_weight_is() {
    let tensors: &[Given<'_>] = &[
        ("m.bias", Dtype::F32, &[1]),
        ("m.input_scale", Dtype::F32, &[1]),
        ("m.weight", Dtype::F32, &[1, 8]),
    ];
    // The second of two ranks has no output.
    let cut = parts(None, json!({"tp": "vocab"}), tensors).unwrap();
    assert_eq!(cut, [dim(0, 1..1), whole(), dim(0, 1..1)]);
}

#[test]
fn packed_words_and_groups_are_not_cut() {
    // 231 groups of 128.
    let scheme = Some(json!({"quant_method": "awq", "bits": 4, "group_size": 128}));
    let tensors: &[Given<'_>] = &[
        ("m.qweight", Dtype::I32, &[29_568, 64]),
        ("m.qzeros", Dtype::I32, &[231, 64]),
        ("m.scales", Dtype::F16, &[231, 512]),
    ];
    let error = parts(scheme.clone(), json!({"tp": "row"}), tensors).unwrap_err().to_string();
    let expected = r#"tensor "m.qzeros": rule "**": elements 14784..29568 along the inputs over 2 ranks cut blocks of 128; 3, 7, 11, 21, 33, 77 or 231 would do"#;
    assert!(error.starts_with(expected), "{error}");
    let balanced = json!({"tp": {"split": {"axis": "in", "align": 128, "uneven": "balanced"}}});
    let cut = parts(scheme, balanced, tensors).unwrap();
    assert_eq!(cut, [dim(0, 14_848..29_568), dim(0, 116..231), dim(0, 116..231)]);
}
