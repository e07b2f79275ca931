//! Tests of whole partitions: rules in, parts of tensors out.

mod families;
mod invariants;
mod layouts;
mod packed;
mod product;
mod refused;
mod stacked;
mod stored;

use serde_json::{Value, json};
use tensorfile::{Dtype, Header, HeaderOptions, Selection, Writer};

use super::{Cut, Partition, TensorShape, Topology};
use crate::partition::PartitionError;
use crate::{ErrorKind, ModelConfig, Quantization, Rank, Result};

/// Name, dtype and shape.
type Given<'a> = (&'a str, Dtype, &'a [usize]);

fn partition(value: &Value) -> Partition {
    serde_json::from_value(value.clone()).unwrap()
}

fn topology(value: &Value) -> Topology {
    serde_json::from_value(value.clone()).unwrap()
}

fn quantization(value: &Value) -> Quantization {
    let config = json!({ "quantization_config": value }).to_string();
    let config = ModelConfig::from_json("config.json", config.as_bytes()).unwrap();
    Quantization::from_config(&config).unwrap()
}

fn shapes<'a>(tensors: &[Given<'a>]) -> Vec<TensorShape<'a>> {
    tensors.iter().map(|&(name, dtype, shape)| TensorShape { name, dtype, shape }).collect()
}

fn cut(rules: &Value, ranks: &Value, tensors: &[Given<'_>]) -> Result<Cut> {
    let rules = if rules.is_array() { json!({ "rules": rules }) } else { rules.clone() };
    partition(&rules).cut(&topology(ranks), None, &shapes(tensors))
}

fn dim(dim: usize, range: std::ops::Range<usize>) -> Option<Selection> {
    Some(Selection::all().with_range(dim, range))
}

fn whole() -> Option<Selection> {
    Some(Selection::all())
}

/// The elements that a selection takes, by their positions, in its order.
fn elements(shape: &[usize], selection: &Selection) -> Vec<usize> {
    let mut writer = Writer::new();
    let bytes = vec![0; shape.iter().product()];
    writer.add("t", Dtype::U8, shape, &bytes).unwrap();
    let header =
        Header::from_bytes(&writer.to_bytes().unwrap(), &HeaderOptions::default()).unwrap();
    selection.lower(header.get("t").unwrap()).unwrap().iter().flatten().collect()
}

#[test]
fn the_first_rule_that_sets_a_field_counts_for_it() {
    let rules = json!([
        {"match": "a.w", "pp": "last"},
        {"match": "*.w", "tp": "row", "pp": "first"},
        {"match": "a.*", "tp": "col"}
    ]);
    let tensors: &[Given<'_>] = &[("a.w", Dtype::F32, &[4, 4]), ("a.x", Dtype::F32, &[4, 4])];
    let cut = cut(&rules, &json!({"tp": "0/2", "pp": "1/2"}), tensors).unwrap();
    assert_eq!(cut.parts, [dim(1, 0..2), dim(0, 0..2)]);
}

#[test]
fn what_matches_nothing_is_reported_or_refused() {
    let rules = json!([
        {"match": "a.w", "tp": "row"},
        {"match": "b.*", "tp": "col"},
        {"match": "c.*", "tp": "col", "unused": "ignore"},
        {"match": "a.b", "tp": "row"}
    ]);
    let tensors: &[Given<'_>] =
        &[("a.b", Dtype::F32, &[4]), ("a.w", Dtype::F32, &[4, 4]), ("z", Dtype::F32, &[4])];
    let ranks = json!({"tp": "0/2"});
    let report = cut(&rules, &ranks, tensors).unwrap().report;
    assert_eq!(report.unused, ["b.*", "a.b"]);
    assert_eq!(report.unmatched, ["z"]);
    assert_eq!(report.replicated_bytes, 16 + 16);
    let mut strict = json!({"rules": rules, "unmatched": "error"});
    let error = cut(&strict, &ranks, tensors).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Partition(PartitionError::UnusedRules { .. })),
        "{error}"
    );
    strict["rules"] = json!([{"match": "a.*"}]);
    let error = cut(&strict, &ranks, tensors).unwrap_err().to_string();
    assert_eq!(error, r#"1 tensors that no rule matches, and Partition::unmatched is Error: "z""#);
}

#[test]
fn stages_take_what_the_rules_and_names_say() {
    let rules = json!({"num_layers": 4, "rules": [
        {"match": "embed.*", "pp": "ends"},
        {"match": "norm.*", "pp": "last"},
        {"match": "inv_freq", "pp": "skip"},
        {"match": "x", "pp": {"stage": 1}},
        {"match": "pre.{l}.*", "pp": "layer"},
        {"match": "tower.**", "pp": "first"}
    ]});
    let names = [
        "embed.w",
        "h.0.w",
        "h.3.w",
        "h.4.mtp",
        "inv_freq",
        "norm.w",
        "other",
        "pre.1.w",
        "tower.layers.3.w",
        "x",
    ];
    let tensors: Vec<Given<'_>> = names.iter().map(|name| (*name, Dtype::U8, &[1][..])).collect();
    let stage = |rules: &Value, rank: usize, size: usize| {
        let cut = cut(rules, &json!({"pp": format!("{rank}/{size}")}), &tensors).unwrap();
        let kept = names.iter().zip(&cut.parts).filter(|(_, part)| part.is_some());
        kept.map(|(name, _)| *name).collect::<Vec<_>>()
    };
    let first = ["embed.w", "h.0.w", "other", "pre.1.w", "tower.layers.3.w"];
    assert_eq!(stage(&rules, 0, 2), first);
    assert_eq!(stage(&rules, 1, 2), ["embed.w", "h.3.w", "h.4.mtp", "norm.w", "other", "x"]);
    let mut skipping = rules.clone();
    skipping["extra_layers"] = json!("skip");
    assert_eq!(stage(&skipping, 2, 3), ["embed.w", "h.3.w", "norm.w", "other"]);
    let error = cut(&rules, &json!({}), &tensors).unwrap_err().to_string();
    assert_eq!(error, r#"tensor "x": stage 1 is not one of 1, counted from 0"#);
}

#[test]
fn experts_have_names_or_lie_along_a_dimension() {
    let rules = json!([
        {"match": "h.{l}.experts.{e}.up", "tp": "col", "ep": "name"},
        {"match": "h.*.experts.all", "tp": "col", "ep": "axis"}
    ]);
    let tensors: &[Given<'_>] = &[
        ("h.0.experts.0.up", Dtype::U8, &[4, 2]),
        ("h.0.experts.1.up", Dtype::U8, &[4, 2]),
        ("h.0.experts.all", Dtype::U8, &[4, 6, 2]),
        ("h.0.shared.up", Dtype::U8, &[4, 2]),
    ];
    // Without expert parallelism, experts are cut as the rest is.
    let parts = cut(&rules, &json!({"tp": "1/2"}), tensors).unwrap().parts;
    assert_eq!(parts, [dim(0, 2..4), dim(0, 2..4), dim(1, 3..6), whole()]);
    // With it, they are whole.
    let parts = cut(&rules, &json!({"tp": "1/2", "ep": "1/2"}), tensors).unwrap().parts;
    assert_eq!(parts, [None, whole(), dim(0, 2..4), whole()]);
    let slots = json!({"ep": "0/2", "expert_tp": "0/2", "experts": {"slots": [[1, 1, 0, 1]]}});
    let parts = cut(&rules, &slots, tensors).unwrap().parts;
    let twice = Selection::all().with_ranges(0, vec![1..2, 1..2]).with_range(1, 0..3);
    assert_eq!(parts, [None, dim(0, 0..2), Some(twice), whole()]);
    let error = cut(&rules, &json!({"ep": "0/3"}), tensors).unwrap_err().to_string();
    assert_eq!(
        error,
        r#"tensor "h.0.experts.0.up": 2 experts over 3 ranks; 2 would do; Uneven::Balanced and Uneven::Chunk give some ranks more than others"#
    );
    let both =
        json!([{"match": "h.*.experts.all", "tp": {"split": {"axis": {"dim": 0}}}, "ep": "axis"}]);
    let error = cut(&both, &json!({"ep": "0/2", "expert_tp": "0/2"}), tensors).unwrap_err();
    assert!(
        error.to_string().contains("dimension 0 would be cut, and experts lie along it"),
        "{error}"
    );
}

#[test]
fn errors_say_what_would_do() {
    let cases = [
        (
            3584,
            json!({"heads": 28}),
            "28 heads over 8 ranks; 2, 4, 7, 14 or 28 would do; Uneven::Balanced gives some ranks more \
             heads than others, Uneven::Chunk cuts heads",
        ),
        (
            64,
            json!({"split": {"axis": "in", "align": 32}}),
            "2880 elements along the inputs in blocks of 32 over 8 ranks; \
             2, 3, 5, 6, 9, 10, 15, 18, 30, 45 or 90 would do; Uneven::Balanced and Uneven::Chunk give \
             some ranks more than others",
        ),
        (
            3585,
            json!({"packed": [1, 2, 4]}),
            "3585 elements along the outputs do not divide in proportions of [1, 2, 4]",
        ),
        (3584, json!({"heads": 27}), "3584 elements along the outputs are not 27 heads"),
        (
            1,
            json!("col"),
            "1 elements along the outputs over 8 ranks; no number up to 256 would do; \
             Uneven::Balanced and Uneven::Chunk give some ranks more than others",
        ),
    ];
    for (rows, tp, expected) in cases {
        let rules = json!([{"match": "q.*", "tp": tp}]);
        let error = cut(&rules, &json!({"tp": "0/8"}), &[("q.weight", Dtype::U8, &[rows, 2880])]);
        let expected = format!(r#"tensor "q.weight": rule "q.*": {expected}"#);
        let error = error.unwrap_err().to_string();
        assert_eq!(error, expected);
        // The settings of `Uneven` in the error work.
        for uneven in ["balanced", "chunk"].into_iter().filter(|_| error.contains("Uneven::")) {
            let partition = json!({"rules": rules, "uneven": uneven});
            let partition: Partition = serde_json::from_value(partition).unwrap();
            let shape = TensorShape { name: "q.weight", dtype: Dtype::U8, shape: &[rows, 2880] };
            partition
                .cut(&Topology::tensor_parallel(Rank::new(0, 8).unwrap()), None, &[shape])
                .unwrap();
        }
    }
}

#[test]
fn query_heads_that_are_not_in_groups_are_refused() {
    let rules = json!([{"match": "q.*", "tp": {"split":
        {"axis": "out", "parts": [{"heads": [28, 3]}], "uneven": "balanced"}}}]);
    let error = cut(&rules, &json!({"tp": "0/8"}), &[("q.weight", Dtype::U8, &[3584, 8])]);
    let expected = r#"tensor "q.weight": rule "q.*": 28 query heads do not divide into 3 groups, one for each key and value head"#;
    assert_eq!(error.unwrap_err().to_string(), expected);
}

#[test]
fn vocabularies_have_short_tails_and_first_is_of_one_rank() {
    let rules = json!([{"match": "v.*", "tp": "vocab"}, {"match": "b", "tp": "first"}]);
    let tensors: &[Given<'_>] = &[("b", Dtype::U8, &[3]), ("v.w", Dtype::U8, &[10, 4])];
    let parts =
        |rank: usize| cut(&rules, &json!({"tp": format!("{rank}/4")}), tensors).unwrap().parts;
    assert_eq!(parts(0), [whole(), dim(0, 0..3)]);
    assert_eq!(parts(3), [None, dim(0, 9..10)]);
}

#[test]
fn a_tensor_of_which_every_rank_takes_all_is_whole() {
    let rules = json!([{"match": "k.*", "tp": {"kv_heads": 1}}]);
    let cut = cut(&rules, &json!({"tp": "1/2"}), &[("k.weight", Dtype::U8, &[128, 64])]).unwrap();
    assert_eq!(cut.parts, [whole()]);
    assert_eq!(cut.report.replicated_bytes, 128 * 64);
}

#[test]
fn rules_that_contradict_themselves_are_refused() {
    for rule in [
        json!({"match": "a", "ep": "name"}),
        json!({"match": "a", "pp": "layer"}),
        json!({"match": "a", "tp": {"packed": []}}),
    ] {
        let error = cut(&json!([rule]), &json!({}), &[]).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Partition(PartitionError::Pattern { .. })),
            "{error}"
        );
    }
}

#[test]
fn a_file_of_rules_is_read_with_positions_in_errors() {
    let error = Partition::from_json(b"{\"rules\": [\n{\"mtach\": \"a\"}]}");
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("line 2 column "), "{error}");
    assert!(error.contains("mtach"), "{error}");
    let read = Partition::from_json(b"{\"uneven\": \"chunk\"}").unwrap();
    let rule = serde_json::from_value(json!({"match": "a"})).unwrap();
    assert_eq!(read.with_rules([rule]).rules.len(), 1);
}
