//! The element types of the format: names in headers, bits per element, alignment.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::quote::{Quoted, shortened};

macro_rules! dtypes {
    ($($variant:ident $name:literal $bits:literal $doc:literal)*) => {
        /// The type of a tensor's elements, as the format names it.
        ///
        /// The order of the variants is the order in which the reference writer sorts tensors.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Dtype {
            $(#[doc = $doc] $variant,)*
        }

        impl Dtype {
            /// Every dtype, in the order of the variants.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name used in headers, such as `F8_E4M3`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Bits of one element; less than eight for the packed types.
            #[must_use]
            pub const fn bits(self) -> u32 {
                match self { $(Self::$variant => $bits,)* }
            }

            /// The dtype with this name in headers; names are case-sensitive.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

dtypes! {
    Bool "BOOL" 8 "One byte, 0 or 1."
    F4 "F4" 4 "4-bit float (MXFP4, NVFP4), two elements a byte."
    F6E2M3 "F6_E2M3" 6 "6-bit float, four elements in three bytes."
    F6E3M2 "F6_E3M2" 6 "6-bit float, four elements in three bytes."
    U8 "U8" 8 "Unsigned 8-bit integer."
    I8 "I8" 8 "Signed 8-bit integer."
    F8E5M2 "F8_E5M2" 8 "8-bit float with infinities."
    F8E4M3 "F8_E4M3" 8 "8-bit float without infinities (E4M3FN)."
    F8E8M0 "F8_E8M0" 8 "8-bit power of two: the scale of microscaling formats."
    F8E4M3Fnuz "F8_E4M3FNUZ" 8 "8-bit float, no infinities, no negative zero."
    F8E5M2Fnuz "F8_E5M2FNUZ" 8 "8-bit float, no infinities, no negative zero."
    I16 "I16" 16 "Signed 16-bit integer."
    U16 "U16" 16 "Unsigned 16-bit integer."
    F16 "F16" 16 "IEEE 754 half precision."
    BF16 "BF16" 16 "The upper half of an `F32`."
    I32 "I32" 32 "Signed 32-bit integer."
    U32 "U32" 32 "Unsigned 32-bit integer."
    F32 "F32" 32 "IEEE 754 single precision."
    C64 "C64" 64 "Complex number of two `F32`: real part, imaginary part."
    F64 "F64" 64 "IEEE 754 double precision."
    I64 "I64" 64 "Signed 64-bit integer."
    U64 "U64" 64 "Unsigned 64-bit integer."
}

impl Dtype {
    /// Bytes to which the address of an element must be aligned; 1 for the packed types.
    #[must_use]
    pub const fn align(self) -> usize {
        match self {
            Self::C64 => 4,
            _ => match self.bits() {
                64 => 8,
                32 => 4,
                16 => 2,
                _ => 1,
            },
        }
    }

    /// Bytes of this many elements, or `None` if that overflows or is not a whole number.
    #[must_use]
    pub fn byte_len(self, num_elements: usize) -> Option<usize> {
        let bits = num_elements.checked_mul(self.bits() as usize)?;
        (bits % 8 == 0).then_some(bits / 8)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name used in headers.
impl Serialize for Dtype {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// From the name used in headers.
impl FromStr for Dtype {
    type Err = UnknownDtype;

    fn from_str(name: &str) -> Result<Self, UnknownDtype> {
        Self::from_name(name).ok_or_else(|| UnknownDtype::new(name))
    }
}

/// The error for a name that no dtype has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dtype {}", Quoted(name))]
#[non_exhaustive]
pub struct UnknownDtype {
    /// The name; of a long one the first 256 characters.
    pub name: Box<str>,
}

impl UnknownDtype {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: shortened(name) }
    }
}

#[cfg(test)]
mod tests {
    use super::Dtype;

    #[test]
    fn every_name_leads_back_to_its_dtype() {
        for &dtype in Dtype::ALL {
            assert_eq!(Dtype::from_name(dtype.name()), Some(dtype));
        }
        assert_eq!(Dtype::from_name("f32"), None);
        assert!(Dtype::ALL.is_sorted());
    }

    #[test]
    fn names_are_parsed_and_serialized() {
        for &dtype in Dtype::ALL {
            assert_eq!(dtype.name().parse(), Ok(dtype));
            assert_eq!(serde_json::to_value(dtype).unwrap(), dtype.name());
        }
        let error = "f32".parse::<Dtype>().unwrap_err();
        assert_eq!(error.to_string(), r#"unknown dtype "f32""#);
    }

    #[test]
    fn byte_len_is_whole_bytes_or_none() {
        assert_eq!(Dtype::F4.byte_len(16), Some(8));
        assert_eq!(Dtype::F4.byte_len(3), None);
        assert_eq!(Dtype::F6E2M3.byte_len(4), Some(3));
        assert_eq!(Dtype::U64.byte_len(usize::MAX), None);
        assert_eq!(Dtype::F32.byte_len(0), Some(0));
    }

    #[test]
    fn alignment_is_that_of_one_component() {
        assert_eq!(Dtype::C64.align(), 4);
        assert_eq!(Dtype::BF16.align(), 2);
        assert_eq!(Dtype::F4.align(), 1);
    }
}
