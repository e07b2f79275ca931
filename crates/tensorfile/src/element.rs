//! The Rust types that a tensor's bytes can be seen as, and the checked casts to them.

use std::borrow::Cow;

use bytemuck::CheckedBitPattern;
use bytemuck::checked::{CheckedCastError, try_cast_slice, try_pod_read_unaligned};
use half::{bf16, f16};

use crate::tensor::TensorView;
use crate::{Dtype, Error, Result};

/// A Rust type that the elements of some dtypes are. The list is closed.
///
/// `u8` stands for `U8` and for the codes of the 8-bit floats, `[f32; 2]` for `C64`. The packed
/// dtypes (`F4`, `F6_E2M3`, `F6_E3M2`) have no element type; their tensors give bytes.
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
    ($($element:ty, $name:literal: $($dtype:ident)*;)*) => {$(
        impl sealed::Sealed for $element {}
        impl Element for $element {
            const DTYPES: &'static [Dtype] = &[$(Dtype::$dtype),*];
            const NAME: &'static str = $name;
        }
    )*};
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

/// The order in which a machine keeps the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The order of the machine that this is compiled for.
    pub(crate) const HOST: Self =
        if cfg!(target_endian = "big") { Self::Big } else { Self::Little };
}

/// The bytes of `view` as elements, in place, on a machine of this byte order.
pub(crate) fn cast<'a, T: Element>(view: TensorView<'a>, host: ByteOrder) -> Result<&'a [T]> {
    check_dtype::<T>(view)?;
    let dtype = view.dtype();
    if view.bytes().is_empty() {
        return Ok(&[]);
    }
    if host == ByteOrder::Big && component_len(dtype) > 1 {
        return Err(Error::BigEndianHost { tensor: view.name().into(), dtype });
    }
    try_cast_slice(view.bytes()).map_err(|error| cast_error::<T>(view, error))
}

/// The bytes of `view` copied into elements, on a machine of this byte order.
pub(crate) fn copy<T: Element>(view: TensorView<'_>, host: ByteOrder) -> Result<Vec<T>> {
    match cast(view, host) {
        Ok(elements) => {
            let mut copied = reserve(view, elements.len())?;
            copied.extend_from_slice(elements);
            Ok(copied)
        }
        Err(Error::Unaligned { .. } | Error::BigEndianHost { .. }) => read_each(view, host),
        Err(error) => Err(error),
    }
}

/// The elements of `view`, copied only where they cannot be had in place.
pub(crate) fn cast_or_copy<T: Element>(view: TensorView<'_>) -> Result<Cow<'_, [T]>> {
    match cast(view, ByteOrder::HOST) {
        Ok(elements) => Ok(Cow::Borrowed(elements)),
        Err(_) => copy(view, ByteOrder::HOST).map(Cow::Owned),
    }
}

/// An empty vector with room for `len` elements.
pub(crate) fn reserve<T>(view: TensorView<'_>, len: usize) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    match elements.try_reserve_exact(len) {
        Ok(()) => Ok(elements),
        Err(_) => Err(Error::TensorOutOfMemory {
            tensor: view.name().into(),
            byte_len: len.saturating_mul(size_of::<T>()),
        }),
    }
}

/// Reads one element after the other, whatever its address, and swaps its bytes where needed.
fn read_each<T: Element>(view: TensorView<'_>, host: ByteOrder) -> Result<Vec<T>> {
    let component_len = component_len(view.dtype());
    let mut elements = reserve(view, view.bytes().len() / size_of::<T>())?;
    let mut swapped = [0; 8];
    for bytes in view.bytes().chunks_exact(size_of::<T>()) {
        let element = if host == ByteOrder::Big {
            let swapped = &mut swapped[..bytes.len()];
            swapped.copy_from_slice(bytes);
            swapped.chunks_exact_mut(component_len).for_each(<[u8]>::reverse);
            try_pod_read_unaligned(swapped)
        } else {
            try_pod_read_unaligned(bytes)
        };
        elements.push(element.map_err(|error| cast_error::<T>(view, error))?);
    }
    Ok(elements)
}

/// The bytes of what is swapped as one: an element, or one of the two parts of a `C64`.
const fn component_len(dtype: Dtype) -> usize {
    dtype.align()
}

fn check_dtype<T: Element>(view: TensorView<'_>) -> Result<()> {
    if T::DTYPES.contains(&view.dtype()) {
        return Ok(());
    }
    Err(Error::DtypeMismatch { tensor: view.name().into(), dtype: view.dtype(), asked: T::NAME })
}

fn cast_error<T>(view: TensorView<'_>, error: CheckedCastError) -> Error {
    let tensor = view.name().into();
    match error {
        CheckedCastError::InvalidBitPattern => {
            let invalid = view.bytes().iter().enumerate().find(|(_, byte)| **byte > 1);
            let (index, found) = invalid.map_or((0, 0), |(index, byte)| (index, *byte));
            Error::InvalidBool { tensor, index, found }
        }
        // The dtype was checked, and with it that the size divides: only the address is left.
        CheckedCastError::PodCastError(_) => {
            Error::Unaligned { tensor, dtype: view.dtype(), align: align_of::<T>() }
        }
    }
}

#[cfg(test)]
#[expect(clippy::host_endian_bytes, reason = "bytes in the host's order are what is tested")]
mod tests {
    use super::{ByteOrder, Element, cast, copy};
    use crate::{Dtype, Error, TensorView};
    use half::{bf16, f16};
    use std::collections::BTreeMap;

    #[repr(align(8))]
    struct Aligned([u8; 24]);

    const BYTES: Aligned = Aligned([
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
    ]);

    fn view(dtype: Dtype, bytes: &[u8]) -> TensorView<'_> {
        let shape: &'static [usize] = match bytes.len() * 8 / dtype.bits() as usize {
            0 => &[0],
            1 => &[1],
            2 => &[2],
            8 => &[8],
            16 => &[16],
            len => panic!("no shape for {len} elements"),
        };
        TensorView::new("t", dtype, shape, bytes).unwrap()
    }

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
        let elements = cast::<u32>(view(Dtype::U32, &BYTES.0[..8]), ByteOrder::Little).unwrap();
        assert_eq!(elements.len(), 2);
        assert_eq!(
            cast::<u8>(view(Dtype::F8E4M3, &BYTES.0[..2]), ByteOrder::Little).unwrap(),
            [1, 2]
        );
    }

    #[test]
    fn another_type_is_refused_even_of_the_same_size() {
        let error = cast::<f32>(view(Dtype::U32, &BYTES.0[..8]), ByteOrder::Little).unwrap_err();
        assert_eq!(error.to_string(), r#"tensor "t": is U32, cannot be read as f32"#);
        let error = cast::<i8>(view(Dtype::U8, &BYTES.0[..0]), ByteOrder::Little).unwrap_err();
        assert!(matches!(error, Error::DtypeMismatch { asked: "i8", .. }), "{error}");
    }

    #[test]
    fn an_unaligned_view_is_refused_and_its_copy_is_not() {
        let unaligned = view(Dtype::U16, &BYTES.0[1..5]);
        let error = cast::<u16>(unaligned, ByteOrder::Little).unwrap_err();
        assert!(matches!(error, Error::Unaligned { align: 2, dtype: Dtype::U16, .. }), "{error}");
        let copied = copy::<u16>(unaligned, ByteOrder::Little).unwrap();
        assert_eq!(copied, [[2, 3], [4, 5]].map(u16::from_ne_bytes));
    }

    #[test]
    fn empty_tensors_are_empty_slices_at_any_address() {
        for host in [ByteOrder::Little, ByteOrder::Big] {
            for start in 0..8 {
                let empty = view(Dtype::F64, &BYTES.0[start..start]);
                assert!(cast::<f64>(empty, host).unwrap().is_empty());
                assert!(copy::<f64>(empty, host).unwrap().is_empty());
            }
        }
    }

    #[test]
    fn bytes_that_are_no_bool_are_refused() {
        let tensor = view(Dtype::Bool, &[1, 0]);
        assert_eq!(cast::<bool>(tensor, ByteOrder::Big).unwrap(), [true, false]);
        let tensor = view(Dtype::Bool, &[1, 2]);
        for error in [
            cast::<bool>(tensor, ByteOrder::Little).unwrap_err(),
            copy::<bool>(tensor, ByteOrder::Little).unwrap_err(),
        ] {
            assert_eq!(error.to_string(), r#"tensor "t": byte 1 of BOOL is 2, not 0 or 1"#);
        }
    }

    #[test]
    fn a_big_endian_host_has_no_views_of_wide_elements() {
        let error = cast::<u16>(view(Dtype::U16, &BYTES.0[..4]), ByteOrder::Big).unwrap_err();
        assert!(matches!(error, Error::BigEndianHost { dtype: Dtype::U16, .. }), "{error}");
        assert_eq!(cast::<u8>(view(Dtype::U8, &BYTES.0[..2]), ByteOrder::Big).unwrap(), [1, 2]);
    }

    #[test]
    fn a_big_endian_host_gets_copies_with_swapped_bytes() {
        for start in [0, 1] {
            let bytes = &BYTES.0[start..start + 8];
            let reversed: [u8; 8] = std::array::from_fn(|i| bytes[7 - i]);
            let copied = copy::<u64>(view(Dtype::U64, bytes), ByteOrder::Big).unwrap();
            assert_eq!(copied, [u64::from_ne_bytes(reversed)]);
        }
        let copied = copy::<i16>(view(Dtype::I16, &BYTES.0[..4]), ByteOrder::Big).unwrap();
        assert_eq!(copied, [[2, 1], [4, 3]].map(i16::from_ne_bytes));
    }

    #[test]
    fn the_parts_of_a_complex_number_are_swapped_on_their_own() {
        let copied = copy::<[f32; 2]>(view(Dtype::C64, &BYTES.0[..8]), ByteOrder::Big).unwrap();
        assert_eq!(copied, [[[4, 3, 2, 1], [8, 7, 6, 5]].map(f32::from_ne_bytes)]);
    }
}
