//! Fallible allocation, so that too little memory is an error, with little spare capacity.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

/// From this length on, lists grow by an eighth instead of doubling, because a hostile file can
/// hold millions of short items.
const MANY: usize = 1 << 10;

/// The error for memory that could not be allocated.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory(
    /// The length of the allocation in bytes.
    pub usize,
);

/// Adds an item to a list.
///
/// # Errors
///
/// Fails if there is not enough memory.
#[inline]
pub fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), NoMemory> {
    if list.len() == list.capacity() {
        grow(list)?;
    }
    list.push(item);
    Ok(())
}

/// Makes room in a full list.
#[cold]
fn grow<T>(list: &mut Vec<T>) -> Result<(), NoMemory> {
    let len = list.len();
    let more = if len < MANY { len.max(4) } else { len / 8 };
    list.try_reserve_exact(more)
        .map_err(|_| NoMemory(len.saturating_add(more).saturating_mul(size_of::<T>())))
}

/// Appends to a string.
///
/// # Errors
///
/// Fails if there is not enough memory.
pub fn push_str(text: &mut String, more: &str) -> Result<(), NoMemory> {
    let (len, free) = (text.len(), text.capacity().saturating_sub(text.len()));
    if free < more.len() {
        let room = more.len().max(if len < MANY { len } else { len / 8 });
        text.try_reserve_exact(room).map_err(|_| NoMemory(len.saturating_add(room)))?;
    }
    text.push_str(more);
    Ok(())
}

/// An owned copy of a string.
///
/// # Errors
///
/// Fails if there is not enough memory.
#[inline]
pub fn boxed(text: &str) -> Result<Box<str>, NoMemory> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|_| NoMemory(text.len()))?;
    copy.push_str(text);
    Ok(copy.into_boxed_str())
}

/// An empty list with room for this many items.
///
/// # Errors
///
/// Fails if there is not enough memory.
pub fn list<T>(len: usize) -> Result<Vec<T>, NoMemory> {
    let mut list = Vec::new();
    let asked = list.try_reserve_exact(len);
    asked.map_err(|_| NoMemory(len.saturating_mul(size_of::<T>())))?;
    Ok(list)
}

/// A list of these items.
///
/// # Errors
///
/// Fails if there is not enough memory.
pub fn collect<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, NoMemory> {
    let mut list = list(items.len())?;
    list.extend(items);
    Ok(list)
}

/// Allocates and frees memory for this many items, just before other code allocates it infallibly.
///
/// For infallible allocations, such as the scratch of a stable sort, which is as long as the sorted
/// list; and for many small ones, which would leave no memory for an error. Another thread may take
/// the memory in between.
///
/// # Errors
///
/// Fails if there is not enough memory.
pub fn check<T>(len: usize) -> Result<(), NoMemory> {
    list::<T>(len).map(drop)
}

#[cfg(test)]
mod tests {
    use super::{NoMemory, boxed, check, collect, list, push, push_str};

    #[test]
    fn long_lists_and_texts_have_little_more_room_than_they_need() {
        let (mut list, mut text) = (Vec::new(), String::new());
        for i in 0..100_000_u32 {
            push(&mut list, i).unwrap();
            push_str(&mut text, "é").unwrap();
        }
        assert!(list.iter().copied().eq(0..100_000) && list.capacity() <= 112_500);
        assert!(text.len() == 200_000 && text.capacity() <= 225_000);
        assert_eq!(boxed("é").as_deref(), Ok("é"));
        let copy = collect(list.iter().copied()).unwrap();
        assert!(copy == list && copy.capacity() == copy.len());
    }

    #[test]
    fn what_cannot_be_had_is_an_error_with_its_size() {
        let len = usize::MAX / 16;
        assert_eq!(check::<u64>(len), Err(NoMemory(len * 8)));
        assert_eq!(list::<u64>(len), Err(NoMemory(len * 8)));
        assert_eq!(collect((0..len).map(|i| i as u64)), Err(NoMemory(len * 8)));
    }
}
