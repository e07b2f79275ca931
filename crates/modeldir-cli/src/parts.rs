//! A plan in parts, for work that does not need all tensors at once.

use modeldir::{IndexedTensor, LoadPlan};

/// Bytes of tensors in memory at once, for work that reads each tensor once.
pub(crate) const PART_BYTES: u64 = 1 << 30;

/// Returns the plan in parts of at most `max_bytes`, or of one larger tensor, in file order.
///
/// Loaded and dropped one by one, they need the memory of one part.
pub(crate) fn parts(plan: &LoadPlan, max_bytes: u64) -> Vec<LoadPlan> {
    let mut keys: Vec<_> =
        plan.tensors().map(|tensor| (place(tensor), tensor.byte_len() as u64)).collect();
    keys.sort_unstable();
    let mut parts = Vec::new();
    let mut part_bytes = 0;
    for (place, byte_len) in keys {
        part_bytes += byte_len;
        match parts.last_mut() {
            Some((_, last)) if part_bytes <= max_bytes => *last = place,
            _ => {
                parts.push((place, place));
                part_bytes = byte_len;
            }
        }
    }
    let part = |(first, last)| plan.filter(|tensor| (first..=last).contains(&place(tensor)));
    parts.into_iter().map(part).collect()
}

/// The place of a tensor: its shard, and the bytes in it.
fn place(tensor: IndexedTensor<'_>) -> (usize, u64, u64) {
    let range = tensor.file_range();
    (tensor.shard().position(), range.start, range.end)
}

#[cfg(test)]
mod tests {
    use super::parts;
    use modeldir::{LoadPlan, ModelDir};

    #[test]
    fn parts_are_small_and_make_the_whole() {
        let plan = ModelDir::open(modeldir_fixtures::model("llama")).unwrap().plan();
        let largest = plan.tensors().map(|tensor| tensor.byte_len() as u64).max().unwrap();
        for max_bytes in [0, 1000, largest, plan.bytes_selected()] {
            let parts = parts(&plan, max_bytes);
            let mut names: Vec<_> = parts.iter().flat_map(LoadPlan::names).collect();
            names.sort_unstable();
            assert!(names.into_iter().eq(plan.names()), "{max_bytes}");
            assert!(parts.iter().all(|p| p.len() == 1 || p.bytes_selected() <= max_bytes));
        }
        assert_eq!(parts(&plan, u64::MAX).len(), 1);
    }
}
