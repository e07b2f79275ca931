//! Options that say how tensors are cut over ranks.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use modeldir::partition::{PartitionError, Uneven};
use modeldir::{Error, ErrorKind, ModelDir, Partition};

use crate::failure::Result;

/// How tensors are cut over ranks.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RuleArgs {
    /// JSON file of rules, such as {"rules": [{"match": "**.q_proj.*", "tp": "col"}]}, which come
    /// before the built-in rules of the model type
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// How to cut what the ranks cannot share evenly [default: as the rules say, or error]
    #[arg(long, value_enum)]
    uneven: Option<UnevenArg>,
}

/// [`Uneven`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum UnevenArg {
    /// Refuse, and print the numbers of ranks that share it evenly
    Error,
    /// As torch.chunk does: the last ranks get less or nothing
    Chunk,
    /// The first ranks get one unit or head more
    Balanced,
}

impl RuleArgs {
    /// The rules for a model.
    ///
    /// The rules of a file come before the built-in ones of the model type, so that a file need
    /// only state differences. A model type without built-in rules needs a file. A part that a
    /// rank has saved has the rules that cut it.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or holds no rules, a broken configuration, or no rules at all.
    pub(crate) fn partition(&self, model: &ModelDir) -> Result<Partition> {
        let own = self.rules.as_ref().map(Partition::from_file).transpose()?;
        let part = model.rank_part()?.map(|part| part.rules);
        let config = model.config();
        let mut partition = match own {
            // A saved part was cut by the rules of the file and, maybe, built-in ones.
            None if part.is_some() => part.unwrap_or_default(),
            Some(own) if part.is_some() => {
                part.filter(|part| part.rules.starts_with(&own.rules)).unwrap_or(own)
            }
            None => match config.and_then(|config| Ok(Partition::for_config(config)?)) {
                Err(error) if lacks_rules(&error) => {
                    return Err(format!("{error}; --rules FILE reads rules from a file").into());
                }
                built_in => built_in?,
            },
            Some(own) => match config.and_then(|config| Ok(own.clone().or_for_config(config)?)) {
                Err(error) if lacks_rules(&error) => own,
                both => both?,
            },
        };
        if let Some(uneven) = self.uneven {
            partition.uneven = uneven.into();
        }
        Ok(partition)
    }
}

impl From<UnevenArg> for Uneven {
    fn from(arg: UnevenArg) -> Self {
        match arg {
            UnevenArg::Error => Self::Error,
            UnevenArg::Chunk => Self::Chunk,
            UnevenArg::Balanced => Self::Balanced,
        }
    }
}

/// Whether a model has no built-in rules: for its type, or for want of a configuration.
fn lacks_rules(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NoFile { .. } | ErrorKind::Partition(PartitionError::NoRules { .. })
    )
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
