//! Options that choose the model.

use std::path::PathBuf;

use clap::Args;
use modeldir::options::{IndexPolicy, Unchanged, Weights};
use modeldir::{ModelDir, OpenOptions, Rank};

/// Options that choose the model.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModelArgs {
    /// Model directory, .safetensors file or index
    pub(crate) path: PathBuf,
    /// Open the weights of this variant, such as fp16 for model.fp16.safetensors
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Find the weights by the names of files, not by the index
    #[arg(long)]
    ignore_index: bool,
    /// Take the length of a file alone as proof that it is unchanged, for file systems whose times
    /// or inode numbers move
    #[arg(long)]
    by_length: bool,
    /// Open this weight file of the directory and no other; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with_all = ["variant", "ignore_index"])]
    file: Vec<PathBuf>,
    /// Open the files of rank R of N, in a directory that vLLM, DeepSeek's converter or TensorRT-LLM
    /// has cut for ranks
    #[arg(long, value_name = "R/N", conflicts_with_all = ["variant", "ignore_index", "file"])]
    of_rank: Option<Rank>,
}

impl ModelArgs {
    /// Whether the files to open are chosen one by one or by a rank, so that all others are left out
    /// on purpose.
    pub(crate) fn names_files(&self) -> bool {
        !self.file.is_empty() || self.of_rank.is_some()
    }

    /// Opens the model.
    ///
    /// # Errors
    ///
    /// Those of opening.
    pub(crate) fn open(&self) -> modeldir::Result<ModelDir> {
        let index = if self.ignore_index { IndexPolicy::Ignore } else { IndexPolicy::Use };
        let weights = match (&*self.file, self.of_rank) {
            (_, Some(rank)) => Weights::OfRank(rank),
            ([], None) => Weights::Named { family: None, variant: self.variant.clone(), index },
            (files, None) => Weights::Files(files.to_vec()),
        };
        let unchanged = if self.by_length { Unchanged::ByteLen } else { Unchanged::Identity };
        ModelDir::open_with(&self.path, &OpenOptions { unchanged, ..weights.into() })
    }
}
