//! Shows what each rank of a job would hold and read of a model, from headers alone.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use modeldir::ModelDir;
use modeldir_examples::{Holdings, JobArgs, RankPlan, RuleArgs, model_path, run};
use modeldir_examples::{print_oddities, rank_table, ranks_json};

/// Shows what each rank of a job would hold and read of a model, from headers alone: two ranks that
/// cut tensors between them, if no number is given.
#[derive(Parser)]
struct Args {
    /// Directory, .safetensors file or index; a small model of the repository if absent
    path: Option<PathBuf>,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    rules: RuleArgs,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    run(|out| {
        let model = ModelDir::open(model_path(args.path))?;
        let partition = args.rules.partition(&model)?;
        let topologies = args.job.or_tp(2).ranks()?;

        // Plans count before a byte of a tensor is read.
        let holdings = Holdings::new(&model, &partition, &topologies)?;
        let mut ranks = Vec::with_capacity(topologies.len());
        for (topology, replicated) in topologies.into_iter().zip(&holdings.replicated) {
            let plan = model.plan_for(&partition, &topology)?;
            ranks.push(RankPlan { topology, plan, bytes_replicated: *replicated });
        }

        if args.json {
            serde_json::to_writer_pretty(&mut *out, &ranks_json(&model, &ranks, &holdings))?;
            return Ok(writeln!(out)?);
        }
        rank_table(&model, &ranks).print(out)?;
        print_oddities(&ranks, &holdings, out)
    })
}
