//! `TensorFile`: a file whose header is in memory, and whose tensors are read on request.

mod head;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::head::read_header;
use crate::fill::fill;
use crate::format::IN_MEMORY;
use crate::source::read_error;
use crate::{Buffer, BufferMut, Error, ErrorKind, Header, HeaderOptions, Metadata, ReadAt, Result};
use crate::{Selection, SourceFile, Tensor, TensorInfo, TensorView, similar_names};

/// One safetensors file, whose tensors are read by name.
///
/// Opening reads only the header. The source `R` is a file on disk by default; it can also be bytes
/// in memory, a mapping, or any other [`ReadAt`].
///
/// ```
/// use tensorfile::{Selection, TensorFile, Writer};
/// # use tensorfile::Dtype;
///
/// # let dir = tempfile::tempdir().expect("a folder");
/// # let path = dir.path().join("model.safetensors");
/// # let mut writer = Writer::new();
/// # writer.add("w", Dtype::U8, &[2, 3], &[1, 2, 3, 4, 5, 6])?;
/// # writer.save(&path)?;
/// let file = TensorFile::open(&path)?;
/// assert_eq!(file.names().collect::<Vec<_>>(), ["w"]);
/// assert_eq!(file.read("w")?.bytes(), [1, 2, 3, 4, 5, 6]);
/// let last_column = file.read_selection("w", &Selection::all().with_range(1, 2..3))?;
/// assert_eq!((last_column.shape(), last_column.bytes()), (&[2, 1][..], &[3, 6][..]));
/// # Ok::<(), tensorfile::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TensorFile<R = SourceFile> {
    path: PathBuf,
    source: R,
    header: Arc<Header>,
}

impl TensorFile<SourceFile> {
    /// Opens a file and reads its header: two reads, of 8 bytes and of the JSON.
    ///
    /// # Errors
    ///
    /// Fails if the path does not lead to a regular file, or if the file is malformed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &HeaderOptions::default())
    }

    /// Opens as [`open`](Self::open) does, with limits on the header.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: &HeaderOptions) -> Result<Self> {
        let source = SourceFile::open(path)?;
        let header = read_header(&source, source.opened_bytes(), options)
            .map_err(|error| error.at(source.path()))?;
        Ok(Self { path: source.path().into(), source, header: Arc::new(header) })
    }
}

impl<'a> TensorFile<&'a [u8]> {
    /// Parses the header of a file in memory; the path in its errors is `<memory>`.
    ///
    /// # Errors
    ///
    /// Fails if the file is malformed.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self> {
        Self::from_source(IN_MEMORY, bytes, &HeaderOptions::default())
    }

    /// The tensor of this name, borrowed without a copy.
    ///
    /// # Errors
    ///
    /// Fails if there is no such tensor.
    pub fn view(&self, name: &str) -> Result<TensorView<'_>> {
        let info = self.info(name)?;
        let bytes = memory_range(info).and_then(|range| self.source.get(range));
        let bytes = bytes.unwrap_or_default();
        let view = TensorView::new(info.name(), info.dtype(), info.shape(), bytes);
        view.map_err(|error| self.here(error))
    }
}

impl TensorFile<Buffer> {
    /// The tensor of this name, which shares the buffer.
    ///
    /// # Errors
    ///
    /// Fails if there is no such tensor.
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        let info = self.info(name)?;
        let (name, shape) = (info.name(), info.shape());
        let range = memory_range(info).unwrap_or_default();
        let tensor = Tensor::new(name, info.dtype(), shape, self.source.clone(), range);
        tensor.map_err(|error| self.here(error))
    }
}

impl<R: ReadAt> TensorFile<R> {
    /// Reads the header of a file from any source; `path` is the path in its errors.
    ///
    /// # Errors
    ///
    /// Fails if the source fails or the file is malformed.
    pub fn from_source(
        path: impl Into<PathBuf>,
        source: R,
        options: &HeaderOptions,
    ) -> Result<Self> {
        let path = path.into();
        let byte_len = source.byte_len();
        let byte_len =
            byte_len.map_err(|error| ErrorKind::io("tell its length", error).at(&*path))?;
        let header = read_header(&source, byte_len, options).map_err(|error| error.at(&*path))?;
        Ok(Self { path, source, header: Arc::new(header) })
    }

    /// A file whose header is already parsed.
    pub(crate) fn from_parts(path: PathBuf, source: R, header: Arc<Header>) -> Self {
        Self { path, source, header }
    }

    /// The path as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The source of the bytes.
    #[must_use]
    pub fn source(&self) -> &R {
        &self.source
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The header, shared.
    pub(crate) fn shared_header(&self) -> Arc<Header> {
        Arc::clone(&self.header)
    }

    /// Consumes the file and returns the source of its bytes and the header.
    #[must_use]
    pub fn into_parts(self) -> (R, Header) {
        (self.source, Arc::unwrap_or_clone(self.header))
    }

    /// The entry of the header for the tensor of this name: its dtype, shape and place.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::TensorNotFound`], which lists similar names.
    pub fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.header.get(name).ok_or_else(|| {
            let similar = similar_names(name, self.names());
            self.here(ErrorKind::TensorNotFound { similar }.in_tensor(name))
        })
    }

    /// The names of the tensors, in byte order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.header.tensors().iter().map(TensorInfo::name)
    }

    /// The number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.header.len()
    }

    /// Whether the file holds no tensor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.header.is_empty()
    }

    /// The entries of `__metadata__`; `None` if the header has none, which differs from an empty
    /// map.
    #[must_use]
    pub fn metadata(&self) -> Option<&Metadata> {
        self.header.metadata()
    }

    /// Reads a whole tensor into new memory, with one read.
    ///
    /// # Errors
    ///
    /// Fails if there is no such tensor or not enough memory for it, if the source fails, or if the
    /// file has changed since it was opened.
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let info = self.info(name)?;
        self.read_whole(info).map_err(|error| self.here(error))
    }

    /// Reads a part of a tensor into new memory.
    ///
    /// To save reads, small gaps between selected runs are read too: up to 16 KiB per run, in reads
    /// of up to 1 MiB.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and if the selection does not fit the tensor.
    pub fn read_selection(&self, name: &str, selection: &Selection) -> Result<Tensor> {
        let info = self.info(name)?;
        self.read_part(info, selection).map_err(|error| self.here(error))
    }

    fn read_whole(&self, info: &TensorInfo) -> Result<Tensor> {
        let mut buffer = buffer_for(info, info.byte_len())?;
        self.read_at(info, buffer.as_mut_slice(), 0)?;
        self.finish(info, buffer, info.shape())
    }

    fn read_part(&self, info: &TensorInfo, selection: &Selection) -> Result<Tensor> {
        let runs = selection.lower(info)?;
        let mut buffer = buffer_for(info, runs.byte_len())?;
        let read = |bytes: &mut [u8], start| self.read_at(info, bytes, start);
        fill(&runs, buffer.as_mut_slice(), read).map_err(|error| error.in_tensor(info.name()))?;
        self.finish(info, buffer, runs.shape())
    }

    /// The error with this file's path, unless it has one.
    fn here(&self, error: Error) -> Error {
        error.at(&*self.path)
    }

    /// The error of a changed source; if it is shorter now, with the first tensor that is cut off.
    pub(crate) fn with_lost_tensor(&self, error: Error) -> Error {
        let byte_len = self.source.byte_len().unwrap_or(u64::MAX);
        match (error.kind(), self.header.first_beyond(byte_len)) {
            (ErrorKind::Changed { .. }, Some(lost)) => error.in_tensor(lost.name()),
            _ => error,
        }
    }

    /// Fills `bytes` with those of the tensor from `start` on.
    fn read_at(&self, info: &TensorInfo, bytes: &mut [u8], start: u64) -> Result<()> {
        let offset = info.file_range().start.saturating_add(start);
        let len = bytes.len();
        self.source
            .read_exact_at(bytes, offset)
            .map_err(|error| read_error(&self.source, len, offset, error).in_tensor(info.name()))
    }

    /// A tensor of bytes just read, if the file has not changed since it was opened.
    fn finish(&self, info: &TensorInfo, buffer: BufferMut, shape: &[usize]) -> Result<Tensor> {
        self.source.check_unchanged().map_err(|error| self.with_lost_tensor(error))?;
        let range = 0..buffer.len();
        Tensor::new(info.name(), info.dtype(), shape, buffer.freeze(), range)
    }
}

/// New memory for this many bytes of a tensor.
fn buffer_for(info: &TensorInfo, byte_len: usize) -> Result<BufferMut> {
    BufferMut::with_len(byte_len).map_err(|kind| kind.in_tensor(info.name()))
}

/// The range of a tensor in a file that is in memory.
fn memory_range(info: &TensorInfo) -> Option<Range<usize>> {
    let range = info.file_range();
    Some(range.start.try_into().ok()?..range.end.try_into().ok()?)
}

#[cfg(test)]
mod tests;
