//! The errors of reading a rank from the environment.

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
