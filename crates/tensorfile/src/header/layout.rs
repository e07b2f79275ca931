//! Whether the tensors of a header fit together: names once, sizes right, data covered once.

use std::path::Path;

use super::TensorInfo;
use super::json::no_memory;
use crate::reserve::{self, NoMemory};
use crate::{Error, Result, shape};

/// Sorts tensors by name and returns where the last of them ends, as a data offset.
///
/// The rules are the reference's: in order of offsets, each tensor begins where the one before it
/// ends, the first at 0, and each has exactly the bytes that its dtype and shape need.
pub(super) fn check(path: &Path, tensors: &mut [TensorInfo]) -> Result<u64> {
    // Writers list tensors in order of offsets, and then nothing has to be sorted for the cover.
    // What else is wrong is not kept: an error may hold a shape as long as the header.
    let as_listed = check_cover(path, tensors.iter()).ok();
    let asked_for = |asked: Result<(), NoMemory>| asked.map_err(|none| no_memory(path, none));
    // Stable, as it is fast on the runs that headers are.
    asked_for(reserve::check::<TensorInfo>(tensors.len()))?;
    tensors.sort_by(|a, b| a.name().cmp(b.name()));
    check_names(path, tensors)?;
    if let Some(covered) = as_listed {
        return Ok(covered);
    }
    let order = reserve::collect(tensors.iter());
    let mut order = order.map_err(|none| no_memory(path, none))?;
    asked_for(reserve::check::<&TensorInfo>(order.len()))?;
    order.sort_by_key(|tensor| tensor.range());
    check_cover(path, order.into_iter())
}

/// The first tensor, by offset, that has bytes beyond those that are there.
pub(super) fn first_beyond(tensors: &[TensorInfo], available: u64) -> Option<&TensorInfo> {
    let beyond = tensors.iter().filter(|tensor| {
        let (begin, end) = tensor.range();
        end > available && end > begin
    });
    beyond.min_by_key(|tensor| tensor.range())
}

/// Refuses a name given twice; the tensors are sorted by name.
fn check_names(path: &Path, tensors: &[TensorInfo]) -> Result<()> {
    let neighbours = tensors.iter().zip(tensors.iter().skip(1));
    for (tensor, next) in neighbours {
        if tensor.name() == next.name() {
            let (path, tensor) = (path.to_path_buf(), tensor.name().into());
            return Err(Error::DuplicateTensor { path, tensor });
        }
    }
    Ok(())
}

/// Checks offsets and sizes of tensors in this order, and returns where the last one ends.
fn check_cover<'a>(path: &Path, tensors: impl Iterator<Item = &'a TensorInfo>) -> Result<u64> {
    let mut previous: Option<&TensorInfo> = None;
    let mut covered = 0;
    for tensor in tensors {
        let (begin, end) = tensor.range();
        if end < begin {
            let (path, tensor) = (path.to_path_buf(), tensor.name().into());
            return Err(Error::OffsetsReversed { path, tensor, begin, end });
        }
        if begin != covered {
            return Err(misplaced(path, tensor, covered, previous));
        }
        check_size(path, tensor)?;
        covered = end;
        previous = Some(tensor);
    }
    Ok(covered)
}

/// The error for a tensor that does not begin where the bytes before it end.
fn misplaced(
    path: &Path,
    tensor: &TensorInfo,
    covered: u64,
    previous: Option<&TensorInfo>,
) -> Error {
    let (path, begin) = (path.to_path_buf(), tensor.range().0);
    let tensor = tensor.name().into();
    match previous {
        Some(other) if begin < covered => {
            Error::Overlap { path, tensor, begin, other: other.name().into(), other_end: covered }
        }
        _ => Error::Hole { path, tensor, begin, expected: covered },
    }
}

/// Checks that offsets and shape agree.
fn check_size(path: &Path, tensor: &TensorInfo) -> Result<()> {
    let (dtype, (begin, end)) = (tensor.dtype(), tensor.range());
    let named = || (path.to_path_buf(), Box::<str>::from(tensor.name()), tensor.shape().into());
    let Some(bits) = shape::num_bits(dtype, tensor.shape()) else {
        let (path, tensor, shape) = named();
        return Err(Error::ShapeOverflow { path, tensor, dtype, shape });
    };
    if bits % 8 != 0 {
        let (path, tensor, shape) = named();
        return Err(Error::PartialByte { path, tensor, dtype, shape, bits });
    }
    let (declared, needed) = (end.saturating_sub(begin), (bits / 8) as u64);
    if declared != needed {
        let (path, tensor, shape) = named();
        return Err(Error::SizeMismatch { path, tensor, dtype, shape, declared, needed });
    }
    Ok(())
}
