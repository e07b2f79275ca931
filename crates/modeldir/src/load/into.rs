//! Loading into memory of the caller: pinned pages, a framework's storage, shared memory.

use std::collections::BTreeMap;

use super::job::{self, Job};
use super::options::LoadOptions;
use super::run::Run;
use super::stats::LoadStats;
use crate::plan::{LoadPlan, PlannedTensor};
use crate::weights::index::TensorId;
use crate::{Error, ErrorKind, Result};

impl LoadPlan {
    /// Reads the tensors of the plan into memory of the caller, in parallel.
    ///
    /// Each tensor of the plan needs one place of exactly [`PlannedTensor::byte_len`] bytes: its
    /// selected part, after any [cast](Self::cast). An alias stands for its target. Direct reads
    /// need no copy if the address of a place and the start of the tensor's
    /// [`file_range`](crate::IndexedTensor::file_range) are equal modulo 4096. After an error the
    /// contents of the places are unspecified.
    ///
    /// ```
    /// use modeldir::ModelDir;
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// let model = ModelDir::open(path)?;
    /// let plan = model.plan().only(["model.norm.weight"])?;
    /// let mut place = vec![0; model.info("model.norm.weight")?.byte_len()];
    /// plan.load_into([("model.norm.weight", &mut place[..])])?;
    /// assert_eq!(place, model.read("model.norm.weight")?.bytes());
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Before anything is read, [`ErrorKind::TensorNotFound`] or [`ErrorKind::NotPlanned`] for a
    /// place whose name is not in the plan, and [`ErrorKind::Destination`] for a tensor with no
    /// place, with several, or with one of the wrong length. Otherwise as [`load`](Self::load).
    pub fn load_into<'m, N: AsRef<str>>(
        &self,
        places: impl IntoIterator<Item = (N, &'m mut [u8])>,
    ) -> Result<LoadStats> {
        self.load_into_with(places, &LoadOptions::default())
    }

    /// Loads as [`load_into`](Self::load_into) does, with options.
    ///
    /// # Errors
    ///
    /// As [`load_into`](Self::load_into).
    pub fn load_into_with<'m, N: AsRef<str>>(
        &self,
        places: impl IntoIterator<Item = (N, &'m mut [u8])>,
        options: &LoadOptions,
    ) -> Result<LoadStats> {
        let mut by_tensor: BTreeMap<TensorId, Vec<&mut [u8]>> = BTreeMap::new();
        for (name, place) in places {
            let tensor = self.get(name.as_ref())?.stored().id();
            by_tensor.entry(tensor).or_default().push(place);
        }
        let mut of_tensors = Vec::with_capacity(self.len());
        for planned in self.in_file_order() {
            let places = by_tensor.remove(&planned.stored().id()).unwrap_or_default();
            let place = the_one(places, planned.byte_len());
            let place = place.map_err(|found| self.no_destination(planned, found))?;
            of_tensors.push((planned.requests(), place));
        }
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for ((requests, memory_start), place) in &mut of_tensors {
            job::fill(&mut jobs, &*requests, *memory_start, place);
        }
        let run = Run::new(self, options);
        run.check_memory(self, 0)?;
        run.run_all(self, jobs)
    }

    fn no_destination(&self, planned: PlannedTensor<'_>, found: Box<[usize]>) -> Error {
        let path = self.index.shard_path(planned.stored().shard().id());
        let kind = ErrorKind::Destination { needed: planned.byte_len(), found };
        kind.at(path).in_tensor(planned.name())
    }
}

/// The only place, if it has the length needed; otherwise the lengths of all places.
fn the_one(places: Vec<&mut [u8]>, needed: usize) -> Result<&mut [u8], Box<[usize]>> {
    let found: Box<[usize]> = places.iter().map(|place| place.len()).collect();
    match <[&mut [u8]; 1]>::try_from(places) {
        Ok([place]) if place.len() == needed => Ok(place),
        _ => Err(found),
    }
}
