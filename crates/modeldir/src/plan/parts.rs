//! Cuts a plan into parts by bytes, for work that needs only some tensors at a time; pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::iter;

use super::{LoadPlan, Placed};

impl LoadPlan {
    /// Cuts the plan into smaller plans, in file order. Each has at most `max_bytes` of tensors, or
    /// is one larger tensor.
    ///
    /// A program that loads and drops one part after the other needs the memory of one part.
    /// [`stream`](Self::stream) also bounds memory, and reads the next tensors meanwhile.
    ///
    /// ```
    /// use modeldir::ModelDir;
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// let plan = ModelDir::open(path)?.plan();
    /// for part in plan.parts(100_000) {
    ///     let store = part.load()?;
    ///     assert!(store.byte_len() <= 100_000);
    /// }
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    pub fn parts(&self, max_bytes: u64) -> impl Iterator<Item = Self> {
        let mut rest = self.placed();
        iter::from_fn(move || {
            let (part, others) = rest.split_at_checked(first_part(rest, max_bytes))?;
            rest = others;
            (!part.is_empty()).then(|| self.part(part))
        })
    }
}

/// The number of tensors in the first part.
fn first_part(tensors: &[Placed], max_bytes: u64) -> usize {
    let mut bytes = 0_u64;
    let fits = |placed: &&Placed| {
        bytes = bytes.saturating_add(placed.byte_len());
        bytes <= max_bytes
    };
    // A tensor larger than `max_bytes` is a part of its own.
    tensors.iter().take_while(fits).count().max(1).min(tensors.len())
}

#[cfg(test)]
mod tests {
    use tensorfile::{Float, Selection};

    use crate::plan::PlannedTensor;
    use crate::{LoadPlan, ModelDir};

    fn plan() -> LoadPlan {
        ModelDir::open(modeldir_fixtures::model("llama")).unwrap().plan()
    }

    fn in_order(plan: &LoadPlan) -> Vec<&str> {
        plan.in_file_order().map(PlannedTensor::name).collect()
    }

    #[test]
    fn parts_are_small_and_make_the_whole_in_file_order() {
        let whole = plan();
        let half = whole.select(|_| Some(Selection::all().with_range(0, 0..32))).unwrap();
        for plan in [whole.clone(), whole.cast(Float::F32), half] {
            let largest = plan.planned().map(|planned| planned.byte_len() as u64).max().unwrap();
            for max_bytes in [0, 1000, largest, plan.bytes_selected()] {
                let parts: Vec<_> = plan.parts(max_bytes).collect();
                let names = parts.iter().flat_map(in_order);
                assert!(names.eq(in_order(&plan)), "{max_bytes}");
                assert!(parts.iter().all(|p| p.len() == 1 || p.bytes_selected() <= max_bytes));
                let pairs = parts.iter().zip(parts.iter().skip(1));
                let with_next = |(part, next): (&LoadPlan, &LoadPlan)| {
                    let first = next.in_file_order().next().unwrap();
                    part.bytes_selected() + first.byte_len() as u64
                };
                assert!(pairs.map(with_next).all(|bytes| bytes > max_bytes), "{max_bytes}");
            }
            assert_eq!(plan.parts(u64::MAX).count(), 1);
        }
    }

    #[test]
    fn an_empty_plan_has_no_part() {
        assert_eq!(plan().filter(|_| false).parts(1).count(), 0);
    }

    #[test]
    fn a_part_loads_what_is_in_it() {
        let plan = plan();
        let mut loaded = 0;
        for part in plan.parts(60_000) {
            let store = part.load().unwrap();
            assert!(store.names().eq(part.names()));
            loaded += store.byte_len();
        }
        assert_eq!(loaded, plan.bytes_selected());
    }
}
