//! One tensor as a header declares it.

use std::fmt;
use std::ops::Range;

use crate::reserve::{self, NoMemory};
use crate::{Dtype, shape};

/// One tensor as its header declares it: name, dtype, shape, and where in the file its bytes are.
///
/// The bytes are in row-major order, little-endian, and exactly as many as dtype and shape need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    name: Box<str>,
    /// Begin and end, counted from the start of the data until the header has been checked, from
    /// the start of the file ever after.
    range: (u64, u64),
    shape: Dims,
    dtype: Dtype,
}

impl TensorInfo {
    pub(super) const fn new(name: Box<str>, dtype: Dtype, shape: Dims, range: (u64, u64)) -> Self {
        Self { name, range, shape, dtype }
    }

    /// The tensor's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of its elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Its extent in each dimension, outermost first; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.shape.as_slice()
    }

    /// Its bytes, counted from the start of the file.
    #[must_use]
    pub fn file_range(&self) -> Range<u64> {
        self.range.0..self.range.1
    }

    /// The number of its bytes.
    ///
    /// ```
    /// # let json = br#"{"w":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}}"#;
    /// # let file = [&(json.len() as u64).to_le_bytes(), &json[..], &[0; 3]].concat();
    /// # let header = tensorfile::Header::from_bytes(&file, &Default::default())?;
    /// # let packed = header.get("w").expect("the header names it");
    /// assert_eq!((packed.num_elements(), packed.byte_len()), (6, 3)); // two elements a byte
    /// # Ok::<(), tensorfile::Error>(())
    /// ```
    #[must_use]
    pub fn byte_len(&self) -> usize {
        let byte_len = self.range.1.saturating_sub(self.range.0);
        // The header check compared it with a product in `usize`.
        usize::try_from(byte_len).unwrap_or(usize::MAX)
    }

    /// The number of its elements; 1 for a scalar.
    #[must_use]
    pub fn num_elements(&self) -> usize {
        // The header check found the product of the bits to fit.
        shape::num_elements(self.shape()).unwrap_or(usize::MAX)
    }

    /// Begin and end as they are now.
    pub(super) const fn range(&self) -> (u64, u64) {
        self.range
    }

    /// Makes data offsets positions in the file. The file's length bounds the sums.
    pub(super) const fn shift(&mut self, data_start: u64) {
        self.range.0 = self.range.0.saturating_add(data_start);
        self.range.1 = self.range.1.saturating_add(data_start);
    }
}

/// Dimensions that need no allocation of their own.
const INLINE: usize = 4;

/// A shape, which allocates only beyond four dimensions: a model has some hundred thousand of them.
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
    /// Dimensions so far.
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
