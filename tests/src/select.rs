//! Parts of tensors, read through every kind of file: positioned reads, memory and mapping.

use std::ops::Range;
use std::path::{Path, PathBuf};

use modeldir::ModelDir;
use sha2::{Digest, Sha256};
use tensorfile::{HeaderOptions, Selection, Tensor, TensorFile};

use crate::expected::OpenAs;
use crate::query::HeadShare;
use crate::refusal::Refusal;
use crate::ways::{bytes_of, map_file};

/// The file that holds a tensor of the target.
pub(crate) fn file_of(target: &Path, open_as: OpenAs, tensor: &str) -> Result<PathBuf, String> {
    if open_as == OpenAs::File {
        return Ok(target.to_owned());
    }
    let model = ModelDir::open(target).map_err(|error| Refusal::from(error).text)?;
    let info = model.info(tensor).map_err(|error| Refusal::from(error).text)?;
    Ok(model.path().join(info.shard().path()))
}

/// Reads a part of a tensor in three ways, which must agree.
pub(crate) fn read_part(
    file: &Path,
    tensor: &str,
    selection: &Selection,
) -> Result<Result<Tensor, Refusal>, String> {
    let opened = TensorFile::open(file).map_err(|error| Refusal::from(error).text)?;
    let mapped = map_file(&opened).map_err(|error| Refusal::from(error).text)?;
    let bytes = bytes_of(file).map_err(|error| error.to_string())?;
    let in_memory = TensorFile::from_source(file, &**bytes, &HeaderOptions::default())
        .map_err(|error| Refusal::from(error).text)?;
    let read = opened.read_selection(tensor, selection).map_err(Refusal::from);
    let others = [
        ("mapped", mapped.read_selection(tensor, selection).map_err(Refusal::from)),
        ("in memory", in_memory.read_selection(tensor, selection).map_err(Refusal::from)),
    ];
    for (way, other) in others {
        match (&read, &other) {
            (Ok(read), Ok(other)) if same(read, other) => {}
            (Err(read), Err(other)) if read.text == other.text => {}
            _ => return Err(format!("{way}: {other:?}, read: {read:?}")),
        }
    }
    Ok(read)
}

fn same(one: &Tensor, other: &Tensor) -> bool {
    (one.dtype(), one.shape(), one.bytes()) == (other.dtype(), other.shape(), other.bytes())
}

/// Ranges for each dimension as a selection.
pub(crate) fn selection(ranges: &[Option<(usize, usize)>]) -> Selection {
    let ranges: Vec<Option<Range<usize>>> =
        ranges.iter().map(|range| range.map(|(start, end)| start..end)).collect();
    Selection::from_ranges(&ranges)
}

/// The elements of a dimension that a rank takes: `ceil(len / world)` each, the last ones less.
pub(crate) fn rank_range(len: usize, rank: usize, world: usize) -> Range<usize> {
    let part = len.div_ceil(world);
    (rank * part).min(len)..((rank + 1) * part).min(len)
}

/// The rows of the head that a rank shares with others, where there are more ranks than heads.
pub(crate) fn head_rows(rows: usize, share: HeadShare) -> Result<Range<usize>, String> {
    let HeadShare { rank, world, heads } = share;
    if heads == 0 || world % heads != 0 || rows % heads != 0 || rank >= world {
        return Err(format!("{rows} rows of {heads} heads cannot be shared by {world} ranks"));
    }
    let (head, rows) = (rank / (world / heads), rows / heads);
    Ok(head * rows..(head + 1) * rows)
}

/// Joins parts of a tensor along an axis.
pub(crate) fn join(parts: &[Tensor], axis: usize) -> Vec<u8> {
    let outer: usize = parts.first().map_or(0, |part| part.shape()[..axis].iter().product());
    let mut joined = Vec::new();
    for i in 0..outer {
        for part in parts {
            let row = part.byte_len() / outer;
            joined.extend_from_slice(&part.bytes()[i * row..(i + 1) * row]);
        }
    }
    joined
}

/// The SHA-256 of bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
