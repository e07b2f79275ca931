//! What opening a directory ignored or found odd, without refusing it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tensorfile::{PathText, Quoted};

use crate::as_text;
use crate::error::Fault;
use crate::open_options::Family;

pub use crate::resolve::{IgnoreReason, IgnoredFile};
pub use crate::weights::alias::{Alias, AliasRule};

/// What opening a directory ignored or found odd. Nothing in it kept the directory from opening.
///
/// `Display` writes a line for each fact, and nothing if there is none. It lists the first thousand
/// facts of each kind and counts the others. Serialised, a report has all of them; paths are text, with
/// invalid UTF-8 replaced.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The family whose names the weights have; `None` for other names and for listed files.
    pub family: Option<Family>,
    /// The index that was used, relative to the directory.
    #[serde(serialize_with = "as_text::optional_path")]
    pub index_file: Option<PathBuf>,
    /// Files beside the weights that were not read as weights, with the reason.
    pub ignored_files: Vec<IgnoredFile>,
    /// Tensors of indexed shards that the index does not name, sorted by name.
    pub unindexed: Vec<StrayTensor>,
    /// Copies of tensors in shards other than the indexed one, sorted by name; not loaded.
    pub stale: Vec<StrayTensor>,
    /// The `total_size` of the index, if it has one.
    pub total_size: Option<TotalSize>,
    /// Shards left out because of [`MissingShards::Skip`](crate::options::MissingShards).
    #[serde(serialize_with = "as_text::shown")]
    pub skipped: Vec<Fault>,
    /// Bytes after the last tensor of a shard, allowed by
    /// [`TrailingBytes::Allow`](tensorfile::TrailingBytes).
    #[serde(serialize_with = "as_text::shard_bytes")]
    pub trailing_bytes: Vec<(PathBuf, u64)>,
    /// Names that stand for a tensor stored under another name, sorted by name.
    pub aliases: Arc<[Alias]>,
    /// Other oddities: fields of the wrong type in the configuration, duplicate keys.
    pub notes: Vec<String>,
    /// How the weights were found, if not by the usual names; nothing odd.
    pub remarks: Vec<String>,
}

/// A tensor in a shard where the index does not place it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct StrayTensor {
    /// The name of the tensor.
    pub tensor: String,
    /// The shard that holds it, relative to the directory.
    #[serde(serialize_with = "as_text::path")]
    pub shard: Arc<Path>,
}

/// The `total_size` of an index beside the sizes it may stand for.
///
/// Writers put the sum of tensor bytes there, or of file sizes, or a wrong number. The library
/// never relies on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TotalSize {
    /// The value as in the index: a number, or any text.
    pub declared: String,
    /// The value in bytes, if it is a whole number in range.
    pub declared_bytes: Option<u64>,
    /// Bytes of all tensors that the index maps.
    pub tensor_bytes: u64,
    /// Bytes of all shards, headers included.
    pub file_bytes: u64,
}

impl TotalSize {
    /// Whether the declared value is the sum of tensor bytes.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.declared_bytes == Some(self.tensor_bytes)
    }
}

impl Report {
    /// Whether nothing was ignored or odd, aliases and remarks aside.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.ignored_files.is_empty()
            && self.unindexed.is_empty()
            && self.stale.is_empty()
            && self.total_size.as_ref().is_none_or(TotalSize::is_exact)
            && self.skipped.is_empty()
            && self.trailing_bytes.is_empty()
            && self.notes.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        lines(f, "files", &self.ignored_files, |f, ignored| write!(f, "ignored file {ignored}"))?;
        lines(f, "tensors", &self.unindexed, |f, StrayTensor { tensor, shard }| {
            write!(f, "tensor {} in {} is not in the index", Quoted(tensor), PathText(shard))
        })?;
        lines(f, "tensors", &self.stale, |f, StrayTensor { tensor, shard }| {
            let (tensor, shard) = (Quoted(tensor), PathText(shard));
            write!(f, "tensor {tensor} in {shard} is a stale copy: the index names another shard")
        })?;
        if let Some(total) = self.total_size.as_ref().filter(|total| !total.is_exact()) {
            let TotalSize { declared, tensor_bytes, file_bytes, .. } = total;
            let declared = Quoted(declared);
            writeln!(
                f,
                "total_size is {declared}: tensors have {tensor_bytes} bytes, files {file_bytes}"
            )?;
        }
        lines(f, "shards", &self.skipped, |f, fault| write!(f, "left out: {fault}"))?;
        lines(f, "shards", &self.trailing_bytes, |f, (shard, count)| {
            write!(f, "shard {} has {count} bytes after its last tensor", PathText(shard))
        })?;
        lines(f, "tensors", &self.aliases, |f, Alias { name, target, rule }| {
            write!(f, "tensor {} is {}: {rule}", Quoted(name), Quoted(target))
        })?;
        lines(f, "notes", &self.notes, |f, note| f.write_str(note))?;
        lines(f, "remarks", &self.remarks, |f, remark| f.write_str(remark))
    }
}

/// The maximum number of lines for one kind of fact.
const MAX_LINES: usize = 1000;

/// Writes a line for each of the first facts of a kind, and the number of the others.
fn lines<T>(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    facts: &[T],
    line: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for fact in facts.iter().take(MAX_LINES) {
        line(f, fact)?;
        writeln!(f)?;
    }
    match facts.len().saturating_sub(MAX_LINES) {
        0 => Ok(()),
        more => writeln!(f, "and {more} more {what} of this kind"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::{MAX_LINES, Report, StrayTensor};
    use crate::ModelDir;
    use crate::error::Fault;
    use crate::resolve::{IgnoreReason, IgnoredFile};

    #[test]
    fn a_report_is_plain_data() {
        let model = ModelDir::open(modeldir_fixtures::model("gpt2")).unwrap();
        let value = serde_json::to_value(model.report()).unwrap();
        assert_eq!(value["family"], "model");
        let [alias] = &value["aliases"].as_array().unwrap()[..] else { panic!("{value}") };
        let expected = json!({ "name": "lm_head.weight", "target": "transformer.wte.weight", "rule": "tied_embedding" });
        assert_eq!(*alias, expected);
        let stray = StrayTensor { tensor: "t".into(), shard: Path::new("a/b").into() };
        let ignored = IgnoredFile { path: "x.bin".into(), reason: IgnoreReason::OtherFormat };
        let shard = Path::new("m.safetensors");
        let report = Report {
            index_file: Some("i.json".into()),
            ignored_files: vec![ignored],
            unindexed: vec![stray],
            skipped: vec![Fault::Unindexed { tensor: "u".into(), shard: shard.into() }],
            trailing_bytes: vec![(shard.into(), 7)],
            ..Report::default()
        };
        let value = serde_json::to_value(&report).unwrap();
        assert_eq!(value["index_file"], "i.json");
        assert_eq!(value["ignored_files"], json!([{ "path": "x.bin", "reason": "other_format" }]));
        assert_eq!(value["unindexed"], json!([{ "tensor": "t", "shard": "a/b" }]));
        let skipped = "tensor \"u\" in shard m.safetensors is not in the index";
        assert_eq!(value["skipped"], json!([skipped]));
        assert_eq!(value["trailing_bytes"], json!([{ "shard": "m.safetensors", "bytes": 7 }]));
    }

    #[test]
    fn facts_of_one_kind_are_counted_where_they_are_many() {
        let stray = |i: usize| StrayTensor {
            tensor: format!("t{i}"),
            shard: Path::new("m.safetensors").into(),
        };
        let unindexed: Vec<_> = (0..MAX_LINES + 2).map(stray).collect();
        let report = Report { unindexed, notes: vec!["odd".into()], ..Report::default() };
        let text = report.to_string();
        assert_eq!(text.lines().count(), MAX_LINES + 2);
        assert!(text.ends_with("\nand 2 more tensors of this kind\nodd\n"), "{text}");
    }
}
