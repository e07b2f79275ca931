//! Builds the report of what was ignored or odd.

use std::path::Path;

use crate::ModelConfig;
use crate::report::{Report, TotalSize};
use crate::resolve::Resolved;
use crate::weights::index::build::Findings;
use crate::weights::index::{Index, Shard};

/// Builds the report of what was ignored or odd.
pub(super) fn report(
    index: &Index,
    resolved: Resolved,
    findings: Findings,
    config: Option<&ModelConfig>,
) -> Report {
    let total_size = resolved.index.as_ref().and_then(|file| file.map.total_size());
    let total_size = total_size.map(|declared| TotalSize {
        declared: declared.as_str().to_owned(),
        declared_bytes: declared.byte_len(),
        tensor_bytes: mapped_bytes(index, &findings),
        file_bytes: index.shards().iter().map(Shard::file_bytes).sum(),
    });
    let trailing = index.shards().iter().filter(|shard| shard.trailing_bytes() > 0);
    let mut notes = resolved.notes;
    notes.extend(config.into_iter().flat_map(ModelConfig::notes).cloned());
    notes.extend(aliases_left_out(findings.aliases_left_out));
    Report {
        family: resolved.family,
        index_file: resolved.index.map(|file| {
            file.path.strip_prefix(&index.root).map_or_else(|_| file.path.clone(), Path::to_owned)
        }),
        ignored_files: resolved.ignored,
        unindexed: findings.unindexed,
        stale: findings.stale,
        total_size,
        skipped: findings.skipped,
        trailing_bytes: trailing.map(|s| (s.path().to_owned(), s.trailing_bytes())).collect(),
        aliases: index.aliases.shared(),
        notes,
        remarks: resolved.remarks,
    }
}

/// The note about metadata entries for aliases beyond the limit.
fn aliases_left_out(count: usize) -> Option<String> {
    let note = || format!("metadata has {count} entries for aliases beyond those that are kept");
    (count > 0).then(note)
}

/// Bytes of the tensors that the weight map names.
fn mapped_bytes(index: &Index, findings: &Findings) -> u64 {
    let strays = &findings.unindexed;
    let is_mapped = |name: &str| strays.binary_search_by(|s| s.tensor.as_str().cmp(name)).is_err();
    let mapped = index.iter().filter(|tensor| is_mapped(tensor.name()));
    mapped.map(|tensor| tensor.byte_len() as u64).sum()
}
