//! The queries of a case: further operations on what was opened, each with a result of its own.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::expected::{Row, mentions, rows};
use crate::fields::Fields;
use crate::refusal::{Mentions, Suggestion};

/// An operation and what must come of it.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) op: Op,
    /// What the error must say, if there must be one.
    pub(crate) error: Option<Mentions>,
}

/// An operation.
#[derive(Debug)]
pub(crate) enum Op {
    /// A part of a tensor.
    Slice { tensor: String, ranges: Vec<Option<(usize, usize)>>, part: Option<Part> },
    /// The parts of all ranks, each of `ceil(len / world)` or less, joined again.
    Split { tensor: String, axis: usize, world: usize, sum_len: usize, joined_sha256: String },
    /// The rows of a rank's head where heads are shared by ranks.
    Head {
        tensor: String,
        share: HeadShare,
        ranges: Vec<Option<(usize, usize)>>,
        part: Option<Part>,
    },
    /// Some tensors, and no byte of another.
    Filter { keep: Vec<String>, byte_len: u64 },
    /// Files dealt out to ranks.
    ByFile { world: usize, empty_ranks: usize },
    /// The parts of tensor-parallel ranks, by rules of the case and then the built-in ones.
    Ranks { size: usize, rules: Value, parts: Vec<BTreeMap<String, Part>> },
    /// A tensor by the name it is stored under.
    Get { tensor: String, part: Option<Part> },
    /// The tokenizer's JSON.
    Tokenizer,
    /// The configuration.
    Config,
    /// Another variant of the weights.
    OpenVariant { variant: String, tensors: BTreeMap<String, Row> },
}

/// A tensor, or a part of one, as it must be.
#[derive(Debug, Deserialize)]
pub(crate) struct Part {
    pub(crate) dtype: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) sha256: String,
}

/// Which rank of how many, and the heads they share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadShare {
    pub(crate) rank: usize,
    pub(crate) world: usize,
    pub(crate) heads: usize,
}

impl Query {
    /// Takes a query apart.
    pub(crate) fn take(value: Value) -> Result<Self, String> {
        let mut fields = Fields::new("query", value)?;
        let name: String = fields.required("op")?;
        let fails = match fields.optional::<String>("kind")?.as_deref() {
            None | Some("ok") => false,
            Some("error") => true,
            Some(other) => {
                return Err(format!("query {name}: the runner does not know kind {other:?}"));
            }
        };
        let op = Op::take(&name, fails, &mut fields)?;
        let mut said = mentions(&mut fields)?;
        if let Op::Get { tensor: asked, .. } = &op {
            let suggest = |offered| Suggestion { asked: asked.clone(), offered };
            said.suggests = fields.optional("suggests")?.map(suggest);
        }
        if !fails && !said.is_empty() {
            return Err(format!("query {name}: error_mentions in a query that must succeed"));
        }
        fields.remarks(&["note"]);
        fields.finish()?;
        Ok(Self { op, error: fails.then_some(said) })
    }

    /// Whether it must fail.
    pub(crate) fn must_fail(&self) -> bool {
        self.error.is_some()
    }
}

impl Op {
    fn take(name: &str, fails: bool, fields: &mut Fields) -> Result<Self, String> {
        let can_fail =
            matches!(name, "slice" | "get" | "ranks" | "tokenizer" | "config" | "open_variant");
        if fails && !can_fail {
            return Err(format!("query {name}: the runner does not know how it could fail"));
        }
        Ok(match name {
            "slice" => Self::Slice {
                tensor: fields.required("tensor")?,
                ranges: fields.required("ranges")?,
                part: part(fails, fields)?,
            },
            "split" => Self::Split {
                tensor: fields.required("tensor")?,
                axis: fields.required("axis")?,
                world: fields.required("world")?,
                sum_len: fields.required("lengths_sum")?,
                joined_sha256: fields.required("joined_sha256")?,
            },
            "head" => Self::Head {
                tensor: fields.required("tensor")?,
                share: HeadShare {
                    rank: fields.required("rank")?,
                    world: fields.required("world")?,
                    heads: fields.required("heads")?,
                },
                ranges: fields.required("ranges")?,
                part: part(fails, fields)?,
            },
            "filter" => {
                Self::Filter { keep: fields.required("keep")?, byte_len: fields.required("bytes")? }
            }
            "by_file" => by_file(fields)?,
            "ranks" => ranks(fails, fields)?,
            "get" => Self::Get { tensor: fields.required("tensor")?, part: part(fails, fields)? },
            "tokenizer" => Self::Tokenizer,
            "config" => Self::Config,
            "open_variant" => Self::OpenVariant {
                variant: fields.required("variant")?,
                tensors: if fails {
                    BTreeMap::new()
                } else {
                    rows(Some(fields.required("tensors")?))?
                },
            },
            other => return Err(format!("the runner does not know the query {other:?}")),
        })
    }
}

/// Takes the result of a query that must succeed.
fn part(fails: bool, fields: &mut Fields) -> Result<Option<Part>, String> {
    if fails {
        return Ok(None);
    }
    let (dtype, shape) = (fields.required("dtype")?, fields.required("shape")?);
    Ok(Some(Part { dtype, shape, sha256: fields.required("sha256")? }))
}

fn ranks(fails: bool, fields: &mut Fields) -> Result<Op, String> {
    Ok(Op::Ranks {
        size: fields.required("tp")?,
        rules: fields.optional("rules")?.unwrap_or_else(|| Value::Array(Vec::new())),
        parts: if fails { Vec::new() } else { fields.required("parts")? },
    })
}

fn by_file(fields: &mut Fields) -> Result<Op, String> {
    match fields.required::<String>("union")?.as_str() {
        "all files once" => {}
        other => {
            return Err(format!("query by_file: the runner does not know the union {other:?}"));
        }
    }
    Ok(Op::ByFile {
        world: fields.required("world")?,
        empty_ranks: fields.required("empty_ranks")?,
    })
}
