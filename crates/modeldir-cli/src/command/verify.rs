//! `modeldir verify`: whether a model is complete and sound, and the files to fetch again if not.

mod mending;
mod unread;

use std::io::Write;
use std::path::Path;

use modeldir::Error;
use serde_json::{Value, json};
use tensorfile::PathText;

use crate::args::ModelArgs;
use crate::failure::{Failure, Result, print_error};
use crate::output::{Output, path_json, print_json};
use crate::progress::{PART_BYTES, load_part, progress_bar};
use crate::switches::with_switches;

use mending::{broken_beside, wanting};
use unread::Unread;

const EXAMPLES: &str = "\
Exit codes:
  0  the model is complete and sound
  1  it is not, a file cannot be read, or most of the model is in a file of another format
  2  the command line is wrong

Examples:
  modeldir verify Llama-3.1-8B
  modeldir verify Llama-3.1-8B --read
  modeldir verify Llama-3.1-8B | sed -n 's/^fetch again: //p'";

/// Check that a model is complete and sound, and list the files to fetch again if it is not
///
/// Reads headers and the files beside the weights; with --read, every byte of the weights too.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Read every byte, about 1 GiB at a time
    #[arg(long)]
    read: bool,
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(&self, out: &mut Output) -> Result {
        let (faults, unread) = self.faults();
        if self.json {
            print_json(&self.json(&faults, &unread), out)?;
        } else if faults.is_empty() {
            let read = if self.read { "every byte" } else { "headers and JSON" };
            let verdict = match unread.is_most() {
                true => format!("sound as far as it was read; {unread}"),
                false => out.green(format!("complete and sound ({read} read)")),
            };
            writeln!(out, "{}: {verdict}", PathText(&self.model.path))?;
        } else {
            faults.iter().for_each(|fault| print_error(fault));
            for file in wanting(&faults) {
                writeln!(out, "fetch again: {}", PathText(self.relative(file)))?;
            }
        }
        let is_sound = faults.is_empty() && !unread.is_the_model();
        if is_sound { Ok(()) } else { Err(Failure::Printed) }
    }

    /// All that is wrong with the model, and the weights beside it that were not read.
    fn faults(&self) -> (Vec<Error>, Unread) {
        // One error lists every missing and damaged shard; without it, the headers fit the index.
        let model = match self.model.open() {
            Ok(model) => model,
            Err(error) => return (vec![error], Unread::default()),
        };
        let mut faults = broken_beside(&model);
        if self.read {
            let bar = progress_bar(model.byte_len());
            for part in model.plan().parts(PART_BYTES) {
                faults.extend(load_part(&part, &bar).err());
            }
        }
        faults.dedup_by_key(|fault| fault.to_string());
        let chosen = self.model.names_files();
        (faults, if chosen { Unread::default() } else { Unread::beside(&model) })
    }

    fn relative<'f>(&self, file: &'f Path) -> &'f Path {
        file.strip_prefix(&self.model.path).unwrap_or(file)
    }

    fn json(&self, faults: &[Error], unread: &Unread) -> Value {
        let wanting = wanting(faults);
        json!({
            "path": path_json(&self.model.path),
            "sound": faults.is_empty() && !unread.is_the_model(),
            "every_byte_read": self.read,
            "unread": unread.json(),
            "faults": faults.iter().map(|fault| with_switches(&fault.to_string())).collect::<Vec<_>>(),
            "fetch_again": wanting.iter().map(|f| path_json(self.relative(f))).collect::<Vec<_>>(),
        })
    }
}
