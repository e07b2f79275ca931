//! Properties of every cut, for any numbers.

use std::num::NonZeroUsize;
use std::ops::Range;

use proptest::prelude::*;
use serde_json::json;
use tensorfile::{Dtype, Selection};

use super::{TensorShape, cut, elements, partition, quantization, shapes, topology};
use crate::partition::{
    Axis, Ep, ExpertSplit, ExtraLayers, Heads, LayerSplit, Layout, Misaligned, Part, Partition, Pp,
    Rule, Split, Topology, Tp, Uneven, Unmatched, Unused,
};
use crate::rank::Rank;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, cases, ..ProptestConfig::default() }
}

fn nonzero(range: Range<usize>) -> impl Strategy<Value = NonZeroUsize> {
    range.prop_map(|n| NonZeroUsize::new(n + 1).unwrap())
}

fn any_uneven() -> impl Strategy<Value = Uneven> {
    prop::sample::select(vec![Uneven::Error, Uneven::Chunk, Uneven::Balanced])
}

fn any_part() -> impl Strategy<Value = Part> {
    (nonzero(0..4), nonzero(0..6), nonzero(0..3), 0..3).prop_map(|(size, count, kv, kind)| {
        let heads = match kind {
            0 => None,
            1 => Some(Heads::Query { count, kv }),
            _ => Some(Heads::KeyValue { count }),
        };
        Part { size, heads }
    })
}

prop_compose! {
    fn any_split()(
        axis in prop::sample::select(vec![Axis::Out, Axis::In, Axis::Dim(1)]),
        parts in prop::collection::vec(any_part(), 1..4),
        unit in nonzero(0..3),
        align in nonzero(0..3),
        uneven in prop::option::of(any_uneven()),
        misaligned in prop::option::of(prop::sample::select(vec![Misaligned::Error, Misaligned::Cover])),
    ) -> Split {
        Split { axis, parts, unit, align, uneven, misaligned }
    }
}

/// The ranges of all ranks, or `None` if one of them is refused.
fn all_ranges(
    split: &Split,
    len: usize,
    size: usize,
    uneven: Uneven,
) -> Option<Vec<Vec<Range<usize>>>> {
    (0..size).map(|rank| split.ranges(len, Rank::new(rank, size).unwrap(), uneven).ok()).collect()
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn ranks_share_an_axis_without_gap_or_overlap(
        mut split in any_split(), len in 0..120usize, size in 1..9usize, uneven in any_uneven(),
    ) {
        for part in &mut split.parts {
            let is_shared = |heads: &Heads| matches!(heads, Heads::KeyValue { count } if count.get() < size);
            part.heads = part.heads.filter(|heads| !is_shared(heads));
        }
        let refused = (0..size)
            .filter(|rank| split.ranges(len, Rank::new(*rank, size).unwrap(), uneven).is_err())
            .count();
        prop_assert!(refused == 0 || refused == size, "one rank is refused, another is not");
        let Some(ranges) = all_ranges(&split, len, size, uneven) else { return Ok(()) };
        let mut joined = Vec::new();
        for part in 0..ranges.iter().map(Vec::len).max().unwrap_or(0) {
            joined.extend(ranges.iter().filter_map(|of_rank| of_rank.get(part).cloned()).flatten());
        }
        prop_assert_eq!(joined, (0..len).collect::<Vec<_>>());
    }

    #[test]
    fn uneven_is_ceil_or_differs_by_one_unit(len in 0..200usize, size in 1..9usize, unit in nonzero(0..4)) {
        let split = |uneven| Split { unit, uneven: Some(uneven), ..Split::along(Axis::Out) };
        let lens = |uneven| -> Vec<usize> {
            let ranges = all_ranges(&split(uneven), len, size, Uneven::Error).unwrap();
            ranges.iter().map(|of_rank| of_rank.iter().map(Range::len).sum()).collect()
        };
        let unit = unit.get();
        let each = len.div_ceil(unit).div_ceil(size) * unit;
        for (rank, found) in lens(Uneven::Chunk).into_iter().enumerate() {
            prop_assert_eq!(found, each.min(len.saturating_sub(each * rank)));
        }
        let balanced = lens(Uneven::Balanced);
        prop_assert!(balanced[0] < balanced[size - 1] + 2 * unit);
        prop_assert!(balanced.iter().all(|of_rank| *of_rank <= each));
    }

    #[test]
    fn query_heads_have_one_rank_and_go_with_their_key_and_value_head(
        kv in 1..7usize, each in 1..4usize, width in 1..4usize, size in 1..13usize, balanced: bool,
    ) {
        let q = kv * each;
        let uneven = if balanced { Uneven::Balanced } else { Uneven::Error };
        let Tp::Split(split) = serde_json::from_value(json!({"qkv": [q, kv]})).unwrap() else {
            unreachable!()
        };
        let Some(ranges) = all_ranges(&split, (q + 2 * kv) * width, size, uneven) else {
            prop_assert!(!balanced);
            return Ok(());
        };
        if size == 1 {
            return Ok(());
        }
        let head = |range: &Range<usize>, first: usize| {
            (range.start - first * width) / width..(range.end - first * width) / width
        };
        let mut of_q = vec![0; q];
        let mut of_kv = vec![Vec::new(); kv];
        for (rank, of_rank) in ranges.iter().enumerate() {
            let [queries, keys, values] = &of_rank[..] else { unreachable!() };
            let (queries, keys, values) = (head(queries, 0), head(keys, q), head(values, q + kv));
            prop_assert_eq!(&keys, &values);
            for query in queries {
                of_q[query] += 1;
                prop_assert!(keys.contains(&(query / each)), "rank {rank} query {query} keys {keys:?}");
            }
            keys.for_each(|key| of_kv[key].push(rank));
        }
        prop_assert!(of_q.iter().all(|ranks| *ranks == 1));
        let copies = if size % kv == 0 { size / kv } else { 1 };
        for ranks in of_kv {
            prop_assert_eq!(ranks.len(), copies.max(1));
            prop_assert!(ranks.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        }
    }

    #[test]
    fn scales_are_cut_where_their_weight_is(
        rows in 1..40usize, columns in 1..40usize, block in 1..6usize, size in 2..5usize,
        rank in 0..4usize, tp in prop::sample::select(vec!["col", "row"]), cover: bool,
        uneven in prop::sample::select(vec!["error", "chunk", "balanced"]),
    ) {
        let rules = partition(&json!({
            "rules": [{"match": "**", "tp": tp}],
            "uneven": uneven,
            "misaligned": if cover { "cover" } else { "error" },
        }));
        let scheme = quantization(&json!({"quant_method": "fp8", "weight_block_size": [block, block]}));
        let ranks = topology(&json!({"tp": format!("{}/{size}", rank % size)}));
        let scale_shape = [rows.div_ceil(block), columns.div_ceil(block)];
        let weight = TensorShape { name: "m.weight", dtype: Dtype::U8, shape: &[rows, columns] };
        let scale = TensorShape { name: "m.weight_scale_inv", dtype: Dtype::U8, shape: &scale_shape };
        let alone = rules.cut(&ranks, Some(&scheme), &[weight]);
        let both = rules.cut(&ranks, Some(&scheme), &[weight, scale]);
        prop_assert!(both.is_err() || alone.is_ok());
        prop_assert!(!cover || alone.is_ok() == both.is_ok());
        let Ok(both) = both else { return Ok(()) };
        prop_assert_eq!(&both.parts[0], &alone.unwrap().parts[0]);
        let dim = usize::from(tp == "row");
        let extents = |tensor: &TensorShape<'_>, part: &Option<Selection>| -> Vec<usize> {
            let taken = elements(tensor.shape, part.as_ref().unwrap());
            let mut along: Vec<_> = taken
                .iter()
                .map(|i| if dim == 0 { i / tensor.shape[1] } else { i % tensor.shape[1] })
                .collect();
            along.sort_unstable();
            along.dedup();
            along
        };
        let mut needed = extents(&weight, &both.parts[0]);
        needed.iter_mut().for_each(|i| *i /= block);
        needed.dedup();
        let found = extents(&scale, &both.parts[1]);
        // Every rank holds a single block for the whole axis.
        let is_one_for_all = scale.shape[dim] == 1 && found == [0];
        prop_assert!(is_one_for_all || found == needed, "{found:?} {needed:?}");
    }

    #[test]
    fn layers_are_shared_out_without_gap_and_evenly(layers in 0..100usize, size in 1..12usize) {
        for split in [LayerSplit::Front, LayerSplit::Back, LayerSplit::Middle] {
            let stage = |rank| split.layers(layers, Rank::new(rank, size).unwrap()).unwrap();
            let stages: Vec<_> = (0..size).map(stage).collect();
            prop_assert_eq!(stages.iter().cloned().flatten().collect::<Vec<_>>(), (0..layers).collect::<Vec<_>>());
            let lens: Vec<_> = stages.iter().map(Range::len).collect();
            prop_assert!(lens.iter().max().unwrap() - lens.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn experts_are_shared_out_once_or_as_the_slots_say(
        count in 0..40usize, size in 1..9usize, uneven in any_uneven(), slots in prop::collection::vec(0..5usize, 0..20),
    ) {
        let all = |split: &ExpertSplit, count, uneven| -> Option<Vec<usize>> {
            let of = |rank| split.experts(count, None, Rank::new(rank, size).unwrap(), uneven).ok();
            Some((0..size).map(of).collect::<Option<Vec<_>>>()?.concat())
        };
        for split in [ExpertSplit::Linear, ExpertSplit::RoundRobin] {
            match all(&split, count, uneven) {
                Some(mut found) => {
                    found.sort_unstable();
                    prop_assert_eq!(found, (0..count).collect::<Vec<_>>());
                }
                None => prop_assert!(uneven == Uneven::Error && count % size != 0),
            }
        }
        let divides = slots.len() % size == 0;
        let found = all(&ExpertSplit::Slots(vec![slots.clone()]), 5, uneven);
        prop_assert_eq!(found, divides.then_some(slots));
    }
}

prop_compose! {
    fn any_rule()(
        pattern in prop::sample::select(vec!["**.{l}.{e}.*", "a.{l}.{e}.w*", "**.(q|k).{l}.**.{e}"]),
        tp in prop::option::of(prop_oneof![
            Just(Tp::Replicate), Just(Tp::Skip), Just(Tp::First), Just(Tp::row()), Just(Tp::vocab()),
            any_split().prop_map(Tp::Split),
        ]),
        ep in prop::option::of(prop::sample::select(vec![Ep::All, Ep::Name, Ep::Axis])),
        pp in prop::option::of(prop::sample::select(vec![Pp::Ends, Pp::Layer, Pp::Stage(3), Pp::Skip])),
        layout in prop::option::of(prop::sample::select(vec![Layout::Linear, Layout::Transposed])),
        unused in prop::sample::select(vec![Unused::Report, Unused::Ignore]),
    ) -> Rule {
        Rule { tp, ep, pp, layout, unused, ..Rule::new(pattern.parse().unwrap()) }
    }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn partitions_and_topologies_are_read_as_they_were_written(
        rules in prop::collection::vec(any_rule(), 0..4),
        uneven in any_uneven(),
        unmatched in prop::sample::select(vec![Unmatched::Report, Unmatched::Error]),
        num_layers in prop::option::of(0..99usize),
        (tp, pp, ep) in (1..9usize, 1..9usize, 1..9usize),
        sizes in prop::option::of(Just(())),
    ) {
        let written = Partition {
            rules, uneven, unmatched, num_layers, extra_layers: ExtraLayers::Skip, ..Partition::default()
        };
        let text = serde_json::to_string(&written).unwrap();
        prop_assert_eq!(serde_json::from_str::<Partition>(&text).unwrap(), written);
        let layers = sizes.map_or(LayerSplit::Middle, |()| LayerSplit::Sizes(vec![2; pp]));
        let written = Topology::tensor_parallel(Rank::new(tp - 1, tp).unwrap());
        let written = written.pipeline(Rank::new(pp / 2, pp).unwrap(), layers).unwrap();
        let slots = ExpertSplit::Slots(vec![vec![0], vec![]]);
        let written = written.experts(Rank::new(0, ep).unwrap(), slots);
        let text = serde_json::to_string(&written).unwrap();
        prop_assert_eq!(serde_json::from_str::<Topology>(&text).unwrap(), written);
    }

    #[test]
    fn the_order_of_tensors_changes_nothing(
        order in Just((0..24usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let rules = json!([{"match": "**.q.*", "tp": "col"}, {"match": "**.o.*", "tp": "row"}]);
        let names: Vec<String> = (0..24)
            .map(|i| format!("h.{}.{}.{}", i / 6, ["k", "o", "q"][i % 3], ["weight", "weight_scale"][i / 3 % 2]))
            .collect();
        let tensors: Vec<super::Given<'_>> =
            names.iter().map(|name| (name.as_str(), Dtype::U8, if name.ends_with('t') { &[8, 8][..] } else { &[2, 2] })).collect();
        let shuffled: Vec<_> = order.iter().map(|i| tensors[*i]).collect();
        let ranks = json!({"tp": "1/2", "pp": "0/2"});
        let plain = cut(&json!(rules), &ranks, &tensors).unwrap();
        let found = cut(&json!(rules), &ranks, &shuffled).unwrap();
        prop_assert_eq!(&found.report, &plain.report);
        for (i, part) in order.iter().zip(&found.parts) {
            prop_assert_eq!(part, &plain.parts[*i]);
        }
        prop_assert_eq!(shapes(&tensors).len(), plain.parts.len());
    }
}
