//! From selections to runs of bytes, once for all tensors that are cut alike; pure.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tensorfile::{ByteRuns, Dtype, Selection};

use crate::Result;
use crate::index::{Index, Shard};

/// Makes the runs of selections, and keeps them: a model has many tensors of few kinds.
#[derive(Debug)]
pub(super) struct Lowering<'a> {
    index: &'a Index,
    made: HashMap<(Dtype, &'a [usize], &'a Selection), Arc<ByteRuns>>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(index: &'a Index) -> Self {
        Self { index, made: HashMap::new() }
    }

    /// The bytes that a selection takes of the tensor at this position, or `None` for all of it.
    pub(super) fn runs(
        &mut self,
        position: usize,
        selection: &'a Selection,
    ) -> Result<Option<Arc<ByteRuns>>> {
        let Some(tensor) = self.index.get(position).filter(|_| !selection.is_all()) else {
            return Ok(None);
        };
        let kind = (tensor.dtype(), tensor.shape(), selection);
        if let Some(runs) = self.made.get(&kind) {
            return Ok(Some(Arc::clone(runs)));
        }
        let shard = self.index.shards.get(tensor.shard()).map(Shard::path);
        let path = self.index.root.join(shard.unwrap_or(Path::new("")));
        let runs = Arc::new(selection.lower(&path, tensor.info())?);
        self.made.insert(kind, Arc::clone(&runs));
        Ok(Some(runs))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use tensorfile::Selection;

    use super::Lowering;
    use crate::ModelDir;

    #[test]
    fn tensors_cut_alike_share_runs_that_are_those_of_each() {
        let plan = ModelDir::open(modeldir_fixtures::model("llama")).unwrap().plan();
        let (part, all) = (Selection::all().with_range(0, 8..16), Selection::all());
        let mut lowering = Lowering::new(&plan.index);
        for (position, tensor) in plan.tensors().enumerate() {
            assert_eq!(lowering.runs(position, &all).unwrap(), None);
            let runs = lowering.runs(position, &part).unwrap().unwrap();
            let plain = part.lower(Path::new("m"), tensor.info()).unwrap();
            assert_eq!(*runs, plain, "{}", tensor.name());
        }
        let mut runs_of = |name| {
            let position = plan.index.position(name).unwrap();
            lowering.runs(position, &part).unwrap().unwrap()
        };
        let first = runs_of("model.layers.0.mlp.up_proj.weight");
        assert!(Arc::ptr_eq(&first, &runs_of("model.layers.1.mlp.up_proj.weight")));
    }

    #[test]
    fn what_does_not_fit_is_refused_where_it_is_met() {
        let plan = ModelDir::open(modeldir_fixtures::model("llama")).unwrap().plan();
        let selection = Selection::all().with_range(1, 0..65);
        let mut lowering = Lowering::new(&plan.index);
        for name in ["model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight"] {
            let position = plan.index.position(name).unwrap();
            let error = lowering.runs(position, &selection).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
