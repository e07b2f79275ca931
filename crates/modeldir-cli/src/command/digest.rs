//! `modeldir digest`: the SHA-256 of every tensor, or of the parts that one rank holds.

use std::io::Write;

use clap::ArgGroup;
use modeldir::{LoadPlan, Rank, Topology};
use serde_json::{Map, Value};

use crate::args::{ModelArgs, NameArgs, RuleArgs};
use crate::digests::{TensorDigest, digests};
use crate::failure::Result;
use crate::output::{Output, print_json};
use crate::progress::{PART_BYTES, progress_bar};

const EXAMPLES: &str = "\
Examples:
  modeldir digest Llama-3.1-8B
  modeldir digest Llama-3.1-8B --json > digests.json
  modeldir digest Llama-3.1-8B --only '**.layers.0.**'
  modeldir digest Llama-3.1-8B --tp 1/4";

/// Print the SHA-256 of every tensor, or of the part of each that one rank holds
///
/// Loads about 1 GiB at a time, so that the model may be larger than memory.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, group(ArgGroup::new("cut").args(["rules", "uneven"]).multiple(true).requires("tp")))]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    names: NameArgs,
    /// Take the part that tensor-parallel rank R of N holds, counted from 0, such as 1/4
    #[arg(long, value_name = "R/N")]
    tp: Option<Rank>,
    #[command(flatten)]
    rules: RuleArgs,
    /// Print one JSON object {name: {dtype, shape, sha256}} instead of lines
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(&self, out: &mut Output) -> Result {
        let digests = self.digests()?;
        if self.json {
            let object = digests.into_iter().map(|digest| (digest.name.clone(), digest.json()));
            return Ok(print_json(&Value::Object(object.collect::<Map<_, _>>()), out)?);
        }
        Ok(digests.iter().try_for_each(|digest| writeln!(out, "{digest}"))?)
    }

    /// The digests by name.
    fn digests(&self) -> Result<Vec<TensorDigest>> {
        let plan = self.plan()?;
        let bar = progress_bar(plan.bytes_selected());
        let mut all = Vec::with_capacity(plan.len());
        for part in plan.parts(PART_BYTES) {
            all.extend(digests(&part.load()?, |bytes| bar.inc(bytes)));
        }
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    fn plan(&self) -> Result<LoadPlan> {
        let model = self.model.open()?;
        let plan = match self.tp {
            None => model.plan(),
            Some(rank) => {
                let topology = Topology::tensor_parallel(rank);
                model.plan_for(&self.rules.partition(&model)?, &topology)?
            }
        };
        self.names.choose(&plan)
    }
}
