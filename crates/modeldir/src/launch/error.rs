//! The errors of reading a rank from the environment.

use std::fmt;

use tensorfile::Quoted;

use super::launcher::Launcher;

/// Why the environment does not give the rank of this process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A launcher has set only one of rank and size.
    #[error("{variable}={} is set and {unset} is not; {launcher} sets both", Quoted(value))]
    HalfSet {
        /// The variable that is set.
        variable: &'static str,
        /// The value of the variable.
        value: Box<str>,
        /// The variable that is not set.
        unset: &'static str,
        /// The launcher that sets both.
        launcher: Launcher,
    },
    /// A launcher has set a rank, and has no variable for the size.
    #[error(
        "{variable}={} is set, and {launcher} states no size: give rank and size",
        Quoted(value)
    )]
    NoSize {
        /// The variable that is set.
        variable: &'static str,
        /// The value of the variable.
        value: Box<str>,
        /// The launcher.
        launcher: Launcher,
    },
    /// Two launchers have set different ranks or sizes, and nothing shows whose are those of this
    /// process.
    #[error(
        "{} of {} contradict {} of {}: unset one pair, or give rank and size",
        Pair(*variables, *numbers), launchers[0], Pair(*other_variables, *other_numbers), launchers[1]
    )]
    Contradiction {
        /// The launchers.
        launchers: [Launcher; 2],
        /// The variables for rank and size of the first launcher.
        variables: [&'static str; 2],
        /// Rank and size of the first launcher.
        numbers: [usize; 2],
        /// The variables for rank and size of the second launcher.
        other_variables: [&'static str; 2],
        /// Rank and size of the second launcher.
        other_numbers: [usize; 2],
    },
    /// A variable of a launcher is not a number.
    #[error("{variable}={}: not a whole number", Quoted(value))]
    NotANumber {
        /// The variable.
        variable: &'static str,
        /// The value of the variable.
        value: Box<str>,
    },
    /// Two numbers contradict each other, such as a rank that is not less than the size.
    #[error("{}={}, {}={}: {reason}", names[0], numbers[0], names[1], numbers[1])]
    Impossible {
        /// The names of the numbers.
        names: [&'static str; 2],
        /// The numbers.
        numbers: [usize; 2],
        /// What is wrong with them.
        reason: &'static str,
    },
}

/// Displays the variables for rank and size with their numbers.
struct Pair([&'static str; 2], [usize; 2]);

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([rank, size], numbers) = self;
        write!(f, "{rank}={} and {size}={}", numbers[0], numbers[1])
    }
}
