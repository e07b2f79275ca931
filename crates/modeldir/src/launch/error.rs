//! Why the environment does not say which rank a process is.

use tensorfile::Quoted;

use super::Launcher;

/// Why the environment, or a text, does not say which rank this process is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A launcher has set one of the two variables that make a rank.
    #[error("{variable}={} is set and {unset} is not; {launcher} sets both", Quoted(value))]
    HalfSet {
        /// The variable that is set.
        variable: &'static str,
        /// Its value.
        value: Box<str>,
        /// The variable that is not set.
        unset: &'static str,
        /// The launcher that sets both.
        launcher: Launcher,
    },
    /// A variable of a launcher does not hold a number.
    #[error("{variable}={}: not a whole number", Quoted(value))]
    NotANumber {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: Box<str>,
    },
    /// Rank and size do not go together.
    #[error("{}={}, {}={}: {reason}", names[0], numbers[0], names[1], numbers[1])]
    Impossible {
        /// What each number is.
        names: [&'static str; 2],
        /// The numbers.
        numbers: [usize; 2],
        /// What is wrong with them.
        reason: &'static str,
    },
    /// A text is not a rank and the number of ranks.
    #[error("{}: expected a rank and how many there are, such as 0/4", Quoted(text))]
    NotARank {
        /// The text.
        text: Box<str>,
    },
}
