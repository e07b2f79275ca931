//! `Rule`: what the tensors of some names are.

use serde::{Deserialize, Serialize};

use super::error::PartitionError;
use super::layout::Layout;
use super::pattern::Pattern;
use super::tp::Tp;

/// What the tensors are that a pattern matches, as far as it is said.
///
/// Rules are tried in order, and of each field the first rule counts that matches and sets it.
///
/// ```
/// use modeldir::{Rule, Tp};
///
/// let rule: Rule = serde_json::from_str(r#"{"match": "**.o_proj.weight", "tp": "row"}"#)?;
/// assert_eq!(rule.tp, Some(Tp::row()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The names that the rule is about.
    #[serde(rename = "match")]
    pub pattern: Pattern,
    /// What tensor-parallel ranks hold; everything if no rule says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tp: Option<Tp>,
    /// What expert-parallel ranks hold; everything if no rule says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ep: Option<Ep>,
    /// Which stages of a pipeline hold it; if no rule says it, the stage of the layer that the name
    /// tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pp: Option<Pp>,
    /// On which dimensions the axes lie; [`Layout::Linear`] if no rule says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Whether it is as it should be if nothing matches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// What the ranks of an expert-parallel group hold of a tensor.
///
/// Tensors of which this is `Name` or `Axis` are those of experts: they are cut over the ranks of
/// [`Topology::expert_tp`](super::Topology::expert_tp).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Ep {
    /// Every rank holds it; it is not an expert's.
    All,
    /// It is of one expert, whose number the pattern finds with `{e}`.
    Name,
    /// It is of all experts, which lie along one dimension.
    Axis,
}

/// Which stages of a pipeline hold a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Pp {
    /// All of them.
    Everywhere,
    /// The first.
    First,
    /// The last.
    Last,
    /// The first and the last.
    Ends,
    /// That of the layer whose number the pattern finds with `{l}`.
    Layer,
    /// This one, counted from 0.
    Stage(usize),
    /// None.
    Skip,
}

impl Rule {
    /// A rule that says nothing yet.
    #[must_use]
    pub const fn new(pattern: Pattern) -> Self {
        Self { pattern, tp: None, ep: None, pp: None, layout: None, optional: false }
    }

    /// Refuses a rule that needs a number which its pattern does not find, or has no parts.
    pub(super) fn check(&self) -> Result<(), PartitionError> {
        let reason = match self {
            Self { ep: Some(Ep::Name), pattern, .. } if !pattern.has_expert() => {
                "ep \"name\" needs {e}"
            }
            Self { pp: Some(Pp::Layer), pattern, .. } if !pattern.has_layer() => {
                "pp \"layer\" needs {l}"
            }
            Self { tp: Some(Tp::Split(split)), .. } if split.parts.is_empty() => {
                "a split has at least one part"
            }
            _ => return Ok(()),
        };
        Err(PartitionError::Pattern { pattern: self.pattern.as_str().into(), reason })
    }
}
