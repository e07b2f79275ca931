//! Compares what a way gave with what must be; nothing is opened here.

use std::collections::BTreeMap;
use std::path::Path;

use modeldir::Report;
use modeldir::report::StrayTensor;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tensorfile::{Dtype, Element, Tensor};

use crate::expected::{Expected, ExpectedReport, Kind, OpenAs, Row, Stage};
use crate::refusal::Refusal;
use crate::select::sha256;
use crate::ways::{Attempt, Listing};

/// Tensors by name, or why they could not be read.
pub(crate) type Tensors = BTreeMap<String, Result<Tensor, Refusal>>;

/// Checks what one way gave. `root` is the folder of the case, or of its copy; `old` is what the
/// files held before they were changed, if they were.
pub(crate) fn check(
    expected: &Expected,
    attempt: &Attempt,
    root: &Path,
    old: Option<&Tensors>,
) -> Result<(), String> {
    let said = |refusal: &Refusal| expected.mentions.check(refusal, root);
    let listing = match (&attempt.listing, expected.kind) {
        (Err(refusal), Kind::Error(Stage::Open | Stage::OpenOrRead)) => return said(refusal),
        (Err(refusal), _) if expected.either => return said(refusal),
        (Err(refusal), _) => return Err(format!("must open: {}", refusal.text)),
        (Ok(_), Kind::Error(Stage::Open)) if !expected.either => {
            return Err("opened, and must be refused".to_owned());
        }
        (Ok(listing), _) => listing,
    };
    check_listing(expected, listing)?;
    let errors = errors(attempt);
    match expected.kind {
        Kind::Error(Stage::Read) if expected.has_failing_query() => none_of(&errors)?,
        Kind::Ok if !expected.either => none_of(&errors)?,
        Kind::Error(_) if errors.is_empty() && !expected.either => {
            return Err("everything was read, and something must be refused".to_owned());
        }
        _ => errors.iter().try_for_each(|refusal| said(refusal))?,
    }
    if attempt.before_reading.is_none() {
        check_tensors(expected, listing, attempt, old)?;
    }
    Ok(())
}

/// The errors of a way that could be opened.
fn errors(attempt: &Attempt) -> Vec<&Refusal> {
    let of_tensors = attempt.tensors.values().filter_map(|tensor| tensor.as_ref().err());
    attempt.before_reading.iter().chain(of_tensors).collect()
}

fn none_of(errors: &[&Refusal]) -> Result<(), String> {
    errors.first().map_or(Ok(()), |refusal| Err(format!("must be read: {}", refusal.text)))
}

fn check_listing(expected: &Expected, listing: &Listing) -> Result<(), String> {
    if let Some(count) = expected.count {
        equal("number of tensors", &listing.tensors.len(), &count)?;
    }
    if expected.complete {
        let (found, wanted) = (listing.tensors.keys(), expected.tensors.keys());
        equal("names", &found.collect::<Vec<_>>(), &wanted.collect::<Vec<_>>())?;
    }
    if let Some(name) = expected.absent.iter().find(|name| listing.tensors.contains_key(*name)) {
        return Err(format!("{name} is listed"));
    }
    if let Some(metadata) = &expected.metadata {
        equal("metadata", &listing.metadata, metadata)?;
    }
    if let Some(byte_len) = expected.planned_bytes {
        equal("planned bytes", &listing.planned_bytes, &byte_len)?;
    }
    check_report(expected, &listing.report)?;
    expected.tensors.iter().try_for_each(|(name, row)| check_listed(expected, listing, name, row))
}

fn check_report(expected: &Expected, report: &Report) -> Result<(), String> {
    for ignored in &expected.ignored_files {
        if !report.ignored_files.iter().any(|file| file.path == Path::new(ignored)) {
            return Err(format!("{ignored} is not among the ignored files:\n{report}"));
        }
    }
    let names = |strays: &[StrayTensor]| -> Vec<String> {
        strays.iter().map(|stray| stray.tensor.clone()).collect()
    };
    let ExpectedReport { unindexed_tensors, stale_tensors, total_size_differs, aliases } =
        &expected.report;
    if let Some(wanted) = unindexed_tensors {
        equal("unindexed tensors", &names(&report.unindexed), wanted)?;
    }
    if let Some(wanted) = stale_tensors {
        equal("stale tensors", &names(&report.stale), wanted)?;
    }
    if let Some(wanted) = total_size_differs {
        let differs = report.total_size.as_ref().is_some_and(|total| !total.is_exact());
        equal("total_size differs", &differs, wanted)?;
    }
    if let Some(wanted) = aliases {
        let found = report.aliases.iter().map(|alias| (alias.name.clone(), alias.target.clone()));
        equal("aliases", &found.collect(), wanted)?;
    }
    Ok(())
}

fn check_listed(
    expected: &Expected,
    listing: &Listing,
    name: &str,
    row: &Row,
) -> Result<(), String> {
    let listed = listing.tensors.get(name).ok_or_else(|| format!("{name} is not listed"))?;
    equal(&format!("{name}: dtype"), &listed.dtype, &row.dtype)?;
    equal(&format!("{name}: shape"), &listed.shape, &row.shape)?;
    equal(&format!("{name}: bytes"), &listed.byte_len, &row.byte_len)?;
    match &row.file {
        Some(file) if expected.open_as == OpenAs::Dir => {
            equal(&format!("{name}: file"), &listed.file.as_path(), &Path::new(file))
        }
        _ => Ok(()),
    }
}

fn check_tensors(
    expected: &Expected,
    listing: &Listing,
    attempt: &Attempt,
    old: Option<&Tensors>,
) -> Result<(), String> {
    for (name, tensor) in &attempt.tensors {
        let Ok(tensor) = tensor else { continue };
        let listed = &listing.tensors[name];
        equal(&format!("{name}: dtype as read"), &tensor.dtype().name(), &listed.dtype.as_str())?;
        equal(&format!("{name}: shape as read"), &tensor.shape(), &listed.shape.as_slice())?;
        equal(&format!("{name}: bytes as read"), &(tensor.byte_len() as u64), &listed.byte_len)?;
        if let Some(Ok(old)) = old.map(|old| &old[name]) {
            if tensor.bytes() != old.bytes() {
                return Err(format!("{name}: other bytes than before the change"));
            }
        }
    }
    for (name, values) in &expected.values {
        match attempt.tensors.get(name) {
            Some(Ok(tensor)) => {
                check_values(tensor, values).map_err(|wrong| format!("{name}: {wrong}"))?;
            }
            Some(Err(_)) => {}
            None => return Err(format!("{name}: its values were not read")),
        }
    }
    check_digests(expected, &attempt.tensors)
}

/// Checks the bytes of tensors that were read against those that `expected.json` gives.
pub(crate) fn check_digests(expected: &Expected, tensors: &Tensors) -> Result<(), String> {
    for (name, row) in &expected.tensors {
        let Some(wanted) = &row.sha256 else { continue };
        match tensors.get(name) {
            Some(Ok(tensor)) => equal(&format!("{name}: sha256"), &sha256(tensor.bytes()), wanted)?,
            Some(Err(_)) => {}
            None => return Err(format!("{name}: its bytes were not read")),
        }
    }
    Ok(())
}

/// Checks that two ways gave the same tensors.
pub(crate) fn check_agreement(one: &Attempt, other: &Attempt) -> Result<(), String> {
    equal("names read", &other.tensors.keys().collect::<Vec<_>>(), &one.tensors.keys().collect())?;
    for (name, tensor) in &one.tensors {
        if let (Ok(tensor), Ok(other)) = (tensor, &other.tensors[name]) {
            if tensor.bytes() != other.bytes() {
                return Err(format!("{name}: other bytes than by {:?}", one.way));
            }
        }
    }
    Ok(())
}

/// Fails with both sides unless they are equal.
pub(crate) fn equal<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &T,
    wanted: &T,
) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found:?}, must be {wanted:?}")) }
}

/// Checks the elements of a tensor, by the product's typed access.
fn check_values(tensor: &Tensor, wanted: &Value) -> Result<(), String> {
    match tensor.dtype() {
        Dtype::Bool => check_elements::<bool>(tensor, wanted),
        Dtype::U8 => check_elements::<u8>(tensor, wanted),
        Dtype::I8 => check_elements::<i8>(tensor, wanted),
        Dtype::U16 => check_elements::<u16>(tensor, wanted),
        Dtype::I16 => check_elements::<i16>(tensor, wanted),
        Dtype::U32 => check_elements::<u32>(tensor, wanted),
        Dtype::I32 => check_elements::<i32>(tensor, wanted),
        Dtype::U64 => check_elements::<u64>(tensor, wanted),
        Dtype::I64 => check_elements::<i64>(tensor, wanted),
        Dtype::F64 => check_elements::<f64>(tensor, wanted),
        _ => {
            let values = tensor.to_f32().map_err(|error| Refusal::from(error).text)?;
            equal("values", &values, &parsed(wanted)?)
        }
    }
}

fn check_elements<T>(tensor: &Tensor, wanted: &Value) -> Result<(), String>
where
    T: Element + PartialEq + std::fmt::Debug + DeserializeOwned,
{
    let values = tensor.to_vec::<T>().map_err(|error| Refusal::from(error).text)?;
    equal("values", &values, &parsed(wanted)?)
}

fn parsed<T: DeserializeOwned>(values: &Value) -> Result<Vec<T>, String> {
    Vec::deserialize(values).map_err(|error| format!("values {values}: {error}"))
}
