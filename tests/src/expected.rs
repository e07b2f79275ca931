//! What `expected.json` says, every field of it understood or refused.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fields::Fields;
use crate::host::Need;
use crate::query::Query;
use crate::refusal::Mentions;

/// What must come of a case.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) kind: Kind,
    /// What to open, relative to the case's folder; empty if the case is one file.
    pub(crate) target: String,
    pub(crate) open_as: OpenAs,
    pub(crate) tensors: BTreeMap<String, Row>,
    /// Whether the tensors above are all there may be.
    pub(crate) complete: bool,
    pub(crate) absent: Vec<String>,
    pub(crate) count: Option<usize>,
    /// Elements in order.
    pub(crate) values: BTreeMap<String, Value>,
    /// `Some(None)`: there must be none.
    pub(crate) metadata: Option<Option<BTreeMap<String, String>>>,
    pub(crate) planned_bytes: Option<u64>,
    pub(crate) ignored_files: Vec<String>,
    pub(crate) report: ExpectedReport,
    pub(crate) mentions: Mentions,
    /// Whether the other kind is right too, as long as no byte is wrong.
    pub(crate) either: bool,
    pub(crate) queries: Vec<Query>,
    pub(crate) config: BTreeMap<String, Value>,
    pub(crate) mutations: Vec<Mutation>,
    /// The most files that may be open at once.
    pub(crate) nofile: Option<u64>,
    pub(crate) needs: BTreeSet<Need>,
    pub(crate) no_new_files: bool,
}

/// What the report on a directory must say, where it matters.
#[derive(Debug, Default)]
pub(crate) struct ExpectedReport {
    pub(crate) unindexed_tensors: Option<Vec<String>>,
    pub(crate) stale_tensors: Option<Vec<String>>,
    pub(crate) total_size_differs: Option<bool>,
    pub(crate) aliases: Option<BTreeMap<String, String>>,
}

/// Whether opening and reading must succeed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Ok,
    Error(Stage),
}

/// Where an error must come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Open,
    Read,
    OpenOrRead,
}

/// How to open the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OpenAs {
    File,
    #[default]
    Dir,
}

/// One tensor as it must be.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) dtype: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) byte_len: u64,
    /// `None`: the bytes are not to be read.
    pub(crate) sha256: Option<String>,
    /// The file that must hold it, relative to the target.
    pub(crate) file: Option<String>,
}

/// Something done to the files after opening and before reading; paths are relative to the case.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    Truncate { path: String, byte_len: u64 },
    Rename { from: String, to: String },
    Remove { path: String },
}

/// Fields that tell people where a case comes from.
const REMARKS: [&str; 6] = ["fault", "note", "policy", "policy_note", "seen", "what"];

impl Expected {
    /// Understands what must come of a case; `folder` is the name that its id must have.
    pub(crate) fn parse(value: Value, folder: Option<&OsStr>) -> Result<Self, String> {
        let mut fields = Fields::new("expected.json", value)?;
        let id: Option<String> = fields.optional("id")?;
        let expected = Self::take(&mut fields)?;
        fields.remarks(&REMARKS);
        fields.finish()?;
        match (id, folder) {
            (Some(id), Some(name)) if *name != *id => {
                Err(format!("the folder is {}, its id {id}", Path::new(name).display()))
            }
            _ => expected.validated(),
        }
    }

    /// What to open of the case at `root`, which is the target itself if the case is one file.
    pub(crate) fn target_in(&self, root: &Path) -> PathBuf {
        if self.target.is_empty() { root.to_owned() } else { root.join(&self.target) }
    }

    /// What must come of a model that holds exactly these tensors.
    pub(crate) fn of_tensors(tensors: BTreeMap<String, Row>) -> Self {
        Self { tensors, complete: true, ..Self::default() }
    }

    fn take(fields: &mut Fields) -> Result<Self, String> {
        Ok(Self {
            kind: kind(fields)?,
            target: fields.required("target")?,
            open_as: open_as(fields)?,
            tensors: rows(fields.optional("tensors")?)?,
            complete: fields.flag("complete")?,
            absent: fields.list("absent")?,
            count: fields.optional("count")?,
            values: fields.optional("values")?.unwrap_or_default(),
            metadata: fields.optional("metadata")?,
            planned_bytes: fields.optional("planned_bytes")?,
            ignored_files: fields.list("ignored_files")?,
            report: report(fields.optional("report")?)?,
            mentions: mentions(fields)?,
            either: fields.flag("either")?,
            queries: fields
                .list("queries")?
                .into_iter()
                .map(Query::take)
                .collect::<Result<_, _>>()?,
            config: fields.optional("config")?.unwrap_or_default(),
            mutations: fields
                .list("mutate_after_open")?
                .into_iter()
                .map(mutation)
                .collect::<Result<_, _>>()?,
            nofile: nofile(fields.optional("run_with")?)?,
            needs: fields
                .list("needs")?
                .into_iter()
                .map(Need::named)
                .collect::<Result<_, String>>()?,
            no_new_files: fields.flag("no_new_files")?,
        })
    }

    /// Refuses a case that checks nothing, or that asks for what could never be checked.
    fn validated(self) -> Result<Self, String> {
        let listed = self.complete
            || self.count.is_some()
            || self.planned_bytes.is_some()
            || self.metadata.is_some()
            || !self.tensors.is_empty()
            || !self.absent.is_empty()
            || !self.ignored_files.is_empty()
            || self.report.is_some();
        let asked = !self.values.is_empty() || !self.queries.is_empty() || !self.config.is_empty();
        let refused = |why: &str| Err(format!("expected.json: {why}"));
        match self.kind {
            Kind::Ok if !listed && !asked => return refused("nothing to check"),
            Kind::Ok if !self.mentions.is_empty() && !self.either => {
                return refused("error_mentions in a case that must succeed");
            }
            Kind::Error(_) if self.mentions.is_empty() => {
                return refused("an error case that asks nothing of the error");
            }
            Kind::Error(Stage::Open | Stage::OpenOrRead) if listed || asked => {
                return refused("a result in a case that must not open");
            }
            Kind::Error(Stage::Read) if self.mutations.is_empty() && !self.has_failing_query() => {
                return refused("stage \"read\", and nothing that makes reading fail");
            }
            _ => {}
        }
        if !self.mutations.is_empty() && (!self.queries.is_empty() || !self.config.is_empty()) {
            return refused("queries of files that change are not known to the runner");
        }
        if self.open_as == OpenAs::File
            && (self.report.is_some() || !self.ignored_files.is_empty() || !self.config.is_empty())
        {
            return refused("report, ignored_files and config are for directories");
        }
        Ok(self)
    }

    /// Whether a query must fail: then it is the query that brings the error of the case.
    pub(crate) fn has_failing_query(&self) -> bool {
        self.queries.iter().any(Query::must_fail)
    }

    /// The tensors that must not be read.
    pub(crate) fn unread(&self) -> BTreeSet<&str> {
        let unread = self.tensors.iter().filter(|(_, row)| row.sha256.is_none());
        unread.map(|(name, _)| name.as_str()).collect()
    }
}

impl ExpectedReport {
    fn is_some(&self) -> bool {
        self.unindexed_tensors.is_some()
            || self.stale_tensors.is_some()
            || self.total_size_differs.is_some()
            || self.aliases.is_some()
    }
}

/// Reads the `expected.json` of a case's folder.
pub(crate) fn read_expected(folder: &Path) -> Result<Value, String> {
    let path = folder.join("expected.json");
    let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("expected.json: {error}"))
}

fn report(report: Option<Value>) -> Result<ExpectedReport, String> {
    let Some(report) = report else { return Ok(ExpectedReport::default()) };
    let mut fields = Fields::new("report", report)?;
    let report = ExpectedReport {
        unindexed_tensors: fields.optional("unindexed_tensors")?,
        stale_tensors: fields.optional("stale_tensors")?,
        total_size_differs: fields.optional("total_size_differs")?,
        aliases: fields.optional("aliases")?,
    };
    fields.finish()?;
    Ok(report)
}

fn kind(fields: &mut Fields) -> Result<Kind, String> {
    let kind: String = fields.required("kind")?;
    let stage: Option<String> = fields.optional("stage")?;
    match (kind.as_str(), stage.as_deref()) {
        ("ok", None) => Ok(Kind::Ok),
        ("error", Some("open")) => Ok(Kind::Error(Stage::Open)),
        ("error", Some("read")) => Ok(Kind::Error(Stage::Read)),
        ("error", Some("open_or_read")) => Ok(Kind::Error(Stage::OpenOrRead)),
        _ => Err(format!("expected.json: the runner does not know kind {kind:?}, stage {stage:?}")),
    }
}

fn open_as(fields: &mut Fields) -> Result<OpenAs, String> {
    match fields.required::<String>("open_as")?.as_str() {
        "file" => Ok(OpenAs::File),
        "dir" => Ok(OpenAs::Dir),
        other => Err(format!("expected.json: the runner does not know open_as {other:?}")),
    }
}

/// Takes what an error must say, of a case or of a query.
pub(crate) fn mentions(fields: &mut Fields) -> Result<Mentions, String> {
    Ok(Mentions {
        all: fields.list("error_mentions")?,
        any: fields.list("error_mentions_any")?,
        variant: fields.optional("variant")?,
        suggests: None,
    })
}

/// Takes rows by tensor name.
pub(crate) fn rows(rows: Option<BTreeMap<String, Value>>) -> Result<BTreeMap<String, Row>, String> {
    let named = |(name, row)| {
        let mut fields = Fields::new(format!("tensor {name:?}"), row)?;
        let row = Row {
            dtype: fields.required("dtype")?,
            shape: fields.required("shape")?,
            byte_len: fields.required("nbytes")?,
            sha256: fields.required("sha256")?,
            file: fields.optional("file")?,
        };
        fields.finish()?;
        Ok((name, row))
    };
    rows.unwrap_or_default().into_iter().map(named).collect()
}

fn mutation(value: Value) -> Result<Mutation, String> {
    let mut fields = Fields::new("mutate_after_open", value)?;
    let mutation = match fields.required::<String>("op")?.as_str() {
        "truncate" => Mutation::Truncate {
            path: fields.required("path")?,
            byte_len: fields.required("size")?,
        },
        "rename" => Mutation::Rename { from: fields.required("from")?, to: fields.required("to")? },
        "remove" => Mutation::Remove { path: fields.required("path")? },
        other => return Err(format!("mutate_after_open: the runner does not know {other:?}")),
    };
    fields.finish()?;
    Ok(mutation)
}

fn nofile(run_with: Option<Value>) -> Result<Option<u64>, String> {
    let Some(run_with) = run_with else { return Ok(None) };
    let mut fields = Fields::new("run_with", run_with)?;
    let nofile = fields.required("rlimit_nofile")?;
    fields.finish()?;
    Ok(Some(nofile))
}
