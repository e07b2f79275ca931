//! The form of the tables of built-in rules: families of models, and their lines.

use super::layout::Layout;
use super::rule::{Ep, Pp};

/// The rules of a model family.
#[derive(Debug)]
pub(super) struct Family {
    /// The values of `model_type` in configurations of this family.
    pub(super) model_types: &'static [&'static str],
    /// Whether the output head is the embedding if the configuration does not say.
    pub(super) tied: bool,
    pub(super) lists: &'static [&'static [Line]],
}

/// A rule before the numbers of a model are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) pattern: &'static str,
    pub(super) take: Take,
    pub(super) ep: Option<Ep>,
    pub(super) place: Option<Place>,
    pub(super) layout: Option<Layout>,
}

/// The part of a tensor that a rank takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Take {
    /// All of it.
    Whole,
    /// Outputs of a feed-forward layer.
    Out,
    /// Inputs of a feed-forward layer.
    In,
    /// Gate and up, one after the other along the outputs.
    GateUp,
    /// Gate and up, alternating along the outputs.
    Pairs,
    /// Tokens.
    Vocab,
    /// Query heads.
    Query,
    /// Heads with their query, key and value rows together.
    Together,
    /// Heads out of a latent, of a width of their own.
    FromLatent,
    /// Key or value heads.
    KeyValue,
    /// Key and value heads, each with the query heads that share it.
    Groups,
    /// Query, key and value heads, one after the other along the outputs.
    Qkv,
    /// `Groups`, `Qkv` or `Query`, by the configuration of a Falcon model.
    FalconQkv,
    /// Query heads along the inputs.
    FromHeads,
}

/// The pipeline stage of a tensor whose name has no layer, or one that does not decide.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    On(Pp),
    /// The first stage, and also the last if the head is tied to the embedding.
    Embedding,
}

/// A rule of tensors that are not of experts, and are in the stage of their layer.
pub(super) const fn line(pattern: &'static str, take: Take) -> Line {
    Line { pattern, take, ep: None, place: None, layout: None }
}

impl Line {
    pub(super) const fn on(self, pp: Pp) -> Self {
        Self { place: Some(Place::On(pp)), ..self }
    }

    pub(super) const fn embedding(self) -> Self {
        Self { place: Some(Place::Embedding), ..self }
    }

    /// Of one expert, whose number is in the name.
    pub(super) const fn expert(self) -> Self {
        Self { ep: Some(Ep::Name), ..self }
    }

    /// Of all experts.
    pub(super) const fn stacked(self) -> Self {
        Self { ep: Some(Ep::Axis), ..self }
    }

    /// Inputs before outputs.
    pub(super) const fn transposed(self) -> Self {
        Self { layout: Some(Layout::Transposed), ..self }
    }
}
