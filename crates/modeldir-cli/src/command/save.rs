//! `modeldir save`: writes a model again, in other shards, in another float type, with fewer
//! tensors, or as the parts of ranks.

mod float;
mod saved;
mod size;

use std::path::{Path, PathBuf};

use clap::ArgGroup;
use modeldir::options::Beside;
use modeldir::{Float, LoadPlan, ModelDir, Rank, SaveOptions};

use crate::args::{JobArgs, ModelArgs, NameArgs, RuleArgs};
use crate::failure::{Failure, Result};
use crate::output::{Output, print_json};
use crate::progress::load;
use crate::write::{compare, existing, is_weight_file, may_write, rank_dir, write_file};

use float::parse_float;
use saved::SavedModel;
use size::Size;

const EXAMPLES: &str = "\
Examples:
  modeldir save Llama-3.1-8B small --max-shard-bytes 2GB
  modeldir save Llama-3.1-8B bf16 --cast bf16 --verify
  modeldir save Llama-3.1-8B ranks --tp 4
  modeldir save Llama-3.1-8B last --tp 4 --rank 3/4
  modeldir save Llama-3.1-8B layer.safetensors --only 'model.layers.0.**'";

/// Write a model again: in other shards, in another float type, with fewer tensors, or by rank
///
/// Copies configuration and tokenizer; after --cast, the copied configuration names the new type.
/// With --tp, --pp, --ep or --rank, the part of each rank goes to a directory TO/rank-R-of-N. All
/// tensors of one directory are in memory together. A directory gets all its weights or none.
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    group(ArgGroup::new("cut").args(["rules", "uneven"]).multiple(true).requires("ranks")),
    group(ArgGroup::new("ranks").args(["tp", "pp", "ep", "rank"]).multiple(true)),
)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Directory to write to, or one .safetensors file
    to: PathBuf,
    /// Maximum bytes of tensors in a file, such as 500MB or 2GiB [default: 5GB]
    #[arg(long, value_name = "SIZE")]
    max_shard_bytes: Option<Size>,
    /// Convert tensors of F16, BF16 and F32 to this type: f16, bf16 or f32
    #[arg(long, value_name = "DTYPE", value_parser = parse_float)]
    cast: Option<Float>,
    #[command(flatten)]
    names: NameArgs,
    #[command(flatten)]
    job: JobArgs,
    /// Save only the part of rank R of N, counted from 0
    #[arg(long, value_name = "R/N")]
    rank: Option<Rank>,
    #[command(flatten)]
    rules: RuleArgs,
    /// Replace the file, or the weights of the directory and the files beside them
    #[arg(long)]
    replace: bool,
    /// Copy neither configuration nor tokenizer
    #[arg(long)]
    weights_only: bool,
    /// Read back what was written, and compare it
    #[arg(long)]
    verify: bool,
    /// Print a JSON list with an object for each directory or file instead of lines
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(&self, out: &mut Output) -> Result {
        let model = self.model.open()?;
        self.names.choose(&model.plan())?;
        let saved = if is_weight_file(&self.to) {
            vec![self.save_file(&model)?]
        } else {
            self.save_dirs(&model)?
        };
        Ok(if self.json {
            print_json(&saved.iter().map(SavedModel::json).collect(), out)
        } else {
            saved.iter().try_for_each(|saved| saved.print(out))
        }?)
    }

    /// The chosen ranks, or the whole model.
    fn save_dirs(&self, model: &ModelDir) -> Result<Vec<SavedModel>> {
        let size = self.rank.map_or(1, Rank::size);
        if self.rank.is_none() && !self.job.is_given() {
            return Ok(vec![self.save_dir(&model.plan(), &self.to)?]);
        }
        let partition = self.rules.partition(model)?;
        let ranks = self.job.or_tp(size).ranks()?;
        let chosen = match self.rank {
            None => 0..ranks.len(),
            Some(rank) => {
                self.job.or_tp(size).rank(rank)?;
                rank.rank()..rank.rank() + 1
            }
        };
        let mut saved = Vec::with_capacity(chosen.len());
        for rank in chosen {
            let plan = model.plan_for(&partition, &ranks[rank])?;
            let folder = rank_dir(&self.to, Rank::new(rank, ranks.len())?);
            saved.push(self.save_dir(&plan, &folder)?);
        }
        Ok(saved)
    }

    fn save_dir(&self, plan: &LoadPlan, dir: &Path) -> Result<SavedModel> {
        let store = load(&self.choose(plan), None)?;
        let existing = existing(self.replace);
        let beside = if self.weights_only { Beside::Leave } else { Beside::Copy };
        let mut options = SaveOptions { existing, beside, ..SaveOptions::default() };
        options.max_shard_bytes =
            self.max_shard_bytes.map_or(options.max_shard_bytes, |size| size.0);
        let saved = store.save_with(dir, &options)?;
        if self.verify {
            compare(&store, dir)?;
        }
        let files = saved.shards.into_iter().chain(saved.index).chain(saved.beside).collect();
        Ok(SavedModel::new(dir, &store, files, self.verify))
    }

    fn save_file(&self, model: &ModelDir) -> Result<SavedModel> {
        if self.job.is_given() || self.rank.is_some() || self.max_shard_bytes.is_some() {
            let message = "one file holds no shards and no ranks: give a directory, or leave out \
                           --max-shard-bytes, --tp, --pp, --ep and --rank";
            return Err(Failure::Usage(message.to_owned()));
        }
        may_write(&self.to, existing(self.replace))?;
        let store = load(&self.choose(&model.plan()), None)?;
        write_file(store.iter().map(|(_, tensor)| tensor), &self.to)?;
        if self.verify {
            compare(&store, &self.to)?;
        }
        Ok(SavedModel::new(&self.to, &store, vec![self.to.clone()], self.verify))
    }

    /// The tensors to write, and their types. A rank may have none.
    fn choose(&self, plan: &LoadPlan) -> LoadPlan {
        let plan = self.names.filter(plan);
        self.cast.map_or_else(|| plan.clone(), |to| plan.cast(to))
    }
}
