//! Runs the queries of a case, and compares the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use modeldir::options::Weights;
use modeldir::{ModelDir, OpenOptions, Partition, Rank, Topology};
use serde_json::{Value, json};
use tensorfile::{Selection, Tensor};

use crate::check::{check, equal};
use crate::expected::{Expected, Kind, OpenAs, Row};
use crate::query::{Op, Part, Query};
use crate::refusal::{Mentions, Refusal};
use crate::select::{file_of, head_rows, join, rank_range, read_part, selection, sha256};
use crate::ways::{Target, Way};

/// Runs one query on the target of a case, which lies in `root`.
pub(crate) fn ask(expected: &Expected, query: &Query, root: &Path) -> Result<(), String> {
    let target = Asked { path: &expected.target_in(root), open_as: expected.open_as };
    let answer = match &query.op {
        Op::Slice { tensor, ranges, part } => {
            target.slice(tensor, &selection(ranges), part.as_ref())
        }
        Op::Split { tensor, axis, world, sum_len, joined_sha256 } => {
            return target.split(tensor, *axis, *world, *sum_len, joined_sha256);
        }
        Op::Head { tensor, share, ranges, part } => {
            let rows = target.rows_of(tensor)?;
            let rows = head_rows(rows, *share)?;
            equal("rows of the head", &Some((rows.start, rows.end)), &ranges[0])?;
            target.slice(tensor, &selection(ranges), part.as_ref())
        }
        Op::Filter { keep, byte_len } => return target.filter(keep, *byte_len),
        Op::ByFile { world, empty_ranks } => return target.by_file(*world, *empty_ranks),
        Op::Ranks { size, rules, parts } => target.ranks(*size, rules, parts),
        Op::Get { tensor, part } => target.get(tensor, part.as_ref()),
        Op::Tokenizer => target.model()?.tokenizer().json().map(drop).map_err(Asking::refused),
        Op::Config => target.model()?.config().map(drop).map_err(Asking::refused),
        Op::OpenVariant { variant, tensors } => target.variant(variant, tensors, root),
    };
    let mut said = Mentions::default();
    if let Some(error) = &query.error {
        // Where asking is what fails, the mentions of the case are those of the query.
        let of_case = matches!(expected.kind, Kind::Error(_));
        said = if of_case { expected.mentions.and(error) } else { error.clone() };
    }
    match (answer, &query.error) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(_)) => Err("answered, and must be refused".to_owned()),
        (Err(Asking::Refused(refusal)), Some(_)) => said.check(&refusal, root),
        (Err(Asking::Refused(refusal)), None) => Err(refusal.text),
        (Err(Asking::Wrong(wrong)), _) => Err(wrong),
    }
}

/// Checks a value of the configuration.
pub(crate) fn check_config(
    expected: &Expected,
    root: &Path,
    pointer: &str,
    wanted: &Value,
) -> Result<(), String> {
    let target = Asked { path: &expected.target_in(root), open_as: expected.open_as };
    let model = target.model()?;
    let config = model.config().map_err(|error| Refusal::from(error).text)?;
    let found = config.raw().pointer(pointer);
    let infinite = |value: &Value| match value {
        Value::Object(object) if object.len() == 1 => match object.get("__float__")?.as_str()? {
            "Infinity" => Some("inf"),
            "-Infinity" => Some("-inf"),
            "NaN" => Some("nan"),
            _ => None,
        },
        _ => None,
    };
    match found {
        Some(value) if value == wanted => Ok(()),
        Some(value) if infinite(value).is_some_and(|name| *wanted == name) => Ok(()),
        _ => Err(format!("config {pointer}: {found:?}, must be {wanted}")),
    }
}

/// Why a query was not answered.
enum Asking {
    /// The product refused it.
    Refused(Refusal),
    /// The answer is wrong.
    Wrong(String),
}

impl Asking {
    fn refused(error: impl Into<Refusal>) -> Self {
        Self::Refused(error.into())
    }
}

impl From<String> for Asking {
    fn from(wrong: String) -> Self {
        Self::Wrong(wrong)
    }
}

/// What is asked.
struct Asked<'a> {
    path: &'a Path,
    open_as: OpenAs,
}

impl Asked<'_> {
    fn model(&self) -> Result<ModelDir, String> {
        ModelDir::open(self.path).map_err(|error| Refusal::from(error).text)
    }

    fn slice(
        &self,
        tensor: &str,
        selection: &Selection,
        part: Option<&Part>,
    ) -> Result<(), Asking> {
        let file = file_of(self.path, self.open_as, tensor)?;
        let read = read_part(&file, tensor, selection)?.map_err(Asking::Refused)?;
        Ok(check_part(&read, part)?)
    }

    /// The length of the first dimension.
    fn rows_of(&self, tensor: &str) -> Result<usize, String> {
        let model = self.model()?;
        let info = model.info(tensor).map_err(|error| Refusal::from(error).text)?;
        info.shape().first().copied().ok_or_else(|| format!("{tensor} has no rows"))
    }

    fn split(
        &self,
        tensor: &str,
        axis: usize,
        world: usize,
        sum_len: usize,
        joined_sha256: &str,
    ) -> Result<(), String> {
        let file = file_of(self.path, self.open_as, tensor)?;
        let whole = read_part(&file, tensor, &Selection::all())?.map_err(|refusal| refusal.text)?;
        let (rank, len) = (whole.shape().len(), whole.shape().get(axis).copied());
        let len = len.filter(|_| world > 0).ok_or("query split: no such axis, or no rank")?;
        let mut parts = Vec::new();
        for i in 0..world {
            let mut ranges = vec![None; rank];
            let range = rank_range(len, i, world);
            ranges[axis] = Some((range.start, range.end));
            parts.push(
                read_part(&file, tensor, &selection(&ranges))?.map_err(|refusal| refusal.text)?,
            );
        }
        equal("sum of lengths", &parts.iter().map(|part| part.shape()[axis]).sum(), &sum_len)?;
        equal("joined parts", &sha256(&join(&parts, axis)).as_str(), &joined_sha256)
    }

    fn filter(&self, keep: &[String], byte_len: u64) -> Result<(), String> {
        let model = self.model()?;
        let kept: BTreeSet<&str> = keep.iter().map(String::as_str).collect();
        let only =
            model.plan().only(kept.iter().copied()).map_err(|error| Refusal::from(error).text)?;
        let filtered = model.plan().filter(|tensor| kept.contains(tensor.name()));
        for plan in [only, filtered] {
            equal("planned names", &plan.names().collect(), &kept)?;
            equal("planned bytes", &plan.bytes_selected(), &byte_len)?;
            equal("bytes to read", &plan.bytes_read(), &byte_len)?;
            for way in [Way::LoadOne, Way::LoadMany, Way::Mapped] {
                let store = way.run(&plan).map_err(|error| Refusal::from(error).text)?;
                equal("names", &store.names().collect(), &kept)?;
                equal("bytes", &store.byte_len(), &byte_len)?;
                let read = if way == Way::Mapped { 0 } else { byte_len };
                equal("bytes read", &store.stats().bytes_read, &read)?;
            }
        }
        Ok(())
    }

    fn by_file(&self, world: usize, empty_ranks: usize) -> Result<(), String> {
        let model = self.model()?;
        let mut loaded = Vec::new();
        let mut empty = 0;
        for rank in 0..world {
            let plan = model.plan().filter(|tensor| tensor.shard().position() % world == rank);
            let store = Way::LoadMany.run(&plan).map_err(|error| Refusal::from(error).text)?;
            empty += usize::from(store.is_empty());
            loaded.extend(store.names().map(str::to_owned));
        }
        loaded.sort();
        equal("ranks without a file", &empty, &empty_ranks)?;
        equal("names of all ranks", &loaded, &model.names().map(str::to_owned).collect())
    }

    fn ranks(
        &self,
        size: usize,
        rules: &Value,
        parts: &[BTreeMap<String, Part>],
    ) -> Result<(), Asking> {
        let model = self.model()?;
        let own = Partition::from_json(json!({ "rules": rules }).to_string().as_bytes());
        let config = model.config().map_err(Asking::refused)?;
        let rules = own.and_then(|own| Ok(own.or_for_config(config)?)).map_err(Asking::refused)?;
        for rank in Rank::all(size) {
            let plan = model.plan_for(&rules, &Topology::tensor_parallel(rank));
            let store = plan.and_then(|plan| plan.load()).map_err(Asking::refused)?;
            let Some(wanted) = parts.get(rank.rank()) else { continue };
            let names: Vec<&str> = wanted.keys().map(String::as_str).collect();
            equal("names of a rank", &store.names().collect(), &names)?;
            for (name, part) in wanted {
                let found = store.get(name).map_err(Asking::refused)?;
                check_part(found, Some(part)).map_err(|wrong| format!("{name}: {wrong}"))?;
            }
        }
        Ok(())
    }

    fn get(&self, tensor: &str, part: Option<&Part>) -> Result<(), Asking> {
        let plan = self.model()?.plan();
        let mut refusal = None;
        for way in [Way::LoadOne, Way::LoadMany, Way::Mapped] {
            let store = way.run(&plan).map_err(|error| Refusal::from(error).text)?;
            match store.get(tensor) {
                Ok(found) => check_part(found, part)?,
                Err(error) => refusal = Some(error),
            }
        }
        refusal.map_or(Ok(()), |error| Err(Asking::refused(error)))
    }

    fn variant(
        &self,
        variant: &str,
        rows: &BTreeMap<String, Row>,
        root: &Path,
    ) -> Result<(), Asking> {
        let expected = Expected::of_tensors(rows.clone());
        let options = || OpenOptions::from(Weights::variant(variant));
        ModelDir::open_with(self.path, &options()).map_err(Asking::refused)?;
        for way in Way::all(OpenAs::Dir, self.path, false) {
            let attempt = way.attempt(&Target {
                path: self.path,
                options: options(),
                unread: BTreeSet::new(),
                after_open: &|| Ok(()),
            })?;
            attempt.map_or(Ok(()), |attempt| check(&expected, &attempt, root, None))?;
        }
        Ok(())
    }
}

fn check_part(found: &Tensor, part: Option<&Part>) -> Result<(), String> {
    let Some(Part { dtype, shape, sha256: wanted }) = part else { return Ok(()) };
    equal("dtype", &found.dtype().name(), &dtype.as_str())?;
    equal("shape", &found.shape(), &shape.as_slice())?;
    equal("sha256", &sha256(found.bytes()), wanted)
}
