//! The overlap of the ranks of a job: bytes on several ranks, and tensors on none.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use modeldir::partition::TensorShape;
use modeldir::{IndexedTensor, ModelDir, Partition, Result, Selection, Topology};
use tensorfile::ByteRuns;

/// Bytes on several ranks of a job, and tensors on none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holdings {
    /// For each rank, how many of its bytes other ranks hold too.
    pub(super) replicated: Vec<u64>,
    /// The tensors of which no rank holds anything, by name.
    pub(super) left_out: Vec<String>,
}

impl Holdings {
    /// Compares what the ranks take of each tensor, from headers alone.
    ///
    /// # Errors
    ///
    /// Those of cutting the model.
    pub(super) fn new(model: &ModelDir, partition: &Partition, ranks: &[Topology]) -> Result<Self> {
        let held = Held::new(model, partition, ranks)?;
        let (mut replicated, mut left_out) = (vec![0; ranks.len()], Vec::new());
        for (position, tensor) in model.tensors().enumerate() {
            let holders = held.holders(position);
            if holders.is_empty() {
                left_out.push(tensor.name().to_owned());
            }
            let parts: Vec<_> = holders.keys().map(|number| &held.selections[*number]).collect();
            let counts: Vec<_> = holders.values().map(Vec::len).collect();
            let shared = shared_bytes(model, tensor, &parts, &counts)?;
            for (ranks, bytes) in holders.values().zip(shared) {
                ranks.iter().for_each(|rank| replicated[*rank] += bytes);
            }
        }
        Ok(Self { replicated, left_out })
    }
}

/// The part of each tensor for each rank. Layers are alike, so there are few selections: each is
/// kept once, and numbered.
struct Held {
    selections: Vec<Selection>,
    /// By rank, then by tensor: the number of the selection; `None` if the rank takes nothing.
    parts: Vec<Vec<Option<usize>>>,
}

impl Held {
    fn new(model: &ModelDir, partition: &Partition, ranks: &[Topology]) -> Result<Self> {
        let shapes: Vec<_> = model
            .tensors()
            .map(|t| TensorShape { name: t.name(), dtype: t.dtype(), shape: t.shape() })
            .collect();
        let quantization = model.quantization()?;
        let mut numbers: HashMap<Selection, usize> = HashMap::new();
        let mut parts = Vec::with_capacity(ranks.len());
        for topology in ranks {
            let cut = partition.cut(topology, quantization, &shapes)?;
            let number = |part: Option<Selection>| {
                let next = numbers.len();
                part.map(|selection| *numbers.entry(selection).or_insert(next))
            };
            parts.push(cut.parts.into_iter().map(number).collect());
        }
        let mut selections: Vec<_> = numbers.into_iter().collect();
        selections.sort_unstable_by_key(|(_, number)| *number);
        let selections = selections.into_iter().map(|(selection, _)| selection).collect();
        Ok(Self { selections, parts })
    }

    /// The ranks that hold a part of a tensor, by the number of their selection.
    fn holders(&self, tensor: usize) -> BTreeMap<usize, Vec<usize>> {
        let mut holders: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (rank, parts) in self.parts.iter().enumerate() {
            if let Some(number) = parts[tensor] {
                holders.entry(number).or_default().push(rank);
            }
        }
        holders
    }
}

/// For each part, its bytes on more than one rank; `counts` holds the number of ranks by part.
fn shared_bytes(
    model: &ModelDir,
    tensor: IndexedTensor<'_>,
    parts: &[&Selection],
    counts: &[usize],
) -> Result<Vec<u64>> {
    let runs =
        parts.iter().map(|part| part.lower(tensor.info()).map_err(|error| error.at(model.path())));
    let runs: Vec<ByteRuns> = runs.collect::<tensorfile::Result<_>>()?;
    if runs.iter().map(ByteRuns::byte_len).sum::<usize>() == tensor.byte_len() {
        // The parts make up the tensor, so different ones do not overlap.
        let bytes = |(runs, ranks): (&ByteRuns, &usize)| {
            if *ranks > 1 { runs.byte_len() as u64 } else { 0 }
        };
        return Ok(runs.iter().zip(counts).map(bytes).collect());
    }
    let shared = covered_twice(&runs, counts);
    let common = |run: Range<usize>| -> usize {
        let first = shared.partition_point(|range| range.end <= run.start);
        let touching = shared[first..].iter().take_while(|range| range.start < run.end);
        touching.map(|range| range.end.min(run.end) - range.start.max(run.start)).sum()
    };
    Ok(runs.iter().map(|runs| runs.iter().map(common).sum::<usize>() as u64).collect())
}

/// The ranges of bytes that more than one rank holds, in order.
fn covered_twice(runs: &[ByteRuns], counts: &[usize]) -> Vec<Range<usize>> {
    let mut ends = Vec::new();
    for (runs, ranks) in runs.iter().zip(counts) {
        ends.extend(runs.iter().flat_map(|run| [(run.start, *ranks, 0), (run.end, 0, *ranks)]));
    }
    ends.sort_unstable_by_key(|(at, ..)| *at);
    let (mut ranges, mut ranks, mut start) = (Vec::new(), 0, 0);
    for (at, more, fewer) in ends {
        if ranks > 1 && start < at {
            ranges.push(start..at);
        }
        (ranks, start) = (ranks + more - fewer, at);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::Holdings;
    use crate::args::JobArgs;
    use modeldir::partition::Job;
    use modeldir::{ModelDir, Partition, Topology};

    fn open(model: &str) -> ModelDir {
        ModelDir::open(modeldir_fixtures::model(model)).unwrap()
    }

    fn tensor_parallel(size: usize) -> Vec<Topology> {
        JobArgs::default().or_tp(size).ranks().unwrap()
    }

    #[test]
    fn ranks_of_one_group_hold_alike_what_the_library_says() {
        let mut compared = 0;
        for name in ["llama", "phi3", "qwen3-moe", "mixtral", "gpt-oss", "gpt2"] {
            let model = open(name);
            let partition = Partition::for_config(model.config().unwrap()).unwrap();
            for size in [1, 2, 4, 8] {
                let ranks = tensor_parallel(size);
                let Ok(found) = Holdings::new(&model, &partition, &ranks) else { continue };
                for (topology, bytes) in ranks.iter().zip(found.replicated) {
                    let plan = model.plan_for(&partition, topology).unwrap();
                    let report = plan.partition_report().unwrap();
                    assert_eq!(bytes, report.replicated_bytes, "{name} {topology:?}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 6 * (1 + 2 + 4), "{compared}");
    }

    #[test]
    fn what_several_stages_hold_is_replicated_and_what_none_holds_is_left_out() {
        let rules = r#"{"rules": [
            {"match": "model.norm.weight", "pp": "everywhere"},
            {"match": "model.embed_tokens.weight", "pp": "first"},
            {"match": "lm_head.weight", "tp": "skip"}
        ]}"#;
        let stages = Job { pp: 2, ..Job::default() }.ranks().unwrap().collect::<Vec<_>>();
        let found = Holdings::new(&open("llama"), &serde_json::from_str(rules).unwrap(), &stages);
        let found = found.unwrap();
        assert_eq!(
            (found.replicated, found.left_out),
            (vec![128; 2], vec!["lm_head.weight".into()])
        );
    }
}
