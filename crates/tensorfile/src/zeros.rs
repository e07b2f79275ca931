//! Counts the zeros at the start of a file that was allocated and never written.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

/// Where the count ends: reading further costs more than the number is worth.
pub(crate) const MAX_COUNTED: u64 = 1 << 20;

/// The bytes read at once.
const BLOCK: usize = 64 << 10;

/// The number of zeros at the start of these bytes, counted up to [`MAX_COUNTED`].
pub(crate) fn count(bytes: &[u8]) -> u64 {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count() as u64;
    zeros.min(MAX_COUNTED)
}

/// The number of zeros at the start of a file of `byte_len` bytes, counted up to [`MAX_COUNTED`],
/// or as far as the file can be read.
pub(crate) fn count_in<E>(byte_len: u64, read: impl Fn(&mut [u8], u64) -> Result<(), E>) -> u64 {
    let (mut block, mut counted) = (vec![0; BLOCK], 0_u64);
    let end = byte_len.min(MAX_COUNTED);
    while counted < end {
        let left = usize::try_from(end.saturating_sub(counted)).unwrap_or(BLOCK);
        let Some(part) = block.get_mut(..left.min(BLOCK)) else { break };
        if read(part, counted).is_err() {
            break;
        }
        let zeros = count(part);
        counted = counted.saturating_add(zeros);
        if zeros < part.len() as u64 {
            break;
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, MAX_COUNTED, count_in};

    fn counted(file: &[u8]) -> u64 {
        count_in(file.len() as u64, |part, at| {
            let from = file.iter().skip(usize::try_from(at).unwrap());
            part.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            Ok::<(), ()>(())
        })
    }

    #[test]
    fn the_count_ends_at_the_first_other_byte_and_at_the_limit() {
        let max = usize::try_from(MAX_COUNTED).unwrap();
        for zeros in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, max - 1, max] {
            let mut file = vec![0; zeros];
            assert_eq!(counted(&file), zeros as u64);
            file.extend([1, 0]);
            assert_eq!(counted(&file), zeros as u64);
        }
        assert_eq!(counted(&[vec![0; max], vec![0; BLOCK]].concat()), MAX_COUNTED);
    }

    #[test]
    fn what_cannot_be_read_is_not_counted() {
        let read = |part: &mut [u8], at| match at {
            0 => {
                part.fill(0);
                Ok(())
            }
            _ => Err(()),
        };
        assert_eq!(count_in(MAX_COUNTED, read), BLOCK as u64);
    }
}
