//! How to do common tasks, each in a few lines.
//!
//! `path` is the path of a model directory, one weight file or an index;
//! [`hub::snapshot`](crate::hub::snapshot) finds directories that Python tools have downloaded. The
//! examples are the body of a function that returns [`Result`](crate::Result), or
//! `Result<(), Box<dyn Error>>` where other errors occur too.
//!
//! - [Load a model](#load-a-model)
//! - [Load a part of it](#load-a-part-of-it)
//! - [Convert and save](#convert-and-save)
//! - [Load what a rank needs](#load-what-a-rank-needs)
//! - [Stream to a device](#stream-to-a-device)
//! - [Load from async code](#load-from-async-code)
//! - [Fill memory of your own](#fill-memory-of-your-own)
//! - [Load one adapter](#load-one-adapter)
//! - [List tensors as JSON](#list-tensors-as-json)
//! - [Show progress and cancel](#show-progress-and-cancel)
//! - [Handle errors](#handle-errors)
//!
//! # Load a model
//!
//! When [`load`](crate::ModelDir::load) returns, every byte is in memory.
//! [`as_slice`](crate::Tensor::as_slice) borrows the elements of a tensor, and
//! [`to_f32`](crate::Tensor::to_f32) converts them.
//!
//! ```
//! use modeldir::ModelDir;
//! use modeldir::half::bf16;
//!
//! # let path = modeldir_fixtures::model("llama");
//! let model = ModelDir::open(path)?;
//! let store = model.load()?;
//! for (name, tensor) in &store {
//!     println!("{name}: {} {:?}", tensor.dtype(), tensor.shape());
//! }
//! let norm: &[bf16] = store.get("model.norm.weight")?.as_slice()?;
//! let floats: Vec<f32> = store.get("lm_head.weight")?.to_f32()?;
//! println!("{:?} layers", model.config()?.num_hidden_layers());
//! # assert_eq!((norm.len(), floats.len()), (64, 320 * 64));
//! # Ok::<(), modeldir::Error>(())
//! ```
//!
//! # Load a part of it
//!
//! A [plan](crate::LoadPlan) chooses tensors, and parts of tensors, before anything is read.
//! [`parts`](crate::LoadPlan::parts) cuts a plan into smaller ones, for a model larger than memory.
//!
//! ```
//! use modeldir::{ModelDir, Selection};
//!
//! # let path = modeldir_fixtures::model("llama");
//! let model = ModelDir::open(path)?;
//! let layer = model.plan().filter(|tensor| tensor.name().starts_with("model.layers.0."));
//! println!("{layer}"); // tensors, bytes and reads by shard
//! let store = layer.load()?;
//! # assert_eq!(store.len(), 9);
//!
//! let rows = Selection::all().with_range(0, 10..20);
//! let some = model.read_selection("model.embed_tokens.weight", &rows)?;
//! # assert_eq!(some.shape(), [10, 64]);
//!
//! for part in model.plan().parts(100_000) {
//!     let store = part.load()?; // at most 100,000 bytes of tensors, or one larger tensor
//!     # assert!(store.byte_len() <= 100_000);
//! }
//! # Ok::<(), modeldir::Error>(())
//! ```
//!
//! # Convert and save
//!
//! Floats are converted while they are read. [`Beside::Copy`](crate::options::Beside::Copy) copies
//! configuration and tokenizer, and sets the new float type in `config.json`.
//!
//! ```
//! use modeldir::options::Beside;
//! use modeldir::{Float, ModelDir, SaveOptions};
//!
//! # let path = modeldir_fixtures::model("llama");
//! # let folder = tempfile::tempdir()?;
//! # let to = folder.path();
//! let options = SaveOptions { beside: Beside::Copy, ..Default::default() };
//! ModelDir::open(path)?.plan().cast(Float::F16).load()?.save_with(to, &options)?;
//! # assert_eq!(ModelDir::open(to)?.config()?.dtype(), Some("float16"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Load what a rank needs
//!
//! Every process of a job opens the same directory and reads its own part of each tensor.
//!
//! ```no_run
//! use modeldir::{ModelDir, Topology, launch};
//!
//! # let path = "Llama-3.1-70B";
//! let rank = launch::rank_from_env()?.expect("started by mpirun, torchrun or srun");
//! let model = ModelDir::open(path)?;
//! let plan = model.plan_for(&model.partition()?, &Topology::tensor_parallel(rank))?;
//! let store = plan.load()?;
//! # Ok::<(), modeldir::Error>(())
//! ```
//!
//! You can write all rules yourself, or add built-in ones to yours with
//! [`or_for_config`](crate::Partition::or_for_config):
//!
//! ```
//! use modeldir::{ModelDir, Partition, Rank, Topology};
//!
//! # let path = modeldir_fixtures::model("llama");
//! let model = ModelDir::open(path)?;
//! let rules = br#"{"rules": [
//!     {"match": "**.(q|k|v|gate|up)_proj.weight", "tp": "col"},
//!     {"match": "**.(o|down)_proj.weight", "tp": "row"},
//!     {"match": "**.(lm_head|embed_tokens).weight", "tp": "vocab"}
//! ]}"#;
//! let rules = Partition::from_json(rules)?;
//! let plan = model.plan_for(&rules, &Topology::tensor_parallel(Rank::new(1, 4)?))?;
//! println!("{} of {} bytes", plan.bytes_selected(), model.byte_len());
//! # assert_eq!(plan.get("lm_head.weight")?.shape(), [80, 64]);
//! # Ok::<(), modeldir::Error>(())
//! ```
//!
//! # Stream to a device
//!
//! Tensors arrive in file order while the next ones are read, in memory of at most
//! [`max_bytes_in_flight`](crate::LoadOptions::max_bytes_in_flight).
//!
//! ```
//! use modeldir::{Float, ModelDir};
//!
//! # let path = modeldir_fixtures::model("llama");
//! # let mut device = 0;
//! # let mut upload = |_name: &str, bytes: &[u8]| device += bytes.len();
//! let plan = ModelDir::open(path)?.plan().cast(Float::BF16);
//! plan.stream(|tensor| {
//!     upload(tensor.name(), tensor.bytes());
//!     Ok(())
//! })?;
//! # assert_eq!(device as u64, plan.bytes_selected());
//! # Ok::<(), modeldir::Error>(())
//! ```
//!
//! [`try_stream`](crate::LoadPlan::try_stream) accepts a function with another error type.
//!
//! # Load from async code
//!
//! Enable the feature `tokio`. The load runs on blocking threads of the runtime; dropping the
//! future or the stream ends it.
//!
#![cfg_attr(feature = "tokio", doc = "```")]
#![cfg_attr(not(feature = "tokio"), doc = "```ignore")]
//! # use modeldir::ModelDir;
//! # let path = modeldir_fixtures::model("llama");
//! # let plan = ModelDir::open(path)?.plan();
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let store = plan.load_async().await?;
//! # assert_eq!(store.byte_len(), plan.bytes_selected());
//!
//! let mut tensors = plan.stream_async();
//! while let Some(tensor) = tensors.try_next().await? {
//!     println!("{}: {} bytes", tensor.name(), tensor.byte_len());
//! }
//! # Ok::<(), modeldir::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Fill memory of your own
//!
//! Loading can fill pinned pages, shared memory or the storage of a framework in place. The plan
//! has the number of bytes that each tensor needs.
//!
//! ```
//! use modeldir::ModelDir;
//!
//! # let path = modeldir_fixtures::model("llama");
//! let plan = ModelDir::open(path)?.plan();
//! let mut memory: Vec<_> =
//!     plan.planned().map(|tensor| (tensor.name(), vec![0; tensor.byte_len()])).collect();
//! plan.load_into(memory.iter_mut().map(|(name, place)| (*name, &mut place[..])))?;
//! # assert!(memory[0].1.iter().any(|byte| *byte != 0));
//! # Ok::<(), modeldir::Error>(())
//! ```
//!
//! # Load one adapter
//!
//! An adapter may lie beside the weights of its model; [`Weights`](crate::options::Weights) chooses
//! it.
//!
//! ```
//! use modeldir::ModelDir;
//! use modeldir::options::{Family, Weights};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path();
//! # let tensor = modeldir_fixtures::Tensor::new("q.lora_A.weight", "F32", &[4, 8], vec![0; 128]);
//! # let file = modeldir_fixtures::file(&[tensor]);
//! # std::fs::write(path.join("adapter_model.safetensors"), file)?;
//! # std::fs::write(path.join("adapter_config.json"), r#"{"r": 4, "lora_alpha": 8}"#)?;
//! let adapter = ModelDir::open_with(path, &Weights::family(Family::Adapter).into())?;
//! let store = adapter.load()?;
//! if let Some(config) = adapter.adapter_config()? {
//!     println!("rank {:?} for {:?}", config.r(), config.target_modules());
//! }
//! # assert_eq!(store.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # List tensors as JSON
//!
//! ```
//! use modeldir::{ModelDir, serde_json};
//!
//! # let path = modeldir_fixtures::model("llama");
//! let model = ModelDir::open(path)?;
//! let tensors: Vec<_> = model.tensors().collect();
//! println!("{}", serde_json::to_string_pretty(&tensors)?);
//! # assert_eq!(serde_json::to_value(&tensors)?[0]["name"], "lm_head.weight");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Show progress and cancel
//!
//! One [`LoadOptions`](crate::LoadOptions) serves every way of loading.
//!
//! ```
//! use std::sync::Arc;
//!
//! use modeldir::{Cancel, LoadOptions, ModelDir, Progress};
//!
//! # let path = modeldir_fixtures::model("llama");
//! let cancel = Cancel::default(); // cancel.cancel() ends the load, from any thread
//! let show = |progress: Progress| {
//!     println!("{} of {} bytes", progress.bytes_done, progress.bytes_total);
//! };
//! let options = LoadOptions {
//!     progress: Some(Arc::new(show)),
//!     cancel: Some(cancel.clone()),
//!     ..Default::default()
//! };
//! let store = ModelDir::open(path)?.plan().load_with(&options)?;
//! println!("{:?}", store.stats());
//! # Ok::<(), modeldir::Error>(())
//! ```
//!
//! # Handle errors
//!
//! An [`Error`](crate::Error) has the path and the tensor concerned, and a
//! [kind](crate::ErrorKind). One error lists all faults of a directory.
//!
//! ```
//! use modeldir::{ErrorKind, ModelDir};
//!
//! # let path = "no/such/model";
//! match ModelDir::open(path) {
//!     Ok(model) => println!("{}", model.report()), // what was ignored or odd
//!     Err(error) => {
//!         eprintln!("{error}");
//!         if let ErrorKind::Incomplete { faults, .. } = error.kind() {
//!             eprintln!("{} faults, each with its shard", faults.len());
//!         }
//!     }
//! }
//! ```
