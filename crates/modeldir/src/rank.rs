//! `Rank`: a rank and the number of ranks.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tensorfile::Quoted;

/// A rank and the number of ranks: of processes in a job, stages in a pipeline, or groups.
///
/// Ranks are counted from 0. The text form is `rank/size`: `1/4` is the second of four.
///
/// ```
/// use modeldir::Rank;
///
/// let rank: Rank = "3/4".parse()?;
/// assert_eq!(rank, Rank::new(3, 4)?);
/// assert_eq!(Rank::new(4, 4).unwrap_err().to_string(),
///     "rank=4, size=4: a rank is from 0 to one less than the size");
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rank {
    rank: usize,
    size: usize,
}

/// Why two numbers or a text are not a rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RankError {
    /// The rank is not less than the number of ranks.
    #[error("rank={rank}, size={size}: a rank is from 0 to one less than the size")]
    NoSuchRank {
        /// The rank, counted from 0.
        rank: usize,
        /// The number of ranks.
        size: usize,
    },
    /// The text does not have the form `rank/size`.
    #[error("{}: expected rank/size, such as 0/4", Quoted(text))]
    NotARank {
        /// The text.
        text: Box<str>,
    },
}

impl Rank {
    /// The only rank.
    pub const ONLY: Self = Self { rank: 0, size: 1 };

    /// Rank `rank` of `size`, counted from 0.
    ///
    /// # Errors
    ///
    /// [`RankError::NoSuchRank`] if `rank` is not less than `size`.
    pub const fn new(rank: usize, size: usize) -> Result<Self, RankError> {
        if rank < size {
            Ok(Self { rank, size })
        } else {
            Err(RankError::NoSuchRank { rank, size })
        }
    }

    /// The rank, counted from 0.
    #[must_use]
    pub const fn rank(self) -> usize {
        self.rank
    }

    /// The number of ranks.
    #[must_use]
    pub const fn size(self) -> usize {
        self.size
    }

    /// All ranks of `size`, in order.
    pub fn all(size: usize) -> impl ExactSizeIterator<Item = Self> + Clone {
        (0..size).map(move |rank| Self { rank, size })
    }

    /// The group of this rank and its rank within the group, for groups of consecutive ranks;
    /// `None` if `group_size` does not divide the size.
    pub(crate) fn split(self, group_size: usize) -> Option<(Self, Self)> {
        let groups = self.size.checked_div(group_size)?;
        let group = Self { rank: self.rank.checked_div(group_size)?, size: groups };
        let within = Self { rank: self.rank.checked_rem(group_size)?, size: group_size };
        (groups.checked_mul(group_size) == Some(self.size)).then_some((group, within))
    }

    /// The range of this rank in `count` items: all ranks get equally many, or the first ranks one
    /// more.
    pub(crate) fn share(self, count: usize) -> Range<usize> {
        // A size is never 0, and no end is beyond `count`.
        let each = count.checked_div(self.size).unwrap_or(0);
        let more = count.checked_rem(self.size).unwrap_or(0);
        let start = |rank: usize| each.saturating_mul(rank).saturating_add(rank.min(more));
        start(self.rank)..start(self.rank.saturating_add(1))
    }
}

/// Writes `1/4`.
impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.rank, self.size)
    }
}

/// Reads `1/4`.
impl FromStr for Rank {
    type Err = RankError;

    fn from_str(text: &str) -> Result<Self, RankError> {
        let numbers = text.split_once('/').and_then(|(rank, size)| {
            Some((rank.parse::<usize>().ok()?, size.parse::<usize>().ok()?))
        });
        let (rank, size) = numbers.ok_or_else(|| RankError::NotARank { text: text.into() })?;
        Self::new(rank, size)
    }
}

impl TryFrom<String> for Rank {
    type Error = RankError;

    fn try_from(text: String) -> Result<Self, RankError> {
        text.parse()
    }
}

impl From<Rank> for String {
    fn from(rank: Rank) -> Self {
        rank.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{Rank, RankError};

    #[test]
    fn ranks_that_do_not_exist_are_refused() {
        for (rank, size) in [(4, 4), (2, 2), (0, 0), (usize::MAX, 1)] {
            let error = Rank::new(rank, size).unwrap_err();
            assert_eq!(error, RankError::NoSuchRank { rank, size });
            let expected = format!("rank={rank}, size={size}: ");
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
        for text in ["", "1", "1/", "a/2", "-1/2", "1/2/3"] {
            let error = text.parse::<Rank>().unwrap_err();
            assert_eq!(error, RankError::NotARank { text: text.into() });
        }
    }

    #[test]
    fn a_rank_is_read_as_it_was_written() {
        for rank in Rank::all(3) {
            assert_eq!(rank.to_string().parse(), Ok(rank));
            let json = serde_json::to_string(&rank).unwrap();
            assert_eq!(serde_json::from_str::<Rank>(&json).unwrap(), rank);
        }
        assert_eq!(serde_json::to_string(&Rank::ONLY).unwrap(), r#""0/1""#);
    }

    #[test]
    fn groups_are_of_neighbours() {
        let split = |rank, size, group_size| {
            let split = Rank::new(rank, size).unwrap().split(group_size);
            split.map(|(group, within)| format!("{group} {within}"))
        };
        assert_eq!(split(4, 6, 3).as_deref(), Some("1/2 1/3"));
        assert_eq!(split(5, 6, 1).as_deref(), Some("5/6 0/1"));
        assert_eq!(split(5, 6, 6).as_deref(), Some("0/1 5/6"));
        for group_size in [0, 4, 7] {
            assert_eq!(split(0, 6, group_size), None);
        }
    }

    #[test]
    fn the_first_ranks_get_what_is_over() {
        let shares: Vec<_> = Rank::all(3).map(|rank| rank.share(8)).collect();
        assert_eq!(shares, [0..3, 3..6, 6..8]);
        assert_eq!(Rank::new(2, 3).unwrap().share(1), 1..1);
    }
}
