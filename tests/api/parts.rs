//! Parts of tensors in a plan: the same bytes as cutting the whole tensor, and nothing read twice.
#![expect(unsafe_code, reason = "a mapped plan is compared too")]

use std::ops::Range;

use modeldir::{ErrorKind, ModelDir, Selection};
use modeldir_fixtures::{ShardedModel, Tensor, random_bytes};
use proptest::prelude::*;
use tensorfile::{ErrorKind as FileErrorKind, SelectionFault, TensorFile};

use crate::casting::{FLOATS, converted};

/// A model of matrices, narrow, wide and wider than a block of rows.
fn matrices() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let tensor = |name: &str, dtype: &str, shape: &[usize], byte_len: usize| {
        Tensor::new(name, dtype, shape, random_bytes(name, byte_len))
    };
    let model = ShardedModel::new(2)
        .tensor(1, tensor("narrow", "F16", &[300, 40], 24_000))
        .tensor(1, tensor("odd", "U8", &[7], 7))
        .tensor(2, tensor("wide", "F32", &[6, 20_000], 480_000))
        .tensor(2, tensor("deep", "U8", &[3, 50, 20], 3000));
    model.write(dir.path()).expect("a model");
    dir
}

/// One to three ranges within an extent, in any order.
fn ranges(extent: usize) -> impl Strategy<Value = Vec<Range<usize>>> {
    let range = (0..=extent, 0..=extent).prop_map(|(a, b)| a.min(b)..a.max(b));
    proptest::collection::vec(range, 1..4)
}

fn cut(shape: &'static [usize]) -> impl Strategy<Value = Selection> {
    let dims: Vec<_> = shape.iter().map(|&extent| proptest::option::of(ranges(extent))).collect();
    dims.prop_map(|dims| {
        let cut = |selection: Selection, (dim, ranges): (usize, Option<Vec<Range<usize>>>)| {
            match ranges {
                Some(ranges) => selection.with_ranges(dim, ranges),
                None => selection,
            }
        };
        dims.into_iter().enumerate().fold(Selection::all(), cut)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn planned_parts_equal_parts_of_one_file(
        narrow in cut(&[300, 40]),
        wide in cut(&[6, 20_000]),
        deep in cut(&[3, 50, 20]),
    ) {
        let dir = matrices();
        let model = ModelDir::open(dir.path()).expect("a valid model");
        let part = |name: &str| match name {
            "narrow" => Some(narrow.clone()),
            "wide" => Some(wide.clone()),
            "deep" => Some(deep.clone()),
            _ => None,
        };
        let plan = model.plan().select(|tensor| part(tensor.name())).expect("parts that fit");
        let store = plan.load().expect("a readable model");
        prop_assert_eq!(store.len(), 3);
        for (name, loaded) in store.iter() {
            let shard = model.info(name).expect("a tensor").shard();
            let path = dir.path().join(shard.path());
            let file = TensorFile::open(path).expect("a shard");
            let selection = part(name).expect("it was selected");
            let read = file.read_selection(name, &selection).expect("a part that fits");
            prop_assert_eq!(loaded.shape(), read.shape());
            prop_assert_eq!(loaded.bytes(), read.bytes(), "{}", name);
        }
        for to in FLOATS {
            let cast = plan.cast(to).load().expect("a readable model");
            for (name, loaded) in store.iter() {
                let found = cast.get(name).expect("planned");
                let expected = converted(loaded.dtype(), loaded.bytes(), to);
                prop_assert_eq!((found.dtype(), found.bytes()), (expected.0, &expected.1[..]));
                prop_assert_eq!(found.shape(), loaded.shape());
            }
        }
        prop_assert_eq!(plan.bytes_selected(), store.byte_len());
        prop_assert_eq!(store.stats().bytes_read, plan.bytes_read());
    }
}

#[test]
fn a_cut_of_rows_reads_only_what_it_selects() {
    let dir = matrices();
    let model = ModelDir::open(dir.path()).expect("a valid model");
    let rows = |extent: usize| Selection::all().with_range(0, extent / 4..extent / 2);
    let plan = model.plan().select(|tensor| Some(rows(tensor.shape()[0]))).expect("parts that fit");
    assert_eq!(plan.bytes_read(), plan.bytes_selected());
    assert!(plan.bytes_selected() < model.byte_len() / 3);
}

#[test]
fn a_part_that_does_not_fit_is_refused_by_name_before_anything_is_read() {
    let dir = matrices();
    let model = ModelDir::open(dir.path()).expect("a valid model");
    let too_far = Selection::all().with_range(1, 0..41);
    let error =
        model.plan().only(["narrow"]).and_then(|plan| plan.select(|_| Some(too_far.clone())));
    let error = error.expect_err("41 columns of 40");
    let ErrorKind::File(FileErrorKind::Selection(fault)) = error.kind() else { panic!("{error}") };
    assert!(matches!(fault, SelectionFault::Range { .. }), "{error}");
    assert!(error.to_string().contains("narrow"), "{error}");
}

#[test]
fn a_map_has_contiguous_parts_and_refuses_scattered_ones() {
    let dir = matrices();
    let model = ModelDir::open(dir.path()).expect("a valid model");
    let rows = Selection::all().with_range(0, 1..3);
    let columns = Selection::all().with_range(1, 1..3);
    let part = |selection: &Selection| {
        model.plan().only(["wide"]).and_then(|plan| plan.select(|_| Some(selection.clone())))
    };
    // SAFETY: nothing writes to the model while this test runs.
    let mapped = unsafe { part(&rows).expect("parts that fit").map() }.expect("rows are one run");
    let read = model.read_selection("wide", &rows).expect("a readable model");
    assert_eq!(mapped.get("wide").expect("planned").bytes(), read.bytes());
    // SAFETY: as above.
    let error = unsafe { part(&columns).expect("parts that fit").map() }.expect_err("six runs");
    assert!(matches!(error.kind(), ErrorKind::ScatteredMap { runs: 6, .. }), "{error}");
}
