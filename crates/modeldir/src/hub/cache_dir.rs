//! The folder of the hub cache, by environment variables.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::{ErrorKind, Result};

/// The folder by the variables of an environment.
pub(super) fn from_variables(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let home = set("HOME").or_else(|| set("USERPROFILE"));
    let expanded = |name: &str| set(name).map(|value| expand(value, home.as_ref(), &set));
    for (name, below) in [("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""), ("HF_HOME", "hub")] {
        if let Some(folder) = expanded(name) {
            return Ok(if below.is_empty() { folder } else { folder.join(below) });
        }
    }
    let caches =
        expanded("XDG_CACHE_HOME").or_else(|| Some(Path::new(home.as_ref()?).join(".cache")));
    Ok(caches.ok_or(ErrorKind::NoHubCache)?.join("huggingface").join("hub"))
}

/// Expands `~` at the start and variables everywhere; unknown variables stay as they are.
fn expand(
    value: OsString,
    home: Option<&OsString>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> PathBuf {
    // A path that is not UTF-8 is used as it is.
    let Some(text) = value.to_str() else { return value.into() };
    let mut path = OsString::new();
    let mut rest = text;
    if let (Some(tail), Some(home)) = (text.strip_prefix('~'), home) {
        if tail.is_empty() || tail.starts_with('/') {
            path.push(home);
            rest = tail;
        }
    }
    while let Some((before, after)) = rest.split_once('$') {
        path.push(before);
        let (name, tail) = variable_name(after);
        match variable(name).filter(|_| !name.is_empty()) {
            Some(value) => path.push(value),
            None => {
                path.push("$");
                path.push(after.strip_suffix(tail).unwrap_or(after));
            }
        }
        rest = tail;
    }
    path.push(rest);
    path.into()
}

/// The name that follows a `$`, and the rest of the text.
fn variable_name(text: &str) -> (&str, &str) {
    if let Some((name, tail)) = text.strip_prefix('{').and_then(|text| text.split_once('}')) {
        return (name, tail);
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let tail = text.trim_start_matches(is_name);
    (text.strip_suffix(tail).unwrap_or(text), tail)
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "of small lists")]
mod tests {
    use std::path::{Path, PathBuf};

    use super::from_variables;
    use crate::{Error, ErrorKind, Result};

    fn cache_dir(variables: &[(&str, &str)]) -> Result<PathBuf> {
        from_variables(&|asked| {
            variables.iter().find(|(name, _)| *name == asked).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_first_variable_that_is_set_gives_the_cache() {
        let all = [
            ("HF_HUB_CACHE", "/1"),
            ("HUGGINGFACE_HUB_CACHE", "/2"),
            ("HF_HOME", "/3"),
            ("XDG_CACHE_HOME", "/4"),
            ("HOME", "/5"),
        ];
        let expected = ["/1", "/2", "/3/hub", "/4/huggingface/hub", "/5/.cache/huggingface/hub"];
        for (first, expected) in expected.into_iter().enumerate() {
            assert_eq!(cache_dir(&all[first..]).unwrap(), Path::new(expected));
        }
        let refused = cache_dir(&[("HF_HUB_CACHE", "")]).map_err(Error::into_kind);
        assert!(matches!(refused, Err(ErrorKind::NoHubCache)), "{refused:?}");
        assert_eq!(cache_dir(&[("HF_HOME", ""), ("HF_HUB_CACHE", "x")]).unwrap(), Path::new("x"));
    }

    #[test]
    fn home_and_variables_are_replaced() {
        for (value, expected) in [
            ("~", "/home/u"),
            ("~/hub", "/home/u/hub"),
            ("~other/hub", "~other/hub"),
            ("/x/~", "/x/~"),
            ("$DATA/hub", "/data/hub"),
            ("/a${DATA}b$DATA", "/a/datab/data"),
            ("$NONE/${NONE}/$DATAX", "$NONE/${NONE}/$DATAX"),
            ("a$", "a$"),
            ("$/${", "$/${"),
            ("${}x", "${}x"),
        ] {
            let variables = [("HF_HUB_CACHE", value), ("HOME", "/home/u"), ("DATA", "/data")];
            assert_eq!(cache_dir(&variables).unwrap(), Path::new(expected), "{value}");
        }
        let home = cache_dir(&[("HF_HOME", "~/hf"), ("USERPROFILE", "/u")]).unwrap();
        assert_eq!(home, Path::new("/u/hf/hub"));
    }
}
