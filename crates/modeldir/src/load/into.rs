//! Loading into memory of the caller's: pinned pages, a framework's storage, shared memory.

use std::collections::BTreeMap;

use super::job::{self, Job};
use super::memory::in_memory;
use super::{LoadOptions, LoadStats, Run};
use crate::plan::LoadPlan;
use crate::{Error, Result};

impl LoadPlan {
    /// Reads the tensors of the plan into memory of the caller's, in parallel.
    ///
    /// There has to be one place for each tensor of the plan, of the length that [`get`](Self::get)
    /// says: what is wanted of it, after a [cast](Self::cast). An alias stands for its target. Where
    /// the address of a place is congruent with the tensor's
    /// [`file_range`](crate::IndexedTensor::file_range) modulo 4096, direct reads need no copy.
    /// After an error the places may hold anything.
    ///
    /// ```
    /// use modeldir::{LoadOptions, ModelDir};
    ///
    /// let model = ModelDir::open(modeldir_fixtures::model("llama"))?;
    /// let plan = model.plan().only(["model.norm.weight"])?;
    /// let mut place = vec![0; model.info("model.norm.weight")?.byte_len()];
    /// plan.load_into([("model.norm.weight", &mut place[..])], &LoadOptions::default())?;
    /// assert_eq!(place, model.read("model.norm.weight")?.bytes());
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::TensorNotFound`] and [`Error::NotPlanned`] for a place whose name is not that of a
    /// tensor of the plan, [`Error::Destination`] for a tensor with no place, with several, or with
    /// one of another length; all before anything is read. Otherwise as [`load`](Self::load).
    pub fn load_into<'m, N: AsRef<str>>(
        &self,
        places: impl IntoIterator<Item = (N, &'m mut [u8])>,
        options: &LoadOptions<'_>,
    ) -> Result<LoadStats> {
        let mut by_tensor: BTreeMap<usize, Vec<&mut [u8]>> = BTreeMap::new();
        for (name, place) in places {
            by_tensor.entry(self.planned_position(name.as_ref())?).or_default().push(place);
        }
        // In file order, as far as a tensor comes after another.
        let mut of_tensors = Vec::with_capacity(self.len());
        for (placed, tensor) in self.placed().iter().zip(self.tensors()) {
            let places = by_tensor.remove(&placed.tensor).unwrap_or_default();
            let needed = in_memory(placed.byte_len());
            let found: Box<[usize]> = places.iter().map(|place| place.len()).collect();
            let place = <[&mut [u8]; 1]>::try_from(places).ok().filter(|_| *found == [needed]);
            let Some([place]) = place else {
                let (path, tensor) = (self.index.shard_path(tensor.shard()), tensor.name().into());
                return Err(Error::Destination { path, tensor, needed, found });
            };
            of_tensors.push(((tensor.shard(), tensor.file_range().start), placed, place));
        }
        of_tensors.sort_by_key(|(position, ..)| *position);
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for (_, placed, place) in of_tensors {
            let (requests, memory_start) = self.requests_of(placed);
            job::fill(&mut jobs, &requests, memory_start, place);
        }
        let run = Run::new(self, options);
        run.check_memory(self, 0)?;
        run.run_all(self, jobs)
    }
}
