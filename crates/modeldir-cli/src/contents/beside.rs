//! A table of the configuration and the tokenizer files of a model.

use modeldir::{ErrorKind, ModelDir};
use tensorfile::PathText;

use crate::output::{Align, Table, shown};

/// Returns the main numbers of the configuration, and the file for each role of the tokenizer.
///
/// A broken file has its error as value; the other rows stay.
pub(crate) fn beside_the_weights(model: &ModelDir) -> Table<2> {
    let mut table = Table::new([("beside the weights", Align::Left), ("", Align::Left)]);
    let mut row = |key: &str, value: String| table.row([key.to_owned(), value]);
    match model.config() {
        Ok(config) => {
            let architectures = config.architectures().join(", ");
            row("architecture", stated(Some(architectures).filter(|names| !names.is_empty())));
            for (key, size) in [
                ("layers", config.num_hidden_layers()),
                ("hidden size", config.hidden_size()),
                ("heads", config.num_attention_heads()),
                ("key-value heads", config.num_key_value_heads()),
                ("vocabulary", config.vocab_size()),
                ("context", config.max_position_embeddings()),
            ] {
                row(key, stated(size.map(|size| size.to_string())));
            }
        }
        Err(error) if matches!(error.kind(), ErrorKind::NoFile { .. }) => {
            row("configuration", "none".into());
        }
        Err(error) => row("configuration", error.to_string()),
    }
    match model.quantization() {
        Ok(None) => row("quantization", "none".into()),
        Ok(Some(found)) => row("quantization", stated(found.method().map(str::to_owned))),
        Err(error) => row("quantization", error.to_string()),
    }
    for (role, path) in model.tokenizer().iter() {
        let path = path.strip_prefix(model.path()).unwrap_or(path);
        row(&role.to_string(), PathText(path).to_string());
    }
    table
}

fn stated(value: Option<String>) -> String {
    value.map_or_else(|| "not stated".to_owned(), |value| shown(&value))
}
