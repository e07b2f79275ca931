//! Joins what the shards hold with what the weight map says, in both directions; pure.

use std::cmp::Ordering;

use rayon::slice::ParallelSliceMut;
use tensorfile::TensorInfo;

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

/// Joins the tensors of all headers with the weight map, which is by name and each name once;
/// without a map every tensor counts. The tensors of each shard are by name.
pub(crate) fn join<'m>(
    shards: Vec<Vec<TensorInfo>>,
    map: Option<impl Iterator<Item = Mapped<'m>> + Clone>,
    unindexed: Unindexed,
) -> Joined {
    let mut joined = Joined::default();
    match map {
        Some(map) => {
            let strays = joined.place(shards, map.clone());
            joined.add_strays(strays, map, unindexed);
        }
        None => {
            let strays = (0..).zip(shards).flat_map(|(shard, tensors)| in_shard(tensors, shard));
            joined.add_unmapped(strays.collect());
        }
    }
    joined
}

impl Joined {
    /// Takes every tensor from the shard that the map names; returns all others.
    ///
    /// Map and shards are by name, so one pass over both finds each tensor where it must be.
    fn place<'m>(
        &mut self,
        shards: Vec<Vec<TensorInfo>>,
        map: impl Iterator<Item = Mapped<'m>>,
    ) -> Vec<IndexedTensor> {
        self.tensors.reserve(shards.iter().map(Vec::len).sum());
        let mut strays = Vec::new();
        let mut cursors: Vec<_> =
            shards.into_iter().map(|tensors| tensors.into_iter().peekable()).collect();
        for Mapped { name, shard } in map {
            // The tensors of a lost shard are not named one by one.
            let Some(shard) = shard else { continue };
            let cursor = &mut cursors[shard as usize];
            while let Some(stray) = cursor.next_if(|next| next.name() < name) {
                strays.push(IndexedTensor::new(stray, shard));
            }
            match cursor.next_if(|next| next.name() == name) {
                Some(tensor) => self.tensors.push(IndexedTensor::new(tensor, shard)),
                None => self.absent.push(Absent { name: name.to_owned(), shard, found_in: None }),
            }
        }
        strays.extend((0..).zip(cursors).flat_map(|(shard, rest)| in_shard(rest, shard)));
        strays
    }

    /// Judges the tensors that lie where the map has none: copies of mapped ones are stale, and the
    /// policy decides about the rest.
    fn add_strays<'m>(
        &mut self,
        mut strays: Vec<IndexedTensor>,
        map: impl Iterator<Item = Mapped<'m>>,
        unindexed: Unindexed,
    ) {
        strays.sort_by(by_name_and_shard);
        let mut map = map.map(|mapped| mapped.name).peekable();
        let mut absent = self.absent.iter_mut().peekable();
        let mut unmapped = Vec::new();
        for stray in strays {
            while map.next_if(|name| *name < stray.name()).is_some() {}
            while absent.next_if(|absent| &*absent.name < stray.name()).is_some() {}
            if map.peek() != Some(&stray.name()) {
                self.unindexed.push(Misplaced::of(&stray));
                unmapped.push(stray);
                continue;
            }
            if let Some(absent) = absent.peek_mut().filter(|absent| absent.name == stray.name()) {
                absent.found_in.get_or_insert(stray.shard);
            }
            self.stale.push(Misplaced::of(&stray));
        }
        if unindexed == Unindexed::Include && !unmapped.is_empty() {
            self.add_unmapped(unmapped);
        }
    }

    /// Takes tensors that no map decides on: more than one copy is a duplicate.
    fn add_unmapped(&mut self, tensors: Vec<IndexedTensor>) {
        self.tensors.extend(tensors);
        // Stable, and fast on the runs that the shards are.
        self.tensors.par_sort_by(by_name_and_shard);
        let mut seen = 0;
        let duplicates = &mut self.duplicates;
        self.tensors.dedup_by(|copy, first| {
            let is_copy = copy.name() == first.name();
            seen = if is_copy { seen + 1 } else { 0 };
            if seen == 1 {
                let name = first.name().to_owned();
                duplicates.push(Duplicate { name, first: first.shard, second: copy.shard });
            }
            is_copy
        });
    }
}

impl Misplaced {
    fn of(tensor: &IndexedTensor) -> Self {
        Self { name: tensor.name().to_owned(), shard: tensor.shard }
    }
}

fn in_shard(
    tensors: impl IntoIterator<Item = TensorInfo>,
    shard: u32,
) -> impl Iterator<Item = IndexedTensor> {
    tensors.into_iter().map(move |info| IndexedTensor::new(info, shard))
}

fn by_name_and_shard(a: &IndexedTensor, b: &IndexedTensor) -> Ordering {
    a.name().cmp(b.name()).then(a.shard.cmp(&b.shard))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tensorfile::{Header, HeaderOptions, TensorInfo};

    use super::{Absent, Duplicate, Joined, Mapped, Misplaced, join};
    use crate::options::Unindexed;

    /// One-byte tensors in shards: the first list is shard 0.
    fn shards(names: &[&[&str]]) -> Vec<Vec<TensorInfo>> {
        names.iter().map(|names| shard(names)).collect()
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
        let header = Header::from_bytes(Path::new("s"), &file, &HeaderOptions::default());
        header.unwrap().into_tensors()
    }

    /// Joins with a map of names to shards.
    fn join_map(
        shards: Vec<Vec<TensorInfo>>,
        map: &[(&str, Option<u32>)],
        policy: Unindexed,
    ) -> Joined {
        join(shards, Some(map.iter().map(|&(name, shard)| Mapped { name, shard })), policy)
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
        let joined = join_map(shards(&[&["a", "b"], &["b", "a"]]), &map, Unindexed::Include);
        assert_eq!(taken(&joined), [("a", 1), ("b", 0)]);
        assert_eq!(joined.stale, [misplaced("a", 0), misplaced("b", 1)]);
    }

    #[test]
    fn a_mapped_tensor_that_is_elsewhere_or_nowhere_is_absent() {
        let map = [("a", Some(0)), ("b", Some(0)), ("c", Some(1)), ("z", Some(1))];
        let joined = join_map(shards(&[&["b"], &["a"]]), &map, Unindexed::Include);
        let absent = |name: &str, shard, found_in| Absent { name: name.into(), shard, found_in };
        assert_eq!(
            joined.absent,
            [absent("a", 0, Some(1)), absent("c", 1, None), absent("z", 1, None)]
        );
    }

    #[test]
    fn tensors_of_a_lost_shard_are_not_named_again() {
        let joined = join_map(shards(&[&["a"]]), &[("a", Some(0)), ("b", None)], Unindexed::Error);
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
            let joined = join_map(shards(&[&["x", "a"]]), &[("a", Some(0))], policy);
            assert_eq!(taken(&joined), expected, "{policy:?}");
            assert_eq!(joined.unindexed, [misplaced("x", 0)]);
        }
    }

    #[test]
    fn two_unindexed_copies_are_a_duplicate() {
        let joined = join_map(shards(&[&["x"], &["x"]]), &[], Unindexed::Include);
        assert_eq!(joined.duplicates, [Duplicate { name: "x".into(), first: 0, second: 1 }]);
        let ignored = join_map(shards(&[&["x"], &["x"]]), &[], Unindexed::Ignore);
        assert_eq!((ignored.duplicates, ignored.tensors.len()), (vec![], 0));
    }

    #[test]
    fn without_a_map_every_name_must_be_unique() {
        let joined = join(
            shards(&[&["b", "a"], &["c", "b"], &["b"]]),
            None::<std::iter::Empty<_>>,
            Unindexed::Include,
        );
        assert_eq!(taken(&joined), [("a", 0), ("b", 0), ("c", 1)]);
        assert_eq!(joined.duplicates, [Duplicate { name: "b".into(), first: 0, second: 1 }]);
    }
}
