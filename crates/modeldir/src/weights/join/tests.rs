//! Joins of small shards with small maps, and without one.
#![expect(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "of small lists")]

use tensorfile::{Header, HeaderOptions, TensorInfo};

use super::{Absent, Joined, Slot, Tensors, fit, wanted, with_map, without_map};
use crate::open_options::Unindexed;

struct Shards(Vec<Vec<TensorInfo>>);

impl Tensors for Shards {
    fn name(&self, slot: Slot) -> &str {
        self.0[slot.shard as usize][slot.tensor as usize].name()
    }
}

/// One-byte tensors in shards: the first list is shard 0.
fn shards(names: &[&[&str]]) -> Shards {
    Shards(names.iter().map(|names| shard(names)).collect())
}

fn shard(names: &[&str]) -> Vec<TensorInfo> {
    let entry = |(i, name): (usize, &&str)| {
        format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{}]}}"#, i + 1)
    };
    let entries: Vec<String> = names.iter().enumerate().map(entry).collect();
    let json = format!("{{{}}}", entries.join(","));
    let mut file = (json.len() as u64).to_le_bytes().to_vec();
    file.extend(json.bytes());
    file.resize(file.len() + names.len(), 0);
    let header = Header::from_bytes(&file, &HeaderOptions::default());
    header.unwrap().into_parts().0
}

/// Joins with a map of names to shards; every shard is present.
fn join<'m>(shards: &Shards, map: &[(&'m str, usize)], policy: Unindexed) -> Joined<'m> {
    let count = |shard| map.iter().filter(|(_, of)| *of == shard).count();
    let counts: Vec<usize> = (0..shards.0.len()).map(count).collect();
    let wanted = wanted(map.iter().copied(), &counts).unwrap();
    let fits = shards.0.iter().zip(&wanted).map(|(tensors, wanted)| fit(tensors, wanted));
    let fits = fits.collect::<Result<_, _>>().unwrap();
    with_map(shards, fits, map.iter().map(|(name, _)| *name), policy).unwrap()
}

/// Names and shards of slots.
fn named<'s>(shards: &'s Shards, slots: &[Slot]) -> Vec<(&'s str, u32)> {
    slots.iter().map(|slot| (shards.name(*slot), slot.shard)).collect()
}

#[test]
fn the_map_decides_between_copies_whatever_the_order_of_shards() {
    let shards = shards(&[&["a", "b"], &["b", "a"]]);
    let joined = join(&shards, &[("a", 1), ("b", 0)], Unindexed::Include);
    assert_eq!(named(&shards, &joined.order), [("a", 1), ("b", 0)]);
    assert_eq!(named(&shards, &joined.stale), [("a", 0), ("b", 1)]);
    assert_eq!((joined.absent, joined.unindexed), (vec![], vec![]));
}

#[test]
fn a_mapped_tensor_that_is_elsewhere_or_nowhere_is_absent() {
    let shards = shards(&[&["b"], &["a"]]);
    let map = [("a", 0), ("b", 0), ("c", 1), ("z", 1)];
    let joined = join(&shards, &map, Unindexed::Include);
    let absent = |name, shard, found_in| Absent { name, shard, found_in };
    assert_eq!(
        joined.absent,
        [absent("a", 0, Some(1)), absent("c", 1, None), absent("z", 1, None)]
    );
    assert_eq!(named(&shards, &joined.order), [("b", 0)]);
}

#[test]
fn tensors_of_a_lost_shard_are_not_named_again() {
    let shards = shards(&[&["a"]]);
    let wanted = wanted([("a", 0), ("b", 1)].into_iter(), &[1, 1]).unwrap();
    let fits = vec![fit(&shards.0[0], &wanted[0]).unwrap()];
    let joined = with_map(&shards, fits, ["a", "b"].into_iter(), Unindexed::Error).unwrap();
    assert_eq!(named(&shards, &joined.order), [("a", 0)]);
    assert_eq!(joined.absent, []);
}

#[test]
fn unindexed_tensors_follow_the_policy() {
    let shards = shards(&[&["x", "a", "m"]]);
    for (policy, expected) in [
        (Unindexed::Include, vec![("a", 0), ("m", 0), ("x", 0)]),
        (Unindexed::Ignore, vec![("a", 0)]),
        (Unindexed::Error, vec![("a", 0)]),
    ] {
        let joined = join(&shards, &[("a", 0)], policy);
        assert_eq!(named(&shards, &joined.order), expected, "{policy:?}");
        assert_eq!(named(&shards, &joined.unindexed), [("m", 0), ("x", 0)]);
    }
}

#[test]
fn two_unindexed_copies_are_a_duplicate() {
    let shards = shards(&[&["x"], &["x"], &["x"]]);
    let joined = join(&shards, &[], Unindexed::Include);
    let slot = |shard| Slot { shard, tensor: 0 };
    assert_eq!(joined.duplicates, [(slot(0), slot(1))]);
    let ignored = join(&shards, &[], Unindexed::Ignore);
    assert_eq!((ignored.duplicates, ignored.order), (vec![], vec![]));
}

#[test]
fn without_a_map_every_name_must_be_unique() {
    let shards = shards(&[&["b", "a"], &["c", "b"], &["b"]]);
    let joined = without_map(&shards, [2, 2, 1].into_iter()).unwrap();
    assert_eq!(named(&shards, &joined.order), [("a", 0), ("b", 0), ("c", 1)]);
    let [(first, second)] = joined.duplicates[..] else { panic!("one name is twice there") };
    assert_eq!(named(&shards, &[first, second]), [("b", 0), ("b", 1)]);
}
