//! Layouts in which quantized weights are stored, and how each is cut.

use serde_json::{Value, json};
use tensorfile::Dtype::{BF16, F8E4M3, F16, F32, I8, I32, I64, U8, U32};
use tensorfile::Selection;

use super::layouts::parts;
use super::{Given, dim, whole};

/// A tensor, and what the second of two ranks takes of its columns and of its rows.
type Case<'a> = (Given<'a>, Option<Selection>, Option<Selection>);

fn check(scheme: Option<&Value>, cases: &[Case<'_>]) {
    let tensors: Vec<Given<'_>> = cases.iter().map(|case| case.0).collect();
    let columns = parts(scheme.cloned(), json!({"tp": "col"}), &tensors).unwrap();
    let rows = parts(scheme.cloned(), json!({"tp": "row"}), &tensors).unwrap();
    for (i, (tensor, column, row)) in cases.iter().enumerate() {
        assert_eq!((&columns[i], &rows[i]), (column, row), "{tensor:?}");
    }
}

#[test]
fn a_block_size_that_nothing_states_is_guessed_as_a_power_of_two_alone() {
    let scaled = |outputs: usize| {
        let tensors: &[Given<'_>] =
            &[("m.weight", F8E4M3, &[outputs, 8]), ("m.weight_scale_inv", F32, &[4, 1])];
        parts(None, json!({"tp": "col"}), tensors)
    };
    assert_eq!(scaled(256).unwrap(), [dim(0, 128..256), dim(0, 2..4)]);
    let error = scaled(300).unwrap_err().to_string();
    assert!(error.ends_with("the size of its blocks is not known"), "{error}");
}

#[test]
fn bitsandbytes_has_a_scale_for_each_output_of_eight_bits() {
    check(
        Some(&json!({"quant_method": "bitsandbytes", "load_in_8bit": true})),
        &[
            (("m.SCB", F32, &[512]), dim(0, 256..512), whole()),
            (("m.weight", I8, &[512, 1024]), dim(0, 256..512), dim(1, 512..1024)),
            (("m.weight_format", U8, &[]), whole(), whole()),
        ],
    );
    // The weight of a `Conv1D` is stored as that of any linear layer.
    let tensors: &[Given<'_>] = &[("m.SCB", F32, &[512]), ("m.weight", I8, &[512, 1024])];
    let rule = json!({"tp": "col", "layout": "transposed"});
    assert_eq!(parts(None, rule, tensors).unwrap(), [dim(0, 256..512), dim(0, 256..512)]);
}

#[test]
fn awq_gemv_packs_inputs_and_the_zero_points_of_groups() {
    let scheme = json!({"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemv"});
    check(
        Some(&scheme),
        &[
            (("m.qweight", I32, &[512, 128]), dim(0, 256..512), dim(1, 64..128)),
            (("m.qzeros", I32, &[512, 2]), dim(0, 256..512), dim(1, 1..2)),
            (("m.scales", F16, &[512, 16]), dim(0, 256..512), dim(1, 8..16)),
        ],
    );
    // 12 groups: the last words have no zero points, and half of the groups are no whole words.
    let padded: &[Given<'_>] = &[
        ("m.qweight", I32, &[512, 96]),
        ("m.qzeros", I32, &[512, 2]),
        ("m.scales", F16, &[512, 16]),
    ];
    let scheme = Some(scheme);
    let column = parts(scheme.clone(), json!({"tp": "col"}), padded).unwrap();
    assert_eq!(column, [dim(0, 256..512), dim(0, 256..512), dim(0, 256..512)]);
    let error = parts(scheme.clone(), json!({"tp": "row"}), padded).unwrap_err().to_string();
    assert!(error.contains("elements 384..768 along the inputs over 2 ranks cut blocks of 512"));
    let aligned = json!({"tp": {"split": {"axis": "in", "align": 512, "uneven": "balanced"}}});
    let cut = parts(scheme, aligned, padded).unwrap();
    assert_eq!(cut, [dim(1, 64..96), dim(1, 1..2), dim(1, 8..12)]);
}

#[test]
fn gptq_has_words_of_32_or_64_bits() {
    check(
        Some(&json!({"quant_method": "gptq", "bits": 4, "group_size": 128})),
        &[
            (("m.qweight", I64, &[64, 512]), dim(1, 256..512), dim(0, 32..64)),
            (("m.qzeros", I64, &[8, 32]), dim(1, 16..32), dim(0, 4..8)),
            (("m.scales", F16, &[8, 512]), dim(1, 256..512), dim(0, 4..8)),
        ],
    );
    // The shapes of a layer with other bits than the rest show them.
    let tensors: &[Given<'_>] = &[
        ("m.qweight", I32, &[144, 512]),
        ("m.qzeros", I32, &[9, 128]),
        ("m.scales", F16, &[9, 512]),
    ];
    let scheme = Some(json!({"quant_method": "gptq", "bits": 4, "group_size": 64}));
    let aligned = json!({"tp": {"split": {"axis": "in", "align": 64, "uneven": "balanced"}}});
    let cut = parts(scheme, aligned, tensors).unwrap();
    assert_eq!(cut, [dim(0, 80..144), dim(0, 5..9), dim(0, 5..9)]);
    let bytes: &[Given<'_>] = &[("m.qweight", U8, &[512, 512]), ("m.scales", F16, &[8, 512])];
    for tp in ["col", "row"] {
        let error = parts(None, json!({ "tp": tp }), bytes).unwrap_err().to_string();
        assert!(error.ends_with("its packed weight is not in words of 32 or 64 bits"), "{error}");
    }
}

#[test]
fn mlx_cuts_at_groups_whatever_their_bits() {
    for bits in [2, 3, 4, 5, 6, 8] {
        for group in [32, 64, 128] {
            // 8 groups.
            let words = 8 * group * bits / 32;
            let weight = [512, words];
            let half = words / 2;
            check(
                Some(&json!({"quant_method": "mlx", "bits": bits, "group_size": group})),
                &[
                    (("m.biases", BF16, &[512, 8]), dim(0, 256..512), dim(1, 4..8)),
                    (("m.scales", BF16, &[512, 8]), dim(0, 256..512), dim(1, 4..8)),
                    (("m.weight", U32, &weight), dim(0, 256..512), dim(1, half..words)),
                ],
            );
        }
    }
    // Experts lie before both, and floats of 4 bits have no biases.
    check(
        Some(&json!({"quant_method": "mlx", "bits": 4, "group_size": 32, "mode": "mxfp4"})),
        &[
            (("m.scales", U8, &[4, 512, 8]), dim(1, 256..512), dim(2, 4..8)),
            (("m.weight", U32, &[4, 512, 32]), dim(1, 256..512), dim(2, 16..32)),
        ],
    );
}

#[test]
fn modules_of_mlx_may_have_bits_and_groups_of_their_own() {
    let mut scheme = json!({"quant_method": "mlx", "bits": 4, "group_size": 64});
    let tensors: &[Given<'_>] = &[
        ("m.biases", BF16, &[512, 9]),
        ("m.scales", BF16, &[512, 9]),
        ("m.weight", U32, &[512, 54]),
    ];
    let rows = |scheme: &Value| {
        let rule = json!({"tp": {"split": {"axis": "in", "align": 32, "uneven": "balanced"}}});
        parts(Some(scheme.clone()), rule, tensors)
    };
    let error = rows(&scheme).unwrap_err().to_string();
    assert!(error.ends_with("not those of groups of the stated size"), "{error}");
    scheme["m"] = json!({"bits": 6, "group_size": 32});
    assert_eq!(rows(&scheme).unwrap(), [dim(1, 5..9), dim(1, 5..9), dim(1, 30..54)]);
}

#[test]
fn lengths_of_both_axes_are_no_experts() {
    let rule = json!({"match": "**", "ep": "axis"});
    let cut = |tensors: &[Given<'_>]| {
        super::cut(&json!([rule]), &json!({"ep": "1/2"}), tensors).unwrap().parts
    };
    let one: &[Given<'_>] = &[("m.weight_packed", I32, &[512, 64]), ("m.weight_shape", I64, &[2])];
    assert_eq!(cut(one), [whole(), whole()]);
    let stack: &[Given<'_>] = &[
        ("m.weight_global_scale", F32, &[4]),
        ("m.weight_packed", U8, &[4, 512, 64]),
        ("m.weight_shape", I64, &[4, 2]),
    ];
    assert_eq!(cut(stack), [dim(0, 2..4), dim(0, 2..4), dim(0, 2..4)]);
}
