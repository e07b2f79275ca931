//! `modeldir man`: manual pages.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::{Man, generate_to};
use tensorfile::PathText;

use crate::failure::Result;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  modeldir man | man -l -
  modeldir man ~/.local/share/man/man1";

/// Print the manual page, or write the pages of all sub-commands
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory to write modeldir.1 and the page of each sub-command to, such as modeldir-load.1
    dir: Option<PathBuf>,
}

impl Args {
    /// Prints the manual page of a command line, or writes the pages of all its sub-commands.
    pub(super) fn run(&self, of: Command, out: &mut Output) -> Result {
        match &self.dir {
            Some(dir) => write_all(of, dir).map_err(|e| format!("{}: {e}", PathText(dir)).into()),
            None => Ok(Man::new(of).render(out)?),
        }
    }
}

fn write_all(of: Command, dir: &Path) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    generate_to(of, dir)
}
