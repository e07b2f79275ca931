//! Joins what the shards hold with what the weight map says, in both directions; pure.

use rayon::slice::ParallelSliceMut;

use crate::index::IndexedTensor;
use crate::options::Unindexed;

/// An entry of the weight map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapped<'a> {
    pub(crate) name: &'a str,
    /// The position of the shard, or `None` if the shard cannot be used: its tensors are lost.
    pub(crate) shard: Option<u32>,
}

/// The tensors of the model, and what did not fit together.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    /// By name; every name once.
    pub(crate) tensors: Vec<IndexedTensor>,
    /// Tensors that the map does not name. They are in `tensors` too if the policy includes them.
    pub(crate) unindexed: Vec<Misplaced>,
    /// Copies in shards other than the one that the map names; skipped.
    pub(crate) stale: Vec<Misplaced>,
    /// Tensors that several shards hold, with no map to decide.
    pub(crate) duplicates: Vec<Duplicate>,
    /// Tensors that the shard which the map names does not hold.
    pub(crate) absent: Vec<Absent>,
}

/// A tensor that several shards hold: the first two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Duplicate {
    pub(crate) name: String,
    pub(crate) first: u32,
    pub(crate) second: u32,
}

/// A tensor that is not in the shard which the map names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Absent {
    pub(crate) name: String,
    pub(crate) shard: u32,
    /// Another shard that holds it.
    pub(crate) found_in: Option<u32>,
}

/// A tensor in a shard where the map does not have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misplaced {
    pub(crate) name: String,
    pub(crate) shard: u32,
}

/// Joins the tensors of all headers with the weight map, which is by name; without a map every
/// tensor counts.
pub(crate) fn join(
    mut tensors: Vec<IndexedTensor>,
    map: Option<&[Mapped<'_>]>,
    unindexed: Unindexed,
) -> Joined {
    // Stable, and fast on the runs that the headers are: each is sorted by name.
    tensors.par_sort_by(|a, b| a.name().cmp(b.name()).then(a.shard.cmp(&b.shard)));
    let mut joined = Joined { tensors: Vec::with_capacity(tensors.len()), ..Joined::default() };
    let mut map = map.map(|map| map.iter().peekable());
    let mut tensors = tensors.into_iter().peekable();
    while let Some(first) = tensors.next() {
        let mapped = map.as_mut().map(|map| {
            while let Some(absent) = map.next_if(|mapped| mapped.name < first.name()) {
                joined.absent(absent, None);
            }
            map.next_if(|mapped| mapped.name == first.name())
        });
        match mapped {
            None => joined.add_unmapped(first, &mut tensors),
            Some(None) if unindexed == Unindexed::Include => {
                joined.unindexed.push(Misplaced::of(&first));
                joined.add_unmapped(first, &mut tensors);
            }
            Some(None) => joined.unindexed.push(Misplaced::of(&first)),
            Some(Some(mapped)) => joined.add_mapped(mapped, first, &mut tensors),
        }
    }
    for absent in map.into_iter().flatten() {
        joined.absent(absent, None);
    }
    joined
}

type Tensors = std::iter::Peekable<std::vec::IntoIter<IndexedTensor>>;

impl Joined {
    /// Takes a tensor that the map does not decide on: more than one copy is a duplicate.
    fn add_unmapped(&mut self, first: IndexedTensor, rest: &mut Tensors) {
        let mut copies = 0;
        while let Some(copy) = rest.next_if(|next| next.name() == first.name()) {
            if copies == 0 {
                let name = first.name().to_owned();
                self.duplicates.push(Duplicate { name, first: first.shard, second: copy.shard });
            }
            copies += 1;
        }
        self.tensors.push(first);
    }

    /// Takes the copy that lies in the mapped shard; the others are stale.
    fn add_mapped(&mut self, mapped: &Mapped<'_>, first: IndexedTensor, rest: &mut Tensors) {
        let first_shard = first.shard;
        let mut found = None;
        let mut next = Some(first);
        while let Some(copy) = next {
            next = rest.next_if(|next| next.name() == mapped.name);
            if Some(copy.shard) == mapped.shard {
                found = Some(copy);
            } else {
                self.stale.push(Misplaced::of(&copy));
            }
        }
        match found {
            Some(tensor) => self.tensors.push(tensor),
            None => self.absent(mapped, Some(first_shard)),
        }
    }

    /// Notes a mapped tensor that its shard does not hold, unless the shard itself is lost.
    fn absent(&mut self, mapped: &Mapped<'_>, found_in: Option<u32>) {
        if let Some(shard) = mapped.shard {
            self.absent.push(Absent { name: mapped.name.to_owned(), shard, found_in });
        }
    }
}

impl Misplaced {
    fn of(tensor: &IndexedTensor) -> Self {
        Self { name: tensor.name().to_owned(), shard: tensor.shard }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tensorfile::{Header, HeaderOptions};

    use super::{Absent, Duplicate, Joined, Mapped, Misplaced, join};
    use crate::index::IndexedTensor;
    use crate::options::Unindexed;

    /// One-byte tensors in shards: the first list is shard 0.
    fn shards(names: &[&[&str]]) -> Vec<IndexedTensor> {
        let mut tensors = Vec::new();
        for (shard, names) in (0..).zip(names) {
            let entry = |(i, name): (usize, &&str)| {
                format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{}]}}"#, i + 1)
            };
            let entries: Vec<String> = names.iter().enumerate().map(entry).collect();
            let json = format!("{{{}}}", entries.join(","));
            let mut file = (json.len() as u64).to_le_bytes().to_vec();
            file.extend(json.bytes());
            file.resize(file.len() + names.len(), 0);
            let options = HeaderOptions::default();
            let header = Header::from_bytes(Path::new("s"), &file, &options).unwrap();
            tensors.extend(
                header.into_tensors().into_iter().map(|info| IndexedTensor::new(info, shard)),
            );
        }
        tensors
    }

    fn mapped<'a>(map: &[(&'a str, Option<u32>)]) -> Vec<Mapped<'a>> {
        map.iter().map(|&(name, shard)| Mapped { name, shard }).collect()
    }

    /// Name and shard of every tensor that is taken.
    fn taken(joined: &Joined) -> Vec<(&str, u32)> {
        joined.tensors.iter().map(|tensor| (tensor.name(), tensor.shard)).collect()
    }

    fn misplaced(name: &str, shard: u32) -> Misplaced {
        Misplaced { name: name.to_owned(), shard }
    }

    #[test]
    fn the_map_decides_between_copies_whatever_the_order_of_shards() {
        let map = [("a", Some(1)), ("b", Some(0))];
        let joined =
            join(shards(&[&["a", "b"], &["b", "a"]]), Some(&mapped(&map)), Unindexed::Include);
        assert_eq!(taken(&joined), [("a", 1), ("b", 0)]);
        assert_eq!(joined.stale, [misplaced("a", 0), misplaced("b", 1)]);
    }

    #[test]
    fn a_mapped_tensor_that_is_elsewhere_or_nowhere_is_absent() {
        let map = [("a", Some(0)), ("b", Some(0)), ("c", Some(1)), ("z", Some(1))];
        let joined = join(shards(&[&["b"], &["a"]]), Some(&mapped(&map)), Unindexed::Include);
        let absent = |name: &str, shard, found_in| Absent { name: name.into(), shard, found_in };
        assert_eq!(
            joined.absent,
            [absent("a", 0, Some(1)), absent("c", 1, None), absent("z", 1, None)]
        );
    }

    #[test]
    fn tensors_of_a_lost_shard_are_not_named_again() {
        let joined = join(
            shards(&[&["a"]]),
            Some(&mapped(&[("a", Some(0)), ("b", None)])),
            Unindexed::Error,
        );
        assert_eq!(taken(&joined), [("a", 0)]);
        assert_eq!(joined.absent, []);
    }

    #[test]
    fn unindexed_tensors_follow_the_policy() {
        for (policy, expected) in [
            (Unindexed::Include, vec![("a", 0), ("x", 0)]),
            (Unindexed::Ignore, vec![("a", 0)]),
            (Unindexed::Error, vec![("a", 0)]),
        ] {
            let joined = join(shards(&[&["x", "a"]]), Some(&mapped(&[("a", Some(0))])), policy);
            assert_eq!(taken(&joined), expected, "{policy:?}");
            assert_eq!(joined.unindexed, [misplaced("x", 0)]);
        }
    }

    #[test]
    fn two_unindexed_copies_are_a_duplicate() {
        let joined = join(shards(&[&["x"], &["x"]]), Some(&[]), Unindexed::Include);
        assert_eq!(joined.duplicates, [Duplicate { name: "x".into(), first: 0, second: 1 }]);
        let ignored = join(shards(&[&["x"], &["x"]]), Some(&[]), Unindexed::Ignore);
        assert_eq!((ignored.duplicates, ignored.tensors.len()), (vec![], 0));
    }

    #[test]
    fn without_a_map_every_name_must_be_unique() {
        let joined = join(shards(&[&["b", "a"], &["c", "b"], &["b"]]), None, Unindexed::Include);
        assert_eq!(taken(&joined), [("a", 0), ("b", 0), ("c", 1)]);
        assert_eq!(joined.duplicates, [Duplicate { name: "b".into(), first: 0, second: 1 }]);
    }
}
