//! Tensors that hold all experts of a layer, and the part of a rank.

use serde_json::{Value, json};
use tensorfile::{Dtype, Selection};

use super::{Given, cut, dim, whole};

/// The parts of rank 1 of 2 if a rule says that these tensors hold all experts.
fn second_half(rule: Value, tensors: &[Given<'_>]) -> Vec<Option<Selection>> {
    let mut rule = rule;
    rule["match"] = json!("**");
    rule["ep"] = json!("axis");
    cut(&json!([rule]), &json!({"ep": "1/2"}), tensors).unwrap().parts
}

#[test]
fn a_tensor_holds_all_experts_if_it_has_a_dimension_more_than_one_of_an_expert() {
    let half = || dim(0, 2..4);
    let cases: &[(Given<'_>, Option<Selection>)] = &[
        (("e.w", Dtype::BF16, &[4, 8, 6]), half()),
        (("e.w_bias", Dtype::BF16, &[4, 8]), half()),
        (("e.w_blocks", Dtype::U8, &[4, 8, 2, 16]), half()),
        (("e.w_scales", Dtype::U8, &[4, 8, 2]), half()),
        // One matrix and one bias do not hold several experts.
        (("router.bias", Dtype::BF16, &[4]), whole()),
        (("router.weight", Dtype::BF16, &[4, 8]), whole()),
        (("router.correction", Dtype::BF16, &[4]), whole()),
        (("z", Dtype::BF16, &[]), whole()),
    ];
    let tensors: Vec<Given<'_>> = cases.iter().map(|case| case.0).collect();
    for ((tensor, expected), found) in cases.iter().zip(second_half(json!({}), &tensors)) {
        assert_eq!(found, *expected, "{tensor:?}");
    }
}

#[test]
fn scales_hold_all_experts_if_their_weight_does() {
    let half = || dim(0, 2..4);
    let stack: Given<'_> = ("a.weight", Dtype::F8E4M3, &[4, 512, 64]);
    let matrix: Given<'_> = ("a.weight", Dtype::F8E4M3, &[4, 64]);
    let packed: Given<'_> = ("a.weight_packed", Dtype::I32, &[4, 512, 8]);
    let cases: &[(Given<'_>, Given<'_>, [Option<Selection>; 2])] = &[
        (stack, ("a.weight_scale", Dtype::F32, &[4]), [half(), half()]),
        (stack, ("a.weight_scale", Dtype::F32, &[4, 512]), [half(), half()]),
        (stack, ("a.weight_scale_inv", Dtype::F32, &[4, 4, 1]), [half(), half()]),
        (packed, ("a.weight_scale", Dtype::F32, &[4, 512, 2]), [half(), half()]),
        // The same for all experts.
        (stack, ("a.weight_scale", Dtype::F32, &[1]), [half(), whole()]),
        (stack, ("a.weight_scale", Dtype::F32, &[512]), [half(), whole()]),
        (stack, ("a.weight_scale", Dtype::F32, &[]), [half(), whole()]),
        // Of one matrix, whose outputs are no experts.
        (matrix, ("a.weight_scale", Dtype::F32, &[4]), [whole(), whole()]),
        (matrix, ("a.weight_scale", Dtype::F32, &[4, 1]), [whole(), whole()]),
        // A second scale is one number for each expert.
        (stack, ("a.weight_scale_2", Dtype::F32, &[4]), [half(), half()]),
        (stack, ("a.weight_scale_2", Dtype::F32, &[1]), [half(), whole()]),
        (stack, ("a.weight_scale_2", Dtype::F32, &[]), [half(), whole()]),
    ];
    for (weight, scale, expected) in cases {
        assert_eq!(second_half(json!({}), &[*weight, *scale]), expected, "{weight:?} {scale:?}");
    }
}

#[test]
fn stated_experts_lie_where_it_is_stated_if_the_tensor_has_that_dimension() {
    let tensors: &[Given<'_>] = &[
        ("e.a", Dtype::BF16, &[2]),
        ("e.b", Dtype::BF16, &[3, 4]),
        ("e.c", Dtype::BF16, &[3, 4, 5]),
    ];
    let stated = |layout: Value| second_half(json!({ "layout": layout }), tensors);
    assert_eq!(stated(json!({"expert": 1})), [whole(), dim(1, 2..4), dim(1, 2..4)]);
    assert_eq!(stated(json!({})), [whole(), whole(), whole()]);
}

#[test]
fn what_is_not_of_experts_is_not_shared_out_with_them() {
    let rules = json!([
        {"match": "conv.*", "tp": "replicate"},
        {"match": "e.{e}.*", "ep": "name"},
        {"match": "stack.*", "ep": "axis"}
    ]);
    let tensors: &[Given<'_>] = &[
        ("conv.weight", Dtype::BF16, &[4, 8, 3]),
        ("e.0.weight", Dtype::BF16, &[4, 8, 3]),
        ("e.1.weight", Dtype::BF16, &[4, 8, 3]),
        ("stack.weight", Dtype::BF16, &[4, 8, 3]),
    ];
    let parts = cut(&rules, &json!({"ep": "1/2"}), tensors).unwrap().parts;
    assert_eq!(parts, [whole(), None, whole(), dim(0, 2..4)]);
}

#[test]
fn experts_are_not_counted_unless_they_are_shared_out() {
    let rules = json!({"num_experts": 2, "rules": [
        {"match": "e.{e}.*", "tp": "col", "ep": "name"},
        {"match": "stack", "tp": {"split": {"axis": {"dim": 0}}}, "ep": "axis"}
    ]});
    let tensors: &[Given<'_>] =
        &[("e.3.weight", Dtype::U8, &[4, 2]), ("stack", Dtype::U8, &[4, 8, 6])];
    let parts = cut(&rules, &json!({"tp": "1/2"}), tensors).unwrap().parts;
    assert_eq!(parts, [dim(0, 2..4), dim(0, 2..4)]);
    // A single rank may hold them in another order, which also is a split.
    let slots = json!({"experts": {"slots": [[3, 3, 0, 1]]}});
    let error = cut(&rules, &slots, tensors).unwrap_err().to_string();
    assert_eq!(error, r#"tensor "e.3.weight": expert 3 is not one of 2, counted from 0"#);
    let rules = json!([{"match": "stack", "ep": "axis"}]);
    let parts = cut(&rules, &slots, &tensors[1..]).unwrap().parts;
    assert_eq!(parts, [Some(Selection::all().with_ranges(0, vec![3..4, 3..4, 0..2]))]);
}
