//! Copies of case folders, changes to them, and what is in them.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::expected::Mutation;

/// A copy of a case's folder that is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Copy {
    root: PathBuf,
    parent: TempDir,
}

impl Copy {
    /// Copies a folder with its links, holes and permissions.
    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let parent = tempfile::Builder::new().prefix("case").tempdir()?;
        let root = parent.path().join(folder.file_name().unwrap_or("case".as_ref()));
        copy_all(folder, &root)?;
        Ok(Self { root, parent })
    }

    /// The copied folder.
    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    /// The folder that holds the copied one and nothing else.
    pub(crate) fn parent(&self) -> &Path {
        self.parent.path()
    }
}

impl Drop for Copy {
    /// Makes read-only folders removable, for a user whom permissions bind.
    fn drop(&mut self) {
        // What cannot be opened up stays behind in the folder for temporary files.
        let _ignored = open_up(&self.root);
    }
}

fn open_up(folder: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(folder)?.permissions();
    if permissions.readonly() {
        allow_all(&mut permissions);
        fs::set_permissions(folder, permissions)?;
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn allow_all(permissions: &mut fs::Permissions) {
    std::os::unix::fs::PermissionsExt::set_mode(permissions, 0o755);
}

#[cfg(not(unix))]
fn allow_all(permissions: &mut fs::Permissions) {
    permissions.set_readonly(false);
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    if metadata.is_symlink() {
        return copy_link(from, to);
    }
    if metadata.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy_all(&from.join(&name), &to.join(&name))?;
        }
    } else {
        copy_file(from, to)?;
    }
    fs::set_permissions(to, metadata.permissions())
}

#[cfg(unix)]
fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(fs::read_link(from)?, to)
}

#[cfg(not(unix))]
fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    copy_file(from, to)
}

/// Copies a file; what is zero in it becomes a hole.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create(to)?);
    let mut block = vec![0; 1 << 16];
    loop {
        let filled = from.read(&mut block)?;
        let read = &block[..filled];
        if read.is_empty() {
            return to.set_len(from.stream_position()?);
        }
        if read.iter().any(|&byte| byte != 0) {
            to.write_all(read)?;
        } else {
            to.seek(SeekFrom::Current(i64::try_from(filled).unwrap_or(0)))?;
        }
    }
}

/// Does to a case's folder what happens after opening.
pub(crate) fn mutate(folder: &Path, mutations: &[Mutation]) -> Result<(), String> {
    for mutation in mutations {
        let done = match mutation {
            Mutation::Truncate { path, byte_len } => File::options()
                .write(true)
                .open(folder.join(path))
                .and_then(|file| file.set_len(*byte_len)),
            Mutation::Rename { from, to } => fs::rename(folder.join(from), folder.join(to)),
            Mutation::Remove { path } => fs::remove_file(folder.join(path)),
        };
        done.map_err(|error| format!("{mutation:?}: {error}"))?;
    }
    Ok(())
}

/// Every path below a folder, in order.
pub(crate) fn listing(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        found.push(entry.path());
        if entry.file_type()?.is_dir() {
            found.extend(listing(&entry.path())?);
        }
    }
    found.sort();
    Ok(found)
}
