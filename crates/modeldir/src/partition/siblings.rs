//! The tensors of a model by name, and those that belong to the same module.

use tensorfile::{Dtype, TensorInfo};

/// Neighbours that are looked at before a search by name.
const NEIGHBOURS: usize = 8;

/// What a rule sees of a tensor: all of it is in the header of a file.
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
        self.name.rsplit('.').next().unwrap_or_default()
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

    /// The tensor of the same module that has this leaf.
    ///
    /// It is nearly always a neighbour by name.
    pub(super) fn find(self, position: usize, leaf: &str) -> Option<TensorShape<'a>> {
        let name = self.get(position)?.name;
        let module = name.get(..name.len() - name.rsplit('.').next()?.len())?;
        let is_it = |tensor: &&TensorShape<'_>| tensor.name.strip_prefix(module) == Some(leaf);
        let (before, after) = self.0.split_at_checked(position)?;
        let near = before.iter().rev().take(NEIGHBOURS).find(is_it);
        if let Some(found) = near.or_else(|| after.iter().take(NEIGHBOURS).find(is_it)) {
            return Some(*found);
        }
        let outside = |tensor: Option<&TensorShape<'_>>| {
            tensor.is_none_or(|tensor| !tensor.name.starts_with(module))
        };
        if outside(before.iter().rev().nth(NEIGHBOURS - 1)) && outside(after.get(NEIGHBOURS)) {
            return None;
        }
        let wanted = format!("{module}{leaf}");
        let found = self.0.binary_search_by(|tensor| tensor.name.cmp(&wanted)).ok()?;
        self.get(found)
    }
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
