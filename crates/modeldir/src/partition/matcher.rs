//! Finds the rule for each field of a tensor: the first that matches its name and sets the field.

use std::collections::HashMap;

use super::error::PartitionError;
use super::pattern::{Numbers, number};
use super::rule::Rule;

/// The usual segments before the number of a layer.
const LAYERS: [&str; 5] = ["layers", "h", "blocks", "block", "layer"];

/// The rules that win for one tensor, by their positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decided {
    pub(super) tp: Option<usize>,
    pub(super) ep: Option<usize>,
    pub(super) pp: Option<usize>,
    pub(super) layout: Option<usize>,
    /// Whether any rule matched.
    pub(super) matched: bool,
    /// The layer in the name, found by a pattern or else after a usual segment.
    pub(super) layer: Option<usize>,
    pub(super) expert: Option<usize>,
}

/// Rules, indexed so that few are tried for a name.
#[derive(Debug)]
pub(super) struct Matcher<'a> {
    rules: &'a [Rule],
    /// Rules that need a fixed segment, by its distance from the end of the name.
    by_segment: Vec<HashMap<&'a str, Vec<usize>>>,
    /// Rules to try for every name.
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
                by_segment.resize_with(from_end.saturating_add(1), HashMap::new);
            }
            if let Some(rules) = by_segment.get_mut(from_end) {
                segments.into_iter().for_each(|at| rules.entry(at).or_default().push(i));
            }
        }
        let used = vec![false; rules.len()];
        let tells_numbers_apart = rules.iter().any(|rule| rule.pattern.tells_numbers_apart());
        Ok(Self { rules, by_segment, anywhere, used, tells_numbers_apart, candidates: Vec::new() })
    }

    /// Whether a rule matches some numbers and not others.
    pub(super) fn tells_numbers_apart(&self) -> bool {
        self.tells_numbers_apart
    }

    /// The rules that win for a tensor of this name: those for its name, else those for the weight
    /// that it is below, as the scales of some quantized weights are.
    pub(super) fn decide(&mut self, name: &str) -> Decided {
        let name = name.split('.').collect::<Vec<_>>();
        let decided = self.decide_by(&name);
        let weight = name.iter().position(|segment| *segment == "weight");
        match weight.and_then(|weight| name.get(..=weight)) {
            Some(weight) if !decided.matched && weight.len() < name.len() => self.decide_by(weight),
            _ => decided,
        }
    }

    /// The rules that win for a name, given by its segments.
    fn decide_by(&mut self, name: &[&str]) -> Decided {
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
            if let Some(used) = self.used.get_mut(i) {
                *used = true;
            }
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

/// The number of the layer in a name, after a usual segment.
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
