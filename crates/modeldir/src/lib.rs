//! Opens, plans and loads Hugging Face model directories.
//!
//! [`ModelDir`] is the principal type: it resolves a path to weight files, reads their headers,
//! joins them with the index and reports what is wrong or odd. It makes a [`LoadPlan`], the list of
//! reads. Loading the plan returns a [`TensorStore`], which holds the tensors by name.
//! [`how_to`] has a short example for each common task.
//!
//! ```
//! use modeldir::ModelDir;
//! use modeldir::half::bf16;
//!
//! # let path = modeldir_fixtures::model("llama");
//! let model = ModelDir::open(path)?; // JSON and headers only
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
//! | [`ModelDir::open`] | JSON files and headers | missing, short or damaged shards, all listed in one error |
//! | [`ModelDir::plan`] | nothing | nothing |
//! | [`ModelDir::plan_for`] | nothing | rules that do not fit the tensors or the ranks |
//! | [`LoadPlan::cast`] | nothing; loading converts the floats of the plan | nothing |
//! | [`LoadPlan::load`] | the plan's requests, in parallel | a file that cannot be read or has changed |
//! | [`LoadPlan::stream`] | the same, window by window in bounded memory | the same |
//! | [`LoadPlan::load_into`] | the same, into memory of the caller | the same, and memory of the wrong length |
//! | [`LoadPlan::map`] | nothing; pages arrive when touched | a file that cannot be mapped or has changed, a plan with a cast |
//! | [`TensorStore::save`] | nothing; writes files | a file that cannot be written, weights that already exist |
//! | [`ModelDir::config`], [`ModelDir::quantization`] | nothing; opening reads the files | a file that was absent or broken |
//! | [`ModelDir::generation_config`], [`ModelDir::tokenizer`] and their files | one JSON file | a broken file |
//!
//! `load`, `stream`, `load_into`, `map` and `save` each have a form with options: `load_with`,
//! `stream_with`, `load_into_with`, `map_with`, `save_with`. All ways of loading share
//! [`LoadOptions`]; mapping has [`MapOptions`], and saving [`SaveOptions`].
//!
//! # Promises
//!
//! - The index decides which shard a tensor comes from. If two candidates remain, the result is an
//!   error that names both.
//! - No content of a directory makes this crate panic, or allocate by a length that was not
//!   checked against the size of the file.
//! - The safe ways of loading return only bytes that were read from the files. A file that shrinks,
//!   or whose length or times change after it was opened, is an error. A write that is in progress
//!   while the file is opened can go unnoticed.
//! - Results depend neither on the order of files and keys nor on thread timing.
//!
//! # Memory and time
//!
//! Opening allocates a small multiple of the header bytes. Loading allocates the selected bytes and
//! some padding, in one region per shard, freed when the last tensor of the shard is dropped. Bytes
//! in the page cache are copied from there; other bytes bypass the cache and leave it unchanged.
//! Each thread of a load has up to 8 MiB of buffers.
#![cfg_attr(docsrs, feature(doc_cfg))]

// The directory: opening, and the report.
mod dir;
pub mod how_to;
pub mod hub;
mod open_options;
pub mod options;
pub mod report;
mod resolve;

// The weights, and the files beside them.
pub mod beside;
mod json;
mod weights;

// The plan: tensors, their parts, and reads.
pub mod launch;
pub mod partition;
pub mod plan;
mod rank;
mod rank_part;

// Loading tensors, and saving them.
mod load;
#[cfg(feature = "tokio")]
mod load_async;
mod map;
mod save;
mod store;
mod threads;

// Errors.
mod as_text;
pub mod error;
mod formats;
mod io_error;
mod similar;

pub use beside::config::ModelConfig;
pub use beside::quantization::Quantization;
pub use dir::ModelDir;
#[doc(inline)]
pub use error::{Error, ErrorKind, Result};
pub use load::{Cancel, LoadOptions, LoadStats, Memory, Progress};
#[cfg(feature = "tokio")]
pub use load_async::TensorStream;
pub use map::MapOptions;
pub use open_options::OpenOptions;
#[doc(inline)]
pub use partition::{Partition, Topology};
#[doc(inline)]
pub use plan::LoadPlan;
pub use rank::Rank;
#[doc(inline)]
pub use report::Report;
pub use save::{SaveOptions, Saved};
pub use store::TensorStore;
pub use weights::index::{IndexedTensor, Shard};

pub use serde_json;
pub use tensorfile;
/// The types of [`tensorfile`] that most programs need, so that one dependency is enough.
pub use tensorfile::{Dtype, Float, Selection, Tensor, half};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
