//! What a case may need of the machine, and whether it is there.

use std::fs;
use std::path::Path;

/// Something that not every machine offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// Files with holes.
    Sparse,
    /// Addresses of 64 bits.
    SixtyFourBit,
    /// Symbolic links.
    Symlink,
    /// File names in Unicode.
    UnicodeFs,
    /// File names that differ in case only.
    CaseSensitiveFs,
    /// A user whom file permissions bind.
    NonRoot,
}

impl Need {
    /// The need of this name.
    #[expect(clippy::needless_pass_by_value, reason = "names come owned from JSON")]
    pub(crate) fn named(name: String) -> Result<Self, String> {
        match name.as_str() {
            "sparse" => Ok(Self::Sparse),
            "64_bit" => Ok(Self::SixtyFourBit),
            "symlink" => Ok(Self::Symlink),
            "unicode_fs" => Ok(Self::UnicodeFs),
            "case_sensitive_fs" => Ok(Self::CaseSensitiveFs),
            "non_root" => Ok(Self::NonRoot),
            other => Err(format!("expected.json: the runner does not know the need {other:?}")),
        }
    }

    /// Why this machine cannot serve the need; `None` if it can.
    pub(crate) fn lacking(self) -> Option<&'static str> {
        let there = match self {
            Self::Sparse => offers(holds_holes),
            Self::SixtyFourBit => cfg!(target_pointer_width = "64"),
            Self::Symlink => offers(links),
            Self::UnicodeFs => offers(keeps_names),
            Self::CaseSensitiveFs => offers(tells_case),
            Self::NonRoot => cfg!(unix),
        };
        (!there).then_some(match self {
            Self::Sparse => "needs a file system with sparse files",
            Self::SixtyFourBit => "needs a 64-bit machine",
            Self::Symlink => "needs symbolic links",
            Self::UnicodeFs => "needs a file system that keeps Unicode names",
            Self::CaseSensitiveFs => "needs a file system that tells names by case",
            Self::NonRoot => "needs file permissions",
        })
    }
}

/// Tries something in an empty folder.
fn offers(probe: impl Fn(&Path) -> std::io::Result<bool>) -> bool {
    tempfile::tempdir().and_then(|folder| probe(folder.path())).unwrap_or(false)
}

#[cfg(unix)]
fn holds_holes(folder: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    let file = fs::File::create(folder.join("sparse"))?;
    file.set_len(64 << 20)?;
    Ok(file.metadata()?.blocks() < 1024)
}

#[cfg(not(unix))]
fn holds_holes(_: &Path) -> std::io::Result<bool> {
    Ok(false)
}

#[cfg(unix)]
fn links(folder: &Path) -> std::io::Result<bool> {
    std::os::unix::fs::symlink("target", folder.join("link"))?;
    Ok(folder.join("link").is_symlink())
}

#[cfg(not(unix))]
fn links(_: &Path) -> std::io::Result<bool> {
    Ok(false)
}

fn keeps_names(folder: &Path) -> std::io::Result<bool> {
    let name = "mod\u{e8}le \u{6e2c}\u{8a66}";
    fs::write(folder.join(name), [])?;
    let mut entries = fs::read_dir(folder)?;
    Ok(entries.next().transpose()?.is_some_and(|entry| entry.file_name() == name))
}

fn tells_case(folder: &Path) -> std::io::Result<bool> {
    fs::write(folder.join("name"), [])?;
    Ok(!folder.join("NAME").exists())
}
