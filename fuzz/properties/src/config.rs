//! The JSON files beside the weights: whatever their text, a value or an error that names the file.

use std::cell::RefCell;

use modeldir::beside::{AdapterConfig, GenerationConfig, TokenizerFiles};
use modeldir::{Error, ModelConfig, Quantization};
use serde_json::Value;
use tempfile::TempDir;

use crate::scratch;

/// The files of a tokenizer that are written and read here.
const NAMES: [&str; 3] = ["tokenizer_config.json", "tokenizer.json", "chat_template.json"];

thread_local! {
    static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// Checks every reader of JSON on this text.
///
/// # Errors
///
/// Says what does not hold.
pub fn config(text: &[u8]) -> Result<(), String> {
    let config = ModelConfig::from_json("config.json", text);
    let generation = GenerationConfig::from_json("generation_config.json", text);
    let adapter = AdapterConfig::from_json("adapter_config.json", text);
    let quantization = Quantization::from_json("quantize_config.json", text);
    named(config.as_ref().err(), "config.json")?;
    named(generation.as_ref().err(), "generation_config.json")?;
    named(adapter.as_ref().err(), "adapter_config.json")?;
    named(quantization.as_ref().err(), "quantize_config.json")?;
    if config.is_ok() != generation.is_ok() || config.is_ok() != adapter.is_ok() {
        return Err(format!("config: {config:?}, {generation:?}, {adapter:?}"));
    }
    if let Ok(config) = &config {
        touch(config);
    }
    // What is JSON by the letter means what it says.
    if let Ok(strict @ Value::Object(_)) = serde_json::from_slice::<Value>(text) {
        match &config {
            Ok(config) if *config.raw() == strict => {}
            other => return Err(format!("strictly {strict}, tolerantly {other:?}")),
        }
    }
    tokenizer(text)
}

/// Asks for everything that a configuration can be asked for.
fn touch(config: &ModelConfig) {
    let _: (Option<&str>, Option<&str>, Option<&str>) =
        (config.model_type(), config.class_name(), config.dtype());
    let _: [usize; 3] =
        [config.bos_token_ids().len(), config.eos_token_ids().len(), config.notes().len()];
    let _: [Option<usize>; 3] =
        [config.num_hidden_layers(), config.hidden_size(), config.num_attention_heads()];
    let _: Option<f64> = config.number("/rope_theta");
    if let Some(quantization) = Quantization::from_config(config) {
        let _: usize = quantization.skipped_modules().len();
    }
    // Rules for a configuration that no family has are an error, and that is all.
    let _: bool = modeldir::Partition::for_config(config).is_ok();
}

/// Reads the text as each file of a tokenizer.
fn tokenizer(text: &[u8]) -> Result<(), String> {
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(scratch::folder).path();
        for name in NAMES {
            scratch::write(&folder.join(name), text);
        }
        let files = TokenizerFiles::find_in(folder, &NAMES);
        named(files.json().err().as_ref(), "tokenizer.json")?;
        named(files.tokenizer_config().err().as_ref(), "tokenizer_config.json")?;
        for (role, path) in files.iter() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            named(files.check(role).err().as_ref(), &name)?;
        }
        named(files.chat_templates().err().as_ref(), &folder.display().to_string())
    })
}

/// Fails if an error does not name its file, or is shown as it should not be.
fn named(error: Option<&Error>, name: &str) -> Result<(), String> {
    let Some(error) = error else { return Ok(()) };
    let shown = error.to_string();
    let is_plain = shown.len() < 8192 && !shown.chars().any(|c| c.is_control() && c != '\n');
    match shown.contains(name) && is_plain {
        true => Ok(()),
        false => Err(format!("an error about {name} is shown as {shown:?}")),
    }
}
