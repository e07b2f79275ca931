//! Pipes, full disks, shells and manual readers.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::model::{broken_model, copy_of_llama};
use crate::program::{command, run, stderr, stdout};
use crate::{COMMANDS, args, llama};

#[test]
#[cfg(unix)]
fn a_reader_that_goes_away_is_no_error() {
    for (name, _) in COMMANDS {
        let folder = tempfile::tempdir().unwrap();
        let (stdout, reader) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(reader);
        let output = command(name)
            .args(args(name, &llama(), folder.path()))
            .stdout(Stdio::from(std::os::fd::OwnedFd::from(stdout)))
            .stderr(Stdio::piped())
            .spawn()
            .and_then(Child::wait_with_output)
            .unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
        assert_eq!(stderr(&output), "", "{name}");
    }
}

#[test]
#[cfg(unix)]
fn a_reader_that_goes_away_changes_no_exit_code() {
    let broken = broken_model();
    let closed = || {
        let (stdout, reader) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(reader);
        Stdio::from(std::os::fd::OwnedFd::from(stdout))
    };
    let verified = command("verify").arg(broken.path()).stdout(closed()).output().unwrap();
    assert_eq!(verified.status.code(), Some(1), "{verified:?}");
    for (name, args) in [("completions", &["bash"][..]), ("man", &[]), ("--help", &[])] {
        let output = command(name).args(args).stdout(closed()).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{name}: {output:?}");
    }
    // Without a standard error, the message is lost, and the exit code stays.
    let lost = command("load").arg(broken.path()).stderr(closed()).output().unwrap();
    assert_eq!(lost.status.code(), Some(1), "{lost:?}");
}

#[test]
fn messages_name_switches_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let variant = folder.path().join("model.fp16.safetensors");
    fs::copy(modeldir_fixtures::model("bert").join("model.safetensors"), &variant).unwrap();
    let output = run("inspect", &[folder.path()]);
    assert!(stderr(&output).contains("(--variant opens one)"), "{}", stderr(&output));

    let output = run("inspect", &[variant.as_os_str(), "--variant=fp16".as_ref()]);
    assert!(stderr(&output).contains(": --variant does not apply here"), "{}", stderr(&output));
    let output = run("ranks", &[llama().as_os_str(), "--tp=3".as_ref()]);
    let said = "--uneven balanced and --uneven chunk give some ranks more";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));

    let rules = folder.path().join("rules.json");
    fs::write(&rules, r#"{"rules": [], "unmatched": "error"}"#).unwrap();
    let bert = modeldir_fixtures::model("bert");
    let output = run("ranks", &[bert.as_os_str(), "--rules".as_ref(), rules.as_os_str()]);
    let said = "and the rules say \"unmatched\": \"error\"";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));
}

#[test]
fn an_index_that_fits_no_file_is_ignored_when_asked() {
    let folder = copy_of_llama();
    let single = folder.path().join("model.safetensors");
    fs::copy(modeldir_fixtures::model("bert").join("model.safetensors"), single).unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.display().to_string().contains("-of-") {
            fs::remove_file(path).unwrap();
        }
    }
    let output = run("inspect", &[folder.path()]);
    assert!(
        stderr(&output).contains("; --ignore-index opens what is there"),
        "{}",
        stderr(&output)
    );
    let output = run("inspect", &[folder.path().as_os_str(), "--ignore-index".as_ref()]);
    assert!(stdout(&output).contains("encoder.layer.*.output.dense.weight"), "{output:?}");
}

#[test]
fn the_log_of_the_library_appears_when_asked_for() {
    let mut load = command("load");
    let output = load.arg(llama()).env("RUST_LOG", "modeldir=debug").output().unwrap();
    assert!(stderr(&output).contains("modeldir"), "{output:?}");
    assert!(!stderr(&output).contains('\u{1b}'), "{output:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output =
        command("digest").arg(llama()).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: standard output: "), "{}", stderr(&output));
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = run("completions", &[shell]);
        assert!(output.status.success(), "{shell}: {output:?}");
        for (name, _) in COMMANDS {
            assert!(stdout(&output).contains(name), "{shell}: {name}");
        }
    }
}

#[test]
#[cfg(unix)]
fn completions_for_bash_are_a_script_that_bash_takes() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("modeldir.bash");
    fs::write(&script, run("completions", &["bash"]).stdout).unwrap();
    // Where there is no bash there is nothing to complete.
    let Ok(output) = Command::new("bash").arg("-n").arg(&script).output() else { return };
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run("man", &[folder.path().join("man1")]).status.success());
    for (name, _) in COMMANDS {
        let page = folder.path().join(format!("man1/modeldir-{name}.1"));
        let text = fs::read_to_string(page).unwrap();
        assert!(text.contains("Examples:") && text.contains(".SH OPTIONS"), "{name}: {text}");
    }
    let page = stdout(&run("man", &[] as &[&str]));
    assert!(page.contains(".TH modeldir 1") && page.contains("Exit codes"), "{page}");
}
