//! What is loaded of a model: plans, and short forms that load at once.

use tensorfile::{Selection, Tensor};

use super::ModelDir;
use crate::partition::{Partition, TensorShape, Topology};
use crate::plan::{LoadPlan, RankPart};
use crate::rank_part::PartRecord;
use crate::store::TensorStore;
use crate::{Error, Result};

impl ModelDir {
    /// Returns a plan that loads every tensor. Does no I/O.
    #[must_use]
    pub fn plan(&self) -> LoadPlan {
        LoadPlan::new(&self.index, self.index.iter())
    }

    /// Reads one tensor into memory of its own; for an alias, its target.
    ///
    /// Blocks. To read several tensors, use a [plan](Self::plan), which reads adjacent tensors
    /// together.
    ///
    /// # Errors
    ///
    /// As [`LoadPlan::only`] and [`LoadPlan::load`].
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let plan = self.plan_one(name)?;
        plan.load()?.remove(name)
    }

    /// Reads a part of one tensor into memory of its own; for an alias, of its target.
    ///
    /// ```
    /// use modeldir::{ModelDir, Selection};
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// let model = ModelDir::open(path)?;
    /// let rows = model.read_selection("lm_head.weight", &Selection::all().with_range(0, 10..12))?;
    /// assert_eq!(rows.shape(), [2, 64]);
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and [`ErrorKind::File`](crate::ErrorKind::File) if the selection does
    /// not fit the tensor.
    pub fn read_selection(&self, name: &str, selection: &Selection) -> Result<Tensor> {
        let plan = self.plan_one(name)?.select(|_| Some(selection.clone()))?;
        plan.load()?.remove(name)
    }

    /// Returns the built-in rules of the model's type, for [`plan_for`](Self::plan_for); of a
    /// [part that a rank has saved](Self::rank_part), the rules that cut it. Does no I/O.
    ///
    /// ```
    /// use modeldir::{ModelDir, Rank, Topology};
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// let model = ModelDir::open(path)?;
    /// let rank = Topology::tensor_parallel(Rank::new(1, 2)?);
    /// let store = model.plan_for(&model.partition()?, &rank)?.load()?;
    /// assert_eq!(store.get("lm_head.weight")?.shape(), [160, 64]);
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`config`](Self::config), [`Partition::for_config`] and [`rank_part`](Self::rank_part).
    pub fn partition(&self) -> Result<Partition> {
        if let Some(part) = self.rank_part()? {
            return Ok(part.rules);
        }
        let config = self.config()?;
        Partition::for_config(config).map_err(|error| Error::from(error).at(config.path()))
    }

    /// Returns a plan of the parts that one rank of a distributed job loads.
    ///
    /// The rules of `partition` select the parts by tensor name, for the rank that `topology`
    /// describes. [`LoadPlan::partition_report`] lists rules and tensors without a match. Does no
    /// I/O.
    ///
    /// If the directory holds the part that a rank has saved ([`rank_part`](Self::rank_part)), the
    /// plan is all of it, for this rank and these rules alone.
    ///
    /// ```
    /// use modeldir::{ModelDir, Partition, Rank, Topology};
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// let model = ModelDir::open(path)?;
    /// let rules = br#"{"rules": [
    ///     {"match": "**.(q|k|v|gate|up)_proj.weight", "tp": "col"},
    ///     {"match": "**.(o|down)_proj.weight", "tp": "row"},
    ///     {"match": "**.(lm_head|embed_tokens).weight", "tp": "vocab"}
    /// ]}"#;
    /// let partition = Partition::from_json(rules)?;
    /// let plan = model.plan_for(&partition, &Topology::tensor_parallel(Rank::new(1, 4)?))?;
    /// let store = plan.load()?;
    /// assert_eq!(store.get("model.layers.0.mlp.down_proj.weight")?.shape(), [64, 44]);
    /// assert_eq!(store.get("lm_head.weight")?.shape(), [80, 64]);
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Partition::cut`], and those of [`quantization`](Self::quantization) and
    /// [`rank_part`](Self::rank_part). [`PartitionError::OtherPart`](crate::partition::PartitionError)
    /// if the directory holds the part of another rank, `OtherRules` if its part was cut by others.
    pub fn plan_for(&self, partition: &Partition, topology: &Topology) -> Result<LoadPlan> {
        if let Some(part) = self.rank_part()? {
            let fits = part.check(partition, topology);
            fits.map_err(|error| Error::from(error).at(self.path()))?;
            return Ok(self.plan());
        }
        let quantization = self.quantization()?;
        let shapes: Vec<_> =
            self.index.iter().map(|tensor| TensorShape::from(tensor.info())).collect();
        let cut = partition.cut_sorted(topology, quantization, &shapes);
        let record = PartRecord::new(topology, partition, &self.path().to_string_lossy());
        LoadPlan::for_rank(&self.index, cut.map_err(|error| error.at(self.path()))?, record)
    }

    /// Whose part of a model the directory holds, if a rank of a distributed job saved it; `None`
    /// for a whole model. Does no I/O.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartRecord`](crate::ErrorKind::PartRecord) if the metadata says so in a form that
    /// no save writes.
    pub fn rank_part(&self) -> Result<Option<RankPart>> {
        let record = self.index.part_record.as_ref();
        let part = record.map(|record| record.parse()).transpose();
        part.map_err(|error| error.at(self.path()))
    }

    /// Loads every tensor with default options; short for `plan().load()`.
    ///
    /// # Errors
    ///
    /// As [`LoadPlan::load`].
    pub fn load(&self) -> Result<TensorStore> {
        self.plan().load()
    }

    fn plan_one(&self, name: &str) -> Result<LoadPlan> {
        Ok(LoadPlan::new(&self.index, [self.index.resolve(name)?]))
    }
}
