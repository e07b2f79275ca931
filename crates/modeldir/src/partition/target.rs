//! A tensor with the rules that win for it, and the errors about it.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use super::error::PartitionError;
use super::expect::Expected;
use super::layout::Layout;
use super::misfit::Misfit;
use super::rule::{Ep, Rule};
use super::tp::{Axis, Tp};
use super::weight_layout::{Member, Obstacle, Source};
use crate::rank::Rank;
use crate::{Error, Quantization};

/// A tensor and the rules for it.
pub(super) struct Target<'a> {
    pub(super) member: Member<'a>,
    pub(super) rule: Option<&'a Rule>,
    pub(super) layer: Option<usize>,
    pub(super) ep: Ep,
    pub(super) at: Rank,
    pub(super) tp: &'a Tp,
}

impl Target<'_> {
    pub(super) fn error(&self, misfit: Misfit) -> Error {
        let kind = PartitionError::Cut {
            rule: self.rule.map_or("", |rule| rule.pattern.as_str()).into(),
            misfit,
        };
        Error::from(kind).in_tensor(self.member.tensor.name)
    }

    /// The error of an axis, or of experts, that cannot be located.
    pub(super) fn stuck(&self, axis: Axis, obstacle: Obstacle) -> Error {
        self.error(match obstacle {
            Obstacle::Uncuttable(reason) => Misfit::Uncuttable { axis, reason },
            Obstacle::Method(method) => Misfit::Method {
                method: method.name,
                reason: method.reason,
                pattern: self.own_pattern(),
            },
            Obstacle::Unknown => Misfit::UnknownLayout {
                leaf: self.member.leaf.into(),
                dtype: self.member.tensor.dtype,
                method: self.member.quantization.and_then(Quantization::method).map(Box::from),
                pattern: self.own_pattern(),
            },
        })
    }

    /// A pattern of the tensors with the same module name and leaf in all layers.
    fn own_pattern(&self) -> Box<str> {
        let mut segments = self.member.tensor.name.rsplit('.');
        match (segments.next(), segments.next()) {
            (Some(leaf), Some(module)) => format!("**.{module}.{leaf}").into(),
            _ => self.member.tensor.name.into(),
        }
    }

    /// What the rule expects of the tensor, unless a rule of the caller says where its axes lie.
    pub(super) fn expected(&self) -> Option<&Expected> {
        let is_stated = matches!(self.member.order, Layout::Axes(_));
        self.rule.and_then(|rule| rule.expect.as_ref()).filter(|_| !is_stated)
    }
}

/// Who wrote a rule, and what it is about.
pub(super) fn source(rule: Option<&Rule>) -> Source {
    match rule {
        Some(rule) if rule.expect.is_some() => Source::Expecting,
        Some(rule) if rule.pattern.names_leaf() => Source::CallersLeaf,
        _ => Source::Caller,
    }
}
