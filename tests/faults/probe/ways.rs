//! The ways of using a model, each giving the digests of what it read.
#![expect(unsafe_code, reason = "mapping is one of the ways, and harming it is the purpose")]

use std::thread;

use modeldir::options::Populate;
use modeldir::options::{Beside, Existing};
use modeldir::{Cancel, LoadOptions, LoadPlan};
use modeldir::{ErrorKind, Rank, Result, Topology};
use modeldir::{MapOptions, ModelDir};
use modeldir::{OpenOptions, SaveOptions, Selection, TensorStore};
use serde_json::json;
use tensorfile::{TensorFile, Writer};

use crate::args::Args;
use crate::digests::Digests;
use crate::talk::Talk;

/// Uses the model in the way that the arguments name.
pub(crate) fn run(args: &Args, talk: &Talk) -> Result<Digests> {
    match args.way.as_str() {
        "file" => return file(args),
        "write" => return write(args, talk),
        _ => {}
    }
    let options = OpenOptions { threads: args.threads, ..OpenOptions::default() };
    let model = ModelDir::open_with(&args.path, &options)?;
    step(args, talk, "opened");
    let cancel = Cancel::default();
    if !args.cancel {
        return model_in(args, talk, &model, &cancel);
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            talk.wait();
            cancel.cancel();
            talk.say(&json!({"at": "cancelled"}));
        });
        model_in(args, talk, &model, &cancel)
    })
}

/// Says that a step is reached, and waits there if that is asked for.
fn step(args: &Args, talk: &Talk, at: &str) {
    talk.say(&json!({"at": at}));
    if args.steps {
        talk.wait();
    }
}

/// One file by itself: every tensor whole, and a part of each.
fn file(args: &Args) -> Result<Digests> {
    let file = TensorFile::open(&args.path)?;
    let mut digests = Digests::default();
    for name in file.names() {
        digests.add(&file.read(name)?);
        let last = file.info(name)?.shape().len().saturating_sub(1);
        let half = file.info(name)?.shape().last().map_or(0, |len| len / 2);
        let part = file.read_selection(name, &Selection::all().with_range(last, 0..half))?;
        let name = format!("{name}[..{half}]");
        digests.add_parts(&name, part.dtype(), part.shape(), part.bytes());
    }
    Ok(digests)
}

/// One file, read and written anew.
fn write(args: &Args, talk: &Talk) -> Result<Digests> {
    let file = TensorFile::open(&args.path)?;
    step(args, talk, "opened");
    let tensors = file.names().map(|name| file.read(name)).collect::<Result<Vec<_>, _>>()?;
    step(args, talk, "loaded");
    let (mut writer, mut digests) = (Writer::new(), Digests::default());
    for tensor in &tensors {
        writer.add_tensor(tensor)?;
        digests.add(tensor);
    }
    writer.save(&args.to)?;
    Ok(digests)
}

fn model_in(args: &Args, talk: &Talk, model: &ModelDir, cancel: &Cancel) -> Result<Digests> {
    let load = LoadOptions {
        threads: args.threads,
        io: args.io,
        cancel: Some(cancel.clone()),
        max_bytes_in_flight: args.max_bytes_in_flight,
        memory_check: args.memory_check,
        ..LoadOptions::default()
    };
    let plan = model.plan();
    let mut digests = Digests::of(model);
    match args.way.as_str() {
        "open" => {
            for tensor in model.tensors() {
                digests.add_parts(tensor.name(), tensor.dtype(), tensor.shape(), &[]);
            }
        }
        "load" => add(&mut digests, &plan.load_with(&load)?),
        "rank" => add(&mut digests, &of_rank(model)?.load_with(&load)?),
        "stream" => {
            plan.stream_with(&load, |tensor| {
                digests.add(&tensor);
                Ok(())
            })?;
        }
        "async" | "stream_async" => asynchronous(args, &plan, cancel, &mut digests)?,
        "map" | "populate" => {
            let at_once = args.way == "populate";
            let populate = if at_once { Populate::AtOnce } else { Populate::WhenTouched };
            let options = MapOptions { populate, threads: args.threads };
            // SAFETY: whoever harms the files of a mapping means to end this process.
            let store = unsafe { plan.map_with(&options) }?;
            step(args, talk, "mapped");
            add(&mut digests, &store);
        }
        "load_into" => into_places(&plan, &load, &mut digests)?,
        "save" => {
            let store = plan.load_with(&load)?;
            step(args, talk, "loaded");
            let options = SaveOptions {
                max_shard_bytes: args.shard_size,
                existing: Existing::Replace,
                beside: Beside::Copy,
                ..SaveOptions::default()
            };
            store.save_with(&args.to, &options)?;
            add(&mut digests, &store);
        }
        way => {
            let wrong = format!("unknown way {way:?}");
            talk.say(&json!({"at": "usage", "wrong": wrong}));
        }
    }
    Ok(digests)
}

fn add(digests: &mut Digests, store: &TensorStore) {
    for (_, tensor) in store.iter() {
        digests.add(tensor);
    }
}

/// What the first of two ranks takes.
fn of_rank(model: &ModelDir) -> Result<LoadPlan> {
    let rules = model.partition()?;
    model.plan_for(&rules, &Topology::tensor_parallel(Rank::new(0, 2)?))
}

fn asynchronous(
    args: &Args,
    plan: &LoadPlan,
    cancel: &Cancel,
    digests: &mut Digests,
) -> Result<()> {
    let no_runtime = |error: std::io::Error| {
        ErrorKind::Threads { threads: 1, message: error.to_string().into() }.at(&args.path)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(no_runtime)?;
    let options = LoadOptions {
        threads: args.threads,
        io: args.io,
        cancel: Some(cancel.clone()),
        max_bytes_in_flight: args.max_bytes_in_flight,
        ..LoadOptions::default()
    };
    runtime.block_on(async {
        if args.way == "async" {
            add(digests, &plan.load_async_with(&options).await?);
            return Ok(());
        }
        let mut tensors = plan.stream_async_with(&options);
        while let Some(tensor) = tensors.next().await {
            digests.add(&tensor?);
        }
        Ok(())
    })
}

fn into_places(plan: &LoadPlan, load: &LoadOptions, digests: &mut Digests) -> Result<()> {
    let tensors: Vec<_> = plan.tensors().collect();
    let mut places: Vec<_> = tensors.iter().map(|tensor| vec![0; tensor.byte_len()]).collect();
    let names = tensors.iter().map(|tensor| tensor.name());
    plan.load_into_with(names.zip(places.iter_mut().map(Vec::as_mut_slice)), load)?;
    for (tensor, place) in tensors.iter().zip(&places) {
        digests.add_parts(tensor.name(), tensor.dtype(), tensor.shape(), place);
    }
    Ok(())
}
