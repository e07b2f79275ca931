//! Kinds of tensors, such as those of attention: each kind has a colour on a page.

use std::collections::BTreeMap;

use modeldir::ModelDir;

use super::html::clipped;
use crate::contents::is_number;
use crate::output::shown;

/// Number of kinds with their own colour.
const COLOURS: usize = 8;

/// Number of colours, with the one of all other kinds.
pub(super) const SLOTS: usize = COLOURS + 1;

/// Bytes by colour.
pub(super) type ByColour = [u64; SLOTS];

/// The kinds of a model's tensors, largest first.
#[derive(Clone, Debug)]
pub(super) struct Kinds<'m> {
    colours: BTreeMap<&'m str, usize>,
    totals: ByColour,
}

impl<'m> Kinds<'m> {
    /// The kinds of a model's tensors.
    pub(super) fn of(model: &'m ModelDir) -> Self {
        Self::of_tensors(model.tensors().map(|tensor| (tensor.name(), tensor.byte_len() as u64)))
    }

    /// The kinds of tensors with these names and bytes.
    fn of_tensors(tensors: impl Iterator<Item = (&'m str, u64)>) -> Self {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, byte_len) in tensors {
            *sums.entry(kind(name)).or_default() += byte_len;
        }
        let mut kinds: Vec<_> = sums.into_iter().collect();
        kinds.sort_by_key(|(_, byte_len)| std::cmp::Reverse(*byte_len));
        let (mut colours, mut totals) = (BTreeMap::new(), [0; SLOTS]);
        for (number, (kind, byte_len)) in kinds.into_iter().enumerate() {
            let colour = number.min(COLOURS);
            colours.insert(kind, colour);
            totals[colour] += byte_len;
        }
        Self { colours, totals }
    }

    /// The colour of a tensor.
    pub(super) fn colour(&self, name: &str) -> usize {
        self.colours.get(kind(name)).copied().unwrap_or(COLOURS)
    }

    /// The name of the kind of a colour.
    pub(super) fn name(&self, colour: usize) -> String {
        let named = self.colours.iter().find(|(_, of)| **of == colour && colour < COLOURS);
        named.map_or_else(|| "others".to_owned(), |(kind, _)| clipped(&shown(kind), 40))
    }

    /// The bytes of all tensors of the model.
    pub(super) fn totals(&self) -> &ByColour {
        &self.totals
    }
}

/// The module after the first number of a name, such as `self_attn` in a layer; the last module of
/// a name without a number.
fn kind(name: &str) -> &str {
    let mut modules = name;
    let mut leaf = "";
    if let Some((before, last)) = name.rsplit_once('.') {
        (modules, leaf) = (before, last);
    }
    let mut parts = modules.split('.').skip_while(|part| !is_number(part));
    match parts.next() {
        Some(_number) => parts.find(|part| !is_number(part)).unwrap_or(leaf),
        None => modules.rsplit('.').next().unwrap_or(modules),
    }
}

#[cfg(test)]
mod tests {
    use super::{Kinds, SLOTS, kind};

    #[test]
    fn a_kind_is_what_a_layer_is_made_of() {
        for (name, expected) in [
            ("model.layers.3.self_attn.q_proj.weight", "self_attn"),
            ("model.layers.3.mlp.experts.7.w1.weight", "mlp"),
            ("transformer.h.0.ln_1.bias", "ln_1"),
            ("model.embed_tokens.weight", "embed_tokens"),
            ("lm_head.weight", "lm_head"),
            ("h.0.weight", "weight"),
            ("blocks.0.1.attn.weight", "attn"),
            ("x", "x"),
            ("", ""),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }

    #[test]
    fn the_largest_kinds_have_colours_and_all_others_share_one() {
        let names: Vec<String> = (0..20).map(|number| format!("m{number}.weight")).collect();
        let kinds =
            Kinds::of_tensors(names.iter().zip(1..).map(|(name, bytes)| (name.as_str(), bytes)));
        assert_eq!((kinds.colour("m19.weight"), kinds.colour("m0.weight")), (0, SLOTS - 1));
        assert_eq!((kinds.name(0), kinds.name(SLOTS - 1)), ("m19".into(), "others".into()));
        assert_eq!(kinds.totals.iter().sum::<u64>(), 210);
    }
}
