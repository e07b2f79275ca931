//! A small model, rules and ranks, and the check that each rank loads what numpy would cut.

use std::fs;

use modeldir::partition::PartitionError;
use modeldir::{Error, ErrorKind, LoadOptions, LoadPlan, ModelDir, Partition, Topology};
use modeldir_fixtures::{DTYPES, Tensor, dtype_bits, file};
use proptest::prelude::*;
use serde_json::{Value, json};
use tensorfile::{ErrorKind as FileErrorKind, SelectionFault};

use super::oracle::{Lists, UNEVEN};
use crate::loading::threads;

/// What to do with lengths that do not divide.
pub(super) fn any_uneven() -> impl Strategy<Value = &'static str> {
    prop::sample::select(UNEVEN.to_vec())
}

/// The ranks of a tensor-parallel group, as they are written in JSON.
pub(super) fn tensor_parallel(size: usize) -> Vec<Value> {
    (0..size).map(|rank| json!({ "tp": format!("{rank}/{size}") })).collect()
}

/// What a rank takes of a tensor.
#[derive(Clone, Debug)]
pub(super) enum Take {
    Part(Lists),
    Nothing,
    /// The rank is refused because of this tensor.
    Refused,
}

/// A tensor of a case.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) name: String,
    /// None for a tensor of each dtype, of which the name goes before the name.
    pub(super) dtype: Option<&'static str>,
    pub(super) shape: Vec<usize>,
    /// By rank.
    pub(super) takes: Vec<Take>,
    /// Whether the ranks together hold all of it.
    pub(super) is_covered: bool,
}

/// A model and the ranks that load it.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// `quantization_config` in `config.json`.
    pub(super) quantization: Option<Value>,
    pub(super) partition: Value,
    pub(super) ranks: Vec<Value>,
    pub(super) tensors: Vec<Given>,
}

/// What has been loaded of a tensor by the ranks so far.
struct Gathered {
    bits: Vec<Option<bool>>,
}

impl Case {
    /// Writes the model and loads it on each rank: once with all dtypes that fill bytes, and once
    /// with each that does not.
    pub(super) fn check(&self) {
        let whole = |(_, bits): &&(&str, usize)| bits % 8 == 0;
        let (whole, packed): (Vec<_>, Vec<_>) = DTYPES.iter().partition(whole);
        let names = |dtypes: &[&(&'static str, usize)]| -> Vec<_> {
            dtypes.iter().map(|(name, _)| *name).collect()
        };
        self.check_dtypes(&names(&whole));
        if self.tensors.iter().any(|given| given.dtype.is_some()) {
            return;
        }
        for dtype in packed {
            let len = |given: &Given| given.shape.iter().product::<usize>() * dtype.1;
            if self.tensors.iter().all(|given| len(given) % 8 == 0) {
                self.check_dtypes(&names(&[dtype]));
            }
        }
    }

    fn check_dtypes(&self, dtypes: &[&'static str]) {
        let tensors = self.tensors(dtypes);
        let dir = self.write(&tensors);
        let model = ModelDir::open(dir.path()).unwrap();
        let partition: Partition = serde_json::from_value(self.partition.clone()).unwrap();
        let mut gathered: Vec<_> =
            tensors.iter().map(|(tensor, _)| Gathered::new(tensor)).collect();
        let mut all_loaded = true;
        for (rank, topology) in self.ranks.iter().enumerate() {
            let topology: Topology = serde_json::from_value(topology.clone()).unwrap();
            let found = model.plan_for(&partition, &topology);
            if let Some(expected) = refusal(&tensors, rank) {
                let is_expected = found.as_ref().is_err_and(|error| expected.is(error));
                assert!(is_expected, "{expected:?} on rank {rank}, not {found:?}\n{self:#?}");
                all_loaded = false;
                continue;
            }
            assert!(found.is_ok(), "{found:?} on rank {rank}\n{self:#?}");
            self.check_rank(&found.unwrap(), &tensors, rank, &mut gathered);
        }
        for ((tensor, given), gathered) in tensors.iter().zip(&gathered) {
            if all_loaded && given.is_covered {
                assert!(gathered.is_all_of(tensor), "{} is not whole\n{self:#?}", tensor.name);
            }
        }
    }

    /// Compares what one rank loads with what it is to take.
    fn check_rank(
        &self,
        plan: &LoadPlan,
        tensors: &[(Tensor, &Given)],
        rank: usize,
        gathered: &mut [Gathered],
    ) {
        let options = LoadOptions { threads: threads(1), ..LoadOptions::default() };
        let store = plan.load_with(&options).unwrap();
        let mut loaded = store.iter();
        for ((tensor, given), gathered) in tensors.iter().zip(gathered) {
            let Take::Part(lists) = &given.takes[rank] else { continue };
            let expected = tensor.take(lists);
            let (name, found) = loaded.next().expect("as many as are taken");
            assert_eq!(name, tensor.name);
            assert_eq!(found.shape(), expected.shape, "{name} on rank {rank}\n{self:#?}");
            assert_eq!(found.bytes(), expected.data, "{name} on rank {rank}\n{self:#?}");
            gathered.add(tensor, lists, found.bytes());
        }
        assert!(loaded.next().is_none(), "{:?}\n{self:#?}", store.names().collect::<Vec<_>>());
        assert_eq!(plan.bytes_selected(), store.byte_len());
    }

    /// The tensors, by name.
    fn tensors(&self, dtypes: &[&'static str]) -> Vec<(Tensor, &Given)> {
        let mut tensors = Vec::new();
        for given in &self.tensors {
            match given.dtype {
                Some(dtype) => tensors.push((tensor(&given.name, dtype, &given.shape), given)),
                None => tensors.extend(dtypes.iter().map(|dtype| {
                    (tensor(&format!("{dtype}.{}", given.name), dtype, &given.shape), given)
                })),
            }
        }
        tensors.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        tensors
    }

    fn write(&self, tensors: &[(Tensor, &Given)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let tensors: Vec<_> = tensors.iter().map(|(tensor, _)| tensor.clone()).collect();
        fs::write(dir.path().join("model.safetensors"), file(&tensors)).unwrap();
        if let Some(quantization) = &self.quantization {
            let config = json!({ "quantization_config": quantization });
            fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
        }
        dir
    }
}

/// Why a rank is refused.
#[derive(Debug)]
enum Refusal<'a> {
    /// By what the rules make of the numbers.
    Rules,
    /// Because the part of a tensor begins or ends within a byte.
    PartialByte(&'a str),
}

/// The first reason to refuse a rank, if there is one.
fn refusal<'a>(tensors: &'a [(Tensor, &Given)], rank: usize) -> Option<Refusal<'a>> {
    if tensors.iter().any(|(_, given)| matches!(given.takes[rank], Take::Refused)) {
        return Some(Refusal::Rules);
    }
    let cuts_a_byte = |tensor: &Tensor, given: &Given| {
        let Take::Part(lists) = &given.takes[rank] else { return false };
        let elements = tensor.elements(lists);
        let bits = dtype_bits(&tensor.dtype).unwrap();
        let mut runs = elements.chunk_by(|before, after| before + 1 == *after);
        runs.any(|run| run[0] * bits % 8 != 0 || run.len() * bits % 8 != 0)
    };
    let cut = tensors.iter().find(|(tensor, given)| cuts_a_byte(tensor, given))?;
    Some(Refusal::PartialByte(&cut.0.name))
}

impl Refusal<'_> {
    fn is(&self, error: &Error) -> bool {
        match (self, error.kind()) {
            (
                Self::Rules,
                ErrorKind::Partition(
                    PartitionError::Cut { .. } | PartitionError::UnevenExperts { .. },
                ),
            ) => true,
            (Self::PartialByte(name), ErrorKind::File(FileErrorKind::Selection(fault))) => {
                matches!(fault, SelectionFault::PartialByte { .. }) && error.tensor() == Some(*name)
            }
            _ => false,
        }
    }
}

impl Gathered {
    fn new(tensor: &Tensor) -> Self {
        Self { bits: vec![None; tensor.data.len() * 8] }
    }

    /// Puts what a rank loaded where it was.
    fn add(&mut self, tensor: &Tensor, lists: &Lists, loaded: &[u8]) {
        let bits = dtype_bits(&tensor.dtype).unwrap();
        for (from, to) in tensor.elements(lists).into_iter().enumerate() {
            for bit in 0..bits {
                let at = from * bits + bit;
                self.bits[to * bits + bit] = Some(loaded[at / 8] >> (at % 8) & 1 == 1);
            }
        }
    }

    fn is_all_of(&self, tensor: &Tensor) -> bool {
        let bit = |at: usize| Some(tensor.data[at / 8] >> (at % 8) & 1 == 1);
        (0..self.bits.len()).map(bit).eq(self.bits.iter().copied())
    }
}

/// A tensor whose elements are their own positions, as far as they are wide enough.
fn tensor(name: &str, dtype: &str, shape: &[usize]) -> Tensor {
    let bits = dtype_bits(dtype).unwrap();
    let num_elements: usize = shape.iter().product();
    if bits < 16 {
        return Tensor::random(name, dtype, shape);
    }
    let element = |at: usize| {
        let mut bytes = at.to_le_bytes().to_vec();
        bytes.resize(bits / 8, 0);
        bytes
    };
    Tensor::new(name, dtype, shape, (0..num_elements).flat_map(element).collect())
}
