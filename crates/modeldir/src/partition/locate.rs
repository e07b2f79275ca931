//! The places of a layer's axes in a tensor: from a rule, else from the tensor's layout.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use super::layout::Layout;
use super::layouts::{layout_of, plain};
use super::weight_layout::{Located, Member, Obstacle, Side, WeightLayout};

/// The place of an axis in a tensor.
pub(super) fn axis(tensor: &Member<'_>, side: Side) -> Located {
    if let Layout::Axes(axes) = tensor.order {
        let along = if side == Side::Out { axes.out } else { axes.inputs };
        return Ok(along.and_then(|along| tensor.along(along.dim, along.per)));
    }
    // A single number has no axis, unless its layer has one output. A matrix of one word does: it
    // may hold packed numbers.
    let is_one = tensor.tensor.shape.iter().all(|len| *len == 1);
    let is_word = tensor.rank() > 1 && !plain::is_float(tensor.tensor.dtype);
    if is_one && !is_word && !plain::is_of_layer(tensor.leaf) {
        return Ok(None);
    }
    layout(tensor)?.axis(tensor, side)
}

/// The layout of a tensor, found at the first call.
fn layout(tensor: &Member<'_>) -> Result<&'static dyn WeightLayout, Obstacle> {
    *tensor.layout.get_or_init(|| layout_of(tensor))
}

/// The dimension along which experts lie, `None` if the tensor has none.
pub(super) fn experts(tensor: &Member<'_>) -> Result<Option<usize>, Obstacle> {
    match tensor.order {
        Layout::Axes(axes) => Ok(axes.expert.filter(|dim| *dim < tensor.rank())),
        _ => match layout(tensor) {
            Ok(layout) => Ok(layout.experts(tensor)),
            // A single number is of all experts, whatever it means.
            Err(Obstacle::Unknown) if matches!(tensor.tensor.shape, [] | [1]) => Ok(None),
            Err(obstacle) => Err(obstacle),
        },
    }
}
