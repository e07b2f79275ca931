//! Writing tensors to one file, all of it or nothing.

mod on_disk;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::format::{
    IN_MEMORY, MAX_HEADER_BYTES, MAX_NAME_BYTES, MAX_RANK, MAX_TENSORS, METADATA_KEY, PREFIX_LEN,
};
use crate::limit::{Limit, LimitOn};
use crate::{Dtype, ErrorKind, Result, Tensor, reserve, shape};

/// Collects tensors and writes them as one file, with the layout of the reference writer.
///
/// Tensors are sorted by dtype, widest first, then by name; the header is padded with spaces so
/// that the data starts at a multiple of 8 bytes. The same tensors give the same bytes, whatever
/// the order they were added in. Bytes are borrowed until they are written, and never copied
/// together in memory by [`save`](Self::save).
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

/// How a file is written: by default only what is read by default, so the limits are those of
/// [`HeaderOptions`](crate::HeaderOptions). Fields may be added there and here.
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

/// A tensor to be written, but for its name.
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

    /// The same writer with one more entry of metadata, or another value for the key.
    ///
    /// Entries are written in the order of their keys.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Adds these entries to the metadata; from no entries, empty metadata is written.
    pub fn extend_metadata<K, V>(&mut self, entries: impl IntoIterator<Item = (K, V)>)
    where
        K: Into<String>,
        V: Into<String>,
    {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value.into()));
        self.metadata.get_or_insert_default().extend(entries);
    }

    /// Adds a tensor; its bytes are as they shall be in the file, little-endian and row-major.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ReservedName`] for the name `__metadata__`, [`ErrorKind::NameTaken`] for one that
    /// was added before, [`ErrorKind::Limit`] for a name or a shape over the limits,
    /// [`ErrorKind::SizeMismatch`] if there are not as many bytes as dtype and shape need.
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
    /// [`ErrorKind::Limit`] for what is over the limits, [`ErrorKind::OutOfMemory`] if there is no
    /// memory for the file.
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

    /// Writes the file, replacing what is at `path`; blocks until it is on the disk.
    ///
    /// The bytes go to a hidden temporary file in the same folder, which takes the name when it
    /// is complete and synced. Whatever fails until then, the old file stays as it was and the
    /// temporary file is removed; only a process that is killed leaves one behind. One thing can
    /// fail afterwards: syncing the folder. Then the new file is in its place, complete and synced,
    /// but its name may be lost with the power, and the error's action is `sync its folder after
    /// replacing the file`; a folder that cannot be synced at all is no error. The old file is not
    /// written to, so tensors mapped from it can be saved over it, and stay valid. A symbolic link is
    /// replaced, not followed. The mode of the file is 0666 less the umask, whatever the mode of
    /// the old file.
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

    /// Refuses a tensor that cannot be in the file, or that readers would refuse.
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

    /// The bytes before the data, and the tensors in the order of the file.
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

/// Appends the header, in the very form that the reference writer gives it.
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
