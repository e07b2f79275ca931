//! Conversions of every code, against arithmetic in 64 bits.

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

/// The nearest value of a type, ties to even, by arithmetic that is exact in 64 bits.
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

/// Converts these codes, and compares each with the definition.
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
    // Around each value at which either type rounds, subnormals too, and between.
    let mut mantissas = vec![0, 0x7f_ffff, 0x12_3456, 0x55_5555, 0x2a_aaaa];
    for bit in 0..23 {
        for upper in [0, 1 << bit, 3 << bit, u32::MAX << bit] {
            mantissas.extend([upper, upper.wrapping_add(1), upper ^ ((1 << bit) >> 1)]);
            mantissas.push(upper.wrapping_sub(1));
        }
    }
    let codes: Vec<u32> = (0..512_u32)
        .flat_map(|upper| mantissas.iter().map(move |lower| (upper << 23) | (lower & 0x7f_ffff)))
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
                // 1.0 and 2.0 in turns: values of all three types.
                let bytes = |float: Float| {
                    let one = |i: usize| match float {
                        Float::F16 => f16::from_f32(1.0 + (i % 2) as f32).to_le_bytes().to_vec(),
                        Float::BF16 => bf16::from_f32(1.0 + (i % 2) as f32).to_le_bytes().to_vec(),
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
            assert!(cast.is_none_or(|cast| cast.source().dtype() == dtype && cast.target() == to));
        }
    }
    let value = serde_json::to_string(&cast(Float::BF16, Float::F32)).unwrap();
    assert_eq!(value, r#"{"source":"BF16","target":"F32"}"#);
}

#[test]
#[should_panic(expected = "6 bytes of F32 are not as many elements as 2 bytes of F16")]
fn half_an_element_is_refused() {
    cast(Float::F32, Float::F16).convert(&[0; 6], &mut [0; 2]);
}
