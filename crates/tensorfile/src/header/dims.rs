//! The dimensions of a tensor, allocated only if there are many.

use std::fmt;

use crate::reserve::{self, NoMemory};

/// Dimensions stored without an allocation.
const INLINE: usize = 4;

/// A shape, which allocates only beyond four dimensions: a model can have a hundred thousand
/// shapes.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Dims {
    Inline { rank: u8, dims: [usize; INLINE] },
    Long(Vec<usize>),
}

impl Dims {
    pub(super) fn as_slice(&self) -> &[usize] {
        match self {
            Self::Inline { rank, dims } => dims.get(..usize::from(*rank)).unwrap_or_default(),
            Self::Long(dims) => dims,
        }
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// Collects a shape of unknown rank.
#[derive(Default)]
pub(super) struct DimsBuilder {
    rank: u8,
    dims: [usize; INLINE],
    spilled: Vec<usize>,
}

impl DimsBuilder {
    /// The number of dimensions so far.
    pub(super) fn len(&self) -> usize {
        self.spilled.len().max(usize::from(self.rank))
    }

    pub(super) fn push(&mut self, dim: usize) -> Result<(), NoMemory> {
        if let Some(slot) = self.dims.get_mut(usize::from(self.rank)) {
            *slot = dim;
            self.rank = self.rank.saturating_add(1);
            return Ok(());
        }
        if self.spilled.is_empty() {
            self.dims.into_iter().try_for_each(|dim| reserve::push(&mut self.spilled, dim))?;
        }
        reserve::push(&mut self.spilled, dim)
    }

    pub(super) fn finish(self) -> Dims {
        if self.spilled.is_empty() {
            Dims::Inline { rank: self.rank, dims: self.dims }
        } else {
            Dims::Long(self.spilled)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Dims, DimsBuilder};

    #[test]
    fn shapes_of_any_rank_come_back() {
        for rank in 0..12 {
            let shape: Vec<usize> = (10..10 + rank).collect();
            let mut builder = DimsBuilder::default();
            for (len, &dim) in shape.iter().enumerate() {
                assert_eq!(builder.len(), len);
                builder.push(dim).unwrap();
            }
            let dims = builder.finish();
            assert_eq!(dims.as_slice(), shape);
            assert_eq!(matches!(dims, Dims::Long(_)), rank > 4);
        }
    }
}
