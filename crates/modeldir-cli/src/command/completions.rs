//! `modeldir completions`: shell completions of the command line.

use std::io::Write;

use clap::Command;
use clap_complete::{Shell, generate};

use crate::failure::Result;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  modeldir completions bash > ~/.local/share/bash-completion/completions/modeldir
  modeldir completions zsh > ~/.zfunc/_modeldir
  modeldir completions fish > ~/.config/fish/completions/modeldir.fish";

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Shell that completes commands
    #[arg(value_enum)]
    shell: Shell,
}

impl Args {
    /// Prints the completions of a command line.
    pub(super) fn run(&self, mut of: Command, out: &mut Output) -> Result {
        // The generator panics where it cannot write.
        let mut script = Vec::new();
        generate(self.shell, &mut of, "modeldir", &mut script);
        Ok(out.write_all(&script)?)
    }
}
