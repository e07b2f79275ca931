//! Where the bytes of a plan go in memory, and which reads bring them there; pure.

use std::ops::Range;

/// Longest read of a plan: long enough for full device speed, short enough to share out.
pub(crate) const MAX_REQUEST_BYTES: u64 = 8 << 20;

/// Address and file offset agree modulo this where they can, so that whole pages can be moved.
const PAGE: u64 = 4096;

/// Every tensor that cannot follow its neighbour starts on a multiple of this.
const LINE: u64 = 64;

/// One contiguous read of a plan: bytes of a shard and where they go.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Request {
    /// The position of the shard in [`ModelDir::shards`](crate::ModelDir::shards).
    pub shard: usize,
    /// The bytes of the shard's file.
    pub file_range: Range<u64>,
    /// Where the bytes go in the memory that the tensors of this shard share.
    pub memory_offset: u64,
}

impl Request {
    /// Bytes that the request reads.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.file_range.end.saturating_sub(self.file_range.start)
    }

    /// Whether the read may go on at `at`: file and memory follow, and no boundary lies between.
    fn grows_from(&self, at: u64, memory_offset: u64) -> bool {
        self.file_range.end == at
            && self.memory_offset.saturating_add(self.byte_len()) == memory_offset
            && at % MAX_REQUEST_BYTES != 0
    }
}

/// Lays the wanted parts of one shard out in memory, in file order.
///
/// Positions in memory are `u64` here, so that nothing can overflow: a shard is at most 2^63 bytes,
/// and padding adds less than that.
#[derive(Debug)]
pub(crate) struct ShardLayout {
    shard: usize,
    requests: Vec<Request>,
    memory_len: u64,
}

impl ShardLayout {
    pub(crate) const fn new(shard: usize) -> Self {
        Self { shard, requests: Vec::new(), memory_len: 0 }
    }

    /// Places a part that starts after all earlier ones in the file; returns its memory range.
    ///
    /// A part directly follows its neighbour where file and alignment allow it, so that one read
    /// serves both. Tensors are packed without padding in the file; one that would be misaligned
    /// in memory is moved to an aligned place and gets a read of its own.
    pub(crate) fn place(&mut self, file_range: Range<u64>, align: u64) -> Range<u64> {
        let byte_len = file_range.end.saturating_sub(file_range.start);
        let follows = self.requests.last().is_some_and(|r| r.file_range.end == file_range.start);
        let start = if follows && self.memory_len % align.max(1) == 0 {
            self.memory_len
        } else {
            self.new_start(file_range.start, byte_len, align.max(1))
        };
        let end = start.saturating_add(byte_len);
        if byte_len > 0 {
            self.push(file_range, start);
            self.memory_len = end;
        }
        start..end
    }

    /// The reads, and the bytes of memory they fill.
    pub(crate) fn finish(self) -> (Vec<Request>, u64) {
        (self.requests, self.memory_len)
    }

    /// The first free place that suits the file offset: congruent to it modulo a page for what is
    /// longer than a few pages, modulo a line for the rest, and aligned in any case.
    fn new_start(&self, file_start: u64, byte_len: u64, align: u64) -> u64 {
        let modulus = if byte_len >= 16 * PAGE { PAGE } else { LINE };
        let wanted = file_start % modulus;
        if wanted % align != 0 {
            return self.memory_len.next_multiple_of(LINE);
        }
        let skip = (wanted + modulus - self.memory_len % modulus) % modulus;
        self.memory_len.saturating_add(skip)
    }

    /// Adds reads for a part: the last one grows up to the longest read, the rest is cut at
    /// multiples of it in the file.
    fn push(&mut self, file_range: Range<u64>, memory_offset: u64) {
        let (mut at, mut memory_offset) = (file_range.start, memory_offset);
        while at < file_range.end {
            let boundary = (at / MAX_REQUEST_BYTES + 1).saturating_mul(MAX_REQUEST_BYTES);
            let end = boundary.min(file_range.end);
            match self.requests.last_mut() {
                Some(last) if last.grows_from(at, memory_offset) => last.file_range.end = end,
                _ => {
                    let shard = self.shard;
                    self.requests.push(Request { shard, file_range: at..end, memory_offset });
                }
            }
            memory_offset = memory_offset.saturating_add(end - at);
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::{MAX_REQUEST_BYTES, Request, ShardLayout};

    /// Lays out parts given as (start, end, align); returns memory ranges and reads.
    fn lay_out(parts: &[(u64, u64, u64)]) -> (Vec<Range<u64>>, Vec<Request>, u64) {
        let mut layout = ShardLayout::new(3);
        let places = parts.iter().map(|&(s, e, a)| layout.place(s..e, a)).collect();
        let (requests, memory_len) = layout.finish();
        (places, requests, memory_len)
    }

    fn request(file_range: Range<u64>, memory_offset: u64) -> Request {
        Request { shard: 3, file_range, memory_offset }
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
    fn long_parts_keep_their_offset_within_a_page() {
        let (places, _, _) = lay_out(&[(1000, 1000 + (1 << 20), 8)]);
        assert_eq!(places[0].start, 1000);
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

    #[test]
    fn empty_parts_need_no_read() {
        let (places, requests, byte_len) = lay_out(&[(64, 64, 4), (64, 64, 8)]);
        assert!(places.iter().all(Range::is_empty));
        assert!(requests.is_empty());
        assert_eq!(byte_len, 0);
    }
}
