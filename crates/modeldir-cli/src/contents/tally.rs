//! Counts of tensors and bytes by shard or by dtype.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Map, Value, json};

use crate::output::{Align, Output, Table, bytes, count};

/// Maximum rows of a table of counts; the last one sums up the rest.
const MAX_ROWS: usize = 24;

/// Number of tensors and their bytes, by shard or by dtype.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    heading: &'static str,
    counts: BTreeMap<String, (u64, u64)>,
}

impl Tally {
    /// Makes empty counts under this heading.
    pub(crate) fn new(heading: &'static str) -> Self {
        Self { heading, counts: BTreeMap::new() }
    }

    /// Counts one tensor.
    pub(crate) fn add(&mut self, key: &impl ToString, byte_len: usize) {
        let (tensors, bytes) = self.counts.entry(key.to_string()).or_default();
        *tensors += 1;
        *bytes += byte_len as u64;
    }

    /// Writes a table by key; if there are too many keys, the last row sums up the rest.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub(crate) fn print(&self, out: &mut Output) -> io::Result<()> {
        let right = Align::Right;
        let mut table =
            Table::new([(self.heading, Align::Left), ("tensors", right), ("bytes", right)]);
        let shown = if self.counts.len() > MAX_ROWS { MAX_ROWS - 1 } else { MAX_ROWS };
        for (key, (tensors, byte_len)) in self.counts.iter().take(shown) {
            table.row([key.clone(), count(*tensors), bytes(*byte_len)]);
        }
        let rest = || self.counts.values().skip(shown);
        if rest().next().is_some() {
            let (tensors, byte_len) = (rest().map(|c| c.0).sum(), rest().map(|c| c.1).sum());
            table.row([format!("and {} more", rest().count()), count(tensors), bytes(byte_len)]);
        }
        table.print(out)
    }

    /// Every key with its counts.
    pub(crate) fn json(&self) -> Value {
        let counts = self.counts.iter().map(|(key, (tensors, byte_len))| {
            (key.clone(), json!({ "tensors": tensors, "bytes": byte_len }))
        });
        Value::Object(counts.collect::<Map<_, _>>())
    }
}
