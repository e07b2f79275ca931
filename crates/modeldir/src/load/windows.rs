//! The windows of a stream: tensors that are read together, planned when their turn comes.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::iter;
use std::num::NonZeroU64;

use crate::plan::layout::{in_memory, most_memory};
use crate::plan::{LoadPlan, Placed};
use crate::{ErrorKind, Result};

/// Default memory of a stream, if no tensor needs more.
const DEFAULT_IN_FLIGHT: u64 = 512 << 20;

/// Number of parts of the memory: some are filled while another is in use.
pub(super) const WINDOWS: u64 = 4;

/// The tensors of a plan in windows of at most a quarter of the memory, or of one tensor. A window
/// never spans two shards.
///
/// A window takes memory only during its turn: a large model has tens of thousands.
#[derive(Debug)]
pub(super) struct Windows<'p> {
    plan: &'p LoadPlan,
    in_flight: u64,
}

impl<'p> Windows<'p> {
    /// Cuts a plan, so that at most `max` bytes of memory are in flight.
    pub(super) fn of(plan: &'p LoadPlan, max: Option<NonZeroU64>) -> Result<Self> {
        let most = plan.placed().iter().map(|placed| most_memory(placed.byte_len())).max();
        let unasked = DEFAULT_IN_FLIGHT.max(most.unwrap_or(0));
        let windows = Self { plan, in_flight: max.map_or(unasked, NonZeroU64::get) };
        windows.check_fit()?;
        Ok(windows)
    }

    /// The most bytes of memory in flight.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The most bytes that the stream allocates, if each region is at least this long.
    pub(super) fn memory_bytes(&self, region_len: usize) -> u64 {
        let regions = self.cuts().map(|window| most_of(window).max(region_len as u64));
        regions.fold(0, u64::saturating_add).min(self.in_flight)
    }

    /// A region length with which nearly every window can reuse the region of another.
    pub(super) fn region_len(&self) -> usize {
        let longest = self.cuts().map(most_of).max().unwrap_or(0);
        in_memory(longest.min(self.window_len()))
    }

    /// The plan of each window, made when its turn comes.
    pub(super) fn plans(&self) -> impl Iterator<Item = LoadPlan> {
        self.cuts().map(|window| self.plan.part(window))
    }

    /// The tensors of each window.
    fn cuts(&self) -> impl Iterator<Item = &'p [Placed]> {
        let mut rest = self.plan.placed();
        iter::from_fn(move || {
            let (window, others) = rest.split_at(self.count(rest));
            rest = others;
            (!window.is_empty()).then_some(window)
        })
    }

    /// How many of these tensors the first window takes: as many of one shard as fit, and at least
    /// one.
    fn count(&self, tensors: &[Placed]) -> usize {
        let shard = |placed: &Placed| self.plan.pair(placed).stored().shard().id();
        let Some(first) = tensors.first() else { return 0 };
        let (mut len, of_shard) = (0_u64, shard(first));
        let fits = |placed: &&Placed| {
            len = len.saturating_add(most_memory(placed.byte_len()));
            len <= self.window_len() && shard(placed) == of_shard
        };
        tensors.iter().take_while(fits).count().max(1)
    }

    fn window_len(&self) -> u64 {
        self.in_flight / WINDOWS
    }

    /// Fails for a tensor that needs more memory than the bound.
    fn check_fit(&self) -> Result<()> {
        let max = self.in_flight;
        // A tensor that fits with the largest possible overhead needs no closer look.
        let placed = self.plan.placed().iter();
        for placed in placed.filter(|placed| most_memory(placed.byte_len()) > max) {
            let needed = self.plan.part(std::slice::from_ref(placed)).memory_bytes();
            if needed > max {
                let tensor = self.plan.pair(placed).stored();
                let path = self.plan.index.shard_path(tensor.shard().id());
                let kind = ErrorKind::TensorTooLarge { needed, max };
                return Err(kind.at(path).in_tensor(tensor.name()));
            }
        }
        Ok(())
    }
}

/// The most bytes of memory that a window of these tensors takes.
fn most_of(window: &[Placed]) -> u64 {
    window.iter().map(|placed| most_memory(placed.byte_len())).fold(0, u64::saturating_add)
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "of small lists")]
mod tests {
    use std::num::NonZeroU64;

    use tensorfile::{Float, Selection};

    use modeldir_fixtures::{Tensor, file};

    use super::{WINDOWS, Windows};
    use crate::plan::PlannedTensor;
    use crate::{LoadPlan, ModelDir};

    /// Whole tensors, parts of rows, and converted ones.
    fn plans() -> [LoadPlan; 3] {
        let whole = ModelDir::open(modeldir_fixtures::model("llama")).unwrap().plan();
        let part = |dim| Selection::all().with_range(dim, 3..40);
        let parts = whole.select(|tensor| {
            let is_matrix = tensor.shape().len() == 2 && tensor.shape().iter().all(|e| *e >= 64);
            Some(if is_matrix { part(tensor.shard().position() % 2) } else { Selection::all() })
        });
        let cast = whole.cast(Float::F32);
        [whole, parts.unwrap(), cast]
    }

    #[test]
    fn windows_are_all_of_the_plan_in_file_order_and_within_their_memory() {
        for plan in plans() {
            for in_flight in [88 << 10, 200 << 10, 1 << 20, 1 << 30] {
                let windows = Windows::of(&plan, NonZeroU64::new(in_flight)).unwrap();
                let region_len = windows.region_len() as u64;
                assert!(region_len <= in_flight / WINDOWS);
                let (mut last, mut tensors, mut read, mut memory, mut count) = (None, 0, 0, 0, 0);
                for window in windows.plans() {
                    let shard = window.tensors().next().unwrap().shard().id();
                    let in_order = window.in_file_order().map(PlannedTensor::stored);
                    let mut positions: Vec<_> =
                        in_order.map(|t| Some((t.shard().id(), t.file_range().start))).collect();
                    assert!(positions.is_sorted() && positions[0] > last);
                    assert!(window.tensors().all(|t| t.shard().id() == shard));
                    last = positions.pop().unwrap();
                    let is_alone = window.len() == 1;
                    assert!(is_alone || window.memory_bytes() <= region_len, "{window}");
                    tensors += window.len();
                    read += window.bytes_read();
                    memory += window.memory_bytes().max(region_len);
                    count += 1;
                }
                assert_eq!((tensors, read), (plan.len(), plan.bytes_read()));
                assert!(windows.memory_bytes(windows.region_len()) >= memory.min(in_flight));
                assert!(in_flight < 1 << 30 || count == 4, "{count} windows of four shards");
            }
        }
    }

    #[test]
    fn a_window_finds_its_tensors_by_name_whatever_their_order_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let tensors = [Tensor::random("b", "F32", &[64]), Tensor::random("a", "U8", &[3])];
        std::fs::write(folder.path().join("model.safetensors"), file(&tensors)).unwrap();
        let plan = ModelDir::open(folder.path()).unwrap().plan();
        let windows = Windows::of(&plan, None).unwrap();
        let windows: Vec<_> = windows.plans().collect();
        let [window] = &windows[..] else { panic!("one window") };
        assert!(window.names().eq(["a", "b"]));
        let in_file: Vec<_> = window.in_file_order().map(PlannedTensor::name).collect();
        assert_eq!(in_file, ["b", "a"]);
        for (name, byte_len) in [("a", 3), ("b", 256)] {
            assert_eq!(window.get(name).unwrap().byte_len(), byte_len);
        }
        assert_eq!(window.only(["b"]).unwrap().bytes_selected(), 256);
    }

    #[test]
    fn a_window_is_as_long_as_there_is_room_for() {
        let plan = &plans()[0];
        let windows = Windows::of(plan, NonZeroU64::new(200 << 10)).unwrap();
        let cuts: Vec<_> = windows.cuts().collect();
        let shard = |i: usize| plan.pair(&cuts[i][0]).stored().shard().id();
        for (i, pair) in cuts.windows(2).enumerate() {
            let with_next = [pair[0], &pair[1][..1]].concat();
            let is_full = super::most_of(&with_next) > 50 << 10;
            assert!(is_full || shard(i) != shard(i + 1), "window {i}");
        }
        assert!(cuts.iter().any(|window| window.len() > 1) && cuts.len() > 4);
    }
}
