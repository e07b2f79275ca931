//! What a save asks of the system: bytes are on the disk before their name is, and names before the
//! next step. The calls are those that `strace` writes down.
#![expect(clippy::panic, reason = "what is not expected fails the test")]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use modeldir::options::{Beside, Existing};
use modeldir::{Dtype, ModelDir, SaveOptions};
use tensorfile::Writer;

use crate::alone::{ALONE, is_alone};

/// Where the process that is watched saves.
const TO: &str = "MODELDIR_TESTS_TO";

/// One call: its name, and the paths that its line shows.
#[derive(Debug)]
struct Call {
    name: String,
    paths: Vec<String>,
}

impl Call {
    /// A call of a line such as `12 rename("a", "b") = 0` or `12 fsync(3</folder/a>) = 0`.
    fn of(line: &str) -> Option<Self> {
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let (name, rest) = line.split_once('(')?;
        let quoted: Vec<_> = rest.split('"').skip(1).step_by(2).map(str::to_owned).collect();
        let described = rest.split('<').skip(1).filter_map(|text| text.split('>').next());
        // Beside a path there may be the folder that it would be relative to.
        let paths = if quoted.is_empty() { described.map(str::to_owned).collect() } else { quoted };
        rest.ends_with("= 0").then(|| Self { name: name.to_owned(), paths })
    }

    fn is_sync_of(&self, path: &Path) -> bool {
        ["fsync", "fdatasync"].contains(&&*self.name) && self.has(path)
    }

    fn is_rename(&self) -> bool {
        self.name.starts_with("rename") || self.name.starts_with("link")
    }

    fn has(&self, path: &Path) -> bool {
        self.paths.iter().any(|found| Path::new(found) == path)
    }
}

/// The calls of a test of this binary, run on its own; `None` if nothing can be watched here.
fn watched(test: &str, to: &Path) -> Option<Vec<Call>> {
    let log = to.with_extension("calls");
    let traced = "trace=fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat";
    let output = Command::new("strace")
        .args(["-f", "-y", "-s", "4096", "-e", traced, "-o"])
        .arg(&log)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .envs([(ALONE, OsStr::new("1")), (TO, to.as_os_str())])
        .output();
    let said = output.as_ref().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let log = fs::read_to_string(&log).unwrap_or_default();
    if !said.as_ref().is_ok_and(|said| said.contains("1 passed")) || log.is_empty() {
        // A program that runs and fails is a failure; one that cannot be watched is not.
        assert!(log.is_empty(), "{said:?}");
        let message = format!("{test}: NOT RUN, strace cannot watch it\n");
        std::io::stderr().write_all(message.as_bytes()).unwrap();
        return None;
    }
    Some(log.lines().filter_map(Call::of).collect())
}

fn position(calls: &[Call], what: &str, is: impl Fn(&Call) -> bool) -> usize {
    calls.iter().position(is).unwrap_or_else(|| panic!("no {what}: {calls:#?}"))
}

/// Fails unless each file that was renamed into the folder had been synced under its former name.
fn assert_synced_before_its_name(calls: &[Call], folder: &Path) {
    let mut renamed = 0;
    for (i, call) in calls.iter().enumerate().filter(|(_, call)| call.is_rename()) {
        let [from, to] = &call.paths[..] else { panic!("{call:?}") };
        if !Path::new(to).starts_with(folder) {
            continue;
        }
        let from = Path::new(from);
        // A file may be renamed twice: it is synced under its first name.
        let synced = |from: &Path| calls[..i].iter().any(|call| call.is_sync_of(from));
        let before = calls[..i].iter().rfind(|call| {
            call.is_rename() && call.paths[1..].iter().any(|to| Path::new(to) == from)
        });
        let first = before.map_or(from, |before| Path::new(&before.paths[0]));
        assert!(synced(from) || synced(first), "{call:?} of {calls:#?}");
        renamed += 1;
    }
    assert!(renamed > 0, "{calls:#?}");
}

#[test]
fn a_file_is_synced_before_its_rename_and_its_folder_after() {
    if is_alone() {
        let mut writer = Writer::new();
        writer.add("w", Dtype::U8, &[2], &[1, 2]).unwrap();
        return writer.save(Path::new(&std::env::var_os(TO).unwrap()).join("x")).unwrap();
    }
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().canonicalize().unwrap().join("to");
    fs::create_dir(&folder).unwrap();
    let test = "durable::a_file_is_synced_before_its_rename_and_its_folder_after";
    let Some(calls) = watched(test, &folder) else { return };
    assert_synced_before_its_name(&calls, &folder);
    let renamed =
        position(&calls, "rename", |call| call.is_rename() && call.has(&folder.join("x")));
    let synced = calls[renamed..].iter().any(|call| call.is_sync_of(&folder));
    assert!(synced, "the folder is synced after the rename: {calls:#?}");
}

#[test]
fn a_model_is_on_the_disk_step_by_step() {
    if is_alone() {
        let model = ModelDir::open(modeldir_fixtures::model("llama")).unwrap();
        let (existing, beside) = (Existing::Replace, Beside::Copy);
        let options =
            SaveOptions { max_shard_bytes: 100_000, existing, beside, ..SaveOptions::default() };
        model.load().unwrap().save_with(std::env::var_os(TO).unwrap(), &options).unwrap();
        return;
    }
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().canonicalize().unwrap().join("to");
    fs::create_dir(&folder).unwrap();
    let old = folder.join("model.safetensors");
    fs::copy(modeldir_fixtures::model("gpt2").join("model.safetensors"), &old).unwrap();
    let Some(calls) = watched("durable::a_model_is_on_the_disk_step_by_step", &folder) else {
        return;
    };
    assert_synced_before_its_name(&calls, &folder);
    let index = folder.join("model.safetensors.index.json");
    let config = folder.join("config.json");
    let is_new = |call: &Call, path: &Path| {
        call.is_rename() && call.paths.last().is_some_and(|to| Path::new(to) == path)
    };
    let shards: Vec<_> = (0..calls.len())
        .filter(|i| {
            let to = calls[*i].paths.last().map(Path::new);
            let is_shard = |to: &Path| {
                to.parent() == Some(&*folder) && to.extension() == Some(OsStr::new("safetensors"))
            };
            calls[*i].is_rename() && to.is_some_and(is_shard)
        })
        .collect();
    let removed =
        position(&calls, "removal", |call| call.name.starts_with("unlink") && call.has(&old));
    let config = position(&calls, "configuration", |call| is_new(call, &config));
    let index = position(&calls, "index", |call| is_new(call, &index));
    let (first, last) = (shards[0], shards[shards.len() - 1]);
    assert!(removed < config && config < first && last < index, "{calls:#?}");
    for (from, to) in [(removed, config), (config, first), (index, calls.len())] {
        let is_synced = calls[from..to].iter().any(|call| call.is_sync_of(&folder));
        assert!(is_synced, "the folder is synced between {from} and {to}: {calls:#?}");
    }
}
