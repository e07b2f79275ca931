//! Values that each rank loads, for every kind of cut, against an oracle that cuts as numpy does.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::case::{Case, Given, Take, any_uneven, tensor_parallel};
use super::oracle::{Lists, all, join, kv_heads, query_heads, share, share_blocks};

fn config() -> ProptestConfig {
    ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() }
}

/// An extent that packed dtypes may fill, or not.
fn any_free() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![1, 2, 3, 4, 8])
}

/// What each rank takes if one dimension is cut so, or if the cut is refused.
fn cut_along(shape: &[usize], dim: usize, size: usize, cut: Option<Vec<Vec<usize>>>) -> Vec<Take> {
    let whole: Lists = shape.iter().map(|len| all(*len)).collect();
    let Some(cut) = cut else { return vec![Take::Refused; size] };
    let part = |along| {
        let mut lists = whole.clone();
        lists[dim] = along;
        Take::Part(lists)
    };
    cut.into_iter().map(part).collect()
}

fn whole(shape: &[usize], size: usize) -> Vec<Take> {
    vec![Take::Part(shape.iter().map(|len| all(*len)).collect()); size]
}

fn given(name: &str, shape: &[usize], takes: Vec<Take>) -> Given {
    Given { name: name.to_owned(), dtype: None, shape: shape.to_vec(), takes, is_covered: true }
}

/// Tensors that one rule matches, of all dtypes.
fn case(rule: &Value, uneven: &str, size: usize, tensors: Vec<Given>) -> Case {
    let mut rule = rule.clone();
    rule["match"] = json!("**.m.*");
    let partition = json!({ "uneven": uneven, "rules": [rule] });
    Case { quantization: None, partition, ranks: tensor_parallel(size), tensors }
}

/// Checks a cut along the outputs: of a matrix, of its bias, of stacked matrices, and of matrices
/// that have inputs first.
fn check_out(
    tp: &Value,
    [rows, columns]: [usize; 2],
    uneven: &str,
    size: usize,
    cut: &Option<Vec<Vec<usize>>>,
) {
    let of = |name: &str, shape: &[usize], dim: usize| {
        given(name, shape, cut_along(shape, dim, size, cut.clone()))
    };
    let tensors = vec![
        of("m.weight", &[rows, columns], 0),
        of("m.bias", &[rows], 0),
        of("m.all", &[2, rows, columns], 1),
    ];
    case(&json!({ "tp": tp }), uneven, size, tensors).check();
    let tensors = vec![
        of("m.weight", &[columns, rows], 1),
        of("m.bias", &[rows], 0),
        of("m.all", &[2, columns, rows], 2),
        of("m.all_bias", &[2, rows], 1),
    ];
    case(&json!({ "tp": tp, "layout": "transposed" }), uneven, size, tensors).check();
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn outputs_inputs_and_vocabularies(
        out in 0..25usize, inputs in 2..25usize, size in 1..7usize, uneven in any_uneven(),
        free in any_free(),
    ) {
        check_out(&json!("col"), [out, free.max(2)], uneven, size, &share(&all(out), size, uneven));
        check_out(&json!("vocab"), [out, free.max(2)], uneven, size, &share(&all(out), size, "chunk"));
        let cut = share(&all(inputs), size, uneven);
        let of = |name: &str, shape: &[usize], dim: usize| {
            given(name, shape, cut_along(shape, dim, size, cut.clone()))
        };
        let tensors = vec![
            of("m.weight", &[free, inputs], 1),
            of("m.all", &[2, free, inputs], 2),
            of("m.conv", &[free, inputs, 1, 2], 1),
            given("m.bias", &[free], whole(&[free], size)),
            given("m.scalar", &[], whole(&[], size)),
        ];
        case(&json!({"tp": "row"}), uneven, size, tensors).check();
    }

    #[test]
    fn any_dimension_in_units_and_at_blocks(
        shape in prop::collection::vec(0..9usize, 1..5), dim in 0..4usize, size in 1..7usize,
        (unit, align) in (1..4usize, 1..4usize), uneven in any_uneven(), free in any_free(),
    ) {
        let (mut shape, dim) = (shape.clone(), dim % shape.len());
        shape.push(free);
        let len = shape[dim];
        let split = json!({"split": {"axis": {"dim": dim}, "unit": unit, "align": align}});
        // The least number of elements that both divide.
        let step = (1..).find(|step| step % unit == 0 && step % align == 0).unwrap();
        let cut = share_blocks(&all(len), step, size, uneven);
        let tensors = vec![given("m.t", &shape, cut_along(&shape, dim, size, cut))];
        case(&json!({ "tp": split }), uneven, size, tensors).check();
    }

    #[test]
    fn heads(
        kv in 1..5usize, each in 1..4usize, width in 1..5usize, size in 1..9usize,
        uneven in any_uneven(), free in any_free(),
    ) {
        let (count, columns) = (kv * each, free.max(2));
        let cut = |of: [usize; 2]| query_heads(&all(of[0] * width), of, size, uneven);
        let shape = [count * width, columns];
        check_out(&json!({ "heads": count }), shape, uneven, size, &cut([count, count]));
        check_out(&json!({ "heads": [count, kv] }), shape, uneven, size, &cut([count, kv]));
        // Key and value heads, which neighbours share.
        let cut = kv_heads(&all(kv * width), kv, size, uneven);
        check_out(&json!({ "kv_heads": kv }), [kv * width, columns], uneven, size, &cut);
        // Query heads along the inputs of what follows.
        let parts = json!([{ "heads": [count, kv] }]);
        let tp = json!({ "split": { "axis": "in", "parts": parts } });
        let cut = query_heads(&all(shape[0]), [count, kv], size, uneven);
        let turned = [columns, shape[0].max(2)];
        if turned[1] == shape[0] {
            let takes = cut_along(&turned, 1, size, cut);
            let tensors = vec![given("m.weight", &turned, takes)];
            case(&json!({ "tp": tp }), uneven, size, tensors).check();
        }
    }

    #[test]
    fn blocks_side_by_side(
        sizes in prop::collection::vec(1..4usize, 1..4), scale in 1..7usize, size in 1..7usize,
        uneven in any_uneven(), free in any_free(),
    ) {
        let len = sizes.iter().sum::<usize>() * scale;
        let mut start = 0;
        let mut parts = Vec::new();
        for part in &sizes {
            let positions: Vec<_> = (start..start + part * scale).collect();
            start += positions.len();
            parts.push(share(&positions, size, uneven));
        }
        let shape = [len, free.max(2)];
        check_out(&json!({ "packed": sizes }), shape, uneven, size, &join(&parts, size));
    }

    #[test]
    fn query_key_and_value_in_one(
        kv in 1..4usize, each in 1..4usize, width in 1..4usize, size in 1..9usize,
        uneven in any_uneven(), free in any_free(),
    ) {
        let count = kv * each;
        let at = |head: usize| head * width..(head + if head == 0 { count } else { kv }) * width;
        let parts = [
            query_heads(&at(0).collect::<Vec<_>>(), [count, kv], size, uneven),
            kv_heads(&at(count).collect::<Vec<_>>(), kv, size, uneven),
            kv_heads(&at(count + kv).collect::<Vec<_>>(), kv, size, uneven),
        ];
        let shape = [(count + 2 * kv) * width, free.max(2)];
        check_out(&json!({ "qkv": [count, kv] }), shape, uneven, size, &join(&parts, size));
    }

    #[test]
    fn on_all_ranks_one_or_none(out in 1..9usize, free in any_free(), size in 2..5usize) {
        let shape = [out, free.max(2)];
        let mut first = whole(&shape, size);
        first[1..].fill(Take::Nothing);
        for (tp, takes, is_covered) in [
            ("replicate", whole(&shape, size), true),
            ("first", first, true),
            ("skip", vec![Take::Nothing; size], false),
        ] {
            let tensors = vec![Given { is_covered, ..given("m.weight", &shape, takes) }];
            case(&json!({ "tp": tp }), "error", size, tensors).check();
        }
    }
}
