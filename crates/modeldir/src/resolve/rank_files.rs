//! Weight files that are cut for ranks already, by their names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::listing::{Listing, Role};
use crate::weights::{natural, shard_path};
use crate::{ErrorKind, Rank};

/// Who writes files of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Writer {
    Vllm,
    DeepSeek,
    TensorRt,
    /// Its tensors are parts with offsets, so that the files of one rank are no model.
    Distributed,
}

/// A file of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RankFile {
    writer: Writer,
    rank: usize,
    /// The position among the files of the rank.
    part: usize,
    /// The number of ranks, if the name has it.
    size: Option<usize>,
}

/// Whether a name is that of a file of one rank.
pub(super) fn is_rank_file(name: &str) -> bool {
    parse(name).is_some()
}

/// Parses `model-rank-0-part-1`, `model0-mp8`, `rank0` or `shard-00000-model-00001-of-00002`, each
/// with the ending of weights.
fn parse(name: &str) -> Option<RankFile> {
    let stem = name.strip_suffix(shard_path::EXTENSION)?;
    let of = |writer, rank: &str, part: &str, size: Option<&str>| {
        let size = match size {
            Some(size) => Some(number(size)?),
            None => None,
        };
        Some(RankFile { writer, rank: number(rank)?, part: number(part)?, size })
    };
    if let Some((rank, part)) =
        stem.strip_prefix("model-rank-").and_then(|s| s.split_once("-part-"))
    {
        return of(Writer::Vllm, rank, part, None);
    }
    if let Some((rank, part)) = stem.strip_prefix("shard-").and_then(|s| s.split_once("-model-")) {
        return of(Writer::Distributed, rank, part.split_once("-of-")?.0, None);
    }
    if let Some((rank, size)) = stem.strip_prefix("model").and_then(|s| s.split_once("-mp")) {
        return of(Writer::DeepSeek, rank, "0", Some(size));
    }
    of(Writer::TensorRt, stem.strip_prefix("rank")?, "0", None)
}

/// A number in digits alone.
fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// The files of ranks in a folder.
fn listed(listing: &Listing) -> impl Iterator<Item = (&str, RankFile)> {
    let names = listing.of(Role::RankFile).filter_map(|entry| entry.name.to_str());
    names.filter_map(|name| Some((name, parse(name)?)))
}

/// The error for a folder in which files of ranks are the only weights; `None` if it has none.
pub(super) fn refused(listing: &Listing) -> Option<ErrorKind> {
    let files: Vec<_> = listed(listing).collect();
    let (_, first) = files.first()?;
    let (writer, option) = match first.writer {
        Writer::Vllm => ("vLLM", "Weights::OfRank"),
        Writer::DeepSeek => ("DeepSeek's converter", "Weights::OfRank"),
        Writer::TensorRt => ("TensorRT-LLM", "Weights::OfRank"),
        Writer::Distributed => ("PyTorch's distributed checkpoint (DCP)", "Weights::Files"),
    };
    let ranks: BTreeSet<usize> = files.iter().map(|(_, file)| file.rank).collect();
    let files = files.iter().map(|(name, _)| PathBuf::from(name)).collect();
    Some(ErrorKind::RankFiles { writer, ranks: ranks.len(), option, files })
}

/// The files of one rank, of a set that is complete: the files of every rank are there.
///
/// A set is refused if it has more ranks or fewer: a rank of another job would be taken for this
/// one.
pub(super) fn of_rank(listing: &Listing, rank: Rank) -> Result<Vec<PathBuf>, ErrorKind> {
    let mut sets: BTreeMap<Writer, Vec<(&str, RankFile)>> = BTreeMap::new();
    for (name, file) in listed(listing) {
        let is_asked = file.size.is_none_or(|size| size == rank.size());
        if is_asked && file.writer != Writer::Distributed {
            sets.entry(file.writer).or_default().push((name, file));
        }
    }
    let is_whole = |files: &Vec<(&str, RankFile)>| {
        let ranks: BTreeSet<usize> = files.iter().map(|(_, file)| file.rank).collect();
        ranks.into_iter().eq(0..rank.size())
    };
    let mut whole = sets.into_values().filter(is_whole);
    let not_there = || ErrorKind::NoRankFiles {
        rank,
        found: listed(listing).map(|(name, _)| PathBuf::from(name)).collect(),
    };
    let (Some(files), None) = (whole.next(), whole.next()) else { return Err(not_there()) };
    let mut own: Vec<_> = files.into_iter().filter(|(_, file)| file.rank == rank.rank()).collect();
    own.sort_by(|(a, _), (b, _)| natural::compare(a, b));
    if !own.iter().map(|(_, file)| file.part).eq(0..own.len()) {
        return Err(not_there());
    }
    Ok(own.into_iter().map(|(name, _)| PathBuf::from(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::{RankFile, Writer, of_rank, parse, refused};
    use crate::ErrorKind;
    use crate::resolve::listing::Listing;
    use std::path::PathBuf;

    #[test]
    fn names_tell_writer_rank_and_part() {
        let file = |writer, rank, part, size| Some(RankFile { writer, rank, part, size });
        for (name, expected) in [
            ("model-rank-3-part-12.safetensors", file(Writer::Vllm, 3, 12, None)),
            ("model0-mp8.safetensors", file(Writer::DeepSeek, 0, 0, Some(8))),
            ("rank15.safetensors", file(Writer::TensorRt, 15, 0, None)),
            ("shard-00001-model-00002-of-00005.safetensors", file(Writer::Distributed, 1, 2, None)),
            ("model-00001-of-00002.safetensors", None),
            ("model.safetensors", None),
            ("model-mp8.safetensors", None),
            ("model0-mpx.safetensors", None),
            ("model-rank-x-part-0.safetensors", None),
            ("rank.safetensors", None),
            ("rank0.bin", None),
            ("shard-00001-model.safetensors", None),
        ] {
            assert_eq!(parse(name), expected, "{name}");
        }
    }

    fn listing(names: &[&str]) -> Listing {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        Listing::read(dir.path()).unwrap()
    }

    #[test]
    fn the_files_of_a_rank_are_those_of_a_whole_set() {
        let vllm = [
            "model-rank-0-part-0.safetensors",
            "model-rank-1-part-10.safetensors",
            "model-rank-1-part-0.safetensors",
        ];
        let of = |names: &[&str], rank: &str| of_rank(&listing(names), rank.parse().unwrap());
        let files = |names: &[&str]| -> Vec<PathBuf> { names.iter().map(PathBuf::from).collect() };
        assert_eq!(of(&vllm, "0/2").unwrap(), files(&vllm[..1]));
        let both = ["model0-mp1.safetensors", "model0-mp2.safetensors", "model1-mp2.safetensors"];
        assert_eq!(of(&both, "0/1").unwrap(), files(&both[..1]));
        assert_eq!(of(&both, "1/2").unwrap(), files(&both[2..]));
        assert_eq!(of(&["rank0.safetensors"], "0/1").unwrap(), files(&["rank0.safetensors"]));
        for (names, rank) in [
            // A part is missing, ranks are missing or too many, or nothing is there.
            (&vllm[..], "1/2"),
            (&vllm, "0/4"),
            (&vllm, "0/1"),
            (&both, "0/4"),
            (&["shard-00000-model-00001-of-00001.safetensors"], "0/1"),
            (&["model.safetensors"], "0/1"),
        ] {
            let refused = of(names, rank);
            assert!(matches!(refused, Err(ErrorKind::NoRankFiles { .. })), "{names:?} {rank}");
        }
    }

    #[test]
    fn a_folder_of_ranks_says_who_wrote_it_and_how_to_open_it() {
        for (names, writes, opens) in [
            (&["model-rank-0-part-0.safetensors"][..], "vLLM", "Weights::OfRank"),
            (&["model1-mp2.safetensors"], "DeepSeek's converter", "Weights::OfRank"),
            (&["rank0.safetensors"], "TensorRT-LLM", "Weights::OfRank"),
            (
                &["shard-00000-model-00001-of-00001.safetensors"],
                "PyTorch's distributed checkpoint (DCP)",
                "Weights::Files",
            ),
        ] {
            let found = refused(&listing(names));
            let Some(ErrorKind::RankFiles { writer, ranks: 1, option, files }) = found else {
                panic!("{found:?}")
            };
            assert_eq!((writer, option, files.len()), (writes, opens, 1));
        }
        assert!(refused(&listing(&["model.safetensors"])).is_none());
    }
}
