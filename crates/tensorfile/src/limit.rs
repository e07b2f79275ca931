//! `Limit`: a limit that was exceeded, and what would help.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::fmt;

use crate::format::LONGEST_HEADER_BYTES;

/// An exceeded limit, in a file that is read or one to be written.
///
/// ```
/// use tensorfile::{Limit, LimitOn, Remedy};
///
/// let remedy = Some(Remedy::Raise("HeaderOptions::max_tensors"));
/// let limit = Limit { what: LimitOn::Tensors, limit: 2, found: 4, remedy };
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
    /// What would help; `None` if the limit is fixed.
    pub remedy: Option<Remedy>,
}

/// The option that helps against an exceeded limit, as `Type::field`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// This option is the limit: a greater value raises it.
    Raise(&'static str),
    /// A smaller value of this option keeps within the limit.
    Lower(&'static str),
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
    /// Fails if the limit, which this option raises, is exceeded.
    ///
    /// # Errors
    ///
    /// The exceeded limit.
    pub fn check(what: LimitOn, found: u64, limit: u64, option: &'static str) -> Result<(), Self> {
        let remedy = Some(Remedy::Raise(option));
        if found <= limit { Ok(()) } else { Err(Self { what, limit, found, remedy }) }
    }

    /// Fails if a header exceeds this limit, which the option raises, or the limit of the format.
    pub(crate) fn check_header(found: u64, max: u64, option: &'static str) -> Result<(), Self> {
        Self::check(LimitOn::HeaderBytes, found, max.min(LONGEST_HEADER_BYTES), option).map_err(
            |limit| match limit.limit {
                LONGEST_HEADER_BYTES => Self { remedy: None, ..limit },
                _ => limit,
            },
        )
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, limit, found, remedy } = self;
        match what {
            LimitOn::HeaderBytes => write!(f, "header of {found} bytes")?,
            LimitOn::NameBytes => write!(f, "name of {found} bytes")?,
            LimitOn::FileBytes => write!(f, "{found} bytes")?,
            what => write!(f, "{found} {what}")?,
        }
        write!(f, ", the limit is {limit}")?;
        match remedy {
            Some(remedy) => write!(f, " ({remedy})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raise(option) => write!(f, "{option} raises it"),
            Self::Lower(option) => write!(f, "a smaller {option} avoids it"),
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
    use super::{Limit, LimitOn, Remedy};

    #[test]
    fn a_limit_says_what_it_is_on_and_what_helps() {
        let cases = [
            (LimitOn::HeaderBytes, "header of 3 bytes, the limit is 2"),
            (LimitOn::Tensors, "3 tensors, the limit is 2"),
            (LimitOn::NameBytes, "name of 3 bytes, the limit is 2"),
            (LimitOn::Dimensions, "3 dimensions, the limit is 2"),
            (LimitOn::Shards, "3 shards, the limit is 2"),
            (LimitOn::FileBytes, "3 bytes, the limit is 2"),
        ];
        for (what, says) in cases {
            let fixed = Limit { what, limit: 2, found: 3, remedy: None };
            assert_eq!(fixed.to_string(), says);
            let divided = Limit { remedy: Some(Remedy::Lower("Options::shard")), ..fixed };
            assert_eq!(divided.to_string(), format!("{says} (a smaller Options::shard avoids it)"));
            let raised = Limit::check(what, 3, 2, "Options::max").unwrap_err();
            assert_eq!(raised.to_string(), format!("{says} (Options::max raises it)"));
            assert_eq!(Limit::check(what, 2, 2, "Options::max"), Ok(()));
        }
    }
}
