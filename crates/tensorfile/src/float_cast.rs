//! Conversion of elements from one float type to another, bytes to bytes.

use std::str::FromStr;

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::Dtype;
use crate::quote::{Quoted, shortened};

/// Elements converted at a time: a block stays in the first-level cache, and is cheap to make for
/// the few elements of a short row.
const BLOCK: usize = 256;

/// The float types that elements are converted between.
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

/// A name that no float type has that elements are converted between.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not F16, BF16 or F32", Quoted(name))]
#[non_exhaustive]
pub struct UnknownFloat {
    /// The name; of a long one the first 256 characters.
    pub name: Box<str>,
}

/// A conversion of elements from one float type to another.
///
/// From 16 bits to `F32` every value is exact. The other way it is rounded to the nearest, ties to
/// even, and to infinity beyond the largest; what is too small for a normal number becomes a
/// subnormal one or zero. Between `F16` and `BF16` the way is by `F32`. Signs, infinities and zeros
/// are kept; a NaN stays a NaN, and becomes a quiet one.
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
    from: Float,
    to: Float,
}

impl FloatCast {
    /// The conversion of elements of this dtype; `None` if they are of that type already, or of one
    /// that is not converted.
    #[must_use]
    pub fn new(from: Dtype, to: Float) -> Option<Self> {
        let from = Float::from_dtype(from)?;
        (from != to).then_some(Self { from, to })
    }

    /// The type of the elements before.
    #[must_use]
    pub const fn from(self) -> Float {
        self.from
    }

    /// The type of the elements after.
    #[must_use]
    pub const fn to(self) -> Float {
        self.to
    }

    /// Bytes after the conversion of this many bytes of whole elements.
    #[must_use]
    pub const fn byte_len(self, before: u64) -> u64 {
        (before / self.from.byte_len() as u64).saturating_mul(self.to.byte_len() as u64)
    }

    /// Converts elements, little-endian before and after on every machine, from any address to any
    /// other.
    ///
    /// # Panics
    ///
    /// Panics if the lengths are not those of the same number of whole elements.
    pub fn convert(self, before: &[u8], after: &mut [u8]) {
        let (before_len, after_len) = (self.from.byte_len(), self.to.byte_len());
        let elements = before.len() / before_len;
        assert!(
            before.len() % before_len == 0 && after.len() == elements * after_len,
            "{} bytes of {:?} are not as many elements as {} bytes of {:?}",
            before.len(),
            self.from,
            after.len(),
            self.to
        );
        let mut block = Block { values: [0.0; BLOCK], codes: [0; BLOCK] };
        let after = after.chunks_mut(BLOCK * after_len);
        for (before, after) in before.chunks(BLOCK * before_len).zip(after) {
            block.fill(self.from, before);
            block.write(self.to, after);
        }
    }
}

/// The names of both types.
impl Serialize for FloatCast {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut cast = serializer.serialize_struct("FloatCast", 2)?;
        cast.serialize_field("from", self.from.dtype().name())?;
        cast.serialize_field("to", self.to.dtype().name())?;
        cast.end()
    }
}

/// Elements on their way: aligned, and in the byte order of the machine.
struct Block {
    values: [f32; BLOCK],
    /// The same of 16 bits, on the way in or out.
    codes: [u16; BLOCK],
}

impl Block {
    /// Takes in at most as many elements as there is room for.
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

    /// Gives as many elements out as there is room for.
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

/// The code in `F32` of a code in `BF16`, with a NaN made quiet, as `half` does it.
///
/// For slices `half` has vectors for `F16` only. This and the way back have no branch, and need no
/// array of codes on the way: a cast is 1.5 times as fast as with those of `half`.
fn widened(code: u16) -> u32 {
    let quiet = if code & 0x7fff > 0x7f80 { 0x40 } else { 0 };
    u32::from(code | quiet) << 16
}

/// The bytes in `BF16` of a code in `F32`: the upper half, rounded to nearest even by a carry into
/// it, unless it is a NaN, which is made quiet.
fn narrowed(code: u32) -> [u8; 2] {
    let is_nan = code & 0x7fff_ffff > 0x7f80_0000;
    let rounded = code.wrapping_add(0x7fff + ((code >> 16) & 1));
    let [.., low, high] = if is_nan { code | 0x40_0000 } else { rounded }.to_le_bytes();
    [low, high]
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::{BLOCK, Float, FloatCast};
    use crate::Dtype;

    const ALL: [Float; 3] = [Float::F16, Float::BF16, Float::F32];

    #[test]
    fn the_names_of_the_format_are_parsed_and_no_others() {
        for float in ALL {
            assert_eq!(float.dtype().name().parse(), Ok(float));
        }
        for other in ["F64", "bf16", ""] {
            let error = other.parse::<Float>().unwrap_err();
            assert_eq!(error.to_string(), format!("\"{other}\" is not F16, BF16 or F32"));
        }
    }

    fn cast(from: Float, to: Float) -> FloatCast {
        FloatCast::new(from.dtype(), to).unwrap()
    }

    /// The value of a code, by the definition of its type.
    fn value(float: Float, code: u32) -> f64 {
        let (exponent_bits, mantissa_bits) = match float {
            Float::F16 => (5, 10),
            Float::BF16 => (8, 7),
            Float::F32 => (8, 23),
        };
        let is_negative = (code >> (exponent_bits + mantissa_bits)) & 1 == 1;
        let exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1);
        let mantissa = f64::from(code & ((1 << mantissa_bits) - 1));
        let one = f64::from(1 << mantissa_bits);
        let bias = (1 << (exponent_bits - 1)) - 1;
        let power = |exponent: u32| 2.0_f64.powi(i32::try_from(exponent).unwrap() - bias);
        let magnitude = match exponent {
            0 => mantissa / one * power(1),
            _ if exponent + 1 == 1 << exponent_bits && mantissa == 0.0 => f64::INFINITY,
            _ if exponent + 1 == 1 << exponent_bits => f64::NAN,
            _ => (1.0 + mantissa / one) * power(exponent),
        };
        if is_negative { -magnitude } else { magnitude }
    }

    /// The nearest value that a type has, ties to even, by arithmetic that is exact in 64 bits.
    fn nearest(to: Float, value: f64) -> f64 {
        let (digits, least, largest) = match to {
            Float::F16 => (10, -14, 65504.0),
            Float::BF16 => (7, -126, f64::from(bf16::MAX.to_f32())),
            Float::F32 => return value,
        };
        if value == 0.0 || !value.is_finite() {
            return value;
        }
        let exponent = i32::try_from((value.to_bits() >> 52) & 0x7ff).unwrap() - 1023;
        let unit = 2.0_f64.powi(exponent.max(least) - digits);
        let rounded = (value / unit).round_ties_even() * unit;
        if rounded.abs() > largest { f64::INFINITY.copysign(value) } else { rounded }
    }

    /// Converts these codes, and holds every one to the definition.
    fn check(from: Float, to: Float, codes: &[u32]) {
        let before: Vec<u8> =
            codes.iter().flat_map(|code| code.to_le_bytes()[..from.byte_len()].to_vec()).collect();
        let mut after = vec![0xee; codes.len() * to.byte_len()];
        cast(from, to).convert(&before, &mut after);
        for (code, found) in codes.iter().zip(after.chunks_exact(to.byte_len())) {
            let mut bytes = [0; 4];
            bytes[..found.len()].copy_from_slice(found);
            let (before, found) = (value(from, *code), value(to, u32::from_le_bytes(bytes)));
            let expected = nearest(to, before);
            let same = found == expected || found.is_nan() && expected.is_nan();
            let same_sign = found.is_sign_negative() == before.is_sign_negative();
            assert!(
                same && (same_sign || found.is_nan()),
                "{from:?} {code:#x} to {to:?}: {found} is not {expected}"
            );
        }
    }

    #[test]
    fn every_code_of_16_bits_is_converted_by_the_definition() {
        let codes: Vec<u32> = (0..=0xffff).collect();
        for from in [Float::F16, Float::BF16] {
            for to in ALL.into_iter().filter(|to| *to != from) {
                check(from, to, &codes);
            }
        }
    }

    #[test]
    fn f32_is_rounded_to_nearest_even_over_all_exponents() {
        // Around every place at which either type rounds, subnormals too, and what lies between.
        let mut mantissas = vec![0, 0x7f_ffff, 0x12_3456, 0x55_5555, 0x2a_aaaa];
        for bit in 0..23 {
            for upper in [0, 1 << bit, 3 << bit, u32::MAX << bit] {
                mantissas.extend([upper, upper.wrapping_add(1), upper ^ ((1 << bit) >> 1)]);
                mantissas.push(upper.wrapping_sub(1));
            }
        }
        let codes: Vec<u32> = (0..512_u32)
            .flat_map(|upper| {
                mantissas.iter().map(move |lower| (upper << 23) | (lower & 0x7f_ffff))
            })
            .collect();
        check(Float::F32, Float::F16, &codes);
        check(Float::F32, Float::BF16, &codes);
    }

    #[test]
    fn a_nan_is_a_quiet_one_and_keeps_its_sign() {
        let signalling = 0xffa0_0001_u32.to_le_bytes();
        let mut code = [0; 2];
        cast(Float::F32, Float::BF16).convert(&signalling, &mut code);
        assert_eq!(u16::from_le_bytes(code), 0xffe0);
        cast(Float::F32, Float::F16).convert(&signalling, &mut code);
        let found = f16::from_le_bytes(code);
        assert!(found.is_nan() && found.is_sign_negative() && found.to_bits() & 0x200 != 0);
        let mut wide = [0; 4];
        cast(Float::BF16, Float::F32).convert(&[0x81, 0x7f], &mut wide);
        assert_eq!(u32::from_le_bytes(wide), 0x7fc1_0000);
    }

    #[test]
    fn any_length_comes_from_any_address_to_any_other() {
        for from in ALL {
            for to in ALL.into_iter().filter(|to| *to != from) {
                for len in [0, 1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3] {
                    // 1.0 and 2.0 in turns, which all three types have.
                    let bytes = |float: Float| {
                        let one = |i: usize| match float {
                            Float::F16 => {
                                f16::from_f32(1.0 + (i % 2) as f32).to_le_bytes().to_vec()
                            }
                            Float::BF16 => {
                                bf16::from_f32(1.0 + (i % 2) as f32).to_le_bytes().to_vec()
                            }
                            Float::F32 => (1.0 + (i % 2) as f32).to_le_bytes().to_vec(),
                        };
                        (0..len).flat_map(one).collect::<Vec<u8>>()
                    };
                    let (before, expected) = (bytes(from), bytes(to));
                    for (shift, to_shift) in [(0, 0), (1, 0), (0, 1), (3, 2)] {
                        let shifted = [vec![0xee; shift], before.clone()].concat();
                        let mut after = vec![0xee; to_shift + expected.len() + 1];
                        let place = &mut after[to_shift..][..expected.len()];
                        cast(from, to).convert(&shifted[shift..], place);
                        assert!(*place == expected, "{len} of {from:?} to {to:?}");
                        assert_eq!(after.last(), Some(&0xee));
                    }
                    assert_eq!(cast(from, to).byte_len(before.len() as u64), expected.len() as u64);
                }
            }
        }
    }

    #[test]
    fn only_three_types_are_converted_and_none_to_itself() {
        for &dtype in Dtype::ALL {
            let is_float = matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32);
            for to in ALL {
                let cast = FloatCast::new(dtype, to);
                assert_eq!(cast.is_some(), is_float && dtype != to.dtype(), "{dtype} to {to:?}");
                assert!(cast.is_none_or(|cast| cast.from().dtype() == dtype && cast.to() == to));
            }
        }
        let value = serde_json::to_string(&cast(Float::BF16, Float::F32)).unwrap();
        assert_eq!(value, r#"{"from":"BF16","to":"F32"}"#);
    }

    #[test]
    #[should_panic(expected = "6 bytes of F32 are not as many elements as 2 bytes of F16")]
    fn half_an_element_is_refused() {
        cast(Float::F32, Float::F16).convert(&[0; 6], &mut [0; 2]);
    }
}
