//! What the text of a header declares, not yet checked.

use super::dims::Dims;
use super::metadata::Metadata;
use super::tensor_info::TensorInfo;
use crate::Dtype;
use crate::reserve::{self, NoMemory};

/// Bytes that a tensor's entry usually takes, or fewer.
const USUAL_ENTRY_LEN: usize = 96;

/// The declared tensors and metadata, in the order of the text.
pub(super) struct Declared {
    pub(super) tensors: Vec<DeclaredTensor>,
    pub(super) metadata: Option<Metadata>,
}

impl Declared {
    /// An empty list, with room for as many tensors as a text of this length usually declares.
    pub(super) fn for_text(text: &str) -> Result<Self, NoMemory> {
        // The text is in memory, so its real length bounds this.
        Ok(Self { tensors: reserve::list(text.len() / USUAL_ENTRY_LEN)?, metadata: None })
    }
}

/// One tensor as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeclaredTensor {
    pub(super) name: Box<str>,
    /// Begin and end, counted from the start of the data.
    pub(super) offsets: (u64, u64),
    pub(super) shape: Dims,
    pub(super) dtype: Dtype,
}

impl DeclaredTensor {
    /// The tensor, in a file whose data starts here; the sums are bounded by the file's length.
    pub(super) fn in_file(self, data_start: u64) -> TensorInfo {
        let Self { name, offsets: (begin, end), shape, dtype } = self;
        let range = (data_start.saturating_add(begin), data_start.saturating_add(end));
        TensorInfo::new(name, dtype, shape, range)
    }
}
