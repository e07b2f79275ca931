//! The header parser against the crate `safetensors` 0.8.0: the same verdict, the same bytes.

mod bites;
mod draft;

use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestCaseResult;

use bites::{bite, bitten};
use draft::{apply, change, valid};

/// Compares the verdicts on a file, and if both take it, everything in it.
fn compare(bytes: &[u8]) -> TestCaseResult {
    modeldir_properties::compare(bytes).map(drop).map_err(TestCaseError::fail)
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
