//! The tensors of a model by name, and the tensors of one module.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use tensorfile::{Dtype, TensorInfo};

/// Neighbours to compare before a search by name.
const NEIGHBOURS: usize = 8;

/// Tensors on either side that are looked at to tell the method of a module.
const NEAR: usize = 32;

/// The name, type and shape of a tensor, from the header of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorShape<'a> {
    /// The name on disk.
    pub name: &'a str,
    /// The type of the elements.
    pub dtype: Dtype,
    /// The extent of each dimension, in elements on disk.
    pub shape: &'a [usize],
}

impl<'a> TensorShape<'a> {
    /// The last part of the name, after the module.
    pub(super) fn leaf(&self) -> &'a str {
        self.name.get(leaf_start(self.name)..).unwrap_or_default()
    }

    pub(super) const fn rank(&self) -> usize {
        self.shape.len()
    }
}

impl<'a> From<&'a TensorInfo> for TensorShape<'a> {
    fn from(info: &'a TensorInfo) -> Self {
        Self { name: info.name(), dtype: info.dtype(), shape: info.shape() }
    }
}

/// Tensors in the order of their names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Siblings<'a>(pub(super) &'a [TensorShape<'a>]);

impl<'a> Siblings<'a> {
    pub(super) fn get(self, position: usize) -> Option<TensorShape<'a>> {
        self.0.get(position).copied()
    }

    /// The tensors of the same module that are near in the order of names, with the rest of their
    /// names: quantized modules have few.
    pub(super) fn near(self, position: usize) -> impl Iterator<Item = (&'a str, TensorShape<'a>)> {
        let name = self.get(position).map_or("", |tensor| tensor.name);
        let module = name.get(..leaf_start(name)).unwrap_or_default();
        let (before, after) = self.0.split_at_checked(position).unwrap_or_default();
        let of_module = move |tensor: &TensorShape<'a>| {
            tensor.name.strip_prefix(module).map(|rest| (rest, *tensor))
        };
        let before = before.iter().rev().take(NEAR).map_while(of_module);
        before.chain(after.iter().take(NEAR).map_while(of_module))
    }

    /// The tensor with this leaf in the same module.
    ///
    /// The tensors of a module are neighbours, and mostly few.
    pub(super) fn find(self, position: usize, leaf: &str) -> Option<TensorShape<'a>> {
        let name = self.get(position)?.name;
        let module = name.get(..leaf_start(name))?;
        let (before, after) = self.0.split_at_checked(position)?;
        let leaves = |tensor: &TensorShape<'a>| Some((tensor.name.strip_prefix(module)?, *tensor));
        let before = before.iter().rev().take(NEIGHBOURS).map_while(leaves);
        let near = before.chain(after.iter().take(NEIGHBOURS).map_while(leaves));
        let mut count: usize = 0;
        for (other, tensor) in near {
            if other == leaf {
                return Some(tensor);
            }
            count = count.saturating_add(1);
        }
        // The module ends within the neighbours.
        if count < NEIGHBOURS {
            return None;
        }
        let wanted = format!("{module}{leaf}");
        let found = self.0.binary_search_by(|tensor| tensor.name.cmp(&wanted)).ok()?;
        self.get(found)
    }
}

/// Where the last part of a name begins.
fn leaf_start(name: &str) -> usize {
    name.bytes().rposition(|byte| byte == b'.').map_or(0, |dot| dot.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::{Siblings, TensorShape};
    use tensorfile::Dtype;

    #[test]
    fn siblings_are_found_near_and_far() {
        let mut names: Vec<String> = (0..40).map(|i| format!("m.a{i:02}")).collect();
        names.extend(["m.weight".to_owned(), "n.weight".to_owned(), "weight".to_owned()]);
        let tensors: Vec<_> =
            names.iter().map(|name| TensorShape { name, dtype: Dtype::U8, shape: &[] }).collect();
        let siblings = Siblings(&tensors);
        for (position, leaf, found) in [
            (0, "a03", Some("m.a03")),
            (0, "weight", Some("m.weight")),
            (40, "a00", Some("m.a00")),
            (39, "weight", Some("m.weight")),
            (20, "bias", None),
            (41, "a00", None),
            (42, "weight", Some("weight")),
        ] {
            assert_eq!(siblings.find(position, leaf).map(|t| t.name), found, "{position} {leaf}");
        }
    }
}
