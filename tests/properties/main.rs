//! Replays on any compiler what fuzzing keeps: the corpus of each target, every input that ever failed,
//! and the seeds.

#![expect(clippy::unwrap_used, reason = "what helpers meet fails the test that calls them")]

use std::fs;
use std::path::{Path, PathBuf};

use modeldir_properties::PROPERTIES;

/// The files of a folder of `fuzz`, in order; none if it is not there.
fn kept(folder: &str, target: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let entries = fs::read_dir(root.join(folder).join(target)).into_iter().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The files of the conformance corpus from which a target starts.
fn seeds(target: &str) -> Vec<PathBuf> {
    let root = modeldir_fixtures::conformance_dir();
    let corpus = modeldir_fixtures::conformance();
    let is_seed = |path: &str| match target {
        "header" | "header_differential" => path.starts_with("format/"),
        "weight_map" => path.ends_with("/model/model.safetensors.index.json"),
        _ => false,
    };
    corpus
        .iter()
        .map(|(path, _)| path)
        .filter(|path| is_seed(path))
        .map(|path| root.join(path))
        .collect()
}

/// Holds every kept input of a target to its property, and says how many there were.
fn replay(target: &str) -> usize {
    let (_, property) = PROPERTIES.iter().find(|(name, _)| *name == target).unwrap();
    let files = [seeds(target), kept("corpus", target), kept("crashes", target)].concat();
    let mut wrong = Vec::new();
    for file in &files {
        if let Err(what) = property(&fs::read(file).unwrap()) {
            wrong.push(format!("{}: {what}", file.display()));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    files.len()
}

#[test]
fn config_holds_for_what_is_kept() {
    assert!(replay("config") > 0);
}

#[test]
fn directory_holds_for_what_is_kept() {
    assert!(replay("directory") > 0);
}

#[test]
fn header_holds_for_what_is_kept() {
    assert!(replay("header") > 400);
}

#[test]
fn header_differential_holds_for_what_is_kept() {
    assert!(replay("header_differential") > 400);
}

#[test]
fn partition_holds_for_what_is_kept() {
    assert!(replay("partition") > 0);
}

#[test]
fn weight_map_holds_for_what_is_kept() {
    assert!(replay("weight_map") > 50);
}

#[test]
fn every_target_has_its_property() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/targets");
    let mut names: Vec<_> = fs::read_dir(targets)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, PROPERTIES.map(|(name, _)| name));
}
