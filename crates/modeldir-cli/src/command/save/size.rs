//! The syntax of a number of bytes on the command line.

use std::str::FromStr;

/// A number of bytes: `500000000`, `500MB` or `1.5GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected bytes as 500000000, 500MB or 1.5GiB, found {text:?}");
        let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit);
        let factor = factor(unit.trim()).ok_or_else(expected)?;
        let bytes = match number.split_once('.') {
            None => number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)),
            Some((whole, part)) => tenths(whole, part, factor),
        };
        bytes.filter(|bytes| *bytes > 0).map(Self).ok_or_else(expected)
    }
}

/// The bytes of a decimal fraction, rounded down.
fn tenths(whole: &str, part: &str, factor: u64) -> Option<u64> {
    let digits = u32::try_from(part.len()).ok().filter(|digits| (1..=9).contains(digits))?;
    let (whole, part): (u64, u64) = (whole.parse().ok()?, part.parse().ok()?);
    let part = part.checked_mul(factor)? / 10_u64.pow(digits);
    whole.checked_mul(factor)?.checked_add(part)
}

/// The bytes of a unit: a power of 1000, or of 1024 with an `i`.
fn factor(unit: &str) -> Option<u64> {
    let prefix = unit.strip_suffix(['B', 'b']).unwrap_or(unit);
    let (prefix, base) = prefix.strip_suffix('i').map_or((prefix, 1000_u64), |p| (p, 1024));
    let power = match prefix {
        "" if base == 1000 => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some(base.pow(power))
}

#[cfg(test)]
mod tests {
    use super::Size;

    #[test]
    fn units_are_powers_of_1000_and_with_an_i_of_1024() {
        for (text, bytes) in [
            ("5", 5),
            ("5B", 5),
            ("5kB", 5000),
            ("5GB", 5_000_000_000),
            ("1.5GiB", 3 << 29),
            ("2 MiB", 2 << 20),
            ("9007199254740993", 9_007_199_254_740_993),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "GB", "0", "-1", "1iB", "1XB", "1.2.3", "1e99", "99999999TB"] {
            assert!(text.parse::<Size>().is_err(), "{text:?}");
        }
    }
}
