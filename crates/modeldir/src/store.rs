//! `TensorStore`: loaded tensors by name.

use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tensorfile::Tensor;

use crate::load::{LoadStats, Memory};
use crate::rank_part::PartRecord;
use crate::weights::alias::{Alias, Aliases};
use crate::weights::index::Index;
use crate::{Error, ErrorKind, Result};

/// The loaded tensors of a model or of a plan, by name.
///
/// [`load`](crate::LoadPlan::load), [`load_reusing`](crate::LoadPlan::load_reusing) and
/// [`map`](crate::LoadPlan::map) all return this type. Tensors are cheap to clone and may outlive
/// the store. Look-ups accept the name of a tensor or an [alias](Self::aliases); iterators yield
/// tensors under their stored names only.
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
/// // The head is tied to the embedding: it is not stored, but its name is an alias.
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
    /// Whose part of a model the tensors are.
    part_record: Option<Arc<PartRecord>>,
    stats: LoadStats,
}

impl TensorStore {
    pub(crate) fn new(index: &Index, tensors: Vec<Tensor>, stats: LoadStats) -> Self {
        let named = |tensor: Tensor| (tensor.name().into(), tensor);
        let tensors: BTreeMap<Box<str>, Tensor> = tensors.into_iter().map(named).collect();
        let aliases = Arc::clone(&index.aliases);
        let (is_cast, part_record) = (false, None);
        Self { root: index.root.clone(), tensors, aliases, is_cast, part_record, stats }
    }

    /// The same store, marked as converted or not, and as the part of a rank.
    pub(crate) fn with_origin(self, is_cast: bool, part: Option<Arc<PartRecord>>) -> Self {
        Self { is_cast, part_record: part, ..self }
    }

    /// Whose part of a model the tensors are, if a rank loaded them.
    pub(crate) fn part_record(&self) -> Option<&PartRecord> {
        self.part_record.as_deref()
    }

    pub(crate) fn is_cast(&self) -> bool {
        self.is_cast
    }

    /// The tensor of this name; for an [alias](Self::aliases), its target.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TensorNotFound`] if there is none; the message suggests similar names. Use
    /// [`contains`](Self::contains) to test for a tensor that may be absent.
    pub fn get(&self, name: &str) -> Result<&Tensor> {
        let found = self.tensors.get(self.aliases.target(name));
        found.ok_or_else(|| self.not_found(name))
    }

    /// Whether the store has a tensor of this name or alias.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(self.aliases.target(name))
    }

    /// Removes the tensor of this name and returns it; for an [alias](Self::aliases), its target.
    ///
    /// The tensor shares its memory with the other tensors of its shard; it is freed when the last
    /// of them is dropped. After the call neither the name nor an alias of it finds a tensor.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn remove(&mut self, name: &str) -> Result<Tensor> {
        let removed = self.tensors.remove(self.aliases.target(name));
        removed.ok_or_else(|| self.not_found(name))
    }

    /// Consumes the store and returns the memory of its tensors, for
    /// [`LoadPlan::load_reusing`](crate::LoadPlan::load_reusing).
    ///
    /// Regions still referenced by a `Tensor` or `Buffer`, and file mappings, are left out.
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

    /// Whether the store has no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Bytes of all tensors.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.tensors.values().map(|tensor| tensor.byte_len() as u64).sum()
    }

    /// Other names for tensors of the store, in name order.
    ///
    /// They come from the model's metadata, from tied weights, and from
    /// [`OpenOptions::aliases`](crate::OpenOptions::aliases).
    pub fn aliases(&self) -> impl Iterator<Item = &Alias> {
        self.aliases.iter().filter(|alias| self.tensors.contains_key(alias.target.as_str()))
    }

    /// The model directory that the tensors come from.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Statistics of the load. Those of a mapped store count no bytes read.
    #[must_use]
    pub fn stats(&self) -> LoadStats {
        self.stats
    }

    fn not_found(&self, name: &str) -> Error {
        let hint = self.aliases.hint(name, || self.names());
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
