//! `modeldir slice`: a rectangular part of one tensor; only the header and these bytes are read.

mod ranges;
mod values;

use std::io::{self, Write};
use std::path::PathBuf;

use modeldir::{IndexedTensor, ModelDir, Tensor};
use serde_json::{Value, json};
use tensorfile::{ByteRuns, PathText};

use crate::args::ModelArgs;
use crate::failure::{Failure, Result};
use crate::output::{Output, bytes, counted, path_json, print_json, shown};
use crate::write::{existing, is_weight_file, may_write, write_file};

use ranges::Ranges;
use values::Values;

const EXAMPLES: &str = "\
Examples:
  modeldir slice Llama-3.1-8B model.norm.weight
  modeldir slice Llama-3.1-8B model.embed_tokens.weight 0..2,0..8 --values 16
  modeldir slice Llama-3.1-8B lm_head.weight 0..1000 --to head.safetensors";

/// Read some rows or any rectangular part of one tensor, and print or save it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Name of the tensor
    name: String,
    /// Range of each dimension: 0..2 is 0 and 1, 3 is 3 alone, : is all; such as 0..2,:,3 [default:
    /// all]
    ranges: Option<Ranges>,
    /// Maximum number of values to print
    #[arg(long, value_name = "N", default_value_t = 8)]
    values: usize,
    /// Write the part to this .safetensors file, under the same name
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "to")]
    replace: bool,
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(&self, out: &mut Output) -> Result {
        let model = self.model.open()?;
        let whole = model.info(&self.name)?;
        self.check_to()?;
        let part = self.read(&model, whole)?;
        if let Some(to) = &self.to {
            write_file([&part.tensor], to)?;
        }
        let values = Values::of(&part.tensor, self.values)?;
        Ok(if self.json {
            print_json(&self.json(whole, &part, &values), out)
        } else {
            self.print(whole, &part, &values, out)
        }?)
    }

    /// Refuses what cannot be written, before anything is read.
    fn check_to(&self) -> Result {
        match &self.to {
            Some(to) if is_weight_file(to) => may_write(to, existing(self.replace)),
            Some(to) => {
                let message = format!("--to {}: expected a .safetensors file", PathText(to));
                Err(Failure::Usage(message))
            }
            None => Ok(()),
        }
    }

    fn read(&self, model: &ModelDir, whole: IndexedTensor<'_>) -> Result<Part> {
        let ranges = self.ranges.clone().unwrap_or_default();
        let selection = ranges.selection(whole.shape());
        // The selection becomes runs of bytes before anything is read.
        let runs = selection.lower(whole.info()).map_err(|error| error.at(model.path()))?;
        Ok(Part { tensor: model.read_selection(&self.name, &selection)?, runs })
    }

    fn print(
        &self,
        whole: IndexedTensor<'_>,
        part: &Part,
        values: &Values,
        out: &mut Output,
    ) -> io::Result<()> {
        let (name, of, dtype) = (shown(&self.name), bytes(whole.byte_len() as u64), whole.dtype());
        writeln!(out, "{name}: {dtype} {:?}, {of}", whole.shape())?;
        let (read, runs) = (bytes(part.runs.byte_len() as u64), part.runs.num_runs());
        writeln!(out, "part: {:?}, {read} in {}", part.tensor.shape(), counted(runs, "run"))?;
        writeln!(out, "values: {}", values.list())?;
        self.to.as_ref().map_or(Ok(()), |to| writeln!(out, "written to {}", PathText(to)))
    }

    fn json(&self, whole: IndexedTensor<'_>, part: &Part, values: &Values) -> Value {
        let Part { tensor, runs } = part;
        json!({
            "name": self.name,
            "dtype": whole.dtype().name(),
            "shape": whole.shape(),
            "bytes": whole.byte_len(),
            "part": { "shape": tensor.shape(), "bytes": tensor.byte_len(), "runs": runs.num_runs() },
            "values": values.json(),
            "written": self.to.as_deref().map(path_json),
        })
    }
}

/// The part that was read, and its number of byte runs in the file.
struct Part {
    tensor: Tensor,
    runs: ByteRuns,
}
