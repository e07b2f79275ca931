//! Places of parts in memory, and the reads for them.

use std::ops::Range;
use std::sync::Arc;

use tensorfile::{Dtype, Float, FloatCast, Header, HeaderOptions, Read, Row, Rows, Selection};

use super::{MAX_REQUEST_BYTES, ShardLayout};
use crate::plan::request::Request;
use crate::plan::transform::Transform;
use crate::weights::index::ShardId;

const SHARD: ShardId = ShardId::for_test(3);

impl ShardLayout {
    fn finish(self) -> (Vec<Request>, u64) {
        (self.requests, self.memory_len)
    }
}

/// Lays out parts given as (start, end, align); returns memory ranges and reads.
fn lay_out(parts: &[(u64, u64, u64)]) -> (Vec<Range<u64>>, Vec<Request>, u64) {
    let mut layout = ShardLayout::new(SHARD, Vec::new());
    let places = parts.iter().map(|&(s, e, a)| layout.place(s..e, a, Transform::Copy)).collect();
    let (requests, memory_len) = layout.finish();
    (places, requests, memory_len)
}

/// A read of a range into memory from this position on.
fn request(file_range: Range<u64>, memory_start: u64) -> Request {
    read(Read::Whole(file_range), memory_start)
}

fn read(read: Read, memory_start: u64) -> Request {
    let memory_range = memory_start..memory_start + read.wanted_len();
    Request { shard: SHARD, memory_range, read, transform: Transform::Copy }
}

/// Lays out columns of an 8-bit matrix of this shape, in a file from byte 64 on.
fn lay_out_columns(shape: [usize; 2], columns: Vec<Range<usize>>) -> (Vec<Request>, u64) {
    let json = format!(
        r#"{{"w":{{"dtype":"U8","shape":[{},{}],"data_offsets":[0,{}]}}}}"#,
        shape[0],
        shape[1],
        shape[0] * shape[1]
    );
    let mut file = (json.len() as u64).to_le_bytes().to_vec();
    file.extend(json.bytes());
    file.resize(file.len() + shape[0] * shape[1], 0);
    let header = Header::from_bytes(&file, &HeaderOptions::default()).unwrap();
    let selection = Selection::all().with_ranges(1, columns);
    let runs = selection.lower(header.get("w").unwrap()).unwrap();
    let mut layout = ShardLayout::new(SHARD, Vec::new());
    let memory = layout.place_runs(64, &runs, 1, Transform::Copy);
    assert_eq!(memory, 0..runs.byte_len() as u64);
    layout.finish()
}

fn rows(start: u64, stride: u64, count: u64, runs: &[Range<u64>]) -> Rows {
    Rows { start, count, row: Arc::new(Row { stride, runs: runs.into() }) }
}

#[test]
fn narrow_rows_are_read_whole_and_wide_ones_run_by_run() {
    let (requests, memory_len) = lay_out_columns([10, 100], vec![10..30, 50..60]);
    assert_eq!(requests, [read(Read::Block(rows(74, 100, 10, &[0..20, 40..50])), 0)]);
    assert_eq!(requests[0].read.span(), 74..1024);
    assert_eq!((requests[0].byte_len(), requests[0].memory_bytes(), memory_len), (950, 300, 300));

    let (requests, _) = lay_out_columns([3, 100_000], std::iter::once(5..10).collect());
    let run = Range { start: 0, end: 5 };
    assert_eq!(requests, [read(Read::Runs(rows(69, 100_000, 3, &[run])), 0)]);
    assert_eq!((requests[0].read.span(), requests[0].byte_len()), (69..200_074, 15));
}

#[test]
fn blocks_of_rows_are_cut_at_their_longest() {
    let (requests, memory_len) =
        lay_out_columns([100, 120_000], std::iter::once(0..110_000).collect());
    let blocks: Vec<&Rows> = requests
        .iter()
        .map(|request| match &request.read {
            Read::Block(rows) => rows,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(blocks.iter().map(|rows| rows.count).collect::<Vec<_>>(), [34, 34, 32]);
    assert!(blocks.windows(2).all(|pair| Arc::ptr_eq(&pair[0].row, &pair[1].row)));
    assert_eq!(memory_len, 11_000_000);
}

#[test]
fn neighbours_share_a_read() {
    let (places, requests, byte_len) = lay_out(&[(128, 136, 4), (136, 140, 4), (140, 148, 2)]);
    assert_eq!(places, [0..8, 8..12, 12..20]);
    assert_eq!(requests, [request(128..148, 0)]);
    assert_eq!(byte_len, 20);
}

#[test]
fn a_misaligned_neighbour_moves_to_an_aligned_place() {
    let (places, requests, _) = lay_out(&[(64, 67, 1), (67, 75, 4), (75, 83, 8)]);
    assert_eq!(places, [0..3, 64..72, 72..80]);
    assert_eq!(requests, [request(64..67, 0), request(67..83, 64)]);
}

#[test]
fn a_gap_in_the_file_starts_a_new_read() {
    let (places, requests, _) = lay_out(&[(64, 68, 4), (200, 208, 4)]);
    assert_eq!(places, [0..4, 8..16]);
    assert_eq!(requests, [request(64..68, 0), request(200..208, 8)]);
}

#[test]
fn a_read_ends_with_its_shard() {
    // The second shard starts at the position where the first one ended, in file and memory.
    let mut first = ShardLayout::new(SHARD, Vec::new());
    first.place(0..64, 1, Transform::Copy);
    let (requests, _) = first.finish();
    let mut second = ShardLayout::new(ShardId::for_test(4), requests);
    second.place(64..64, 1, Transform::Copy);
    second.place(64..68, 1, Transform::Copy);
    let (requests, memory_len) = second.finish();
    let next = Request { shard: ShardId::for_test(4), ..request(64..68, 0) };
    assert_eq!((requests, memory_len), (vec![request(0..64, 0), next], 4));
}

#[test]
fn long_parts_keep_their_offset_within_a_page() {
    let (places, _, _) = lay_out(&[(1000, 1000 + (1 << 20), 8)]);
    assert_eq!(places[0].start, 1000);
}

#[test]
fn a_long_part_leaves_a_short_neighbour_to_keep_its_offset_within_a_page() {
    let (places, requests, _) = lay_out(&[(1000, 1008, 8), (1008, 1008 + (1 << 20), 8)]);
    assert_eq!(places[0], 40..48);
    assert_eq!(places[1].start, 1008);
    assert_eq!(requests.len(), 2);
}

#[test]
fn long_parts_are_cut_at_multiples_of_the_longest_read() {
    let end = 2 * MAX_REQUEST_BYTES + 5;
    let (places, requests, byte_len) = lay_out(&[(8, end, 1), (end, end + 3, 1)]);
    let max = MAX_REQUEST_BYTES;
    assert_eq!(places[0], 8..2 * max + 5);
    assert_eq!(
        requests,
        [
            request(8..MAX_REQUEST_BYTES, 8),
            request(MAX_REQUEST_BYTES..2 * MAX_REQUEST_BYTES, max),
            request(2 * MAX_REQUEST_BYTES..end + 3, 2 * max),
        ]
    );
    assert_eq!(byte_len, 2 * max + 8);
}

fn cast(from: Dtype, to: Float) -> Transform {
    Transform::from(FloatCast::new(from, to))
}

#[test]
fn neighbours_that_are_converted_alike_share_a_read() {
    let mut layout = ShardLayout::new(SHARD, Vec::new());
    let widening = cast(Dtype::BF16, Float::F32);
    let narrowing = cast(Dtype::F32, Float::BF16);
    let places = [
        layout.place(129..137, 4, widening),
        layout.place(137..141, 4, widening),
        layout.place(141..145, 2, Transform::Copy),
        layout.place(145..153, 2, narrowing),
        layout.place(153..153, 4, widening),
        layout.place(153..161, 4, widening),
    ];
    assert_eq!(places, [0..16, 16..24, 64..68, 128..132, 192..192, 192..208]);
    let (requests, memory_len) = layout.finish();
    let cast =
        |range, memory_range, transform| Request { memory_range, transform, ..request(range, 0) };
    assert_eq!(
        requests,
        [
            cast(129..141, 0..24, widening),
            request(141..145, 64),
            cast(145..153, 128..132, narrowing),
            cast(153..161, 192..208, widening),
        ]
    );
    assert_eq!((requests[0].byte_len(), requests[0].memory_bytes(), memory_len), (12, 24, 208));
}

#[test]
fn no_element_that_is_converted_is_cut() {
    let max = MAX_REQUEST_BYTES;
    for odd in [0, 1, 2, 3, 5] {
        let narrowing = cast(Dtype::F32, Float::F16);
        let mut layout = ShardLayout::new(SHARD, Vec::new());
        layout.place(odd..odd + max, 2, narrowing);
        layout.place(odd + max..odd + 2 * max + 8, 2, narrowing);
        let (requests, memory_len) = layout.finish();
        let mut at = odd;
        for request in &requests {
            let range = request.read.span();
            assert_eq!((range.start, request.byte_len() % 4), (at, 0), "{odd}");
            assert_eq!(request.memory_range.start, (at - odd) / 2);
            assert!(request.byte_len() <= max);
            at = range.end;
        }
        assert_eq!((at, memory_len), (odd + 2 * max + 8, max + 4));
        assert_eq!(requests.len(), 3, "{odd}");
    }
}

#[test]
fn empty_parts_need_no_read() {
    let (places, requests, byte_len) = lay_out(&[(64, 64, 4), (64, 64, 8)]);
    assert!(places.iter().all(Range::is_empty));
    assert!(requests.is_empty());
    assert_eq!(byte_len, 0);
}
