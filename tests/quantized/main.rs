//! Parts of quantized models, against what `fixtures/quantized/prove.py` has proved of them: that each
//! part stands for the same weights as the whole, or that there is no such cut.
//!
//! With `MODELDIR_PARTS=DIR` in the environment the parts are written there for the proof instead.

#![expect(clippy::unwrap_used, reason = "what helpers meet fails the test that calls them")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::{env, fs};

use modeldir::partition::{ExpertSplit, Misaligned, PartitionError, Uneven};
use modeldir::{Error, ErrorKind, ModelDir, Partition, Rank, TensorStore, Topology};
use modeldir_fixtures::{Tensor, file, quantized_dir, sha256_hex};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The models, and the ranks that each is cut over, by name.
#[derive(Deserialize)]
struct Cases {
    topologies: BTreeMap<String, Case>,
    models: BTreeMap<String, Vec<String>>,
}

/// The numbers of ranks, and what is done with lengths and blocks that do not divide.
#[derive(Deserialize)]
struct Case {
    tp: usize,
    ep: usize,
    uneven: Uneven,
    misaligned: Misaligned,
}

/// What has been proved of a case.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Proved {
    /// The digest of each rank's part.
    Cut { parts: Vec<String> },
    /// The kind of the refusal; `why` is for people.
    Refused { refused: String },
}

impl Case {
    fn ranks(&self) -> Vec<Topology> {
        match self.ep {
            1 => Rank::all(self.tp).map(Topology::tensor_parallel).collect(),
            _ => Rank::all(self.ep)
                .map(|rank| Topology::single().experts(rank, ExpertSplit::Linear))
                .collect(),
        }
    }

    /// The parts of all ranks by the built-in rules, or the first refusal.
    fn cut(&self, model: &ModelDir) -> Result<Vec<TensorStore>, Error> {
        let (uneven, misaligned) = (self.uneven, self.misaligned);
        let rules = Partition::for_config(model.config().unwrap())?;
        let rules = Partition { uneven, misaligned, ..rules };
        self.ranks().iter().map(|rank| model.plan_for(&rules, rank)?.load()).collect()
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> T {
    assert!(path.is_file(), "{} is missing", path.display());
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The tensors of a part in the order of their names.
fn tensors(part: &TensorStore) -> Vec<Tensor> {
    let tensor = |(name, tensor): (&str, &modeldir::Tensor)| {
        Tensor::new(name, tensor.dtype().name(), tensor.shape(), tensor.bytes().to_vec())
    };
    let mut tensors: Vec<_> = part.iter().map(tensor).collect();
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    tensors
}

/// The digest of a part: for each tensor a line of name, dtype and shape, then its bytes.
fn digest(part: &TensorStore) -> String {
    let mut content = Vec::new();
    for Tensor { name, dtype, shape, data } in tensors(part) {
        content.extend_from_slice(format!("{name} {dtype} {shape:?}\n").as_bytes());
        content.extend_from_slice(&data);
    }
    sha256_hex(&content)
}

/// The kind of a refusal: the innermost variant that says why.
fn kind(error: &Error) -> String {
    let variant = |kind: &dyn Debug| {
        let text = format!("{kind:?}");
        text.chars().take_while(|c| c.is_alphanumeric()).collect()
    };
    match error.kind() {
        ErrorKind::Partition(PartitionError::Cut { misfit, .. }) => variant(misfit),
        ErrorKind::Partition(kind) => variant(kind),
        kind => variant(kind),
    }
}

/// Writes what a proof needs: a file for each rank, or the kind of the refusal.
fn write(folder: &Path, found: &Result<Vec<TensorStore>, Error>) {
    fs::create_dir_all(folder).unwrap();
    match found {
        Ok(parts) => {
            for (rank, part) in parts.iter().enumerate() {
                let path = folder.join(format!("{rank}.safetensors"));
                fs::write(path, file(&tensors(part))).unwrap();
            }
        }
        Err(error) => fs::write(folder.join("refused"), kind(error)).unwrap(),
    }
}

/// The row of the table in the README of the fixtures for a model.
fn row(name: &str, proved: &BTreeMap<String, Proved>) -> String {
    let cut = proved.values().filter(|proved| matches!(proved, Proved::Cut { .. })).count();
    format!("| `{name}` | {cut} | {} |", proved.len() - cut)
}

#[test]
fn the_table_of_layouts_says_what_was_proved() {
    let root = quantized_dir();
    let cases: Cases = read(&root.join("cases.json"));
    let text = fs::read_to_string(root.join("../README.md")).unwrap();
    for name in cases.models.keys() {
        let row = row(name, &read(&root.join("proved").join(format!("{name}.json"))));
        assert!(text.contains(&row), "{row}");
    }
}

#[test]
fn parts_are_those_that_were_proved() {
    let root = quantized_dir();
    let cases: Cases = read(&root.join("cases.json"));
    let out = env::var_os("MODELDIR_PARTS").map(PathBuf::from);
    let (mut wrong, mut cut, mut refused) = (Vec::new(), 0, 0);
    for (name, topologies) in &cases.models {
        let model = ModelDir::open(root.join("models").join(name)).unwrap();
        let path = root.join("proved").join(format!("{name}.json"));
        let proved: BTreeMap<String, Proved> =
            if out.is_some() { BTreeMap::new() } else { read(&path) };
        for topology in topologies {
            let found = cases.topologies[topology].cut(&model);
            if let Some(out) = &out {
                write(&out.join(name).join(topology), &found);
                continue;
            }
            let seen = match &found {
                Ok(parts) => Proved::Cut { parts: parts.iter().map(digest).collect() },
                Err(error) => Proved::Refused { refused: kind(error) },
            };
            *(if found.is_ok() { &mut cut } else { &mut refused }) += 1;
            if proved.get(topology) != Some(&seen) {
                let shown = found.as_ref().map_or_else(Error::to_string, |_| "cut".to_owned());
                wrong.push(format!("{name} {topology}: {shown}, which is not what was proved"));
            }
        }
        assert!(out.is_some() || proved.len() == topologies.len(), "{name}: {}", proved.len());
    }
    assert_eq!(wrong, Vec::<String>::new());
    let models = cases.models.len();
    println!("{models} layouts, {} cases of ranks: {cut} cut, {refused} refused", cut + refused);
    assert!(out.is_some() || (cut > 800 && refused > 250), "{cut} cut, {refused} refused");
}
