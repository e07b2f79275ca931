//! `Limit`: a limit that was exceeded.

use std::fmt;

use crate::format::LONGEST_HEADER_BYTES;

/// An exceeded limit, in a file that is read or one to be written.
///
/// ```
/// use tensorfile::{Limit, LimitOn};
///
/// let option = Some("HeaderOptions::max_tensors");
/// let limit = Limit { what: LimitOn::Tensors, limit: 2, found: 4, option };
/// let says = "4 tensors, the limit is 2 (HeaderOptions::max_tensors raises it)";
/// assert_eq!(limit.to_string(), says);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What is limited.
    pub what: LimitOn,
    /// The limit.
    pub limit: u64,
    /// The actual number.
    pub found: u64,
    /// The option that raises the limit, as `Type::field`, or that makes a saved file smaller;
    /// `None` if there is none.
    pub option: Option<&'static str>,
}

/// What a limit applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitOn {
    /// The bytes of a header.
    HeaderBytes,
    /// The tensors of a file.
    Tensors,
    /// The bytes of a tensor's name.
    NameBytes,
    /// The dimensions of a shape.
    Dimensions,
    /// The shards of a model.
    Shards,
    /// The bytes of a file read as a whole.
    FileBytes,
}

impl Limit {
    /// Fails if the limit is exceeded.
    ///
    /// # Errors
    ///
    /// The exceeded limit.
    pub fn check(what: LimitOn, found: u64, limit: u64, option: &'static str) -> Result<(), Self> {
        if found <= limit { Ok(()) } else { Err(Self { what, limit, found, option: Some(option) }) }
    }

    /// Fails if a header exceeds this limit, which the option raises, or the limit of the format.
    pub(crate) fn check_header(found: u64, max: u64, option: &'static str) -> Result<(), Self> {
        Self::check(LimitOn::HeaderBytes, found, max.min(LONGEST_HEADER_BYTES), option).map_err(
            |limit| match limit.limit {
                LONGEST_HEADER_BYTES => Self { option: None, ..limit },
                _ => limit,
            },
        )
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, limit, found, option } = self;
        match what {
            LimitOn::HeaderBytes => write!(f, "header of {found} bytes")?,
            LimitOn::NameBytes => write!(f, "name of {found} bytes")?,
            LimitOn::FileBytes => write!(f, "{found} bytes")?,
            what => write!(f, "{found} {what}")?,
        }
        write!(f, ", the limit is {limit}")?;
        match option {
            Some(option) if option.starts_with("SaveOptions") => {
                write!(f, " (a smaller {option} avoids it)")
            }
            Some(option) => write!(f, " ({option} raises it)"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for LimitOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HeaderBytes => "header bytes",
            Self::Tensors => "tensors",
            Self::NameBytes => "name bytes",
            Self::Dimensions => "dimensions",
            Self::Shards => "shards",
            Self::FileBytes => "file bytes",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Limit, LimitOn};

    #[test]
    fn a_limit_says_what_it_is_on_and_what_raises_it() {
        let cases = [
            (LimitOn::HeaderBytes, "header of 3 bytes, the limit is 2"),
            (LimitOn::Tensors, "3 tensors, the limit is 2"),
            (LimitOn::NameBytes, "name of 3 bytes, the limit is 2"),
            (LimitOn::Dimensions, "3 dimensions, the limit is 2"),
            (LimitOn::Shards, "3 shards, the limit is 2"),
            (LimitOn::FileBytes, "3 bytes, the limit is 2"),
        ];
        for (what, says) in cases {
            let fixed = Limit { what, limit: 2, found: 3, option: None };
            assert_eq!(fixed.to_string(), says);
            let raised = Limit::check(what, 3, 2, "Options::max").unwrap_err();
            assert_eq!(raised.to_string(), format!("{says} (Options::max raises it)"));
            assert_eq!(Limit::check(what, 2, 2, "Options::max"), Ok(()));
        }
    }
}
