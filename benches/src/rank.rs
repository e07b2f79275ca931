//! What a rank takes of a model in the benches: half of the matrices by rows, half by columns.

use std::cell::Cell;

use modeldir::{LoadPlan, Result, Selection};

/// Plans the part of this rank. In the order of names the first matrix is cut by rows, the next by
/// columns and so on, unless its extent cannot be divided; all else is taken whole.
///
/// # Errors
///
/// None for a plan of whole tensors.
pub fn rank_plan(plan: &LoadPlan, rank: usize, world: usize) -> Result<LoadPlan> {
    let matrices = Cell::new(0);
    plan.select(|tensor| {
        let is_matrix = tensor.shape().len() == 2;
        let number = if is_matrix { matrices.replace(matrices.get() + 1) } else { 0 };
        let part = cut(tensor.shape(), number, rank, world);
        Some(part.map_or_else(Selection::all, |(dim, part)| Selection::all().with_range(dim, part)))
    })
}

/// The dimension of the matrix with this number that is cut, and the part of it.
#[must_use]
pub fn cut(
    shape: &[usize],
    number: usize,
    rank: usize,
    world: usize,
) -> Option<(usize, std::ops::Range<usize>)> {
    let dim = number % 2;
    match shape {
        [_, _] if shape[dim] % world == 0 => {
            let part = shape[dim] / world;
            Some((dim, rank * part..(rank + 1) * part))
        }
        _ => None,
    }
}
