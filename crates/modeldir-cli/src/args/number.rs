//! The syntax of a number of ranks or threads on the command line.

use std::num::NonZeroUsize;

/// Parses a whole number from 1.
///
/// # Errors
///
/// If it is anything else.
pub(crate) fn parse_number(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a whole number from 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_number;

    #[test]
    fn numbers_start_at_one() {
        assert_eq!(parse_number("12").unwrap().get(), 12);
        for text in ["", "0", "-1", "1.5", "two", "99999999999999999999999"] {
            assert!(parse_number(text).unwrap_err().contains("from 1"), "{text}");
        }
    }
}
