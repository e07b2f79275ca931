//! What was given in place of a path.

use std::fmt;
use std::path::PathBuf;

use tensorfile::{PathText, Quoted};

/// What a path looks like that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Given {
    /// An address such as `s3://bucket/model`.
    Address {
        /// What precedes `://`.
        scheme: Box<str>,
        /// The path in the address, for `file://`.
        path: Option<PathBuf>,
    },
    /// A repository of the hub, such as `org/name`, or its address.
    Repository {
        /// The repository.
        name: Box<str>,
        /// Its revision `main` in the hub cache, if it is there.
        snapshot: Option<PathBuf>,
    },
    /// A path with `~` or a variable at its start, which a shell replaces if it is not quoted.
    Unexpanded {
        /// What was not replaced.
        start: Box<str>,
    },
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { scheme, path } => {
                let scheme = Quoted(scheme);
                write!(f, "is an address ({scheme}): addresses are not read, only local paths")?;
                match path {
                    Some(path) => write!(f, "; the path in it is {}", PathText(path)),
                    None => Ok(()),
                }
            }
            Self::Repository { name, snapshot } => {
                let name = Quoted(name);
                write!(f, "no such file; it looks like the repository {name} of the hub: ")?;
                match snapshot {
                    Some(path) => {
                        write!(f, "hub::snapshot finds it in the cache, at {}", PathText(path))
                    }
                    None => f.write_str("hub::snapshot finds one in the cache, where it is not"),
                }
            }
            Self::Unexpanded { start } => write!(
                f,
                "no such file; the shell did not expand {}, as it does without quotes",
                Quoted(start)
            ),
        }
    }
}
