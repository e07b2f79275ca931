//! Uses a model in one way and says what came of it, step by step, to whoever harms it meanwhile.
//!
//! usage: fault-probe WAY PATH [KEY=VALUE]...
//!
//! Standard output has a line of JSON for each step, `{"at": ...}`. At `started` the process waits
//! for a byte from standard input, at `opened` and `mapped` too if `steps=1`, and at `done` for the
//! end of its input, so that what is left of the use can be looked at from outside. It talks by
//! `readv` and `writev`, which the library does not call, so that calls of the library can be made
//! to fail by their names.

mod args;
mod digests;
mod talk;
mod ways;

use std::error::Error;
use std::process::ExitCode;

use serde_json::json;

use args::Args;
use talk::Talk;

fn main() -> ExitCode {
    let Ok(talk) = Talk::new() else { return ExitCode::from(2) };
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(wrong) => {
            talk.say(&json!({"at": "usage", "wrong": wrong}));
            return ExitCode::from(2);
        }
    };
    talk.say(&json!({"at": "started"}));
    talk.wait();
    let done = match ways::run(&args, &talk) {
        Ok(digests) => json!({"at": "done", "ok": digests.tensors, "index": digests.index}),
        Err(error) => json!({"at": "done", "error": text(&error), "path": error.path()}),
    };
    talk.say(&done);
    talk.wait_for_end();
    ExitCode::SUCCESS
}

/// The error with all its causes, as an application would show it.
fn text(error: &modeldir::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
