//! Natural order of file names: `part-2` before `part-10`.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::cmp::Ordering;
use std::ffi::OsStr;

/// Compares two names; runs of digits are compared as numbers of any size.
///
/// The order is total: names that differ only in leading zeros are ordered by their bytes.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (mut rest_a, mut rest_b) = (a.as_bytes(), b.as_bytes());
    loop {
        match (rest_a.split_first(), rest_b.split_first()) {
            (Some((x, tail_a)), Some((y, tail_b))) => {
                let order = if x.is_ascii_digit() && y.is_ascii_digit() {
                    compare_numbers(take_digits(&mut rest_a), take_digits(&mut rest_b))
                } else {
                    (rest_a, rest_b) = (tail_a, tail_b);
                    x.cmp(y)
                };
                if order.is_ne() {
                    return order;
                }
            }
            (None, None) => return a.cmp(b),
            (x, y) => return x.is_some().cmp(&y.is_some()),
        }
    }
}

/// Compares names in natural order; they need not be UTF-8.
pub(crate) fn compare_os(a: &OsStr, b: &OsStr) -> Ordering {
    compare(&a.to_string_lossy(), &b.to_string_lossy()).then_with(|| a.cmp(b))
}

/// Takes the digits at the front.
fn take_digits<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let end = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, tail) = rest.split_at(end);
    *rest = tail;
    digits
}

/// Compares two decimal numbers of any length.
fn compare_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (strip_zeros(a), strip_zeros(b));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// A number without its leading zeros.
fn strip_zeros(digits: &[u8]) -> &[u8] {
    let start = digits.iter().position(|b| *b != b'0').unwrap_or(digits.len());
    digits.split_at(start).1
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn numbers_are_ordered_by_value_and_the_rest_by_bytes() {
        let ordered = [
            "",
            "a",
            "model-00002-of-00010",
            "model-2-of-00010",
            "model-2-of-10",
            "model-10-of-10",
            "model-99999999999999999999998",
            "model-99999999999999999999999",
            "model.safetensors",
            "model_1",
            "é",
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a:?} {b:?}");
            }
        }
    }
}
