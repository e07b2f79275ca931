//! Joins the tensors of the shards with the weight map, in both directions; pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::cmp::Ordering;

use tensorfile::TensorInfo;
use tensorfile::reserve::{self, NoMemory};

use crate::Result;
use crate::open_options::Unindexed;

/// The place of a tensor: the position of its shard, and its position among the shard's tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) shard: u32,
    pub(crate) tensor: u32,
}

/// A tensor that the weight map expects in a shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'m> {
    /// The position in the weight map.
    position: u32,
    name: &'m str,
}

/// Groups the entries of a weight map, sorted by name, by shard. Every shard has a length in
/// `tensors_per_shard`.
pub(crate) fn wanted<'m>(
    entries: impl Iterator<Item = (&'m str, usize)>,
    tensors_per_shard: &[usize],
) -> Result<Vec<Vec<Wanted<'m>>>, NoMemory> {
    let mut shards = reserve::list(tensors_per_shard.len())?;
    for len in tensors_per_shard {
        shards.push(reserve::list(*len)?);
    }
    for (position, (name, shard)) in (0..).zip(entries) {
        if let Some(wanted) = shards.get_mut(shard) {
            reserve::push(wanted, Wanted { position, name })?;
        }
    }
    Ok(shards)
}

/// The names of the tensors expected in one shard.
pub(crate) fn names(wanted: &[Wanted<'_>]) -> Result<Vec<String>, NoMemory> {
    let mut names = reserve::list(wanted.len())?;
    for wanted in wanted {
        names.push(reserve::boxed(wanted.name)?.into());
    }
    Ok(names)
}

/// The tensors of one shard compared with those that the weight map expects there.
#[derive(Debug, Default)]
pub(crate) struct Fit<'m> {
    /// Expected tensors that the shard holds: position in the weight map, position in the shard.
    found: Vec<(u32, u32)>,
    /// Expected tensors that the shard lacks.
    absent: Vec<&'m str>,
    /// Positions of the tensors that the map does not expect here.
    strays: Vec<u32>,
}

/// Compares the tensors of a shard with those expected there; both are sorted by name.
pub(crate) fn fit<'m>(tensors: &[TensorInfo], wanted: &[Wanted<'m>]) -> Result<Fit<'m>, NoMemory> {
    let mut fit = Fit { found: reserve::list(wanted.len().min(tensors.len()))?, ..Fit::default() };
    let mut tensors = (0..).zip(tensors).peekable();
    for wanted in wanted {
        while let Some((stray, _)) = tensors.next_if(|(_, next)| next.name() < wanted.name) {
            reserve::push(&mut fit.strays, stray)?;
        }
        match tensors.next_if(|(_, next)| next.name() == wanted.name) {
            Some((tensor, _)) => reserve::push(&mut fit.found, (wanted.position, tensor))?,
            None => reserve::push(&mut fit.absent, wanted.name)?,
        }
    }
    for (stray, _) in tensors {
        reserve::push(&mut fit.strays, stray)?;
    }
    Ok(fit)
}

/// The tensors of the model, and the mismatches.
#[derive(Debug, Default)]
pub(crate) struct Joined<'m> {
    /// Sorted by name; each name once.
    pub(crate) order: Vec<Slot>,
    /// Tensors missing from the map. They are in `order` too if the policy includes them.
    pub(crate) unindexed: Vec<Slot>,
    /// Copies in shards other than the mapped one; skipped.
    pub(crate) stale: Vec<Slot>,
    /// The first two tensors of a name that the map does not decide.
    pub(crate) duplicates: Vec<(Slot, Slot)>,
    /// Tensors missing from the shard that the map names.
    pub(crate) absent: Vec<Absent<'m>>,
}

/// A tensor missing from the shard that the map names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Absent<'m> {
    pub(crate) name: &'m str,
    pub(crate) shard: u32,
    /// Another shard that holds the tensor.
    pub(crate) found_in: Option<u32>,
}

/// The tensors of each shard by its header, sorted by name.
pub(crate) trait Tensors {
    fn name(&self, slot: Slot) -> &str;
}

/// Joins all shards with the weight map, given the fit of each shard. `names` are those of the map,
/// in its order. Lost shards have no fit; their tensors are not listed one by one.
pub(crate) fn with_map<'m>(
    shards: &(impl Tensors + ?Sized),
    fits: Vec<Fit<'m>>,
    names: impl ExactSizeIterator<Item = &'m str>,
    unindexed: Unindexed,
) -> Result<Joined<'m>, NoMemory> {
    let mut joined = Joined::default();
    let num_found = fits.iter().map(|fit| fit.found.len()).sum();
    let num_absent = fits.iter().map(|fit| fit.absent.len()).sum();
    let num_strays = fits.iter().map(|fit| fit.strays.len()).sum();
    let mut order = reserve::collect((0..names.len()).map(|_| None))?;
    let mut strays = reserve::list(num_strays)?;
    joined.absent = reserve::list(num_absent)?;
    for (shard, fit) in (0..).zip(fits) {
        for (position, tensor) in fit.found {
            if let Some(slot) = order.get_mut(position as usize) {
                *slot = Some(Slot { shard, tensor });
            }
        }
        strays.extend(fit.strays.into_iter().map(|tensor| Slot { shard, tensor }));
        let absent = |name| Absent { name, shard, found_in: None };
        joined.absent.extend(fit.absent.into_iter().map(absent));
    }
    joined.order = reserve::list(num_found)?;
    joined.order.extend(order.into_iter().flatten());
    // Unstable suffices, as no two names are equal: the map has each name once.
    joined.absent.sort_unstable_by_key(|absent| absent.name);
    joined.add_strays(shards, strays, names, unindexed)?;
    Ok(joined)
}

/// Joins all shards without a weight map: every tensor belongs to the model.
pub(crate) fn without_map(
    shards: &(impl Tensors + ?Sized),
    lens: impl Iterator<Item = usize> + Clone,
) -> Result<Joined<'static>, NoMemory> {
    let mut joined = Joined::default();
    let mut slots = reserve::list(lens.clone().sum())?;
    for (shard, len) in (0..).zip(lens) {
        slots.extend((0..).take(len).map(|tensor| Slot { shard, tensor }));
    }
    joined.add_unmapped(shards, slots)?;
    Ok(joined)
}

impl<'m> Joined<'m> {
    /// Sorts out the tensors that a map does not place here: copies of mapped tensors are stale,
    /// and the policy decides about the others.
    fn add_strays(
        &mut self,
        shards: &(impl Tensors + ?Sized),
        mut strays: Vec<Slot>,
        names: impl Iterator<Item = &'m str>,
        unindexed: Unindexed,
    ) -> Result<(), NoMemory> {
        reserve::check::<Slot>(strays.len())?;
        strays.sort_by(|a, b| by_name_and_shard(shards, *a, *b));
        let mut names = names.peekable();
        let mut absent = self.absent.iter_mut().peekable();
        let mut unmapped = Vec::new();
        for stray in strays {
            let stray_name = shards.name(stray);
            while names.next_if(|name| *name < stray_name).is_some() {}
            while absent.next_if(|absent| absent.name < stray_name).is_some() {}
            if names.peek() != Some(&stray_name) {
                reserve::push(&mut unmapped, stray)?;
                continue;
            }
            if let Some(absent) = absent.peek_mut().filter(|absent| absent.name == stray_name) {
                absent.found_in.get_or_insert(stray.shard);
            }
            reserve::push(&mut self.stale, stray)?;
        }
        if unindexed == Unindexed::Include && !unmapped.is_empty() {
            self.unindexed = reserve::collect(unmapped.iter().copied())?;
            return self.add_unmapped(shards, unmapped);
        }
        self.unindexed = unmapped;
        Ok(())
    }

    /// Adds tensors that no map decides about: more than one of a name is a duplicate.
    fn add_unmapped(
        &mut self,
        shards: &(impl Tensors + ?Sized),
        slots: Vec<Slot>,
    ) -> Result<(), NoMemory> {
        if self.order.is_empty() {
            self.order = slots;
        } else {
            let mut both = reserve::list(self.order.len().saturating_add(slots.len()))?;
            both.extend(self.order.iter().chain(&slots));
            self.order = both;
        }
        // A stable sort is fast here, as each shard is sorted already.
        reserve::check::<Slot>(self.order.len())?;
        self.order.sort_by(|a, b| by_name_and_shard(shards, *a, *b));
        let duplicates = &mut self.duplicates;
        let (mut was_copy, mut added) = (false, Ok(()));
        self.order.dedup_by(|copy, first| {
            let is_copy = shards.name(*copy) == shards.name(*first);
            if is_copy && !was_copy && added.is_ok() {
                added = reserve::push(duplicates, (*first, *copy));
            }
            was_copy = is_copy;
            is_copy
        });
        added
    }
}

fn by_name_and_shard(shards: &(impl Tensors + ?Sized), a: Slot, b: Slot) -> Ordering {
    shards.name(a).cmp(shards.name(b)).then(a.shard.cmp(&b.shard))
}

#[cfg(test)]
mod tests;
