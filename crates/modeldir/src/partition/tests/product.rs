//! All ranks of all kinds of parallelism together: each element is on the ranks that the rules say.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use tensorfile::{Dtype, Selection};

use super::{Given, elements, partition, shapes};
use crate::partition::{ExpertSplit, LayerSplit, Partition, Topology};
use crate::rank::Rank;

/// A small model with one tensor of each kind.
const MODEL: &[Given<'_>] = &[
    ("embed.weight", Dtype::U8, &[13, 8]),
    ("h.0.experts.0.down", Dtype::U8, &[8, 24]),
    ("h.0.experts.1.down", Dtype::U8, &[8, 24]),
    ("h.0.experts.2.down", Dtype::U8, &[8, 24]),
    ("h.0.experts.3.down", Dtype::U8, &[8, 24]),
    ("h.0.norm.weight", Dtype::U8, &[8]),
    ("h.0.qkv.bias", Dtype::U8, &[64]),
    ("h.0.qkv.weight", Dtype::U8, &[64, 8]),
    ("h.1.experts.down", Dtype::U8, &[4, 8, 24]),
    ("h.1.experts.up", Dtype::U8, &[4, 48, 8]),
    ("h.1.o.bias", Dtype::U8, &[8]),
    ("h.1.o.weight", Dtype::U8, &[8, 24]),
    ("h.2.norm.weight", Dtype::U8, &[8]),
    ("h.3.mtp", Dtype::U8, &[8]),
    ("norm.weight", Dtype::U8, &[]),
    ("rotary", Dtype::U8, &[0, 4]),
];

fn rules() -> Partition {
    partition(&json!({"num_layers": 3, "rules": [
        {"match": "embed.*", "tp": "vocab", "pp": "ends"},
        {"match": "norm.*", "pp": "last"},
        {"match": "**.qkv.*", "tp": {"qkv": [12, 2]}},
        {"match": "**.o.bias", "tp": "first"},
        {"match": "**.(o|down).*", "tp": "row"},
        {"match": "**.experts.{e}.down", "tp": "row", "ep": "name"},
        {"match": "**.experts.up", "tp": {"packed": [1, 1]}, "ep": "axis"},
        {"match": "**.experts.down", "tp": "row", "ep": "axis"}
    ]}))
}

/// How many ranks hold each element, by the meaning of the rules.
fn expected(name: &str, element: usize, sizes: [usize; 4]) -> usize {
    let [tp, pp, ep, expert_tp] = sizes;
    let experts = ep * expert_tp;
    // 4 query heads each for 12 heads of 4 rows; key and value heads are at rows 48 to 64.
    let columns = if name.ends_with("weight") { 8 } else { 1 };
    let kv_copies = |row: usize| if row < 48 { 1 } else { (tp / 2).max(1) };
    match name {
        "embed.weight" => experts * pp.min(2),
        "norm.weight" => tp * experts,
        "rotary" => 0,
        _ if name.contains("qkv") => kv_copies(element / columns) * experts,
        _ if name.contains(".o.") => experts,
        _ if name.contains("experts") => tp,
        _ => tp * experts,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_element_is_held_as_often_as_the_rules_say(
        tp in prop::sample::select(vec![1, 2, 4, 6]),
        pp in 1..5usize,
        ep in prop::sample::select(vec![1, 2, 4]),
        expert_tp in prop::sample::select(vec![1, 2, 3]),
        layers in prop::sample::select(vec![LayerSplit::Front, LayerSplit::Back, LayerSplit::Middle]),
        experts in prop::sample::select(vec![ExpertSplit::Linear, ExpertSplit::RoundRobin]),
    ) {
        let (rules, tensors) = (rules(), shapes(MODEL));
        let mut held: BTreeMap<&str, Vec<usize>> =
            MODEL.iter().map(|(name, _, shape)| (*name, vec![0; shape.iter().product()])).collect();
        for rank in 0..tp * pp * ep * expert_tp {
            let at = |rank, size| Rank::new(rank, size).unwrap();
            let ranks = Topology::tensor_parallel(at(rank % tp, tp));
            let ranks = ranks.pipeline(at(rank / tp % pp, pp), layers.clone()).unwrap();
            let ranks = ranks.experts(at(rank / tp / pp % ep, ep), experts.clone());
            let ranks = ranks.expert_tensor_parallel(at(rank / tp / pp / ep, expert_tp));
            let cut = rules.cut(&ranks, None, &tensors).unwrap();
            for ((name, _, shape), part) in MODEL.iter().zip(&cut.parts) {
                let Some(part) = part else { continue };
                for element in elements(shape, part) {
                    held.get_mut(name).unwrap()[element] += 1;
                }
            }
            prop_assert!(cut.report.unused.is_empty(), "{}", cut.report);
        }
        for (name, counts) in held {
            for (element, count) in counts.into_iter().enumerate() {
                let factor = expected(name, element, [tp, pp, ep, expert_tp]);
                prop_assert_eq!(count, factor, "{} {}", name, element);
            }
        }
    }

    #[test]
    fn ranks_of_a_group_join_to_the_whole(size in prop::sample::select(vec![2, 4, 6])) {
        // The parts of a packed tensor, put back part by part.
        let (rules, tensors) = (rules(), shapes(MODEL));
        let up = MODEL.iter().position(|given| given.0 == "h.1.experts.up").unwrap();
        let mut rows = vec![Vec::new(); 2];
        for rank in Rank::all(size) {
            let cut = rules.cut(&Topology::tensor_parallel(rank), None, &tensors).unwrap();
            let taken = elements(MODEL[up].2, cut.parts[up].as_ref().unwrap());
            let of_first: Vec<_> = taken.iter().filter(|element| **element < 48 * 8).copied().collect();
            let (gate, up) = of_first.split_at(of_first.len() / 2);
            rows[0].extend_from_slice(gate);
            rows[1].extend_from_slice(up);
        }
        prop_assert_eq!(rows.concat(), (0..48 * 8).collect::<Vec<_>>());
    }
}

#[test]
fn one_rank_takes_everything_as_it_is() {
    let cut = rules().cut(&Topology::single(), None, &shapes(MODEL)).unwrap();
    assert_eq!(cut.parts, vec![Some(Selection::all()); MODEL.len()]);
    assert_eq!(cut.report.replicated_bytes, 0);
}

#[test]
fn bytes_that_others_hold_too_are_counted() {
    let ranks = |size| Topology::tensor_parallel(Rank::new(0, size).unwrap());
    let replicated =
        |size| rules().cut(&ranks(size), None, &shapes(MODEL)).unwrap().report.replicated_bytes;
    // Norms and the remaining names: 8 + 8 + 8 + 1.
    assert_eq!(replicated(2), 25);
    // And a key and a value head of 4 rows, of bias and weight.
    assert_eq!(replicated(4), 25 + 2 * 4 * 9);
    assert_eq!(Rank::ONLY.size(), 1);
}
