//! Buffers of each size and kind.

use super::{ALIGN, Buffer, BufferMut, HUGE_PAGE, MAP_FROM, padding};
use crate::ErrorKind;

const LENS: [usize; 9] =
    [0, 1, 63, 4096, MAP_FROM - 1, MAP_FROM, HUGE_PAGE - 1, HUGE_PAGE, 2 * HUGE_PAGE + 1];

fn with_len(len: usize) -> BufferMut {
    BufferMut::with_len(len).unwrap()
}

#[test]
fn owned_buffers_are_zero_and_aligned() {
    for len in LENS {
        let buffer = with_len(len).freeze();
        assert_eq!(buffer.len(), len);
        assert!(buffer.iter().all(|b| *b == 0), "{len}");
        let align = if len >= HUGE_PAGE { HUGE_PAGE } else { ALIGN };
        assert_eq!(buffer.as_ptr().addr() % align, 0, "{len}");
    }
}

#[test]
fn freezing_keeps_bytes_and_address() {
    for len in LENS {
        let mut filling = with_len(len);
        assert_eq!((filling.len(), filling.is_empty()), (len, len == 0));
        filling.as_mut_slice().fill(7);
        let address = filling.as_mut_slice().as_ptr().addr();
        let buffer = filling.freeze();
        assert_eq!(buffer.as_ptr().addr(), address);
        assert!(buffer.iter().all(|b| *b == 7));
    }
}

#[test]
fn lengths_beyond_memory_are_errors() {
    for len in [usize::MAX, usize::MAX - ALIGN, usize::MAX / 2, 1 << 60] {
        let error = BufferMut::with_len(len).unwrap_err();
        assert!(matches!(error, ErrorKind::OutOfMemory { byte_len } if byte_len == len), "{error}");
    }
}

#[test]
fn memory_can_be_filled_anew_when_nobody_else_has_it() {
    let buffer = with_len(MAP_FROM).freeze();
    let shared = buffer.clone();
    let buffer = buffer.into_mut().unwrap_err();
    drop(shared);
    let mut again = buffer.into_mut().unwrap();
    again.as_mut_slice().fill(7);
    assert_eq!(again.freeze()[..2], [7, 7]);
}

#[test]
fn owned_bytes_need_no_populating_and_ranges_are_checked() {
    let buffer = with_len(10).freeze();
    buffer.populate(0..10).unwrap();
    let kind = |range| buffer.populate(range).unwrap_err().kind();
    assert_eq!(kind(0..11), std::io::ErrorKind::InvalidInput);
}

#[test]
fn debug_says_kind_and_length_but_no_bytes() {
    let shown = [
        format!("{:?}", Buffer::from_vec(vec![1, 2, 3])),
        format!("{:?}", with_len(MAP_FROM).freeze()),
        format!("{:?}", with_len(2)),
    ];
    let expected = [
        "Buffer { kind: heap, byte_len: 3 }",
        "Buffer { kind: anonymous map, byte_len: 1048576 }",
        "BufferMut { kind: heap, byte_len: 2 }",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn buffers_cross_threads() {
    fn check<T: Send + Sync>() {}
    check::<Buffer>();
    check::<BufferMut>();
}

#[test]
fn padding_reaches_the_next_multiple() {
    assert_eq!([0, 1, 63, 64, 65].map(|addr| padding(addr, 64)), [0, 63, 1, 0, 63]);
}
