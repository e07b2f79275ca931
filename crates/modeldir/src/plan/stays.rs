//! `Stays`: why a tensor keeps its type although a cast was to convert it.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::fmt;

use serde::Serialize;

/// Why a tensor of a plan keeps its stored type although a [cast](crate::LoadPlan::cast) was to convert
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Stays {
    /// It is the scale, zero point or another companion of a quantized weight, which keeps its type
    /// too. [`LoadPlan::cast_named`](crate::LoadPlan::cast_named) converts it.
    Companion,
    /// Its type is not converted: integers, `F64`, 8-bit and packed floats.
    Dtype,
}

impl fmt::Display for Stays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Companion => "companions of quantized weights",
            Self::Dtype => "not converted",
        })
    }
}
