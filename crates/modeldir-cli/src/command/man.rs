//! `modeldir man`: manual pages.

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_mangen::{Man, generate_to};
use tensorfile::PathText;

use super::Cli;
use crate::output::Output;
use crate::run::Result;

const EXAMPLES: &str = "\
Examples:
  modeldir man | man -l -
  modeldir man ~/.local/share/man/man1";

/// Print the manual page, or write those of all sub-commands
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory to write modeldir.1 and a page for each sub-command to
    dir: Option<PathBuf>,
}

impl Args {
    pub(super) fn run(&self, out: &mut Output) -> Result {
        match &self.dir {
            Some(dir) => write_all(dir).map_err(|e| format!("{}: {e}", PathText(dir)).into()),
            None => Ok(Man::new(Cli::command()).render(out)?),
        }
    }
}

fn write_all(dir: &Path) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    generate_to(Cli::command(), dir)
}
