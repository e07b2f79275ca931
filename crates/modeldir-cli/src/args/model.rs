//! Options that choose the model.

use std::path::PathBuf;

use clap::Args;
use modeldir::ModelDir;
use modeldir::options::Weights;

/// Options that choose the model.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModelArgs {
    /// Model directory, .safetensors file or index
    pub(crate) path: PathBuf,
    /// Open the weights of this variant, such as fp16 for model.fp16.safetensors
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
}

impl ModelArgs {
    /// Opens the model.
    ///
    /// # Errors
    ///
    /// Those of opening.
    pub(crate) fn open(&self) -> modeldir::Result<ModelDir> {
        let weights = self.variant.as_ref().map_or_else(Weights::default, Weights::variant);
        ModelDir::open_with(&self.path, &weights.into())
    }
}
