//! A small model directory, right or wrong: everything that was written, or an error that names a file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

use arbitrary::{Result, Unstructured};
use modeldir::{Error, LoadOptions, ModelDir, OpenOptions};
use tempfile::TempDir;

use crate::scratch;

const NAMES: [&str; 8] = ["a", "b", "c", "lm_head.weight", "embed", "\u{e9}", "", "a.b/c\u{1b}"];
const DTYPES: [(&str, usize); 4] = [("U8", 1), ("F16", 2), ("F32", 4), ("I64", 8)];
const FILES: [&str; 8] = [
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
    "model.safetensors",
    "sub/model.safetensors",
    "model.fp16.safetensors",
    "consolidated.safetensors",
    "._model.safetensors",
    "model-00002-of-00002.safetensors.incomplete",
];
const OTHERS: [&str; 7] = [
    "config.json",
    "model.safetensors.index.json",
    "model.safetensors.index.fp16.json",
    "generation_config.json",
    "tokenizer_config.json",
    "params.json",
    "pytorch_model.bin",
];
const PATHS: [&str; 4] =
    ["../model.safetensors", "gone.safetensors", "model.bin", "./model.safetensors"];

thread_local! {
    static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// Everything that was written under a tensor's name.
type Written = BTreeMap<String, Vec<Vec<u8>>>;

/// Checks the directory that some bytes describe.
///
/// # Errors
///
/// Says what does not hold.
pub fn directory(data: &[u8]) -> Result<(), String> {
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(scratch::folder).path();
        scratch::clear(folder);
        std::fs::create_dir(folder.join("sub")).map_err(|error| error.to_string())?;
        let mut written = Written::new();
        // Where the bytes end, the directory is what they have said so far.
        let _: Result<()> = write(folder, &mut Unstructured::new(data), &mut written);
        check(folder, &written)
    })
}

/// Writes files with tensors, an index that maps some of them, and other files.
fn write(folder: &Path, input: &mut Unstructured<'_>, written: &mut Written) -> Result<()> {
    let mut map = Vec::new();
    for _ in 0..input.int_in_range(0..=4)? {
        let path = *input.choose(&FILES)?;
        let bytes = shard(path, input, written, &mut map)?;
        scratch::write(&folder.join(path), &bytes);
    }
    if input.ratio(3, 4)? {
        if input.ratio(1, 4)? {
            map.push((*input.choose(&NAMES)?, *input.choose(&PATHS)?));
        }
        if input.ratio(1, 4)? && !map.is_empty() {
            let at = input.choose_index(map.len())?;
            map.remove(at);
        }
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let rows: Vec<_> =
            map.iter().map(|(name, path)| format!("{}:{}", quoted(name), quoted(path))).collect();
        let index = format!(r#"{{"metadata":{{}},"weight_map":{{{}}}}}"#, rows.join(","));
        scratch::write(&folder.join("model.safetensors.index.json"), index.as_bytes());
    }
    for _ in 0..input.int_in_range(0..=3)? {
        let path = *input.choose(&OTHERS)?;
        let len = input.int_in_range(0..=200)?;
        let len = len.min(input.len());
        scratch::write(&folder.join(path), input.bytes(len)?);
    }
    Ok(())
}

/// Makes one file, whole or with a fault.
fn shard(
    path: &'static str,
    input: &mut Unstructured<'_>,
    written: &mut Written,
    map: &mut Vec<(&'static str, &'static str)>,
) -> Result<Vec<u8>> {
    let (mut members, mut data) = (Vec::new(), Vec::new());
    for _ in 0..input.int_in_range(0..=4)? {
        let name = *input.choose(&NAMES)?;
        let (dtype, size) = *input.choose(&DTYPES)?;
        let shape: [usize; 2] = [input.int_in_range(0..=9)?, input.int_in_range(0..=9)?];
        let fill: u8 = input.arbitrary()?;
        let len = shape[0] * shape[1] * size;
        let bytes: Vec<u8> = (0..len).map(|at| fill.wrapping_add(at.to_le_bytes()[0])).collect();
        let begin = data.len();
        data.extend_from_slice(&bytes);
        let key = serde_json::Value::from(name);
        let end = data.len();
        members.push(format!(
            r#"{key}:{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{begin},{end}]}}"#
        ));
        written.entry(name.to_owned()).or_default().push(bytes);
        map.push((name, path));
    }
    let json = format!("{{{}}}", members.join(","));
    let len = u64::try_from(json.len()).unwrap_or_default();
    let mut bytes = [&len.to_le_bytes(), json.as_bytes(), &data].concat();
    match input.int_in_range(0..=9_u8)? {
        0 => bytes.truncate(input.int_in_range(0..=bytes.len())?),
        1 => bytes.push(input.arbitrary()?),
        2 => {
            // The header only: other data could not be told from what was written.
            let at = input.int_in_range(0..=7 + json.len())?;
            bytes[at] = input.arbitrary()?;
        }
        _ => {}
    }
    Ok(bytes)
}

/// Opens, plans and loads, and compares what comes with what was written.
fn check(folder: &Path, written: &Written) -> Result<(), String> {
    let options = OpenOptions { threads: Some(NonZeroUsize::MIN), ..OpenOptions::default() };
    let model = match ModelDir::open_with(folder, &options) {
        Ok(model) => model,
        Err(error) => return named(&error, folder),
    };
    // The files beside the weights stop nothing but the call for them.
    for error in [
        model.config().err(),
        model.generation_config().err(),
        model.adapter_config().err(),
        model.quantization().err(),
        model.tokenizer().tokenizer_config().err(),
    ] {
        error.map_or(Ok(()), |error| named(&error, folder))?;
    }
    let load = LoadOptions { threads: Some(NonZeroUsize::MIN), ..LoadOptions::default() };
    let store = model.plan().load_with(&load).map_err(|error| format!("loading: {error}"))?;
    if !store.names().eq(model.names()) {
        return Err("the store holds other names than the model".to_owned());
    }
    for (name, tensor) in store.iter() {
        // A byte of the header that was changed may have changed the name or the shape, not the data.
        let of_name = written.get(name);
        let same = |bytes: &Vec<u8>| bytes == tensor.bytes();
        let anywhere = || written.values().flatten().any(|bytes| bytes == tensor.bytes());
        if !of_name.is_some_and(|all| all.iter().any(same))
            && !anywhere()
            && !is_ramp(tensor.bytes())
        {
            return Err(format!("{name:?}: {:?} was never written", tensor.bytes()));
        }
    }
    Ok(())
}

/// Whether bytes go up as those of a tensor do: a part of one, where a header was changed.
fn is_ramp(bytes: &[u8]) -> bool {
    bytes.windows(2).filter(|pair| pair[1] != pair[0].wrapping_add(1)).count() <= 8
}

/// Fails unless an error names a path in the folder and is shown as text.
fn named(error: &Error, folder: &Path) -> Result<(), String> {
    let shown = error.to_string();
    let is_plain = !shown.chars().any(|c| c.is_control() && c != '\n');
    match shown.contains(&*folder.to_string_lossy()) && is_plain {
        true => Ok(()),
        false => Err(format!("an error is shown as {shown:?}")),
    }
}
