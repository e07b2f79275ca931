//! What a rank holds of tensors that no rule matches.

use std::fmt;

use modeldir::LoadPlan;
use serde_json::{Value, json};

use crate::output::{bytes, counted};

/// What a rank holds of tensors that no rule matches: all of each, as every rank of its stage does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithoutRule {
    /// Number of such tensors in the model.
    tensors: usize,
    /// Their bytes on this rank.
    byte_len: u64,
    /// All bytes of this rank.
    of: u64,
}

impl WithoutRule {
    /// Of the rank of a plan; `None` if every tensor has a rule.
    pub(crate) fn of(plan: &LoadPlan) -> Option<Self> {
        let report = plan.partition_report()?;
        let tensors = report.unmatched.len();
        let (byte_len, of) = (report.unmatched_bytes, plan.bytes_selected());
        (tensors > 0).then_some(Self { tensors, byte_len, of })
    }

    /// The share of the bytes of the rank.
    pub(crate) fn share(&self) -> f64 {
        self.byte_len as f64 / self.of.max(1) as f64
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Value {
        json!({ "tensors": self.tensors, "bytes": self.byte_len, "share": self.share() })
    }

    /// The bytes and their share of the rank, as text.
    pub(crate) fn extent(&self) -> String {
        format!("{}, {:.1} % of a rank", bytes(self.byte_len), 100.0 * self.share())
    }
}

impl fmt::Display for WithoutRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensors = counted(self.tensors, "tensor");
        write!(f, "{tensors} without a rule, whole on every rank of a stage: {}", self.extent())
    }
}
