//! Errors of folders whose weights are ambiguous or absent.

use std::path::PathBuf;

use super::Folder;
use crate::open_options::Family;
use crate::resolve::inside;
use crate::resolve::listing::Role;
use crate::resolve::rank_files;
use crate::{Error, ErrorKind};

impl Folder<'_> {
    pub(super) fn ambiguous(&self, reason: &'static str, candidates: Vec<PathBuf>) -> Error {
        ErrorKind::Ambiguous { reason, candidates }.at(self.root)
    }

    pub(super) fn no_weights(&self) -> Error {
        if let Some(refused) = rank_files::refused(self.listing) {
            return refused.at(self.root);
        }
        let found = [Role::Legacy, Role::Partial].into_iter().flat_map(|role| self.of_role(role));
        let folders = inside::with_weights(self.root, self.of_role(Role::Folder));
        let kind = ErrorKind::NoWeights { found: found.collect(), folders };
        kind.at(self.root)
    }

    pub(super) fn only_variants(&self) -> Error {
        ErrorKind::OnlyVariants { found: self.weights_and_indexes() }.at(self.root)
    }

    pub(super) fn no_variant(&self, variant: &str) -> Error {
        let found = self.weights_and_indexes();
        if found.is_empty() {
            return self.no_weights();
        }
        ErrorKind::NoVariant { variant: variant.into(), found }.at(self.root)
    }

    /// The error for a requested family that is absent.
    pub(super) fn nothing(&self, family: Family) -> Error {
        let found = self.weights_and_indexes();
        ErrorKind::NoFamily { stem: family.stem(), found }.at(self.root)
    }

    pub(super) fn weights_and_indexes(&self) -> Vec<PathBuf> {
        [Role::Index, Role::Weights].into_iter().flat_map(|role| self.of_role(role)).collect()
    }
}
