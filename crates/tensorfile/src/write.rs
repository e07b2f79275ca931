//! `Writer`: writes tensors to one file, completely or not at all.

mod on_disk;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

pub use on_disk::sync_folder;

use crate::format::{
    IN_MEMORY, MAX_HEADER_BYTES, MAX_NAME_BYTES, MAX_RANK, MAX_TENSORS, METADATA_KEY, PREFIX_LEN,
};
use crate::limit::{Limit, LimitOn};
use crate::{Dtype, ErrorKind, Result, Tensor, reserve, shape};

/// Collects tensors and writes them to one file, with the layout of the reference writer.
///
/// Tensors are sorted by dtype, widest first, then by name; the header is padded with spaces so
/// that the data starts at a multiple of 8 bytes. The same tensors give the same bytes, in whatever
/// order they are added. The bytes of tensors are borrowed, and [`save`](Self::save) writes them
/// without collecting them in memory.
///
/// ```
/// use tensorfile::{Dtype, Writer};
///
/// let mut writer = Writer::new().with_metadata("format", "pt");
/// writer.add("bias", Dtype::U8, &[3], b"abc")?;
/// let bytes = writer.to_bytes()?;
/// assert!(bytes.ends_with(b"abc"));
///
/// let folder = tempfile::tempdir().expect("a folder to write to");
/// writer.save(folder.path().join("model.safetensors"))?;
/// # Ok::<(), tensorfile::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Writer<'a> {
    options: WriterOptions,
    metadata: Option<BTreeMap<String, String>>,
    tensors: BTreeMap<Cow<'a, str>, Entry<'a>>,
}

/// Limits of a file to write. The defaults are those of [`HeaderOptions`](crate::HeaderOptions), so
/// that a file is written only if it can be read by default. Fields may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    /// The longest header that is written, in bytes; 100,000,000 by default, and never more than
    /// 4,294,967,295.
    pub max_header_bytes: u64,
    /// Tensors that a file may have; 1,000,000 by default.
    pub max_tensors: usize,
    /// Bytes that the name of a tensor may have; 65,536 by default.
    pub max_name_bytes: usize,
    /// Dimensions that a shape may have; 64 by default.
    pub max_rank: usize,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            max_header_bytes: MAX_HEADER_BYTES,
            max_tensors: MAX_TENSORS,
            max_name_bytes: MAX_NAME_BYTES,
            max_rank: MAX_RANK,
        }
    }
}

/// A tensor to be written, without its name.
#[derive(Clone)]
struct Entry<'a> {
    dtype: Dtype,
    shape: Cow<'a, [usize]>,
    bytes: &'a [u8],
}

impl<'a> Writer<'a> {
    /// A writer of a file without tensors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`new`](Self::new), with these options.
    #[must_use]
    pub fn with_options(options: WriterOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Adds an entry of metadata, or replaces the value of the key.
    ///
    /// Entries are written in the order of their keys.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Adds these entries to the metadata; without entries, writes empty metadata.
    pub fn extend_metadata<K, V>(&mut self, entries: impl IntoIterator<Item = (K, V)>)
    where
        K: Into<String>,
        V: Into<String>,
    {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value.into()));
        self.metadata.get_or_insert_default().extend(entries);
    }

    /// Adds a tensor; its bytes must be as in the file, little-endian and row-major.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ReservedName`] for the name `__metadata__`, [`ErrorKind::NameTaken`] for one
    /// that was added before, [`ErrorKind::Limit`] for a name or a shape over the limits,
    /// [`ErrorKind::SizeMismatch`] if the number of bytes is not what dtype and shape need.
    pub fn add(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        dtype: Dtype,
        shape: impl Into<Cow<'a, [usize]>>,
        bytes: &'a [u8],
    ) -> Result<()> {
        let (name, entry) = (name.into(), Entry { dtype, shape: shape.into(), bytes });
        match self.check(&name, &entry) {
            Ok(()) => {
                self.tensors.insert(name, entry);
                Ok(())
            }
            Err(kind) => Err(kind.in_tensor(name)),
        }
    }

    /// Adds a tensor under its own name.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_tensor(&mut self, tensor: &'a Tensor) -> Result<()> {
        self.add(tensor.name(), tensor.dtype(), tensor.shape(), tensor.bytes())
    }

    /// The file in memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`] if a limit is exceeded; [`ErrorKind::OutOfMemory`] if there is not
    /// enough memory for the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.in_memory().map_err(|kind| kind.at(Path::new(IN_MEMORY)))
    }

    fn in_memory(&self) -> Result<Vec<u8>, ErrorKind> {
        let (head, tensors) = self.layout()?;
        let data_len = tensors.iter().map(|entry| entry.bytes.len());
        let mut bytes = reserve::list(data_len.fold(head.len(), usize::saturating_add))?;
        bytes.extend_from_slice(&head);
        for entry in tensors {
            bytes.extend_from_slice(entry.bytes);
        }
        Ok(bytes)
    }

    /// Writes the file, replacing any at `path`; blocks until it is on the disk.
    ///
    /// The bytes are written to a hidden temporary file in the same folder, which is renamed when
    /// it is complete and synced. If anything fails before, the old file is unchanged and the
    /// temporary file is removed; only a killed process leaves one behind. Afterwards, syncing the
    /// folder can fail. Then the new file is in place, complete and synced, but a power loss may
    /// undo the rename, and the error's action is `sync its folder after replacing the file`; a
    /// folder that does not support syncing is no error. The old file is not written to, so tensors
    /// mapped from it can be saved over it, and stay valid. A symbolic link is replaced, not
    /// followed. The mode of the file is 0666 without the umask, whatever the mode of the old file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`] before anything is written; [`ErrorKind::Io`] otherwise.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.save_as(path).map_err(|kind| kind.at(path))
    }

    fn save_as(&self, path: &Path) -> Result<(), ErrorKind> {
        let (head, tensors) = self.layout()?;
        on_disk::replace(path, |file| write_all(file, &head, &tensors))
    }

    /// Refuses a tensor that cannot be in the file, or that readers refuse.
    fn check(&self, name: &str, entry: &Entry<'_>) -> Result<(), ErrorKind> {
        if name == METADATA_KEY {
            return Err(ErrorKind::ReservedName);
        }
        if self.tensors.contains_key(name) {
            return Err(ErrorKind::NameTaken);
        }
        let (found, max) = (name.len() as u64, self.options.max_name_bytes as u64);
        Limit::check(LimitOn::NameBytes, found, max, "WriterOptions::max_name_bytes")?;
        let (found, max) = (entry.shape.len() as u64, self.options.max_rank as u64);
        Limit::check(LimitOn::Dimensions, found, max, "WriterOptions::max_rank")?;
        shape::check(entry.dtype, &entry.shape, entry.bytes.len() as u64)
    }

    /// The bytes before the data, and the tensors in file order.
    fn layout(&self) -> Result<(Vec<u8>, Vec<&Entry<'a>>), ErrorKind> {
        let (found, max) = (self.tensors.len() as u64, self.options.max_tensors as u64);
        Limit::check(LimitOn::Tensors, found, max, "WriterOptions::max_tensors")?;
        let mut tensors: Vec<_> = self.tensors.iter().collect();
        tensors.sort_by_key(|(_, entry)| Reverse(entry.dtype));
        let mut head = vec![0; PREFIX_LEN];
        push_header(&mut head, self.metadata.as_ref(), &tensors)
            .expect("a vector takes every byte");
        head.resize(head.len().next_multiple_of(8), b' ');
        let header_len = u64::try_from(head.len() - PREFIX_LEN).unwrap_or(u64::MAX);
        let (max, option) = (self.options.max_header_bytes, "WriterOptions::max_header_bytes");
        Limit::check_header(header_len, max, option)?;
        let (length, _) = head.split_at_mut(PREFIX_LEN);
        length.copy_from_slice(&header_len.to_le_bytes());
        Ok((head, tensors.into_iter().map(|(_, entry)| entry).collect()))
    }
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("options", &self.options)
            .field("metadata", &self.metadata)
            .field("tensors", &self.tensors.keys())
            .finish()
    }
}

/// Appends the header, byte for byte as the reference writer does.
fn push_header(
    out: &mut Vec<u8>,
    metadata: Option<&BTreeMap<String, String>>,
    tensors: &[(&Cow<'_, str>, &Entry<'_>)],
) -> io::Result<()> {
    let mut separator = "{";
    if let Some(metadata) = metadata {
        write!(out, "{{\"{METADATA_KEY}\":")?;
        serde_json::to_writer(&mut *out, metadata)?;
        separator = ",";
    }
    let mut begin: u64 = 0;
    for (name, entry) in tensors {
        let byte_len = u64::try_from(entry.bytes.len()).unwrap_or(u64::MAX);
        let end = begin.saturating_add(byte_len);
        out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut *out, name.as_ref())?;
        write!(out, ":{{\"dtype\":\"{}\",\"shape\":", entry.dtype)?;
        serde_json::to_writer(&mut *out, entry.shape.as_ref())?;
        write!(out, ",\"data_offsets\":[{begin},{end}]}}")?;
        begin = end;
        separator = ",";
    }
    let is_empty = separator == "{";
    out.write_all(if is_empty { b"{}" } else { b"}" })
}

fn write_all(file: &mut File, head: &[u8], tensors: &[&Entry<'_>]) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 20, &mut *file);
    out.write_all(head)?;
    for entry in tensors {
        out.write_all(entry.bytes)?;
    }
    out.flush()?;
    drop(out);
    file.sync_all()
}

#[cfg(test)]
mod tests;
