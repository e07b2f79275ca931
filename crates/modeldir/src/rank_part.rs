//! `RankPart`: whose part of a model a saved directory holds, as its metadata says.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use tensorfile::Metadata;
use tensorfile::reserve::{self, NoMemory};

use crate::partition::{Partition, PartitionError, Topology};
use crate::{ErrorKind, Result};

/// The metadata keys of a part: its rank and rules, as JSON, and the directory it comes from. The
/// rank comes first in the order of keys.
pub(crate) const KEYS: [&str; 3] = ["modeldir.rank", "modeldir.rules", "modeldir.source"];

/// The part of a model that a directory holds, which a rank of a distributed job has saved.
///
/// Saving the tensors of a plan for a rank records it in the metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RankPart {
    /// The rank whose part it is.
    pub topology: Topology,
    /// The rules by which it was cut.
    pub rules: Partition,
    /// The directory of the model that it was cut from.
    pub source: String,
}

impl RankPart {
    /// Fails unless this is the part that these rules select for this rank.
    pub(crate) fn check(
        &self,
        rules: &Partition,
        topology: &Topology,
    ) -> Result<(), PartitionError> {
        if self.topology != *topology {
            let (holds, asked) = (self.topology.clone().into(), topology.clone().into());
            return Err(PartitionError::OtherPart { holds, asked });
        }
        if self.rules != *rules {
            return Err(PartitionError::OtherRules { holds: self.topology.clone().into() });
        }
        Ok(())
    }
}

/// The metadata entries of a part, as they are on disk: parsed only on request.
#[derive(Clone, Debug)]
pub(crate) struct PartRecord {
    /// The values of [`KEYS`].
    values: [Box<str>; 3],
}

impl PartRecord {
    /// The record of a plan for a rank.
    pub(crate) fn new(topology: &Topology, rules: &Partition, source: &str) -> Self {
        let topology = serde_json::to_string(topology).expect("ranks and sizes are JSON");
        let rules = serde_json::to_string(rules).expect("keys of rules are text");
        Self { values: [topology.into(), rules.into(), source.into()] }
    }

    /// The record in the metadata of an index or of a weight file, if there is one.
    pub(crate) fn find<'m>(
        sources: impl IntoIterator<Item = &'m Metadata>,
    ) -> Result<Option<Arc<Self>>, NoMemory> {
        let of = |metadata: &'m Metadata| match KEYS.map(|key| metadata.get(key)) {
            [Some(topology), Some(rules), Some(source)] => Some([topology, rules, source]),
            _ => None,
        };
        let Some([topology, rules, source]) = sources.into_iter().find_map(of) else {
            return Ok(None);
        };
        let values = [reserve::boxed(topology)?, reserve::boxed(rules)?, reserve::boxed(source)?];
        Ok(Some(Arc::new(Self { values })))
    }

    /// The entries, by key.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static str, &str)> {
        KEYS.into_iter().zip(self.values.iter().map(AsRef::as_ref))
    }

    /// The part that the entries describe.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartRecord`] if an entry is not what a save writes.
    pub(crate) fn parse(&self) -> Result<RankPart> {
        let [topology, rules, source] = &self.values;
        let refuse = |key, message: &dyn fmt::Display| ErrorKind::PartRecord {
            key,
            message: message.to_string().into(),
        };
        let topology = serde_json::from_str(topology).map_err(|error| refuse(KEYS[0], &error))?;
        let rules = Partition::from_json(rules.as_bytes())
            .map_err(|error| refuse(KEYS[1], error.kind()))?;
        Ok(RankPart { topology, rules, source: source.as_ref().into() })
    }
}

#[cfg(test)]
mod tests {
    use tensorfile::MetadataBuilder;

    use super::{KEYS, PartRecord};
    use crate::ErrorKind;
    use crate::partition::{Partition, PartitionError, Topology};
    use crate::rank::Rank;

    fn rules() -> Partition {
        Partition::from_json(br#"{"rules": [{"match": "**.weight", "tp": "col"}]}"#).unwrap()
    }

    fn rank(rank: usize) -> Topology {
        Topology::tensor_parallel(Rank::new(rank, 2).unwrap())
    }

    #[test]
    fn a_record_gives_back_what_was_recorded() {
        let record = PartRecord::new(&rank(1), &rules(), "a model");
        let entries: Vec<_> = record.entries().collect();
        assert_eq!(entries.iter().map(|(key, _)| *key).collect::<Vec<_>>(), KEYS);
        assert!(entries[0].1.contains(r#""tp":"1/2""#), "{entries:?}");
        let part = record.parse().unwrap();
        assert_eq!((&part.topology, &part.rules, &*part.source), (&rank(1), &rules(), "a model"));
    }

    #[test]
    fn another_rank_or_other_rules_are_refused_by_both_names() {
        let part = PartRecord::new(&rank(1), &rules(), "a model").parse().unwrap();
        part.check(&rules(), &rank(1)).unwrap();
        let error = part.check(&rules(), &rank(0)).unwrap_err();
        assert!(matches!(error, PartitionError::OtherPart { .. }), "{error:?}");
        assert!(error.to_string().contains("1/2") && error.to_string().contains("0/2"), "{error}");
        let error = part.check(&rules(), &Topology::single()).unwrap_err();
        assert!(matches!(error, PartitionError::OtherPart { .. }), "{error:?}");
        let error = part.check(&Partition::default(), &rank(1)).unwrap_err();
        assert!(matches!(error, PartitionError::OtherRules { .. }), "{error:?}");
    }

    #[test]
    fn rejects_a_record_that_no_save_writes() {
        for (values, key) in [
            ([r#"{"tp": "2/2"}"#, "{}", ""], KEYS[0]),
            (["", "{}", ""], KEYS[0]),
            (["[[[[", "{}", ""], KEYS[0]),
            ([r#"{"tp": "1/2"}"#, r#"{"rule": []}"#, ""], KEYS[1]),
            ([r#"{"tp": "1/2"}"#, "", ""], KEYS[1]),
        ] {
            let mut metadata = MetadataBuilder::default();
            for (key, value) in KEYS.into_iter().zip(values) {
                metadata.push(key, value).unwrap();
            }
            let record = PartRecord::find([&metadata.finish_with_last()]).unwrap().unwrap();
            let error = record.parse().unwrap_err();
            let is_key = |found: &str| found == key;
            assert!(matches!(error.kind(), ErrorKind::PartRecord { key, .. } if is_key(key)));
        }
    }
}
