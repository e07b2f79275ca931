//! Parts of tensors: against elements picked one by one, and against the reference's slices.

use std::ops::Range;

use modeldir_fixtures::{Tensor as Made, dtype_bits, file};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use safetensors::SafeTensors;
use safetensors::slice::{InvalidSlice, TensorIndexer};
use tensorfile::{Error, ErrorKind, Selection, SelectionFault, TensorFile};

/// The part of a tensor that lists of ranges select, element by element, as bytes of whole bits.
fn pick(tensor: &Made, lists: &[Vec<Range<usize>>]) -> (Vec<usize>, Vec<u8>, bool) {
    let bits = dtype_bits(&tensor.dtype).unwrap();
    let mut elements = vec![0];
    let mut whole_bytes = true;
    for (list, len) in lists.iter().zip(&tensor.shape) {
        let chosen: Vec<usize> = list.iter().cloned().flatten().collect();
        elements = elements
            .iter()
            .flat_map(|outer| chosen.iter().map(move |at| outer * len + at))
            .collect();
    }
    let mut out = vec![0_u8; (elements.len() * bits).div_ceil(8)];
    for (to, element) in elements.iter().enumerate() {
        for bit in 0..bits {
            let from = element * bits + bit;
            let to = to * bits + bit;
            out[to / 8] |= (tensor.data[from / 8] >> (from % 8) & 1) << (to % 8);
        }
    }
    // A run that starts or ends within a byte cannot be read as it is.
    let mut runs = elements.iter().scan(None, |last: &mut Option<usize>, at| {
        let starts = last.is_none_or(|last| last + 1 != *at);
        *last = Some(*at);
        Some((*at, starts))
    });
    let mut previous = None;
    for (at, starts) in runs.by_ref() {
        if starts {
            whole_bytes &= at * bits % 8 == 0;
            whole_bytes &= previous.is_none_or(|last: usize| (last + 1) * bits % 8 == 0);
        }
        previous = Some(at);
    }
    whole_bytes &= previous.is_none_or(|last| (last + 1) * bits % 8 == 0);
    let shape = lists.iter().map(|list| list.iter().map(Range::len).sum()).collect();
    (shape, out, whole_bytes)
}

/// A tensor of any dtype and a list of ranges for each dimension.
fn tensor_and_lists() -> impl Strategy<Value = (Made, Vec<Vec<Range<usize>>>)> {
    let tensor = (select(&modeldir_fixtures::DTYPES[..]), vec(0_usize..5, 0..5));
    let tensor = tensor.prop_map(|((dtype, bits), mut shape)| {
        if shape.iter().product::<usize>() * bits % 8 != 0 {
            shape.push(8);
        }
        Made::random("t", dtype, &shape)
    });
    tensor.prop_flat_map(|tensor| {
        let lists: Vec<_> = tensor.shape.iter().map(|&len| ranges(len)).collect();
        (Just(tensor), lists)
    })
}

/// The whole dimension, one range of it, or several in any order.
fn ranges(len: usize) -> BoxedStrategy<Vec<Range<usize>>> {
    let range = (0..=len, 0..=len).prop_map(|(a, b)| a.min(b)..a.max(b));
    prop_oneof![
        Just(vec![Range { start: 0, end: len }]),
        vec(range, 1..2),
        vec(0..=len, 0..4)
            .prop_map(move |starts| starts.into_iter().map(|start| start..len).collect())
    ]
    .boxed()
}

fn selection(lists: &[Vec<Range<usize>>]) -> Selection {
    let add = |selection: Selection, (dim, list): (usize, &Vec<Range<usize>>)| {
        selection.with_ranges(dim, list.clone())
    };
    lists.iter().enumerate().fold(Selection::all(), add)
}

fn cuts_a_byte(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Selection(SelectionFault::PartialByte { .. }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_selection_is_the_elements_that_it_names((tensor, lists) in tensor_and_lists()) {
        let bytes = file(&[Made::random("before", "U8", &[3]), tensor.clone()]);
        let file = TensorFile::from_bytes(&bytes).unwrap();
        let (shape, picked, whole_bytes) = pick(&tensor, &lists);
        match file.read_selection("t", &selection(&lists)) {
            Ok(read) => {
                prop_assert_eq!(read.shape(), shape.as_slice());
                prop_assert_eq!(read.bytes(), picked.as_slice());
            }
            Err(error) if cuts_a_byte(&error) => prop_assert!(!whole_bytes),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }

    #[test]
    fn one_range_a_dimension_is_the_slice_of_the_reference((tensor, lists) in tensor_and_lists()) {
        let bytes = file(std::slice::from_ref(&tensor));
        let theirs = SafeTensors::deserialize(&bytes).unwrap().tensor("t").unwrap();
        // The reference hands out bytes for an empty slice, so something of each dimension is taken.
        let taken = |(list, len): (&Vec<Range<usize>>, &usize)| {
            let first = list.iter().find(|range| !range.is_empty());
            first.cloned().unwrap_or(0..*len)
        };
        let ranges: Vec<_> = lists.iter().zip(&tensor.shape).map(taken).collect();
        if tensor.shape.contains(&0) {
            return Ok(());
        }
        let indexers: Vec<_> = ranges.iter().cloned().map(TensorIndexer::from).collect();
        let theirs = theirs.sliced_data(&indexers);
        let ranges: Vec<_> = ranges.into_iter().map(Some).collect();
        let file = TensorFile::from_bytes(&bytes).unwrap();
        match (theirs, file.read_selection("t", &Selection::from_ranges(&ranges))) {
            (Ok(theirs), Ok(read)) => {
                prop_assert_eq!(theirs.newshape(), read.shape());
                prop_assert_eq!(theirs.flatten().copied().collect::<Vec<u8>>(), read.bytes());
            }
            (Err(_), Err(error)) if cuts_a_byte(&error) => {}
            // The reference looks at each dimension by itself, and so refuses some whole bytes. That
            // these are the right ones is for the test above to say.
            (Err(InvalidSlice::MisalignedSlice), Ok(read)) => prop_assert!(read.dtype().bits() < 8),
            (theirs, ours) => {
                let theirs = theirs.map(|slice| slice.newshape());
                return Err(TestCaseError::fail(format!("{theirs:?}, and we {ours:?}")));
            }
        }
    }
}

#[test]
fn selections_that_do_not_fit_are_refused_with_the_numbers() {
    let bytes = file(&[Made::random("t", "I32", &[6, 5])]);
    let file = TensorFile::from_bytes(&bytes).unwrap();
    let fault = |selection: Selection| {
        let error = file.read_selection("t", &selection).unwrap_err();
        let ErrorKind::Selection(fault) = error.into_kind() else { panic!("of the selection") };
        fault
    };
    let too_long = fault(Selection::all().with_range(0, 0..7));
    assert_eq!(too_long, SelectionFault::Range { dim: 0, range: 0..7, len: 6 });
    let range = Range { start: 3, end: 2 };
    let reversed = fault(Selection::all().with_range(1, range.clone()));
    assert_eq!(reversed, SelectionFault::Range { dim: 1, range, len: 5 });
    let rank = fault(Selection::from_ranges(&[None, None, None]));
    assert_eq!(rank, SelectionFault::Rank { expected: 2, found: 3 });
    let dimension = fault(Selection::all().with_range(2, 0..1));
    assert_eq!(dimension, SelectionFault::Rank { expected: 2, found: 3 });
}
