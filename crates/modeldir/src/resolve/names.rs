//! The names of the weights of a family, with and without a variant.

use std::path::Path;

use crate::open_options::Family;
use crate::weights::shard_path;

/// The end of the name of an index without a variant.
pub(super) const INDEX_ENDING: &str = ".safetensors.index.json";

/// The name of a single file.
pub(super) fn single_name(stem: &str, variant: Option<&str>) -> String {
    let dotted = variant.map(|variant| format!(".{variant}")).unwrap_or_default();
    format!("{stem}{dotted}{}", shard_path::EXTENSION)
}

/// The possible names of an index. Writers put the variant in three places.
pub(super) fn index_names(stem: &str, variant: Option<&str>) -> Vec<String> {
    match variant {
        None => vec![format!("{stem}{INDEX_ENDING}")],
        Some(variant) => vec![
            format!("{stem}.safetensors.index.{variant}.json"),
            format!("{stem}.safetensors.{variant}.index.json"),
            format!("{stem}.{variant}{INDEX_ENDING}"),
        ],
    }
}

/// Whether a file belongs to a variant of one of the known families.
pub(super) fn is_variant(path: &Path) -> bool {
    let name = path.to_string_lossy();
    Family::ALL.iter().any(|family| {
        let Some(rest) = name.strip_prefix(family.stem()) else { return false };
        let is_plain = rest == shard_path::EXTENSION || rest == INDEX_ENDING;
        let is_numbered = rest.starts_with(['-', '_']);
        let after_total = rest.rsplit_once("-of-").map_or("", |(_, total)| total);
        let is_late = is_numbered && after_total.matches('.').count() > 1;
        is_late || (rest.starts_with('.') && !is_plain)
    })
}
