//! The command line: each sub-command has a file of its own.

mod completions;
mod digest;
mod inspect;
mod load;
mod man;
mod rank_load;
mod ranks;
mod save;
mod slice;
mod verify;

use clap::{CommandFactory, Parser, Subcommand};

use crate::failure::Result;
use crate::output::Output;

const AFTER: &str = "\
Exit codes:
  0  done; of verify: the model is complete and sound
  1  the model is at fault, or a file cannot be read or written
  2  the command line is wrong

Environment:
  NO_COLOR  if set and not empty: no colours on terminals either
  RUST_LOG  what to log on standard error, such as modeldir=debug

Examples:
  modeldir inspect Llama-3.1-8B
  modeldir verify Llama-3.1-8B && modeldir load Llama-3.1-8B
  modeldir save Llama-3.1-8B Llama-bf16 --cast bf16
  modeldir inspect --help";

/// Inspect, verify, digest, load, cut and save Hugging Face model directories
#[derive(Debug, Parser)]
#[command(name = "modeldir", version, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Inspect(inspect::Args),
    Verify(verify::Args),
    Digest(digest::Args),
    Load(load::Args),
    Slice(slice::Args),
    Ranks(ranks::Args),
    RankLoad(rank_load::Args),
    Save(save::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Cli {
    /// Runs the sub-command.
    ///
    /// # Errors
    ///
    /// Those of the sub-command.
    pub(crate) fn run(&self, out: &mut Output) -> Result {
        match &self.command {
            Command::Inspect(args) => args.run(out),
            Command::Verify(args) => args.run(out),
            Command::Digest(args) => args.run(out),
            Command::Load(args) => args.run(out),
            Command::Slice(args) => args.run(out),
            Command::Ranks(args) => args.run(out),
            Command::RankLoad(args) => args.run(out),
            Command::Save(args) => args.run(out),
            Command::Completions(args) => args.run(Self::command(), out),
            Command::Man(args) => args.run(Self::command(), out),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::Cli;

    #[test]
    fn the_command_line_has_no_clash() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_command_lines_of_the_readme_parse() {
        let readme = include_str!("../README.md");
        let lines = readme.lines().filter_map(|line| line.split_once("modeldir "));
        let lines = lines.filter(|(before, _)| before.is_empty() || before.ends_with("-n 4 "));
        let lines: Vec<_> = lines.map(|(_, line)| line).collect();
        assert!(lines.len() > 7, "{lines:?}");
        for line in lines {
            let words = line.split_whitespace().take_while(|word| *word != "#");
            let parsed = Cli::try_parse_from(["modeldir"].into_iter().chain(words));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn every_help_has_examples_that_parse() {
        let mut root = Cli::command();
        let commands =
            root.get_subcommands_mut().map(|c| (c.get_name().to_owned(), c.render_help()));
        for (name, help) in commands.collect::<Vec<_>>() {
            let help = help.to_string();
            let (_, examples) =
                help.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{name}"));
            let calls = examples.lines().filter_map(|line| line.split_once("modeldir ")).count();
            assert!(calls > 0, "{name}");
            for line in examples.lines().filter(|line| line.contains(&format!("modeldir {name}"))) {
                let call = line.split_once("modeldir ").unwrap().1;
                let words = call.split([' ']).take_while(|word| !["|", "&&", ">"].contains(word));
                let words: Vec<_> = words.map(|word| word.trim_matches('\'')).collect();
                let parsed = Cli::try_parse_from([&["modeldir"], &words[..]].concat());
                assert!(parsed.is_ok(), "{name}: {call}: {}", parsed.unwrap_err());
            }
        }
    }
}
