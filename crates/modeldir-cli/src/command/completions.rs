//! `modeldir completions`: shell completions of the command line.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use super::Cli;
use crate::output::Output;
use crate::run::Result;

const EXAMPLES: &str = "\
Examples:
  modeldir completions bash > ~/.local/share/bash-completion/completions/modeldir
  modeldir completions zsh > ~/.zfunc/_modeldir
  modeldir completions fish > ~/.config/fish/completions/modeldir.fish";

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Args {
    pub(super) fn run(&self, out: &mut Output) -> Result {
        // The generator panics where it cannot write.
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "modeldir", &mut script);
        Ok(out.write_all(&script)?)
    }
}
