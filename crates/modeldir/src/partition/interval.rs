//! The arithmetic of cuts: the ranges of an axis that a rank takes. Pure.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "ranges lie within an axis, whose length is a number, and divisors are not 0"
)]

use std::num::NonZeroUsize;
use std::ops::Range;

use super::misfit::Misfit;
use super::tp::{Axis, Heads, Misaligned, Part, Split, Uneven};
use crate::rank::Rank;

/// A range that a rank takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) range: Range<usize>,
    /// Whether other ranks take the same range.
    pub(super) shared: bool,
}

/// An axis of a tensor, and the cut along it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) split: &'a Split,
    /// Elements along the axis; packed ones count one by one.
    pub(super) len: usize,
    /// Elements along the axis in one block.
    pub(super) per: NonZeroUsize,
    /// Elements on disk of one block.
    pub(super) stored: NonZeroUsize,
    pub(super) uneven: Uneven,
    pub(super) misaligned: Misaligned,
}

impl Split {
    /// The ranges of an axis of `len` elements that a rank takes, in order.
    ///
    /// `uneven` applies if the split does not set [`Split::uneven`].
    ///
    /// # Errors
    ///
    /// [`Misfit`] if the axis cannot be cut like this.
    pub fn ranges(
        &self,
        len: usize,
        rank: Rank,
        uneven: Uneven,
    ) -> Result<Vec<Range<usize>>, Misfit> {
        let line = Line {
            split: self,
            len,
            per: NonZeroUsize::MIN,
            stored: NonZeroUsize::MIN,
            uneven: self.uneven.unwrap_or(uneven),
            misaligned: self.misaligned.unwrap_or_default(),
        };
        Ok(line.pieces_on_disk(rank)?.into_iter().map(|piece| piece.range).collect())
    }
}

impl Line<'_> {
    const fn axis(&self) -> Axis {
        self.split.axis
    }

    /// The ranges of the rank, in elements on disk.
    pub(super) fn pieces_on_disk(&self, at: Rank) -> Result<Vec<Piece>, Misfit> {
        self.cut_on_disk(at)
            .map_err(|misfit| misfit.with_sizes_that_do(|size| self.works_over(size)))
    }

    /// Whether each of `size` ranks gets its part, and the key and value heads that it needs.
    fn works_over(&self, size: usize) -> bool {
        let has_heads = |part: &Part| match part.heads {
            Some(Heads::Query { kv, .. }) if self.uneven == Uneven::Error => {
                kv.get() % size == 0 || size % kv.get() == 0
            }
            _ => true,
        };
        self.split.parts.iter().all(has_heads)
            && Rank::all(size).all(|at| self.cut_on_disk(at).is_ok())
    }

    fn cut_on_disk(&self, at: Rank) -> Result<Vec<Piece>, Misfit> {
        let mut pieces = self.pieces(at)?;
        for piece in &mut pieces {
            piece.range = self.on_disk(&piece.range).ok_or_else(|| Misfit::Block {
                axis: self.axis(),
                cut: piece.range.clone(),
                block: self.per.get(),
                ranks: at.size(),
                works: Box::default(),
            })?;
        }
        Ok(pieces)
    }

    /// The elements on disk that hold this range; `None` if it starts or ends within one.
    ///
    /// The last block may be shorter than the others.
    fn on_disk(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let per = self.per.get();
        let whole = |at: usize| at % per == 0 || at == self.len;
        if self.misaligned == Misaligned::Error && !(whole(range.start) && whole(range.end)) {
            return None;
        }
        let stored = |block: usize| block.saturating_mul(self.stored.get());
        if range.is_empty() {
            let at = stored(range.start.div_ceil(per));
            return Some(at..at);
        }
        Some(stored(range.start / per)..stored(range.end.div_ceil(per)))
    }

    /// The ranges of the rank, in elements along the axis.
    fn pieces(&self, at: Rank) -> Result<Vec<Piece>, Misfit> {
        if at == Rank::ONLY {
            return Ok(vec![Piece { range: 0..self.len, shared: false }]);
        }
        let mut pieces = Vec::with_capacity(self.split.parts.len());
        let mut start = 0;
        for part in &self.split.parts {
            let len = self.part_len(part)?;
            let (range, shared) = self.cut(len, part, at)?;
            pieces.push(Piece { range: start + range.start..start + range.end, shared });
            start += len;
        }
        Ok(pieces)
    }

    /// The length of a part by its proportion.
    fn part_len(&self, part: &Part) -> Result<usize, Misfit> {
        if self.split.parts.len() == 1 {
            return Ok(self.len);
        }
        let total: u128 = self.split.parts.iter().map(|part| part.size.get() as u128).sum();
        let scaled = (self.len as u128).saturating_mul(part.size.get() as u128);
        match usize::try_from(scaled / total) {
            Ok(len) if scaled % total == 0 => Ok(len),
            _ => Err(Misfit::Proportions {
                axis: self.axis(),
                len: self.len,
                parts: self.split.parts.iter().map(|part| part.size.get()).collect(),
            }),
        }
    }

    /// The range of one part that the rank takes, and whether others take the same.
    fn cut(&self, len: usize, part: &Part, at: Rank) -> Result<(Range<usize>, bool), Misfit> {
        let (count, kv) = match part.heads {
            None => return Ok((self.cut_units(len, at)?, false)),
            Some(Heads::Query { count, kv }) => (count.get(), Some(kv.get())),
            Some(Heads::KeyValue { count }) => (count.get(), None),
        };
        if len % count != 0 {
            return Err(Misfit::HeadWidth { axis: self.axis(), len, heads: count });
        }
        let width = len / count;
        let elements = |heads: Range<usize>| heads.start * width..heads.end * width;
        if let (Uneven::Balanced, Some(kv)) = (self.uneven, kv) {
            return Ok((elements(heads_within(count, kv, at)?), false));
        }
        if count % at.size() == 0 {
            return Ok((elements(at.share(count)), false));
        }
        if at.size() % count == 0 && kv.is_none() {
            let head = at.rank() / (at.size() / count);
            return Ok((elements(head..head + 1), true));
        }
        match self.uneven {
            Uneven::Error => {
                Err(Misfit::Heads { heads: count, ranks: at.size(), works: Box::default() })
            }
            Uneven::Chunk => Ok((self.cut_units(len, at)?, false)),
            Uneven::Balanced => Ok((elements(at.share(count)), false)),
        }
    }

    /// The range of a part without heads.
    fn cut_units(&self, len: usize, at: Rank) -> Result<Range<usize>, Misfit> {
        let Split { unit, align, .. } = self.split;
        let (unit, align) = (unit.get(), align.get());
        let ranks = at.size();
        let covered = self.uneven == Uneven::Error && self.misaligned == Misaligned::Cover;
        if len % ranks == 0 {
            let each = len / ranks;
            if each % unit == 0 && (each % align == 0 || covered) {
                return Ok(each * at.rank()..each * (at.rank() + 1));
            }
        }
        let step = lcm(unit, align);
        let units = len.div_ceil(step);
        let run = match self.uneven {
            Uneven::Error => return Err(self.uneven(len, ranks)),
            Uneven::Balanced => at.share(units),
            Uneven::Chunk => {
                let each = units.div_ceil(ranks);
                let start = each.saturating_mul(at.rank()).min(units);
                start..start.saturating_add(each).min(units)
            }
        };
        let bounded = |at: usize| at.saturating_mul(step).min(len);
        Ok(bounded(run.start)..bounded(run.end))
    }

    fn uneven(&self, len: usize, ranks: usize) -> Misfit {
        let Split { unit, align, .. } = self.split;
        let unit = match self.misaligned {
            Misaligned::Error => lcm(lcm(unit.get(), align.get()), self.per.get()),
            Misaligned::Cover => unit.get(),
        };
        Misfit::Uneven { axis: self.axis(), len, unit, ranks, works: Box::default() }
    }
}

/// The heads of a rank if each goes with its key and value head.
fn heads_within(heads: usize, kv: usize, at: Rank) -> Result<Range<usize>, Misfit> {
    if heads % kv != 0 {
        return Err(Misfit::HeadGroups { heads, kv });
    }
    let each = heads / kv;
    let shared = at.split(at.size() / kv).filter(|(group, _)| group.size() == kv);
    if let Some((group, within)) = shared {
        // Neighbouring ranks share one key and value head, and divide its query heads.
        let (first, heads) = (group.rank() * each, within.share(each));
        return Ok(first + heads.start..first + heads.end);
    }
    let groups = at.share(kv);
    Ok(groups.start * each..groups.end * each)
}

/// The least common multiple; the larger number if it overflows.
fn lcm(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b).unwrap_or(a.max(b))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::ops::Range;

    use super::Line;
    use crate::partition::{Axis, Misaligned, Part, Split, Uneven};
    use crate::rank::Rank;

    fn nonzero(number: usize) -> NonZeroUsize {
        NonZeroUsize::new(number).unwrap()
    }

    #[test]
    fn an_even_cut_may_fall_within_a_block_if_blocks_are_covered() {
        use Misaligned::{Cover, Error as Exact};
        let cases: [(Uneven, Misaligned, Option<Range<usize>>); 6] = [
            (Uneven::Error, Cover, Some(48..96)),
            (Uneven::Error, Exact, None),
            (Uneven::Balanced, Cover, Some(64..96)),
            (Uneven::Balanced, Exact, Some(64..96)),
            (Uneven::Chunk, Cover, Some(64..96)),
            (Uneven::Chunk, Exact, Some(64..96)),
        ];
        for (uneven, misaligned, expected) in cases {
            let align = nonzero(32);
            let split = Split { align, misaligned: Some(misaligned), ..Split::along(Axis::Out) };
            let ranges = split.ranges(96, Rank::new(1, 2).unwrap(), uneven).ok();
            assert_eq!(ranges, expected.map(|range| vec![range]), "{uneven:?} {misaligned:?}");
        }
    }

    #[test]
    fn ranks_that_divide_no_heads_would_do_where_heads_are_balanced() {
        // Six heads of 8 inputs, two to a block and to a key and value head.
        let parts = vec![Part::query(nonzero(6), nonzero(3))];
        let split = Split { parts, ..Split::along(Axis::In) };
        let line = Line {
            split: &split,
            len: 48,
            per: nonzero(16),
            stored: nonzero(1),
            uneven: Uneven::Balanced,
            misaligned: Misaligned::Error,
        };
        let error = line.pieces_on_disk(Rank::new(0, 6).unwrap()).unwrap_err().to_string();
        let expected = "elements 0..8 along the inputs over 6 ranks cut blocks of 16; \
            2, 3, 4, 5, 7, 8, 10, 11, 13, 14, 16 or 17 would do; Misaligned::Cover takes blocks whole";
        assert_eq!(error, expected);
    }
}
