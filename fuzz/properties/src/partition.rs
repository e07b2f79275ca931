//! Rules about names: whatever they say, the parts of all ranks make up each tensor, and those of a
//! quantized layer stand for its weights.

use std::ops::Range;

use arbitrary::{Result, Unstructured};
use modeldir::partition::{ExpertSplit, ExtraLayers, LayerSplit, Pp, TensorShape, Tp};
use modeldir::{Dtype, Partition, Rank, Selection, Topology};
use tensorfile::{Header, HeaderOptions, TensorInfo};

use crate::quantized::quantized;

/// Parts of names, so that rules and tensors have something to do with each other.
const WORDS: [&str; 14] = [
    "layers",
    "0",
    "1",
    "2",
    "experts",
    "q_proj",
    "k_proj",
    "o_proj",
    "down_proj",
    "norm",
    "weight",
    "bias",
    "weight_scale_inv",
    "qweight",
];
const DTYPES: [Dtype; 6] =
    [Dtype::U8, Dtype::F16, Dtype::F32, Dtype::I32, Dtype::F4, Dtype::F8E4M3];

/// Checks rules, given as JSON after some bytes that make tensors and a number of ranks; the same
/// bytes also make a quantized layer.
///
/// # Errors
///
/// Says what does not hold.
pub fn partition(data: &[u8]) -> Result<(), String> {
    quantized(data)?;
    let mut input = Unstructured::new(data);
    let Ok((tensors, sizes)) = drafts(&mut input) else { return Ok(()) };
    let Ok(rules) = Partition::from_json(input.take_rest()) else { return Ok(()) };
    let again = serde_json::to_vec(&rules).map_err(|error| error.to_string())?;
    match Partition::from_json(&again) {
        Ok(same) if same == rules => {}
        other => return Err(format!("{rules:?} is read back as {other:?}")),
    }
    let header = header(&tensors)?;
    check(&rules, header.tensors(), sizes)
}

/// A tensor to be: its name, dtype and shape.
pub(crate) type Draft = (String, Dtype, Vec<usize>);

/// Makes a few tensors of short names, and the number of stages, tensor ranks and expert ranks.
fn drafts(input: &mut Unstructured<'_>) -> Result<(Vec<Draft>, [usize; 3])> {
    let sizes =
        [input.int_in_range(1..=3)?, input.int_in_range(1..=5)?, input.int_in_range(1..=3)?];
    let mut drafts = Vec::new();
    for _ in 0..input.int_in_range(1..=5)? {
        let mut name = Vec::new();
        for _ in 0..input.int_in_range(1..=4)? {
            name.push(*input.choose(&WORDS)?);
        }
        let mut shape = Vec::new();
        for _ in 0..input.int_in_range(0..=3)? {
            shape.push(input.int_in_range(0..=24)?);
        }
        drafts.push((name.join("."), *input.choose(&DTYPES)?, shape));
    }
    drafts.sort();
    drafts.dedup_by(|one, other| one.0 == other.0);
    Ok((drafts, sizes))
}

/// The header of a file of these tensors; those that do not fill whole bytes are left out.
pub(crate) fn header(drafts: &[Draft]) -> Result<Header, String> {
    let (mut members, mut at) = (Vec::new(), 0);
    for (name, dtype, shape) in drafts {
        let Some(byte_len) = dtype.byte_len(shape.iter().product()) else { continue };
        let end = at + byte_len;
        members.push(format!(
            r#""{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{at},{end}]}}"#
        ));
        at = end;
    }
    let json = format!("{{{}}}", members.join(","));
    let len = u64::try_from(json.len()).map_err(|error| error.to_string())?;
    let file = [&len.to_le_bytes(), json.as_bytes(), &vec![0; at]].concat();
    let header = Header::from_bytes(&file, &HeaderOptions::default());
    header.map_err(|error| format!("{json}: {error}"))
}

/// Checks what every rank of every kind takes, and that it is everything if all can be cut.
fn check(rules: &Partition, tensors: &[TensorInfo], sizes: [usize; 3]) -> Result<(), String> {
    let shapes: Vec<TensorShape<'_>> = tensors.iter().map(TensorShape::from).collect();
    let mut taken: Vec<Vec<Range<usize>>> = vec![Vec::new(); tensors.len()];
    let mut all_cut = true;
    for topology in topologies(sizes)? {
        let cut = match rules.cut(&topology, None, &shapes) {
            Ok(cut) => cut,
            Err(error) => {
                let shown = error.to_string();
                if shown.chars().any(|c| c.is_control() && c != '\n') {
                    return Err(format!("shown as {shown:?}"));
                }
                all_cut = false;
                continue;
            }
        };
        if cut.parts.len() != tensors.len() {
            return Err(format!("{} parts of {} tensors", cut.parts.len(), tensors.len()));
        }
        for ((part, info), taken) in cut.parts.iter().zip(tensors).zip(&mut taken) {
            if let Some(part) = part {
                taken.extend(runs(part, info)?);
            }
        }
    }
    if !all_cut || leaves_out(rules) {
        return Ok(());
    }
    tensors.iter().zip(taken).try_for_each(|(info, taken)| covered(info, taken))
}

/// Every rank there is, of so many stages, tensor ranks and expert ranks.
fn topologies([stages, ranks, experts]: [usize; 3]) -> Result<Vec<Topology>, String> {
    let mut all = Vec::new();
    for stage in Rank::all(stages) {
        for rank in Rank::all(ranks) {
            let topology = Topology::tensor_parallel(rank).pipeline(stage, LayerSplit::Front);
            let topology = topology.map_err(|error| error.to_string())?;
            all.extend(Rank::all(experts).map(|expert| match experts {
                1 => topology.clone(),
                _ => topology.clone().experts(expert, ExpertSplit::Linear),
            }));
        }
    }
    Ok(all)
}

/// The runs of bytes of a part, which must lie within the tensor.
fn runs(part: &Selection, info: &TensorInfo) -> Result<Vec<Range<usize>>, String> {
    let lowered = part.lower(info);
    let lowered = lowered.map_err(|error| format!("{part:?} of {info:?}: {error}"))?;
    let runs: Vec<_> = lowered.iter().collect();
    match runs.iter().find(|run| run.end > info.byte_len() || run.start > run.end) {
        Some(run) => Err(format!("{run:?} of {info:?}")),
        None => Ok(runs),
    }
}

/// Whether rules say that something is nobody's.
fn leaves_out(rules: &Partition) -> bool {
    let skips = rules
        .rules
        .iter()
        .any(|rule| rule.tp == Some(Tp::Skip) || matches!(rule.pp, Some(Pp::Skip | Pp::Stage(_))));
    skips || rules.extra_layers == ExtraLayers::Skip
}

/// Fails unless the runs of all ranks reach every byte.
fn covered(info: &TensorInfo, mut taken: Vec<Range<usize>>) -> Result<(), String> {
    taken.sort_by_key(|run| run.start);
    let mut at = 0;
    for run in &taken {
        if run.start > at {
            break;
        }
        at = at.max(run.end);
    }
    match at == info.byte_len() {
        true => Ok(()),
        false => Err(format!("{info:?}: no rank holds byte {at}; taken: {taken:?}")),
    }
}
