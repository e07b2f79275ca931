//! Which rule decides what for a tensor: the first that matches its name and says something of it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::error::PartitionError;
use super::layout::Layout;
use super::pattern::{Numbers, Pattern, number};
use super::tp::Tp;

/// Segments before the number of a layer.
const LAYERS: [&str; 5] = ["layers", "h", "blocks", "block", "layer"];

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
    fn check(&self) -> Result<(), PartitionError> {
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

/// The rules that decide about one tensor, by their positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decided {
    pub(super) tp: Option<usize>,
    pub(super) ep: Option<usize>,
    pub(super) pp: Option<usize>,
    pub(super) layout: Option<usize>,
    /// Whether any rule matched.
    pub(super) matched: bool,
    /// The layer in the name, found by a pattern or before it by a usual segment.
    pub(super) layer: Option<usize>,
    pub(super) expert: Option<usize>,
}

/// Rules, arranged so that few have to be tried for a name.
#[derive(Debug)]
pub(super) struct Matcher<'a> {
    rules: &'a [Rule],
    /// Rules that need a certain segment at a certain place from the end.
    by_segment: Vec<HashMap<&'a str, Vec<usize>>>,
    /// Rules that have to be tried for each name.
    anywhere: Vec<usize>,
    used: Vec<bool>,
    tells_numbers_apart: bool,
    // Kept between names, to allocate once.
    candidates: Vec<usize>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(rules: &'a [Rule]) -> Result<Self, PartitionError> {
        let mut by_segment: Vec<HashMap<&str, Vec<usize>>> = Vec::new();
        let mut anywhere = Vec::new();
        for (i, rule) in rules.iter().enumerate() {
            rule.check()?;
            let Some((from_end, segments)) = rule.pattern.landmark() else {
                anywhere.push(i);
                continue;
            };
            if by_segment.len() <= from_end {
                by_segment.resize_with(from_end + 1, HashMap::new);
            }
            for segment in segments {
                by_segment[from_end].entry(segment).or_default().push(i);
            }
        }
        let used = vec![false; rules.len()];
        let tells_numbers_apart = rules.iter().any(|rule| rule.pattern.tells_numbers_apart());
        Ok(Self { rules, by_segment, anywhere, used, tells_numbers_apart, candidates: Vec::new() })
    }

    /// Whether a rule is about some numbers and not about others.
    pub(super) fn tells_numbers_apart(&self) -> bool {
        self.tells_numbers_apart
    }

    /// The rules that decide about a tensor of this name.
    pub(super) fn decide(&mut self, name: &str) -> Decided {
        let name = &name.split('.').collect::<Vec<_>>()[..];
        self.candidates.clear();
        self.candidates.extend(&self.anywhere);
        for (segment, rules) in name.iter().rev().zip(&self.by_segment) {
            self.candidates.extend(rules.get(segment).into_iter().flatten());
        }
        self.candidates.sort_unstable();
        self.candidates.dedup();
        let mut decided = Decided { layer: layer(name), ..Decided::default() };
        let mut found = Numbers::default();
        for i in self.candidates.iter().copied() {
            let Some(rule) = self.rules.get(i) else { continue };
            let Some(numbers) = rule.pattern.numbers(name) else { continue };
            decided.matched = true;
            self.used[i] = true;
            found.layer = found.layer.or(numbers.layer);
            found.expert = found.expert.or(numbers.expert);
            let set = |field: &mut Option<usize>, says: bool| {
                if says && field.is_none() {
                    *field = Some(i);
                }
            };
            set(&mut decided.tp, rule.tp.is_some());
            set(&mut decided.ep, rule.ep.is_some());
            set(&mut decided.pp, rule.pp.is_some());
            set(&mut decided.layout, rule.layout.is_some());
        }
        decided.layer = found.layer.or(decided.layer);
        decided.expert = found.expert;
        decided
    }

    /// Whether a rule matched a name.
    pub(super) fn has_used(&self, rule: usize) -> bool {
        self.used.get(rule).copied().unwrap_or(false)
    }
}

/// The number of the layer that a name usually tells.
fn layer(name: &[&str]) -> Option<usize> {
    let mut pairs = name.windows(2);
    pairs.find_map(|pair| match pair {
        [before, after] if LAYERS.contains(before) => number(after),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::layer;

    #[test]
    fn a_layer_is_the_first_number_after_a_usual_segment() {
        for (name, expected) in [
            ("model.layers.3.mlp.up_proj.weight", Some(3)),
            ("transformer.h.12.attn.bias", Some(12)),
            ("blocks.0.w", Some(0)),
            ("block.7.layer.1.w", Some(7)),
            ("encoder.layer.11.w", Some(11)),
            ("tower.5.layers.2.w", Some(2)),
            ("experts.3.w", None),
            ("layers.w.3", None),
            ("layers", None),
        ] {
            assert_eq!(layer(&name.split('.').collect::<Vec<_>>()), expected, "{name}");
        }
    }
}
