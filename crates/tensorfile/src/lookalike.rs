//! The kind of a file that is not safetensors, by its first bytes.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::fmt;

/// The number of first bytes needed; a Git LFS pointer is shorter.
pub(crate) const SNIFF_LEN: usize = 512;

/// A Git LFS pointer: the placeholder of a file not yet downloaded.
///
/// ```
/// let text = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
/// let pointer = tensorfile::LfsPointer::parse(text).expect("a pointer");
/// assert_eq!((&*pointer.oid, pointer.byte_len), ("4d7a", 12345));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LfsPointer {
    /// SHA-256 of the actual file, in hexadecimal, as the pointer gives it.
    pub oid: Box<str>,
    /// Length of the actual file in bytes.
    pub byte_len: u64,
}

impl LfsPointer {
    /// Parses a Git LFS pointer from a file's first bytes; the hash must be hexadecimal, because
    /// messages print it unescaped.
    #[must_use]
    pub fn parse(first: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(first.get(..SNIFF_LEN).unwrap_or(first)).ok()?;
        let lines = text.lines().map(|line| line.split_once(' ').unwrap_or((line, "")));
        let value = |key| lines.clone().find(|(found, _)| *found == key).map(|(_, value)| value);
        let version = lines.clone().next().filter(|(key, _)| *key == "version")?.1;
        if !["https://git-lfs", "https://hawser"].iter().any(|known| version.starts_with(known)) {
            return None;
        }
        let oid = value("oid")?.strip_prefix("sha256:")?.trim_end();
        let is_sum = oid.len() <= 64 && oid.bytes().all(|byte| byte.is_ascii_hexdigit());
        let byte_len = value("size")?.trim_end().parse().ok()?;
        is_sum.then(|| Self { oid: oid.into(), byte_len })
    }
}

/// What a file that is not safetensors looks like, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lookalike {
    /// A zip archive, as PyTorch checkpoints since 1.6.
    Zip,
    /// A Python pickle, as older PyTorch checkpoints.
    Pickle,
    /// A GGUF model.
    Gguf,
    /// An HDF5 file, as Keras weights.
    Hdf5,
    /// A gzip stream.
    Gzip,
    /// HTML, such as an error page saved under the file's name.
    Html,
    /// JSON, such as an error response saved under the file's name.
    Json,
    /// An AppleDouble side-car (`._name`).
    AppleDouble,
    /// Other text.
    Text,
    /// None of these.
    Unknown,
}

impl fmt::Display for Lookalike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zip => "a zip archive (a PyTorch checkpoint?)",
            Self::Pickle => "a Python pickle (an old PyTorch checkpoint?)",
            Self::Gguf => "a GGUF model",
            Self::Hdf5 => "an HDF5 file",
            Self::Gzip => "a gzip stream",
            Self::Html => "a web page (a failed download?)",
            Self::Json => "JSON text (an error answer saved as a file?)",
            Self::AppleDouble => "an AppleDouble side-car of macOS",
            Self::Text => "text",
            Self::Unknown => "nothing known",
        })
    }
}

impl Lookalike {
    /// The kind of a file with these first bytes, of which 512 are enough.
    #[must_use]
    pub fn of(first: &[u8]) -> Self {
        let first = first.get(..SNIFF_LEN).unwrap_or(first);
        match first {
            // A little-endian length below 4 GiB, then JSON: a broken safetensors file.
            [_, _, _, _, 0, 0, 0, 0, b'{' | b'[' | b' ', ..] => Self::Unknown,
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Self::Zip,
            [b'G', b'G', b'U', b'F', ..] => Self::Gguf,
            [0x89, b'H', b'D', b'F', b'\r', b'\n', 0x1a, b'\n', ..] => Self::Hdf5,
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            [0, 5, 0x16, 7, ..] => Self::AppleDouble,
            // Protocol 2 to 5, then an opcode that begins a frame, a number, a global or a container.
            [0x80, 2..=5, 0x8a | 0x95 | b'c' | b'X' | b'(' | b')' | b'}' | b']', ..] => {
                Self::Pickle
            }
            _ => Self::of_text(first),
        }
    }

    fn of_text(first: &[u8]) -> Self {
        let text = match std::str::from_utf8(first) {
            Ok(text) => text,
            // The last character may be incomplete.
            Err(error) if error.error_len().is_none() => {
                let valid = first.get(..error.valid_up_to()).unwrap_or_default();
                std::str::from_utf8(valid).unwrap_or_default()
            }
            Err(_) => return Self::Unknown,
        };
        if text.is_empty() || text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
            return Self::Unknown;
        }
        match text.trim_start_matches('\u{feff}').trim_start().as_bytes() {
            [b'<', ..] => Self::Html,
            [b'{' | b'[', ..] => Self::Json,
            _ => Self::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LfsPointer, Lookalike};

    const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n\
        oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

    #[test]
    fn known_kinds_are_told_by_their_first_bytes() {
        let cases: [(&[u8], Lookalike); 20] = [
            (b"PK\x05\x06\0\0", Lookalike::Zip),
            // Header lengths that begin as a zip does: 19280, and 19280 with more bytes in it.
            (b"PK\0\0\0\0\0\0x", Lookalike::Unknown),
            (b"PK\x01\x02\0\0\0\0x", Lookalike::Unknown),
            (b"PK\x03\x04\x14\x00", Lookalike::Zip),
            (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9", Lookalike::Pickle),
            (b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}", Lookalike::Pickle),
            (b"GGUF\x03\x00\x00\x00", Lookalike::Gguf),
            (b"\x89HDF\r\n\x1a\n", Lookalike::Hdf5),
            (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", Lookalike::Gzip),
            (b"\x00\x05\x16\x07\x00\x02\x00\x00", Lookalike::AppleDouble),
            (b"\n <!DOCTYPE html><html>", Lookalike::Html),
            (b"<?xml version=\"1.0\"?><Error>", Lookalike::Html),
            (b"{\"error\":\"Entry not found\"}", Lookalike::Json),
            (b"\xef\xbb\xbf[1]", Lookalike::Json),
            (b"Entry not found", Lookalike::Text),
            ("Repository non trouvé".as_bytes(), Lookalike::Text),
            (b"", Lookalike::Unknown),
            (&[0xff; 64], Lookalike::Unknown),
            (&[0; 64], Lookalike::Unknown),
            // A header length that happens to begin like a pickle or a gzip stream.
            (b"\x80\x02}\x00\x00\x00\x00\x00{\"w\":", Lookalike::Unknown),
        ];
        for (first, expected) in cases {
            assert_eq!(Lookalike::of(first), expected, "{first:?}");
        }
    }

    #[test]
    fn a_character_cut_at_the_end_is_still_text() {
        assert_eq!(Lookalike::of(b"trouv\xc3"), Lookalike::Text);
        assert_eq!(Lookalike::of("é".repeat(300).as_bytes()), Lookalike::Text);
        assert_eq!(Lookalike::of(b"trouv\xc3\n"), Lookalike::Unknown);
    }

    #[test]
    fn a_sum_of_other_characters_is_no_pointer() {
        for sum in ["4d7a\u{1b}[31m", "4d7a 2146", "g", &"0".repeat(65)] {
            let text =
                format!("version https://git-lfs.github.com/spec/v1\noid sha256:{sum}\nsize 5\n");
            assert_eq!(LfsPointer::parse(text.as_bytes()), None, "{sum:?}");
        }
    }

    #[test]
    fn pointers_give_oid_and_size() {
        let pointer = LfsPointer::parse(POINTER.as_bytes()).unwrap();
        assert!(pointer.oid.starts_with("4d7a2146"));
        assert_eq!(pointer.byte_len, 12345);
    }

    #[test]
    fn pointers_without_oid_or_size_are_none() {
        let broken =
            [&POINTER[..60], "version 2\noid sha256:0\nsize 1", "oid sha256:0\nsize 1", ""];
        for text in broken {
            assert_eq!(LfsPointer::parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
