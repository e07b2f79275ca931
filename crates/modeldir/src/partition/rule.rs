//! `Rule`: how the tensors of some names are divided.

use serde::{Deserialize, Serialize};

use super::error::PartitionError;
use super::expect::Expected;
use super::layout::Layout;
use super::pattern::Pattern;
use super::tp::Tp;

/// How the tensors that a pattern matches are divided; other rules fill in the fields left open.
///
/// Rules are tried in order; for each field, the first rule that matches and sets it wins.
///
/// ```
/// use modeldir::partition::{Rule, Tp};
///
/// let rule: Rule = serde_json::from_str(r#"{"match": "**.o_proj.weight", "tp": "row"}"#)?;
/// assert_eq!(rule.tp, Some(Tp::row()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The names of the tensors.
    #[serde(rename = "match")]
    pub pattern: Pattern,
    /// The part of tensor-parallel ranks; everything if no rule sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tp: Option<Tp>,
    /// The part of expert-parallel ranks; everything if no rule sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ep: Option<Ep>,
    /// The stages of a pipeline that hold it; if no rule sets it, the stage of the layer in the
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pp: Option<Pp>,
    /// The dimensions of the axes; [`Layout::Linear`] if no rule sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// What the tensors must be to be cut; the built-in rules set it. Without it, a tensor of an
    /// unknown layout is plain: one element on disk for each element of the layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expected>,
    /// What to do with the rule if it matches nothing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unused: Unused,
}

/// What to do with a rule that matches no tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unused {
    /// Report it, or refuse it, as [`Partition::unmatched`](super::Partition::unmatched) says.
    #[default]
    Report,
    /// Ignore it: the model may lack these names.
    Ignore,
}

fn is_default(unused: &Unused) -> bool {
    *unused == Unused::default()
}

/// How a tensor is divided among the ranks of an expert-parallel group.
///
/// `Name` and `Axis` are for tensors of experts, which are cut over the ranks of
/// [`Topology::expert_tp`](super::Topology::expert_tp).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Ep {
    /// Every rank holds it; it is not an expert's.
    All,
    /// It belongs to one expert, whose number the pattern finds with `{e}`.
    Name,
    /// It holds all experts, along one dimension.
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
    /// A rule that sets no field.
    #[must_use]
    pub const fn new(pattern: Pattern) -> Self {
        Self {
            pattern,
            tp: None,
            ep: None,
            pp: None,
            layout: None,
            expect: None,
            unused: Unused::Report,
        }
    }

    /// Refuses a rule without parts, or one whose pattern does not find a number that it needs.
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
