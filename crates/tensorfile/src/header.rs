//! `Header`: parses untrusted bytes and checks that the tensors fit together.

// Applies to the modules below too.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod cover;
mod declared;
mod dims;
mod explain;
mod json;
mod metadata;
mod options;
mod plain;
mod tensor_info;

pub(crate) use explain::explain;
pub use metadata::{Metadata, MetadataBuilder};
pub use options::{HeaderOptions, TrailingBytes};
pub use tensor_info::TensorInfo;

use self::declared::Declared;
use crate::format::PREFIX_LEN;
use crate::limit::Limit;
use crate::{ErrorKind, Result, reserve};

/// From this length on, memory is reserved before a header is parsed.
const LONG: usize = 1 << 20;

/// Most bytes that parsing allocates per byte of text, unless `max_rank` is raised. Names are many
/// small allocations: if one of them failed, there would be no memory for an error either.
const MOST_PER_BYTE: usize = 4;

/// The header of a file: its tensors and metadata, checked against the file's length.
///
/// A header exists only if its tensors cover the data of the file from first byte to last without
/// hole or overlap, each with exactly the bytes its dtype and shape need. Parsing accepts what the
/// `safetensors` crate 0.8.0 accepts, except headers with two readings (a name or a metadata key
/// given twice, a tensor written as an array) and headers over the limits of [`HeaderOptions`].
///
/// ```
/// use tensorfile::{Dtype, Header, HeaderOptions};
///
/// let json = br#"{"w":{"dtype":"U8","shape":[2,3],"data_offsets":[0,6]}}"#;
/// let file = [&(json.len() as u64).to_le_bytes(), &json[..], &[0; 6]].concat();
/// let header = Header::from_bytes(&file, &HeaderOptions::default())?;
/// let w = header.get("w").expect("the header names it");
/// assert_eq!((w.dtype(), w.shape()), (Dtype::U8, &[2, 3][..]));
/// assert_eq!(w.file_range(), header.data_start()..file.len() as u64);
/// # Ok::<(), tensorfile::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    tensors: Vec<TensorInfo>,
    metadata: Option<Metadata>,
    header_len: u64,
    data_len: u64,
    trailing_bytes: u64,
}

impl Header {
    /// Parses the header of a file that is wholly in memory.
    ///
    /// # Errors
    ///
    /// Fails if the header is malformed or over a limit. The error names the tensor, but no path.
    pub fn from_bytes(bytes: &[u8], options: &HeaderOptions) -> Result<Self> {
        let byte_len = bytes.len() as u64;
        Self::in_prefix(bytes, byte_len, options).map_err(|error| explain(error, bytes, byte_len))
    }

    fn in_prefix(bytes: &[u8], byte_len: u64, options: &HeaderOptions) -> Result<Self> {
        let prefix = bytes.first_chunk().copied().unwrap_or_default();
        let json_len = Self::json_len(prefix, byte_len, options)?;
        let json = bytes.get(PREFIX_LEN..).and_then(|rest| rest.get(..json_len));
        Self::parse(json.unwrap_or_default(), byte_len, options)
    }

    /// The length of the JSON from the file's first bytes, checked against the file's length and
    /// the limit.
    ///
    /// Call this before allocating anything for the header.
    pub(crate) fn json_len(
        prefix: [u8; PREFIX_LEN],
        byte_len: u64,
        options: &HeaderOptions,
    ) -> Result<usize, ErrorKind> {
        let rest = match byte_len.checked_sub(PREFIX_LEN as u64) {
            Some(rest) => rest,
            None if byte_len == 0 => return Err(ErrorKind::Empty),
            None => return Err(ErrorKind::TooShort { byte_len }),
        };
        let header_len = u64::from_le_bytes(prefix);
        if header_len > rest {
            return Err(ErrorKind::HeaderPastEnd { header_len, byte_len });
        }
        let (max, option) = (options.max_header_bytes, "HeaderOptions::max_header_bytes");
        Limit::check_header(header_len, max, option)?;
        // The limits are below 4 GiB, so it fits in 32 bits.
        Ok(usize::try_from(header_len).unwrap_or(usize::MAX))
    }

    /// Parses the JSON of a file of this length and checks what it declares.
    pub(crate) fn parse(json: &[u8], byte_len: u64, options: &HeaderOptions) -> Result<Self> {
        let text = std::str::from_utf8(json)
            .map_err(|error| ErrorKind::HeaderNotUtf8 { valid_up_to: error.valid_up_to() })?;
        if text.len() >= LONG {
            let needed = text.len().saturating_mul(MOST_PER_BYTE);
            reserve::check::<u8>(needed)?;
        }
        let Declared { mut tensors, metadata } = match plain::parse(text, options) {
            Some(declared) => declared,
            None => json::parse(text, options)?,
        };
        let data_len = cover::check(&mut tensors)?;
        let header_len = json.len() as u64;
        let data_start = header_len.saturating_add(PREFIX_LEN as u64);
        let expected = data_start.saturating_add(data_len);
        let Some(trailing_bytes) = byte_len.checked_sub(expected) else {
            let available = byte_len.saturating_sub(data_start);
            let first = cover::first_beyond(&tensors, available, |tensor| tensor.offsets);
            let first = first.map_or("", |tensor| &tensor.name);
            return Err(ErrorKind::Truncated { expected, found: byte_len }.in_tensor(first));
        };
        if trailing_bytes > 0 && options.trailing_bytes == TrailingBytes::Refuse {
            return Err(ErrorKind::TrailingBytes { count: trailing_bytes }.into());
        }
        // Reuses the memory of the declared list.
        let tensors = tensors.into_iter().map(|tensor| tensor.in_file(data_start)).collect();
        Ok(Self { tensors, metadata, header_len, data_len, trailing_bytes })
    }

    /// The tensors, by name in byte order.
    #[must_use]
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensors, by name in byte order, and the metadata.
    #[must_use]
    pub fn into_parts(self) -> (Vec<TensorInfo>, Option<Metadata>) {
        (self.tensors, self.metadata)
    }

    /// The tensor of this name; a binary search.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&TensorInfo> {
        let found = self.tensors.binary_search_by(|tensor| tensor.name().cmp(name));
        found.ok().and_then(|index| self.tensors.get(index))
    }

    /// The number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether the file holds no tensor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// The entries of `__metadata__`; `None` if the header has none, which differs from an empty
    /// map.
    #[must_use]
    pub fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// Bytes of the JSON, including white space around it.
    #[must_use]
    pub fn header_len(&self) -> u64 {
        self.header_len
    }

    /// The position in the file at which the data begins: after the 8 bytes of the length and the
    /// JSON.
    #[must_use]
    pub fn data_start(&self) -> u64 {
        self.header_len.saturating_add(PREFIX_LEN as u64)
    }

    /// Bytes of all tensors together.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.data_len
    }

    /// Bytes of the file after its last tensor; 0 unless the options allow them.
    #[must_use]
    pub fn trailing_bytes(&self) -> u64 {
        self.trailing_bytes
    }

    /// The first tensor, in file order, that ends after this file length.
    pub(crate) fn first_beyond(&self, byte_len: u64) -> Option<&TensorInfo> {
        cover::first_beyond(&self.tensors, byte_len, |tensor| {
            (tensor.file_range().start, tensor.file_range().end)
        })
    }
}

#[cfg(test)]
mod tests;
