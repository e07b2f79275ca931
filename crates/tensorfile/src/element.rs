//! The Rust types that a tensor's bytes can be seen as, and the checked casts to them.

use std::borrow::Cow;

use bytemuck::CheckedBitPattern;
use bytemuck::checked::{CheckedCastError, try_cast_slice, try_pod_read_unaligned};
use half::{bf16, f16};

use crate::{Dtype, ErrorKind, Result, reserve};

/// A Rust type for the elements of some dtypes. The trait is sealed.
///
/// `u8` is for `U8` and the codes of the 8-bit floats, `[f32; 2]` for `C64`. The packed dtypes
/// (`F4`, `F6_E2M3`, `F6_E3M2`) have no element type: use the bytes of their tensors.
pub trait Element: sealed::Sealed + CheckedBitPattern {
    /// The dtypes whose elements are of this type.
    const DTYPES: &'static [Dtype];
    /// The name of this type in messages.
    const NAME: &'static str;
}

mod sealed {
    #[expect(unnameable_types, reason = "a trait that cannot be named cannot be implemented")]
    pub trait Sealed {}
}

macro_rules! elements {
    ($($element:ty, $name:literal: $($dtype:ident)*;)*) => {
        $(
            impl sealed::Sealed for $element {}
            impl Element for $element {
                const DTYPES: &'static [Dtype] = &[$(Dtype::$dtype),*];
                const NAME: &'static str = $name;
            }
        )*

        /// The name of the Rust type for elements of this dtype; packed dtypes have none.
        pub(crate) const fn name_of(dtype: Dtype) -> Option<&'static str> {
            match dtype {
                $($(Dtype::$dtype)|* => Some($name),)*
                _ => None,
            }
        }
    };
}

elements! {
    bool, "bool": Bool;
    u8, "u8": U8 F8E5M2 F8E4M3 F8E8M0 F8E4M3Fnuz F8E5M2Fnuz;
    i8, "i8": I8;
    i16, "i16": I16;
    u16, "u16": U16;
    f16, "f16": F16;
    bf16, "bf16": BF16;
    i32, "i32": I32;
    u32, "u32": U32;
    f32, "f32": F32;
    [f32; 2], "[f32; 2]": C64;
    f64, "f64": F64;
    i64, "i64": I64;
    u64, "u64": U64;
}

/// The byte order of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The byte order of the compilation target.
    pub(crate) const HOST: Self =
        if cfg!(target_endian = "big") { Self::Big } else { Self::Little };
}

/// Bytes of this dtype as elements, in place, on a machine of this byte order.
pub(crate) fn cast<T: Element>(
    dtype: Dtype,
    bytes: &[u8],
    host: ByteOrder,
) -> Result<&[T], ErrorKind> {
    if !T::DTYPES.contains(&dtype) {
        return Err(ErrorKind::DtypeMismatch { dtype, known: name_of(dtype), asked: T::NAME });
    }
    if bytes.is_empty() {
        return Ok(&[]);
    }
    if host == ByteOrder::Big && component_len(dtype) > 1 {
        return Err(ErrorKind::BigEndianHost { dtype });
    }
    try_cast_slice(bytes).map_err(|error| cast_error::<T>(dtype, bytes, error))
}

/// Bytes of this dtype copied into elements, on a machine of this byte order.
pub(crate) fn copy<T: Element>(
    dtype: Dtype,
    bytes: &[u8],
    host: ByteOrder,
) -> Result<Vec<T>, ErrorKind> {
    match cast(dtype, bytes, host) {
        Ok(elements) => {
            let mut copied = reserve::list(elements.len())?;
            copied.extend_from_slice(elements);
            Ok(copied)
        }
        Err(ErrorKind::Unaligned { .. } | ErrorKind::BigEndianHost { .. }) => {
            read_each(dtype, bytes, host)
        }
        Err(kind) => Err(kind),
    }
}

/// The elements of these bytes, copied only if they cannot be borrowed.
pub(crate) fn cast_or_copy<T: Element>(
    dtype: Dtype,
    bytes: &[u8],
) -> Result<Cow<'_, [T]>, ErrorKind> {
    match cast(dtype, bytes, ByteOrder::HOST) {
        Ok(elements) => Ok(Cow::Borrowed(elements)),
        Err(_) => copy(dtype, bytes, ByteOrder::HOST).map(Cow::Owned),
    }
}

/// Reads elements from any address, and swaps their bytes if needed.
fn read_each<T: Element>(dtype: Dtype, bytes: &[u8], host: ByteOrder) -> Result<Vec<T>, ErrorKind> {
    let component_len = component_len(dtype);
    let mut elements = reserve::list(bytes.len() / size_of::<T>())?;
    let mut swapped = [0; 8];
    for element in bytes.chunks_exact(size_of::<T>()) {
        let element = if host == ByteOrder::Big {
            let swapped = &mut swapped[..element.len()];
            swapped.copy_from_slice(element);
            swapped.chunks_exact_mut(component_len).for_each(<[u8]>::reverse);
            try_pod_read_unaligned(swapped)
        } else {
            try_pod_read_unaligned(element)
        };
        elements.push(element.map_err(|error| cast_error::<T>(dtype, bytes, error))?);
    }
    Ok(elements)
}

/// Bytes swapped together: an element, or one of the two parts of a `C64`.
const fn component_len(dtype: Dtype) -> usize {
    dtype.align()
}

fn cast_error<T>(dtype: Dtype, bytes: &[u8], error: CheckedCastError) -> ErrorKind {
    match error {
        CheckedCastError::InvalidBitPattern => {
            let invalid = bytes.iter().enumerate().find(|(_, byte)| **byte > 1);
            let (index, found) = invalid.map_or((0, 0), |(index, byte)| (index, *byte));
            ErrorKind::InvalidBool { index, found }
        }
        // The dtype was checked, and with it the length: only the alignment can be wrong.
        CheckedCastError::PodCastError(_) => ErrorKind::Unaligned { dtype, align: align_of::<T>() },
    }
}

#[cfg(test)]
#[expect(clippy::host_endian_bytes, reason = "bytes in the host's order are what is tested")]
mod tests {
    use super::{ByteOrder, Element, cast, copy};
    use crate::{Dtype, ErrorKind};
    use half::{bf16, f16};
    use std::collections::BTreeMap;

    #[repr(align(8))]
    struct Aligned([u8; 24]);

    const BYTES: Aligned = Aligned([
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
    ]);

    #[test]
    fn every_unpacked_dtype_has_exactly_one_element_type() {
        let mut sizes = BTreeMap::new();
        fn collect<T: Element>(sizes: &mut BTreeMap<Dtype, usize>) {
            for dtype in T::DTYPES {
                assert_eq!(sizes.insert(*dtype, size_of::<T>()), None, "{dtype} is given twice");
            }
        }
        collect::<bool>(&mut sizes);
        collect::<u8>(&mut sizes);
        collect::<i8>(&mut sizes);
        collect::<i16>(&mut sizes);
        collect::<u16>(&mut sizes);
        collect::<f16>(&mut sizes);
        collect::<bf16>(&mut sizes);
        collect::<i32>(&mut sizes);
        collect::<u32>(&mut sizes);
        collect::<f32>(&mut sizes);
        collect::<[f32; 2]>(&mut sizes);
        collect::<f64>(&mut sizes);
        collect::<i64>(&mut sizes);
        collect::<u64>(&mut sizes);
        for &dtype in Dtype::ALL {
            let packed = dtype.bits() < 8;
            assert_eq!(sizes.get(&dtype).copied(), (!packed).then_some(dtype.bits() as usize / 8));
        }
    }

    #[test]
    fn casts_in_place_on_a_little_endian_host() {
        let elements = cast::<u32>(Dtype::U32, &BYTES.0[..8], ByteOrder::Little).unwrap();
        assert_eq!(elements.len(), 2);
        assert_eq!(cast::<u8>(Dtype::F8E4M3, &BYTES.0[..2], ByteOrder::Little).unwrap(), [1, 2]);
    }

    #[test]
    fn another_type_is_refused_even_of_the_same_size() {
        let error = cast::<f32>(Dtype::U32, &BYTES.0[..8], ByteOrder::Little).unwrap_err();
        assert_eq!(error.to_string(), "is U32, can be read as u32, not as f32");
        let error = cast::<i8>(Dtype::U8, &BYTES.0[..0], ByteOrder::Little).unwrap_err();
        assert!(matches!(error, ErrorKind::DtypeMismatch { asked: "i8", .. }), "{error}");
    }

    #[test]
    fn an_unaligned_view_is_refused_and_its_copy_is_not() {
        let unaligned = &BYTES.0[1..5];
        let error = cast::<u16>(Dtype::U16, unaligned, ByteOrder::Little).unwrap_err();
        assert!(
            matches!(error, ErrorKind::Unaligned { align: 2, dtype: Dtype::U16, .. }),
            "{error}"
        );
        let copied = copy::<u16>(Dtype::U16, unaligned, ByteOrder::Little).unwrap();
        assert_eq!(copied, [[2, 3], [4, 5]].map(u16::from_ne_bytes));
    }

    #[test]
    fn empty_tensors_are_empty_slices_at_any_address() {
        for host in [ByteOrder::Little, ByteOrder::Big] {
            for start in 0..8 {
                let empty = &BYTES.0[start..start];
                assert!(cast::<f64>(Dtype::F64, empty, host).unwrap().is_empty());
                assert!(copy::<f64>(Dtype::F64, empty, host).unwrap().is_empty());
            }
        }
    }

    #[test]
    fn bytes_that_are_no_bool_are_refused() {
        let bools = cast::<bool>(Dtype::Bool, &[1, 0], ByteOrder::Big).unwrap();
        assert_eq!(bools, [true, false]);
        for error in [
            cast::<bool>(Dtype::Bool, &[1, 2], ByteOrder::Little).unwrap_err(),
            copy::<bool>(Dtype::Bool, &[1, 2], ByteOrder::Little).unwrap_err(),
        ] {
            assert_eq!(error.to_string(), "byte 1 of BOOL is 2, not 0 or 1");
        }
    }

    #[test]
    fn a_big_endian_host_has_no_views_of_wide_elements() {
        let error = cast::<u16>(Dtype::U16, &BYTES.0[..4], ByteOrder::Big).unwrap_err();
        assert!(matches!(error, ErrorKind::BigEndianHost { dtype: Dtype::U16, .. }), "{error}");
        assert_eq!(cast::<u8>(Dtype::U8, &BYTES.0[..2], ByteOrder::Big).unwrap(), [1, 2]);
    }

    #[test]
    fn a_big_endian_host_gets_copies_with_swapped_bytes() {
        for start in [0, 1] {
            let bytes = &BYTES.0[start..start + 8];
            let reversed: [u8; 8] = std::array::from_fn(|i| bytes[7 - i]);
            let copied = copy::<u64>(Dtype::U64, bytes, ByteOrder::Big).unwrap();
            assert_eq!(copied, [u64::from_ne_bytes(reversed)]);
        }
        let copied = copy::<i16>(Dtype::I16, &BYTES.0[..4], ByteOrder::Big).unwrap();
        assert_eq!(copied, [[2, 1], [4, 3]].map(i16::from_ne_bytes));
    }

    #[test]
    fn the_parts_of_a_complex_number_are_swapped_on_their_own() {
        let copied = copy::<[f32; 2]>(Dtype::C64, &BYTES.0[..8], ByteOrder::Big).unwrap();
        assert_eq!(copied, [[[4, 3, 2, 1], [8, 7, 6, 5]].map(f32::from_ne_bytes)]);
    }
}
