//! What the command shows on a terminal only. `script` of util-linux gives it one.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Stdio};

use crate::llama;
use crate::model::broken_model;

/// What the command shows of a model on a terminal: `line` is for the shell, with `$MODELDIR` and
/// `$MODEL`. `None` if this machine has no `script`.
fn shown(line: &str, model: &Path, no_color: &str) -> Option<String> {
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", line, "/dev/null"]).stdin(Stdio::null());
    script.env("MODELDIR", env!("CARGO_BIN_EXE_modeldir")).env("MODEL", model);
    script.env("NO_COLOR", no_color).env("TERM", "xterm").env_remove("RUST_LOG");
    let output = script.output().ok()?;
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn colours_appear_on_a_terminal_unless_the_user_wants_none() {
    let broken = broken_model();
    for (line, model, coloured) in [
        ("\"$MODELDIR\" inspect \"$MODEL\"", llama().as_path(), "\u{1b}[1mtensor"),
        ("\"$MODELDIR\" verify \"$MODEL\"", &llama(), "\u{1b}[32mcomplete and sound"),
        ("\"$MODELDIR\" load \"$MODEL\"", &llama(), "\u{1b}[1m30 tensors, "),
        ("\"$MODELDIR\" load \"$MODEL\"", broken.path(), "\u{1b}[1;31merror:\u{1b}[0m "),
    ] {
        let Some(shown_text) = shown(line, model, "") else { return };
        assert!(shown_text.contains(coloured), "{line}: {shown_text:?}");
        // Progress bars move the cursor, but have no colours.
        let plain = shown(line, model, "1").unwrap();
        let colours = plain.split("\u{1b}[").skip(1).filter(|rest| {
            rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
        });
        assert_eq!(colours.count(), 0, "{line}: {plain:?}");
    }
}

#[test]
fn each_stream_is_coloured_if_it_is_a_terminal_itself() {
    let broken = broken_model();
    let Some(piped) = shown("\"$MODELDIR\" inspect \"$MODEL\" | cat", &llama(), "") else { return };
    assert!(piped.contains("lm_head.weight") && !piped.contains('\u{1b}'), "{piped:?}");
    let line = "\"$MODELDIR\" load \"$MODEL\" 2>&1 >/dev/null | cat";
    let piped = shown(line, broken.path(), "").unwrap();
    assert!(piped.starts_with("error: "), "{piped:?}");
}

#[test]
fn a_bar_shows_the_progress_of_a_load() {
    for name in ["load", "digest", "verify --read"] {
        let line = format!("\"$MODELDIR\" {name} \"$MODEL\" >/dev/null");
        let Some(bar) = shown(&line, &llama(), "") else { return };
        assert!(bar.contains("of 350.88 KiB, "), "{name}: {bar:?}");
    }
    let line = "\"$MODELDIR\" rank-load \"$MODEL\" --rank 0/2 >/dev/null";
    // All ranks share the terminal.
    assert_eq!(shown(line, &llama(), "").as_deref(), Some(""));
}
