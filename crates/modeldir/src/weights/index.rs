//! The index of a model: which shard holds which tensor, from the headers of all shards and the
//! weight map.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

pub(crate) mod build;
mod id;
mod shard;
mod tensor;

use std::ops::{self, Range};
use std::path::PathBuf;
use std::sync::Arc;

use tensorfile::{ErrorKind as FileErrorKind, FileFact, SourceFile, TensorInfo, Unchanged};

use crate::rank_part::PartRecord;
use crate::weights::alias::Aliases;
use crate::weights::join::Slot;
use crate::{Error, ErrorKind, Result};

pub(crate) use id::{ShardId, TensorId};
pub use shard::Shard;
pub use tensor::IndexedTensor;

/// The shard of this id in the list that it belongs to.
fn shard_of(shards: &[Shard], id: ShardId) -> &Shard {
    shards.get(id.position()).expect("shards are numbered as they lie in their list")
}

/// The tensor in a slot, and its shard.
fn stored(shards: &[Shard], slot: Slot) -> (&Shard, &TensorInfo) {
    let shard = shard_of(shards, ShardId::new(slot.shard));
    let info = shard.tensors().get(slot.tensor as usize);
    (shard, info.expect("slots are made of the tensors of each shard"))
}

/// The tensors of a model directory by name, and the shards that hold them.
#[derive(Debug)]
pub(crate) struct Index {
    /// The folder that shard paths are relative to.
    pub(crate) root: PathBuf,
    shards: Vec<Shard>,
    /// The place of each tensor, sorted by name; each name once.
    order: Vec<Slot>,
    pub(crate) aliases: Arc<Aliases>,
    /// Whose part of a model this is, if the metadata says so.
    pub(crate) part_record: Option<Arc<PartRecord>>,
    /// What shows that a shard is the file whose header was read.
    unchanged: Unchanged,
}

impl Index {
    /// The number of tensors.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Bytes of all tensors.
    pub(crate) fn byte_len(&self) -> u64 {
        self.iter().map(|tensor| tensor.byte_len() as u64).fold(0, u64::saturating_add)
    }

    /// The weight files.
    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// The tensors, by name.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = IndexedTensor<'_>> {
        self.order.iter().enumerate().map(|(i, slot)| self.in_slot(TensorId::at(i), *slot))
    }

    /// The tensor of this id, with its shard.
    pub(crate) fn tensor(&self, id: TensorId) -> IndexedTensor<'_> {
        self.in_slot(id, self.slot(id))
    }

    /// The tensor stored under this name.
    pub(crate) fn find(&self, name: &str) -> Option<IndexedTensor<'_>> {
        let by_name = |slot: &Slot| stored(&self.shards, *slot).1.name().cmp(name);
        let found = self.order.binary_search_by(by_name).ok()?;
        Some(self.tensor(TensorId::at(found)))
    }

    /// The tensor of this name, or the target of this alias.
    pub(crate) fn resolve(&self, name: &str) -> Result<IndexedTensor<'_>> {
        self.find(self.aliases.target(name)).ok_or_else(|| self.not_found(name))
    }

    fn slot(&self, id: TensorId) -> Slot {
        *self.order.get(id.position()).expect("only this index makes the numbers of its tensors")
    }

    fn in_slot(&self, id: TensorId, slot: Slot) -> IndexedTensor<'_> {
        let (shard, info) = stored(&self.shards, slot);
        IndexedTensor { id, info, shard }
    }

    /// The error for a name that is neither stored nor an alias.
    fn not_found(&self, name: &str) -> Error {
        let names = || self.iter().map(IndexedTensor::name);
        let hint = self.aliases.hint(name, names);
        ErrorKind::TensorNotFound { hint: hint.into() }.at(&self.root).in_tensor(name)
    }

    /// Opens a shard again and checks that it is the file whose header was read.
    pub(crate) fn open_shard(&self, shard: ShardId) -> tensorfile::Result<SourceFile> {
        let file = SourceFile::open_with(self.shard_path(shard), self.unchanged)?;
        file.check_same(self[shard].identity())?;
        Ok(file)
    }

    /// The path of a shard's file.
    pub(crate) fn shard_path(&self, shard: ShardId) -> PathBuf {
        self.root.join(self[shard].path())
    }

    /// Adds the affected tensor to the error of a failed read.
    pub(crate) fn with_tensor(
        &self,
        error: Error,
        shard: ShardId,
        file_range: Range<u64>,
    ) -> Error {
        let ErrorKind::File(kind) = error.kind() else { return error };
        match self.first_lost(kind, shard, file_range) {
            Some(tensor) => error.in_tensor(tensor.name()),
            None => error,
        }
    }

    /// The first tensor affected by a failed read: if the file is shorter now, the first that lost
    /// bytes; else the first in the range.
    fn first_lost(
        &self,
        kind: &FileErrorKind,
        shard: ShardId,
        file_range: Range<u64>,
    ) -> Option<IndexedTensor<'_>> {
        let Range { start, end } = file_range;
        let wanted = match kind {
            FileErrorKind::Changed { what: FileFact::ByteLen, after, .. } => {
                u64::try_from(*after).unwrap_or(0)..u64::MAX
            }
            // If the file has grown again, what was missing is unknown.
            FileErrorKind::ReadPastEnd { range, byte_len } if *byte_len < end => {
                start.max(range.start).max(*byte_len)..end
            }
            FileErrorKind::Read { range, .. } => start.max(range.start)..end,
            FileErrorKind::Changed { .. } | FileErrorKind::ReadPastEnd { .. } => start..end,
            _ => return None,
        };
        let touched = |tensor: &IndexedTensor<'_>| {
            let range = tensor.file_range();
            tensor.shard().id() == shard && range.start < wanted.end && wanted.start < range.end
        };
        self.iter().filter(touched).min_by_key(|tensor| tensor.file_range().start)
    }
}

impl ops::Index<ShardId> for Index {
    type Output = Shard;

    fn index(&self, id: ShardId) -> &Shard {
        shard_of(&self.shards, id)
    }
}
