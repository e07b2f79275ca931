//! The report of a partition: unused rules, unmatched tensors, replicated bytes.

use std::fmt;

use serde::Serialize;

use super::words::Shown;

/// Unused rules, unmatched tensors, and the number of replicated bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PartitionReport {
    /// The patterns of rules that match no tensor, or that cut along an axis that none of their
    /// tensors has. Rules with [`Unused::Ignore`](super::Unused::Ignore) are left out.
    pub unused: Vec<String>,
    /// The tensors that no rule matches. Tensor-parallel ranks hold all of them.
    pub unmatched: Vec<String>,
    /// Bytes that this rank takes of the tensors that no rule matches.
    pub unmatched_bytes: u64,
    /// Bytes of this rank that other ranks of its tensor-parallel group take too.
    pub replicated_bytes: u64,
}

impl fmt::Display for PartitionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.unused.is_empty() {
            let count = self.unused.len();
            writeln!(f, "{count} rules that match nothing: {}", Shown(&self.unused))?;
        }
        if !self.unmatched.is_empty() {
            let (count, bytes) = (self.unmatched.len(), self.unmatched_bytes);
            let names = Shown(&self.unmatched);
            writeln!(f, "{count} tensors that no rule matches, {bytes} bytes here: {names}")?;
        }
        writeln!(f, "{} bytes on other ranks too", self.replicated_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::PartitionReport;

    #[test]
    fn a_report_shows_what_is_odd_and_nothing_else() {
        let mut report = PartitionReport { replicated_bytes: 12, ..PartitionReport::default() };
        assert_eq!(report.to_string(), "12 bytes on other ranks too\n");
        report.unmatched_bytes = 40;
        report.unused.push("a.*".to_owned());
        report.unmatched.extend((0..12).map(|i| format!("w{i}")));
        let shown = "1 rules that match nothing: \"a.*\"\n12 tensors that no rule matches, 40 bytes here: \"w0\", \"w1\", \
            \"w2\", \"w3\", \"w4\", \"w5\", \"w6\", \"w7\", \"w8\", \"w9\" and 2 more\n\
            12 bytes on other ranks too\n";
        assert_eq!(report.to_string(), shown);
    }
}
