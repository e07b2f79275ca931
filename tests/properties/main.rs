//! Replays on any compiler what fuzzing keeps: the corpus of each target, every input that ever failed,
//! and the seeds.

#![expect(clippy::unwrap_used, reason = "what helpers meet fails the test that calls them")]
#![expect(clippy::print_stdout, reason = "says how many inputs there were")]

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use modeldir_fixtures::random_bytes;
use modeldir_properties::{PROPERTIES, quantized};

/// An input: how it is called in a message, and its bytes.
type Input = (String, Vec<u8>);

/// The folder of fuzzing.
fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

/// An input that is a file of its own.
fn of_file(path: &Path) -> Input {
    (path.display().to_string(), fs::read(path).unwrap())
}

/// The inputs of a target in `fuzz/corpus.tar.gz`, in order.
fn corpus(target: &str) -> Vec<Input> {
    let file = File::open(fuzz().join("corpus.tar.gz")).unwrap();
    let mut inputs = Vec::new();
    for entry in tar::Archive::new(GzDecoder::new(file)).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().into_owned();
        if path.starts_with(target) {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            inputs.push((format!("corpus.tar.gz: {}", path.display()), bytes));
        }
    }
    inputs
}

/// The inputs that ever failed, in order; none if the target never did.
fn crashes(target: &str) -> Vec<Input> {
    let entries = fs::read_dir(fuzz().join("crashes").join(target)).into_iter().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|path| of_file(path)).collect()
}

/// The files of the conformance corpus from which a target starts.
fn seeds(target: &str) -> Vec<Input> {
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
        .map(|path| of_file(&root.join(path)))
        .collect()
}

/// Holds every kept input of a target to its property; prints and returns how many there were.
fn replay(target: &str) -> usize {
    let (_, property) = PROPERTIES.iter().find(|(name, _)| *name == target).unwrap();
    let inputs = [seeds(target), corpus(target), crashes(target)].concat();
    let mut wrong = Vec::new();
    for (name, bytes) in &inputs {
        if let Err(what) = property(bytes) {
            wrong.push(format!("{name}: {what}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    println!("{target}: {} inputs", inputs.len());
    inputs.len()
}

#[test]
fn config_holds_for_what_is_kept() {
    assert!(replay("config") > 900);
}

#[test]
fn directory_holds_for_what_is_kept() {
    assert!(replay("directory") > 700);
}

#[test]
fn header_holds_for_what_is_kept() {
    assert!(replay("header") > 1300);
}

#[test]
fn header_differential_holds_for_what_is_kept() {
    assert!(replay("header_differential") > 2000);
}

#[test]
fn partition_holds_for_what_is_kept() {
    assert!(replay("partition") > 1300);
}

#[test]
fn parts_of_quantized_layers_stand_for_the_weights_of_the_whole() {
    let (mut cut, mut refused) = (0, 0);
    for seed in 0..6000 {
        match quantized(&random_bytes(&format!("layer {seed}"), 64)) {
            Ok(true) => cut += 1,
            Ok(false) => refused += 1,
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    println!("quantized: {cut} layers cut, {refused} refused");
    assert!(cut > 1500 && refused > 1500, "{cut} cut, {refused} refused");
}

#[test]
fn weight_map_holds_for_what_is_kept() {
    assert!(replay("weight_map") > 900);
}

#[test]
fn every_target_has_its_property() {
    let mut names: Vec<_> = fs::read_dir(fuzz().join("targets"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, PROPERTIES.map(|(name, _)| name));
}
