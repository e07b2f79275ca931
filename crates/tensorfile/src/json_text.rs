//! The length of the part of a JSON string without escapes, found eight bytes at a time.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

/// The number of bytes before the first quote, backslash or control character.
#[must_use]
#[inline]
pub fn plain_len(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((word, after)) = rest.split_first_chunk() {
        let specials = specials(u64::from_le_bytes(*word));
        if specials != 0 {
            let before = bytes.len().wrapping_sub(rest.len());
            return before.wrapping_add(specials.trailing_zeros() as usize / 8);
        }
        rest = after;
    }
    let is_plain = |byte: &&u8| !matches!(byte, b'"' | b'\\' | 0..0x20);
    let tail = rest.iter().take_while(is_plain).count();
    bytes.len().wrapping_sub(rest.len()).wrapping_add(tail)
}

/// The top bit of the first of eight bytes that is a quote, a backslash or a control character;
/// bits above it mean nothing, and zero means none.
///
/// A byte is below `n`, for `n` up to 0x80, if subtracting `n` borrows into its top bit and the bit
/// was clear before. A borrow from a byte below one makes this wrong, but only above a byte found.
const fn specials(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = u64::from_le_bytes([0x80; 8]);
    const fn any_below(word: u64, n: u64) -> u64 {
        word.wrapping_sub(ONES.wrapping_mul(n)) & !word & TOPS
    }
    let quote = any_below(word ^ ONES.wrapping_mul(b'"' as u64), 1);
    let backslash = any_below(word ^ ONES.wrapping_mul(b'\\' as u64), 1);
    quote | backslash | any_below(word, 0x20)
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "the place is one of the text")]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::plain_len;

    #[test]
    fn every_byte_ends_a_text_or_does_not_at_every_place() {
        for byte in 0..=u8::MAX {
            let is_plain = !matches!(byte, b'"' | b'\\' | 0..0x20);
            for place in 0..20 {
                let mut text = [b'a'; 20];
                text[place] = byte;
                assert_eq!(
                    plain_len(&text),
                    if is_plain { 20 } else { place },
                    "{byte} at {place}"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_first_special_byte_is_found(bytes in vec(any::<u8>(), 0..40)) {
            let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
            let expected = bytes.iter().position(special).unwrap_or(bytes.len());
            prop_assert_eq!(plain_len(&bytes), expected);
        }
    }
}
