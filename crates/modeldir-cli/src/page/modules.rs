//! The tensors of a model as a tree of modules, by the dots in their names.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use modeldir::{IndexedTensor, ModelDir};

use super::kinds::{ByColour, Kinds, SLOTS};
use crate::contents::is_number;
use crate::output::counted;

/// Maximum number of levels; deeper names are one segment, dots included.
const MAX_DEPTH: usize = 12;

/// A module or a tensor.
#[derive(Clone, Debug)]
pub(super) struct Module<'m> {
    /// The whole name; empty for the model itself.
    pub(super) path: &'m str,
    /// Start of its own part, after the name of its parent module.
    start: usize,
    /// Bytes of its tensors.
    pub(super) bytes: u64,
    /// Number of its tensors.
    pub(super) tensors: usize,
    /// Bytes of its tensors by colour.
    by_colour: ByColour,
    /// The tensor, if this is one.
    pub(super) tensor: Option<IndexedTensor<'m>>,
    /// Its modules and tensors, with numbered names in numeric order.
    pub(super) children: Vec<usize>,
}

impl<'m> Module<'m> {
    fn new(path: &'m str, start: usize) -> Self {
        let (children, by_colour) = (Vec::new(), [0; SLOTS]);
        Self { path, start, bytes: 0, tensors: 0, by_colour, tensor: None, children }
    }

    /// The name relative to its parent module.
    pub(super) fn name(&self) -> &'m str {
        self.path.get(self.start..).unwrap_or_default()
    }

    /// The dtype and shape of a tensor; the number of tensors of a module.
    pub(super) fn contents(&self) -> String {
        match self.tensor {
            Some(tensor) => format!("{} {:?}", tensor.dtype(), tensor.shape()),
            None => counted(self.tensors, "tensor"),
        }
    }

    /// The colour of most of its bytes.
    pub(super) fn colour(&self) -> usize {
        let most =
            self.by_colour.iter().enumerate().max_by_key(|(number, b)| (**b, Reverse(*number)));
        most.map_or(0, |(number, _)| number)
    }
}

/// A tree of modules; the first is the model itself.
#[derive(Clone, Debug)]
pub(super) struct Modules<'m>(Vec<Module<'m>>);

impl<'m> Modules<'m> {
    /// The number of the model itself.
    pub(super) const ROOT: usize = 0;

    /// The modules of a model. A module with a single child is merged with it.
    pub(super) fn of(model: &'m ModelDir, kinds: &Kinds<'_>) -> Self {
        let mut modules = vec![Module::new("", 0)];
        // The modules around the last tensor; names come in order, so that those of one module
        // follow each other.
        let mut around = vec![Self::ROOT];
        for tensor in model.tensors() {
            let name = tensor.name();
            while around.len() > 1 && !is_below(name, modules[around[around.len() - 1]].path) {
                around.pop();
            }
            let inner = modules[around[around.len() - 1]].path;
            let mut start = if around.len() > 1 { inner.len() + 1 } else { 0 };
            while around.len() < MAX_DEPTH {
                let Some(dot) = name.get(start..).and_then(|rest| rest.find('.')) else { break };
                let module = Module::new(name.get(..start + dot).unwrap_or_default(), start);
                push(&mut modules, &mut around, module);
                start += dot + 1;
            }
            let mut leaf = Module::new(name, start);
            leaf.tensor = Some(tensor);
            push(&mut modules, &mut around, leaf);
            around.pop();
            count(&mut modules, &around, tensor, kinds.colour(name));
        }
        let mut modules = Self(modules);
        modules.join_single();
        modules.sort();
        modules
    }

    /// A module by its number.
    pub(super) fn get(&self, number: usize) -> &Module<'m> {
        &self.0[number]
    }

    /// The children of a module that have bytes, the largest first.
    pub(super) fn largest(&self, number: usize) -> Vec<usize> {
        let mut children = self.0[number].children.clone();
        children.retain(|child| self.0[*child].bytes > 0);
        children.sort_by_key(|child| Reverse(self.0[*child].bytes));
        children
    }

    /// Chooses the modules to open, the largest first, for about `max` visible lines at most.
    pub(super) fn opened(&self, max: usize) -> Vec<bool> {
        let mut opened = vec![false; self.0.len()];
        let mut lines = 0;
        let mut next = BinaryHeap::from([(self.0[Self::ROOT].bytes, Reverse(Self::ROOT))]);
        while let Some((_, Reverse(number))) = next.pop() {
            let children = &self.0[number].children;
            if children.is_empty() || lines + children.len() > max {
                continue;
            }
            lines += children.len();
            opened[number] = true;
            next.extend(children.iter().map(|child| (self.0[*child].bytes, Reverse(*child))));
        }
        opened
    }

    /// Replaces a module by its only child.
    fn join_single(&mut self) {
        for number in 0..self.0.len() {
            for place in 0..self.0[number].children.len() {
                let mut child = self.0[number].children[place];
                let start = self.0[child].start;
                while let [only] = self.0[child].children[..] {
                    child = only;
                }
                self.0[child].start = start;
                self.0[number].children[place] = child;
            }
        }
    }

    fn sort(&mut self) {
        for number in 0..self.0.len() {
            let mut children = std::mem::take(&mut self.0[number].children);
            children.sort_by_cached_key(|child| by_number(self.0[*child].name()));
            self.0[number].children = children;
        }
    }
}

/// The sort key of a name, by which numbers are in numeric order.
fn by_number(name: &str) -> (bool, usize, &str) {
    let first = name.split('.').next().unwrap_or_default();
    let len = if is_number(first) { first.len() } else { 0 };
    (len == 0, len, name)
}

/// Whether a tensor is in a module.
fn is_below(name: &str, module: &str) -> bool {
    name.strip_prefix(module).is_some_and(|rest| rest.starts_with('.'))
}

fn push<'m>(modules: &mut Vec<Module<'m>>, around: &mut Vec<usize>, module: Module<'m>) {
    let (number, parent) = (modules.len(), around[around.len() - 1]);
    modules[parent].children.push(number);
    modules.push(module);
    around.push(number);
}

/// Adds a tensor, the last one pushed, to the sums of itself and of all its parents.
fn count(modules: &mut [Module<'_>], around: &[usize], tensor: IndexedTensor<'_>, colour: usize) {
    let last = modules.len() - 1;
    for number in around.iter().copied().chain([last]) {
        let module = &mut modules[number];
        module.tensors += 1;
        module.bytes += tensor.byte_len() as u64;
        module.by_colour[colour] += tensor.byte_len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::Modules;
    use crate::page::kinds::Kinds;
    use modeldir::ModelDir;

    fn names(modules: &Modules<'_>, number: usize) -> Vec<String> {
        let children = modules.get(number).children.iter();
        children.map(|child| modules.get(*child).name().to_owned()).collect()
    }

    fn with_modules<T>(
        path: &std::path::Path,
        look: impl FnOnce(&ModelDir, &Modules<'_>) -> T,
    ) -> T {
        let model = ModelDir::open(path).unwrap();
        look(&model, &Modules::of(&model, &Kinds::of(&model)))
    }

    #[test]
    fn modules_are_as_names_say_and_single_ones_are_joined() {
        with_modules(&modeldir_fixtures::model("llama"), |model, modules| {
            assert_eq!(names(modules, Modules::ROOT), ["lm_head.weight", "model"]);
            let inner = modules.get(Modules::ROOT).children[1];
            assert_eq!(names(modules, inner), ["embed_tokens.weight", "layers", "norm.weight"]);
            let layers = modules.get(inner).children[1];
            assert_eq!(names(modules, layers), ["0", "1", "2"]);
            assert_eq!(modules.get(layers).path, "model.layers");
            assert_eq!(modules.get(Modules::ROOT).bytes, model.byte_len());
            assert_eq!(modules.get(Modules::ROOT).tensors, 30);
        });
    }

    #[test]
    fn odd_names_make_a_tree_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("odd.safetensors");
        let deep = ["a"; 3000].join(".");
        let names = ["", ".", "..", "a", "a.", "a.b", "a.b.c", "b.10.x", "b.9.x", "é.ü", &deep];
        let mut writer = tensorfile::Writer::new();
        for name in names {
            writer.add(name, tensorfile::Dtype::U8, &[2], &[0; 2]).unwrap();
        }
        writer.save(&path).unwrap();
        with_modules(&path, |_, modules| {
            let root = modules.get(Modules::ROOT);
            assert_eq!((root.tensors, root.bytes), (names.len(), 2 * names.len() as u64));
            let all = modules.opened(usize::MAX);
            let tensors = modules.0.iter().filter(|module| module.tensor.is_some()).count();
            assert_eq!(tensors, names.len());
            assert!(all[Modules::ROOT]);
        });
    }

    #[test]
    fn the_largest_are_opened_first() {
        with_modules(&modeldir_fixtures::model("llama"), |_, modules| {
            let opened = modules.opened(5);
            let inner = modules.get(Modules::ROOT).children[1];
            let layers = modules.get(inner).children[1];
            assert!(opened[Modules::ROOT] && opened[inner] && !opened[layers]);
        });
    }
}
