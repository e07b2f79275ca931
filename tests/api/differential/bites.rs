//! Changes of the bytes of a header, whatever they mean.

use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A change of the bytes themselves.
#[derive(Clone, Debug)]
pub(super) enum Bite {
    Set(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Repeat(Index, Index),
    Cut(Index),
}

pub(super) fn bite() -> impl Strategy<Value = Bite> {
    let byte = || prop_oneof![any::<u8>(), select(&b"{}[]\",:\\0123456789eE+-. \n\tnull"[..])];
    prop_oneof![
        4 => (any::<Index>(), byte()).prop_map(|(at, byte)| Bite::Set(at, byte)),
        2 => (any::<Index>(), byte()).prop_map(|(at, byte)| Bite::Insert(at, byte)),
        2 => any::<Index>().prop_map(Bite::Remove),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Bite::Repeat(from, to)),
        1 => any::<Index>().prop_map(Bite::Cut),
    ]
}

/// Changes the header and makes its length fit again, so that most changes reach the parser.
pub(super) fn bitten(bytes: &[u8], bites: &[Bite]) -> Vec<u8> {
    let header_len = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let mut header = bytes[8..8 + header_len].to_vec();
    for bite in bites {
        let len = header.len();
        if len < 2 {
            break;
        }
        match bite {
            Bite::Set(at, byte) => header[at.index(len)] = *byte,
            Bite::Insert(at, byte) => header.insert(at.index(len), *byte),
            Bite::Remove(at) => drop(header.remove(at.index(len))),
            Bite::Repeat(from, to) => {
                let (from, to) = (from.index(len), to.index(len));
                let piece = header[from.min(to)..from.max(to)].to_vec();
                let short = &piece[..piece.len().min(80)];
                header.splice(to..to, short.iter().copied());
            }
            Bite::Cut(at) => header.truncate(at.index(len)),
        }
    }
    [&(header.len() as u64).to_le_bytes(), &header[..], &bytes[8 + header_len..]].concat()
}
