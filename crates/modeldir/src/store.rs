//! The loaded tensors by name.

use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tensorfile::Tensor;

use crate::load::{LoadStats, Memory};
use crate::similar;
use crate::weights::alias::{Alias, Aliases};
use crate::weights::index::Index;
use crate::{Error, ErrorKind, Result};

/// The tensors of a model, or of the part that a plan took, by name.
///
/// Whatever way they were loaded, there is this one type. Tensors are cheap to clone and outlive
/// the store. Names may be those of tensors or [aliases](Self::aliases) wherever one is asked for;
/// lists have the names of tensors alone.
///
/// ```
/// use modeldir::ModelDir;
///
/// # let path = modeldir_fixtures::model("gpt2");
/// let store = ModelDir::open(path)?.load()?;
/// let embedding = store.get("transformer.wte.weight")?;
/// let values: &[f32] = embedding.as_slice()?;
/// assert_eq!(values.len(), embedding.num_elements());
///
/// // The head is tied: not stored, and still found by its name.
/// assert_eq!(store.get("lm_head.weight")?.bytes(), embedding.bytes());
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone)]
pub struct TensorStore {
    root: PathBuf,
    tensors: BTreeMap<Box<str>, Tensor>,
    aliases: Arc<Aliases>,
    /// Whether elements were converted as they were read.
    is_cast: bool,
    stats: LoadStats,
}

impl TensorStore {
    pub(crate) fn new(index: &Index, tensors: Vec<Tensor>, stats: LoadStats) -> Self {
        let named = |tensor: Tensor| (tensor.name().into(), tensor);
        let tensors: BTreeMap<Box<str>, Tensor> = tensors.into_iter().map(named).collect();
        let aliases = Arc::clone(&index.aliases);
        Self { root: index.root.clone(), tensors, aliases, is_cast: false, stats }
    }

    /// The same store, whose elements were converted as they were read if `is_cast` says so.
    pub(crate) fn with_cast(self, is_cast: bool) -> Self {
        Self { is_cast, ..self }
    }

    pub(crate) fn is_cast(&self) -> bool {
        self.is_cast
    }

    /// The tensor of this name, or the one that the name stands for if it is an
    /// [alias](Self::aliases).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TensorNotFound`] if there is none, with names that may have been meant. To ask for
    /// what need not be there, see [`contains`](Self::contains).
    pub fn get(&self, name: &str) -> Result<&Tensor> {
        let found = self.tensors.get(self.aliases.target(name));
        found.ok_or_else(|| self.not_found(name))
    }

    /// Whether there is a tensor of this name, or an alias.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(self.aliases.target(name))
    }

    /// Takes the tensor of this name out of the store; an [alias](Self::aliases) takes its target.
    ///
    /// Its memory is shared with the other tensors of its shard and given back with the last of
    /// them. Neither its name nor an alias of it finds anything from then on.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn remove(&mut self, name: &str) -> Result<Tensor> {
        let removed = self.tensors.remove(self.aliases.target(name));
        removed.ok_or_else(|| self.not_found(name))
    }

    /// The memory of the tensors, for the next load: see
    /// [`LoadPlan::load_reusing`](crate::LoadPlan::load_reusing).
    ///
    /// Memory of which a tensor is still elsewhere stays with it, and a mapped file is no memory
    /// to be filled.
    #[must_use]
    pub fn into_memory(self) -> Memory {
        Memory::of(self.tensors.into_values())
    }

    /// The stored names, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tensors.keys().map(AsRef::as_ref)
    }

    /// The tensors with their names, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        self.into_iter()
    }

    /// Number of tensors; aliases are not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there is no tensor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Bytes of all tensors.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.tensors.values().map(|tensor| tensor.byte_len() as u64).sum()
    }

    /// The names that stand for a tensor of the store, by name.
    pub fn aliases(&self) -> impl Iterator<Item = &Alias> {
        self.aliases.iter().filter(|alias| self.tensors.contains_key(alias.target.as_str()))
    }

    /// The model directory that the tensors come from.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What loading did. A mapped store has read nothing.
    #[must_use]
    pub fn stats(&self) -> LoadStats {
        self.stats
    }

    fn not_found(&self, name: &str) -> Error {
        let hint =
            self.aliases.get(name).map_or_else(|| similar::hint(name, self.names()), Alias::hint);
        ErrorKind::TensorNotFound { hint: hint.into() }.at(&self.root).in_tensor(name)
    }
}

/// The tensors with their names, by name.
impl<'a> IntoIterator for &'a TensorStore {
    type Item = (&'a str, &'a Tensor);
    type IntoIter = iter::Map<
        btree_map::Iter<'a, Box<str>, Tensor>,
        fn((&'a Box<str>, &'a Tensor)) -> (&'a str, &'a Tensor),
    >;

    fn into_iter(self) -> Self::IntoIter {
        self.tensors.iter().map(|(name, tensor)| (name, tensor))
    }
}

/// The tensors with their names, by name.
impl IntoIterator for TensorStore {
    type Item = (String, Tensor);
    type IntoIter = iter::Map<
        btree_map::IntoIter<Box<str>, Tensor>,
        fn((Box<str>, Tensor)) -> (String, Tensor),
    >;

    fn into_iter(self) -> Self::IntoIter {
        self.tensors.into_iter().map(|(name, tensor)| (name.into(), tensor))
    }
}

impl fmt::Debug for TensorStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorStore")
            .field("root", &self.root)
            .field("tensors", &self.len())
            .field("byte_len", &self.byte_len())
            .finish_non_exhaustive()
    }
}
