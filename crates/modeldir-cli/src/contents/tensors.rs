//! Tables of tensors.

use std::collections::BTreeMap;

use modeldir::ModelDir;
use tensorfile::PathText;

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
/// in numbers, such as the layer; `*` stands for a number.
pub(crate) fn tensor_groups(model: &ModelDir) -> Table<5> {
    let mut groups: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for tensor in model.tensors() {
        let key = (pattern(tensor.name()), tensor.dtype(), tensor.shape());
        let (tensors, byte_len) = groups.entry(key).or_default();
        *tensors += 1;
        *byte_len += tensor.byte_len() as u64;
    }
    let (left, right) = (Align::Left, Align::Right);
    let columns =
        [("tensor", left), ("dtype", left), ("shape", left), ("count", right), ("bytes", right)];
    let mut table = Table::new(columns);
    for ((pattern, dtype, shape), (tensors, byte_len)) in groups {
        let (name, shape) = (shown(&pattern), format!("{shape:?}"));
        table.row([name, dtype.to_string(), shape, count(tensors), bytes(byte_len)]);
    }
    table
}

/// The name with `*` for each numeric part.
fn pattern(name: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<_> =
        name.split('.').map(|part| if is_number(part) { "*" } else { part }).collect();
    parts.join(".")
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
