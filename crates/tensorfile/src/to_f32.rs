//! Conversion of float tensors to `f32`.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::element::{self, ByteOrder, Element, cast_or_copy};
use crate::{Dtype, ErrorKind, Result, float8, reserve};

/// Elements converted per block: a block fits the first-level cache.
const BLOCK: usize = 1024;

/// The elements of a float tensor as `f32`; see [`TensorView::to_f32`](crate::TensorView::to_f32).
pub(crate) fn to_f32(dtype: Dtype, bytes: &[u8]) -> Result<Vec<f32>, ErrorKind> {
    match dtype {
        Dtype::F32 => element::copy(dtype, bytes, ByteOrder::HOST),
        Dtype::F16 => widen(dtype, bytes, <[f16]>::convert_to_f32_slice),
        Dtype::BF16 => widen(dtype, bytes, <[bf16]>::convert_to_f32_slice),
        Dtype::F64 => narrow(bytes),
        dtype => {
            let Some(values) = float8::values(dtype) else {
                return Err(ErrorKind::DtypeMismatch {
                    dtype,
                    known: element::name_of(dtype),
                    asked: f32::NAME,
                });
            };
            let mut converted = reserve::list(bytes.len())?;
            converted.extend(bytes.iter().map(|code| values[usize::from(*code)]));
            Ok(converted)
        }
    }
}

/// Converts block by block, so that the result is written once and not zeroed first.
fn widen<T: Element>(
    dtype: Dtype,
    bytes: &[u8],
    convert: fn(&[T], &mut [f32]),
) -> Result<Vec<f32>, ErrorKind> {
    let elements = cast_or_copy::<T>(dtype, bytes)?;
    let mut converted = reserve::list(elements.len())?;
    let mut block = [0.0; BLOCK];
    for part in elements.chunks(BLOCK) {
        let block = &mut block[..part.len()];
        convert(part, block);
        converted.extend_from_slice(block);
    }
    Ok(converted)
}

fn narrow(bytes: &[u8]) -> Result<Vec<f32>, ErrorKind> {
    let elements = cast_or_copy::<f64>(Dtype::F64, bytes)?;
    let mut converted = reserve::list(elements.len())?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounding to nearest is what is asked for"
    )]
    converted.extend(elements.iter().map(|element| *element as f32));
    Ok(converted)
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, to_f32};
    use crate::Dtype;
    use half::{bf16, f16};

    #[test]
    fn every_half_is_converted_as_half_does_one_by_one() {
        let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let mut shifted = vec![0];
        shifted.extend_from_slice(&bytes);
        for bytes in [&bytes[..], &shifted[1..]] {
            let f16s = to_f32(Dtype::F16, bytes).unwrap();
            let bf16s = to_f32(Dtype::BF16, bytes).unwrap();
            for bits in 0..=u16::MAX {
                let found = [f16s[usize::from(bits)], bf16s[usize::from(bits)]];
                let expected = [f16::from_bits(bits).to_f32(), bf16::from_bits(bits).to_f32()];
                for (found, expected) in found.iter().zip(expected) {
                    assert!(
                        found.to_bits() == expected.to_bits()
                            || found.is_nan() && expected.is_nan(),
                        "{bits:#06x}"
                    );
                }
            }
        }
    }

    #[test]
    fn lengths_around_a_block_are_whole() {
        for len in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1] {
            let bytes = f16::ONE.to_le_bytes().repeat(len);
            assert_eq!(to_f32(Dtype::F16, &bytes).unwrap(), vec![1.0; len]);
        }
    }

    #[test]
    fn f64_is_rounded_to_nearest() {
        let halfway_to_even = 1.0 + f64::from(f32::EPSILON) / 2.0;
        let values = [0.1, halfway_to_even, 1e300, -1e300, 1e-300, f64::NAN];
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let found = to_f32(Dtype::F64, &bytes).unwrap();
        assert_eq!(found[..5], [0.1, 1.0, f32::INFINITY, f32::NEG_INFINITY, 0.0]);
        assert!(found[5].is_nan());
    }

    #[test]
    fn f32_keeps_its_bits_and_float8_has_its_table() {
        let quiet = 0x7fc1_2345u32;
        assert_eq!(to_f32(Dtype::F32, &quiet.to_le_bytes()).unwrap()[0].to_bits(), quiet);
        assert_eq!(to_f32(Dtype::F8E4M3, &[0x38, 0x7e]).unwrap(), [1.0, 448.0]);
        assert_eq!(to_f32(Dtype::F8E8M0, &[0x80]).unwrap(), [2.0]);
    }

    #[test]
    fn what_is_no_float_of_its_own_is_refused() {
        for &dtype in Dtype::ALL {
            let converts = to_f32(dtype, &[0; 24]).is_ok();
            let named = dtype.name();
            let expected = named.starts_with("F8")
                || matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64);
            assert_eq!(converts, expected, "{dtype}");
        }
        let error = to_f32(Dtype::I64, &[0; 8]).unwrap_err();
        assert_eq!(error.to_string(), "is I64, can be read as i64, not as f32");
    }
}
