//! `modeldir rank-load`: loads the part of one process of a distributed job.

mod loaded;

use std::io::Write;
use std::path::PathBuf;

use modeldir::launch::{self, ProcessRank};
use modeldir::{Rank, SaveOptions};

use crate::args::{JobArgs, ModelArgs, RuleArgs};
use crate::failure::{Failure, Result, note};
use crate::output::{Output, one_line};
use crate::ranks::WithoutRule;
use crate::write::{existing, rank_dir};

use loaded::RankLoad;

const EXAMPLES: &str = "\
Examples:
  mpirun -n 4 modeldir rank-load Llama-3.1-8B
  torchrun --nproc-per-node 4 --no-python modeldir rank-load Llama-3.1-8B
  srun -n 4 modeldir rank-load Llama-3.1-8B --save parts
  modeldir rank-load Llama-3.1-8B --rank 0/4";

/// Load the part of a model that this process of a distributed job needs
///
/// Start it with a launcher, or give the rank with --rank. Rank 0 is no default: without a launcher,
/// every process would load the same part.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Rank of this process, counted from 0, and number of ranks, such as 0/4; overrides the launcher
    #[arg(long, value_name = "R/N")]
    rank: Option<Rank>,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    rules: RuleArgs,
    /// Save the part as a model directory DIR/rank-R-of-N
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Replace the weights that this directory already has
    #[arg(long, requires = "save")]
    replace: bool,
    /// Print one line of JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(&self, out: &mut Output) -> Result {
        let launched = self.launched()?;
        let rank = self.rank.or(launched.map(Rank::from)).ok_or_else(no_rank)?;
        let model = self.model.open()?;
        let topology = self.job.or_tp(rank.size()).rank(rank)?;
        let plan = model.plan_for(&self.rules.partition(&model)?, &topology)?;
        let store = plan.load()?;

        let saved = self.save.as_deref().map(|dir| rank_dir(dir, rank));
        if let Some(dir) = &saved {
            let existing = existing(self.replace);
            store.save_with(dir, &SaveOptions { existing, ..SaveOptions::default() })?;
        }
        if let Some(found) = WithoutRule::of(&plan).filter(|_| rank.size() > 1) {
            note(format_args!("rank {} of {}: {found}", rank.rank(), rank.size()));
        }
        let saved = saved.as_deref();
        let done = RankLoad { rank, launched, plan: &plan, store: &store, saved };
        let line = if self.json { one_line(&done.json()) } else { done.to_string() };
        // One write, since all ranks share the terminal.
        Ok(out.write_all(format!("{line}\n").as_bytes())?)
    }

    /// The rank from the launcher, unless --rank sets it.
    fn launched(&self) -> Result<Option<ProcessRank>> {
        Ok(if self.rank.is_some() { None } else { launch::rank_from_env()? })
    }
}

fn no_rank() -> Failure {
    Failure::Usage(
        "no launcher says which rank this is: start it with mpirun, torchrun or srun, \
         or give --rank, such as --rank 0/4"
            .to_owned(),
    )
}
