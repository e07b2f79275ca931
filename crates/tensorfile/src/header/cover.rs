//! Checks that the tensors of a header fit together: unique names, right sizes, data covered once.

use super::declared::DeclaredTensor;
use crate::{Error, ErrorKind, Result, reserve, shape};

/// Sorts tensors by name and returns the data offset at which the last one ends.
///
/// The rules are the reference's: in order of offsets, each tensor begins where the one before it
/// ends, the first at 0, and each has exactly the bytes that its dtype and shape need.
pub(super) fn check(tensors: &mut [DeclaredTensor]) -> Result<u64> {
    // Writers list tensors in order of offsets, and then the cover needs no sort. A fault found
    // here is dropped and found again below: an error may hold a shape as long as the header.
    let as_listed = check_cover(tensors.iter()).ok();
    // A stable sort, because it is fast on presorted runs, which headers are.
    reserve::check::<DeclaredTensor>(tensors.len())?;
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    check_names(tensors)?;
    if let Some(covered) = as_listed {
        return Ok(covered);
    }
    let mut order = reserve::collect(tensors.iter())?;
    reserve::check::<&DeclaredTensor>(order.len())?;
    order.sort_by_key(|tensor| tensor.offsets);
    check_cover(order.into_iter())
}

/// The first tensor, by begin and end from `range`, that ends after the available bytes.
pub(super) fn first_beyond<T>(
    tensors: &[T],
    available: u64,
    range: impl Fn(&T) -> (u64, u64),
) -> Option<&T> {
    let beyond = tensors.iter().filter(|tensor| {
        let (begin, end) = range(tensor);
        end > available && end > begin
    });
    beyond.min_by_key(|tensor| range(tensor))
}

/// Refuses a name given twice; the tensors are sorted by name.
fn check_names(tensors: &[DeclaredTensor]) -> Result<()> {
    let neighbours = tensors.iter().zip(tensors.iter().skip(1));
    for (tensor, next) in neighbours {
        if tensor.name == next.name {
            return Err(ErrorKind::DuplicateTensor.in_tensor(tensor.name.clone()));
        }
    }
    Ok(())
}

/// Checks offsets and sizes of tensors in this order, and returns where the last one ends.
fn check_cover<'a>(tensors: impl Iterator<Item = &'a DeclaredTensor>) -> Result<u64> {
    let mut previous: Option<&DeclaredTensor> = None;
    let mut covered = 0;
    for tensor in tensors {
        let (begin, end) = tensor.offsets;
        if end < begin {
            return Err(ErrorKind::OffsetsReversed { begin, end }.in_tensor(tensor.name.clone()));
        }
        if begin != covered {
            return Err(misplaced(tensor, covered, previous));
        }
        shape::check(tensor.dtype, tensor.shape.as_slice(), end.saturating_sub(begin))
            .map_err(|kind| kind.in_tensor(tensor.name.clone()))?;
        covered = end;
        previous = Some(tensor);
    }
    Ok(covered)
}

/// The error for a tensor that does not begin where the one before it ends.
fn misplaced(tensor: &DeclaredTensor, covered: u64, previous: Option<&DeclaredTensor>) -> Error {
    let begin = tensor.offsets.0;
    let kind = match previous {
        Some(other) if begin < covered => {
            ErrorKind::Overlap { begin, other: other.name.clone(), other_end: covered }
        }
        _ => ErrorKind::Hole { begin, expected: covered },
    };
    kind.in_tensor(tensor.name.clone())
}
