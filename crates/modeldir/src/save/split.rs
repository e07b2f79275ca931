//! Splits tensors into shards by the rule of `huggingface_hub`; pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use tensorfile::Tensor;

use crate::TensorStore;

/// A weight file to write.
#[derive(Debug)]
pub(super) struct Shard<'a> {
    pub(super) file: String,
    pub(super) tensors: Vec<&'a Tensor>,
}

/// Splits a store, in name order. A store without tensors becomes one file without tensors.
pub(super) fn shards(store: &TensorStore, max: u64) -> Vec<Shard<'_>> {
    let tensors = store.iter().map(|(_, tensor)| tensor);
    let mut shards = split(tensors, |tensor| tensor.byte_len() as u64, max);
    if shards.is_empty() {
        shards.push(Vec::new());
    }
    let total = shards.len();
    let numbered = shards.into_iter().enumerate();
    numbered.map(|(i, tensors)| Shard { file: file_name(i, total), tensors }).collect()
}

/// Splits items into shards of at most `max` bytes, in order.
///
/// A shard ends when the next item does not fit; later items never go into earlier shards. An item
/// larger than `max` is a shard of its own, which comes before the shard being filled.
fn split<T>(
    items: impl IntoIterator<Item = T>,
    byte_len: impl Fn(&T) -> u64,
    max: u64,
) -> Vec<Vec<T>> {
    let mut shards = Vec::new();
    let (mut open, mut open_len) = (Vec::new(), 0_u64);
    for item in items {
        let len = byte_len(&item);
        if len > max {
            shards.push(vec![item]);
            continue;
        }
        if open_len.saturating_add(len) > max {
            shards.push(std::mem::take(&mut open));
            open_len = 0;
        }
        open.push(item);
        open_len = open_len.saturating_add(len);
    }
    if !open.is_empty() {
        shards.push(open);
    }
    shards
}

/// The name of a shard by its position; a single one has no number.
fn file_name(position: usize, shards: usize) -> String {
    if shards <= 1 {
        return "model.safetensors".to_owned();
    }
    format!("model-{:05}-of-{shards:05}.safetensors", position.saturating_add(1))
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "of small lists")]
mod tests {
    use super::{file_name, split};

    /// Sizes, `max`, and the expected positions in each shard.
    type Case = (&'static [u64], u64, &'static [&'static [usize]]);

    /// As `split_state_dict_into_shards_factory` of huggingface_hub 2.4 splits them.
    const REFERENCE: [Case; 16] = [
        (&[6, 6, 2, 6, 2, 2], 10, &[&[0], &[1, 2], &[3, 4, 5]]),
        (&[4, 4, 4, 4], 8, &[&[0, 1], &[2, 3]]),
        (&[3, 9, 3, 3, 9, 3], 8, &[&[1], &[0, 2], &[4], &[3, 5]]),
        (&[8], 8, &[&[0]]),
        (&[9], 8, &[&[0]]),
        (&[9, 9], 8, &[&[0], &[1]]),
        (&[9, 1], 8, &[&[0], &[1]]),
        (&[1, 9], 8, &[&[1], &[0]]),
        (&[8, 0, 1], 8, &[&[0, 1], &[2]]),
        (&[0, 0, 0], 8, &[&[0, 1, 2]]),
        (&[0, 1, 0, 2], 0, &[&[1], &[3], &[0, 2]]),
        (
            &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
            10,
            &[&[0, 1, 2, 3], &[4], &[5], &[6], &[7], &[8], &[9]],
        ),
        (
            &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1],
            10,
            &[&[0], &[1], &[2], &[3], &[4], &[5, 6], &[7, 8, 9]],
        ),
        (&[5, 5, 1, 11, 5, 5, 0, 12, 1], 10, &[&[0, 1], &[3], &[2, 4], &[7], &[5, 6, 8]]),
        (&[], 8, &[]),
        (&[1, 1, 1], 1 << 63, &[&[0, 1, 2]]),
    ];

    #[test]
    fn shards_are_those_of_the_reference() {
        for (sizes, max, expected) in REFERENCE {
            let shards = split(0..sizes.len(), |&position| sizes[position], max);
            assert_eq!(shards, expected, "{sizes:?} by {max}");
        }
    }

    #[test]
    fn sizes_beyond_64_bits_do_not_wrap() {
        assert_eq!(split([u64::MAX, 1], |&len| len, u64::MAX), [[u64::MAX, 1]]);
    }

    #[test]
    fn names_are_those_of_the_reference() {
        assert_eq!(file_name(0, 0), "model.safetensors");
        assert_eq!(file_name(0, 1), "model.safetensors");
        assert_eq!(file_name(0, 2), "model-00001-of-00002.safetensors");
        assert_eq!(file_name(99_999, 100_000), "model-100000-of-100000.safetensors");
    }
}
