//! Conversion of elements from one float type to another, bytes to bytes.

use std::str::FromStr;

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::Dtype;
use crate::quote::{Quoted, shortened};

/// Elements converted per block: it fits the first-level cache, and is cheap to make for a short
/// row.
const BLOCK: usize = 256;

/// The float types that [`FloatCast`] converts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Float {
    /// IEEE 754 half precision.
    F16,
    /// The upper half of an `F32`.
    BF16,
    /// IEEE 754 single precision.
    F32,
}

impl Float {
    /// The float type that this dtype is; `None` for all others, `F64` and the 8-bit floats too.
    #[must_use]
    pub const fn from_dtype(dtype: Dtype) -> Option<Self> {
        match dtype {
            Dtype::F16 => Some(Self::F16),
            Dtype::BF16 => Some(Self::BF16),
            Dtype::F32 => Some(Self::F32),
            _ => None,
        }
    }

    /// The dtype of the same name.
    #[must_use]
    pub const fn dtype(self) -> Dtype {
        match self {
            Self::F16 => Dtype::F16,
            Self::BF16 => Dtype::BF16,
            Self::F32 => Dtype::F32,
        }
    }

    /// Bytes of one element.
    #[must_use]
    pub const fn byte_len(self) -> usize {
        match self {
            Self::F16 | Self::BF16 => 2,
            Self::F32 => 4,
        }
    }
}

/// From the name of the format.
impl FromStr for Float {
    type Err = UnknownFloat;

    fn from_str(name: &str) -> Result<Self, UnknownFloat> {
        let float = Dtype::from_name(name).and_then(Self::from_dtype);
        float.ok_or_else(|| UnknownFloat { name: shortened(name) })
    }
}

/// The error for a name that is none of these float types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not F16, BF16 or F32", Quoted(name))]
#[non_exhaustive]
pub struct UnknownFloat {
    /// The name; of a long one the first 256 characters.
    pub name: Box<str>,
}

/// A conversion of elements from one float type to another.
///
/// From 16 bits to `F32` every value is exact. The reverse rounds to the nearest, ties to even, and
/// to infinity beyond the largest; values too small for a normal number become subnormal or zero.
/// `F16` and `BF16` are converted through `F32`. Signs, infinities and zeros are kept; a NaN stays
/// a NaN, and becomes quiet.
///
/// ```
/// use tensorfile::{Dtype, Float, FloatCast};
///
/// let cast = FloatCast::new(Dtype::BF16, Float::F32).expect("both are floats, and not the same");
/// let mut converted = [0; 8];
/// cast.convert(&[0x80, 0x3f, 0x00, 0xc0], &mut converted); // 1.0 and -2.0
/// assert_eq!(converted, [0, 0, 0x80, 0x3f, 0, 0, 0x00, 0xc0]);
/// assert_eq!(FloatCast::new(Dtype::I64, Float::F32), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatCast {
    source: Float,
    target: Float,
}

impl FloatCast {
    /// The conversion of elements of this dtype; `None` if they have that type already, or a type
    /// that is not converted.
    #[must_use]
    pub fn new(source: Dtype, target: Float) -> Option<Self> {
        let source = Float::from_dtype(source)?;
        (source != target).then_some(Self { source, target })
    }

    /// The type of the elements before.
    #[must_use]
    pub const fn source(self) -> Float {
        self.source
    }

    /// The type of the elements after.
    #[must_use]
    pub const fn target(self) -> Float {
        self.target
    }

    /// The bytes that this many bytes of whole elements are converted to.
    #[must_use]
    pub const fn byte_len(self, before: u64) -> u64 {
        (before / self.source.byte_len() as u64).saturating_mul(self.target.byte_len() as u64)
    }

    /// Converts elements, little-endian before and after on every machine, at any alignment.
    ///
    /// # Panics
    ///
    /// Panics if the lengths are not those of the same number of whole elements.
    pub fn convert(self, before: &[u8], after: &mut [u8]) {
        let (before_len, after_len) = (self.source.byte_len(), self.target.byte_len());
        let elements = before.len() / before_len;
        assert!(
            before.len() % before_len == 0 && after.len() == elements * after_len,
            "{} bytes of {:?} are not as many elements as {} bytes of {:?}",
            before.len(),
            self.source,
            after.len(),
            self.target
        );
        let mut block = Block { values: [0.0; BLOCK], codes: [0; BLOCK] };
        let after = after.chunks_mut(BLOCK * after_len);
        for (before, after) in before.chunks(BLOCK * before_len).zip(after) {
            block.fill(self.source, before);
            block.write(self.target, after);
        }
    }
}

/// The names of both types.
impl Serialize for FloatCast {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut cast = serializer.serialize_struct("FloatCast", 2)?;
        cast.serialize_field("source", self.source.dtype().name())?;
        cast.serialize_field("target", self.target.dtype().name())?;
        cast.end()
    }
}

/// A block of elements: aligned, and in the byte order of the machine.
struct Block {
    values: [f32; BLOCK],
    /// The 16-bit elements read or to be written.
    codes: [u16; BLOCK],
}

impl Block {
    /// Reads elements, at most as many as there is room for.
    fn fill(&mut self, from: Float, bytes: &[u8]) {
        let elements = bytes.len() / from.byte_len();
        let (values, codes) = (&mut self.values[..elements], &mut self.codes[..elements]);
        match from {
            Float::F32 => {
                for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(4)) {
                    *value = f32::from_bits(four(bytes));
                }
            }
            Float::BF16 => {
                for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(2)) {
                    *value = f32::from_bits(widened(two(bytes)));
                }
            }
            Float::F16 => {
                for (code, bytes) in codes.iter_mut().zip(bytes.chunks_exact(2)) {
                    *code = two(bytes);
                }
                codes.reinterpret_cast::<f16>().convert_to_f32_slice(values);
            }
        }
    }

    /// Writes as many elements as there is room for.
    fn write(&mut self, to: Float, bytes: &mut [u8]) {
        let elements = bytes.len() / to.byte_len();
        let (values, codes) = (&self.values[..elements], &mut self.codes[..elements]);
        match to {
            Float::F32 => {
                for (bytes, value) in bytes.chunks_exact_mut(4).zip(values) {
                    bytes.copy_from_slice(&value.to_le_bytes());
                }
            }
            Float::BF16 => {
                for (bytes, value) in bytes.chunks_exact_mut(2).zip(values) {
                    bytes.copy_from_slice(&narrowed(value.to_bits()));
                }
            }
            Float::F16 => {
                codes.reinterpret_cast_mut::<f16>().convert_from_f32_slice(values);
                for (bytes, code) in bytes.chunks_exact_mut(2).zip(codes) {
                    bytes.copy_from_slice(&code.to_le_bytes());
                }
            }
        }
    }
}

fn two(bytes: &[u8]) -> u16 {
    u16::from_le_bytes(bytes.try_into().expect("pieces of two bytes"))
}

fn four(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("pieces of four bytes"))
}

/// The `F32` bits of `BF16` bits, with a NaN made quiet, as `half` does it.
///
/// For slices `half` has SIMD code for `F16` only. This function and its reverse have no branch and
/// need no intermediate array: a cast is 1.5 times as fast as with those of `half`.
fn widened(code: u16) -> u32 {
    let quiet = if code & 0x7fff > 0x7f80 { 0x40 } else { 0 };
    u32::from(code | quiet) << 16
}

/// The `BF16` bytes of `F32` bits: the upper half, rounded to nearest even by a carry into it; a
/// NaN is made quiet.
fn narrowed(code: u32) -> [u8; 2] {
    let is_nan = code & 0x7fff_ffff > 0x7f80_0000;
    let rounded = code.wrapping_add(0x7fff + ((code >> 16) & 1));
    let [.., low, high] = if is_nan { code | 0x40_0000 } else { rounded }.to_le_bytes();
    [low, high]
}

#[cfg(test)]
mod tests;
