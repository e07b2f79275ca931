//! Loads what this process of a distributed job needs, as a job does: started by its launcher.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use modeldir::launch::{self, Rank};
use modeldir::{At, LoadOptions, ModelDir, SaveOptions};
use modeldir_examples::{JobArgs, RankLoad, RuleArgs, model_path, run};

const LAUNCHERS: &str = "\
Start it with a launcher, or say the rank with --rank:
  mpirun -n 4 rank_load DIR
  torchrun --nproc-per-node 4 --no-python rank_load DIR
  srun -n 4 rank_load DIR";

/// Loads what this process of a distributed job needs.
#[derive(Parser)]
#[command(after_help = LAUNCHERS)]
struct Args {
    /// Directory, .safetensors file or index; a small model of the repository if absent
    path: Option<PathBuf>,
    /// The rank of this process, counted from 0, and how many there are, whatever the launcher says
    #[arg(long, value_name = "R/N")]
    rank: Option<At>,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    rules: RuleArgs,
    /// Save what was loaded as a model directory DIR/rank-R-of-N
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Print a line of JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    run(|out| {
        // No default of rank 0: every process would load the same part.
        let rank = match args.rank {
            Some(at) => Rank::new(at.rank(), at.size())?,
            None => launch::rank_from_env()?.ok_or(
                "no launcher says which rank this is: start it with mpirun, torchrun or srun, \
                 or give --rank, such as --rank 0/4",
            )?,
        };
        let model = ModelDir::open(model_path(args.path))?;
        let topology = args.job.or_tp(rank.size()).rank(rank)?;
        let plan = model.plan_for(&args.rules.partition(&model)?, &topology)?;
        let store = plan.load(&LoadOptions::default())?;

        let folder =
            args.save.map(|dir| dir.join(format!("rank-{}-of-{}", rank.rank(), rank.size())));
        if let Some(folder) = &folder {
            store.save(folder, &SaveOptions::default())?;
        }
        let done = RankLoad { rank, plan: &plan, store: &store, saved: folder.as_deref() };
        let line = if args.json { done.json().to_string() } else { done.to_string() };
        // One write, since all ranks share the terminal.
        Ok(out.write_all(format!("{line}\n").as_bytes())?)
    })
}
