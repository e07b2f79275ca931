//! Options that say how tensors are cut over ranks.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use modeldir::partition::{PartitionError, Uneven};
use modeldir::{Error, ErrorKind, ModelDir, Partition};

use crate::failure::Result;

/// How tensors are cut over ranks.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RuleArgs {
    /// JSON file of rules, {"rules": [{"match": "**.q_proj.*", "tp": "col"}]}; where the model type
    /// has built-in rules they follow
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// What to do with lengths that the ranks cannot share evenly; as the rules say if absent, which
    /// is to refuse
    #[arg(long, value_enum)]
    uneven: Option<UnevenArg>,
}

/// [`Uneven`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum UnevenArg {
    /// Refuse, and say which numbers of ranks would do
    Error,
    /// As torch.chunk: the last ranks get less or nothing
    Chunk,
    /// The first ranks get one unit or head more
    Balanced,
}

impl RuleArgs {
    /// The rules for a model.
    ///
    /// The rules of a file come before the built-in ones of the model type, so that a file need
    /// only state differences. A model type without built-in rules needs a file.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or holds no rules, a broken configuration, or no rules at all.
    pub(crate) fn partition(&self, model: &ModelDir) -> Result<Partition> {
        let built_in = model.config().and_then(|config| Ok(Partition::for_config(config)?));
        let is_absence = |error: &Error| matches!(error.kind(), ErrorKind::NoFile { .. });
        let has_none = |error: &Error| {
            let no_rules =
                matches!(error.kind(), ErrorKind::Partition(PartitionError::NoRules { .. }));
            no_rules || is_absence(error)
        };
        let mut partition = match (&self.rules, built_in) {
            (None, Err(error)) if is_absence(&error) => {
                return Err(format!("{error}; rules can be given with --rules FILE").into());
            }
            (None, built_in) => built_in?,
            (Some(path), Ok(built_in)) => Partition::from_file(path)?.or(built_in),
            (Some(path), Err(error)) if has_none(&error) => Partition::from_file(path)?,
            (Some(_), Err(error)) => return Err(error.into()),
        };
        match self.uneven {
            None => {}
            Some(UnevenArg::Error) => partition.uneven = Uneven::Error,
            Some(UnevenArg::Chunk) => partition.uneven = Uneven::Chunk,
            Some(UnevenArg::Balanced) => partition.uneven = Uneven::Balanced,
        }
        Ok(partition)
    }
}

#[cfg(test)]
mod tests {
    use super::RuleArgs;
    use modeldir::partition::{Uneven, Unmatched};
    use modeldir::{ModelDir, Partition};

    fn partition(model: &str, rules: &str) -> Partition {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), rules).unwrap();
        let args = RuleArgs { rules: Some(file.path().into()), uneven: None };
        args.partition(&ModelDir::open(modeldir_fixtures::model(model)).unwrap()).unwrap()
    }

    #[test]
    fn built_in_rules_follow_those_of_the_file() {
        let rules =
            r#"{"rules": [{"match": "lm_head.*"}], "uneven": "chunk", "unmatched": "error"}"#;
        let own: Partition = serde_json::from_str(rules).unwrap();
        assert_eq!(partition("bert", rules), own);

        let llama = ModelDir::open(modeldir_fixtures::model("llama")).unwrap();
        let built_in = Partition::for_config(llama.config().unwrap()).unwrap();
        let found = partition("llama", rules);
        assert_eq!(found.rules, [own.rules, built_in.rules].concat());
        assert_eq!(
            (found.uneven, found.unmatched, found.num_layers),
            (Uneven::Chunk, Unmatched::Error, Some(3))
        );
    }
}
