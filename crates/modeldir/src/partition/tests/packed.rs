//! Uneven cuts of a weight and its companions.

use serde_json::{Value, json};
use tensorfile::{Dtype, Selection};

use super::layouts::parts;
use super::{Given, dim, whole};

/// A rule that cuts along an axis at multiples of a number, the first rank with more.
fn aligned(axis: &str, align: usize) -> Value {
    json!({"tp": {"split": {"axis": axis, "align": align, "uneven": "balanced"}}})
}

/// A tensor, and what the second of two ranks takes of its columns and of its rows.
type Case<'a> = (Given<'a>, Option<Selection>, Option<Selection>);

/// Checks cuts at multiples of so many outputs and so many inputs.
fn check(scheme: Option<&Value>, align: [usize; 2], cases: &[Case<'_>]) {
    let tensors: Vec<Given<'_>> = cases.iter().map(|case| case.0).collect();
    let columns = parts(scheme.cloned(), aligned("out", align[0]), &tensors).unwrap();
    let rows = parts(scheme.cloned(), aligned("in", align[1]), &tensors).unwrap();
    for (i, (tensor, column, row)) in cases.iter().enumerate() {
        assert_eq!((&columns[i], &rows[i]), (column, row), "{tensor:?}");
    }
}

fn four_bits(group_size: usize) -> Value {
    let weights = json!({"num_bits": 4, "group_size": group_size});
    json!({"quant_method": "compressed-tensors", "format": "pack-quantized",
        "config_groups": {"group_0": {"weights": weights}}})
}

#[test]
fn a_cut_falls_at_the_same_place_however_the_weight_is_packed() {
    // 72 outputs, of which the second rank has those from 40 on; 576 inputs, from 320 on.
    let columns = || dim(0, 40..72);
    check(
        None,
        [8, 64],
        &[
            (("a.weight", Dtype::BF16, &[72, 576]), columns(), dim(1, 320..576)),
            // Words without scales are numbers.
            (("b.weight", Dtype::U32, &[72, 576]), columns(), dim(1, 320..576)),
        ],
    );
    check(
        Some(&four_bits(64)),
        [8, 64],
        &[
            (("m.weight_packed", Dtype::I32, &[72, 72]), columns(), dim(1, 40..72)),
            (("m.weight_scale", Dtype::BF16, &[72, 9]), columns(), dim(1, 5..9)),
        ],
    );
    check(
        Some(&json!({"quant_method": "modelopt", "quant_algo": "NVFP4"})),
        [8, 64],
        &[
            (("m.weight", Dtype::U8, &[72, 288]), columns(), dim(1, 160..288)),
            (("m.weight_scale", Dtype::F8E4M3, &[72, 36]), columns(), dim(1, 20..36)),
            (("m.weight_scale_2", Dtype::F32, &[]), whole(), whole()),
        ],
    );
    check(
        Some(&json!({"quant_method": "mlx", "bits": 4, "group_size": 64})),
        [8, 64],
        &[
            (("m.biases", Dtype::BF16, &[72, 9]), columns(), dim(1, 5..9)),
            (("m.scales", Dtype::BF16, &[72, 9]), columns(), dim(1, 5..9)),
            (("m.weight", Dtype::U32, &[72, 72]), columns(), dim(1, 40..72)),
        ],
    );
}

#[test]
fn a_block_may_be_wider_than_high_and_the_last_of_either_short() {
    check(
        Some(&json!({"quant_method": "fp8", "weight_block_size": [64, 96]})),
        [64, 96],
        &[
            (("m.weight", Dtype::F8E4M3, &[544, 432]), dim(0, 320..544), dim(1, 288..432)),
            (("m.weight_scale_inv", Dtype::F32, &[9, 5]), dim(0, 5..9), dim(1, 3..5)),
        ],
    );
}

#[test]
fn the_group_size_counts_along_the_inputs_and_the_last_group_may_be_short() {
    // 544 inputs in groups of 64; one scale for each output.
    let weight: Given<'_> = ("m.weight_packed", Dtype::I32, &[72, 68]);
    let scale: Given<'_> = ("m.weight_scale", Dtype::BF16, &[72, 9]);
    check(
        Some(&four_bits(64)),
        [8, 64],
        &[(weight, dim(0, 40..72), dim(1, 40..68)), (scale, dim(0, 40..72), dim(1, 5..9))],
    );
    // Without the weight, only the group size locates them.
    let alone = |axis, align| parts(Some(four_bits(64)), aligned(axis, align), &[scale]);
    assert_eq!(alone("in", 64).unwrap(), [dim(1, 5..9)]);
    let error = alone("out", 8).unwrap_err().to_string();
    assert!(error.ends_with("its packed weight is not in the same directory"), "{error}");
}

#[test]
fn zero_points_are_packed_along_the_outputs_or_not_at_all() {
    // 516 outputs in words of 8, the last half full.
    check(
        Some(&four_bits(64)),
        [8, 64],
        &[
            (("m.weight_packed", Dtype::I32, &[516, 72]), dim(0, 264..516), dim(1, 40..72)),
            (("m.weight_zero_point", Dtype::I32, &[65, 9]), dim(0, 33..65), dim(1, 5..9)),
        ],
    );
    // With one for each output, bits need not be known.
    check(
        None,
        [8, 64],
        &[
            (("m.weight", Dtype::I8, &[72, 576]), dim(0, 40..72), dim(1, 320..576)),
            (("m.weight_zero_point", Dtype::I8, &[72, 9]), dim(0, 40..72), dim(1, 5..9)),
            (("n.weight", Dtype::I8, &[72, 576]), dim(0, 40..72), dim(1, 320..576)),
            (("n.weight_zero_point", Dtype::I8, &[72]), dim(0, 40..72), whole()),
        ],
    );
}

#[test]
fn blocks_of_one_matrix_have_no_dimension_of_experts() {
    check(
        Some(&json!({"quant_method": "mxfp4"})),
        [8, 64],
        &[
            (("m.up_blocks", Dtype::U8, &[72, 18, 16]), dim(0, 40..72), dim(1, 10..18)),
            (("m.up_scales", Dtype::U8, &[72, 18]), dim(0, 40..72), dim(1, 10..18)),
            // Too few dimensions for blocks: plain tensors of these names.
            (("n.up_blocks", Dtype::U8, &[72, 576]), dim(0, 40..72), dim(1, 320..576)),
            (("n.up_scales", Dtype::U8, &[72]), dim(0, 40..72), whole()),
        ],
    );
}

#[test]
fn a_count_of_scales_that_no_block_explains_is_refused() {
    for count in [0, 3, 511] {
        let shape = [count, 8];
        let tensors: &[Given<'_>] = &[
            ("m.weight", Dtype::F8E4M3, &[512, 1024]),
            ("m.weight_scale_inv", Dtype::F32, &shape),
        ];
        let error = parts(None, json!({"tp": "col"}), tensors).unwrap_err().to_string();
        assert!(error.ends_with("the size of its blocks is not known"), "{count}: {error}");
    }
}

#[test]
fn tensors_without_dimensions_are_whole() {
    let one: &[usize] = &[];
    let tensors: &[Given<'_>] = &[
        ("m.bias", Dtype::F32, one),
        ("m.up_bias", Dtype::F32, one),
        ("m.weight", Dtype::F32, one),
        ("m.weight_scale", Dtype::F32, one),
    ];
    for tp in ["col", "row"] {
        let cut = parts(None, json!({ "tp": tp }), tensors).unwrap();
        assert_eq!(cut, [whole(), whole(), whole(), whole()], "{tp}");
    }
}
