//! What can be wrong with a file, a selection of it, a typed access to it, or a file to write.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::format::LONGEST_HEADER_BYTES;
use crate::{Dtype, PathText, Quoted};

/// The result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What was wrong: the file, the tensor if there is one, what was expected and what was found.
///
/// Messages start with the path and say the rest in one line. Text that came from the file is
/// escaped and cut.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "variants are documented, and their fields are what these name")]
pub enum Error {
    // -- The file as the operating system sees it.
    /// The operating system refused something.
    #[error("{}: cannot {action}", PathText(path))]
    Io { path: PathBuf, action: &'static str, source: Arc<io::Error> },
    /// The operating system cannot map the file: its file system has no mappings, or there are no
    /// addresses or no mappings left. Reading the file needs none.
    #[error("{}: cannot map its {byte_len} bytes into memory", PathText(path))]
    NotMapped { path: PathBuf, byte_len: u64, source: Arc<io::Error> },
    /// Nothing has this path.
    #[error("{}: no such file", PathText(path))]
    NotFound { path: PathBuf },
    /// The path is a symbolic link to something that is not there.
    #[error("{}: dangling link: its target {} does not exist", PathText(path), PathText(target))]
    DanglingLink { path: PathBuf, target: PathBuf },
    /// The path is a folder, a FIFO, a device or a socket.
    #[error("{}: is a {kind}, not a regular file", PathText(path))]
    NotARegularFile { path: PathBuf, kind: FileKind },
    /// The file was changed, shortened or replaced after it was opened. The tensor is the first one
    /// that a shorter file no longer holds whole. Times are nanoseconds since 1970.
    #[error(
        "{}: {}changed since it was opened: {}",
        PathText(path),
        OfTensor(tensor),
        Change(*what, *before, *after)
    )]
    Changed { path: PathBuf, tensor: Option<Box<str>>, what: FileFact, before: i128, after: i128 },
    /// The operating system could not read bytes that are there.
    #[error("{}: {}cannot read bytes {start}..{end}", PathText(path), OfTensor(tensor))]
    Read { path: PathBuf, tensor: Option<Box<str>>, start: u64, end: u64, source: Arc<io::Error> },
    /// A read met the end of the file, which has become shorter since it was opened.
    #[error(
        "{}: {}bytes {start}..{end} were to be read, the file now ends at byte {byte_len}",
        PathText(path),
        OfTensor(tensor)
    )]
    ReadPastEnd { path: PathBuf, tensor: Option<Box<str>>, start: u64, end: u64, byte_len: u64 },
    /// The memory could not be had.
    #[error("{}: no memory for {byte_len} bytes", PathText(path))]
    OutOfMemory { path: PathBuf, byte_len: usize },

    // -- A file that is not a safetensors file at all.
    /// The file has no bytes.
    #[error("{}: empty file (0 bytes)", PathText(path))]
    Empty { path: PathBuf },
    /// The file is shorter than the 8 bytes that give the header length.
    #[error("{}: {byte_len} bytes, too short for the 8 bytes of a header length", PathText(path))]
    TooShort { path: PathBuf, byte_len: u64 },
    /// The file is a Git LFS pointer: the text that stands for a file not yet fetched.
    #[error(
        "{}: is a Git LFS pointer, not the file itself: {byte_len} bytes with sha256 {oid} were never fetched (git lfs pull)",
        PathText(path)
    )]
    LfsPointer { path: PathBuf, oid: Box<str>, byte_len: u64 },
    /// The file is of another kind.
    #[error("{}: not a safetensors file: it looks like {looks_like}", PathText(path))]
    NotSafetensors { path: PathBuf, looks_like: Lookalike },

    // -- The header as text.
    /// The header is longer than the cap.
    #[error(
        "{}: header of {header_len} bytes, the limit is {max}{}",
        PathText(path),
        RaisedBy("HeaderOptions", *max)
    )]
    HeaderTooLarge { path: PathBuf, header_len: u64, max: u64 },
    /// The header length reaches past the end of the file.
    #[error(
        "{}: header of {header_len} bytes declared, the file has {byte_len} bytes in all",
        PathText(path)
    )]
    HeaderPastEnd { path: PathBuf, header_len: u64, byte_len: u64 },
    /// The header is not UTF-8.
    #[error("{}: header is not UTF-8 at byte {valid_up_to}", PathText(path))]
    HeaderNotUtf8 { path: PathBuf, valid_up_to: usize },
    /// The header is not the JSON that the format asks for.
    #[error("{}: header at line {line} column {column}: {message}", PathText(path))]
    HeaderJson { path: PathBuf, line: usize, column: usize, message: Box<str> },
    /// A metadata value is not a string.
    #[error("{}: metadata {}: expected a string, found {found}", PathText(path), Quoted(key))]
    MetadataNotString { path: PathBuf, key: Box<str>, found: Box<str> },
    /// A metadata key is given twice.
    #[error("{}: metadata {}: duplicate key", PathText(path), Quoted(key))]
    DuplicateMetadataKey { path: PathBuf, key: Box<str> },

    // -- The header's tensors.
    /// A tensor name is given twice.
    #[error("{}: tensor {}: duplicate name in the header", PathText(path), Quoted(tensor))]
    DuplicateTensor { path: PathBuf, tensor: Box<str> },
    /// The header declares more tensors than may be.
    #[error(
        "{}: {found} tensors, the limit is {max} (HeaderOptions::max_tensors raises it)",
        PathText(path)
    )]
    TooManyTensors { path: PathBuf, found: usize, max: usize },
    /// The name of a tensor is longer than may be; only its beginning is kept.
    #[error(
        "{}: tensor {}: name of {byte_len} bytes, the limit is {max} (HeaderOptions::max_name_bytes raises it)",
        PathText(path),
        Quoted(tensor)
    )]
    NameTooLong { path: PathBuf, tensor: Box<str>, byte_len: usize, max: usize },
    /// A shape has more dimensions than may be.
    #[error(
        "{}: tensor {}: {found} dimensions, the limit is {max} (HeaderOptions::max_rank raises it)",
        PathText(path),
        Quoted(tensor)
    )]
    TooManyDimensions { path: PathBuf, tensor: Box<str>, found: usize, max: usize },
    /// A tensor's entry has a field that is missing, given twice or of the wrong type.
    #[error("{}: tensor {}: {message}", PathText(path), Quoted(tensor))]
    InvalidTensor { path: PathBuf, tensor: Box<str>, message: Box<str> },
    /// A dtype that the format does not have.
    #[error("{}: tensor {}: unknown dtype {}", PathText(path), Quoted(tensor), Quoted(dtype))]
    UnknownDtype { path: PathBuf, tensor: Box<str>, dtype: Box<str> },
    /// The size of a tensor does not fit in 64 bits, or in this machine's memory.
    #[error(
        "{}: tensor {}: shape {} of {dtype} overflows the address range",
        PathText(path),
        Quoted(tensor),
        Shape(shape)
    )]
    ShapeOverflow { path: PathBuf, tensor: Box<str>, dtype: Dtype, shape: Box<[usize]> },
    /// A tensor of a packed dtype does not end on a byte.
    #[error(
        "{}: tensor {}: shape {} of {dtype} is {bits} bits, not a whole number of bytes",
        PathText(path),
        Quoted(tensor),
        Shape(shape)
    )]
    PartialByte { path: PathBuf, tensor: Box<str>, dtype: Dtype, shape: Box<[usize]>, bits: usize },
    /// The offsets of a tensor and its shape disagree.
    #[error(
        "{}: tensor {}: {declared} bytes declared, shape {} of {dtype} needs {needed}",
        PathText(path),
        Quoted(tensor),
        Shape(shape)
    )]
    SizeMismatch {
        path: PathBuf,
        tensor: Box<str>,
        dtype: Dtype,
        shape: Box<[usize]>,
        declared: u64,
        needed: u64,
    },
    /// The offsets of a tensor are reversed.
    #[error(
        "{}: tensor {}: data offsets begin at {begin} and end before, at {end}",
        PathText(path),
        Quoted(tensor)
    )]
    OffsetsReversed { path: PathBuf, tensor: Box<str>, begin: u64, end: u64 },
    /// Two tensors claim the same bytes.
    #[error(
        "{}: tensor {}: data offset {begin} overlaps tensor {}, which ends at {other_end}",
        PathText(path),
        Quoted(tensor),
        Quoted(other)
    )]
    Overlap { path: PathBuf, tensor: Box<str>, begin: u64, other: Box<str>, other_end: u64 },
    /// Bytes before a tensor belong to no tensor.
    #[error(
        "{}: tensor {}: data offset {begin} leaves a hole: the bytes before it are used up to {expected}",
        PathText(path),
        Quoted(tensor)
    )]
    Hole { path: PathBuf, tensor: Box<str>, begin: u64, expected: u64 },
    /// The file ends before its last tensor does.
    #[error(
        "{}: truncated: expected {expected} bytes, found {found}; the first tensor affected is {}",
        PathText(path),
        Quoted(tensor)
    )]
    Truncated { path: PathBuf, tensor: Box<str>, expected: u64, found: u64 },
    /// The file goes on after its last tensor.
    #[error(
        "{}: {count} trailing bytes after the last tensor (HeaderOptions::trailing_bytes can allow them)",
        PathText(path)
    )]
    TrailingBytes { path: PathBuf, count: u64 },

    // -- Asking for a tensor or a part of it.
    /// The file has no tensor of this name.
    #[error("{}: no tensor {}{}", PathText(path), Quoted(tensor), Similar(similar))]
    TensorNotFound { path: PathBuf, tensor: Box<str>, similar: Box<[Box<str>]> },
    /// A selection has more dimensions than the tensor, or names one that it does not have.
    #[error(
        "{}: tensor {}: selection of {found} dimensions, the tensor has {expected}",
        PathText(path),
        Quoted(tensor)
    )]
    SelectionRank { path: PathBuf, tensor: Box<str>, expected: usize, found: usize },
    /// A range of a selection is reversed or reaches past its dimension.
    #[error(
        "{}: tensor {}: range {start}..{end} of dimension {dim}, which has {len} elements",
        PathText(path),
        Quoted(tensor)
    )]
    SelectionRange {
        path: PathBuf,
        tensor: Box<str>,
        dim: usize,
        start: usize,
        end: usize,
        len: usize,
    },
    /// A selection of a packed dtype starts or ends within a byte.
    #[error(
        "{}: tensor {}: range {start}..{end} of dimension {dim} cuts a byte of {dtype}",
        PathText(path),
        Quoted(tensor)
    )]
    SelectionPartialByte {
        path: PathBuf,
        tensor: Box<str>,
        dtype: Dtype,
        dim: usize,
        start: usize,
        end: usize,
    },
    /// A selection with repeats is larger than memory can be.
    #[error(
        "{}: tensor {}: the selection overflows the address range",
        PathText(path),
        Quoted(tensor)
    )]
    SelectionOverflow { path: PathBuf, tensor: Box<str> },

    // -- Typed access. There is no path here: a tensor outlives its file.
    /// The elements are of another type.
    #[error("tensor {}: is {dtype}, cannot be read as {asked}", Quoted(tensor))]
    DtypeMismatch { tensor: Box<str>, dtype: Dtype, asked: &'static str },
    /// The bytes are not aligned for the type; only mapped and borrowed bytes can be so.
    #[error(
        "tensor {}: its bytes are not aligned to {align} for {dtype} (to_vec copies)",
        Quoted(tensor)
    )]
    Unaligned { tensor: Box<str>, dtype: Dtype, align: usize },
    /// A byte of a `BOOL` tensor is neither 0 nor 1.
    #[error("tensor {}: byte {index} of BOOL is {found}, not 0 or 1", Quoted(tensor))]
    InvalidBool { tensor: Box<str>, index: usize, found: u8 },
    /// The file's bytes are little-endian, this machine's numbers are not.
    #[error(
        "tensor {}: little-endian {dtype} has no view on a big-endian machine (to_vec converts)",
        Quoted(tensor)
    )]
    BigEndianHost { tensor: Box<str>, dtype: Dtype },
    /// The dtype has no conversion to `f32`.
    #[error("tensor {}: is {dtype}, which has no conversion to f32", Quoted(tensor))]
    NotAFloat { tensor: Box<str>, dtype: Dtype },
    /// The memory for a copy of a tensor could not be had.
    #[error("tensor {}: no memory for a copy of {byte_len} bytes", Quoted(tensor))]
    TensorOutOfMemory { tensor: Box<str>, byte_len: usize },
    /// Dtype, shape and bytes of a tensor in memory disagree; what is needed is none where there is
    /// no such length.
    #[error(
        "tensor {}: {found} bytes given, shape {} of {dtype} needs {}",
        Quoted(tensor),
        Shape(shape),
        Needed(*needed)
    )]
    ByteLen {
        tensor: Box<str>,
        dtype: Dtype,
        shape: Box<[usize]>,
        found: usize,
        needed: Option<usize>,
    },

    // -- Writing.
    /// `__metadata__` is the header's own key and cannot name a tensor.
    #[error("tensor {}: the name is reserved for metadata", Quoted(tensor))]
    ReservedName { tensor: Box<str> },
    /// Two tensors to be written have one name.
    #[error("tensor {}: a tensor of this name is already there", Quoted(tensor))]
    NameTaken { tensor: Box<str> },
    /// The header to be written is longer than the cap, and other readers would refuse the file.
    #[error(
        "{}: header of {header_len} bytes to be written, the limit is {max}{}",
        PathText(path),
        RaisedBy("WriterOptions", *max)
    )]
    WriterHeaderTooLarge { path: PathBuf, header_len: u64, max: u64 },
    /// There are more tensors to be written than readers accept in a file.
    #[error(
        "{}: {found} tensors to be written, the limit is {max} (WriterOptions::max_tensors raises it)",
        PathText(path)
    )]
    WriterTooManyTensors { path: PathBuf, found: usize, max: usize },
    /// The name of a tensor to be written is longer than readers accept.
    #[error(
        "tensor {}: name of {byte_len} bytes to be written, the limit is {max} (WriterOptions::max_name_bytes raises it)",
        Quoted(tensor)
    )]
    WriterNameTooLong { tensor: Box<str>, byte_len: usize, max: usize },
    /// A tensor to be written has more dimensions than readers accept.
    #[error(
        "tensor {}: {found} dimensions to be written, the limit is {max} (WriterOptions::max_rank raises it)",
        Quoted(tensor)
    )]
    WriterTooManyDimensions { tensor: Box<str>, found: usize, max: usize },
}

impl Error {
    /// Names the tensor that a failed read was for; other errors stay as they are.
    #[must_use]
    pub fn with_tensor(mut self, name: &str) -> Self {
        if let Self::Read { tensor, .. }
        | Self::ReadPastEnd { tensor, .. }
        | Self::Changed { tensor, .. } = &mut self
        {
            *tensor = Some(name.into());
        }
        self
    }

    /// The file that the error is about, as it was opened; a tensor in memory has none.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Io { path, .. }
            | Self::NotMapped { path, .. }
            | Self::NotFound { path }
            | Self::DanglingLink { path, .. }
            | Self::NotARegularFile { path, .. }
            | Self::Changed { path, .. }
            | Self::Read { path, .. }
            | Self::ReadPastEnd { path, .. }
            | Self::OutOfMemory { path, .. }
            | Self::Empty { path }
            | Self::TooShort { path, .. }
            | Self::LfsPointer { path, .. }
            | Self::NotSafetensors { path, .. }
            | Self::HeaderTooLarge { path, .. }
            | Self::HeaderPastEnd { path, .. }
            | Self::HeaderNotUtf8 { path, .. }
            | Self::HeaderJson { path, .. }
            | Self::MetadataNotString { path, .. }
            | Self::DuplicateMetadataKey { path, .. }
            | Self::DuplicateTensor { path, .. }
            | Self::TooManyTensors { path, .. }
            | Self::NameTooLong { path, .. }
            | Self::TooManyDimensions { path, .. }
            | Self::InvalidTensor { path, .. }
            | Self::UnknownDtype { path, .. }
            | Self::ShapeOverflow { path, .. }
            | Self::PartialByte { path, .. }
            | Self::SizeMismatch { path, .. }
            | Self::OffsetsReversed { path, .. }
            | Self::Overlap { path, .. }
            | Self::Hole { path, .. }
            | Self::Truncated { path, .. }
            | Self::TrailingBytes { path, .. }
            | Self::TensorNotFound { path, .. }
            | Self::SelectionRank { path, .. }
            | Self::SelectionRange { path, .. }
            | Self::SelectionPartialByte { path, .. }
            | Self::SelectionOverflow { path, .. }
            | Self::WriterHeaderTooLarge { path, .. }
            | Self::WriterTooManyTensors { path, .. } => Some(path),
            Self::DtypeMismatch { .. }
            | Self::Unaligned { .. }
            | Self::InvalidBool { .. }
            | Self::BigEndianHost { .. }
            | Self::NotAFloat { .. }
            | Self::TensorOutOfMemory { .. }
            | Self::ByteLen { .. }
            | Self::ReservedName { .. }
            | Self::NameTaken { .. }
            | Self::WriterNameTooLong { .. }
            | Self::WriterTooManyDimensions { .. } => None,
        }
    }

    /// The tensor that the error is about, if it is about one; of [`Error::Overlap`] the later one.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        match self {
            Self::Changed { tensor, .. }
            | Self::Read { tensor, .. }
            | Self::ReadPastEnd { tensor, .. } => tensor.as_deref(),
            Self::DuplicateTensor { tensor, .. }
            | Self::NameTooLong { tensor, .. }
            | Self::TooManyDimensions { tensor, .. }
            | Self::InvalidTensor { tensor, .. }
            | Self::UnknownDtype { tensor, .. }
            | Self::ShapeOverflow { tensor, .. }
            | Self::PartialByte { tensor, .. }
            | Self::SizeMismatch { tensor, .. }
            | Self::OffsetsReversed { tensor, .. }
            | Self::Overlap { tensor, .. }
            | Self::Hole { tensor, .. }
            | Self::Truncated { tensor, .. }
            | Self::TensorNotFound { tensor, .. }
            | Self::SelectionRank { tensor, .. }
            | Self::SelectionRange { tensor, .. }
            | Self::SelectionPartialByte { tensor, .. }
            | Self::SelectionOverflow { tensor, .. }
            | Self::DtypeMismatch { tensor, .. }
            | Self::Unaligned { tensor, .. }
            | Self::InvalidBool { tensor, .. }
            | Self::BigEndianHost { tensor, .. }
            | Self::NotAFloat { tensor, .. }
            | Self::TensorOutOfMemory { tensor, .. }
            | Self::ByteLen { tensor, .. }
            | Self::ReservedName { tensor }
            | Self::NameTaken { tensor }
            | Self::WriterNameTooLong { tensor, .. }
            | Self::WriterTooManyDimensions { tensor, .. } => Some(tensor),
            _ => None,
        }
    }
}

/// What a file is recognised by, and its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFact {
    /// The device that the file is on.
    Device,
    /// The number of the file on its device.
    Inode,
    /// The length in bytes.
    ByteLen,
    /// When its bytes were last written, as any program may set it.
    Modified,
    /// When its bytes, permissions or names were last changed, as the system keeps it.
    Changed,
}

/// Displays how a fact was and is: numbers as they are, times by which is later.
struct Change(FileFact, i128, i128);

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(what, before, after) = self;
        let now = if after < before { "an earlier" } else { "a later" };
        match what {
            FileFact::Device => write!(f, "device was {before}, is {after}"),
            FileFact::Inode => write!(
                f,
                "inode was {before}, is {after} (another file took its name, or the file system has no stable inode numbers)"
            ),
            FileFact::ByteLen => write!(f, "length was {before}, is {after}"),
            FileFact::Modified => write!(f, "last written at {now} time"),
            FileFact::Changed => write!(f, "bytes, permissions or name changed at {now} time"),
        }
    }
}

/// What a path leads to when it is not a regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A folder.
    Directory,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
    /// Something else that holds no bytes of its own.
    Other,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Directory => "directory",
            Self::Fifo => "FIFO",
            Self::Socket => "socket",
            Self::Device => "device",
            Self::Other => "special file",
        })
    }
}

/// What a file that is not safetensors looks like, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lookalike {
    /// A zip archive, the form of PyTorch checkpoints since 1.6.
    Zip,
    /// A Python pickle, the form of older PyTorch checkpoints.
    Pickle,
    /// A GGUF model.
    Gguf,
    /// An HDF5 file, the form of Keras weights.
    Hdf5,
    /// A gzip stream.
    Gzip,
    /// A web page, as an error page saved under the file's name.
    Html,
    /// JSON text, as an error answer saved under the file's name.
    Json,
    /// An AppleDouble side-car (`._name`).
    AppleDouble,
    /// Other text.
    Text,
    /// Nothing that is known.
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

/// Displays which option raises this limit of a header's bytes, if one does.
struct RaisedBy(&'static str, u64);

impl fmt::Display for RaisedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(options, max) = self;
        if *max < LONGEST_HEADER_BYTES {
            write!(f, " ({options}::max_header_bytes raises it)")
        } else {
            Ok(())
        }
    }
}

/// Displays the byte length that a dtype and a shape need, if there is one.
struct Needed(Option<usize>);

impl fmt::Display for Needed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(byte_len) => byte_len.fmt(f),
            None => f.write_str("no whole number of bytes"),
        }
    }
}

/// Displays the tensor whose bytes an error is about, if it is about those of one.
struct OfTensor<'a>(&'a Option<Box<str>>);

impl fmt::Display for OfTensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(tensor) => write!(f, "tensor {}: ", Quoted(tensor)),
            None => Ok(()),
        }
    }
}

/// Displays a shape from a file, cut after eight dimensions.
struct Shape<'a>(&'a [usize]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get(..8) {
            Some(first) if self.0.len() > 8 => write!(f, "{first:?} and {} more", self.0.len() - 8),
            _ => write!(f, "{:?}", self.0),
        }
    }
}

/// Displays the names near one that was not found.
struct Similar<'a>(&'a [Box<str>]);

impl fmt::Display for Similar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            f.write_str(if i == 0 { "; similar: " } else { ", " })?;
            Quoted(name).fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Change, Error, FileFact, Shape};

    #[test]
    fn an_error_is_small_enough_to_return_by_value() {
        assert!(size_of::<Error>() <= 128, "{}", size_of::<Error>());
    }

    #[test]
    fn changes_show_numbers_but_no_nanoseconds() {
        let cases = [
            (FileFact::Device, "device was 1, is 2"),
            (FileFact::ByteLen, "length was 1, is 2"),
            (FileFact::Modified, "last written at a later time"),
            (FileFact::Changed, "bytes, permissions or name changed at a later time"),
        ];
        for (what, shown) in cases {
            assert_eq!(Change(what, 1, 2).to_string(), shown);
        }
        let earlier = Change(FileFact::Modified, 2, 1).to_string();
        assert_eq!(earlier, "last written at an earlier time");
        let inode = Change(FileFact::Inode, 1, 2).to_string();
        assert!(inode.starts_with("inode was 1, is 2 (") && inode.contains("stable inode numbers"));
    }

    #[test]
    fn path_and_tensor_are_those_of_the_message() {
        let (path, tensor): (PathBuf, Box<str>) = ("m.safetensors".into(), "w".into());
        let hole =
            Error::Hole { path: path.clone(), tensor: tensor.clone(), begin: 1, expected: 0 };
        assert_eq!((hole.path(), hole.tensor()), (Some(&*path), Some("w")));
        let empty = Error::Empty { path: path.clone() };
        assert_eq!((empty.path(), empty.tensor()), (Some(&*path), None));
        let taken = Error::NameTaken { tensor };
        assert_eq!((taken.path(), taken.tensor()), (None, Some("w")));
    }

    #[test]
    fn long_shapes_are_cut() {
        assert_eq!(Shape(&[2, 3]).to_string(), "[2, 3]");
        assert_eq!(Shape(&[1; 10]).to_string(), "[1, 1, 1, 1, 1, 1, 1, 1] and 2 more");
    }
}
