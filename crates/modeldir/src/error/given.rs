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
                write!(f, "no such file; it looks like a repository of the hub ({name}): ")?;
                f.write_str("hub::snapshot finds it in the cache, ")?;
                match snapshot {
                    Some(path) => write!(f, "at {}", PathText(path)),
                    None => f.write_str("where it is not yet"),
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

#[cfg(test)]
mod tests {
    use super::Given;
    use std::path::PathBuf;

    #[test]
    fn messages_say_what_was_given_and_what_would_do() {
        let repository = |snapshot: Option<&str>| Given::Repository {
            name: "org/name".into(),
            snapshot: snapshot.map(PathBuf::from),
        };
        let address = |scheme: &str, path: Option<&str>| Given::Address {
            scheme: scheme.into(),
            path: path.map(PathBuf::from),
        };
        for (given, says) in [
            (repository(None), "finds it in the cache, where it is not yet"),
            (repository(Some("/c/1")), "a repository of the hub (\"org/name\"): hub::snapshot"),
            (repository(Some("/c/1")), "in the cache, at /c/1"),
            (address("s3", None), "addresses are not read, only local paths"),
            (address("file", Some("/m")), "only local paths; the path in it is /m"),
            (Given::Unexpanded { start: "~".into() }, "the shell did not expand \"~\""),
        ] {
            assert!(given.to_string().contains(says), "{given}");
        }
    }
}
