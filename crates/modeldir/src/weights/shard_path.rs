//! Checks of shard paths: relative, below the model's folder, and the same on every system.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::borrow::Cow;

/// The extension of every shard.
pub(crate) const EXTENSION: &str = ".safetensors";

/// The longest path accepted, in bytes: the limit of Linux.
const MAX_BYTES: usize = 4096;

/// Returns the path of a shard with `/` between its parts and no `.` part, judged by its text only.
///
/// Links may lead anywhere, as the snapshots of the hub cache do; the text may not. A path refused
/// by one system, or with another meaning there, as `C:x` and `a\b` on Windows, is refused on all.
///
/// # Errors
///
/// What is wrong with the path, as the end of a sentence about it.
pub(crate) fn normalise(value: &str) -> Result<Cow<'_, str>, &'static str> {
    let path = relative(value)?;
    if path.ends_with(EXTENSION) {
        return Ok(path);
    }
    let legacy = [".bin", ".pt", ".pth", ".ckpt"];
    Err(if legacy.iter().any(|extension| path.ends_with(extension)) {
        "it is a PyTorch file, and those are not read; an index of .safetensors files is needed"
    } else {
        "it does not end in .safetensors"
    })
}

/// Returns a relative path with `/` between its parts and no `.` part, whatever its ending.
///
/// # Errors
///
/// The errors of [`normalise`], except that of the ending.
pub(crate) fn relative(value: &str) -> Result<Cow<'_, str>, &'static str> {
    if value.is_empty() {
        return Err("it is empty");
    }
    if value.len() > MAX_BYTES {
        return Err("it is longer than the 4,096 bytes that a path may have");
    }
    if value.chars().any(char::is_control) {
        return Err("it holds a NUL or another control character");
    }
    if value.contains('\\') {
        return Err("it holds a backslash");
    }
    if value.contains(':') {
        return Err("it holds a colon, as drives and URLs do");
    }
    if value.starts_with('/') {
        return Err("it is absolute, and must be relative to the model's folder");
    }
    if value.ends_with('/') {
        return Err("it ends in a slash and names no file");
    }
    // Windows drops dots and spaces at the end of a part, so `.. ` is `..` there.
    let leaves = |part: &str| part.len() > 1 && part.trim_end_matches([' ', '.']).is_empty();
    if value.split('/').any(leaves) {
        return Err("it holds a part of dots and would leave the model's folder");
    }
    let is_idle = |part: &str| part.is_empty() || part == ".";
    if !value.split('/').any(is_idle) {
        return Ok(Cow::Borrowed(value));
    }
    let parts: Vec<&str> = value.split('/').filter(|part| !is_idle(part)).collect();
    if parts.is_empty() || value.ends_with("/.") {
        return Err("it names no file");
    }
    Ok(Cow::Owned(parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::normalise;

    #[test]
    fn relative_paths_are_accepted_and_brought_to_one_form() {
        for (value, expected) in [
            ("model.safetensors", "model.safetensors"),
            ("sub/a/model.safetensors", "sub/a/model.safetensors"),
            ("./model.safetensors", "model.safetensors"),
            ("././a/./b//c.safetensors", "a/b/c.safetensors"),
            ("..model.safetensors", "..model.safetensors"),
            ("a..b/c...safetensors", "a..b/c...safetensors"),
            ("model 1 é 測.safetensors", "model 1 é 測.safetensors"),
            ("~/model.safetensors", "~/model.safetensors"),
            ("$HOME.safetensors", "$HOME.safetensors"),
            (".hidden.safetensors", ".hidden.safetensors"),
        ] {
            assert_eq!(normalise(value).as_deref(), Ok(expected), "{value:?}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_its_reason() {
        for (value, reason) in [
            ("", "empty"),
            (".", "names no file"),
            ("./", "slash"),
            ("./.", "names no file"),
            ("a.safetensors/.", "names no file"),
            ("a.safetensors/", "slash"),
            ("..", "dots"),
            ("../x.safetensors", "dots"),
            ("a/../x.safetensors", "dots"),
            ("a/.. /x.safetensors", "dots"),
            ("a/.../x.safetensors", "dots"),
            (" /../x.safetensors", "dots"),
            ("/x.safetensors", "absolute"),
            ("//server/x.safetensors", "absolute"),
            ("\\\\server\\x.safetensors", "backslash"),
            ("..\\x.safetensors", "backslash"),
            ("C:x.safetensors", "colon"),
            ("c:/x.safetensors", "colon"),
            ("https://host/x.safetensors", "colon"),
            ("model.safetensors:stream.safetensors", "colon"),
            ("a\0.safetensors", "control"),
            ("a\n.safetensors", "control"),
            ("a\u{85}.safetensors", "control"),
            ("pytorch_model-00001-of-00002.bin", "PyTorch"),
            ("model.gguf", "does not end"),
            ("model.SAFETENSORS", "does not end"),
            ("model.safetensors ", "does not end"),
            ("safetensors", "does not end"),
        ] {
            let refused = normalise(value).expect_err(value);
            assert!(refused.contains(reason), "{value:?}: {refused}");
        }
    }

    #[test]
    fn a_path_is_no_longer_than_systems_have_it() {
        let of_len = |len: usize| format!("{}.safetensors", "x".repeat(len - 12));
        assert!(normalise(&of_len(4096)).is_ok());
        let refused = normalise(&of_len(4097)).unwrap_err();
        assert!(refused.contains("longer"), "{refused}");
    }
}
