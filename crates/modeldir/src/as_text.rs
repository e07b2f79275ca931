//! How paths and times are serialised: paths as text, with what is not UTF-8 replaced.

use std::path::Path;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// A path as text.
struct Text<'a>(&'a Path);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string_lossy())
    }
}

pub(crate) fn path<S: Serializer>(path: impl AsRef<Path>, to: S) -> Result<S::Ok, S::Error> {
    Text(path.as_ref()).serialize(to)
}

pub(crate) fn optional_path<S: Serializer>(
    path: &Option<impl AsRef<Path>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| Text(path.as_ref())).serialize(to)
}

pub(crate) fn paths<S: Serializer>(paths: &[impl AsRef<Path>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| Text(path.as_ref())))
}

/// Lengths with the paths that they are of, as objects with `shard` and `bytes`.
pub(crate) fn shard_bytes<S: Serializer>(
    lens: &[(impl AsRef<Path>, u64)],
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Entry<'a> {
        shard: Text<'a>,
        bytes: u64,
    }
    let entry = |(path, bytes)| Entry { shard: Text(AsRef::as_ref(path)), bytes };
    to.collect_seq(lens.iter().map(|(path, bytes)| entry((path, *bytes))))
}

/// What is only ever shown, as its text.
pub(crate) fn shown<S: Serializer>(values: &[impl ToString], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(values.iter().map(ToString::to_string))
}

pub(crate) fn seconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64())
}
