//! Tables of tensors.

use modeldir::ModelDir;
use tensorfile::PathText;

use super::tally::counts;
use crate::output::{Align, Table, bytes, count, shown};

/// Returns a table with a row for each tensor.
pub(crate) fn tensor_rows(model: &ModelDir) -> Table<5> {
    let (left, right) = (Align::Left, Align::Right);
    let columns =
        [("tensor", left), ("dtype", left), ("shape", left), ("bytes", right), ("shard", left)];
    let mut table = Table::new(columns);
    for tensor in model.tensors() {
        let (dtype, shape) = (tensor.dtype().to_string(), format!("{:?}", tensor.shape()));
        let shard = PathText(tensor.shard().path()).to_string();
        table.row([shown(tensor.name()), dtype, shape, bytes(tensor.byte_len() as u64), shard]);
    }
    table
}

/// Returns a table with one row for all tensors of the same dtype and shape whose names differ only
/// in numbers, such as that of the layer; `*` stands for a number.
pub(crate) fn tensor_groups(model: &ModelDir) -> Table<5> {
    let (left, right) = (Align::Left, Align::Right);
    let columns =
        [("tensor", left), ("dtype", left), ("shape", left), ("count", right), ("bytes", right)];
    let mut table = Table::new(columns);
    let groups = counts(model.tensors(), |t| (pattern(t.name()), t.dtype(), t.shape()));
    for ((pattern, dtype, shape), (tensors, byte_len)) in groups {
        let (name, shape) = (shown(&pattern), format!("{shape:?}"));
        table.row([name, dtype.to_string(), shape, count(tensors), bytes(byte_len)]);
    }
    table
}

/// Whether a part of a name is a number.
pub(crate) fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())
}

/// The name with `*` for each number.
fn pattern(name: &str) -> String {
    let parts = name.split('.').map(|part| if is_number(part) { "*" } else { part });
    parts.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn whole_parts_only_are_numbers() {
        let name = "model.layers.11.mlp.experts.203.w1.weight";
        assert_eq!(pattern(name), "model.layers.*.mlp.experts.*.w1.weight");
        assert_eq!(pattern("a..b"), "a..b");
    }
}
