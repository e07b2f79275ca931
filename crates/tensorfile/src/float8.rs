//! The values of the 8-bit float codes: one exact `f32` for each of the 256 codes.

use crate::Dtype;

/// The value of every code of `dtype`, or `None` if it is no 8-bit float.
///
/// NaN codes give a quiet NaN of their sign. `F8_E8M0` code 0 is 2^-127, a subnormal `f32`.
pub(crate) const fn values(dtype: Dtype) -> Option<&'static [f32; 256]> {
    match dtype {
        Dtype::F8E5M2 => Some(&E5M2),
        Dtype::F8E4M3 => Some(&E4M3),
        Dtype::F8E8M0 => Some(&E8M0),
        Dtype::F8E4M3Fnuz => Some(&E4M3_FNUZ),
        Dtype::F8E5M2Fnuz => Some(&E5M2_FNUZ),
        _ => None,
    }
}

static E5M2: [f32; 256] = table(2, 15, Specials::Ieee);
static E4M3: [f32; 256] = table(3, 7, Specials::NanOnly);
static E4M3_FNUZ: [f32; 256] = table(3, 8, Specials::MinusZeroIsNan);
static E5M2_FNUZ: [f32; 256] = table(2, 16, Specials::MinusZeroIsNan);
static E8M0: [f32; 256] = powers_of_two();

/// Which codes are not numbers.
#[derive(Clone, Copy)]
enum Specials {
    /// The highest exponent is for infinities and NaN, as in IEEE 754.
    Ieee,
    /// All ones is NaN; there are no infinities.
    NanOnly,
    /// The code of minus zero is the only NaN; there are no infinities.
    MinusZeroIsNan,
}

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fc0_0000;

/// The table of a format with a sign bit and `mantissa_bits` below the exponent.
const fn table(mantissa_bits: u32, bias: u32, specials: Specials) -> [f32; 256] {
    let mut values = [0.0; 256];
    let mut code: u32 = 0;
    while code < 256 {
        let sign = if code < 128 { 0 } else { SIGN };
        let magnitude = magnitude(code & 0x7f, sign != 0, mantissa_bits, bias, specials);
        values[code as usize] = f32::from_bits(sign | magnitude);
        code += 1;
    }
    values
}

/// The `f32` bits of a code without its sign.
const fn magnitude(
    code: u32,
    negative: bool,
    mantissa_bits: u32,
    bias: u32,
    specials: Specials,
) -> u32 {
    let exponent = code >> mantissa_bits;
    let mantissa = code & ((1 << mantissa_bits) - 1);
    match specials {
        Specials::Ieee if exponent == 0x7f >> mantissa_bits => {
            return if mantissa == 0 { INFINITY } else { NAN };
        }
        Specials::NanOnly if code == 0x7f => return NAN,
        Specials::MinusZeroIsNan if code == 0 && negative => return NAN,
        _ => {}
    }
    if exponent > 0 {
        ((exponent + 127 - bias) << 23) | (mantissa << (23 - mantissa_bits))
    } else if mantissa > 0 {
        // A subnormal of the narrow format is a normal f32: its highest set bit becomes implicit.
        let top = mantissa.ilog2();
        ((128 + top - bias - mantissa_bits) << 23) | ((mantissa << (23 - top)) & 0x007f_ffff)
    } else {
        0
    }
}

/// The table of `F8_E8M0`: eight bits of exponent, no sign, no zero.
const fn powers_of_two() -> [f32; 256] {
    let mut values = [0.0; 256];
    values[0] = f32::from_bits(1 << 22);
    let mut code: u32 = 1;
    while code < 255 {
        values[code as usize] = f32::from_bits(code << 23);
        code += 1;
    }
    values[255] = f32::from_bits(NAN);
    values
}

#[cfg(test)]
mod tests {
    use super::values;
    use crate::Dtype;

    fn value(dtype: Dtype, code: u8) -> f32 {
        values(dtype).unwrap()[usize::from(code)]
    }

    /// The value of `exponent` and `mantissa` by the definition of the format.
    fn by_definition(code: u8, mantissa_bits: i32, bias: i32) -> f32 {
        let sign = if code >= 128 { -1.0 } else { 1.0 };
        let steps = f64::from(1u8 << mantissa_bits);
        let exponent = f64::from((code & 0x7f) >> mantissa_bits);
        let fraction = f64::from(code) % steps / steps;
        let value = if exponent == 0.0 {
            sign * fraction * 2f64.powi(1 - bias)
        } else {
            sign * (1.0 + fraction) * (exponent - f64::from(bias)).exp2()
        };
        value.to_string().parse().unwrap()
    }

    #[test]
    fn every_finite_code_has_the_value_of_its_definition() {
        let formats = [
            (Dtype::F8E5M2, 2, 15),
            (Dtype::F8E4M3, 3, 7),
            (Dtype::F8E4M3Fnuz, 3, 8),
            (Dtype::F8E5M2Fnuz, 2, 16),
        ];
        for (dtype, mantissa_bits, bias) in formats {
            for code in 0..=255 {
                let found = value(dtype, code);
                if found.is_finite() {
                    let expected = by_definition(code, mantissa_bits, bias);
                    assert_eq!(found.to_bits(), expected.to_bits(), "{dtype} {code:#04x}");
                }
            }
        }
    }

    #[test]
    fn only_the_codes_of_the_specification_are_not_finite() {
        let not_finite = |dtype| -> Vec<u8> {
            (0..=255).filter(|code| !value(dtype, *code).is_finite()).collect()
        };
        let e5m2 = [0x7c, 0x7d, 0x7e, 0x7f, 0xfc, 0xfd, 0xfe, 0xff];
        assert_eq!(not_finite(Dtype::F8E5M2), e5m2);
        assert_eq!(not_finite(Dtype::F8E4M3), [0x7f, 0xff]);
        assert_eq!(not_finite(Dtype::F8E4M3Fnuz), [0x80]);
        assert_eq!(not_finite(Dtype::F8E5M2Fnuz), [0x80]);
        assert_eq!(not_finite(Dtype::F8E8M0), [0xff]);
    }

    #[test]
    fn infinities_belong_to_e5m2_alone() {
        assert_eq!(value(Dtype::F8E5M2, 0x7c), f32::INFINITY);
        assert_eq!(value(Dtype::F8E5M2, 0xfc), f32::NEG_INFINITY);
        let others = [Dtype::F8E4M3, Dtype::F8E4M3Fnuz, Dtype::F8E5M2Fnuz, Dtype::F8E8M0]
            .map(|dtype| values(dtype).unwrap().iter().filter(|value| value.is_infinite()).count());
        assert_eq!(others, [0; 4]);
        assert!([0x7d, 0x7e, 0x7f, 0xff].iter().all(|code| value(Dtype::F8E5M2, *code).is_nan()));
    }

    #[test]
    fn known_values_of_each_format() {
        let known: [(Dtype, u8, f32); 26] = [
            (Dtype::F8E5M2, 0x00, 0.0),
            (Dtype::F8E5M2, 0x01, 1.525_878_9e-5), // smallest subnormal, 2^-16
            (Dtype::F8E5M2, 0x03, 4.577_636_7e-5), // largest subnormal
            (Dtype::F8E5M2, 0x04, 6.103_515_6e-5), // smallest normal, 2^-14
            (Dtype::F8E5M2, 0x3c, 1.0),
            (Dtype::F8E5M2, 0x7b, 57344.0),
            (Dtype::F8E5M2, 0xfb, -57344.0),
            (Dtype::F8E4M3, 0x01, 0.001_953_125), // 2^-9
            (Dtype::F8E4M3, 0x07, 0.013_671_875), // 7 * 2^-9
            (Dtype::F8E4M3, 0x08, 0.015_625),     // 2^-6
            (Dtype::F8E4M3, 0x38, 1.0),
            (Dtype::F8E4M3, 0x7e, 448.0),
            (Dtype::F8E4M3, 0xfe, -448.0),
            (Dtype::F8E4M3Fnuz, 0x01, 0.000_976_562_5), // 2^-10
            (Dtype::F8E4M3Fnuz, 0x08, 0.007_812_5),     // 2^-7
            (Dtype::F8E4M3Fnuz, 0x40, 1.0),
            (Dtype::F8E4M3Fnuz, 0x7f, 240.0),
            (Dtype::F8E4M3Fnuz, 0xff, -240.0),
            (Dtype::F8E5M2Fnuz, 0x01, 7.629_394_5e-6), // 2^-17
            (Dtype::F8E5M2Fnuz, 0x40, 1.0),
            (Dtype::F8E5M2Fnuz, 0x7f, 57344.0),
            (Dtype::F8E5M2Fnuz, 0xff, -57344.0),
            (Dtype::F8E8M0, 0x00, 5.877_472e-39),   // 2^-127
            (Dtype::F8E8M0, 0x01, 1.175_494_4e-38), // 2^-126
            (Dtype::F8E8M0, 0x7f, 1.0),
            (Dtype::F8E8M0, 0xfe, 1.701_411_8e38), // 2^127
        ];
        for (dtype, code, expected) in known {
            assert_eq!(value(dtype, code).to_bits(), expected.to_bits(), "{dtype} {code:#04x}");
        }
    }

    #[test]
    fn minus_zero_keeps_its_sign_where_it_exists() {
        for dtype in [Dtype::F8E5M2, Dtype::F8E4M3] {
            assert_eq!(value(dtype, 0x80).to_bits(), (-0.0f32).to_bits());
        }
    }

    #[test]
    fn every_code_of_e8m0_doubles_the_one_before() {
        for code in 1..=0xfe {
            let double = f64::from(value(Dtype::F8E8M0, code - 1)) * 2.0;
            assert_eq!(f64::from(value(Dtype::F8E8M0, code)), double);
        }
    }

    #[test]
    fn other_dtypes_have_no_table() {
        let tables = Dtype::ALL.iter().filter(|dtype| values(**dtype).is_some()).count();
        assert_eq!(tables, 5);
        assert!(values(Dtype::U8).is_none());
    }
}
