//! Opens, plans and loads Hugging Face model directories.
//!
//! [`ModelDir`] is the principal type: it resolves a path to weight files, reads their headers,
//! joins them with the index and says what is wrong or odd. From it come a [`LoadPlan`], which is
//! the list of reads, and from the plan a [`TensorStore`], which holds the tensors by name.
//! [`how_to`] has a short example for each common task.
//!
//! ```
//! use modeldir::ModelDir;
//! use modeldir::half::bf16;
//!
//! # let path = modeldir_fixtures::model("llama");
//! let model = ModelDir::open(path)?;
//! assert_eq!(model.shards().len(), 4);
//!
//! let store = model.load()?;
//! let norm: &[bf16] = store.get("model.norm.weight")?.as_slice()?;
//! assert_eq!(norm.len(), 64);
//!
//! assert_eq!(model.config()?.num_hidden_layers(), Some(3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | step | reads | fails for |
//! | --- | --- | --- |
//! | [`ModelDir::open`] | JSON files and headers | anything that they can show: missing, short or damaged shards, all listed |
//! | [`ModelDir::plan`] | nothing | nothing |
//! | [`ModelDir::plan_for`] | nothing | rules, ranks and tensors that do not go together |
//! | [`LoadPlan::cast`] | nothing: the floats of the plan will be converted as they are read | nothing |
//! | [`LoadPlan::load`] | the plan's requests, in parallel | a file that cannot be read or has changed |
//! | [`LoadPlan::stream`] | the same, window by window in bounded memory | the same |
//! | [`LoadPlan::load_into`] | the same, into memory of the caller's | the same, and memory that does not fit |
//! | [`LoadPlan::map`] | nothing; pages arrive when touched | a file that cannot be mapped or has changed, a plan with a cast |
//! | [`TensorStore::save`] | nothing; writes files | a file that cannot be written, or weights that are there |
//! | [`ModelDir::config`], [`ModelDir::quantization`] | nothing: opening has read them | the file being absent or broken when it was read |
//! | [`ModelDir::generation_config`], [`ModelDir::tokenizer`] and their files | one JSON file | that file being broken |
//!
//! # Promises
//!
//! - The index decides which shard a tensor comes from. Where two candidates remain there is an
//!   error that names both, never a choice.
//! - No content of a directory makes this crate panic, or allocate by a length that was not
//!   checked against the file's real size.
//! - The safe ways of loading hand out no byte that was not read: a file that shrinks, or that
//!   length and times show to have changed since it was opened, is an error. A write that is under
//!   way while the file is opened can escape this.
//! - Results depend neither on the order of files and keys nor on thread timing.
//!
//! # Memory and time
//!
//! Opening allocates a small multiple of the header bytes. Loading allocates the bytes selected
//! and what aligns them, one region a shard, given back when the last tensor of the shard is
//! dropped. What is in the page cache is copied from there; what is not is read past it, and leaves
//! the cache as it was. Each thread of a load has up to 8 MiB more of its own.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod accessors;
mod adapter;
mod alias;
mod as_text;
mod chat_template;
mod config;
mod dir;
mod error;
mod file_role;
mod generation;
pub mod how_to;
pub mod hub;
mod index;
mod index_text;
mod io_error;
mod join;
mod json;
pub mod launch;
mod layout;
mod load;
#[cfg(feature = "tokio")]
mod load_async;
mod map;
mod natural;
mod options;
pub mod partition;
mod plan;
mod quantization;
mod rank;
mod report;
mod request;
mod resolve;
mod save;
mod shard_path;
mod similar;
mod store;
mod threads;
mod tokenizer;
mod transform;
mod versions;
mod weight_map;

pub use adapter::AdapterConfig;
pub use alias::{Alias, AliasRule};
pub use chat_template::ChatTemplate;
pub use config::ModelConfig;
pub use dir::ModelDir;
pub use error::{Error, ErrorKind, Fault, MissingCause, Result};
pub use file_role::FileRole;
pub use generation::GenerationConfig;
pub use index::{IndexedTensor, Shard};
pub use json::JsonError;
pub use load::{Cancel, Io, LoadOptions, LoadStats, Memory, MemoryCheck, MemoryLimit, Progress};
#[cfg(feature = "tokio")]
pub use load_async::TensorStream;
pub use map::{MapOptions, Populate};
pub use options::{Family, IndexPolicy, MissingShards, OpenOptions, Unindexed, Weights};
pub use partition::{Partition, Topology};
pub use plan::{LoadPlan, PlannedTensor};
pub use quantization::Quantization;
pub use rank::Rank;
pub use report::{Report, StrayTensor, TotalSize};
pub use request::Request;
pub use resolve::{IgnoreReason, IgnoredFile};
pub use save::{Beside, Existing, SaveOptions, Saved};
pub use store::TensorStore;
pub use tokenizer::TokenizerFiles;
pub use transform::Transform;

pub use serde_json;
pub use tensorfile;
/// The types of one file that appear here, so that one dependency is enough.
pub use tensorfile::{
    Dtype, Float, FloatCast, HeaderOptions, Limit, LimitOn, Read, Row, Rows, Selection, Tensor,
    TensorView, TrailingBytes, half,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
