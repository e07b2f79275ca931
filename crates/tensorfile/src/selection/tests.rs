//! Selections lowered to runs, compared with literals and with a list of every element.
#![expect(clippy::single_range_in_vec_init, reason = "lists of one run are meant")]
#![expect(clippy::arithmetic_side_effects, reason = "the listing is of small shapes")]

use super::Selection;
use crate::byte_runs::ByteRuns;
use crate::selection_fault::SelectionFault;
use crate::{Dtype, ErrorKind, Header, HeaderOptions, Writer};
use proptest::prelude::*;
use std::ops::Range;

fn lower(selection: &Selection, dtype: Dtype, shape: &[usize]) -> Result<ByteRuns, SelectionFault> {
    selection.lower_shape(dtype, shape)
}

fn runs(selection: &Selection, dtype: Dtype, shape: &[usize]) -> Vec<Range<usize>> {
    lower(selection, dtype, shape).unwrap().iter().collect()
}

#[test]
fn only_a_selection_without_ranges_is_known_to_be_all() {
    assert!(Selection::all().is_all());
    assert!(!Selection::all().with_range(0, 0..4).is_all());
}

#[test]
fn ranges_of_a_dimension_take_the_place_of_earlier_ones() {
    let last = Selection::all().with_range(1, 1..3);
    let both = Selection::all().with_ranges(1, vec![0..1, 2..4]).with_range(1, 1..3);
    assert_eq!(both, last);
}

#[test]
fn literal_cases_lower_to_literal_runs() {
    let all = Selection::all;
    type Case = (Selection, &'static [usize], &'static [usize], &'static [Range<usize>]);
    let cases: [Case; 14] = [
        (all(), &[4, 4], &[4, 4], &[0..16]),
        (all(), &[], &[], &[0..1]),
        (Selection::from_ranges(&[]), &[], &[], &[0..1]),
        (all(), &[3, 0], &[3, 0], &[]),
        (all().with_range(0, 1..3), &[4, 4], &[2, 4], &[4..12]),
        (all().with_range(1, 1..3), &[2, 4], &[2, 2], &[1..3, 5..7]),
        (all().with_range(1, 0..4), &[2, 4], &[2, 4], &[0..8]),
        (all().with_range(1, 4..4), &[2, 4], &[2, 0], &[]),
        (all().with_ranges(0, vec![]), &[2, 4], &[0, 4], &[]),
        (all().with_ranges(0, vec![0..2, 2..2, 2..5]), &[6], &[5], &[0..5]),
        (all().with_ranges(0, vec![2..4, 0..2, 0..2]), &[4], &[6], &[2..4, 0..2, 0..2]),
        // The last part of a row and the first of the next are one run.
        (all().with_ranges(1, vec![0..1, 3..4]), &[2, 4], &[2, 2], &[0..1, 3..5, 7..8]),
        // So they are if the same row is taken twice.
        (
            all().with_ranges(0, vec![0..1, 0..1]).with_ranges(1, vec![2..4, 0..2]),
            &[1, 4],
            &[2, 4],
            &[2..4, 0..4, 0..2],
        ),
        (
            Selection::from_ranges(&[Some(1..2), None, Some(0..1)]),
            &[2, 2, 2],
            &[1, 2, 1],
            &[4..5, 6..7],
        ),
    ];
    for (selection, shape, selected, expected) in cases {
        let lowered = lower(&selection, Dtype::U8, shape).unwrap();
        assert_eq!(lowered.shape(), selected, "{selection:?}");
        assert_eq!(lowered.iter().collect::<Vec<_>>(), expected, "{selection:?}");
        assert_eq!(lowered.num_runs(), expected.len(), "{selection:?}");
    }
}

#[test]
fn runs_are_in_bytes_of_the_dtype() {
    let halves = Selection::all().with_range(1, 2..4);
    assert_eq!(runs(&halves, Dtype::F32, &[2, 4]), [8..16, 24..32]);
    assert_eq!(runs(&halves, Dtype::F4, &[2, 4]), [1..2, 3..4]);
    let quarter = Selection::all().with_range(0, 4..8);
    assert_eq!(runs(&quarter, Dtype::F6E3M2, &[16]), [3..6]);
}

#[test]
fn a_cut_of_a_million_rows_is_not_listed() {
    let columns = Selection::all().with_range(1, 2..4);
    let lowered = lower(&columns, Dtype::F32, &[1_000_000, 8]).unwrap();
    assert_eq!((lowered.num_runs(), lowered.byte_len()), (1_000_000, 8_000_000));
    assert_eq!(lowered.span(), 8..32_000_000 - 16);
    assert_eq!(
        (lowered.iter().len(), lowered.iter().last()),
        (1_000_000, Some(31_999_976..31_999_984))
    );
}

#[test]
fn extents_near_the_limit_need_no_time() {
    let huge = [1 << 20, 1 << 20, 1 << 18];
    let lowered = lower(&Selection::all().with_range(2, 1..2), Dtype::U8, &huge).unwrap();
    assert_eq!(lowered.num_runs(), 1 << 40);
    assert_eq!(lowered.iter().nth(1), Some((1 << 18) + 1..(1 << 18) + 2));
    let empty = [0, usize::MAX, usize::MAX];
    assert_eq!(lower(&Selection::all(), Dtype::U64, &empty).unwrap().byte_len(), 0);
}

#[test]
fn ranges_outside_a_dimension_are_refused() {
    #[expect(clippy::reversed_empty_ranges, reason = "the case to refuse")]
    for range in [3..5, 5..5, 3..2, 0..usize::MAX] {
        let selection = Selection::all().with_ranges(1, vec![0..1, range.clone()]);
        let error = lower(&selection, Dtype::U8, &[2, 4]).unwrap_err();
        assert!(
            matches!(&error, SelectionFault::Range { dim: 1, range: found, len: 4 }
                if *found == range),
            "{error}"
        );
    }
    let error = lower(&Selection::all().with_range(0, 1..3), Dtype::U8, &[2]).unwrap_err();
    assert_eq!(error.to_string(), "range 1..3 of dimension 0, which has 2 elements");
}

#[test]
fn a_fault_names_the_tensor() {
    let mut writer = Writer::new();
    writer.add("t", Dtype::U8, &[2], b"ab").unwrap();
    let file = writer.to_bytes().unwrap();
    let header = Header::from_bytes(&file, &HeaderOptions::default()).unwrap();
    let beyond = Selection::all().with_range(0, 1..3);
    let error = beyond.lower(header.get("t").unwrap()).unwrap_err();
    let says = r#"tensor "t": range 1..3 of dimension 0, which has 2 elements"#;
    assert_eq!(error.to_string(), says);
    assert!(matches!(error.kind(), ErrorKind::Selection(SelectionFault::Range { .. })));
}

#[test]
fn selections_of_another_rank_are_refused() {
    let cases = [
        (Selection::all().with_range(0, 0..1), 0, 1),
        (Selection::all().with_range(2, 0..0), 2, 3),
        (Selection::all().with_range(usize::MAX, 0..0), 2, usize::MAX),
        (Selection::from_ranges(&[None]), 2, 1),
        (Selection::from_ranges(&[]), 1, 0),
        (Selection::from_ranges(&[None, None, None]), 2, 3),
    ];
    for (selection, rank, asked) in cases {
        let error = lower(&selection, Dtype::U8, &vec![4; rank]).unwrap_err();
        assert!(
            matches!(error, SelectionFault::Rank { expected, found }
                if (expected, found) == (rank, asked)),
            "{error}"
        );
    }
}

#[test]
fn cuts_within_a_byte_are_refused() {
    let cases = [
        (Selection::all().with_range(0, 1..3), vec![4], 0, 1..3),
        (Selection::all().with_range(0, 0..3), vec![4], 0, 0..3),
        (Selection::all().with_range(0, 1..2), vec![2, 3], 0, 1..2),
        (Selection::all().with_range(1, 0..2), vec![2, 3], 1, 0..2),
        (Selection::all().with_ranges(1, vec![0..2, 1..3]), vec![2, 4], 1, 1..3),
    ];
    for (selection, shape, dim, range) in cases {
        let error = lower(&selection, Dtype::F4, &shape).unwrap_err();
        assert!(
            matches!(&error, SelectionFault::PartialByte { dim: d, range: r, .. }
                if (*d, r) == (dim, &range)),
            "{error}"
        );
    }
    // Each range splits a byte, both together do not.
    let joined = Selection::all().with_ranges(0, vec![0..1, 1..2]);
    assert_eq!(runs(&joined, Dtype::F4, &[4]), [0..1]);
}

#[test]
fn repeats_beyond_the_address_range_are_refused() {
    let half = usize::MAX / 2;
    for shape in [vec![half], vec![half, 1], vec![1, half]] {
        let dim = shape.iter().position(|len| *len == half).unwrap();
        let repeated = Selection::all().with_ranges(dim, vec![0..half; 3]);
        let error = lower(&repeated, Dtype::U8, &shape).unwrap_err();
        assert!(matches!(error, SelectionFault::Overflow), "{error}");
    }
}

/// The runs of a selection from a list of every selected element, or `None` if one splits a byte.
fn by_listing(
    lists: &[Vec<Range<usize>>],
    shape: &[usize],
    bits: usize,
) -> Option<Vec<Range<usize>>> {
    let mut elements = vec![0];
    for (list, len) in lists.iter().zip(shape) {
        let indices: Vec<usize> = list.iter().cloned().flatten().collect();
        elements = elements
            .iter()
            .flat_map(|outer| indices.iter().map(move |index| outer * len + index))
            .collect();
    }
    let mut runs: Vec<Range<usize>> = Vec::new();
    for element in elements {
        match runs.last_mut() {
            Some(last) if last.end == element => last.end += 1,
            _ => runs.push(element..element + 1),
        }
    }
    let in_bytes = |element: usize| {
        let bit = element * bits;
        (bit % 8 == 0).then_some(bit / 8)
    };
    runs.iter().map(|run| Some(in_bytes(run.start)?..in_bytes(run.end)?)).collect()
}

fn any_list(len: usize) -> impl Strategy<Value = Option<Vec<Range<usize>>>> {
    let range = (0..=len, 0..=len).prop_map(|(a, b)| a.min(b)..a.max(b));
    prop_oneof![Just(None), prop::collection::vec(range, 0..4).prop_map(Some)]
}

type Case = (Vec<usize>, Vec<Option<Vec<Range<usize>>>>);

fn any_case() -> impl Strategy<Value = Case> {
    let extent = prop_oneof![1 => Just(0usize), 9 => 1..5usize];
    prop::collection::vec(extent, 0..=5).prop_flat_map(|shape| {
        let lists: Vec<_> = shape.iter().map(|len| any_list(*len)).collect();
        (Just(shape), lists)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn lowering_equals_listing_every_element(
        (shape, lists) in any_case(),
        dtype in prop::sample::select(Dtype::ALL.to_vec()),
    ) {
        let mut selection = Selection::all();
        for (dim, list) in lists.iter().enumerate() {
            if let Some(list) = list {
                selection = selection.with_ranges(dim, list.clone());
            }
        }
        let full: Vec<Vec<Range<usize>>> = lists
            .iter()
            .zip(&shape)
            .map(|(list, len)| list.clone().unwrap_or_else(|| vec![0..*len]))
            .collect();
        let found = lower(&selection, dtype, &shape);
        let Some(expected) = by_listing(&full, &shape, dtype.bits() as usize) else {
            let refused = matches!(found, Err(SelectionFault::PartialByte { .. }));
            prop_assert!(refused, "{found:?}");
            return Ok(());
        };
        let found = found.unwrap();
        let extents: Vec<usize> =
            full.iter().map(|list| list.iter().map(Range::len).sum()).collect();
        prop_assert_eq!(found.shape(), &extents[..]);
        prop_assert_eq!(found.iter().collect::<Vec<_>>(), &expected[..]);
        prop_assert_eq!(found.num_runs(), expected.len());
        prop_assert_eq!(found.byte_len(), expected.iter().map(Range::len).sum::<usize>());
        let start = expected.iter().map(|run| run.start).min().unwrap_or(0);
        let end = expected.iter().map(|run| run.end).max().unwrap_or(0);
        prop_assert_eq!(found.span(), start..end);
    }
}
