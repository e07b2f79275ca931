//! Quantized layers: the part of each rank stands for the same weights as the whole.
//!
//! Layers are made from structure. What is compared is not numbers but where they come from: the
//! elements of the whole from which the weight of an output and an input is computed. So there is no
//! chance that wrong elements have the right values.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::Range;

use arbitrary::{Result, Unstructured};
use modeldir::partition::{Axis, Misaligned, Part, Rule, Split, TensorShape, Tp, Uneven};
use modeldir::{ModelConfig, Partition, Quantization, Rank, Selection, Topology};
use tensorfile::TensorInfo;

use crate::layer::{Held, Layer, Leaf};
use crate::partition::header;

/// Checks one layer of any layout and size over any ranks; tells whether it was cut.
///
/// # Errors
///
/// Says which weight of which rank is not that of the whole.
pub fn quantized(data: &[u8]) -> Result<bool, String> {
    let mut input = Unstructured::new(data);
    let Ok((layer, split, size)) = drafts(&mut input) else { return Ok(false) };
    let case = Case::new(layer, split)?;
    for rank in Rank::all(size) {
        let wrong = |what: String| format!("{:?} {:?} rank {rank}: {what}", case.layer, case.split);
        let Some(parts) = case.cut(rank).map_err(wrong)? else { return Ok(false) };
        case.check(rank, &parts).map_err(wrong)?;
    }
    Ok(true)
}

/// Makes a layer, a cut and a number of ranks.
fn drafts(input: &mut Unstructured<'_>) -> Result<(Layer, Split, usize)> {
    let layer = Layer::draft(input)?;
    let axis = if input.arbitrary()? { Axis::Out } else { Axis::In };
    let align = if input.arbitrary()? { layer.block } else { 1 };
    let uneven = *input.choose(&[Uneven::Error, Uneven::Balanced, Uneven::Chunk])?;
    let cover = input.ratio(1, 4)?;
    let parts = *input.choose(&[1_usize, 1, 1, 2])?;
    let split = Split {
        parts: vec![Part::new(NonZeroUsize::MIN); parts],
        align: NonZeroUsize::new(align).unwrap_or(NonZeroUsize::MIN),
        uneven: Some(uneven),
        misaligned: Some(if cover { Misaligned::Cover } else { Misaligned::Error }),
        ..Split::along(axis)
    };
    Ok((layer, split, input.int_in_range(2..=5)?))
}

/// A layer and how it is cut.
struct Case {
    layer: Layer,
    leaves: Vec<Leaf>,
    infos: Vec<TensorInfo>,
    quantization: Option<Quantization>,
    rules: Partition,
    split: Split,
}

impl Case {
    fn new(layer: Layer, split: Split) -> Result<Self, String> {
        let leaves = layer.leaves();
        let named = leaves.iter().map(|leaf| (leaf.path(), leaf.dtype, leaf.shape.clone()));
        let mut named: Vec<_> = named.collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        let infos = header(&named)?.tensors().to_vec();
        let config = layer.config().to_string();
        let config = ModelConfig::from_json("config.json", config.as_bytes());
        let config = config.map_err(|error| error.to_string())?;
        let pattern = "m.*".parse().map_err(|error| format!("{error:?}"))?;
        let rule = Rule { tp: Some(Tp::Split(split.clone())), ..Rule::new(pattern) };
        Ok(Self {
            leaves,
            infos,
            quantization: Quantization::from_config(&config),
            rules: Partition { rules: vec![rule], ..Partition::default() },
            layer,
            split,
        })
    }

    /// What a rank gets of each tensor; none if the cut is refused.
    fn cut(&self, rank: Rank) -> Result<Option<Vec<Selection>>, String> {
        let shapes: Vec<TensorShape<'_>> = self.infos.iter().map(TensorShape::from).collect();
        let topology = Topology::tensor_parallel(rank);
        let Ok(cut) = self.rules.cut(&topology, self.quantization.as_ref(), &shapes) else {
            return Ok(None);
        };
        let parts: Option<Vec<_>> = cut.parts.into_iter().collect();
        parts.map(Some).ok_or_else(|| "a tensor that the rank does not get".to_owned())
    }

    /// Compares every weight of a rank with that of the whole.
    fn check(&self, rank: Rank, parts: &[Selection]) -> Result<(), String> {
        let of_part = Held::new(&self.leaves, |leaf| {
            let mut parts = self.infos.iter().zip(parts);
            let found = parts.find(|(info, _)| info.name() == leaf.path());
            let (info, part) = found.ok_or("no such tensor")?;
            elements(info, part)
        })?;
        let whole = Held::new(&self.leaves, |leaf| {
            Ok((leaf.shape.clone(), (0..leaf.shape.iter().product()).collect()))
        })?;
        let Layer { outputs, inputs, .. } = self.layer;
        let is_row = self.split.axis == Axis::In;
        let len = if is_row { inputs } else { outputs };
        let is_covered = self.split.misaligned == Some(Misaligned::Cover);
        let along: Vec<usize> = match self.split.ranges(len, rank, Uneven::Error) {
            Ok(ranges) => ranges.into_iter().flatten().collect(),
            // What cannot be cut is whole on every rank, whatever its length.
            Err(_) if is_covered => (0..len).collect(),
            Err(misfit) => return Err(misfit.to_string()),
        };
        let (rows, columns) = match is_row {
            true => ((0..outputs).collect(), along),
            false => (along, (0..inputs).collect()),
        };
        match is_covered {
            true => self.covered(&whole, &of_part, &rows, &columns),
            false => self.same(&whole, &of_part, &rows, &columns),
        }
    }

    /// A consumer who knows nothing of the whole computes the same weights, and no more.
    fn same(
        &self,
        whole: &Held,
        part: &Held,
        rows: &[usize],
        columns: &[usize],
    ) -> Result<(), String> {
        for (row, of_whole_row) in rows.iter().enumerate() {
            for (column, of_whole_column) in columns.iter().enumerate() {
                let expected = self.layer.reads(whole, *of_whole_row, *of_whole_column)?;
                let found = self.layer.reads(part, row, column);
                if found.as_ref() != Ok(&expected) {
                    return Err(format!("{row}, {column} is {found:?}, not {expected:?}"));
                }
            }
        }
        if rows.is_empty() || columns.is_empty() {
            return Ok(());
        }
        for (row, column) in [(rows.len(), 0), (0, columns.len())] {
            if self.layer.reads(part, row, column).is_ok() {
                return Err(format!("{row}, {column} is another rank's"));
            }
        }
        Ok(())
    }

    /// Whatever the weights of the rank are computed from is there.
    fn covered(
        &self,
        whole: &Held,
        part: &Held,
        rows: &[usize],
        columns: &[usize],
    ) -> Result<(), String> {
        let held: BTreeSet<_> = part.elements().collect();
        for row in rows {
            for column in columns {
                let needed = self.layer.reads(whole, *row, *column)?;
                if let Some(lost) = needed.iter().find(|read| !held.contains(&(read.leaf, read.at)))
                {
                    return Err(format!("{row}, {column} needs {lost:?}"));
                }
            }
        }
        Ok(())
    }
}

/// The shape of a part, and the elements of the whole that it holds, in order.
fn elements(info: &TensorInfo, part: &Selection) -> Result<(Vec<usize>, Vec<usize>), String> {
    let runs = part.lower(info).map_err(|error| error.to_string())?;
    let size = usize::try_from(info.dtype().bits()).map_err(|error| error.to_string())? / 8;
    let of_run = |run: Range<usize>| run.start / size..run.end / size;
    Ok((runs.shape().to_vec(), runs.iter().flat_map(of_run).collect()))
}
