//! What ranks are to take, said with lists of positions as one would with numpy, element by element.

/// The positions that are taken along each dimension.
pub(super) type Lists = Vec<Vec<usize>>;

/// What to do with what cannot be shared evenly, as it is written in JSON.
pub(super) const UNEVEN: [&str; 3] = ["error", "chunk", "balanced"];

pub(super) fn all(len: usize) -> Vec<usize> {
    (0..len).collect()
}

/// `numpy.split`, `torch.chunk` or `numpy.array_split`; none where the first refuses.
pub(super) fn share<T: Clone>(things: &[T], size: usize, uneven: &str) -> Option<Vec<Vec<T>>> {
    let (each, more) = (things.len() / size, things.len() % size);
    let mut lens = match uneven {
        "error" if more > 0 => return None,
        "chunk" => vec![things.len().div_ceil(size); size],
        _ => (0..size).map(|rank| each + usize::from(rank < more)).collect(),
    };
    let mut rest = things;
    let take = |len: &mut usize| {
        let (taken, after) = rest.split_at((*len).min(rest.len()));
        rest = after;
        taken.to_vec()
    };
    Some(lens.iter_mut().map(take).collect())
}

/// Blocks of so many positions, the last perhaps shorter.
pub(super) fn blocks(positions: &[usize], block: usize) -> Vec<Vec<usize>> {
    positions.chunks(block).map(<[usize]>::to_vec).collect()
}

/// As [`share`], with blocks that stay whole.
pub(super) fn share_blocks(
    positions: &[usize],
    block: usize,
    size: usize,
    uneven: &str,
) -> Option<Vec<Vec<usize>>> {
    if uneven == "error" && positions.len() % block != 0 {
        return (size == 1).then(|| vec![positions.to_vec()]);
    }
    let shared = share(&blocks(positions, block), size, uneven)?;
    Some(shared.into_iter().map(|of_rank| of_rank.concat()).collect())
}

/// Query heads that lie one after the other.
pub(super) fn query_heads(
    positions: &[usize],
    [heads, kv]: [usize; 2],
    size: usize,
    uneven: &str,
) -> Option<Vec<Vec<usize>>> {
    let width = positions.len() / heads;
    let by_head = blocks(positions, width);
    if size == 1 || heads % size == 0 && uneven != "balanced" {
        return share_blocks(positions, width, size, "error");
    }
    if uneven != "balanced" {
        return share(positions, size, uneven).filter(|_| uneven == "chunk");
    }
    // Each group of heads goes where the key and value head is that it needs.
    let by_group: Vec<_> = by_head.chunks(heads / kv).map(<[_]>::to_vec).collect();
    let shared = if size > kv && size % kv == 0 {
        by_group.iter().flat_map(|group| share(group, size / kv, uneven).unwrap()).collect()
    } else {
        let of_rank = |groups: Vec<Vec<Vec<usize>>>| groups.concat();
        share(&by_group, size, uneven)?.into_iter().map(of_rank).collect::<Vec<_>>()
    };
    Some(shared.into_iter().map(|of_rank| of_rank.concat()).collect())
}

/// Key or value heads that lie one after the other; neighbours hold the same if there are few.
pub(super) fn kv_heads(
    positions: &[usize],
    heads: usize,
    size: usize,
    uneven: &str,
) -> Option<Vec<Vec<usize>>> {
    let width = positions.len() / heads;
    let by_head = blocks(positions, width);
    if size % heads == 0 {
        return Some((0..size).map(|rank| by_head[rank * heads / size].clone()).collect());
    }
    if uneven == "chunk" && heads % size != 0 {
        return share(positions, size, uneven);
    }
    share_blocks(positions, width, size, uneven)
}

/// Blocks side by side, of which each rank gets a part of each.
pub(super) fn join(parts: &[Option<Vec<Vec<usize>>>], size: usize) -> Option<Vec<Vec<usize>>> {
    let mut joined = vec![Vec::new(); size];
    for part in parts {
        for (of_rank, taken) in joined.iter_mut().zip(part.as_ref()?) {
            of_rank.extend(taken);
        }
    }
    Some(joined)
}

/// The elements on disk that hold these, so many in one; none if others lie in them too.
pub(super) fn on_disk(taken: &[usize], per: usize, len: usize, cover: bool) -> Option<Vec<usize>> {
    let mut held: Vec<_> = taken.iter().map(|position| position / per).collect();
    held.dedup();
    let others = held.iter().flat_map(|at| at * per..((at + 1) * per).min(len));
    (cover || others.eq(taken.iter().copied())).then_some(held)
}

#[cfg(test)]
mod tests {
    use super::{on_disk, query_heads, share};

    #[test]
    fn shares_are_those_of_numpy_and_torch() {
        let shares = |uneven| share(&[0, 1, 2, 3, 4], 3, uneven);
        assert_eq!(shares("error"), None);
        assert_eq!(shares("chunk"), Some(vec![vec![0, 1], vec![2, 3], vec![4]]));
        assert_eq!(share(&[0, 1, 2, 3], 3, "chunk"), Some(vec![vec![0, 1], vec![2, 3], vec![]]));
        assert_eq!(share(&[0, 1, 2, 3], 3, "balanced"), Some(vec![vec![0, 1], vec![2], vec![3]]));
    }

    #[test]
    fn heads_go_with_what_they_need_and_words_are_whole() {
        let heads = query_heads(&[0, 1, 2, 3, 4, 5], [6, 2], 4, "balanced");
        assert_eq!(heads, Some(vec![vec![0, 1], vec![2], vec![3, 4], vec![5]]));
        assert_eq!(on_disk(&[2, 3, 4], 2, 5, false), Some(vec![1, 2]));
        assert_eq!(on_disk(&[1, 2, 3], 2, 5, false), None);
        assert_eq!(on_disk(&[1, 2, 3], 2, 5, true), Some(vec![0, 1]));
    }
}
