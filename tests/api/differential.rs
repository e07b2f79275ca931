//! The header parser against the crate `safetensors` 0.8.0: the same verdict, the same bytes.

mod bites;
mod draft;

use std::collections::BTreeMap;
use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestCaseResult;
use safetensors::SafeTensors;
use tensorfile::{Error, TensorFile};

use bites::{bite, bitten};
use draft::{apply, change, valid};

/// Where we refuse on purpose what the reference takes; the one list of exceptions.
///
/// All of them have two readings. A name or a metadata key given twice: the reference keeps the
/// last. A tensor written as an array of its fields: the reference takes it, the format has objects.
fn is_exception(error: &Error) -> bool {
    match error {
        Error::DuplicateTensor { .. } | Error::DuplicateMetadataKey { .. } => true,
        Error::InvalidTensor { message, .. } => message.contains("sequence, expected an object"),
        _ => false,
    }
}

/// Compares the verdicts on a file, and if both take it, everything in it.
fn compare(bytes: &[u8]) -> TestCaseResult {
    let (theirs, ours) = (SafeTensors::deserialize(bytes), TensorFile::from_bytes(bytes));
    match (theirs, ours) {
        (Err(_), Err(_)) => Ok(()),
        (Ok(theirs), Ok(ours)) => compare_tensors(bytes, &theirs, &ours),
        (Ok(_), Err(error)) if is_exception(&error) => Ok(()),
        (Ok(_), Err(error)) => Err(TestCaseError::fail(format!("only we refuse: {error}"))),
        (Err(error), Ok(_)) => Err(TestCaseError::fail(format!("only they refuse: {error}"))),
    }
}

fn compare_tensors(
    bytes: &[u8],
    theirs: &SafeTensors<'_>,
    ours: &TensorFile<&[u8]>,
) -> TestCaseResult {
    let mut names = theirs.names();
    names.sort_unstable();
    prop_assert_eq!(names, ours.names().collect::<Vec<_>>());
    for (name, theirs) in theirs.iter() {
        let (view, read) = (ours.view(name).unwrap(), ours.read(name).unwrap());
        prop_assert_eq!(format!("{}", theirs.dtype()), view.dtype().name());
        prop_assert_eq!(theirs.shape(), view.shape());
        prop_assert_eq!(theirs.data(), view.bytes());
        prop_assert_eq!(theirs.data(), read.bytes());
    }
    let (_, metadata) = SafeTensors::read_metadata(bytes).unwrap();
    let metadata = metadata.metadata().clone().map(BTreeMap::from_iter);
    prop_assert_eq!(metadata.as_ref(), ours.metadata());
    Ok(())
}

/// The files of the shipped models, the small ones, which reach the parser's every branch.
fn shipped_files() -> Vec<Vec<u8>> {
    let folders =
        modeldir_fixtures::models().into_iter().map(|name| modeldir_fixtures::model(&name));
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = files.map(|entry| entry.unwrap().path());
    let weights = paths.filter(|path| path.extension().is_some_and(|end| end == "safetensors"));
    let mut files: Vec<Vec<u8>> = weights.map(|path| fs::read(path).unwrap()).collect();
    files.sort_by_key(Vec::len);
    files.truncate(12);
    files
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn verdicts_are_equal_on_drafts_that_were_spoiled_or_written_otherwise(
        mut draft in valid(),
        changes in vec((any::<Index>(), change()), 0..4),
    ) {
        for (at, change) in &changes {
            apply(&mut draft, *at, change);
        }
        compare(&draft.to_bytes())?;
    }

    #[test]
    fn verdicts_are_equal_on_files_with_bitten_headers(
        draft in valid(),
        bites in vec(bite(), 1..4),
    ) {
        compare(&bitten(&draft.to_bytes(), &bites))?;
    }

    #[test]
    fn verdicts_are_equal_on_any_bytes(bytes in vec(any::<u8>(), 0..64), len in 0_u8..40) {
        compare(&bytes)?;
        compare(&[&[len, 0, 0, 0, 0, 0, 0, 0], &bytes[..]].concat())?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn verdicts_are_equal_on_shipped_files_with_bitten_headers(
        file in select(shipped_files()),
        bites in vec(bite(), 0..3),
    ) {
        compare(&bitten(&file, &bites))?;
    }
}

#[test]
fn every_exception_is_one_that_the_reference_takes() {
    let exceptions = [
        (
            r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#,
            4,
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"\u0061":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#,
            4,
        ),
        (r#"{"__metadata__":{"a":"b","a":"c"}}"#, 0),
        (r#"{"a":["F32",[1],[0,4]]}"#, 4),
    ];
    for (header, data_len) in exceptions {
        let header_len = (header.len() as u64).to_le_bytes();
        let bytes = [&header_len, header.as_bytes(), &vec![0; data_len]].concat();
        assert!(SafeTensors::deserialize(&bytes).is_ok(), "{header}");
        let error = TensorFile::from_bytes(&bytes).unwrap_err();
        assert!(is_exception(&error), "{header}: {error}");
    }
}
