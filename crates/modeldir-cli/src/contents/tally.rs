//! Numbers of tensors and bytes, by shard and by dtype.

use std::collections::BTreeMap;
use std::io;

use modeldir::IndexedTensor;
use serde_json::{Map, Value, json};
use tensorfile::PathText;

use crate::output::{Align, Output, Table, bytes, count};

/// Maximum rows on a terminal; the last one sums up the rest.
const MAX_ROWS: usize = 24;

/// Numbers of tensors and bytes, by shard or by dtype.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    heading: &'static str,
    rows: Vec<Counted>,
}

/// A shard or a dtype, with the number of its tensors and their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// The path of the shard, or the name of the dtype.
    pub(crate) name: String,
    /// Number of tensors.
    pub(crate) tensors: u64,
    /// Bytes of the tensors.
    pub(crate) bytes: u64,
}

impl Tally {
    /// Counts by shard, in the order of the shards.
    pub(crate) fn by_shard<'m>(tensors: impl Iterator<Item = IndexedTensor<'m>>) -> Self {
        let shards = counts(tensors, |tensor| (tensor.shard().position(), tensor.shard().path()));
        Self::new(
            "shard",
            shards.into_iter().map(|((_, path), sums)| (PathText(path).to_string(), sums)),
        )
    }

    /// Counts by dtype.
    pub(crate) fn by_dtype<'m>(tensors: impl Iterator<Item = IndexedTensor<'m>>) -> Self {
        let dtypes = counts(tensors, IndexedTensor::dtype);
        Self::new("dtype", dtypes.into_iter().map(|(dtype, sums)| (dtype.to_string(), sums)))
    }

    fn new(heading: &'static str, counts: impl Iterator<Item = (String, (u64, u64))>) -> Self {
        let row = |(name, (tensors, bytes))| Counted { name, tensors, bytes };
        Self { heading, rows: counts.map(row).collect() }
    }

    /// What is counted by: `shard` or `dtype`.
    pub(crate) fn heading(&self) -> &'static str {
        self.heading
    }

    /// At most this many rows; the last one sums up the rest.
    pub(crate) fn rows(&self, max: usize) -> Vec<Counted> {
        let shown = if self.rows.len() > max { max.saturating_sub(1) } else { max };
        let (first, rest) = self.rows.split_at(shown.min(self.rows.len()));
        let mut rows = first.to_vec();
        if !rest.is_empty() {
            let name = format!("and {} more", count(rest.len() as u64));
            let tensors = rest.iter().map(|row| row.tensors).sum();
            rows.push(Counted { name, tensors, bytes: rest.iter().map(|row| row.bytes).sum() });
        }
        rows
    }

    /// Writes a table.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub(crate) fn print(&self, out: &mut Output) -> io::Result<()> {
        let right = Align::Right;
        let mut table =
            Table::new([(self.heading, Align::Left), ("tensors", right), ("bytes", right)]);
        for Counted { name, tensors, bytes: byte_len } in self.rows(MAX_ROWS) {
            table.row([name, count(tensors), bytes(byte_len)]);
        }
        table.print(out)
    }

    /// Every shard or dtype as a key, with its counts.
    pub(crate) fn json(&self) -> Value {
        let row = |row: &Counted| {
            (row.name.clone(), json!({ "tensors": row.tensors, "bytes": row.bytes }))
        };
        Value::Object(self.rows.iter().map(row).collect::<Map<_, _>>())
    }
}

/// Returns the number of tensors with each key, and the sum of their bytes.
pub(super) fn counts<'m, K: Ord>(
    tensors: impl Iterator<Item = IndexedTensor<'m>>,
    key: impl Fn(IndexedTensor<'m>) -> K,
) -> BTreeMap<K, (u64, u64)> {
    let mut counts: BTreeMap<K, (u64, u64)> = BTreeMap::new();
    for tensor in tensors {
        let (number, bytes) = counts.entry(key(tensor)).or_default();
        *number += 1;
        *bytes += tensor.byte_len() as u64;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use modeldir::ModelDir;

    #[test]
    fn the_last_row_sums_up_the_rest() {
        let model = ModelDir::open(modeldir_fixtures::model("llama")).unwrap();
        let tally = Tally::by_shard(model.tensors());
        let all = tally.rows(4);
        assert_eq!(all.iter().map(|row| row.bytes).sum::<u64>(), model.byte_len());
        let some = tally.rows(3);
        assert_eq!((&some[..2], some[2].name.as_str()), (&all[..2], "and 2 more"));
        assert_eq!(some[2].tensors, all[2].tensors + all[3].tensors);
        assert_eq!(some.iter().map(|row| row.bytes).sum::<u64>(), model.byte_len());
    }
}
