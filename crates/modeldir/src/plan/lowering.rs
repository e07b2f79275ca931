//! Turns selections into runs of bytes, once for all tensors that are cut in the same way; pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tensorfile::{ByteRuns, Dtype, Selection};

use crate::Result;
use crate::weights::index::IndexedTensor;

/// Computes the runs of selections and caches them, because a model has many tensors of few shapes.
#[derive(Debug)]
pub(super) struct Lowering<'a> {
    /// The folder to which shard paths are relative.
    root: &'a Path,
    made: HashMap<(Dtype, &'a [usize], &'a Selection), Arc<ByteRuns>>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root, made: HashMap::new() }
    }

    /// The selected bytes of a tensor, or `None` for all of them.
    pub(super) fn runs(
        &mut self,
        tensor: IndexedTensor<'a>,
        selection: &'a Selection,
    ) -> Result<Option<Arc<ByteRuns>>> {
        if selection.is_all() {
            return Ok(None);
        }
        let kind = (tensor.dtype(), tensor.shape(), selection);
        if let Some(runs) = self.made.get(&kind) {
            return Ok(Some(Arc::clone(runs)));
        }
        let at_shard = |error: tensorfile::Error| error.at(self.root.join(tensor.shard().path()));
        let runs = Arc::new(selection.lower(tensor.info()).map_err(at_shard)?);
        self.made.insert(kind, Arc::clone(&runs));
        Ok(Some(runs))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tensorfile::Selection;

    use super::Lowering;
    use crate::ModelDir;

    #[test]
    fn tensors_cut_alike_share_runs_that_are_those_of_each() {
        let plan = ModelDir::open(modeldir_fixtures::model("llama")).unwrap().plan();
        let (part, all) = (Selection::all().with_range(0, 8..16), Selection::all());
        let mut lowering = Lowering::new(&plan.index.root);
        for tensor in plan.tensors() {
            assert_eq!(lowering.runs(tensor, &all).unwrap(), None);
            let runs = lowering.runs(tensor, &part).unwrap().unwrap();
            let plain = part.lower(tensor.info()).unwrap();
            assert_eq!(*runs, plain, "{}", tensor.name());
        }
        let mut runs_of = |name| {
            let tensor = plan.index.find(name).unwrap();
            lowering.runs(tensor, &part).unwrap().unwrap()
        };
        let first = runs_of("model.layers.0.mlp.up_proj.weight");
        assert!(Arc::ptr_eq(&first, &runs_of("model.layers.1.mlp.up_proj.weight")));
    }

    #[test]
    fn what_does_not_fit_is_refused_where_it_is_met() {
        let plan = ModelDir::open(modeldir_fixtures::model("llama")).unwrap().plan();
        let selection = Selection::all().with_range(1, 0..65);
        let mut lowering = Lowering::new(&plan.index.root);
        for name in ["model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight"] {
            let tensor = plan.index.find(name).unwrap();
            let error = lowering.runs(tensor, &selection).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
