//! Where the bytes of a plan go in memory, and which reads bring them there; pure.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use tensorfile::{ByteRuns, FloatCast, Rows};

use crate::index::{IndexedTensor, ShardId};
use crate::plan::Part;
use crate::request::{MAX_REQUEST_BYTES, Request, RowCut};

/// Address and file offset agree modulo this where they can, so that whole pages can be moved.
pub(crate) const PAGE: u64 = 4096;

/// From this length on a part is worth a place that agrees with the file.
const LONG: u64 = 16 * PAGE;

/// Every tensor that cannot follow its neighbour starts on a multiple of this.
const LINE: u64 = 64;

/// Longest block of rows of which parts are copied: nearly as good for a disk as a longest read, and
/// each worker has memory for one.
pub(crate) const MAX_BLOCK_BYTES: u64 = 4 << 20;

/// Bytes between two runs that are read along. A read of its own costs about as much as copying
/// this many bytes, and a page of the cache or the disk is 4 KiB in any case.
const MAX_GAP_BYTES: u64 = 16 << 10;

/// Lays parts of tensors out in memory, shard by shard and in file order.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// The shard whose parts are being placed.
    open: Option<ShardLayout>,
    /// The requests of the shards before.
    requests: Vec<Request>,
    /// Bytes of memory of the shards before, for each from which something is read.
    memory: BTreeMap<ShardId, u64>,
}

impl Layout {
    /// Places a part of a tensor that comes after all earlier ones by shard and in file order;
    /// returns its place in the memory of its shard.
    pub(crate) fn place(&mut self, tensor: IndexedTensor<'_>, part: &Part) -> Range<u64> {
        let shard = tensor.shard().id();
        let done = self.open.take_if(|open| open.shard != shard);
        self.close(done);
        let requests = &mut self.requests;
        let new = || ShardLayout::new(shard, mem::take(requests));
        self.open.get_or_insert_with(new).place_part(tensor, part)
    }

    /// The reads, and the bytes of memory that they fill by shard.
    pub(crate) fn finish(mut self) -> (Vec<Request>, BTreeMap<ShardId, u64>) {
        let done = self.open.take();
        self.close(done);
        (self.requests, self.memory)
    }

    fn close(&mut self, done: Option<ShardLayout>) {
        let Some(ShardLayout { shard, requests, memory_len }) = done else { return };
        self.requests = requests;
        if memory_len > 0 {
            self.memory.insert(shard, memory_len);
        }
    }
}

/// Lays the wanted parts of one shard out in memory, in file order.
///
/// Positions in memory are `u64` here, so that nothing can overflow: a shard is at most 2^63 bytes,
/// and padding adds less than that.
#[derive(Debug)]
struct ShardLayout {
    shard: ShardId,
    /// Those of earlier shards, then those of this one.
    requests: Vec<Request>,
    memory_len: u64,
}

impl ShardLayout {
    /// Lays out a shard whose requests follow these.
    const fn new(shard: ShardId, requests: Vec<Request>) -> Self {
        Self { shard, requests, memory_len: 0 }
    }

    /// Places a part of a tensor that starts after all earlier ones in the file; returns its memory
    /// range.
    fn place_part(&mut self, tensor: IndexedTensor<'_>, part: &Part) -> Range<u64> {
        let cast = part.cast;
        let dtype = cast.map_or(tensor.dtype(), |cast| cast.to().dtype());
        let (file_range, align) = (tensor.file_range(), dtype.align() as u64);
        match &part.runs {
            None => self.place(file_range, align, cast),
            Some(runs) => self.place_runs(file_range.start, runs, align, cast),
        }
    }

    /// Places a range that starts after all earlier ones in the file; returns its memory range.
    ///
    /// A part directly follows its neighbour where file and alignment allow it, so that one read
    /// serves both. Tensors are packed without padding in the file; one that would be misaligned
    /// in memory is moved to an aligned place and gets a read of its own, and so is a long one that
    /// a direct read could not bring straight to its place. What is converted comes by way of the
    /// worker's memory in any case.
    fn place(&mut self, file_range: Range<u64>, align: u64, cast: Option<FloatCast>) -> Range<u64> {
        let byte_len = file_range.end.saturating_sub(file_range.start);
        let follows = |last: &Request| {
            last.shard == self.shard
                && last.rows.is_none()
                && last.cast == cast
                && last.file_range.end == file_range.start
        };
        let follows = self.requests.last().is_some_and(follows);
        let is_congruent = self.memory_len % PAGE == file_range.start % PAGE;
        let suits_reads = cast.is_some() || is_congruent || byte_len < LONG;
        let suits = self.memory_len % align.max(1) == 0 && suits_reads;
        let start = match cast {
            _ if follows && suits => self.memory_len,
            None => self.new_start(file_range.start, byte_len, align.max(1)),
            Some(_) => self.memory_len.next_multiple_of(LINE),
        };
        let end = start.saturating_add(cast.map_or(byte_len, |cast| cast.byte_len(byte_len)));
        if byte_len > 0 {
            self.push(file_range, start, cast);
            self.memory_len = end;
        }
        start..end
    }

    /// Places parts of a tensor that starts at `file_start`, one after the other; returns their
    /// memory range.
    ///
    /// Runs at even distances become blocks of rows: read whole where the bytes between are few,
    /// and run by run where they are many. Other runs get a read each, so that nothing between
    /// them is read.
    fn place_runs(
        &mut self,
        file_start: u64,
        runs: &ByteRuns,
        align: u64,
        cast: Option<FloatCast>,
    ) -> Range<u64> {
        if runs.num_runs() == 1 {
            return self.place(in_file(file_start, &runs.span()), align, cast);
        }
        let start = self.memory_len.next_multiple_of(LINE);
        let mut memory_offset = start;
        for rows in runs.rows() {
            self.push_rows(file_start, &rows, cast, &mut memory_offset);
        }
        if memory_offset > start {
            self.memory_len = memory_offset;
        }
        start..memory_offset
    }

    /// Adds requests for evenly spaced rows of a tensor that starts at `file_start`.
    fn push_rows(
        &mut self,
        file_start: u64,
        rows: &Rows,
        cast: Option<FloatCast>,
        memory_offset: &mut u64,
    ) {
        let first = rows.runs.iter().map(|run| run.start).min().unwrap_or(0);
        let start = file_start + first as u64;
        let all = all_rows(rows, first);
        let longest = rows_per_request(&all);
        let full = Arc::new(RowCut { count: longest, ..all.clone() });
        let mut row = 0;
        while row < all.count {
            let count = longest.min(all.count - row);
            let row_start = start + all.stride.saturating_mul(row);
            if count == 1 {
                for run in &all.runs {
                    self.push(row_start + run.start..row_start + run.end, *memory_offset, cast);
                    let len = run.end - run.start;
                    *memory_offset += cast.map_or(len, |cast| cast.byte_len(len));
                }
            } else {
                let rest = || Arc::new(RowCut { count, ..all.clone() });
                let cut = if count == longest { Arc::clone(&full) } else { rest() };
                let file_range = row_start..row_start.saturating_add(cut.byte_len());
                let (shard, start) = (self.shard, *memory_offset);
                let rows = Some(cut);
                let request = Request { shard, file_range, memory_offset: start, rows, cast };
                *memory_offset = start.saturating_add(request.memory_len());
                self.requests.push(request);
            }
            row += count;
        }
    }

    /// The first free place that suits the file offset: congruent to it modulo a page for what is
    /// longer than a few pages, modulo a line for the rest, and aligned in any case.
    fn new_start(&self, file_start: u64, byte_len: u64, align: u64) -> u64 {
        let modulus = if byte_len >= LONG { PAGE } else { LINE };
        let wanted = file_start % modulus;
        if wanted % align != 0 {
            return self.memory_len.next_multiple_of(LINE);
        }
        let skip = (wanted + modulus - self.memory_len % modulus) % modulus;
        self.memory_len.saturating_add(skip)
    }

    /// Adds reads for a part: the last one grows up to the longest read, the rest is cut at
    /// multiples of it in the file, or before them where that would cut an element to convert.
    fn push(&mut self, file_range: Range<u64>, memory_offset: u64, cast: Option<FloatCast>) {
        let (mut at, mut memory_offset) = (file_range.start, memory_offset);
        let element_len = element_len(cast);
        while at < file_range.end {
            let end = piece_end(at, MAX_REQUEST_BYTES, element_len).min(file_range.end);
            let (shard, rows) = (self.shard, None);
            let next = Request { shard, file_range: at..end, memory_offset, rows, cast };
            memory_offset = memory_offset.saturating_add(next.memory_len());
            let starts_piece = (at + element_len - 1) % MAX_REQUEST_BYTES < element_len;
            match self.requests.last_mut() {
                Some(last) if !starts_piece && last.is_followed_by(&next) => {
                    last.file_range.end = end;
                }
                _ => self.requests.push(next),
            }
            at = end;
        }
    }
}

/// Most bytes of memory that a part of this length in memory takes: it may not lie where the one
/// before it ends.
pub(crate) const fn most_memory(byte_len: u64) -> u64 {
    byte_len.saturating_add(if byte_len >= LONG { PAGE } else { LINE })
}

/// What may not be cut: an element that is converted, or a byte.
pub(crate) fn element_len(cast: Option<FloatCast>) -> u64 {
    cast.map_or(1, |cast| cast.from().byte_len() as u64)
}

/// Where a piece that starts at `at` ends: at the next multiple of `longest` in the file, or by less
/// than an element before it, so that no element is cut.
pub(crate) fn piece_end(at: u64, longest: u64, element_len: u64) -> u64 {
    let boundary = ((at + element_len - 1) / longest + 1).saturating_mul(longest);
    boundary - (boundary - at) % element_len
}

/// Where bytes of a tensor lie in the file in which it starts at `file_start`.
fn in_file(file_start: u64, run: &Range<usize>) -> Range<u64> {
    file_start + run.start as u64..file_start + run.end as u64
}

/// All of these rows, from the first wanted byte on; read whole if the bytes between are few.
fn all_rows(rows: &Rows, first: usize) -> RowCut {
    let (stride, count, row_len) = (rows.stride as u64, rows.count as u64, rows.row_len() as u64);
    let gap = stride.saturating_sub(row_len) / (rows.runs.len() as u64).max(1);
    let from_first = |run: &Range<usize>| (run.start - first) as u64..(run.end - first) as u64;
    let runs = rows.runs.iter().map(from_first).collect();
    RowCut { stride, count, runs, is_block: gap <= MAX_GAP_BYTES }
}

/// How many of these rows one request is for.
fn rows_per_request(rows: &RowCut) -> u64 {
    let bytes_per_row = if rows.is_block { rows.stride } else { rows.row_len() };
    (MAX_BLOCK_BYTES / bytes_per_row.max(1)).clamp(1, rows.count.max(1))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Arc;

    use tensorfile::{Dtype, Float, FloatCast, Header, HeaderOptions, Selection};

    use super::ShardLayout;
    use crate::index::ShardId;
    use crate::request::{MAX_REQUEST_BYTES, Request, RowCut};

    const SHARD: ShardId = ShardId::for_test(3);

    impl ShardLayout {
        fn finish(self) -> (Vec<Request>, u64) {
            (self.requests, self.memory_len)
        }
    }

    /// Lays out parts given as (start, end, align); returns memory ranges and reads.
    fn lay_out(parts: &[(u64, u64, u64)]) -> (Vec<Range<u64>>, Vec<Request>, u64) {
        let mut layout = ShardLayout::new(SHARD, Vec::new());
        let places = parts.iter().map(|&(s, e, a)| layout.place(s..e, a, None)).collect();
        let (requests, memory_len) = layout.finish();
        (places, requests, memory_len)
    }

    fn request(file_range: Range<u64>, memory_offset: u64) -> Request {
        Request { shard: SHARD, file_range, memory_offset, rows: None, cast: None }
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
        let memory = layout.place_runs(64, &runs, 1, None);
        assert_eq!(memory, 0..runs.byte_len() as u64);
        layout.finish()
    }

    fn block(file_range: Range<u64>, memory_offset: u64, rows: RowCut) -> Request {
        Request { shard: SHARD, file_range, memory_offset, rows: Some(Arc::new(rows)), cast: None }
    }

    #[test]
    fn narrow_rows_are_read_whole_and_wide_ones_run_by_run() {
        let (requests, memory_len) = lay_out_columns([10, 100], vec![10..30, 50..60]);
        let rows = RowCut { stride: 100, count: 10, runs: vec![0..20, 40..50], is_block: true };
        assert_eq!(requests, [block(74..1024, 0, rows)]);
        assert_eq!((requests[0].byte_len(), requests[0].memory_len(), memory_len), (950, 300, 300));

        let (requests, _) = lay_out_columns([3, 100_000], std::iter::once(5..10).collect());
        let rows = RowCut {
            stride: 100_000,
            count: 3,
            runs: std::iter::once(0..5).collect(),
            is_block: false,
        };
        assert_eq!(requests, [block(69..200_074, 0, rows)]);
        assert_eq!(requests[0].byte_len(), 15);
    }

    #[test]
    fn blocks_of_rows_are_cut_at_their_longest() {
        let (requests, memory_len) =
            lay_out_columns([100, 120_000], std::iter::once(0..110_000).collect());
        let rows: Vec<u64> = requests.iter().map(|r| r.rows.as_ref().unwrap().count).collect();
        assert_eq!(rows, [34, 34, 32]);
        let [a, b, ..] = &requests[..] else { panic!("three requests") };
        assert!(Arc::ptr_eq(a.rows.as_ref().unwrap(), b.rows.as_ref().unwrap()));
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
        // What the second shard begins with lies where the first one ended, in file and memory.
        let mut first = ShardLayout::new(SHARD, Vec::new());
        first.place(0..64, 1, None);
        let (requests, _) = first.finish();
        let mut second = ShardLayout::new(ShardId::for_test(4), requests);
        second.place(64..64, 1, None);
        second.place(64..68, 1, None);
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

    fn widening() -> Option<FloatCast> {
        FloatCast::new(Dtype::BF16, Float::F32)
    }

    #[test]
    fn neighbours_that_are_converted_alike_share_a_read() {
        let mut layout = ShardLayout::new(SHARD, Vec::new());
        let narrowing = FloatCast::new(Dtype::F32, Float::BF16);
        let places = [
            layout.place(129..137, 4, widening()),
            layout.place(137..141, 4, widening()),
            layout.place(141..145, 2, None),
            layout.place(145..153, 2, narrowing),
            layout.place(153..153, 4, widening()),
            layout.place(153..161, 4, widening()),
        ];
        assert_eq!(places, [0..16, 16..24, 64..68, 128..132, 192..192, 192..208]);
        let (requests, memory_len) = layout.finish();
        let cast = |request, cast| Request { cast, ..request };
        assert_eq!(
            requests,
            [
                cast(request(129..141, 0), widening()),
                request(141..145, 64),
                cast(request(145..153, 128), narrowing),
                cast(request(153..161, 192), widening()),
            ]
        );
        assert_eq!((requests[0].byte_len(), requests[0].memory_len(), memory_len), (12, 24, 208));
    }

    #[test]
    fn no_element_that_is_converted_is_cut() {
        let max = MAX_REQUEST_BYTES;
        for odd in [0, 1, 2, 3, 5] {
            let narrowing = FloatCast::new(Dtype::F32, Float::F16);
            let mut layout = ShardLayout::new(SHARD, Vec::new());
            layout.place(odd..odd + max, 2, narrowing);
            layout.place(odd + max..odd + 2 * max + 8, 2, narrowing);
            let (requests, memory_len) = layout.finish();
            let mut at = odd;
            for request in &requests {
                assert_eq!((request.file_range.start, request.byte_len() % 4), (at, 0), "{odd}");
                assert_eq!(request.memory_offset, (at - odd) / 2);
                assert!(request.byte_len() <= max);
                at = request.file_range.end;
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
}
