//! Recognises what people give in place of a path.

use std::path::{Path, PathBuf};

use crate::error::Given;
use crate::hub;

/// What a path looks like that does not exist.
pub(super) fn given(path: &Path) -> Option<Given> {
    let cached = |name: &str| hub::snapshot(name, "main").ok();
    looks_like(path.to_str()?, cached, Path::exists)
}

/// What this text looks like. `cached` finds a repository in the hub cache.
fn looks_like(
    text: &str,
    cached: impl Fn(&str) -> Option<PathBuf>,
    exists: impl Fn(&Path) -> bool,
) -> Option<Given> {
    let repository = |name: &str| Given::Repository { name: name.into(), snapshot: cached(name) };
    if let Some((scheme, rest)) = address(text) {
        let of_hub = match scheme {
            "hf" => repository_in(rest),
            "http" | "https" => rest.strip_prefix("huggingface.co/").and_then(repository_in),
            _ => None,
        };
        // What is not in the cache has to be downloaded, which nothing here does.
        let cached = of_hub.map(|name| repository(&name));
        let path = (scheme == "file").then(|| PathBuf::from(rest));
        let address = Given::Address { scheme: scheme.into(), path };
        return match cached {
            Some(found @ Given::Repository { snapshot: Some(_), .. }) => Some(found),
            _ => Some(address),
        };
    }
    let start = text.split('/').next().unwrap_or_default();
    if start.starts_with(['~', '$']) {
        return Some(Given::Unexpanded { start: start.into() });
    }
    match text.split_once('/') {
        // A folder of the first name, or a file name at the end, shows that a path was meant.
        Some((org, name)) if is_name(org) && is_name(name) => {
            (!exists(Path::new(org)) && !has_file_ending(name)).then(|| repository(text))
        }
        None if is_name(text) => cached(text).map(|_| repository(text)),
        _ => None,
    }
}

/// The scheme of an address and the rest.
fn address(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_plain);
    is_scheme.then_some((scheme, rest))
}

/// The repository in an address of the hub.
fn repository_in(rest: &str) -> Option<String> {
    let mut parts = rest.split('/');
    let (org, name) = (parts.next()?, parts.next()?);
    (is_name(org) && is_name(name)).then(|| format!("{org}/{name}"))
}

/// Whether a text may be the name of a repository, or of who owns one.
fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && !text.starts_with(['.', '-']) && text.chars().all(is_plain)
}

/// Whether a name ends like that of a file: `Llama-3.1` does not.
fn has_file_ending(name: &str) -> bool {
    const ENDINGS: [&str; 4] = ["safetensors", "json", "bin", "gguf"];
    let extension = Path::new(name).extension().unwrap_or_default();
    ENDINGS.iter().any(|ending| extension.eq_ignore_ascii_case(ending))
}

#[cfg(test)]
mod tests {
    use super::looks_like;
    use crate::error::Given;
    use std::path::{Path, PathBuf};

    fn found(text: &str) -> Option<Given> {
        let cached = |name: &str| {
            ["org/cached", "gpt2"].contains(&name).then(|| PathBuf::from("/cache").join(name))
        };
        looks_like(text, cached, |path| path == Path::new("models"))
    }

    #[test]
    fn addresses_repositories_and_unexpanded_starts_are_told() {
        let address = |scheme: &str, path: Option<&str>| {
            Some(Given::Address { scheme: scheme.into(), path: path.map(PathBuf::from) })
        };
        let repository = |name: &str, snapshot: Option<&str>| {
            let snapshot = snapshot.map(PathBuf::from);
            Some(Given::Repository { name: name.into(), snapshot })
        };
        let unexpanded = |start: &str| Some(Given::Unexpanded { start: start.into() });
        for (text, expected) in [
            ("s3://bucket/model", address("s3", None)),
            ("gs://bucket/model", address("gs", None)),
            ("file:///m/x", address("file", Some("/m/x"))),
            ("hf://org/absent", address("hf", None)),
            ("hf://org/cached", repository("org/cached", Some("/cache/org/cached"))),
            (
                "https://huggingface.co/org/cached/tree/main",
                repository("org/cached", Some("/cache/org/cached")),
            ),
            ("https://example.org/x", address("https", None)),
            ("org/cached", repository("org/cached", Some("/cache/org/cached"))),
            ("org/Example-1.5B", repository("org/Example-1.5B", None)),
            ("gpt2", repository("gpt2", Some("/cache/gpt2"))),
            ("~/model", unexpanded("~")),
            ("~user/model", unexpanded("~user")),
            ("$HOME/model", unexpanded("$HOME")),
            ("nothing", None),
            ("models/absent", None),
            ("org/model.safetensors", None),
            ("no/such/model", None),
            ("./model", None),
            ("/absolute/model", None),
            ("a b/c", None),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }
}
